r"""The reference of a study of pools: the systems that count, and the judgments of the pool of their top ranks.

See docs/theory/pools.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from probeval.arrays import Bools, Codes, Ints, frozen
from probeval.data.collection import QUARTER, Collection
from probeval.data.judgments import Judgments
from probeval.data.runs import Runs
from probeval.data.scale import UNJUDGED, Scale, count_at_least
from probeval.display import Record
from probeval.errors import DataError
from probeval.metrics.lists import Lists, gather
from probeval.selection.reuse import team_names
from probeval.simulation import restrict

__all__ = ["DEPTHS", "ReferencePool", "choose_pool", "first_unjudged", "pooled_pairs"]

DEPTHS = (50, 20, 10, 5)  # depths of the reference that are tried in turn, if none is named


@dataclass(frozen=True, eq=False, repr=False)
class ReferencePool(Record):
    """The systems of a study, and the judgments that count as complete.

    Parameters
    ----------
    campaign
        Its name.
    runs
        The systems that count, with their whole lists, on the judged queries.
    scale
        The scale of the grades.
    codes
        The grade of each judged pair of the reference pool as its position on the scale, negative elsewhere, shape
        (pair,).
    depth
        The depth of the pool: the judgments of these systems' top ``depth``.
    deep
        Whether these are the deeply judged systems alone: every one of their lists is judged to ``depth``.
    judgments
        All judgments of the campaign.
    """

    campaign: str
    runs: Runs
    scale: Scale
    codes: Codes
    depth: int
    deep: bool
    judgments: Judgments

    def __post_init__(self) -> None:
        object.__setattr__(self, "codes", frozen(self.codes))

    @property
    def teams(self) -> tuple[str, ...]:
        """The team of each system; without teams each system is its own."""
        return team_names(self.runs)

    @property
    def judged(self) -> Bools:
        """Mask of the judged pairs of the pool, shape (pair,)."""
        return np.asarray(self.codes >= 0)

    def lists(self, kept: Bools) -> Lists:
        """Return the lists of all systems by some of the judgments; the others count as unjudged."""
        codes = np.where(kept, self.codes, np.int16(UNJUDGED))
        pool = self.runs.pool
        counts = count_at_least(codes, pool.query, len(pool.queries), len(self.scale))
        return Lists(self.scale, gather(codes, self.runs.pairs), counts)


def first_unjudged(judged: Bools) -> Ints:
    """Return the first rank of each list without a judged document, from 1; the end of a list counts as one.

    Parameters
    ----------
    judged
        Whether each rank has a judged document, shape (.., rank).

    Examples
    --------
    >>> first_unjudged(np.array([[True, True, False, True], [True, True, True, True]])).tolist()
    [3, 5]
    """
    return np.asarray(np.cumprod(judged, axis=-1).sum(axis=-1) + 1)


def pooled_pairs(runs: Runs, depth: int) -> Bools:
    """Return the mask of the pairs in the top ``depth`` of some system, shape (pair,)."""
    top = runs.pairs[:, :, :depth]
    inside = np.zeros(len(runs.pool), dtype=bool)
    inside[top[top >= 0]] = True
    return inside


def choose_pool(
    collection: Collection, *, depth: int | None = None, scale: Scale | None = None, every_system: bool = False
) -> ReferencePool:
    """Return the reference of a study: the deeply judged systems, and the judgments of the pool of their top ranks.

    A system is deeply judged to a depth if all of its lists are that long, and every document in them to that depth is
    judged (Yang 2019). So every system has the same part in the pool. Where fewer than two systems are, all count, and
    some of their documents are unjudged in the reference as well.

    Parameters
    ----------
    collection
        Runs and judgments. Queries without a judgment are left out.
    depth
        The depth of the reference. By default the first of 50, 20, 10 and 5 to which a quarter of the systems are
        deeply judged; if there is none, the longest list, 50 at most.
    scale
        The scale of the grades; inferred by default.
    every_system
        Whether all systems count, also those that are not deeply judged.

    Examples
    --------
    >>> from probeval.relevance import synthetic_campaign
    >>> pool = choose_pool(synthetic_campaign(seed=1, systems=6, queries=5, depth=20))
    >>> pool.depth, pool.deep, len(pool.runs.systems)
    (20, True, 6)
    """
    judgments = collection.judgments
    if judgments is None or not len(judgments):
        raise DataError(f"{collection.name}: a study of pools needs judgments, and there are none.")
    if depth is not None and depth < 1:
        raise DataError(f"The depth of a pool is a number of ranks from 1, got {depth}.")
    exact = judgments.scale(scale)
    runs = _judged_queries(collection, judgments, exact)
    codes = judgments.codes_on(runs.pool, exact)
    first = first_unjudged(np.append(codes >= 0, False)[runs.pairs])
    reached = first.min(axis=1) - 1  # the depth to which each system is deeply judged
    if depth is None:
        least = max(2.0, QUARTER * len(runs.systems))
        depth = next((d for d in DEPTHS if (reached >= d).sum() >= least), min(DEPTHS[0], runs.depth))
    kept = [s for s, deep in zip(runs.systems, reached >= depth, strict=True) if deep]
    deep = len(kept) > 1 and not every_system
    if len(runs.systems) < 2:
        raise DataError(f"{collection.name}: systems are compared in pairs, and there is one alone.")
    chosen = runs.select(kept) if deep else runs
    inside = pooled_pairs(chosen, depth)
    known = judgments.codes_on(chosen.pool, exact)
    return ReferencePool(
        campaign=collection.name,
        runs=chosen,
        scale=exact,
        codes=np.where(inside & (known >= 0), known, np.int16(UNJUDGED)),
        depth=depth,
        deep=deep,
        judgments=judgments,
    )


def _judged_queries(collection: Collection, judgments: Judgments, scale: Scale) -> Runs:
    """Return the lists of the queries with a judged pair."""
    known = judgments.codes(scale) >= 0
    judged = set(judgments.pool.queries[np.unique(judgments.pool.query[known])])
    runs = collection.runs
    kept = [query for query in runs.queries if query in judged]
    if not kept:
        raise DataError(f"{collection.name}: no query of the runs has a judgment.")
    return runs if len(kept) == len(runs.queries) else restrict(collection, kept).runs
