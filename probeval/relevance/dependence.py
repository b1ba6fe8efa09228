r"""How the gains of different pairs depend on one another: what judging one says of the others. [gain]

Given a model's parameters :math:`\theta` pairs are independent; they share what is not known of :math:`\theta`, so that
:math:`\text{Cov}(G_d, G_e) = \text{Cov}_\theta(m_d, m_e)` for two pairs, with :math:`m` the expected gains.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.linalg import solve_triangular

from probeval.arrays import Floats, Ints
from probeval.relevance.distribution import RelevanceDistribution
from probeval.relevance.effects.cutpoints import gap_columns
from probeval.relevance.inference.blocks import Problem
from probeval.relevance.inference.laplace import LaplacePosterior, resolvents
from probeval.relevance.inference.newton import Mode

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

    To first order :math:`\delta m_d = A_d\,\delta g + s_d\,\delta f_d + e_d\,\delta v_q`: in the campaign's parameters,
    in the sum :math:`f_d` of the effects within the query, and in the query's cutpoint scale. With :math:`T` the prior
    covariance of a query's :math:`m` with its local parameters and :math:`R = H - HLH`, its posterior covariance given
    :math:`g` is the prior's less :math:`TRT'`.

    Parameters
    ----------
    problem, mode
        The judged pairs, and the posterior at the best setting of the variances.
    slope, scale_slope
        :math:`s` and :math:`e`, 0 for judged pairs, shapes (pair,).
    shared
        The part of the campaign's parameters, as a factor: its square is their covariance, shape (pair, parameter).
    to_local
        :math:`T` of each query with judgments, by query, shapes (pair, coordinate).
    """

    problem: Problem
    mode: Mode
    slope: Floats
    scale_slope: Floats
    shared: Floats
    to_local: dict[int, Floats]

    @classmethod
    def of(cls, posterior: LaplacePosterior, relevance: RelevanceDistribution, gains: Floats) -> Linearised:
        """From a posterior and the distribution that was drawn from it."""
        problem, mode = posterior.problem, posterior.best
        design, layout = problem.design, problem.layout
        by_cut = relevance.gain_summary(gains).steepness
        slope = by_cut.sum(axis=1)
        log_scale = np.zeros(len(design.pool.queries))
        log_scale[problem.queries[: len(problem.at_scale)]] = mode.local[problem.at_scale]
        middle, apart = gap_columns(len(design.cuts))
        drawn_apart = np.exp(log_scale)[design.pool.query, None] * (by_cut @ apart)
        scale_slope = drawn_apart @ mode.campaign[layout["gaps"]]
        rows = np.empty((len(slope), layout.size))
        rows[:, layout["first_cut"]] = slope[:, None]
        rows[:, layout["gaps"]] = slope[:, None] * middle + drawn_apart
        rows[:, layout.columns] = slope[:, None] * design.campaign_rows(np.arange(len(slope)))
        to_local = _to_local(problem, mode, slope, scale_slope)
        for (query, t), where in zip(to_local.items(), _coordinates(problem), strict=True):
            rows[_pairs(problem, query)] -= t @ mode.pushed[where]  # the local parameters give way
        shared = solve_triangular(mode.schur, rows.T, lower=True, overwrite_b=True).T
        return cls(problem, mode, slope, scale_slope, shared, to_local)

    @cached_property
    def _variances(self) -> dict[str, float]:
        return _variances(self.problem, self.mode)

    @cached_property
    def _scale_variance(self) -> float:
        scale = self.problem.design.cutpoint_scale
        return 0.0 if scale is None else self._variances[scale.name]

    @cached_property
    def _resolvents(self) -> dict[int, Floats]:
        """:math:`R` of each query with judgments."""
        stacks = zip(self.problem.blocks, resolvents(self.mode), strict=True)
        return {int(q): r for block, stack in stacks for q, r in zip(block.queries, stack, strict=True)}

    @property
    def variance(self) -> Floats:
        """Of each pair's expected gain, shape (pair,)."""
        effects = self.problem.design.of_query
        within = sum(self._variances[e.name] * e.columns.squares for e in effects)
        own = self.slope**2 * within + self.scale_slope**2 * self._scale_variance
        for query, t in self.to_local.items():
            own[_pairs(self.problem, query)] -= ((t @ self._resolvents[query]) * t).sum(axis=1)
        return np.asarray((self.shared**2).sum(axis=1) + np.maximum(own, 0.0))

    def times(self, columns: Floats) -> Floats:
        """The covariance matrix times some columns, shape (pair, column)."""
        pool = self.problem.design.pool
        out = self.shared @ (self.shared.T @ columns)
        scaled = self.slope[:, None] * columns
        for effect in self.problem.design.of_query:
            inner = effect.columns.gram_by_query(scaled, pool.query, len(pool.queries))
            out += (self._variances[effect.name] * self.slope)[:, None] * inner
        if self._scale_variance:
            sums = np.zeros((len(pool.queries), columns.shape[1]))
            np.add.at(sums, pool.query, self.scale_slope[:, None] * columns)
            out += self._scale_variance * self.scale_slope[:, None] * sums[pool.query]
        for query, t in self.to_local.items():
            mine = _pairs(self.problem, query)
            out[mine] -= t @ (self._resolvents[query] @ (t.T @ columns[mine]))
        return np.asarray(out)

    def between(self, pairs: Ints) -> Floats:
        """The covariance matrix of some pairs, shape (n, n)."""
        out = self.shared[pairs] @ self.shared[pairs].T
        rows = {e.name: e.columns.rows(pairs) for e in self.problem.design.of_query}
        query = self.problem.design.pool.query[pairs]
        for q in np.unique(query).tolist():
            at = np.flatnonzero(query == q)
            slope, scale = self.slope[pairs[at]], self.scale_slope[pairs[at]]
            local = sum(self._variances[name] * r[at] @ r[at].T for name, r in rows.items())
            local = slope[:, None] * local * slope + self._scale_variance * np.outer(scale, scale)
            if q in self.to_local:
                t = self.to_local[q][pairs[at] - _pairs(self.problem, q).start]
                local = local - t @ self._resolvents[q] @ t.T
            out[np.ix_(at, at)] += local
        return np.asarray(out)


