"""TREC runs and tables of labels larger than memory: rows are spread over ranges of queries on disk, read one by one.

The files are read in chunks, twice for runs: once for their queries, once for their rows. Memory holds one chunk, the
ids of the queries, and one range; the disk holds the rows once more.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from probeval.arrays import Ids, Ints
from probeval.data.collection import read_labels
from probeval.data.evidence import LabelTable, labels_from_table
from probeval.data.files import opened, suffix
from probeval.data.formats import find_format
from probeval.data.partitioning import range_starts, split_labels
from probeval.data.partitions import arrow
from probeval.data.pool import Pool
from probeval.data.runs import Runs
from probeval.data.spreadsheets import restored_cell
from probeval.data.trec import BY_RANK, WORD, RunRows, Tokens, numbered, read_run_chunks, read_run_rows, runs_of_rows
from probeval.errors import DataError, ProbevalWarning
from probeval.reporting import SILENT, Reporter

__all__ = ["SpreadLabels", "SpreadRuns", "spread_labels", "spread_runs"]

ROWS = 500_000  # of a table of labels, read at a time
STREAMED = (".csv", ".tsv")


@dataclass(frozen=True)
class SpreadRuns:
    """The rows of TREC runs by range of queries.

    Parameters
    ----------
    files, order
        The runs, and the order of a list.
    home
        The folder of the rows.
    starts
        The first query of each range.
    """

    files: tuple[Path, ...]
    order: str
    home: Path
    starts: Ids

    def read(self, i: int) -> Runs:
        """The runs of one range."""
        rows = [_loaded(_place(self.home, i, j), self.order in BY_RANK) for j in range(len(self.files))]
        return runs_of_rows(rows, self.files, self.order)


def spread_runs(
    files: Sequence[Path],
    n: int | None,
    home: Path,
    *,
    rows: int,
    order: str = "trec_eval",
    reporter: Reporter = SILENT,
) -> SpreadRuns:
    """Spread the rows of TREC runs, one system per file, over ``n`` ranges of queries; by default of ``rows`` rows."""
    queries: set[bytes] = set()
    total = 0
    for path in reporter.track(files, "Reading runs"):
        for chunk in read_run_chunks(path):
            queries.update(numbered([chunk.queries])[1])
            total += len(chunk.scores)
    try:
        known = sorted(query.decode() for query in queries)
    except UnicodeDecodeError:
        for path in files:
            runs_of_rows([read_run_rows(path)], [path], order)  # raises with the line
        raise
    del queries
    starts = range_starts(known, min(-(-total // rows), len(known)) if n is None else n)
    # Bytes of UTF-8 are in the order of the strings.
    firsts = np.array([query.encode() for query in starts])
    for j, path in enumerate(reporter.track(files, "Reading runs")):
        for chunk in read_run_chunks(path, with_ranks=order in BY_RANK):
            at = np.searchsorted(firsts[1:], _fixed(chunk.queries), side="right")
            for i in np.unique(at).tolist():
                _append(_place(home, i, j), chunk, np.flatnonzero(at == i))
    return SpreadRuns(tuple(files), order, home, starts)


def _place(home: Path, i: int, j: int) -> Path:
    return home / f"runs-{i:05d}-{j:05d}.npy"


def _append(path: Path, rows: RunRows, taken: Ints) -> None:
    """Add some rows to a file, one array after another."""
    columns = [_fixed(rows.queries), _fixed(rows.docs), rows.scores, *([] if rows.ranks is None else [rows.ranks])]
    with path.open("ab") as file:
        for column in columns:
            np.save(file, column[taken], allow_pickle=False)


def _loaded(path: Path, with_ranks: bool) -> RunRows:
    """All rows of a file; none where there is no file."""
    none = np.empty(0, dtype=f"S{WORD}")
    columns: list[list[Any]] = [[none], [none], [np.empty(0)], [np.empty(0)]]
    if path.exists():
        size = path.stat().st_size
        with path.open("rb") as file:
            while file.tell() < size:
                for column in columns[: 3 + with_ranks]:
                    column.append(np.load(file, allow_pickle=False))
    queries, docs, scores, ranks = map(np.concatenate, columns)
    return RunRows(queries, docs, scores, ranks if with_ranks else None)


def _fixed(tokens: Tokens) -> Tokens:
    """Ids as bytes of a fixed width in whole machine words."""
    if tokens.dtype != object:
        return tokens
    width = -(-max(map(len, tokens)) // WORD) * WORD
    return tokens.astype(f"S{width}")


@dataclass(frozen=True)
class SpreadLabels:
    """The rows of a table of labels by range of queries.

    Parameters
    ----------
    path
        The table.
    home
        The folder of the rows.
    none
        The sources, without a label.
    """

    path: Path
    home: Path
    none: LabelTable

    def read(self, i: int) -> LabelTable:
        """The labels of one range."""
        files = sorted(self.home.glob(f"labels-{i:05d}-*.parquet"))
        if not files:
            return self.none
        return labels_from_table(pd.concat([pd.read_parquet(file) for file in files]), path=self.path)


def spread_labels(path: Path, starts: Ids, home: Path) -> SpreadLabels:
    """Spread the rows of a table of labels over ranges of queries; files other than CSV and TSV are read whole."""
    arrow("pyarrow.parquet")
    none: LabelTable | None = None
    for k, labels in enumerate(_chunks(path)):
        if none is None:
            none = labels.rearranged(Pool.of([], []), np.empty(0, dtype=np.int64))
        elif labels.sources != none.sources:
            raise DataError(
                f"the labels are by {', '.join(none.sources)} at first and by {', '.join(labels.sources)} later. "
                "Remove the columns that are not numbers throughout.",
                path=path,
            )
        for i, part in enumerate(split_labels(labels, starts)):
            if len(part.pool):
                part.to_frame().to_parquet(home / f"labels-{i:05d}-{k:05d}.parquet")
    assert none is not None
    return SpreadLabels(path, home, none)


def _chunks(path: Path) -> Iterator[LabelTable]:
    """The labels of some rows at a time."""
    if suffix(path) not in STREAMED or find_format(path, LabelTable) is not None:
        yield read_labels(path)
        return
    options: dict[str, Any] = {"dtype": str, "keep_default_na": False, "na_filter": False, "index_col": False}
    some = False
    with opened(path) as file:
        try:
            tables = pd.read_csv(file, sep="\t" if suffix(path) == ".tsv" else ",", chunksize=ROWS, **options)
            while (labels := _next(tables, path, again=some)) is not None:
                yield labels
                some = True
        except (DataError, ValueError, pd.errors.ParserWarning):
            read_labels(path)  # raises with the row in the whole file
            raise
    if not some:
        yield read_labels(path)  # raises: there are no rows


def _next(tables: Iterator[pd.DataFrame], path: Path, *, again: bool) -> LabelTable | None:
    """The labels of the next rows; None at the end. Warnings about columns are given once."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # rows longer than the header
        table = next(tables, None)
        if again:
            warnings.simplefilter("ignore", ProbevalWarning)
        if table is None or table.empty:
            return None
        return labels_from_table(table.rename(columns=restored_cell).map(restored_cell), path=path)
