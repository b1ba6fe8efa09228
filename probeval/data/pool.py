"""The pool: all query-document pairs of an evaluation, as one axis of integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from probeval.arrays import Bools, Ids, Ints, frozen, objects
from probeval.display import Described, Table
from probeval.errors import DataError

__all__ = ["Pool", "QueryBlock", "is_text", "number"]


class QueryBlock(NamedTuple):
    """Consecutive queries and their pairs."""

    queries: slice
    pairs: slice


@dataclass(frozen=True, eq=False, repr=False)
class Pool(Described):
    """Query-document pairs, sorted by query and then by document, both as strings.

    Positions in the pool index the pair axis of every array, and policies break ties by them.

    Parameters
    ----------
    queries, docs
        Ids in rising order, without repetition. A query may have no pair.
    query, doc
        The position of each pair's query and document in these, shape (pair,).

    Examples
    --------
    >>> pool = Pool.of(["q2", "q1", "q2"], ["7", "007", "1e5"])
    >>> len(pool), pool.label(0), pool.locate(["q2"], ["7"]).tolist()
    (3, ('q1', '007'), [2])
    """

    queries: Ids
    docs: Ids
    query: Ints
    doc: Ints

    def __post_init__(self) -> None:
        for name in ("queries", "docs", "query", "doc"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
        if len(self.query) != len(self.doc) or np.any(np.diff(self.key) <= 0):
            raise DataError("The pairs of a pool must be distinct and sorted by query, then document. Use Pool.of.")

    @classmethod
    def of(cls, queries: Sequence[str], docs: Sequence[str]) -> Pool:
        """Return the pool of pairs given as parallel sequences; repetitions are merged."""
        if len(queries) != len(docs):
            raise DataError(f"{len(queries)} queries need as many docs, got {len(docs)}.")
        q, query_labels = number(queries)
        d, doc_labels = number(docs)
        return cls.coded(query_labels, doc_labels, q, d)[0]

    @classmethod
    def coded(
        cls, queries: Sequence[str] | Ids, docs: Sequence[str] | Ids, query: NDArray[Any], doc: NDArray[Any]
    ) -> tuple[Pool, Ints]:
        """Return the pool of rows given as positions in two lists of distinct ids, and the pair of each row."""
        query_labels, query_rank = _sorted(queries)
        doc_labels, doc_rank = _sorted(docs)
        key, row = np.unique(query_rank[query] * max(len(doc_labels), 1) + doc_rank[doc], return_inverse=True)
        pair_query, pair_doc = np.divmod(key, max(len(doc_labels), 1))
        return cls(query_labels, doc_labels, pair_query, pair_doc), row

    def __len__(self) -> int:
        return len(self.query)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pool) and (
            self is other
            or all(np.array_equal(getattr(self, a), getattr(other, a)) for a in ("queries", "docs", "query", "doc"))
        )

    __hash__ = None  # type: ignore[assignment]

    def _headline(self) -> str:
        return f"{len(self):,} pairs, {len(self.queries):,} queries"

    def tables(self) -> tuple[Table, ...]:
        """The number of documents of each query."""
        docs = np.bincount(self.query, minlength=len(self.queries))
        return (Table(pd.DataFrame({"query": self.queries, "docs": docs}), self._headline()),)

    @cached_property
    def key(self) -> Ints:
        """One integer per pair, in increasing order, shape (pair,)."""
        return self.query.astype(np.int64) * max(len(self.docs), 1) + self.doc

    @cached_property
    def sizes(self) -> Ints:
        """The number of pairs of each query, shape (query,)."""
        return np.bincount(self.query, minlength=len(self.queries))

    def pairs_of(self, query: int) -> slice:
        """Return the pairs of the query at this position."""
        return slice(int(self._ends[query] - self.sizes[query]), int(self._ends[query]))

    @cached_property
    def _ends(self) -> Ints:
        return np.cumsum(self.sizes)

    def blocks(self, most: int) -> list[QueryBlock]:
        """Return blocks of queries with at most ``most`` pairs each, or a single query that has more.

        >>> [b.pairs for b in Pool.of(["q1", "q2", "q2", "q3"], ["a", "a", "b", "c"]).blocks(3)]
        [slice(0, 3, None), slice(3, 4, None)]
        """
        ends = self._ends
        out, first = [], 0
        while first < len(ends):
            begin = int(ends[first] - self.sizes[first])
            after = max(int(np.searchsorted(ends, begin + most, side="right")), first + 1)
            out.append(QueryBlock(slice(first, after), slice(begin, int(ends[after - 1]))))
            first = after
        return out

    @property
    def whole(self) -> QueryBlock:
        """The whole pool as one block."""
        return QueryBlock(slice(0, len(self.queries)), slice(0, len(self)))

    def part(self, block: QueryBlock) -> Pool:
        """Return the pool of one block: its pairs and queries only."""
        query = self.query[block.pairs] - block.queries.start
        return Pool(self.queries[block.queries], self.docs, query, self.doc[block.pairs])

    def label(self, pair: int) -> tuple[str, str]:
        """Return the ids of the query and the document of a pair."""
        return self.queries[self.query[pair]], self.docs[self.doc[pair]]

    def query_positions(self, queries: Sequence[str] | Ids) -> Ints:
        """Return the position of each query, -1 if it is not in the pool."""
        return _positions(self.queries, queries)

    def locate(self, queries: Sequence[str] | Ids, docs: Sequence[str] | Ids) -> Ints:
        """Return the position of each pair of ids, -1 if it is not in the pool."""
        return self._find(_positions(self.queries, queries), _positions(self.docs, docs))

    def within(self, other: Pool) -> Ints:
        """Return the position of each pair in another pool, -1 if it is not there."""
        if self is other:
            return np.arange(len(self))
        query, doc = _positions(other.queries, self.queries), _positions(other.docs, self.docs)
        return other._find(query[self.query], doc[self.doc])

    def _find(self, query: Ints, doc: Ints) -> Ints:
        if len(self) == 0:
            return np.full(len(query), -1)
        key = query * max(len(self.docs), 1) + doc
        at = np.searchsorted(self.key, key).clip(0, len(self) - 1)
        return np.where((query >= 0) & (doc >= 0) & (self.key[at] == key), at, -1)

    def union(self, other: Pool) -> Pool:
        """Return the pool with the pairs of both."""
        if self is other:
            return self
        queries, docs = (
            pd.unique(np.concatenate([a, b])) for a, b in ((self.queries, other.queries), (self.docs, other.docs))
        )
        at_query, at_doc = _positions(queries, other.queries), _positions(docs, other.docs)
        return Pool.coded(
            queries,
            docs,
            np.concatenate([self.query, at_query[other.query]]),
            np.concatenate([self.doc, at_doc[other.doc]]),
        )[0]

    def take(self, keep: Bools) -> Pool:
        """Return the pool of the pairs marked in ``keep``, with the same queries."""
        used = np.zeros(len(self.docs), dtype=bool)
        used[self.doc[keep]] = True
        return Pool(self.queries, self.docs[used], self.query[keep], (np.cumsum(used) - 1)[self.doc[keep]])

    def to_frame(self) -> pd.DataFrame:
        """Return one row per pair: query, doc."""
        return pd.DataFrame({"query": self.queries[self.query], "doc": self.docs[self.doc]})


def number(labels: Sequence[str] | Ids) -> tuple[Ints, Ids]:
    """Number labels in order of first occurrence; return the number of each and the distinct labels (strings only)."""
    numbers, distinct = pd.factorize(objects(labels), use_na_sentinel=False)
    for label in distinct:
        if not is_text(label):
            raise DataError(f"Ids are strings, got {label!r}.")
    return numbers, objects(distinct)


def is_text(label: object) -> bool:
    """Whether this is a string that can be encoded (a lone surrogate cannot)."""
    try:
        return isinstance(label, str) and (label.isascii() or bool(label.encode()))
    except UnicodeEncodeError:
        return False


def _sorted(labels: Sequence[str] | Ids) -> tuple[Ids, Ints]:
    """Return the labels in increasing order, and the new position of each."""
    listed = list(labels)
    order = sorted(range(len(listed)), key=listed.__getitem__)
    place = np.empty(len(listed), dtype=np.int64)
    place[order] = np.arange(len(listed))
    return objects(listed)[order], place


def _positions(known: Ids, labels: Sequence[str] | Ids) -> Ints:
    """Return the position of each label among the known ones, -1 if unknown."""
    return pd.Index(known, dtype=object).get_indexer(pd.Index(objects(labels), dtype=object)).astype(np.int64)