def _variances(problem: Problem, mode: Mode) -> dict[str, float]:
    return dict(zip(problem.design.names, np.exp(2 * mode.log_sd).tolist(), strict=True))


def _pairs(problem: Problem, query: int) -> slice:
    """The pairs of a query."""
    return problem.design.pool.pairs_of(query)


def _coordinates(problem: Problem) -> list[slice]:
    """The local parameters of each query with judgments, block by block."""
    return [
        slice(first, first + block.width)
        for block in problem.blocks
        for first in range(block.where.start, block.where.stop, block.width)
    ]


def _to_local(problem: Problem, mode: Mode, slope: Floats, scale_slope: Floats) -> dict[int, Floats]:
    """:math:`T`, the prior covariance of each judged query's expected gains with its local parameters, by query."""
    variances, design = _variances(problem, mode), problem.design
    queries = [int(q) for block in problem.blocks for q in block.queries]
    if not queries:
        return {}
    slices = [_pairs(problem, q) for q in queries]
    rows = np.concatenate([np.arange(s.start, s.stop) for s in slices])
    ends = np.cumsum([s.stop - s.start for s in slices])[:-1]
    parts = {e.name: np.split(e.columns.rows(rows), ends) for e in design.of_query}
    out: dict[int, Floats] = {}
    number = 0
    for block in problem.blocks:
        for i, query in enumerate(block.queries.tolist()):
            t = np.asarray(sum(variances[k] * p[number] @ block.factors[k][i].T for k, p in parts.items()))
            t *= slope[slices[number], None]
            if design.cutpoint_scale is not None:
                t[:, -1] = scale_slope[slices[number]] * variances[design.cutpoint_scale.name]
            out[query] = t
            number += 1
    return out
