"""The files that a command names, as one collection, and what is left out of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from probeval.cli.output import Talk
from probeval.data import Collection, read_judgments, read_labels, read_metadata, read_runs, read_teams
from probeval.data.files import find, run_files
from probeval.data.scale import Scale
from probeval.errors import DataError

__all__ = ["collect", "is_store", "say_unanswered", "say_unjudged"]

SQLITE = b"SQLite format 3\x00"


def collect(
    runs: Sequence[str],
    *,
    talk: Talk,
    qrels: Path | None = None,
    metadata: Path | None = None,
    labels: Path | None = None,
    scale: Scale | None = None,
    order: str = "trec_eval",
) -> Collection:
    """Runs and what goes with them; a ``systems.tsv`` beside a single directory of runs gives the teams."""
    for run in filter(is_store, runs):
        raise DataError(f"a store of campaigns, not a run. Use: probeval report {run}", path=run)
    if qrels is not None and is_store(qrels):
        advice = f"probeval campaign export {qrels} --out qrels.txt"
        raise DataError(f"a store of campaigns, not qrels. Use: {advice}", path=qrels)
    try:
        lists = read_runs(*runs, order=order, progress=talk.progress)
    except DataError as error:
        first = run_files(runs)[0]
        if first in map(Path, runs) or error.path not in (None, first):  # one was read before it, or named
            raise
        raise DataError(f"{error} Is {first.parent} a folder of runs?") from None
    beside = Path(runs[0]) if len(runs) == 1 else None
    teams = None
    if beside is not None and beside.is_dir():
        teams = find(beside, "systems.tsv") or find(beside.resolve().parent, "systems.tsv")
    return Collection(
        name=beside.resolve().name if beside else "runs",
        runs=lists if teams is None else lists.with_teams(read_teams(teams)),
        judgments=None if qrels is None else read_judgments(qrels, scale=scale),
        metadata=None if metadata is None else read_metadata(metadata),
        labels=None if labels is None else read_labels(labels),
    )


def is_store(path: str | Path) -> bool:
    """Whether a path is an SQLite file, as stores of campaigns are."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(SQLITE)) == SQLITE
    except (OSError, ValueError):  # readers report this better
        return False


def say_unjudged(talk: Talk, collection: Collection, measured: Iterable[str]) -> None:
    """Say which queries are left out where only judgments count: those on one side alone."""
    assert collection.judgments is not None
    unjudged = set(collection.runs.queries) - set(measured)
    if unjudged:
        talk(f"{len(unjudged)} queries of the runs have no judgment and are left out.")
    say_unanswered(talk, collection)


def say_unanswered(talk: Talk, collection: Collection) -> None:
    """Say how many judged queries no run answers."""
    assert collection.judgments is not None
    missing = set(collection.judgments.pool.queries) - set(collection.runs.queries)
    if missing:
        talk(f"{len(missing)} judged queries are answered by no run and are left out.")
