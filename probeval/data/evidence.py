"""Evidence beside judgments: groups of documents, labels of pairs, document vectors."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from probeval.arrays import Bools, Floats, Ids, Ints, frozen, objects
from probeval.data.files import first_bytes
from probeval.data.judgments import Judgments
from probeval.data.observers import MOST_GRADE, ObserverSpec, describe_observer
from probeval.data.pool import Pool
from probeval.data.spreadsheets import csv_text
from probeval.data.tables import (
    ABOUT_OBSERVER,
    cell_text,
    column,
    ids,
    is_text_column,
    numbers,
    observers_before,
    read_table,
)
from probeval.display import Described, Table, fact_table
from probeval.errors import DataError, ProbevalWarning, did_you_mean

__all__ = [
    "GRADE_COLUMNS",
    "LabelTable",
    "Metadata",
    "PairVectors",
    "Vectors",
    "read_graded_labels",
    "read_label_table",
    "read_metadata",
]

GRADE_COLUMNS = ("grade", "nist2019", "nist2023")  # reference grades beside labels
GRADE_OF = re.compile(r"(.+):(0|[1-9]\d*)")  # a column of probabilities: the source and the grade
SUM_TOLERANCE = 1e-3  # probabilities are often written with three decimals


@dataclass(frozen=True, eq=False, repr=False)
class Metadata(Described):
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

    def _headline(self) -> str:
        return f"{len(self.docs):,} documents by {', '.join(self.groups)}"

    def tables(self) -> tuple[Table, ...]:
        """The number of groups, and of documents in a group, by each column."""
        rows = [(name, len(set(groups) - {""}), sum(map(bool, groups))) for name, groups in self.groups.items()]
        return (Table(pd.DataFrame(rows, columns=["column", "groups", "docs"]), self._headline()),)

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

    def on(self, pool: Pool) -> dict[str, PairGroups]:
        """Return the groups of a pool's pairs, by column."""
        return {
            column: PairGroups(self.codes(column, pool.docs)[pool.doc], self.codes(column, pool.queries)[pool.query])
            for column in self.groups
        }

    def to_frame(self) -> pd.DataFrame:
        """Return one row per document: doc, and one column per grouping."""
        return pd.DataFrame({"doc": self.docs, **self.groups})


@dataclass(frozen=True, eq=False)
class PairGroups:
    """The groups of a pool's pairs by one column of the metadata.

    Parameters
    ----------
    doc, query
        The group of each pair's document and of its query, -1 where unknown, shapes (pair,).
    """

    doc: Ints
    query: Ints

    def take(self, pairs: Ints) -> PairGroups:
        """The groups of some pairs."""
        return PairGroups(self.doc[pairs], self.query[pairs])


