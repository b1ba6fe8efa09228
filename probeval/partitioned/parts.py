"""Parts of a campaign: ranges of whole queries, on disk or in memory, each read where it is worked on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

import numpy as np

from probeval.data.collection import Collection
from probeval.data.partitions import Partitions
from probeval.display import Record

__all__ = ["MemoryPart", "QueryRange", "StoredPart", "memory_parts", "stored_parts"]


class QueryRange(Protocol):
    """Consecutive queries of a campaign."""

    @property
    def start(self) -> int:
        """The position of its first query in the campaign."""

    def read(self, depth: int, *, sources: Sequence[str] | None = None) -> Collection:
        """The lists of its queries to a depth, with the labels of some sources, or of all."""


@dataclass(frozen=True, eq=False, repr=False)
class StoredPart(Record):
    """A partition on disk."""

    partitions: Partitions
    number: int

    @property
    def start(self) -> int:
        """The position of its first query in the campaign."""
        return int(self.partitions.starts[self.number])

    def read(self, depth: int, *, sources: Sequence[str] | None = None) -> Collection:
        """The lists of its queries to a depth, with the labels of some sources, or of all."""
        return self.partitions.read(self.number, depth, sources=sources)


@dataclass(frozen=True, eq=False, repr=False)
class MemoryPart(Record):
    """Some queries of a collection in memory, for work in another process."""

    collection: Collection
    start: int

    def read(self, depth: int, *, sources: Sequence[str] | None = None) -> Collection:
        """The lists of its queries, which are whole, with the labels of some sources, or of all."""
        labels = self.collection.labels
        if sources is None or labels is None:
            return self.collection
        return replace(self.collection, labels=labels.take(sources) if sources else None)


def stored_parts(partitions: Partitions) -> tuple[QueryRange, ...]:
    """The partitions of a campaign on disk."""
    return tuple(StoredPart(partitions, i) for i in range(len(partitions)))


def memory_parts(collection: Collection, n: int) -> tuple[QueryRange, ...]:
    """A collection in ``n`` parts of consecutive queries, as equal in number as can be, without judgments.

    Examples
    --------
    >>> from probeval.data import Runs
    >>> runs = Runs.rows(["a", "a", "a"], ["q1", "q2", "q3"], ["d1", "d2", "d3"])
    >>> [(part.start, part.read(1).runs.queries.tolist()) for part in memory_parts(Collection("", runs), 2)]
    [(0, ['q1']), (1, ['q2', 'q3'])]
    """
    lists = collection.runs
    labels = None if collection.labels is None else collection.labels.on(lists.pool)
    n_queries = len(lists.queries)
    ends = [n_queries * i // n for i in range(n + 1)]
    parts: list[QueryRange] = []
    for first, after in pairwise(ends):
        runs = lists.at(np.arange(first, after))
        rows = np.flatnonzero((lists.pool.query >= first) & (lists.pool.query < after))
        mine = None if labels is None else labels.rearranged(runs.pool, rows)
        parts.append(MemoryPart(replace(collection, runs=runs, labels=mine, judgments=None), first))
    return tuple(parts)
