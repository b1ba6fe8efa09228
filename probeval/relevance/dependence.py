r"""The covariance of gains between pairs: how much judging one pair informs about the others.

See docs/theory/judging.md#gain-covariance.

Given a model's parameters :math:`\theta` pairs are independent; they share the uncertainty about :math:`\theta`, so
that :math:`\text{Cov}(G_d, G_e) = \text{Cov}_\theta(m_d, m_e)` for two pairs, with :math:`m` the expected gains.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse import csr_array

from probeval.arrays import Floats, Ints
from probeval.data.pool import QueryBlock
from probeval.relevance.distribution import BLOCK, RelevanceDistribution
from probeval.relevance.effects.cutpoints import gap_columns
from probeval.relevance.inference.blocks import JudgedPairs
from probeval.relevance.inference.laplace import LaplacePosterior, resolvents
from probeval.relevance.inference.measured import MeasuredPrior
from probeval.relevance.inference.newton import Mode
from probeval.threads import in_order

__all__ = ["Dependence", "Drawn", "Linearised", "Unrelated"]


class Dependence(Protocol):
    """The covariance over pairs of their expected gains under the posterior."""

    @property
    def variance(self) -> Floats:
        """Return the variance of each pair's expected gain, shape (pair,)."""

    def times(self, columns: Floats) -> Floats:
        """Return the covariance matrix times some columns, shape (pair, column)."""

    def between(self, pairs: Ints) -> Floats:
        """Return the covariance matrix of some pairs, shape (n, n)."""


@dataclass(frozen=True)
class Unrelated:
    """Zero covariance, for models without a posterior."""

    n: int

    @property
    def variance(self) -> Floats:
        """Return zeros."""
        return np.zeros(self.n)

    def times(self, columns: Floats) -> Floats:
        """Return zeros."""
        return np.zeros((self.n, columns.shape[1]))

    def between(self, pairs: Ints) -> Floats:
        """Return zeros."""
        return np.zeros((len(pairs), len(pairs)))


@dataclass(frozen=True, eq=False)
class Drawn:
    """The covariance over posterior draws, for any posterior, with Monte Carlo noise.

    Parameters
    ----------
    off
        The centred expected gains under each draw, over the root of the degrees of freedom, shape (draw, pair).
    """

    off: Floats

    @classmethod
    def of(cls, relevance: RelevanceDistribution, gains: Floats) -> Drawn:
        """Return the covariance of a distribution with a posterior axis."""
        mean = relevance.moments(gains)[0]
        return cls((mean - mean.mean(axis=0)) / np.sqrt(max(len(mean) - 1, 1)))

    @property
    def variance(self) -> Floats:
        """Return the variance of each pair's expected gain, shape (pair,)."""
        return np.asarray((self.off**2).sum(axis=0))

    def times(self, columns: Floats) -> Floats:
        """Return the covariance matrix times some columns, shape (pair, column)."""
        return np.asarray(self.off.T @ (self.off @ columns))

    def between(self, pairs: Ints) -> Floats:
        """Return the covariance matrix of some pairs, shape (n, n)."""
        return np.asarray(self.off[:, pairs].T @ self.off[:, pairs])


