"""Fewer judgments than the reference has: to a depth, a share or a place in a fused ranking, or without one team."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

import numpy as np

from probeval.arrays import Bools, frozen
from probeval.display import Record
from probeval.errors import DataError
from probeval.selection.fusion import fused_places
from probeval.selection.reuse import contributed
from probeval.streams import Purpose, stream
from probeval.studies.pools.reference import ReferencePool, pooled_pairs

__all__ = ["Cut", "default_depths", "depth_cuts", "fused_cuts", "share_cuts", "team_cuts"]

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 1.0)  # of the depth of the reference: 5, 10, 15, 20, 25 and 50, as published


@dataclass(frozen=True, eq=False, repr=False)
class Cut(Record):
    """Some of the judgments of a reference pool.

    Parameters
    ----------
    kind, name
        ``"depth"``, ``"share"``, ``"fused"`` or ``"team"``; and its name in tables, such as ``depth 5``.
    value
        The depth, the share or the number of documents per query; NaN for a team.
    kept
        Mask of the pairs whose judgments stay, shape (pair,).
    systems
        Mask of the systems that are looked at, shape (system,): all of them, or those of the team that is left out.
    """

    kind: str
    name: str
    value: float
    kept: Bools
    systems: Bools

    def __post_init__(self) -> None:
        for name in ("kept", "systems"):
            object.__setattr__(self, name, frozen(getattr(self, name)))


def default_depths(depth: int) -> tuple[int, ...]:
    """Return the depths to cut to: a tenth, two, three and four tenths, half and the whole of the reference's depth.

    >>> default_depths(50), default_depths(5)
    ((5, 10, 15, 20, 25, 50), (1, 2, 3, 5))
    """
    return tuple(sorted({max(1, ceil(depth * share - 1e-9)) for share in SHARES}))


def depth_cuts(pool: ReferencePool, depths: Iterable[int]) -> list[Cut]:
    """Return the judgments of the pools to lesser depths, and of the reference itself, shallow pools first.

    Examples
    --------
    >>> from probeval.relevance import synthetic_campaign
    >>> from probeval.studies.pools import choose_pool
    >>> pool = choose_pool(synthetic_campaign(seed=1, systems=6, queries=5, depth=20))
    >>> [(cut.name, int(cut.kept.sum())) for cut in depth_cuts(pool, [5, 20])]
    [('depth 5', 77), ('depth 20', 227)]
    """
    wanted = sorted({*depths, pool.depth})
    if not 1 <= wanted[0] <= wanted[-1] <= pool.depth:
        shown = ", ".join(map(str, wanted))
        raise DataError(f"Pools are cut to depths from 1 to that of the reference, {pool.depth}; got {shown}.")
    cuts = []
    for depth in wanted:
        kept = pooled_pairs(pool.runs, depth) & pool.judged
        cuts.append(Cut("depth", f"depth {depth}", float(depth), kept, _all(pool)))
    return cuts


def share_cuts(pool: ReferencePool, shares: Iterable[float], *, seed: int = 0) -> list[Cut]:
    """Return random shares of the judgments of each query, one at least; a smaller share is part of a larger one.

    Examples
    --------
    >>> from probeval.relevance import synthetic_campaign
    >>> from probeval.studies.pools import choose_pool
    >>> pool = choose_pool(synthetic_campaign(seed=1, systems=6, queries=5, depth=20))
    >>> [(cut.name, int(cut.kept.sum())) for cut in share_cuts(pool, [0.1, 0.5])]
    [('share 0.1', 22), ('share 0.5', 113)]
    """
    wanted = sorted(set(shares))
    if wanted and not 0 < wanted[0] <= wanted[-1] < 1:
        shown = ", ".join(f"{share:g}" for share in wanted)
        raise DataError(f"Shares of the judgments are numbers between 0 and 1, got {shown}.")
    judged, query = pool.judged, pool.runs.pool.query
    random = stream(seed, pool.campaign, Purpose.ORDER).random(len(judged))
    order = np.lexsort((random, ~judged, query))  # the judged pairs of each query first, in random order
    start = np.cumsum(pool.runs.pool.sizes) - pool.runs.pool.sizes
    place = np.empty(len(judged), dtype=np.int64)
    place[order] = np.arange(len(judged)) - start[query[order]]
    known = np.bincount(query, judged, minlength=len(pool.runs.queries))
    cuts = []
    for share in wanted:
        most = np.maximum(np.rint(share * known), 1)
        cuts.append(Cut("share", f"share {share:g}", share, judged & (place < most[query]), _all(pool)))
    return cuts


def fused_cuts(pool: ReferencePool, sizes: Iterable[int], fusions: Iterable[str]) -> list[Cut]:
    """Return the judgments of the first documents of every query in fused rankings: Take@N and its kin.

    Parameters
    ----------
    pool
        The reference.
    sizes
        The numbers of documents per query.
    fusions
        Names of :data:`~probeval.selection.FUSIONS`.

    Examples
    --------
    >>> from probeval.relevance import synthetic_campaign
    >>> from probeval.studies.pools import choose_pool
    >>> pool = choose_pool(synthetic_campaign(seed=1, systems=6, queries=5, depth=20))
    >>> [(cut.name, int(cut.kept.sum())) for cut in fused_cuts(pool, [10], ["take", "combmnz"])]
    [('take 10', 50), ('combmnz 10', 50)]
    """
    wanted, cuts = sorted(set(sizes)), []
    if wanted and wanted[0] < 1:
        raise DataError(f"Fused rankings are cut to a number of documents from 1, got {wanted[0]}.")
    at = pool.runs.places(pool.depth)
    for name in dict.fromkeys(fusions):
        places = fused_places(pool.runs.top(pool.depth), name)
        first = np.where(at >= 0, places[at], len(at))
        cuts += [Cut("fused", f"{name} {n}", float(n), pool.judged & (first < n), _all(pool)) for n in wanted]
    return cuts


def team_cuts(pool: ReferencePool) -> list[Cut]:
    """Return the judgments without those that only one team contributed to the pool, for each team in turn.

    Only the systems of that team are looked at, as if they had come after the judging.

    Examples
    --------
    >>> from probeval.relevance import synthetic_campaign
    >>> from probeval.studies.pools import choose_pool
    >>> pool = choose_pool(synthetic_campaign(seed=1, systems=6, queries=5, depth=20))
    >>> [(cut.name, int((pool.judged & ~cut.kept).sum())) for cut in team_cuts(pool)]
    [('without team-1', 63), ('without team-2', 67)]
    """
    teams = np.array(pool.teams, dtype=object)
    names: list[str] = list(dict.fromkeys(pool.teams))
    if len(names) < 2:
        raise DataError(
            f"{pool.campaign}: all systems are of one team, {names[0]!r}. To leave teams out, name other campaigns."
        )
    top = pool.runs.pairs[:, :, : pool.depth].reshape(len(teams), -1)
    has = np.zeros((len(teams), len(pool.runs.pool) + 1), dtype=bool)  # the last is past the end of a list
    np.put_along_axis(has, top, values=True, axis=1)
    has = has[:, :-1]
    cuts = []
    for name in names:
        mine = np.asarray(teams == name)
        cuts.append(Cut("team", f"without {name}", float("nan"), pool.judged & ~contributed(has, mine), mine))
    return cuts


def _all(pool: ReferencePool) -> Bools:
    return np.ones(len(pool.runs.systems), dtype=bool)
