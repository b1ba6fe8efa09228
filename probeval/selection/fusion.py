r"""Fused rankings: documents in one order per query, from the ranks or the scores of all systems.

Pooling by a fused ranking takes its first N documents of every query: Take@N and its kin (Yang 2019, section 2.2).
See docs/theory/pools.md#fused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from probeval.arrays import Bools, Floats, Ints, frozen
from probeval.data.runs import Runs
from probeval.display import Record
from probeval.errors import SelectionError, did_you_mean

__all__ = ["FUSIONS", "Fusion", "find_fusion", "fused_places"]


@dataclass(frozen=True, repr=False)
class Fusion(Record):
    """A way to order the documents of a query by all systems.

    Parameters
    ----------
    name, summary
        Its name, and one line on the documents that come first.
    value
        The value of each pair, shape (pair,); the highest comes first.
    """

    name: str
    summary: str
    value: Callable[[Runs], Floats]

    def __repr__(self) -> str:
        return f"Fusion({self.name!r})"


def _take(runs: Runs) -> Floats:
    return np.asarray(-_ranks(runs).min(axis=0))


def _borda(runs: Runs) -> Floats:
    return np.asarray(-_ranks(runs).sum(axis=0))


def _condorcet(runs: Runs) -> Floats:
    """The number of documents of the query that more systems rank below a document than above it (Copeland)."""
    rank, value = _ranks(runs), np.zeros(len(runs.pool))
    for q in range(len(runs.queries)):
        mine = np.flatnonzero(runs.pool.query == q)
        ahead = np.zeros((len(mine), len(mine)), dtype=np.int64)
        for one in rank[:, mine]:
            ahead += np.sign(one - one[:, None]).astype(np.int64)  # of row over column
        value[mine] = np.sign(ahead).sum(axis=1)
    return value


def _ranks(runs: Runs) -> Floats:
    """The rank of each pair by each system, one below its last where it is not retrieved, shape (system, pair)."""
    length = runs.retrieved.sum(axis=2)
    rank = (length + 1.0)[:, runs.pool.query]
    system, query, at = np.nonzero(runs.retrieved)
    rank[system, runs.pairs[system, query, at]] = at + 1.0
    return np.asarray(rank)


def _scores(runs: Runs) -> tuple[Floats, Bools]:
    """Scores from 0 to 1 within each list, 1 where all are equal and 0 where not retrieved; and what is retrieved."""
    there = runs.retrieved
    raw = np.where(there, runs.scores, np.nan)
    if not np.isfinite(raw[there]).all():
        raise SelectionError("Fusion by scores needs runs with scores. Use take, borda or condorcet, which use ranks.")
    low = np.min(raw, axis=2, keepdims=True, where=there, initial=np.inf)
    high = np.max(raw, axis=2, keepdims=True, where=there, initial=-np.inf)
    wide = high > low
    part = np.divide(raw - low, high - low, out=np.ones_like(raw), where=wide & there)
    found, seen = (
        np.zeros((len(runs.systems), len(runs.pool))),
        np.zeros((len(runs.systems), len(runs.pool)), dtype=bool),
    )
    system, query, at = np.nonzero(there)
    pair = runs.pairs[system, query, at]
    found[system, pair], seen[system, pair] = part[system, query, at], True
    return found, seen


def _of_retrieving(reduce: Callable[[Floats], Floats]) -> Callable[[Runs], Floats]:
    """The value by the scores of the systems that retrieve a document."""

    def value(runs: Runs) -> Floats:
        found, seen = _scores(runs)
        return reduce(np.where(seen, found, np.nan))

    return value


def _comb_mnz(runs: Runs) -> Floats:
    found, seen = _scores(runs)
    return np.asarray(found.sum(axis=0) * seen.sum(axis=0))


def _comb_anz(runs: Runs) -> Floats:
    found, _ = _scores(runs)
    n = (found > 0).sum(axis=0)
    return np.asarray(np.divide(found.sum(axis=0), n, out=np.zeros(found.shape[1]), where=n > 0))


FUSIONS = {
    one.name: one
    for one in (
        Fusion("take", "the best rank by any system", _take),
        Fusion("borda", "the lowest sum of ranks over systems", _borda),
        Fusion("condorcet", "documents that most systems rank above most others", _condorcet),
        Fusion("combmax", "the highest score, each list from 0 to 1", _of_retrieving(lambda s: np.nanmax(s, axis=0))),
        Fusion(
            "combmin",
            "the lowest score of the systems that retrieve it",
            _of_retrieving(lambda s: np.nanmin(s, axis=0)),
        ),
        Fusion("combmed", "their median score", _of_retrieving(lambda s: np.nanmedian(s, axis=0))),
        Fusion("combsum", "the sum of scores", lambda runs: np.asarray(_scores(runs)[0].sum(axis=0))),
        Fusion("combanz", "the mean of the scores above 0", _comb_anz),
        Fusion("combmnz", "the sum of scores, times the systems that retrieve it", _comb_mnz),
    )
}


def find_fusion(name: str) -> Fusion:
    """Return the fusion with this name."""
    if name not in FUSIONS:
        raise SelectionError(f"No fusion {name!r}: {', '.join(FUSIONS)}.{did_you_mean(name, FUSIONS)}")
    return FUSIONS[name]


@lru_cache(maxsize=len(FUSIONS))  # a policy asks at every step
def fused_places(runs: Runs, name: str) -> Ints:
    """Return the place of each pair in the fused ranking of its query, from 0; ties in the order of the pool.

    >>> runs = Runs.rows(["a", "a", "b", "b"], ["q"] * 4, ["x", "y", "y", "z"], [3.0, 1.0, 2.0, 1.0])
    >>> [(doc, int(place)) for doc, place in zip(runs.pool.docs, fused_places(runs, "borda"))]
    [('x', 1), ('y', 0), ('z', 2)]
    """
    value = np.round(find_fusion(name).value(runs), 12)
    order = np.lexsort((np.arange(len(value)), -value, runs.pool.query))
    start = np.cumsum(runs.pool.sizes) - runs.pool.sizes
    place = np.empty(len(value), dtype=np.int64)
    place[order] = np.arange(len(value)) - start[runs.pool.query[order]]
    return frozen(place)
