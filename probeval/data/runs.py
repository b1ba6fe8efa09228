"""Ranked lists: the retrieved pair at each system, query and rank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from probeval.arrays import Bools, Floats, Ids, Ints, frozen, objects
from probeval.data.limits import check_array
from probeval.data.pool import Pool, QueryBlock, is_text, number
from probeval.display import Described, Table
from probeval.errors import DataError, did_you_mean

__all__ = ["ORDERS", "ContradictionReport", "Runs", "TieReport"]

ORDERS = {
    "trec_eval": "32-bit score falling, then document id falling, as in trec_eval (the default)",
    "score": "64-bit score falling, then submitted rank rising",
    "rank": "submitted rank rising, regardless of the scores",
    "file": "as the file lists them",
}


@dataclass(frozen=True, eq=False, repr=False)
class Runs(Described):
    """Ranked lists of one or more systems over one pool.

    Parameters
    ----------
    systems
        Names, in the order of the first axis.
    pool
        The pairs, including every retrieved one.
    pairs
        The pair at each rank, shape (system, query, rank); -1 past the end of a list.
    scores
        The retrieval scores, NaN where there is none, same shape.
    teams
        The team of each system, or None if unknown.

    Examples
    --------
    >>> runs = Runs.rows(["a", "a", "b"], ["q", "q", "q"], ["d1", "d2", "d2"], [1.5, 2.5, 1.0])
    >>> runs
    <Runs: 2 systems, 1 query, depth 2, 2 pairs>
    >>> [runs.pool.label(p)[1] for p in runs.pairs[0, 0]]
    ['d2', 'd1']
    """

    systems: tuple[str, ...]
    pool: Pool
    pairs: Ints
    scores: Floats
    teams: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        shape = (len(self.systems), len(self.pool.queries))
        if self.pairs.ndim != 3 or self.pairs.shape[:2] != shape or self.scores.shape != self.pairs.shape:
            raise DataError(f"Runs need pairs and scores of shape {shape} + (rank,), got {self.pairs.shape}.")
        if len(set(self.systems)) != len(self.systems):
            twice = next(s for s in self.systems if self.systems.count(s) > 1)
            raise DataError(f"Two runs are named {twice!r}. A system's name is its file name; rename one.")
        unreadable = next((s for s in self.systems if not is_text(s)), None)
        if unreadable is not None:
            raise DataError(f"The system name {unreadable!r} is not UTF-8 text. Rename it.")
        if self.teams is not None and len(self.teams) != len(self.systems):
            raise DataError(f"{len(self.systems)} systems need as many teams, got {len(self.teams)}.")
        for name in ("pairs", "scores"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @classmethod
    def rows(
        cls,
        systems: Sequence[str],
        queries: Sequence[str],
        docs: Sequence[str],
        scores: Sequence[float] | NDArray[Any] | None = None,
        *,
        ranks: Sequence[float] | NDArray[Any] | None = None,
        order: str = "trec_eval",
    ) -> Runs:
        """Return runs from parallel columns, one row per retrieved document, in any order.

        Without ``scores`` and ``ranks`` the rows must be in rank order.
        """
        columns = {"queries": queries, "docs": docs, "scores": scores, "ranks": ranks}
        for name, column in columns.items():
            if column is not None and len(column) != len(systems):
                raise DataError(f"{len(systems)} rows need as many {name}, got {len(column)}.")
        s, names = number(systems)
        q, query_labels = number(queries)
        d, doc_labels = number(docs)
        if scores is None:
            order = "file" if ranks is None else "rank"
        pool, pair = Pool.coded(query_labels, doc_labels, q, d)
        score = np.full(len(pair), np.nan) if scores is None else np.asarray(scores, dtype=float)
        if scores is not None and np.isnan(score).any():
            raise DataError(f"Row {int(np.argmax(np.isnan(score))) + 1} has no score, others have.")
        rank = None if ranks is None else np.asarray(ranks, dtype=float)
        return cls.coded(tuple(names), pool, s, pair, score, ranks=rank, order=order)

    @classmethod
    def coded(
        cls,
        systems: tuple[str, ...],
        pool: Pool,
        system: NDArray[Any],
        pair: Ints,
        score: Floats,
        *,
        ranks: Floats | None = None,
        order: str = "trec_eval",
    ) -> Runs:
        """Return runs from rows given as positions in ``systems`` and ``pool``."""
        n_queries = len(pool.queries)
        cls._refuse_repeats(systems, pool, system, pair)
        lists = system.astype(np.int64) * n_queries + pool.query[pair]
        keys = (*_order_keys(order, pool.doc[pair], score, ranks), lists)
        if not _sorted(keys):
            sequence = np.lexsort(keys)
            lists, pair, score = lists[sequence], pair[sequence], score[sequence]
        check_array((len(systems), n_queries), len(lists))
        lengths = np.bincount(lists, minlength=len(systems) * n_queries)
        rank = np.arange(len(lists)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        shape = (len(systems) * n_queries, int(lengths.max(initial=0)))
        check_array((len(systems), n_queries, shape[1]), len(lists))
        pairs, scores = np.full(shape, -1), np.full(shape, np.nan)
        pairs[lists, rank] = pair
        scores[lists, rank] = score
        full = (len(systems), n_queries, shape[1])
        return cls(systems, pool, pairs.reshape(full), scores.reshape(full))

    @staticmethod
    def _refuse_repeats(systems: tuple[str, ...], pool: Pool, system: NDArray[Any], pair: Ints) -> None:
        place = system.astype(np.int64) * max(len(pool), 1) + pair
        key = np.sort(place)
        again = np.flatnonzero(np.diff(key) == 0)
        if again.size:
            where, twice = divmod(int(key[again[0]]), len(pool))
            query, doc = pool.label(twice)
            # Rows are counted within the system: a file has one, as a rule.
            first, second = (
                1 + int((system[:row] == where).sum()) for row in np.flatnonzero(place == key[again[0]])[:2]
            )
            raise DataError(
                f"System {systems[where]!r} retrieves document {doc!r} twice for query {query!r}, in its rows {first} "
                f"and {second}."
            )

    def _headline(self) -> str:
        n = len(self.pool.queries)
        return (
            f"{len(self.systems)} system{'s' * (len(self.systems) != 1)}, {n} quer{'y' if n == 1 else 'ies'}, "
            f"depth {self.depth}, {len(self.pool):,} pairs"
        )

    def tables(self) -> tuple[Table, ...]:
        """The queries and documents of each system."""
        found = self.pairs >= 0
        table = pd.DataFrame(
            {
                "system": self.systems,
                **({} if self.teams is None else {"team": self.teams}),
                "queries": found.any(axis=2).sum(axis=1),
                "docs": found.sum(axis=(1, 2)),
            }
        )
        return (Table(table, self._headline()),)

    @property
    def depth(self) -> int:
        """The length of the longest list."""
        return int(self.pairs.shape[2])

    @property
    def queries(self) -> Ids:
        """The ids of the queries, in the order of the second axis."""
        return self.pool.queries

    @cached_property
    def retrieved(self) -> Bools:
        """Mask of the ranks with a document, shape (system, query, rank)."""
        return frozen(self.pairs >= 0)

    def top(self, depth: int) -> Runs:
        """Return the first ``depth`` ranks, on the pool of only these pairs."""
        if depth < 1:
            raise DataError(f"A depth is a whole number from 1, got {depth}.")
        # Cached, so that all callers share one pool per depth and need no lookups between pools.
        if depth not in self._tops:
            self._tops[depth] = self._first(depth)
        return self._tops[depth]

    @cached_property
    def _tops(self) -> dict[int, Runs]:
        return {}

    def places(self, depth: int) -> Ints:
        """Return the position of each pair in the pool of the first ``depth`` ranks, -1 below it, shape (pair,)."""
        keep = np.zeros(len(self.pool), dtype=bool)
        pairs = self.pairs[:, :, :depth]
        keep[pairs[pairs >= 0]] = True
        return np.where(keep, np.cumsum(keep) - 1, -1)

    def _first(self, depth: int) -> Runs:
        moved = self.places(depth)
        return self._on(self.pool.take(moved >= 0), moved, depth)

    def select(self, systems: Iterable[str]) -> Runs:
        """Return these systems only, in this order, on the pool of only their pairs."""
        wanted = list(systems)
        missing = [s for s in wanted if s not in self.systems]
        if missing:
            raise DataError(f"No system {missing[0]!r} among the runs.{did_you_mean(missing[0], self.systems)}")
        at = [self.systems.index(s) for s in wanted]
        teams = None if self.teams is None else tuple(self.teams[i] for i in at)
        chosen = replace(self, systems=tuple(wanted), pairs=self.pairs[at], scores=self.scores[at], teams=teams)
        return chosen._first(self.depth)

    def only(self, systems: Sequence[str]) -> Runs:
        """Return these systems only, in this order, on the same pool: pairs of the others stay in it."""
        at = [self.systems.index(s) for s in systems]
        teams = None if self.teams is None else tuple(self.teams[i] for i in at)
        return replace(self, systems=tuple(systems), pairs=self.pairs[at], scores=self.scores[at], teams=teams)

    def joined(self, other: Runs) -> Runs:
        """Return the lists of both for the queries of these, on the pool of both, these systems first.

        A run of ``other`` with the name of one of these counts once. Without teams, a system is a team of its own.

        >>> a = Runs.rows(["a"], ["q"], ["d1"])
        >>> a.joined(Runs.rows(["a", "b", "b"], ["q", "q", "q2"], ["d1", "d2", "d3"]))
        <Runs: 2 systems, 1 query, depth 1, 2 pairs>
        """
        here = set(self.queries)
        keep = np.array([query in here for query in other.queries], dtype=bool)[other.pool.query]
        lists = other._on(other.pool.take(keep), np.where(keep, np.cumsum(keep) - 1, -1), other.depth)
        union = self.pool.union(lists.pool)
        pool = Pool(self.queries, union.docs, self.pool.query_positions(union.queries)[union.query], union.doc)
        new = [s for s in other.systems if s not in self.systems]
        parts = [self.on(pool), lists.on(pool).only(new)]
        depth = max(part.depth for part in parts)
        pairs, scores = (
            np.concatenate([_deepened(getattr(part, name), depth, empty) for part in parts])
            for name, empty in (("pairs", -1), ("scores", np.nan))
        )
        teams = None
        if self.teams is not None or other.teams is not None:
            teams = (*(self.teams or self.systems), *(parts[1].teams or new))
        return Runs((*self.systems, *new), pool, pairs, scores, teams)

    def at(self, queries: Ints) -> Runs:
        """Return the lists of the queries at these positions, in rising order, on the pool of only their pairs.

        >>> runs = Runs.rows(["a", "a", "b"], ["q1", "q2", "q2"], ["d1", "d2", "d3"])
        >>> runs.at(np.array([1])).pool.to_frame().values.tolist()
        [['q2', 'd2'], ['q2', 'd3']]
        """
        place = np.full(len(self.queries), -1)
        place[queries] = np.arange(len(queries))
        keep = place[self.pool.query] >= 0
        kept = self.pool.take(keep)
        pool = Pool(self.queries[queries], kept.docs, place[kept.query], kept.doc)
        pairs = _moved(self.pairs[:, queries], np.where(keep, np.cumsum(keep) - 1, -1))
        return replace(self, pool=pool, pairs=pairs, scores=self.scores[:, queries])

    def on(self, pool: Pool) -> Runs:
        """Return the same lists on another pool that contains all of their pairs."""
        if pool is self.pool:
            return self
        moved = self.pool.within(pool)
        if np.any(moved < 0):
            raise DataError("Runs can only move to a pool that has all of their pairs. Use Pool.union.")
        query = {q: i for i, q in enumerate(pool.queries)}
        here = [i for i, q in enumerate(self.queries) if q in query]  # a query missing from the pool has no pair
        at = [query[self.queries[i]] for i in here]
        shape = (len(self.systems), len(pool.queries), self.depth)
        pairs, scores = np.full(shape, -1), np.full(shape, np.nan)
        pairs[:, at], scores[:, at] = _moved(self.pairs[:, here], moved), self.scores[:, here]
        return replace(self, pool=pool, pairs=pairs, scores=scores)

    def part(self, block: QueryBlock) -> Runs:
        """Return the lists of a block of queries, on the block's part of the pool."""
        pairs = self.pairs[:, block.queries]
        pairs = np.where(pairs < 0, -1, pairs - block.pairs.start)
        return replace(self, pool=self.pool.part(block), pairs=pairs, scores=self.scores[:, block.queries])

    def _on(self, pool: Pool, moved: Ints, depth: int) -> Runs:
        pairs = _moved(self.pairs[:, :, :depth], moved)
        return replace(self, pool=pool, pairs=pairs, scores=self.scores[:, :, :depth])

    def with_teams(self, teams: Mapping[str, str]) -> Runs:
        """Return the runs with the team of each system; a system without a team is a team of its own."""
        return replace(self, teams=tuple(teams.get(s) or s for s in self.systems))

    @cached_property
    def tie_starts(self) -> Ints:
        """The first rank (from 0) of the group of tied scores that each rank is in, shape (system, query, rank).

        Scores are compared as trec_eval compares them, in 32 bits.
        """
        score = _in_32_bits(self.scores)
        new = np.ones(score.shape, dtype=bool)
        new[..., 1:] = score[..., 1:] != score[..., :-1]  # NaN differs from itself: no score, no tie
        return np.maximum.accumulate(np.where(new, np.arange(self.depth), 0), axis=-1)

    def ties(self) -> TieReport:
        """Return how much of the ranking depends on the tie rule."""
        tied = np.zeros(self.pairs.shape, dtype=bool)
        same = self.tie_starts[..., 1:] == self.tie_starts[..., :-1]
        tied[..., 1:] |= same
        tied[..., :-1] |= same
        first = np.argmax(tied, axis=2)[tied.any(axis=2)] + 1
        mean = float(np.exp(np.log(first).mean())) if first.size else float("nan")
        return TieReport(*self._shares(tied), first_rank=mean)

    def contradictions(self, submitted: Runs) -> ContradictionReport:
        """Return how often two neighbouring documents have opposite orders by score and by submitted rank.

        Parameters
        ----------
        submitted
            The same lists in the order of the submitted ranks (``order="rank"``).

        Examples
        --------
        >>> columns = ["a"] * 3, ["q"] * 3, ["d1", "d2", "d3"], [3.0, 2.0, 1.0]
        >>> by_rank = Runs.rows(*columns, ranks=[1, 3, 2], order="rank")
        >>> Runs.rows(*columns).contradictions(by_rank)
        ContradictionReport(docs=0.6666666666666666, lists=1.0, systems=1.0)
        """
        if submitted.systems != self.systems or submitted.retrieved.sum() != self.retrieved.sum():
            raise DataError("Ranks and scores are compared on the same lists, read twice in two orders.")
        others = submitted.on(self.pool)
        at = np.empty_like(self.pairs)
        for i, lists in enumerate(others.pairs):
            place = np.full(len(self.pool) + 1, self.depth)  # the last is past the end of a list
            query, rank = np.nonzero(lists >= 0)
            place[lists[query, rank]] = rank
            at[i] = place[self.pairs[i]]
        lower = self.tie_starts[..., 1:] != self.tie_starts[..., :-1]
        wrong = lower & (at[..., 1:] < at[..., :-1])
        found = np.zeros(self.pairs.shape, dtype=bool)
        found[..., 1:] |= wrong
        found[..., :-1] |= wrong
        return ContradictionReport(*self._shares(found))

    def _shares(self, found: Bools) -> tuple[float, float, float]:
        """Return the shares of retrieved documents, of lists and of systems with any of the marked ranks."""
        answered = self.retrieved.any(axis=2)
        return (
            float(found.sum() / max(self.retrieved.sum(), 1)),
            float(found.any(axis=2).sum() / max(answered.sum(), 1)),
            float(found.any(axis=(1, 2)).mean()),
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row per retrieved document: system, query, doc, rank, score."""
        s, q, r = np.nonzero(self.retrieved)
        pair = self.pairs[s, q, r]
        return pd.DataFrame(
            {
                "system": objects(self.systems)[s],
                "query": self.queries[q],
                "doc": self.pool.docs[self.pool.doc[pair]],
                "rank": r + 1,
                "score": self.scores[s, q, r],
            }
        )


@dataclass(frozen=True)
class TieReport:
    """Shares of documents, lists and systems with tied scores, and the geometric mean rank of the first tie."""

    docs: float
    lists: float
    systems: float
    first_rank: float


@dataclass(frozen=True)
class ContradictionReport:
    """Shares of documents, lists and systems whose submitted ranks contradict the scores."""

    docs: float
    lists: float
    systems: float


def _deepened(lists: NDArray[Any], depth: int, empty: float) -> NDArray[Any]:
    """Return lists with empty places up to a depth, shape (system, query, depth)."""
    return np.pad(lists, ((0, 0), (0, 0), (0, depth - lists.shape[2])), constant_values=empty)


def _moved(pairs: Ints, to: Ints) -> Ints:
    """Map pair positions through a table of new ones; -1 stays -1."""
    return np.where(pairs < 0, -1, np.append(to, -1)[pairs])


def _in_32_bits(score: Floats) -> NDArray[np.float32]:
    """Return scores in trec_eval's precision; values too large for 32 bits are infinite."""
    with np.errstate(over="ignore"):
        return score.astype(np.float32)


def _sorted(keys: tuple[NDArray[Any], ...]) -> bool:
    """Whether the rows are already in the order of ``np.lexsort``, as in most files."""
    tied = np.ones(max(len(keys[-1]) - 1, 0), dtype=bool)
    for key in reversed(keys):
        if np.any(tied & (key[:-1] > key[1:])):
            return False
        tied &= key[:-1] == key[1:]
    return True


def _order_keys(order: str, doc: Ints, score: Floats, ranks: Floats | None) -> tuple[NDArray[Any], ...]:
    """Return the sort keys within a list for ``np.lexsort``: the last is the primary key."""
    if order == "trec_eval":
        return -doc, -_in_32_bits(score)
    if order == "file":
        return ()
    if order not in ORDERS:
        raise DataError(f"No order {order!r}: {', '.join(ORDERS)}.{did_you_mean(order, ORDERS)}")
    if ranks is None:
        raise DataError(f"Order {order!r} needs the submitted ranks, and these runs have none.")
    return (ranks,) if order == "rank" else (ranks, -score)
