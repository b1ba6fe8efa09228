"""Campaigns in partitions: runs, labels and judgments as parquet files of whole queries, read one at a time.

The schema of the folder is in docs/how-to/dask.md. :mod:`probeval.data.partitioning` writes it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from probeval.arrays import Floats, Ids, Ints, objects
from probeval.data.collection import Collection
from probeval.data.evidence import LabelTable
from probeval.data.files import MANIFEST, is_partitioned, read_bytes
from probeval.data.judgments import Judgments
from probeval.data.limits import MOST_COLUMNS, check_array, check_cells, most_bytes
from probeval.data.observers import ObserverSpec
from probeval.data.payloads import parsed_json
from probeval.data.pool import Pool
from probeval.data.runs import Runs
from probeval.display import Described, Table
from probeval.errors import DataError, did_you_mean

__all__ = [
    "FORMAT",
    "VERSION",
    "Partition",
    "Partitions",
    "arrow",
    "as_partitions",
    "label_columns",
    "open_partitions",
]

FORMAT = "probeval partitions"
VERSION = 1
RUNS = ("system", "query", "doc", "rank", "score")
JUDGMENTS = ("query", "doc", "grade", "assessor", "time")
IDS = ("query", "doc", "system", "rank", "assessor")  # columns without empty cells
PathName = str | os.PathLike[str]


@dataclass(frozen=True)
class Partition:
    """What one partition holds: whole queries, in rising order as strings.

    Parameters
    ----------
    queries
        The number of queries of its runs.
    first, last
        The first and the last of these queries.
    pairs
        The number of retrieved pairs, each counted once.
    rows, labels, judgments
        The numbers of rows in its files: retrieved documents, labelled pairs, judgments.
    """

    queries: int
    first: str
    last: str
    pairs: int
    rows: int
    labels: int
    judgments: int


@dataclass(frozen=True, eq=False, repr=False)
class Partitions(Described):
    """A campaign in partitions, as its manifest describes it: nothing is read before it is asked for.

    Parameters
    ----------
    path
        The folder.
    systems, teams
        The systems in their order, and the team of each; None if unknown.
    depth
        The length of the longest list.
    observers
        The sources of labels, each described by all of its labels; none without labels.
    levels
        The number of grades of each source that gives probabilities.
    assessors
        The assessors of the judgments; None without judgments.
    parts
        The partitions in the order of their queries.
    """

    path: Path
    systems: tuple[str, ...]
    teams: tuple[str, ...] | None
    depth: int
    observers: tuple[ObserverSpec, ...]
    levels: Mapping[str, int]
    assessors: tuple[str, ...] | None
    parts: tuple[Partition, ...]

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.path.name

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the sources of labels."""
        return tuple(observer.name for observer in self.observers)

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return sum(part.queries for part in self.parts)

    @property
    def n_pairs(self) -> int:
        """The number of retrieved pairs."""
        return sum(part.pairs for part in self.parts)

    @cached_property
    def starts(self) -> Ints:
        """The position of each partition's first query among all queries, shape (partition,)."""
        sizes = np.array([part.queries for part in self.parts], dtype=np.int64)
        return np.asarray(np.cumsum(sizes) - sizes)

    def _headline(self) -> str:
        n = len(self.systems)
        return (
            f"{self.name}, {n} system{'s' * (n != 1)}, {self.n_queries:,} queries, {self.n_pairs:,} pairs in "
            f"{len(self)} partition{'s' * (len(self) != 1)}"
        )

    def tables(self) -> tuple[Table, ...]:
        """The partitions and their sizes."""
        return (Table(pd.DataFrame([asdict(part) for part in self.parts]), self._headline()),)

    def read(self, i: int, depth: int | None = None, *, sources: Sequence[str] | None = None) -> Collection:
        """The queries of one partition with the lists of all systems, their labels and their judgments.

        Parameters
        ----------
        i
            The partition, from 0.
        depth
            Keep only this many ranks, and the pairs that they hold.
        sources
            Read only the labels of these sources; all by default, none of an empty sequence.
        """
        if depth is not None and depth < 1:
            raise DataError(f"A depth is a whole number from 1, got {depth}.")
        wanted = self.sources if sources is None else tuple(sources)
        unknown = next((s for s in wanted if s not in self.sources), None)
        if unknown is not None:
            raise DataError(f"no labels by {unknown!r}.{did_you_mean(unknown, self.sources)}", path=self.path)
        tables = {"queries": self._table("queries", i, ("query",))}
        tables["runs"] = _top(self._table("runs", i, RUNS), depth)
        if wanted:
            columns = [name for source in wanted for name in self.columns_of(source)]
            tables["labels"] = self._table("labels", i, ("query", "doc", *columns))
        if self.assessors is not None and self.parts[i].judgments:
            tables["judgments"] = self._table("judgments", i, JUDGMENTS)
        queries, query = _numbered({kind: table["query"] for kind, table in tables.items()})
        if np.any(np.diff(query["queries"]) <= 0) or not np.isin(query["runs"], query["queries"]).all():
            raise DataError(
                "expected each query once, in rising order, and those of its runs. Copy or convert the campaign again.",
                path=self.file("queries", i),
            )
        docs, doc = _numbered({kind: table["doc"] for kind, table in tables.items() if kind != "queries"})
        pools = {
            kind: _pool(queries, docs, query[kind], doc[kind]) for kind in tables if kind not in ("queries", "runs")
        }
        pools["runs"] = _pool(queries, docs, query["runs"], doc["runs"], every=query["queries"])
        if "labels" in pools and pools["labels"][0] == pools["runs"][0]:
            pools["labels"] = pools["runs"][0], pools["labels"][1]  # one pool for both: nothing to look up between them
        judgments = None
        if self.assessors is not None:
            judgments = self._judgments(tables.get("judgments"), *pools.get("judgments", (None, None)))
        return Collection(
            name=self.name,
            runs=self._runs(tables["runs"], *pools["runs"], depth),
            judgments=judgments,
            labels=self._labels(tables["labels"], *pools["labels"], wanted) if wanted else None,
        )

    def read_all(self) -> Iterator[Collection]:
        """The partitions one after another, as :meth:`read` returns them."""
        return (self.read(i) for i in range(len(self)))

    def read_queries(self, i: int) -> Ids:
        """The queries of one partition, in rising order, shape (query,)."""
        return objects(self._table("queries", i, ("query",))["query"].to_pylist())

    def read_judgments(self) -> Judgments | None:
        """The judgments of all partitions, by query and then in chronological order; None without judgments."""
        if self.assessors is None:
            return None
        judged = [i for i, part in enumerate(self.parts) if part.judgments]
        if not judged:
            return self._judgments(None, None, None)
        pa = arrow("pyarrow")
        table = pa.concat_tables([self._table("judgments", i, JUDGMENTS) for i in judged])
        queries, query = _numbered({"judgments": table["query"]})
        docs, doc = _numbered({"judgments": table["doc"]})
        return self._judgments(table, *_pool(queries, docs, query["judgments"], doc["judgments"]))

    def columns_of(self, source: str) -> tuple[str, ...]:
        """The columns of a source in the files of labels: one, or one per grade."""
        return label_columns(source, self.levels.get(source))

    def file(self, kind: str, i: int) -> Path:
        """The file of a partition's queries, runs, labels or judgments."""
        return self.path / kind / f"part-{i:05d}.parquet"

    def _table(self, kind: str, i: int, columns: Sequence[str]) -> Any:
        """Some columns of a partition's file, in one thread: partitions are read side by side."""
        if not 0 <= i < len(self):
            raise DataError(f"partitions are numbered from 0 to {len(self) - 1}, got {i}.", path=self.path)
        path, parquet = self.file(kind, i), arrow("pyarrow.parquet")
        expected = getattr(self.parts[i], "rows" if kind == "runs" else kind)
        ids = IDS[:2] if kind == "labels" else IDS  # a source of labels may have any name
        try:
            with parquet.ParquetFile(path) as file:
                check_cells(file.metadata.num_rows, len(columns), most_bytes(path.stat().st_size), path=path)
                table = file.read(list(columns), use_threads=False).select(list(columns))
            if table.column_names == list(columns):
                table = table.cast(_schema(columns, ids))
                table.validate(full=True)  # ids are UTF-8
        except DataError:
            raise
        except FileNotFoundError:
            raise DataError("a file is missing. Copy or convert the campaign again.", path=path) from None
        except Exception as error:  # pyarrow's errors have no public base class
            reason = str(error).splitlines()[0].rstrip(".")
            raise DataError(f"cannot be read: {reason}. Copy or convert the campaign again.", path=path) from None
        if table.num_rows != expected or table.column_names != list(columns):
            raise DataError(
                f"expected {expected:,} rows of {', '.join(columns)} by {MANIFEST}, got "
                f"{table.num_rows:,} of {', '.join(table.column_names)}. Copy or convert the campaign again.",
                path=path,
            )
        empty = next((name for name in columns if name in ids and table[name].null_count), None)
        if empty is not None:
            raise DataError(f"the column {empty!r} has empty cells. Copy or convert the campaign again.", path=path)
        return table

    def _runs(self, table: Any, pool: Pool, pair: Ints, depth: int | None) -> Runs:
        system = self._positions(table["system"], self.systems, "system")
        shape = (len(self.systems), len(pool.queries), min(self.depth, depth or self.depth))
        check_array(shape, len(pair), path=self.path)
        pairs, scores = np.full(shape, -1), np.full(shape, np.nan)
        rank = table["rank"].to_numpy() - 1
        if np.any((rank < 0) | (rank >= shape[2])):
            raise DataError(f"ranks must be from 1 to {shape[2]}. Copy or convert the campaign again.", path=self.path)
        at = (system, pool.query[pair], rank)
        pairs[at], scores[at] = pair, table["score"].to_numpy()
        return Runs(self.systems, pool, pairs, scores, self.teams)

    def _labels(self, table: Any, pool: Pool, pair: Ints, sources: tuple[str, ...]) -> LabelTable:
        row = np.argsort(pair, kind="stable")
        values, probabilities = dict[str, Floats](), dict[str, Floats]()
        for source in sources:
            cells = np.column_stack([table[name].to_numpy()[row] for name in self.columns_of(source)])
            if source in self.levels:
                probabilities[source] = cells
            values[source] = cells @ np.arange(cells.shape[1]) if source in self.levels else cells[:, 0]
        described = {observer.name: observer for observer in self.observers if observer.name in sources}
        return LabelTable(pool, sources, np.column_stack(list(values.values())), probabilities, described)

    def _judgments(self, table: Any, pool: Pool | None, pair: Ints | None) -> Judgments:
        assert self.assessors is not None
        if table is None or pool is None or pair is None:
            none = np.empty(0, dtype=np.int64)
            return Judgments(Pool.of([], []), none, np.empty(0), none, self.assessors, np.empty(0))
        who = self._positions(table["assessor"], self.assessors, "assessor")
        return Judgments(pool, pair, table["grade"].to_numpy(), who, self.assessors, table["time"].to_numpy())

    def _positions(self, column: Any, names: tuple[str, ...], what: str) -> Ints:
        """The position of each name of a column among those of the manifest."""
        compute, pa = arrow("pyarrow.compute"), arrow("pyarrow")
        at = compute.index_in(column.cast(pa.large_string()), value_set=pa.array(names, type=pa.large_string()))
        if at.null_count:
            raise DataError(
                f"the files name {what}s that {MANIFEST} does not list. Copy or convert the campaign again.",
                path=self.path,
            )
        return np.asarray(at.to_numpy().astype(np.int64))


