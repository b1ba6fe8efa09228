"""The files that a command names, as one collection."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from probeval.cli.output import Talk
from probeval.data import Collection, read_judgments, read_labels, read_metadata, read_runs, read_teams
from probeval.data.files import find
from probeval.data.scale import Scale

__all__ = ["collect"]


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
    lists = read_runs(*runs, order=order, progress=talk.progress)
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
