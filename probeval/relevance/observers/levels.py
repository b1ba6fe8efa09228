r"""The variance of labels at each level: queries, systems, systems on queries, pairs.

Labels of all pairs, in units of their standard deviation, are a linear mixed model with the same columns as relevance:

.. math:: y_d = \kappa + x_d\pi + \sum_k C_k[d] \cdot b_k + \epsilon_d,\qquad b_k \sim N(0, T_k I)

Its variances :math:`T` are estimated by restricted maximum likelihood, with Newton steps by average information
(Gilmour, Thompson and Cullis 1995). They say how much structure labels have, not how much of it is relevance
(:mod:`.worth` divides them). See docs/theory/observers.md#worth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from probeval.arrays import Floats, Ints
from probeval.relevance.covariances import Covariances
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.observers.prior import PAIR

__all__ = ["LevelVariances", "QueryStack", "Stacks", "level_variances"]

STEPS = 25  # of the search for the variances, at most
LONGEST = 1.0  # the longest step of a log variance, against overshooting
SETTLED = 0.05  # the largest step of a log variance at the end: half of LEAST_ERROR in worth.py
VAGUE = (-3.0, 2.0)  # mean and sd of a log variance before labels are seen, in units of the labels' variance
FLAT = 1e-4  # the precision of the intercept and the slopes on terms: as good as none, labels having a variance of 1
MISSING = 1e9  # the noise variance of a pair without label, which then says nothing
MIN_LOG_VARIANCE = -9.0  # the least log variance: a level without any (an sd of .011) stays finite


@dataclass(frozen=True, eq=False)
class QueryStack:
    """Queries with the same number of pairs, as a stack of matrices."""

    pairs: Ints  # positions in the pool, shape (query, pair)
    factors: Mapping[str, Floats]  # C_k of each effect within queries, shape (query, pair, column)

    def covariances(self, diagonal: Floats, sds: Mapping[str, float]) -> Covariances:
        """Return a diagonal, shape (query, pair), plus the covariances of effects with these standard deviations."""
        return Covariances.of(diagonal, self.factor(sds))

    def factor(self, sds: Mapping[str, float]) -> Floats:
        """Return the columns of all effects, times their standard deviations, shape (query, pair, column)."""
        none = np.zeros((*self.pairs.shape, 0))
        return np.concatenate([none, *(sds[name] * rows for name, rows in self.factors.items())], axis=2)


@dataclass(frozen=True, eq=False)
class Stacks:
    """All queries of a campaign in stacks, with the columns of its campaign effects."""

    design: ModelDesign

    @cached_property
    def stacks(self) -> tuple[QueryStack, ...]:
        """The queries by their number of pairs."""
        pool = self.design.pool
        first = np.cumsum(pool.sizes) - pool.sizes
        out = []
        for size in np.unique(pool.sizes[pool.sizes > 0]).tolist():
            pairs = first[pool.sizes == size][:, None] + np.arange(size)
            factors = {}
            for effect in self.design.of_query:
                rows = effect.columns.rows(pairs.ravel()).reshape(*pairs.shape, -1)
                # A system that retrieved nothing for these queries has no column: the fewer, the faster the algebra.
                factors[effect.name] = rows[:, :, rows.any(axis=(0, 1))]
            out.append(QueryStack(pairs, factors))
        return tuple(out)

    @cached_property
    def rows(self) -> Floats:
        """The columns of the terms and of the campaign's effects, shape (pair, column)."""
        return self.design.campaign_rows(np.arange(len(self.design.pool)))

    @cached_property
    def with_level(self) -> Floats:
        """The same with a column of ones before them."""
        return np.concatenate([np.ones((len(self.rows), 1)), self.rows], axis=1)

    @cached_property
    def columns(self) -> dict[str, slice]:
        """The columns of the terms and of each of the campaign's effects."""
        sizes = {"terms": self.design.terms.shape[1]} | {e.name: e.columns.n_columns for e in self.design.of_campaign}
        ends = np.cumsum([0, *sizes.values()]).tolist()
        return {name: slice(a, b) for name, a, b in zip(sizes, ends, ends[1:], strict=False)}


