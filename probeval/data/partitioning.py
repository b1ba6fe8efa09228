"""Write campaigns in partitions, one partition at a time."""

from __future__ import annotations

import json
import shutil
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from probeval.arrays import Floats, Ids, objects
from probeval.data.collection import Collection
from probeval.data.evidence import LabelTable
from probeval.data.files import MANIFEST, write_bytes
from probeval.data.judgments import Judgments
from probeval.data.observers import MOST_GRADE, describe_observer
from probeval.data.partitions import FORMAT, VERSION, Partition, PathName, arrow, label_columns
from probeval.data.pool import Pool, QueryBlock
from probeval.data.runs import Runs
from probeval.errors import DataError, ProbevalWarning

__all__ = ["range_starts", "split", "split_judgments", "split_labels", "write_partitions"]

LEFT_OUT = ("metadata", "vectors", "answers", "magnitudes")  # parts of a collection that partitions do not hold


def split(collection: Collection, n: int) -> Iterator[Collection]:
    """The collection in ``n`` parts of consecutive queries, as equal in number as can be.

    Labels and judgments of queries that no system answers go with the queries before them.

    Examples
    --------
    >>> runs = Runs.rows(["a", "a", "a"], ["q1", "q2", "q3"], ["d1", "d2", "d3"])
    >>> [part.runs.queries.tolist() for part in split(Collection("mine", runs), 2)]
    [['q1'], ['q2', 'q3']]
    """
    runs, labels, judgments = collection.runs, collection.labels, collection.judgments
    starts = range_starts(runs.queries, n)
    parts = zip(
        (_without_unused(runs.part(block)) for block in _blocks(runs.pool, starts)),
        repeat(None, n) if labels is None else split_labels(labels, starts),
        repeat(None, n) if judgments is None else split_judgments(judgments, starts),
        strict=True,
    )
    for lists, labelled, judged in parts:
        yield replace(collection, runs=lists, labels=labelled, judgments=judged)