def as_partitions(runs: Any) -> Partitions | None:
    """Return a campaign in partitions, if these runs are one: a folder, or the object that stands for it."""
    if isinstance(runs, Partitions):
        return runs
    if isinstance(runs, Sequence) and not isinstance(runs, str) and len(runs) == 1:
        (runs,) = runs
    if isinstance(runs, (str, os.PathLike)) and is_partitioned(runs):
        return open_partitions(runs)
    return None


def open_partitions(path: PathName) -> Partitions:
    """A campaign in partitions, by its manifest; the partitions are read when they are asked for.

    Parameters
    ----------
    path
        A folder made by ``probeval convert --to partitions`` or :func:`probeval.data.write_partitions`.
    """
    folder = Path(path).resolve()
    file = folder / MANIFEST
    if not file.is_file():
        raise DataError(
            f"not a campaign in partitions: it has no {MANIFEST}. Make one by probeval convert --to partitions.",
            path=path,
        )
    known = parsed_json(file, read_bytes(file))
    if not isinstance(known, dict) or known.get("format") != FORMAT:
        raise DataError(f"expected a manifest with the format {FORMAT!r}.", path=file)
    if known.get("version") != VERSION:
        raise DataError(
            f"the partitions are of version {known.get('version')}, this probeval reads {VERSION}. Update probeval or "
            "convert the campaign again.",
            path=file,
        )
    try:
        observers = [ObserverSpec(**{k: v for k, v in s.items() if k != "levels"}) for s in known["sources"]]
        found = Partitions(
            path=folder,
            systems=tuple(map(str, known["systems"])),
            teams=None if known["teams"] is None else tuple(map(str, known["teams"])),
            depth=int(known["depth"]),
            observers=tuple(observers),
            levels={s["name"]: int(s["levels"]) for s in known["sources"] if s.get("levels") is not None},
            assessors=None if known["assessors"] is None else tuple(map(str, known["assessors"])),
            parts=tuple(Partition(**part) for part in known["partitions"]),
        )
        wrong = _wrong(found)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        wrong = str(error)
    if wrong:
        raise DataError(f"not a whole manifest ({wrong}). Convert the campaign again.", path=file)
    return found