@dataclass(frozen=True, eq=False)
class LevelVariances:
    """Estimates of a family's variances by level, with the slopes of its labels on the terms."""

    names: tuple[str, ...]  # the levels: effects within queries, pair, effects of the campaign
    log_variance: Floats  # log T, shape (level,)
    error: Floats  # its standard error
    slopes: Floats  # on the terms, shape (term,)
    slope_errors: Floats  # their standard errors
    structure: float  # the log-likelihood ratio against noise; slopes on the terms are free in both


@dataclass(frozen=True, eq=False)
class MixedModelFit:
    """The mixed model at some variances."""

    value: float  # the restricted log-likelihood
    slope: Floats  # in each log variance
    information: Floats  # average information, shape (level, level)
    coefficients: Floats  # of the intercept, the terms and the campaign's effects
    covariance: Floats


def level_variances(stacks: Stacks, scores: Floats, extra: Floats) -> LevelVariances:
    """Return the variances of labels by level.

    Parameters
    ----------
    stacks
        The campaign.
    scores, extra
        The labels, and their known additional noise variance, infinite without a label, shapes (pair,).
    """
    design = stacks.design
    names = (*(e.name for e in design.of_query), PAIR, *(e.name for e in design.of_campaign))
    mean, sd = VAGUE
    # Single pairs are expected to have more of the labels' variance, which is 1 in all, than any other level.
    centre = np.array([-1.0 if name == PAIR else mean for name in names])
    at = centre.copy()
    noise = np.where(np.isfinite(extra), extra, MISSING)
    # Newton's method for restricted likelihood times vague prior. Average information takes the place of the observed
    # one: it needs no trace of a product of two large matrices, and is never negative.
    for _ in range(STEPS):
        fit = mixed_model(stacks, scores, noise, names, at)
        curve = fit.information + np.eye(len(names)) / sd**2
        step = np.linalg.solve(curve, fit.slope - (at - centre) / sd**2)
        step = np.clip(step, -LONGEST, LONGEST)
        at = np.maximum(at + step, MIN_LOG_VARIANCE)
        if np.abs(step).max() < SETTLED:
            break
    fit = mixed_model(stacks, scores, noise, names, at)
    error = np.sqrt(np.diag(np.linalg.inv(fit.information + np.eye(len(names)) / sd**2)))
    # Labels that are noise: their whole variance, 1, is of single pairs.
    none = np.array([0.0 if name == PAIR else MIN_LOG_VARIANCE for name in names])
    terms = slice(1, 1 + design.terms.shape[1])
    return LevelVariances(
        names=names,
        log_variance=at,
        error=error,
        slopes=fit.coefficients[terms],
        slope_errors=np.sqrt(np.diag(fit.covariance)[terms]),
        structure=fit.value - mixed_model(stacks, scores, noise, names, none).value,
    )