def range_starts(queries: Sequence[str] | Ids, n: int) -> Ids:
    """The first query of each of ``n`` ranges of queries in rising order, as equal in number as can be."""
    if not 1 <= n <= len(queries):
        raise DataError(f"the number of partitions must be from 1 to the number of queries, {len(queries)}; got {n}.")
    return objects([queries[len(queries) * i // n] for i in range(n)])


def split_labels(labels: LabelTable, starts: Ids) -> Iterator[LabelTable]:
    """The labels of each range of queries; those before the first range go with it."""
    for block in _blocks(labels.pool, starts):
        yield labels.rearranged(labels.pool.part(block), np.arange(block.pairs.start, block.pairs.stop))


def split_judgments(judgments: Judgments, starts: Ids) -> Iterator[Judgments]:
    """The judgments of each range of queries; those before the first range go with it."""
    for block in _blocks(judgments.pool, starts):
        part = judgments.take((judgments.pair >= block.pairs.start) & (judgments.pair < block.pairs.stop))
        yield replace(part, pool=judgments.pool.part(block), pair=part.pair - block.pairs.start)


def _blocks(pool: Pool, starts: Ids) -> list[QueryBlock]:
    """The pairs of each range of queries."""
    at = [0, *np.searchsorted(pool.queries, starts[1:]).tolist(), len(pool.queries)]
    pair = np.searchsorted(pool.query, at).tolist()
    return [QueryBlock(slice(*at[i : i + 2]), slice(*pair[i : i + 2])) for i in range(len(starts))]


def _without_unused(runs: Runs) -> Runs:
    return replace(runs, pool=runs.pool.take(np.ones(len(runs.pool), dtype=bool)))


def write_partitions(
    collections: Iterable[Collection], folder: PathName, *, observers: Mapping[str, Mapping[str, str]] | None = None
) -> None:
    """Write collections with the queries of one campaign as a folder of partitions, one partition per collection.

    Each collection is written before the next is asked for, so that a campaign need not fit in memory. The folder
    appears when it is complete.

    Parameters
    ----------
    collections
        The same systems, teams and sources of labels in each; the queries of each after those of the one before, as
        strings. :func:`split` makes them from one collection.
    folder
        A new or empty folder.
    observers
        Descriptions of the sources of labels, complete or not; what they lack is inferred from all labels.
    """
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DataError("exists already and is not empty. Name a new folder.", path=target)
    arrow("pyarrow.parquet")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}.", path=target) from None
    home = aside / target.name
    try:
        home.mkdir()
        written = _Written(target, home)
        for collection in collections:
            written = written.with_next(collection)
        if not written.parts:
            raise DataError("there is nothing to write: no partition.", path=target)
        write_bytes(home / MANIFEST, (json.dumps(written.manifest(observers or {}), indent=1) + "\n").encode())
        if target.exists():
            target.rmdir()
        home.rename(target)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}.", path=target) from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)


@dataclass(frozen=True)
class _Written:
    """The partitions written so far, and what they have in common.

    Parameters
    ----------
    target, home
        The folder as it will be, and where it is until then.
    first
        The first partition without its pairs: its systems and sources are those of all.
    last
        The last query so far, of runs, labels or judgments.
    depth, assessors, parts
        Of the manifest, so far.
    shown
        The label of each source that tells most about its scale, so far.
    """

    target: Path
    home: Path
    first: Collection | None = None
    last: str = ""
    depth: int = 0
    shown: tuple[float, ...] = ()
    assessors: tuple[str, ...] | None = None
    parts: tuple[Partition, ...] = ()

    def with_next(self, collection: Collection) -> _Written:
        """Write one more partition, and return all of them so far."""
        i, runs = len(self.parts), collection.runs
        self._check(collection)
        queries = runs.queries
        labels, judgments = collection.labels, collection.judgments
        self._write("queries", i, {"query": queries})
        s, q, rank = np.nonzero(runs.retrieved)
        pair = runs.pairs[s, q, rank]
        ranked = {"system": objects(runs.systems)[s], "query": queries[q], "doc": runs.pool.docs[runs.pool.doc[pair]]}
        self._write("runs", i, {**ranked, "rank": (rank + 1).astype(np.int32), "score": runs.scores[s, q, rank]})
        if labels is not None:
            table = labels.to_frame()
            self._write("labels", i, {str(name): table[name].to_numpy() for name in table.columns})
        if judgments is not None and len(judgments):
            events = judgments.take(np.argsort(judgments.pool.query[judgments.pair], kind="stable")).to_frame()
            self._write("judgments", i, {str(name): events[name].to_numpy() for name in events.columns})
        size = Partition(
            queries=len(queries),
            first=queries[0],
            last=queries[-1],
            pairs=len(np.unique(pair)),
            rows=len(pair),
            labels=0 if labels is None else len(labels.pool),
            judgments=0 if judgments is None else len(judgments),
        )
        return replace(
            self,
            first=self.first or _emptied(collection),
            last=max(_queries_of(collection)),
            depth=max(self.depth, runs.depth),
            shown=() if labels is None else _telling(labels, self.shown),
            assessors=self.assessors if judgments is None else _joined(self.assessors, judgments),
            parts=(*self.parts, size),
        )

    def _check(self, collection: Collection) -> None:
        number = len(self.parts) + 1
        extra = next((name for name in LEFT_OUT if getattr(collection, name) is not None), None)
        if extra is not None:
            raise DataError(
                f"partitions hold runs, labels and judgments, and the campaign has {extra}. Name its runs, judgments "
                "and labels one by one to leave them out."
            )
        if collection.consensus or collection.ranked is not None:
            raise DataError("partitions hold a campaign of which all systems are evaluated by its judgments.")
        if not len(collection.runs.queries):
            raise DataError(f"partition {number} has no queries. Leave it out.", path=self.target)
        before = min(_queries_of(collection))
        if self.parts and before <= self.last:
            raise DataError(
                f"partition {number} has the query {before!r}, which must come after {self.last!r} of the partition "
                "before: each partition has whole queries, in rising order as strings.",
                path=self.target,
            )
        if self.first is not None:
            for what, given, expected in _common(collection, self.first):
                if given != expected:
                    raise DataError(
                        f"partition {number} has the {what} {given}, those before {expected}. They must be the same.",
                        path=self.target,
                    )
        names = ("query", "doc", *_columns(collection.labels))
        twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
        if twice is not None:
            raise DataError(f"two columns of labels would be called {twice!r}. Rename the source.", path=self.target)

    def _write(self, kind: str, i: int, columns: dict[str, Any]) -> None:
        pa, parquet = arrow("pyarrow"), arrow("pyarrow.parquet")
        # Ids are text; a number that is missing is null.
        arrays = {
            name: pa.array(values, type=pa.large_string() if values.dtype == object else None, from_pandas=True)
            for name, values in columns.items()
        }
        file = self.home / kind / f"part-{i:05d}.parquet"
        file.parent.mkdir(exist_ok=True)
        parquet.write_table(pa.table(arrays), file, compression="zstd")

    def manifest(self, given: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
        """The manifest as plain data."""
        assert self.first is not None
        runs, labels = self.first.runs, self.first.labels
        if given and labels is None:
            raise DataError("observers describe labels, and there are none. Give labels too.")
        unheard = [name for name in given if labels is not None and name not in labels.sources]
        if unheard:
            warnings.warn(f"Observers without labels: {', '.join(unheard)}.", ProbevalWarning, 3)
        sources = []
        for at, source in enumerate(() if labels is None else labels.sources):
            assert labels is not None
            parts = labels.probabilities.get(source)
            values = np.array([self.shown[at]]) if parts is None else parts
            observer = describe_observer(source, values, given.get(source) or labels.descriptions.get(source))
            sources.append({**asdict(observer), "levels": None if parts is None else parts.shape[1]})
        return {
            "format": FORMAT,
            "version": VERSION,
            "systems": runs.systems,
            "teams": runs.teams,
            "depth": self.depth,
            "sources": sources,
            "assessors": self.assessors,
            "partitions": [asdict(part) for part in self.parts],
        }


def _emptied(collection: Collection) -> Collection:
    """The collection without its pairs: what all partitions have in common."""
    runs, labels = collection.runs, collection.labels
    none = Pool.of([], [])
    lists = np.empty((len(runs.systems), 0, 0))
    return Collection(
        collection.name,
        Runs(runs.systems, none, lists.astype(np.int64), lists, runs.teams),
        labels=None if labels is None else labels.rearranged(none, np.empty(0, dtype=np.int64)),
    )


def _queries_of(collection: Collection) -> tuple[str, ...]:
    """The first and the last query of the runs, the labels and the judgments."""
    parts: list[Ids] = [collection.runs.queries]
    for table in (collection.labels, collection.judgments):
        if table is not None and len(table.pool):
            parts.append(table.pool.queries[table.pool.query[[0, -1]]])
    return tuple(query for queries in parts for query in (queries[0], queries[-1]))


def _common(one: Collection, other: Collection) -> Iterator[tuple[str, Any, Any]]:
    """What must be the same in all partitions, by name."""
    yield "systems", one.runs.systems, other.runs.systems
    yield "teams", one.runs.teams, other.runs.teams
    yield "columns of labels", _columns(one.labels), _columns(other.labels)
    described = [{} if table is None else table.descriptions for table in (one.labels, other.labels)]
    yield "observers", described[0], described[1]


def _columns(labels: LabelTable | None) -> tuple[str, ...]:
    """The columns of the labels of all sources."""
    if labels is None:
        return ()
    levels = {source: parts.shape[1] for source, parts in labels.probabilities.items()}
    return tuple(name for source in labels.sources for name in label_columns(source, levels.get(source)))


def _telling(labels: LabelTable, shown: tuple[float, ...]) -> tuple[float, ...]:
    """The label of each source that tells its scale: one that is no grade if there is one, else the highest."""
    found = []
    for at in range(len(labels.sources)):
        values: Floats = np.append(labels.values[:, at], shown[at] if shown else np.nan)
        values = values[~np.isnan(values)]
        others = values[(values != np.round(values)) | (values < 0) | (values > MOST_GRADE)]
        found.append(float(others[0] if len(others) else values.max(initial=-np.inf)) if len(values) else np.nan)
    return tuple(found)


def _joined(known: tuple[str, ...] | None, judgments: Judgments) -> tuple[str, ...]:
    """The assessors so far and those of more judgments."""
    return tuple(dict.fromkeys([*(known or ()), *judgments.assessors]))
