"""Features from the systems' outputs only, without judgments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from probeval.arrays import Floats, Ints
from probeval.data.pool import Pool
from probeval.data.problem import Problem
from probeval.data.runs import Runs
from probeval.errors import FeatureError

__all__ = ["OUTPUTS", "Retrievals", "SystemAgreement"]

AGREED = 30  # steps of the power iteration
EQUAL = 0.1  # the share of equal weights, so that a document that only odd systems retrieve has a finite logarithm


@dataclass(frozen=True, eq=False)
class SystemAgreement:
    """What features take from all queries at once.

    Parameters
    ----------
    weights
        The weight of each system: the leading eigenvector of the cosines of the systems' sets of pairs, and in part
        equal, shape (system,). Cosines and not counts: long lists would agree with everything.
    overlap
        The number of pairs over that of places in the lists.
    """

    weights: Floats
    overlap: float


@dataclass(frozen=True, eq=False)
class Retrievals:
    """Every retrieval of a pool's pairs in the first ranks of the lists, one row each.

    Parameters
    ----------
    problem
        The pairs, and the whole lists, which may be deeper than the pool.
    depth
        The number of ranks to search.
    common
        What features take from all queries; by default from those of the problem.
    """

    problem: Problem
    depth: int
    common: SystemAgreement | None = None

    @property
    def runs(self) -> Runs:
        """The whole lists."""
        return self.problem.deep

    @property
    def pool(self) -> Pool:
        """The pairs."""
        return self.problem.pool

    @cached_property
    def rows(self) -> tuple[Ints, Ints, Ints, Ints]:
        """System, query, rank (from 0) and pair of each retrieval, each with shape (retrieval,)."""
        system, query, rank = np.nonzero(self.runs.retrieved[:, :, : self.depth])
        pair = self.problem.place[self.runs.pairs[system, query, rank]]
        inside = pair >= 0
        return system[inside], query[inside], rank[inside], pair[inside]

    @cached_property
    def has(self) -> csr_array:
        """1 where a system retrieved a pair, shape (pair, system)."""
        system, _, _, pair = self.rows
        return csr_array((np.ones(len(pair)), (pair, system)), shape=(len(self.pool), len(self.runs.systems)))

    @cached_property
    def agreement(self) -> SystemAgreement:
        """What features take from all queries."""
        if self.common is not None:
            return self.common
        n_systems = len(self.runs.systems)
        weight = np.full(n_systems, 1 / n_systems)
        root = np.sqrt(np.maximum(self.has.sum(axis=0), 1.0))  # of the lengths of the lists, D in D^-1/2 H'H D^-1/2
        for _ in range(AGREED):
            weight = self.has.T @ (self.has @ (weight / root)) / root
            weight /= weight.sum()
        places = self.depth * n_systems * len(self.runs.queries)
        return SystemAgreement((1 - EQUAL) * weight + EQUAL / n_systems, len(self.pool) / places)

    def total(self, weight: Floats | None = None) -> Floats:
        """Return the sum of a weight over the retrievals of each pair (the count without a weight), shape (pair,)."""
        return np.bincount(self.rows[3], weight, minlength=len(self.pool)).astype(float)

    def mean(self, weight: Floats) -> Floats:
        """Return the mean of a weight over the retrievals of each pair, shape (pair,)."""
        return self.total(weight) / np.maximum(self.total(), 1)


def share_of_systems(seen: Retrievals) -> Floats:
    """FSYS."""
    return seen.total() / len(seen.runs.systems)


def share_of_teams(seen: Retrievals) -> Floats:
    """FTEAM."""
    if seen.runs.teams is None:
        raise FeatureError("fTEAM needs the team of each system: give systems.tsv with the columns run and team.")
    team = pd.factorize(np.array(seen.runs.teams, dtype=object))[0]
    n_teams = int(team.max()) + 1
    once = np.unique(seen.rows[3] * n_teams + team[seen.rows[0]]) // n_teams
    return np.bincount(once, minlength=len(seen.pool)) / n_teams


def authority(seen: Retrievals) -> Floats:
    """WSYS: the systems' weights are the leading eigenvector of their cosines, and in part equal."""
    return np.asarray(seen.has @ seen.agreement.weights)


def overlap(seen: Retrievals) -> Floats:
    """OV."""
    return np.full(len(seen.pool), seen.agreement.overlap)


def mean_rank(seen: Retrievals) -> Floats:
    """ARANK."""
    return seen.mean((seen.rows[2] + 1).astype(float))


def best_rank(seen: Retrievals) -> Floats:
    """BRANK."""
    best = np.full(len(seen.pool), np.inf)
    np.minimum.at(best, seen.rows[3], seen.rows[2] + 1.0)
    return best


def reciprocal_ranks(seen: Retrievals) -> Floats:
    """RSUM."""
    return seen.total(1 / (seen.rows[2] + 1)) / len(seen.runs.systems)


def reciprocal_rank_fusion(seen: Retrievals) -> Floats:
    """RRF."""
    return seen.total(61 / (61 + seen.rows[2])) / len(seen.runs.systems)


def rank_percentile(seen: Retrievals) -> Floats:
    """PRANK."""
    tied = np.round(reciprocal_ranks(seen), 12)  # equal ranks by different systems must give equal sums in any order
    ranks = pd.Series(tied).groupby(seen.pool.query).rank(pct=True)
    return np.asarray(ranks, dtype=np.float64)


def standard_score(seen: Retrievals) -> Floats:
    """zSCORE: 0 if a list's scores are all equal, missing if it has none."""
    scores = seen.runs.scores
    count = np.maximum((~np.isnan(scores)).sum(axis=2, keepdims=True), 1)
    off = scores - np.nansum(scores, axis=2, keepdims=True) / count
    spread = np.sqrt(np.nansum(off**2, axis=2, keepdims=True) / count)
    z = off / np.where(spread > 0, spread, 1.0)
    system, query, rank, _ = seen.rows
    return seen.mean(z[system, query, rank])


OUTPUTS: dict[str, Callable[[Retrievals], Floats]] = {
    "fSYS": share_of_systems,
    "fTEAM": share_of_teams,
    "wSYS": authority,
    "OV": overlap,
    "aRANK": mean_rank,
    "bRANK": best_rank,
    "rSUM": reciprocal_ranks,
    "rRF": reciprocal_rank_fusion,
    "pRANK": rank_percentile,
    "zSCORE": standard_score,
}
