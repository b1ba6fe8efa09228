r"""How the gains of different pairs hang together: what judging one says of the others. [gain]

Given a model's parameters :math:`\theta` pairs are independent; what they share is what is not known of
:math:`\theta`, so that :math:`\text{Cov}(G_d, G_e) = \text{Cov}_\theta(m_d, m_e)` for two pairs, with :math:`m` the
expected gains.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np
from scipy.linalg import solve_triangular

from probeval.arrays import Floats, Ints
from probeval.relevance.distribution import RelevanceDistribution
from probeval.relevance.inference.laplace import LaplaceFit, Mode, Problem

__all__ = ["Dependence", "Drawn", "Linearised", "Unrelated"]


class Dependence(Protocol):
    """The covariance over pairs of their expected gains under the posterior."""

    @property
    def variance(self) -> Floats:
        """Of each pair's expected gain, shape (pair,)."""

    def times(self, columns: Floats) -> Floats:
        """The covariance matrix times some columns, shape (pair, column)."""

    def between(self, pairs: Ints) -> Floats:
        """The covariance matrix of some pairs, shape (n, n)."""


@dataclass(frozen=True)
class Unrelated:
    """No posterior, no dependence."""

    n: int

    @property
    def variance(self) -> Floats:
        """Nothing."""
        return np.zeros(self.n)

    def times(self, columns: Floats) -> Floats:
        """Nothing."""
        return np.zeros((self.n, columns.shape[1]))

    def between(self, pairs: Ints) -> Floats:
        """Nothing."""
        return np.zeros((len(pairs), len(pairs)))


@dataclass(frozen=True, eq=False)
class Drawn:
    """The covariance over posterior draws, for any posterior: it carries their noise.

    Parameters
    ----------
    off
        The expected gains under each draw less their mean, over the root of the degrees of freedom, shape (draw, pair).
    """

    off: Floats

    @classmethod
    def of(cls, relevance: RelevanceDistribution, gains: Floats) -> Drawn:
        """From a distribution with a posterior axis."""
        mean = relevance.moments(gains)[0]
        return cls((mean - mean.mean(axis=0)) / np.sqrt(max(len(mean) - 1, 1)))

    @property
    def variance(self) -> Floats:
        """Of each pair's expected gain, shape (pair,)."""
        return np.asarray((self.off**2).sum(axis=0))

    def times(self, columns: Floats) -> Floats:
        """The covariance matrix times some columns, shape (pair, column)."""
        return np.asarray(self.off.T @ (self.off @ columns))

    def between(self, pairs: Ints) -> Floats:
        """The covariance matrix of some pairs, shape (n, n)."""
        return np.asarray(self.off[:, pairs].T @ self.off[:, pairs])