def _wrong(found: Partitions) -> str:
    """What is wrong with the numbers and names of a manifest, or nothing."""
    numbers = [n for p in found.parts for n in (p.queries, p.pairs, p.rows, p.labels, p.judgments)]
    if not found.parts or any(type(n) is not int or n < 0 for n in numbers):
        return "its partitions need numbers from 0"
    if found.depth < 0:
        return f"the depth is a number of ranks, got {found.depth}"
    if not found.systems or len(set(found.systems)) < len(found.systems):
        return "systems need names of their own"
    if found.teams is not None and len(found.teams) != len(found.systems):
        return f"{len(found.systems)} systems need as many teams, got {len(found.teams)}"
    if any(not 2 <= n <= MOST_COLUMNS for n in found.levels.values()):
        return "probabilities are of 2 grades or more"
    return ""


def label_columns(source: str, levels: int | None) -> tuple[str, ...]:
    """The columns of a source: one, or one per grade where it gives probabilities of so many grades.

    >>> label_columns("gpt", None), label_columns("crowd", 2)
    (('gpt',), ('crowd:0', 'crowd:1'))
    """
    return (source,) if levels is None else tuple(f"{source}:{grade}" for grade in range(levels))


def arrow(module: str) -> Any:
    """A module of pyarrow, loaded when a campaign in partitions is read or written."""
    try:
        return import_module(module)
    except ImportError:
        raise DataError("campaigns in partitions need pyarrow: pip install 'probeval[parquet]'.") from None