@dataclass(frozen=True, eq=False, repr=False)
class LabelTable(Described):
    """Labels by language models, crowds or assessors: evidence about relevance, never relevance itself.

    Parameters
    ----------
    pool
        The labelled pairs.
    sources
        Names of the columns.
    values
        The labels, NaN where a source has none, shape (pair, source). For a source with probabilities, the expected
        grade.
    probabilities
        For each source that gives probabilities of the grades, these, shape (pair, level); NaN where it has none.
    descriptions
        The sources that are described; the others are described by their labels. See :attr:`observers`.
    """

    pool: Pool
    sources: tuple[str, ...]
    values: Floats
    probabilities: Mapping[str, Floats] = field(default_factory=dict)
    descriptions: Mapping[str, ObserverSpec] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.pool), len(self.sources)):
            raise DataError(
                f"{len(self.pool)} pairs and {len(self.sources)} sources cannot have labels of shape "
                f"{self.values.shape}."
            )
        twice = next((s for i, s in enumerate(self.sources) if s in self.sources[:i]), None)
        if twice is not None:
            raise DataError(f"two columns of labels are called {twice!r}. Rename one.")
        if np.isinf(self.values).any():
            raise DataError("labels must be finite numbers, or NaN where there are none.")
        for source, parts in self.probabilities.items():
            if source not in self.sources or parts.ndim != 2 or len(parts) != len(self.pool):
                raise DataError(f"probabilities of {source!r} need a source of that name and one row per pair.")
        object.__setattr__(self, "values", frozen(self.values))
        object.__setattr__(self, "probabilities", {s: frozen(p) for s, p in self.probabilities.items()})

    def _headline(self) -> str:
        return f"{len(self.pool):,} pairs, {len(self.sources)} sources"

    def tables(self) -> tuple[Table, ...]:
        """The sources: who gave the labels, and how many pairs they labelled."""
        table = pd.DataFrame([asdict(observer) for observer in self.observers]).rename(columns={"name": "source"})
        return (Table(table.assign(pairs=(~np.isnan(self.values)).sum(axis=0)), self._headline()),)

    @cached_property
    def observers(self) -> tuple[ObserverSpec, ...]:
        """Who gave the labels, in the order of the sources: as described, or inferred from the labels."""
        return tuple(
            self.descriptions[s] if s in self.descriptions else describe_observer(s, self.given_by(s))
            for s in self.sources
        )

    @property
    def provenance(self) -> dict[str, str]:
        """How the labels of each source were made, where that is known."""
        found = {s: self.descriptions[s].provenance for s in self.sources if s in self.descriptions}
        return {source: text for source, text in found.items() if text}

    def described(self, given: Mapping[str, Mapping[str, str] | ObserverSpec]) -> LabelTable:
        """The same labels with descriptions of their observers; names without labels are passed over.

        What a description leaves out stays as it was described before.

        Raises
        ------
        DataError
            If a label is not on the scale given for it.

        Examples
        --------
        >>> labels = LabelTable(Pool.of(["q1"], ["d1"]), ("ann", "gpt_binary"), np.array([[2.0, 1.0]]))
        >>> [observer.kind for observer in labels.described({"ann": {"kind": "person"}}).observers]
        ['person', 'machine']
        """
        before = {s: asdict(spec) for s, spec in self.descriptions.items()}
        whole = {
            s: before.get(s, {}) | {k: v for k, v in _as_mapping(given[s]).items() if v}
            for s in self.sources
            if s in given
        }
        known = {s: describe_observer(s, self.given_by(s), spec, pool=self.pool) for s, spec in whole.items()}
        return replace(self, descriptions={**self.descriptions, **known})

    def given_by(self, source: str) -> Floats:
        """The labels of a source, shape (pair,), or its probabilities of the grades, shape (pair, level)."""
        at = self._place(source)
        return self.probabilities[source] if source in self.probabilities else self.values[:, at]

    def on(self, pool: Pool, place: Ints | None = None) -> LabelTable:
        """The labels of another pool's pairs, NaN where there are none; their observers are described by all labels.

        ``place`` is the position of each pair of this pool in the other, -1 outside, if it is known already.
        """
        if pool is self.pool:
            return self
        place = self.pool.within(pool) if place is None else place
        rows = np.full(len(pool), -1)
        rows[place[place >= 0]] = np.flatnonzero(place >= 0)
        moved = self.rearranged(pool, rows)
        return replace(moved, descriptions=dict(zip(self.sources, self.observers, strict=True)))

    def take(self, sources: Sequence[str]) -> LabelTable:
        """The labels of these sources only, in this order."""
        at = [self._place(source) for source in sources]
        return LabelTable(
            self.pool,
            tuple(sources),
            self.values[:, at],
            {s: p for s, p in self.probabilities.items() if s in sources},
            {s: d for s, d in self.descriptions.items() if s in sources},
        )

    def rearranged(self, pool: Pool, rows: Ints) -> LabelTable:
        """The labels in these rows as those of the pairs of another pool, none for -1."""
        moved = {source: _or_missing(parts, rows) for source, parts in self.probabilities.items()}
        return replace(self, pool=pool, values=_or_missing(self.values, rows), probabilities=moved)

    def joined(self, others: Sequence[LabelTable]) -> LabelTable:
        """Put tables side by side, over the pairs of all of them.

        Raises
        ------
        DataError
            If two of them have a source of the same name.
        """
        pool = self.pool
        for other in others:
            pool = pool.union(other.pool)
        parts = [table.rearranged(pool, pool.within(table.pool)) for table in (self, *others)]
        return LabelTable(
            pool,
            tuple(source for part in parts for source in part.sources),
            np.hstack([part.values for part in parts]),
            {source: p for part in parts for source, p in part.probabilities.items()},
            {source: d for part in parts for source, d in part.descriptions.items()},
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row per pair: query, doc, and one column per source, or per grade of a source's probabilities."""
        return self.pool.to_frame().assign(**self._columns())

    def to_csv(self, *, separator: str = ",") -> str:
        """Return the table as CSV that :func:`read_labels` reads, the descriptions of its observers in front.

        Each description is a comment: ``# labels by`` and JSON.

        >>> described = {"llm": ObserverSpec("llm", scale="binary", provenance="llm-1; prompt binary; 2026-01-31")}
        >>> table = LabelTable(Pool.of(["q1"], ["d1"]), ("llm",), np.array([[1.0]]), descriptions=described)
        >>> print(table.to_csv())
        # labels by {"name": "llm", "kind": ..., "scale": "binary", "provenance": "llm-1; prompt binary; 2026-01-31"}
        query,doc,llm
        q1,d1,1
        """
        about = [f"{ABOUT_OBSERVER.decode()}{json.dumps(asdict(o))}\n" for o in self.descriptions.values()]
        cells = {name: ["" if np.isnan(v) else f"{v:.10g}" for v in column] for name, column in self._columns().items()}
        return "".join(about) + csv_text(self.pool.to_frame().assign(**cells), separator=separator)

    def _columns(self) -> dict[str, Floats]:
        columns = {}
        for source in self.sources:
            given = self.given_by(source)
            grades = (
                {f"{source}:{grade}": given[:, grade] for grade in range(given.shape[1])} if given.ndim == 2 else {}
            )
            columns.update(grades or {source: given})
        return columns

    def _place(self, source: str) -> int:
        if source not in self.sources:
            raise DataError(f"No labels by {source!r}.{did_you_mean(source, self.sources)}")
        return self.sources.index(source)


@dataclass(frozen=True, eq=False, repr=False)
class Vectors(Described):
    """One vector per document: similar documents have similar directions.

    Parameters
    ----------
    docs
        Ids of the documents, distinct.
    values
        Shape (doc, dimension); a sparse matrix for vectors of words.
    """

    docs: Ids
    values: Floats | csr_array

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[0] != len(self.docs):
            raise DataError(f"expected one vector for each of {len(self.docs):,} documents, got {self.values.shape}.")
        if len(set(self.docs)) < len(self.docs):
            raise DataError("two vectors are of one document. Keep one.")
        if not np.isfinite(self.values.data if isinstance(self.values, csr_array) else self.values).all():
            raise DataError("vectors must be finite. Leave out documents without a vector.")

    def _headline(self) -> str:
        return f"{len(self.docs):,} documents, {self.values.shape[1]:,} dimensions"

    def tables(self) -> tuple[Table, ...]:
        """The sizes."""
        sizes = {"documents": f"{len(self.docs):,}", "dimensions": f"{self.values.shape[1]:,}"}
        return (Table(fact_table(sizes), self._headline()),)

    def on(self, pool: Pool) -> PairVectors:
        """The unit vectors of the pairs' documents."""
        row = {doc: i for i, doc in enumerate(self.docs)}
        at = np.array([row.get(doc, -1) for doc in pool.docs], dtype=np.int64)
        return PairVectors(self._units, at[pool.doc])

    @cached_property
    def _units(self) -> Floats | csr_array:
        if isinstance(self.values, csr_array):
            length = np.sqrt(np.asarray(self.values.power(2).sum(axis=1)).ravel())
            return csr_array(self.values.multiply(1 / np.maximum(length, 1e-300)[:, None]))
        return np.asarray(self.values / np.maximum(np.linalg.norm(self.values, axis=1, keepdims=True), 1e-300))


@dataclass(frozen=True, eq=False)
class PairVectors:
    """The unit vectors of the documents of a pool.

    Parameters
    ----------
    units
        Unit vectors, shape (doc, dimension).
    row
        The row of each pair's document, -1 where it has no vector, shape (pair,).
    """

    units: Floats | csr_array
    row: Ints

    @cached_property
    def known(self) -> Bools:
        """Which pairs have a vector, shape (pair,)."""
        return self.row >= 0

    def take(self, pairs: Ints) -> PairVectors:
        """The vectors of some pairs."""
        return PairVectors(self.units, self.row[pairs])

    def cosine(self, pairs: Ints, others: Ints) -> Floats:
        """The cosines between the documents of known pairs, shape (pair, other)."""
        product = self.units[self.row[pairs]] @ self.units[self.row[others]].T
        return np.asarray(product.toarray() if isinstance(product, csr_array) else product)


def _as_mapping(given: Mapping[str, str] | ObserverSpec) -> Mapping[str, str]:
    return asdict(given) if isinstance(given, ObserverSpec) else given


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
    groups = {str(c): objects([cell_text(v) for v in table[c]]) for c in table.columns if c != docs.name}
    if not groups:
        raise DataError("metadata need at least one column beside the document.", path=path)
    try:
        return Metadata(objects(ids(docs, "doc", path=path)), groups)
    except DataError as error:
        raise error if error.path is not None else DataError(str(error), path=path) from None


def read_graded_labels(path: str | PathLike[str]) -> tuple[LabelTable, Judgments]:
    """Labels beside the reference grades of the same pairs: what the reliability of observers is learned from.

    The grade is in a column named ``grade``, ``nist2019`` or ``nist2023`` (the first of them). The other columns of
    these names, and columns whose name continues one of them after ``_``, are copies of the grade and not labels, which
    a warning says. All others are labels, by machines or by people.
    """
    file = Path(path)
    table = read_label_table(file)
    grades = [name for name in GRADE_COLUMNS if name in table.sources]
    if not grades:
        raise DataError(
            f"expected a column of grades ({', '.join(GRADE_COLUMNS)}) beside the labels, got "
            f"{', '.join(table.sources)}.",
            path=file,
        )
    grade = grades[0]
    copies = [s for s in table.sources if s in grades[1:] or s.startswith(tuple(f"{name}_" for name in grades))]
    if copies:
        warnings.warn(f"{file}: copies of the grade are not labels: {', '.join(copies)}.", ProbevalWarning, 2)
    labels = table.take([s for s in table.sources if s != grade and s not in copies])
    if not labels.sources:
        raise DataError(f"expected labels beside the grade {grade!r}, got none.", path=file)
    reference = table.values[:, table.sources.index(grade)]
    judged = np.flatnonzero(~np.isnan(reference))
    return labels, Judgments.coded(table.pool, judged, reference[judged])


def read_label_table(path: str | PathLike[str]) -> LabelTable:
    """Labels from a table: query, document, and one column of numbers per source; empty cells are missing.

    A source that gives probabilities of the grades 0..M has one column per grade, ``NAME:0`` to ``NAME:M``, and each
    row of these sums to 1. Columns of text, such as explanations, are passed over, with a warning that names them.
    Lines in front of a table in text may describe observers: ``# labels by`` and JSON, as
    :meth:`LabelTable.to_csv` writes them.
    """
    file = Path(path)
    table = labels_from_table(read_table(file), path=file)
    given = dict[str, dict[str, str]]()
    for line in observers_before(first_bytes(file))[0]:
        try:
            spec = json.loads(line)
            given[spec.pop("name")] = {str(k): str(v) for k, v in spec.items()}
        except (ValueError, AttributeError, KeyError, TypeError):
            raise DataError(
                f'after "{ABOUT_OBSERVER.decode()}" comes JSON such as {{"name": "llm", "scale": "binary"}}, got '
                f"{line!r:.60}. Correct the line, or take it out.",
                path=file,
            ) from None
    return table.described(given)


def labels_from_table(table: pd.DataFrame, *, path: Path | None = None) -> LabelTable:
    """Labels from a data frame with the columns that :func:`read_label_table` expects."""
    query, doc = column(table, "query", path=path), column(table, "doc", path=path)
    assert query is not None
    assert doc is not None
    rest = [c for c in table.columns if c not in (query.name, doc.name)]
    queries, docs = ids(query, "query", path=path), ids(doc, "doc", path=path)
    pool = Pool.of(queries, docs)
    at = pool.locate(queries, docs)
    if len(pool) != len(table):
        twice = int(np.flatnonzero(np.bincount(at) > 1)[0])
        first, second = (int(row) + 1 for row in np.flatnonzero(at == twice)[:2])
        query_id, doc_id = pool.label(twice)
        raise DataError(
            f"two rows label one pair: {first} and {second}, document {doc_id!r} of query {query_id!r}. Keep one.",
            path=path,
        )
    texts = [str(c) for c in rest if is_text_column(pd.Series(table[c]))]
    if len(texts) == len(rest):
        got = f"{', '.join(texts)} {'is' if len(texts) == 1 else 'are'} text" if texts else "there is none"
        raise DataError(f"expected a column of numbers beside query and document: {got}.", path=path)
    if texts:
        where = "" if path is None else f"{path}: "
        warnings.warn(f"{where}columns of text are not labels: {', '.join(texts)}.", ProbevalWarning, 3)
    row = np.argsort(at)  # of each pair
    cells = {
        str(c): numbers(pd.Series(table[c]), str(c), path=path, missing=True, finite=True)[row]
        for c in rest
        if str(c) not in texts
    }
    values, probabilities = dict[str, Floats](), dict[str, Floats]()
    for source, names in _sources(cells).items():
        if names == [source]:
            values[source] = cells[source]
        else:
            probabilities[source] = _probabilities(source, {name: cells[name] for name in names}, row, path)
            values[source] = probabilities[source] @ np.arange(len(names))
    return LabelTable(pool, tuple(values), np.column_stack(list(values.values())), probabilities)


def _sources(columns: Iterable[str]) -> dict[str, list[str]]:
    """The columns of each source: one, or those of the grades where one of them is ``NAME:0``."""
    matches = {name: GRADE_OF.fullmatch(name) for name in columns}
    graded = {m[1] for m in matches.values() if m is not None and m[2] == "0"}
    sources: dict[str, list[str]] = {}
    for name, match in matches.items():
        sources.setdefault(match[1] if match is not None and match[1] in graded else name, []).append(name)
    return sources


def _probabilities(source: str, columns: Mapping[str, Floats], rows: Ints, path: Path | None) -> Floats:
    """The probabilities of a source, shape (pair, level): all of a row or none, none negative, with sum 1."""
    expected = [f"{source}:{grade}" for grade in range(len(columns))]
    if set(columns) != set(expected) or not 2 <= len(columns) <= MOST_GRADE + 1:
        raise DataError(
            f"probabilities by {source!r} need one column per grade, {source}:0, {source}:1, .. without a gap, up "
            f"to {source}:{MOST_GRADE}; got {', '.join(columns)}.",
            path=path,
        )
    parts = np.column_stack([columns[name] for name in expected])
    total = parts.sum(axis=1)
    absent = np.isnan(parts).all(axis=1)
    wrong = np.flatnonzero(~absent & ~((np.abs(total - 1) <= SUM_TOLERANCE) & (parts >= 0).all(axis=1)))
    if len(wrong):
        row = int(min(wrong, key=lambda pair: rows[pair]))
        got = ", ".join("nothing" if np.isnan(p) else f"{p:g}" for p in parts[row])
        raise DataError(
            f"the probabilities by {source!r} in row {rows[row] + 1} must be 0 or more and sum to 1, got {got}.",
            path=path,
        )
    return np.asarray(parts / total[:, None])
