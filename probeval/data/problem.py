"""Evidence on one axis: what tasks work with after reading.

A :class:`Problem` is a collection to one depth and on one scale. Judgments, labels, groups and vectors are aligned with
the pairs of its pool once, here: from then on they are arrays by position. New judgments are looked up as they arrive.
A block of queries, a sample of them or a partition is :meth:`Problem.part`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from probeval.arrays import Codes, Ints, frozen
from probeval.data.evidence import LabelTable, PairGroups, PairVectors
from probeval.data.judgments import Judgments
from probeval.data.pool import Pool
from probeval.data.runs import Runs
from probeval.data.scale import UNJUDGED, Scale, count_at_least
from probeval.display import Record

if TYPE_CHECKING:
    from probeval.data.answers import PairAnswers
    from probeval.data.collection import Collection

__all__ = ["Grades", "Problem"]


@dataclass(frozen=True, eq=False, repr=False)
class Grades(Record):
    """The judgments of a pool's pairs on one scale.

    Parameters
    ----------
    codes
        The grade of each pair whose assessors agree, as its position on the scale, negative elsewhere, shape (pair,).
    median
        The same, with the median grade where assessors differ, shape (pair,).
    low, high
        The lowest and the highest grade of each pair whose assessors differ, negative elsewhere, shapes (pair,).
    beyond
        The number of judged pairs of each query that are not in the pool, with at least each grade, shape (query,
        grade).
    """

    codes: Codes
    median: Codes
    low: Codes
    high: Codes
    beyond: Ints

    def __post_init__(self) -> None:
        for name in ("codes", "median", "low", "high", "beyond"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @classmethod
    def of(cls, judgments: Judgments | None, pool: Pool, scale: Scale, *, place: Ints | None = None) -> Grades:
        """Return the judgments of a pool's pairs.

        ``place`` is the position in it of each pair of the judgments' own pool, if that is known already.

        Examples
        --------
        >>> judged = Judgments.rows(["q", "q", "q"], ["d1", "d2", "d2"], [1, 0, 2], assessors=["ann", "ann", "bob"])
        >>> grades = Grades.of(judged, judged.pool, Scale.graded(2))
        >>> [codes.tolist() for codes in (grades.codes, grades.low, grades.high)]
        [[1, -1], [-1, 0], [-1, 2]]
        """
        shape = (len(pool.queries), len(scale))
        if judgments is None or not len(judgments):
            none = np.full(len(pool), UNJUDGED, dtype=np.int16)
            return cls(none, none, none, none, np.zeros(shape, dtype=np.int64))
        place = judgments.pool.within(pool) if place is None else place
        here = judgments.on(pool, place)
        low, high = here.limits(scale)
        beyond = np.zeros(shape, dtype=np.int64)
        if (place < 0).any():
            query = pool.query_positions(judgments.pool.queries)[judgments.pool.query]
            outside = np.where((place < 0) & (query >= 0), judgments.codes(scale), UNJUDGED).astype(np.int16)
            beyond = count_at_least(outside, np.maximum(query, 0), *shape)
        codes = here.codes(scale, rule="unanimous")
        return cls(codes, codes if len(here.assessors) == 1 else here.codes(scale), low, high, beyond)

    @property
    def judged(self) -> Codes:
        """The certain grade of each pair, all others unjudged, shape (pair,)."""
        return np.where(self.codes >= 0, self.codes, UNJUDGED).astype(np.int16)

    def take(self, pairs: Ints, queries: Ints) -> Grades:
        """The grades of some pairs, which are those of some queries."""
        codes, median, low, high = (array[pairs] for array in (self.codes, self.median, self.low, self.high))
        return Grades(codes, median, low, high, self.beyond[queries])


@dataclass(frozen=True, eq=False, repr=False)
class Problem(Record):
    """A collection on one axis: the pairs in the top ranks of its systems.

    Parameters
    ----------
    collection
        What it was made from: whole lists, and evidence about other pairs too.
    runs
        The lists of all systems, cut at the depth of the pool, on the pool of their pairs: the axis of every array.
    depth, scale
        The depth of the pool, and the scale of the grades.
    grades
        The judgments of the pairs.
    labels
        Their labels, with one row per pair; None without labels.
    groups
        The groups of their documents and queries, by column of the metadata.
    vectors
        The vectors of their documents; None without.
    positions
        The position of each query in the whole collection, by which it has its random stream, shape (query,).

    Examples
    --------
    >>> from probeval.data import Collection
    >>> runs = Runs.rows(["a", "a", "b"], ["q", "q", "q"], ["d1", "d2", "d3"])
    >>> collection = Collection("", runs, Judgments.rows(["q", "q"], ["d3", "d9"], [1, 1]))
    >>> problem = collection.problem(depth=1)
    >>> problem.pool.to_frame().doc.tolist(), problem.grades.codes.tolist(), problem.grades.beyond.tolist()
    (['d1', 'd3'], [-1, 1], [[1, 1]])
    """

    collection: Collection
    runs: Runs
    depth: int
    scale: Scale
    grades: Grades
    labels: LabelTable | None
    groups: Mapping[str, PairGroups]
    vectors: PairVectors | None
    positions: Ints

    @classmethod
    def of(cls, collection: Collection, *, depth: int, scale: Scale, positions: Ints | None = None) -> Problem:
        """Align a collection; ``positions`` are those of its queries in a larger one, if it is part of one."""
        runs, inside = collection.runs.top(depth), collection.runs.places(depth)
        pool, judgments, labels, metadata = runs.pool, collection.judgments, collection.labels, collection.metadata
        place = None if judgments is None else np.append(inside, -1)[collection.judged_places]
        return cls(
            collection=collection,
            runs=runs,
            depth=depth,
            scale=scale,
            grades=Grades.of(judgments, pool, scale, place=place),
            labels=None if labels is None else labels.on(pool, np.append(inside, -1)[collection.labelled_places]),
            groups={} if metadata is None else metadata.on(pool),
            vectors=None if collection.vectors is None else collection.vectors.on(pool),
            positions=np.arange(len(pool.queries)) if positions is None else positions,
        )

    @property
    def pool(self) -> Pool:
        """The pairs."""
        return self.runs.pool

    @property
    def lists(self) -> Runs:
        """The lists of the systems to evaluate: of all, unless some only widen the pool."""
        ranked = self.collection.ranked
        return self.runs if ranked is None else self.runs.only(ranked)

    @property
    def deep(self) -> Runs:
        """The whole lists of all systems, on the pool of all their pairs."""
        return self.collection.runs

    @cached_property
    def place(self) -> Ints:
        """The position in the pool of each pair of the whole lists, -1 below its depth."""
        return self.collection.runs.places(self.depth)

    def part(self, queries: Ints) -> Problem:
        """The problem of the queries at these positions, in rising order."""
        place = np.full(len(self.pool.queries), -1)
        place[queries] = np.arange(len(queries))
        pairs = np.flatnonzero(place[self.pool.query] >= 0)
        collection = replace(self.collection, runs=self.collection.runs.at(queries))
        runs = collection.runs.top(self.depth)
        return Problem(
            collection=collection,
            runs=runs,
            depth=self.depth,
            scale=self.scale,
            grades=self.grades.take(pairs, queries),
            labels=None if self.labels is None else self.labels.rearranged(runs.pool, pairs),
            groups={column: groups.take(pairs) for column, groups in self.groups.items()},
            vectors=None if self.vectors is None else self.vectors.take(pairs),
            positions=self.positions[queries],
        )

    def in_teams(self) -> Problem:
        """The same where, if no teams are known, every system is a team of its own."""
        if self.runs.teams is not None:
            return self
        collection = replace(self.collection, runs=self.collection.runs.with_teams({}))
        return replace(self, collection=collection, runs=self.runs.with_teams({}))

    def with_judgments(self, judgments: Judgments | None, answers: PairAnswers | None = None) -> Problem:
        """The same with these judgments in place of its own, and with these answers, if any are given."""
        if judgments is self.collection.judgments and (answers is None or answers is self.collection.answers):
            return self
        return replace(
            self,
            collection=replace(
                self.collection,
                judgments=judgments,
                answers=self.collection.answers if answers is None else answers,
            ),
            grades=Grades.of(judgments, self.pool, self.scale),
        )

    def with_sources(self, sources: tuple[str, ...]) -> Problem:
        """The same with the labels of some sources alone, or of none; there must be labels."""
        assert self.labels is not None
        assert self.collection.labels is not None
        kept = self.collection.labels.take(sources) if sources else None
        return replace(
            self,
            collection=replace(self.collection, labels=kept),
            labels=self.labels.take(sources) if sources else None,
        )