def mixed_model(stacks: Stacks, scores: Floats, noise: Floats, names: tuple[str, ...], at: Floats) -> MixedModelFit:
    r"""Return the restricted log-likelihood at some log variances, its slope and its average information.

    With :math:`V` the variance of a query's labels given the campaign's coefficients, :math:`A` their columns,
    :math:`\Lambda` their prior precision and :math:`a = V^{-1}(y - A\hat g)`: for an effect within queries the slope is
    :math:`\frac12 T \{a'Ga - \text{tr}(V^{-1}G) + \text{tr}(S^{-1} A'V^{-1}GV^{-1}A)\}` with
    :math:`S = \Lambda + A'V^{-1}A`; the average information of two levels is :math:`\frac12 q_k' P q_l`, with
    :math:`q_k = T_k G_k a` and :math:`P` the projection.
    """
    variance = dict(zip(names, np.exp(at).tolist(), strict=True))
    design = stacks.design
    n_columns = 1 + stacks.rows.shape[1]
    # Lambda: effects of the campaign are coefficients g with the precision 1/T, like the intercept and the terms with
    # none. So queries are independent given g, and each has a small V of its own.
    precision = np.full(n_columns, FLAT)
    for effect in design.of_campaign:
        where = stacks.columns[effect.name]
        precision[1 + where.start : 1 + where.stop] = 1 / variance[effect.name]
    information, right = np.diag(precision), np.zeros(n_columns)
    value, parts = 0.0, []
    sds = {name: float(np.sqrt(v)) for name, v in variance.items()}
    # First pass: S = Lambda + sum_q A'V^-1 A and the normal equations S g = sum_q A'V^-1 y.
    for stack in stacks.stacks:
        inverse = stack.covariances(variance[PAIR] + noise[stack.pairs], sds).inverse
        value -= float(inverse.log_determinants.sum()) / 2
        rows = stacks.with_level[stack.pairs]
        weighed = inverse.times(rows)
        information += np.tensordot(rows, weighed, axes=([0, 1], [0, 1]))
        right += np.tensordot(weighed, scores[stack.pairs], axes=([0, 1], [0, 1]))
        parts.append((stack, inverse, rows, weighed))
    covariance = np.linalg.inv(information)
    g = covariance @ right
    # l = -(sum log|V| + log|S| - log|Lambda| + sum r'V^-1 r + g'Lambda g)/2: log|S| is what restriction adds.
    value += float(np.log(precision).sum() - np.linalg.slogdet(information)[1] - precision @ g**2) / 2
    slope = np.zeros(len(names))
    # Second pass: slopes, and the parts of q'Pq with P = V^-1 - V^-1 A S^-1 A'V^-1.
    projected = np.zeros((len(names), len(names)))
    through = np.zeros((len(names), n_columns))
    for stack, inverse, rows, weighed in parts:
        residual = scores[stack.pairs] - rows @ g
        a = inverse.times(residual[..., None])[..., 0]
        value -= float((residual * a).sum()) / 2
        moved = np.zeros((len(names), *stack.pairs.shape))
        for i, name in enumerate(names):
            if name == PAIR:  # G = I
                moved[i] = variance[name] * a
                traced = float(inverse.traces.sum())
                inner = np.tensordot(weighed, weighed, axes=([0, 1], [0, 1]))
            elif name in stack.factors:  # G = CC'
                factor = stack.factors[name]
                transposed = factor.transpose(0, 2, 1)
                moved[i] = variance[name] * (factor @ (transposed @ a[..., None]))[..., 0]
                traced = float((factor * inverse.times(factor)).sum())
                across = transposed @ weighed
                inner = np.tensordot(across, across, axes=([0, 1], [0, 1]))
            else:  # q = T A_k A_k'Py = A_k g_k, and the slope follows from g below
                where = stacks.columns[name]
                moved[i] = rows[:, :, 1 + where.start : 1 + where.stop] @ g[1 + where.start : 1 + where.stop]
                continue
            slope[i] += (
                float((moved[i] * a).sum()) + variance[name] * (float((covariance * inner).sum()) - traced)
            ) / 2
        back = inverse.times(moved.transpose(1, 2, 0))
        projected += np.tensordot(moved, back, axes=([1, 2], [0, 1]))
        through += np.tensordot(moved, weighed, axes=([1, 2], [0, 1]))
    for i, name in enumerate(names):
        if name in stacks.columns:  # Fisher's identity: (E[g'g]/T - n)/2
            where = slice(1 + stacks.columns[name].start, 1 + stacks.columns[name].stop)
            spread = float(g[where] @ g[where] + np.trace(covariance[where, where]))
            slope[i] = (spread / variance[name] - (where.stop - where.start)) / 2
    average = (projected - through @ covariance @ through.T) / 2
    return MixedModelFit(value, slope, (average + average.T) / 2, g, covariance)
