"""Held-out collections with known truth, and splits into training and test."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from probeval.arrays import Bools, Codes, Floats, Ids, Ints
from probeval.data.collection import JUDGED, Collection
from probeval.data.pool import Pool
from probeval.data.scale import Scale, count_at_least
from probeval.display import Record
from probeval.errors import DataError, did_you_mean
from probeval.metrics import Lists, Metric
from probeval.metrics.lists import gather
from probeval.reporting import Reporter
from probeval.streams import Purpose, stream

__all__ = ["HeldOut", "Split", "restrict", "split"]


def restrict(collection: Collection, queries: Iterable[str]) -> Collection:
    """Return the collection with only these queries: their runs and judgments.

    Examples
    --------
    >>> from probeval.relevance import synthetic_campaign
    >>> campaign = synthetic_campaign(seed=1, systems=4, queries=3, depth=5)
    >>> restrict(campaign, ["q2"]).runs
    <Runs: 4 systems, 1 query, depth 5, 12 pairs>
    """
    wanted, runs = set(queries), collection.runs
    missing = sorted(wanted - set(runs.queries))
    if missing:
        raise DataError(f"{collection.name}: no query {missing[0]!r}.{did_you_mean(missing[0], runs.queries)}")
    at = np.array([q in wanted for q in runs.queries], dtype=bool)
    pool, moved = _on_queries(runs.pool, at)
    pairs = np.where(runs.pairs[:, at] < 0, -1, np.append(moved, -1)[runs.pairs[:, at]])
    judgments = collection.judgments
    if judgments is not None:
        judgments = judgments.on(_on_queries(judgments.pool, np.isin(judgments.pool.queries, list(wanted)))[0])
    lists = replace(runs, pool=pool, pairs=pairs, scores=runs.scores[:, at])
    return replace(collection, runs=lists, judgments=judgments)


def _on_queries(pool: Pool, at: Bools) -> tuple[Pool, Ints]:
    """Return the pool of some queries, and the new index of every old pair, -1 if dropped."""
    keep = at[pool.query]
    docs, doc = np.unique(pool.doc[keep], return_inverse=True)
    place = np.cumsum(at) - 1
    smaller = Pool(pool.queries[at], pool.docs[docs], place[pool.query[keep]], doc)
    return smaller, np.where(keep, np.cumsum(keep) - 1, -1)


@dataclass(frozen=True, eq=False, repr=False)
class HeldOut(Record):
    """A collection with known truth, to be judged again.

    Parameters
    ----------
    collection
        The fully judged systems on the queries that have judgments; all judgments of their pool.
    depth, scale
        The depth of the pool, and the scale of the grades.
    systems
        The number of systems in the whole collection.
    """

    collection: Collection
    depth: int
    scale: Scale
    systems: int

    @classmethod
    def of(cls, collection: Collection, *, depth: int, systems: str = "judged") -> HeldOut:
        """Hold out the systems with more than .99 of their top ``depth`` judged, and their pool; or ``"all"`` systems.

        Raises
        ------
        DataError
            If no system is judged to this depth.
        """
        kept = collection.judged_systems(depth, share=-1.0 if systems == "all" else JUDGED)
        scale = kept.scale()
        problem = kept.problem(depth=depth, scale=scale)
        pool = problem.pool
        queries: Ids = pool.queries[np.unique(pool.query[problem.grades.codes >= 0])]
        kept = restrict(kept, queries)
        assert kept.judgments is not None
        inside = replace(kept, judgments=kept.judgments.on(kept.runs.top(depth).pool))
        return cls(inside, depth, scale, len(collection.runs.systems))

    def __str__(self) -> str:
        runs = self.collection.runs
        missing = len(self.codes) - len(self.known)
        left = f", {missing} of them without a judgment: grade {self.scale.grades[0]:g}, never offered" * (missing > 0)
        return (
            f"{self.collection.name}: {len(runs.systems)} of {self.systems} systems are judged to depth {self.depth}; "
            f"{len(runs.queries)} queries, {len(self.codes):,} pairs{left}."
        )

    @property
    def pool(self) -> Pool:
        """The pool of the systems."""
        assert self.collection.judgments is not None
        return self.collection.judgments.pool

    @cached_property
    def _graded(self) -> Codes:
        assert self.collection.judgments is not None
        return self.collection.judgments.codes(self.scale)

    @property
    def known(self) -> Ints:
        """The judged pairs of the pool."""
        return np.flatnonzero(self._graded >= 0)

    @property
    def codes(self) -> Codes:
        """The true grade of every pair of the pool, the lowest for pairs without a judgment, shape (pair,)."""
        return np.maximum(self._graded, 0)

    def truth(self, metric: Metric) -> Floats:
        """Return the true scores per system and query, with ideal lists from the pool, shape (system, query)."""
        runs = self.collection.runs.top(self.depth)
        relevant_counts = count_at_least(self.codes, runs.pool.query, len(runs.queries), len(self.scale))
        return metric.scores(Lists(self.scale, gather(self.codes, runs.pairs), relevant_counts))

    def after(self, pairs: Ints) -> Collection:
        """Return the collection with only these pairs of the pool judged."""
        judgments = self.collection.judgments
        assert judgments is not None
        return replace(
            self.collection, judgments=judgments.take(np.isin(judgments.pair, pairs)) if len(pairs) else None
        )


@dataclass(frozen=True, eq=False)
class Split:
    """Training collections and a held-out one; splits with the same key have the same training collections."""

    key: tuple[str, int]
    training: Sequence[Collection]
    held: HeldOut
    seed: int


def split(
    collections: Sequence[Collection], depth: int, seeds: int, seed: int, reporter: Reporter, *, fitted: bool = True
) -> list[Split]:
    """Hold out every collection with known truth once per seed, with its training collections.

    If no model is ``fitted``, there are none, and every collection is held out whole.

    A collection without a fully judged system is used for training only, at the depth to which it is judged
    (:meth:`~probeval.data.Collection.judged_part`). One with groups of documents and fine grades is unlike the others,
    and is split into halves of its queries.
    """
    names = [c.name for c in collections]
    if len(set(names)) < len(names):
        raise DataError(f"Two campaigns are named {next(n for n in names if names.count(n) > 1)!r}. Rename one.")
    held: dict[str, HeldOut] = {}
    for collection in collections:
        try:
            held[collection.name] = HeldOut.of(collection, depth=depth)
            reporter.say(str(held[collection.name]))
        except DataError:
            if collection.judgments is None:
                raise
            used = "used for training only" if fitted else "left out"
            reporter.say(f"{collection.name}: no system is judged to depth {depth}; {used}.")
    if held and not fitted:
        return [Split((name, 0), [], one, s) for name, one in held.items() for s in range(seeds)]
    alone = [name for name, h in held.items() if _is_unlike_others(h)]
    past = {c.name: c.judged_part(depth) for c in collections if c.name not in alone}
    out = []
    for name, one in held.items():
        if name in alone:
            reporter.say(f"{name}: fitted on half of its queries, tested on the other half.")
            out += [_halves(one, s, seed) for s in range(seeds)]
            continue
        others = [c for other, c in past.items() if other != name]
        if not others:
            raise DataError(f"{name}: there is no other campaign to fit on. Name at least two.")
        out += [Split((name, 0), others, one, s) for s in range(seeds)]
    if not out:
        raise DataError(f"no campaign has a system that is judged to depth {depth}.")
    return out


def _is_unlike_others(held: HeldOut) -> bool:
    return held.collection.metadata is not None and held.scale.bins is not None


def _halves(held: HeldOut, number: int, seed: int) -> Split:
    queries = held.collection.runs.queries
    order = stream(seed, held.collection.name, number // 2, Purpose.ORDER).permutation(len(queries))
    half = len(queries) // 2
    first, second = (restrict(held.collection, queries[np.sort(part)]) for part in (order[:half], order[half:]))
    train, test = (first, second) if number % 2 == 0 else (second, first)
    return Split((held.collection.name, number), [train], HeldOut.of(test, depth=held.depth), number)
