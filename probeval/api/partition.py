"""Campaigns in partitions, from files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

from probeval.api.evidence import (
    Labels,
    Observers,
    Order,
    Qrels,
    RunPaths,
    Teams,
    as_collection,
    teams_beside,
    with_teams,
)
from probeval.api.settings import Work
from probeval.data import (
    Collection,
    LabelTable,
    Partitions,
    Runs,
    as_judgments,
    open_partitions,
    split,
    write_partitions,
)
from probeval.data.collection import are_paths
from probeval.data.evidence import labels_from_table
from probeval.data.files import run_files
from probeval.data.formats import find_format
from probeval.data.observers import as_observers
from probeval.data.partitioning import split_judgments, split_labels
from probeval.data.partitions import PathName
from probeval.data.spread import spread_labels, spread_runs
from probeval.errors import DataError
from probeval.records import About, task
from probeval.reporting import Reporter

__all__ = ["NumberOfPartitions", "PartitionInputs", "Partitioning", "partition"]

ROWS = 500_000  # retrieved documents of a partition by default: seconds of work and some hundred megabytes

NumberOfPartitions = Annotated[
    int | None,
    About(
        "The number of partitions; default: one per 500,000 retrieved documents.",
        metavar="N",
        option="--partitions",
        least=1,
    ),
]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Partitioning(Work):
    """What is written to partitions beside the runs."""

    qrels: Qrels = None
    labels: Labels = None
    observers: Observers = None
    teams: Teams = None
    order: Order = "trec_eval"
    depth: Annotated[int | None, About("The number of ranks in partitions; default: the whole run.", least=1)] = None

    def write(self, runs: Any, folder: PathName, n: int | None = None) -> Partitions:
        """Write runs to n partitions in a folder."""
        described = None if self.observers is None else as_observers(self.observers)
        paths = [runs] if isinstance(runs, (str, PathLike)) else runs
        files = run_files(paths) if are_paths(runs) else []
        beside: dict[str, Any] = {name: getattr(self, name) for name in ("qrels", "labels", "order", "reporter")}
        teams = self.teams
        if files and all(_is_trec(file) for file in files):
            parts = _streamed(files, Path(folder), n, **beside)
            teams = teams_beside(paths) if teams is None else teams
        else:
            parts = _whole(runs, n, **beside)
        if self.depth is not None:
            parts = (replace(part, runs=part.runs.top(self.depth)) for part in parts)
        if teams is not None:
            parts = (replace(part, runs=with_teams(part.runs, teams)) for part in parts)
        write_partitions(parts, folder, observers=described)
        return open_partitions(folder)


@dataclass(frozen=True, eq=False, repr=False)
class PartitionInputs(Partitioning):
    """Write runs, judgments and labels as a campaign in partitions.

    Each partition holds whole queries, so that a campaign of any size is evaluated one partition at a time, on one
    machine or on many. TREC runs and CSV or TSV tables of labels may be larger than memory: their rows are sorted by
    query on disk, beside the folder. See docs/how-to/dask.md.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     partition({"bm25": {"q1": {"d1": 2.0}, "q2": {"d1": 1.0}}}, f"{folder}/parts", 2)
    <Partitions: parts, 1 system, 2 queries, 2 pairs in 2 partitions>
    """

    runs: RunPaths
    folder: Annotated[PathName, About("A new or empty folder.")]
    n: NumberOfPartitions = None

    def run(self) -> Partitions:
        """The campaign in partitions."""
        return self.write(self.runs, self.folder, self.n)


partition = task(PartitionInputs, "partition")


def _is_trec(file: Path) -> bool:
    found = find_format(file, Runs)
    return found is None or found.name == "trec"


def _whole(runs: Any, n: int | None, **given: Any) -> Iterator[Collection]:
    """The parts of a campaign in memory."""
    collection = as_collection(runs, **given)
    most = min(-(-int(collection.runs.retrieved.sum()) // ROWS), len(collection.runs.queries))
    yield from split(collection, most if n is None else n)


def _streamed(
    files: Sequence[Path], folder: Path, n: int | None, *, qrels: Any, labels: Any, order: str, reporter: Reporter
) -> Iterator[Collection]:
    """The parts of a campaign of TREC runs, which are never in memory as a whole."""
    judgments = None
    if qrels is not None:
        judgments = as_judgments(qrels)
    tables = list(labels) if isinstance(labels, (list, tuple)) else [] if labels is None else [labels]
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-rows.", dir=folder.parent) as name:
        home = Path(name)
        runs = spread_runs(files, n, home, rows=ROWS, order=order, reporter=reporter)
        sources = [_label_parts(table, runs.starts, home / f"labels-{k}") for k, table in enumerate(tables)]
        judged = repeat(None) if judgments is None else split_judgments(judgments, runs.starts)
        outside = {what for what, given in (("judgments", qrels), ("labels", labels)) if given is not None}
        for i in range(len(runs.starts)):
            here = [next(parts) for parts in sources]
            part = Collection(
                folder.name,
                runs.read(i),
                next(judged),
                labels=here[0].joined(here[1:]) if len(here) > 1 else here[0] if here else None,
            )
            outside -= {what for what in outside if _meets(part, what)}
            yield part
    if outside:
        what = sorted(outside)[0]
        raise DataError(
            f"no pair in common: none of the {what} is of a pair that the runs retrieved. The ids of queries and "
            "documents must be the same in both."
        )


def _label_parts(table: Any, starts: Any, home: Path) -> Iterator[LabelTable]:
    """The labels of each range of queries."""
    if isinstance(table, (str, PathLike)):
        home.mkdir()
        spread = spread_labels(Path(table), starts, home)
        return (spread.read(i) for i in range(len(starts)))
    return split_labels(table if isinstance(table, LabelTable) else labels_from_table(table), starts)


def _meets(part: Collection, what: str) -> bool:
    """Whether some judgment, or some label, is of a retrieved pair."""
    table = part.judgments if what == "judgments" else part.labels
    return table is not None and bool((table.pool.within(part.runs.pool) >= 0).any())