def _schema(columns: Sequence[str], ids: Sequence[str]) -> Any:
    """The types of columns: ids are text, but ranks whole numbers; all else numbers."""
    pa = arrow("pyarrow")
    types = {name: pa.int32() if name == "rank" else pa.large_string() for name in ids}
    return pa.schema([(name, types.get(name, pa.float64())) for name in columns])


def _top(table: Any, depth: int | None) -> Any:
    """The first ranks of a table of runs."""
    return table if depth is None else table.filter(arrow("pyarrow.compute").less_equal(table["rank"], depth))


def _numbered(columns: Mapping[str, Any]) -> tuple[Ids, dict[str, Ints]]:
    """The distinct ids of several columns in rising order, and the position of each row's id, by column.

    Arrow sorts by the bytes of UTF-8, which is the order of Python's strings.
    """
    pa, compute = arrow("pyarrow"), arrow("pyarrow.compute")
    chunks = [chunk.cast(pa.large_string()) for column in columns.values() for chunk in column.chunks]
    coded = pa.concat_arrays([pa.array([], type=pa.large_string()), *chunks]).dictionary_encode()
    order = compute.sort_indices(coded.dictionary)
    place = np.empty(len(order), dtype=np.int64)
    place[order.to_numpy()] = np.arange(len(order))
    position = place[coded.indices.to_numpy()]
    ends = np.cumsum([len(column) for column in columns.values()])
    rows = dict(zip(columns, np.split(position, ends[:-1]), strict=True))
    return objects(coded.dictionary.take(order).to_pylist()), rows


def _pool(queries: Ids, docs: Ids, query: Ints, doc: Ints, *, every: Ints | None = None) -> tuple[Pool, Ints]:
    """The pool of rows given as positions in ids in rising order, and the pair of each row.

    The pool has the queries of the rows, or those at the positions ``every``.
    """
    key = query * max(len(docs), 1) + doc
    if np.all(np.diff(key) > 0):
        row = np.arange(len(key))
    else:
        key, row = np.unique(key, return_inverse=True)
    at_query, at_doc = np.divmod(key, max(len(docs), 1))
    used_query, used_doc = np.zeros(len(queries), dtype=bool), np.zeros(len(docs), dtype=bool)
    used_query[at_query if every is None else every] = True
    used_doc[at_doc] = True
    pool = Pool(
        queries[used_query],
        docs[used_doc],
        (np.cumsum(used_query) - 1)[at_query],
        (np.cumsum(used_doc) - 1)[at_doc],
    )
    return pool, row