@dataclass(frozen=True, eq=False)
class Linearised:
    r"""The hierarchical model's covariance by the delta method, without Monte Carlo noise.

    To first order :math:`\delta m_d = A_d\,\delta g + s_d\,\delta f_d + e_d\,\delta v_q`: in the campaign's parameters,
    in the sum :math:`f_d` of the effects within the query, and in the query's cutpoint scale. With :math:`T` the prior
    covariance of a query's :math:`m` with its local parameters and :math:`R = H - HLH`, its posterior covariance given
    :math:`g` is the prior's minus :math:`TRT'`.

    Parameters
    ----------
    problem, mode
        The judged pairs, and the posterior at the best setting of the variances.
    slope, scale_slope
        :math:`s` and :math:`e`, 0 for judged pairs, shapes (pair,).
    apart
        The slopes in the gaps, minus those of the middle of the cutpoints, shape (pair, gap).
    to_local
        :math:`T` of each query with judgments, by query, shapes (pair, coordinate).
    """

    problem: JudgedPairs
    mode: Mode
    slope: Floats
    scale_slope: Floats
    apart: Floats
    to_local: dict[int, Floats]

    @classmethod
    def of(cls, posterior: LaplacePosterior, relevance: RelevanceDistribution, gains: Floats) -> Linearised:
        """Return the covariance of a posterior and the distribution drawn from it."""
        problem, mode = posterior.problem, posterior.best
        design = problem.design
        by_cut = relevance.gain_summary(gains).steepness
        slope = by_cut.sum(axis=1)
        log_scale = np.zeros(len(design.pool.queries))
        log_scale[problem.scaled_queries] = mode.local[problem.at_scale]
        apart = np.exp(log_scale)[design.pool.query, None] * (by_cut @ gap_columns(len(design.cuts)).apart)
        scale_slope = apart @ mode.campaign[problem.layout["gaps"]]
        return cls(problem, mode, slope, scale_slope, apart, _to_local(problem, mode, slope, scale_slope))

    @property
    def _measured(self) -> MeasuredPrior | None:
        return self.problem.measured

    @cached_property
    def _middle(self) -> Floats:
        return gap_columns(len(self.problem.design.cuts)).middle

    @cached_property
    def _root(self) -> Floats:
        """A square root of the covariance of the campaign's parameters: its transpose times itself."""
        size = self.problem.layout.size
        return np.asarray(solve_triangular(self.mode.schur, np.eye(size), lower=True))

    def _campaign_rows(self, pairs: Ints) -> Floats:
        """Return :math:`A` of some pairs, with local parameters profiled out, shape (n, parameter)."""
        layout, slope = self.problem.layout, self.slope[pairs, None]
        rows = np.empty((len(pairs), layout.size))
        rows[:, layout["first_cut"]] = slope
        rows[:, layout["gaps"]] = slope * self._middle + self.apart[pairs]
        rows[:, layout.columns] = slope * self.problem.design.campaign_rows(pairs)
        if self._measured is not None:
            rows[:, layout.columns] += slope * self._measured.response(pairs)
        query = self.problem.design.pool.query[pairs]
        for q in np.unique(query).tolist():
            if q in self.to_local:
                mine = np.flatnonzero(query == q)
                t = self.to_local[q][pairs[mine] - _pairs(self.problem, q).start]
                rows[mine] -= t @ self.mode.pushed[self._coordinates[q]]
        return rows

    def _toward_campaign(self, block: QueryBlock, columns: Floats) -> Floats:
        """Return the transpose of :math:`A` times the columns of a block's pairs, shape (parameter, column)."""
        design, layout, mine = self.problem.design, self.problem.layout, columns[block.pairs]
        scaled = self.slope[block.pairs, None] * mine
        total = scaled.sum(axis=0)
        out = np.empty((layout.size, columns.shape[1]))
        out[layout["first_cut"]] = total
        out[layout["gaps"]] = np.outer(self._middle, total) + self.apart[block.pairs].T @ mine
        out[layout["coefficients"]] = design.terms[block.pairs].T @ scaled
        for common in design.campaign_columns:
            out[layout[common.name]] = common.columns.take(block.pairs).transposed_times(scaled)
        if self._measured is not None:
            out[layout.columns] += self._measured.response(block.pairs).T @ scaled
        for query in self._judged(block):
            pushed = self.mode.pushed[self._coordinates[query]]
            out -= pushed.T @ (self.to_local[query].T @ columns[_pairs(self.problem, query)])
        return out

    def _times_block(self, block: QueryBlock, columns: Floats, campaign: Floats, of: Linearised) -> Floats:
        """Return a block's rows of the covariance of another with this one, times the columns.

        ``campaign`` is the campaign-level term.
        """
        design, layout = self.problem.design, self.problem.layout
        query, n_queries = (
            design.pool.query[block.pairs] - block.queries.start,
            block.queries.stop - block.queries.start,
        )
        gaps = campaign[layout["gaps"]]
        out = design.terms[block.pairs] @ campaign[layout["coefficients"]]
        out += campaign[layout["first_cut"]] + self._middle @ gaps
        for common in design.campaign_columns:
            out += common.columns.take(block.pairs).times(campaign[layout[common.name]])
        scaled = self.slope[block.pairs, None] * columns[block.pairs]
        for effect in design.of_query:
            inner = effect.columns.take(block.pairs).gram_by_query(scaled, query, n_queries)
            out += np.multiply(inner, self._variances[effect.name], out=inner)
        if self._measured is not None:
            out += self._measured.response(block.pairs) @ campaign[layout.columns]
            out += self._measured.times(block, scaled)
        out *= of.slope[block.pairs, None]
        out += of.apart[block.pairs] @ gaps
        if self._scale_variance:
            at, shape = (query, np.arange(len(query) + 1)), (len(query), n_queries)
            mine_scales, of_scales = (csr_array((x.scale_slope[block.pairs], *at), shape=shape) for x in (self, of))
            out += self._scale_variance * np.asarray(of_scales @ np.asarray(mine_scales.T @ columns[block.pairs]))
        for judged in self._judged(block):
            mine = _pairs(self.problem, judged)
            known = self._resolvents[judged] @ (self.to_local[judged].T @ columns[mine])
            known += self.mode.pushed[self._coordinates[judged]] @ campaign
            out[mine.start - block.pairs.start : mine.stop - block.pairs.start] -= of.to_local[judged] @ known
        return np.asarray(out)

    def _judged(self, block: QueryBlock) -> list[int]:
        """Return the queries of a block that have judgments."""
        return [query for query in range(block.queries.start, block.queries.stop) if query in self.to_local]

    def _blocks(self, n_columns: int) -> list[QueryBlock]:
        return self.problem.design.pool.blocks(max(BLOCK // max(n_columns, self.problem.layout.size), 1))

    @cached_property
    def _coordinates(self) -> dict[int, slice]:
        """The local parameters of each query with judgments."""
        blocks = self.problem.blocks
        first = (range(block.where.start, block.where.stop, block.width) for block in blocks)
        return {
            int(q): slice(at, at + block.width)
            for block, starts in zip(blocks, first, strict=True)
            for q, at in zip(block.queries, starts, strict=True)
        }

    @cached_property
    def _variances(self) -> dict[str, float]:
        return self.problem.design.variances(self.mode.log_sd)

    @cached_property
    def _scale_variance(self) -> float:
        scale = self.problem.design.cutpoint_scale
        return 0.0 if scale is None else self._variances[scale.name]

    @cached_property
    def _resolvents(self) -> dict[int, Floats]:
        """:math:`R` of each query with judgments."""
        stacks = zip(self.problem.blocks, resolvents(self.mode), strict=True)
        return {int(q): r for block, stack in stacks for q, r in zip(block.queries, stack, strict=True)}

    @cached_property
    def variance(self) -> Floats:
        """Return the variance of each pair's expected gain, shape (pair,)."""
        effects = self.problem.design.of_query
        within = sum(self._variances[e.name] * e.columns.squares for e in effects)
        within = within if self._measured is None else within + self._measured.variance
        own = self.slope**2 * within + self.scale_slope**2 * self._scale_variance
        for query, t in self.to_local.items():
            own[_pairs(self.problem, query)] -= ((t @ self._resolvents[query]) * t).sum(axis=1)

        _ = self._middle, self._root, self._coordinates  # compute once, before threads need them

        def of_campaign(block: QueryBlock) -> Floats:
            moved = self._campaign_rows(np.arange(block.pairs.start, block.pairs.stop)) @ self._root.T
            return np.asarray(np.einsum("ij,ij->i", moved, moved))

        return np.concatenate(list(in_order(of_campaign, self._blocks(1)))) + np.maximum(own, 0.0)

    def times(self, columns: Floats) -> Floats:
        """Return the covariance matrix times some columns, shape (pair, column), by blocks of queries."""
        return self.times_across(self, columns)

    def times_across(self, of: Linearised, columns: Floats) -> Floats:
        """Return the covariance of another's quantities with these, times some columns, shape (pair, column)."""
        _ = self._middle, self._variances, self._resolvents, self._coordinates  # compute once, before threads need them
        blocks = self._blocks(columns.shape[1])
        toward = np.asarray(sum(in_order(lambda block: self._toward_campaign(block, columns), blocks)))
        campaign = self._root.T @ (self._root @ toward)
        return np.concatenate(list(in_order(lambda block: self._times_block(block, columns, campaign, of), blocks)))

    def between(self, pairs: Ints) -> Floats:
        """Return the covariance matrix of some pairs, shape (n, n)."""
        return self.between_across(self, pairs)

    def between_across(self, of: Linearised, pairs: Ints) -> Floats:
        """Return the covariance of another's quantities of some pairs with these, shape (n, n)."""
        out = (of._campaign_rows(pairs) @ self._root.T) @ (self._campaign_rows(pairs) @ self._root.T).T
        rows = {e.name: e.columns.rows(pairs) for e in self.problem.design.of_query}
        query = self.problem.design.pool.query[pairs]
        for q in np.unique(query).tolist():
            at = np.flatnonzero(query == q)
            mine, row = pairs[at], pairs[at] - _pairs(self.problem, q).start
            local = sum(self._variances[name] * r[at] @ r[at].T for name, r in rows.items())
            if self._measured is not None:
                local = local + self._measured.covariance(q, row, row)
            local = of.slope[mine, None] * local * self.slope[mine]
            local = local + self._scale_variance * np.outer(of.scale_slope[mine], self.scale_slope[mine])
            if q in self.to_local:
                local = local - of.to_local[q][row] @ self._resolvents[q] @ self.to_local[q][row].T
            out[np.ix_(at, at)] += local
        return np.asarray(out)

    @cached_property
    def latent(self) -> Linearised:
        r"""The same posterior for the latent relevance :math:`\theta` of pairs instead of their gains, judged ones too.

        A shift common to all pairs is part of it; the difference of two pairs is free of cutpoints.
        """
        one, none = np.ones(len(self.slope)), np.zeros(len(self.slope))
        to_local = _to_local(self.problem, self.mode, one, none)
        return Linearised(self.problem, self.mode, one, none, np.zeros_like(self.apart), to_local)

    @cached_property
    def centre(self) -> Floats:
        """The mean of each pair's latent relevance, cutpoints aside, shape (pair,)."""
        design, campaign = self.problem.design, self.mode.campaign[self.problem.layout.columns]
        out = design.terms @ campaign[: design.terms.shape[1]]
        for common in design.campaign_columns:
            out += common.columns.times(self.mode.campaign[self.problem.layout[common.name], None])[:, 0]
        if self._measured is not None:
            out += self._measured.offset + self._measured.response() @ campaign
        for query, t in self.latent.to_local.items():
            out[_pairs(self.problem, query)] += t @ self.mode.weight[self._coordinates[query]]
        return np.asarray(out)


def _pairs(problem: JudgedPairs, query: int) -> slice:
    return problem.design.pool.pairs_of(query)


def _to_local(problem: JudgedPairs, mode: Mode, slope: Floats, scale_slope: Floats) -> dict[int, Floats]:
    """Return :math:`T`, the prior covariance of each judged query's expected gains with its local parameters."""
    design = problem.design
    variances = design.variances(mode.log_sd)
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
            t = np.zeros((slices[number].stop - slices[number].start, block.width))
            for k, p in parts.items():
                t += variances[k] * p[number] @ block.factors[k][i].T
            if problem.measured is not None:
                row = problem.judged_of(query) - slices[number].start
                t[:, : len(row)] += problem.measured.covariance(query, None, row)
            t *= slope[slices[number], None]
            if design.cutpoint_scale is not None:
                t[:, -1] = scale_slope[slices[number]] * variances[design.cutpoint_scale.name]
            out[query] = t
            number += 1
    return out
