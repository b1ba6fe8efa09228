"""Features from the judgments so far, each without the pair itself; a new judgment updates only the affected totals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probeval.arrays import Bools, Floats, Ints, frozen
from probeval.data.evidence import PairVectors
from probeval.data.pool import Pool
from probeval.data.runs import Runs
from probeval.display import Record
from probeval.errors import FeatureError

__all__ = ["JudgedFeatures", "Neighbours"]

CHUNK = 4096  # unions of distinct system sets held at once


@dataclass(frozen=True, eq=False, repr=False)
class Neighbours(Record):
    """Neighbourhoods of pairs: the part of the computation that judgments do not change.

    Parameters
    ----------
    pool
        The pairs.
    sets
        The distinct sets of systems that retrieved some pair, as bits, shape (word, set).
    set_of
        The set of each pair, shape (pair,).
    groups
        For each grouping, the number of the pair's group within its query, -1 where unknown, shape (pair,).
    vectors
        The vectors of the pairs' documents, or None.
    """

    pool: Pool
    sets: NDArray[np.uint64]
    set_of: Ints
    groups: dict[str, Ints]
    vectors: PairVectors | None

    @classmethod
    def of(cls, runs: Runs, *, groups: dict[str, Ints], vectors: PairVectors | None = None) -> Neighbours:
        """Return the neighbourhoods of the retrieved pairs."""
        system, query, rank = np.nonzero(runs.retrieved)
        pair = runs.pairs[system, query, rank]
        words = np.zeros((len(runs.pool), (len(runs.systems) + 63) // 64), dtype=np.uint64)
        np.bitwise_or.at(words, (pair, system // 64), np.uint64(1) << (system % 64).astype(np.uint64))
        sets, set_of = np.unique(words, axis=0, return_inverse=True)
        return cls(runs.pool, np.ascontiguousarray(sets.T), set_of.reshape(-1), groups, vectors)

    def meeting(self, pair: int) -> Bools:
        """Return a mask of the sets that share a system with the pair's own set, shape (set,)."""
        return np.asarray(np.logical_or.reduce([word & word[self.set_of[pair]] != 0 for word in self.sets]))

    def system_totals(self, weight: Floats) -> Floats:
        """Return, for each set, the total weight of the pairs whose set meets it, (weight, set) from (weight, pair).

        The sets that meet a set are the union, over its systems, of the sets that contain each. Unions are bitwise,
        and weights are summed eight bits at a time from a table of all 256 sums.
        """
        holds = np.unpackbits(np.ascontiguousarray(self.sets.T).view(np.uint8), axis=1).astype(bool)
        by_set = np.zeros((len(holds), len(weight)))
        for i, w in enumerate(weight):
            by_set[:, i] = np.bincount(self.set_of, w, minlength=len(holds))
        some = np.flatnonzero(by_set.any(axis=1))
        size = -(-len(some) // 64) * 64  # whole words
        holders = np.packbits(np.ascontiguousarray(_padded(holds[some], size).T), axis=1).view(np.uint64)
        bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(float)
        sums = bits @ _padded(by_set[some], size).reshape(size // 8, 8, len(weight))  # (byte, 256, weight)
        totals = np.zeros_like(by_set)
        for start in range(0, len(holds), CHUNK):
            rows = holds[start : start + CHUNK]
            union = np.stack([np.bitwise_or.reduce(holders[systems], axis=0) for systems in rows])
            part = totals[start : start + CHUNK]
            for table, byte in zip(sums, union.view(np.uint8).T.copy(), strict=True):
                part += table.take(byte, axis=0)
        return np.ascontiguousarray(totals.T)


def _padded(rows: NDArray[Any], size: int) -> NDArray[Any]:
    """Return the rows padded with zeros to ``size``."""
    return np.concatenate([rows, np.zeros((size - len(rows), *rows.shape[1:]), dtype=rows.dtype)])


@dataclass(frozen=True, eq=False, repr=False)
class JudgedFeatures(Record):
    """Running totals over the judged pairs, from which all judgment features are computed.

    Relevance is the grade over the top grade, so that scales can be mixed.

    Parameters
    ----------
    neighbours
        The neighbourhoods, which judgments do not change.
    relevance
        The relevance of each pair in [0, 1], NaN where unjudged, shape (pair,).
    by_system, by_query, by_group
        Totals and counts of relevance: over the pairs that meet each set of systems, shape (2, set); over the pairs of
        each query, shape (2, query); over the groups of each grouping within queries, shape (2, group).
    """

    neighbours: Neighbours
    relevance: Floats
    by_system: Floats
    by_query: Floats
    by_group: dict[str, Floats]

    @classmethod
    def of(cls, neighbours: Neighbours, relevance: Floats) -> JudgedFeatures:
        """Return the totals over all judged pairs."""
        value, judged = np.nan_to_num(relevance), (~np.isnan(relevance)).astype(float)
        pool = neighbours.pool
        return cls(
            neighbours,
            frozen(relevance),
            neighbours.system_totals(np.stack([value, judged])),
            np.stack([np.bincount(pool.query, w, minlength=len(pool.queries)) for w in (value, judged)]),
            {name: _group_totals(number, value, judged) for name, number in neighbours.groups.items()},
        )

    def among(self, judged: Bools) -> JudgedFeatures:
        """Return the totals with only these of the pairs judged."""
        return JudgedFeatures.of(self.neighbours, np.where(judged, self.relevance, np.nan))

    def with_judgment(self, pair: int, relevance: float) -> JudgedFeatures:
        """Return the totals after one new or changed judgment."""
        old = self.relevance[pair]
        change = np.array([relevance - (0.0 if np.isnan(old) else old), 1.0 if np.isnan(old) else 0.0])
        grades, by_system, by_query = self.relevance.copy(), self.by_system.copy(), self.by_query.copy()
        grades[pair] = relevance
        by_system[:, self.neighbours.meeting(pair)] += change[:, None]
        by_query[:, self.neighbours.pool.query[pair]] += change
        by_group = {}
        for name, totals in self.by_group.items():
            group, by_group[name] = self.neighbours.groups[name][pair], totals.copy()
            if group >= 0:
                by_group[name][:, group] += change
        return replace(self, relevance=frozen(grades), by_system=by_system, by_query=by_query, by_group=by_group)

    def system_mean(self) -> Floats:
        """ASYS."""
        return self._left_out(self.by_system[:, self.neighbours.set_of])

    def system_difference(self) -> Floats:
        """dSYS: aSYS minus the mean over all systems; base rates cancel."""
        return self.system_mean() - self._left_out(self.by_query.sum(axis=1)[:, None])

    def query_mean(self) -> Floats:
        """ADOC."""
        return self._left_out(self.by_query[:, self.neighbours.pool.query])

    def query_count(self) -> Floats:
        """NDOC."""
        return np.log1p(self.query_number())

    def group_mean(self, column: str) -> Floats:
        """a[column]."""
        number = self.neighbours.groups[column]
        return np.where(number < 0, np.nan, self._left_out(self.by_group[column][:, number]))

    def system_number(self) -> Floats:
        """Return the number of judged pairs in each aSYS and dSYS."""
        return self._others(self.by_system[:, self.neighbours.set_of])[1]

    def query_number(self) -> Floats:
        """Return the number of judged pairs in each aDOC."""
        return self._others(self.by_query[:, self.neighbours.pool.query])[1]

    def group_number(self, column: str) -> Floats:
        """Return the number of judged pairs in each a[column], NaN where the group is unknown."""
        number = self.neighbours.groups[column]
        return np.where(number < 0, np.nan, self._others(self.by_group[column][:, number])[1])

    def most_similar(self) -> Floats:
        """aSIM: the relevance level, among those judged in the query, of the nearest documents by mean cosine."""
        vectors, pool = self.neighbours.vectors, self.neighbours.pool
        if vectors is None:
            raise FeatureError("aSIM needs a vector for each document.")
        out = np.full(len(pool), np.nan)
        for query in np.unique(pool.query[~np.isnan(self.relevance)]):
            pairs = np.flatnonzero(pool.query == query)
            out[pairs] = _nearest(vectors, pairs, self.relevance[pairs])
        return out

    def _left_out(self, totals: Floats) -> Floats:
        """Return the mean over the other pairs, NaN where none is judged."""
        total, count = self._others(totals)
        return np.where(count > 0.5, total / np.maximum(count, 1), np.nan)

    def _others(self, totals: Floats) -> tuple[Floats, Floats]:
        """Return total and count over the other pairs: without the pair's own judgment."""
        total, count = totals
        return total - np.nan_to_num(self.relevance), count - ~np.isnan(self.relevance)


def _group_totals(number: Ints, value: Floats, judged: Floats) -> Floats:
    known = number >= 0
    size = int(number.max(initial=0)) + 1  # at least one, even if no group is known
    return np.stack([np.bincount(number[known], w[known], minlength=size) for w in (value, judged)]).astype(float)


def _nearest(vectors: PairVectors, pairs: Ints, relevance: Floats) -> Floats:
    """Return, for each pair, the relevance whose other pairs have the highest mean cosine to it; NaN if none."""
    out = np.full(len(pairs), np.nan)
    known = np.flatnonzero(vectors.known[pairs])
    judged = np.flatnonzero(~np.isnan(relevance[known]))
    if not len(judged):
        return out
    levels, level = np.unique(relevance[known[judged]], return_inverse=True)
    cosine = vectors.cosine(pairs[known], pairs[known[judged]])
    cosine[judged, np.arange(len(judged))] = 0.0  # leave the pair itself out
    member = np.eye(len(levels))[level]
    count = np.broadcast_to(member.sum(axis=0), (len(known), len(levels))).copy()
    count[judged] -= member
    mean = np.where(count > 0, (cosine @ member) / np.maximum(count, 1), -np.inf)
    out[known] = np.where(np.isfinite(mean.max(axis=1)), levels[mean.argmax(axis=1)], np.nan)
    return out
