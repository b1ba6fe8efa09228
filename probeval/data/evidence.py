"""Evidence beside judgments: groups of documents, machine labels of pairs, document vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd

from probeval.arrays import Floats, Ids, Ints, frozen, objects
from probeval.data.judgments import Judgments
from probeval.data.pool import Pool
from probeval.data.tables import column, ids, numbers, read_table
from probeval.errors import DataError, did_you_mean

__all__ = ["LabelTable", "Metadata", "Vectors", "read_graded_labels", "read_label_table", "read_metadata"]


@dataclass(frozen=True, eq=False)
class Metadata:
    """Groupings of documents (domain, site, author, genre, ..) by column name.

    Parameters
    ----------
    docs
        Ids of the documents, distinct.
    groups
        For each grouping, the group of each document; the empty string if it has none.
    """

    docs: Ids
    groups: Mapping[str, Ids]

    def __post_init__(self) -> None:
        if len(set(self.docs)) != len(self.docs):
            raise DataError("Metadata have two rows for one document. Keep one.")

    def __repr__(self) -> str:
        return f"<Metadata: {len(self.docs):,} documents by {', '.join(self.groups)}>"

    def codes(self, grouping: str, docs: Sequence[str] | Ids) -> Ints:
        """Return the group of each document as a number from 0, -1 where unknown, shape (doc,).

        The number of a group does not depend on the documents requested.
        """
        if grouping not in self.groups:
            raise DataError(f"No column {grouping!r} in the metadata.{did_you_mean(grouping, self.groups)}")
        groups = self.groups[grouping]
        names = sorted(set(groups) - {""})
        number = {name: i for i, name in enumerate(names)}
        table = {doc: number.get(group, -1) for doc, group in zip(self.docs, groups, strict=True)}
        return np.fromiter((table.get(doc, -1) for doc in docs), dtype=np.int64, count=len(docs))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per document: doc, and one column per grouping."""
        return pd.DataFrame({"doc": self.docs, **self.groups})


@dataclass(frozen=True, eq=False)
class LabelTable:
    """Labels from language models, clicks or crowds: evidence about relevance, never relevance itself.

    Parameters
    ----------
    pool
        The labelled pairs.
    sources
        Names of the columns.
    values
        The labels, NaN where a source has none, shape (pair, source).
    """

    pool: Pool
    sources: tuple[str, ...]
    values: Floats

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.pool), len(self.sources)):
            raise DataError(
                f"{len(self.pool)} pairs and {len(self.sources)} sources cannot have labels of shape "
                f"{self.values.shape}."
            )
        object.__setattr__(self, "values", frozen(self.values))

    def __repr__(self) -> str:
        return f"<LabelTable: {len(self.pool):,} pairs, {len(self.sources)} sources>"

    def on(self, pool: Pool) -> Floats:
        """The labels of another pool's pairs, NaN where there are none, shape (pair, source)."""
        return _or_missing(self.values, pool.within(self.pool))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per pair: query, doc, and one column per source."""
        return self.pool.to_frame().assign(**dict(zip(self.sources, self.values.T, strict=True)))


@dataclass(frozen=True, eq=False)
class Vectors:
    """One vector per document, for similarity features.

    Parameters
    ----------
    docs
        Ids of the documents.
    values
        Shape (doc, dimension).
    """

    docs: Ids
    values: Floats

    def on(self, pool: Pool) -> Floats:
        """The unit vector of each pair's document, NaN where there is none, shape (pair, dimension)."""
        row = {doc: i for i, doc in enumerate(self.docs)}
        at = np.array([row.get(doc, -1) for doc in pool.docs], dtype=np.int64)
        known = self.values / np.maximum(np.linalg.norm(self.values, axis=1, keepdims=True), 1e-300)
        return _or_missing(known, at)[pool.doc]


def _or_missing(rows: Floats, at: Ints) -> Floats:
    """The rows at these positions, NaN for -1."""
    return np.vstack([rows, np.full((1, rows.shape[1]), np.nan)])[at]


def read_metadata(path: str | PathLike[str]) -> Metadata:
    """Metadata from a file: a column for the document and one for each grouping; empty cells are no group."""
    return metadata_from_table(read_table(Path(path)), path=Path(path))


def metadata_from_table(table: pd.DataFrame, *, path: Path | None = None) -> Metadata:
    """Metadata from a data frame with the columns that :func:`read_metadata` expects."""
    docs = column(table, "doc", path=path)
    assert docs is not None
    known = table.astype(object).where(table.notna(), "")
    groups = {str(c): objects([str(v) for v in known[c]]) for c in table.columns if c != docs.name}
    if not groups:
        raise DataError("metadata need at least one column beside the document.", path=path)
    try:
        return Metadata(objects(ids(docs, "doc", path=path)), groups)
    except DataError as error:
        raise error if error.path is not None else DataError(str(error), path=path) from None


def read_graded_labels(path: Path) -> tuple[LabelTable, Judgments]:
    """Labels beside the grades that people gave, in a column ``grade``: what the worth of labels is learned from."""
    table = read_label_table(path)
    if "grade" not in table.sources:
        raise DataError(f"expected a column 'grade' beside the labels, got {', '.join(table.sources)}.", path=path)
    at = table.sources.index("grade")
    rest = [i for i in range(len(table.sources)) if i != at]
    labels = LabelTable(table.pool, tuple(table.sources[i] for i in rest), table.values[:, rest])
    judged = np.flatnonzero(~np.isnan(table.values[:, at]))
    return labels, Judgments.coded(table.pool, judged, table.values[judged, at])


def read_label_table(path: str | PathLike[str]) -> LabelTable:
    """Labels from a table: query, document, and one column of numbers per source; empty cells are missing."""
    return labels_from_table(read_table(Path(path)), path=Path(path))


def labels_from_table(table: pd.DataFrame, *, path: Path | None = None) -> LabelTable:
    """Labels from a data frame with the columns that :func:`read_label_table` expects."""
    query, doc = column(table, "query", path=path), column(table, "doc", path=path)
    assert query is not None
    assert doc is not None
    sources = [c for c in table.columns if c not in (query.name, doc.name)]
    queries, docs = ids(query, "query", path=path), ids(doc, "doc", path=path)
    pool = Pool.of(queries, docs)
    at = pool.locate(queries, docs)
    if len(pool) != len(table):
        raise DataError("two rows label one pair. Keep one.", path=path)
    values = np.empty((len(pool), len(sources)))
    for i, source in enumerate(sources):
        values[at, i] = numbers(pd.Series(table[source]), str(source), path=path, missing=True)
    return LabelTable(pool, tuple(map(str, sources)), values)