@dataclass(frozen=True, eq=False)
class Linearised:
    r"""The hierarchical model's covariance by the delta method: no noise of draws.

    With :math:`s_{d\ell} = (g_\ell - g_{\ell-1})\,E[F_\ell(1-F_\ell)]` the mean slope of a pair's expected gain in each
    cutpoint, :math:`F_\ell = P(R_d \ge \ell)`, and :math:`s_d` their sum, :math:`m` is linear in the global effects and
    in the Gaussian process within each query, whose posterior Laplace's method gives.

    Parameters
    ----------
    problem, mode
        The judged pairs, and the posterior at the best setting of the variances.
    slope
        :math:`s_d`, 0 for judged pairs, shape (pair,).
    shared
        The part of the global effects, as a factor: its square is their covariance, shape (pair, effect).
    """

    problem: Problem
    mode: Mode
    slope: Floats
    shared: Floats

    @classmethod
    def of(cls, fit: LaplaceFit, relevance: RelevanceDistribution, gains: Floats) -> Linearised:
        """From a fit and the distribution that was drawn from it."""
        problem, mode = fit.problem, fit.best
        step = np.diff(gains[relevance.levels])
        steep = np.zeros((len(relevance.pool), len(step)))
        for probability in relevance.probability:  # one draw at a time: all of them at once are many
            above = np.cumsum(probability[:, ::-1], axis=1)[:, -2::-1]  # P(at least the next level)
            steep += above * (1 - above)
        by_cut = np.where(relevance.certain[:, None], 0.0, step * steep / len(relevance.probability))
        slope = by_cut.sum(axis=1)
        cuts, loose = problem.cut_slopes(by_cut, mode)
        rows = np.concatenate([cuts, slope[:, None] * problem.design.global_columns], axis=1)
        out = cls(problem, mode, slope, rows)
        for q, (at, _) in out._judged.items():
            mine = out._queries[q]
            rows[mine] -= slope[mine, None] * (out._to_judged(q) @ mode.pushed[at])  # the processes give way
        known = solve_triangular(mode.schur, rows.T, lower=True).T
        return cls(problem, mode, slope, np.concatenate([known, loose], axis=1))

    @cached_property
    def _queries(self) -> list[slice]:
        """Where the pairs of each query stand."""
        pool = self.problem.design.pool
        edges = np.searchsorted(pool.query, np.arange(len(pool.queries) + 1))
        return [slice(int(a), int(b)) for a, b in pairwise(edges)]

    @cached_property
    def _judged(self) -> dict[int, tuple[slice, Floats]]:
        """For each query with judged pairs, where these stand in the problem, and (K + D^-1)^-1."""
        out = {}
        for block, stack in zip(self.problem.blocks, self.problem.resolvents(self.mode), strict=True):
            for i, (q, resolvent) in enumerate(zip(block.queries, stack, strict=True)):
                first = block.where.start + i * block.size
                out[int(q)] = slice(first, first + block.size), resolvent
        return out

    def _scaled(self, rows: slice | Ints) -> list[Floats]:
        """The columns of the effects within queries for some pairs, each times its standard deviation."""
        sd = dict(zip(self.problem.kinds, np.exp(self.mode.log_sd), strict=True))
        return [sd[kind] * columns[rows] for kind, columns in self.problem.design.local.items()]

    def _to_judged(self, q: int, rows: slice | Ints | None = None) -> Floats:
        """The prior covariance of a query's pairs with its judged ones, shape (pair, judged)."""
        some = self._scaled(self._queries[q] if rows is None else rows)
        parts = zip(some, self._scaled(self.problem.pairs[self._judged[q][0]]), strict=True)
        return np.asarray(sum(a @ b.T for a, b in parts))

    @property
    def variance(self) -> Floats:
        """Of each pair's expected gain, shape (pair,)."""
        own = np.zeros(len(self.slope))
        for q, mine in enumerate(self._queries):
            own[mine] = sum((a**2).sum(axis=1) for a in self._scaled(mine))
            if q in self._judged:
                to_judged = self._to_judged(q)
                own[mine] -= ((to_judged @ self._judged[q][1]) * to_judged).sum(axis=1)
        return np.asarray((self.shared**2).sum(axis=1) + self.slope**2 * np.maximum(own, 0.0))

    def times(self, columns: Floats) -> Floats:
        """The covariance matrix times some columns, shape (pair, column)."""
        out = self.shared @ (self.shared.T @ columns)
        for q, mine in enumerate(self._queries):
            scaled = self.slope[mine, None] * columns[mine]
            local = sum(a @ (a.T @ scaled) for a in self._scaled(mine))
            if q in self._judged:
                to_judged = self._to_judged(q)
                local = local - to_judged @ (self._judged[q][1] @ (to_judged.T @ scaled))
            out[mine] += self.slope[mine, None] * local
        return np.asarray(out)

    def between(self, pairs: Ints) -> Floats:
        """The covariance matrix of some pairs, shape (n, n)."""
        out = self.shared[pairs] @ self.shared[pairs].T
        query = self.problem.design.pool.query[pairs]
        for q in np.unique(query):
            at = np.flatnonzero(query == q)
            rows = pairs[at]
            local = sum(a @ a.T for a in self._scaled(rows))
            if q in self._judged:
                to_judged = self._to_judged(int(q), rows)
                local = local - to_judged @ self._judged[int(q)][1] @ to_judged.T
            out[np.ix_(at, at)] += self.slope[rows, None] * local * self.slope[rows]
        return np.asarray(out)
