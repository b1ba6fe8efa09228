r"""The centre of the posterior given the variances, by Newton's method with one block per query.

With :math:`g` the campaign's parameters, :math:`x` the local ones and :math:`K` their prior covariance
(:mod:`probeval.relevance.inference.blocks`), the objective is the expected log-likelihood :math:`\ell(g, x)` less
:math:`\frac12 (g-\mu)'P(g-\mu) + \frac12 x'K^{-1}x`. As :math:`K` may be singular, :math:`w = K^{-1}x` goes along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.lapack import dpotrs, dtrtri

from probeval.arrays import Floats, Ints
from probeval.errors import ModelError
from probeval.relevance.inference.blocks import Arrow, JudgedPairs, LocalPosterior, ParameterPoint, Prior, Start
from probeval.relevance.inference.expected_loglik import Derivatives, Logits, Parameters, Spread

__all__ = ["Mode", "find_mode", "inverse_root", "start_from"]

STEPS = 60  # of Newton's method; a handful is usual
EAGER = 2  # steps in which spreads are updated fully: the first ones go far
DAMPED = 20  # steps in which spreads are updated half way, against cycles; after these they are fixed
ENOUGH = 0.25  # the least share of the predicted gain that a step must achieve
SHORTEST = 1e-6  # a step that is always accepted: its failure would be due to rounding
TOLERANCE = 0.05  # the largest remaining gain at convergence, in log-likelihood: far below Monte Carlo error
BLUR = 0.06  # the largest remaining change of any spread at convergence, in logits
LEAST_GAP = 0.02  # between cutpoints, if a grade has no data and the optimal gap would be zero
HELD = 1e6  # the precision of a gap that is fixed at this value
LOOSEST = 0.5  # the largest share of its prior precision that a cutpoint scale may lose to its bend: keeps a maximum


@dataclass(frozen=True, eq=False)
class Mode:
    """The centre given the variances, with the matrices for draws around it. Local parameters are in problem order."""

    log_sd: Floats
    campaign: Floats  # g
    local: Floats  # x
    weight: Floats  # w = K^-1 x
    spread: Spread
    arrows: Sequence[Arrow]  # H, the information on x, one stack per block
    bend: Floats  # the part subtracted from H for each cutpoint scale, shape (query,)
    covariances: Sequence[LocalPosterior]  # L = (K^-1 + H)^-1, of x given g
    cross: Floats  # C, the information on x and g together, shape (local, campaign)
    followed: Floats  # L C: the response of x to g
    pushed: Floats  # K^-1 L C = C - H L C: the same in weights
    schur: Floats  # the Cholesky factor of the information on g, x integrated out
    log_evidence: float

    def of_campaign(self) -> Mode:
        """Return the centre of the campaign's parameters alone, for queries without judgments."""
        none = np.empty(0)
        return Mode(
            self.log_sd, self.campaign, none, none, Spread.none(0, 0), (), none, (), none, none, none, self.schur, 0.0
        )


@dataclass(frozen=True, eq=False)
class Expansion:
    """The objective to second order around a point; names as in :class:`Mode`."""

    value: float
    derivatives: Derivatives
    campaign_slope: Floats  # of the objective
    local_slope: Floats  # of the log-likelihood alone
    diagonal: Floats  # of H
    arrows: Sequence[Arrow]
    bend: Floats
    covariances: Sequence[LocalPosterior]
    cross: Floats
    followed: Floats
    pushed: Floats
    schur: Floats


@dataclass(frozen=True, eq=False)
class NewtonStep:
    """A Newton step: its target, and twice the predicted gain."""

    move: ParameterPoint
    decrement: float


def find_mode(problem: JudgedPairs, log_sd: Floats, start: Start | None = None, *, averaged: bool = True) -> Mode:
    """Return the centre of the posterior given the variances.

    The mode of the posterior shrinks the effects of pairs that are judged once. So the log-likelihood is averaged over
    each judged pair's own posterior, whose spread is computed along with the centre; without ``averaged`` it is the
    plain mode.
    """
    prior = problem.given(log_sd)
    point, spread = problem.begin(prior, start, averaged=averaged)
    for number in range(STEPS):
        here = linearise(problem, prior, point, spread)
        step = newton_step(problem, here, point)
        closed = closed_gaps(problem, prior, point, step)
        if len(closed):
            prior, point = hold(prior, point, closed)
            continue
        wider = posterior_spread(problem, here) if averaged else spread
        held = number >= DAMPED
        settled = step.decrement < TOLERANCE and (held or wider.differs(spread) < BLUR)
        point = line_search(problem, prior, point, spread, here.value, step, settled=settled)
        spread = spread.towards(wider, 1.0 if settled or number < EAGER else 0.0 if held else 0.5)
        if settled:
            return Mode(
                log_sd=log_sd,
                campaign=point.campaign,
                local=point.local,
                weight=point.weight,
                spread=spread,
                arrows=here.arrows,
                bend=here.bend,
                covariances=here.covariances,
                cross=here.cross,
                followed=here.followed,
                pushed=here.pushed,
                schur=here.schur,
                log_evidence=log_evidence(problem, prior, here, step, spread),
            )
    raise ModelError(f"Newton's method did not settle in {STEPS} steps.")


def start_from(problem: JudgedPairs, mode: Mode) -> Start:
    """Return a mode as the starting point of another fit, perhaps with more judgments."""
    log_scale, scale = np.zeros((2, len(problem.design.pool.queries)))
    weight, blur, tied = np.zeros((3, len(problem.design.pool)))
    scales = problem.scaled_queries
    log_scale[scales], scale[scales] = mode.local[problem.at_scale], mode.spread.scale
    weight[problem.pairs] = mode.weight[problem.at_pair]
    blur[problem.pairs], tied[problem.pairs] = mode.spread.predictor, mode.spread.tied
    return Start(mode.log_sd, mode.campaign, weight, log_scale, Spread(blur, tied, scale))


def objective(
    problem: JudgedPairs, prior: Prior, point: ParameterPoint, spread: Spread
) -> tuple[float, Parameters, Logits]:
    r"""Return :math:`\ell(g, x) - \frac12 (g-\mu)'P(g-\mu) - \frac12 x'K^{-1}x`, its arguments and its logits."""
    at = problem.parameters(point)
    value, logits = problem.likelihood.value(at, spread)
    off = point.campaign - prior.mean
    penalty = off @ prior.precision @ off + point.weight @ point.local
    return value - float(penalty) / 2, at, logits


def linearise(problem: JudgedPairs, prior: Prior, point: ParameterPoint, spread: Spread) -> Expansion:
    r"""Expand the objective to second order: :math:`L = (I + KH)^{-1}K` per query, and the campaign's Schur complement.

    With :math:`H`, :math:`C` and :math:`G` the information on local parameters, on both kinds together, and on the
    campaign's, the information on the campaign's alone is :math:`G + P - C'LC`.
    """
    value, at, logits = objective(problem, prior, point, spread)
    seen = problem.likelihood.derivatives(at, logits)
    rows, cuts = problem.rows, problem.layout.cuts
    bend = np.minimum(seen.bend, LOOSEST * prior.scale_precision)
    slope, diagonal = np.zeros((2, problem.n_local))
    slope[problem.at_pair], slope[problem.at_scale] = seen.predictor, seen.scale
    diagonal[problem.at_pair], diagonal[problem.at_scale] = seen.predictor_twice, seen.scale_twice - bend
    arrows = problem.arrows(diagonal, seen.predictor_scale)
    cross = np.zeros((problem.n_local, problem.layout.size))
    cross[problem.at_pair] = np.concatenate([seen.predictor_cuts, rows * seen.predictor_twice[:, None]], axis=1)
    if problem.scaled:
        sums = problem.by_query(rows * seen.predictor_scale[:, None])
        cross[problem.at_scale] = np.concatenate([seen.scale_cuts, sums], axis=1)
    covariances = [k.posterior(arrow) for arrow, k in zip(arrows, prior.local, strict=True)]
    followed = problem.times(covariances, cross)
    pushed = cross - problem.information_times(diagonal, seen.predictor_scale, followed)
    information = np.zeros((problem.layout.size,) * 2)  # only its lower triangle is used
    information[cuts, cuts] = seen.cuts_twice - cross[:, cuts].T @ followed[:, cuts]
    information[problem.layout.columns] = rows.T @ pushed[problem.at_pair]
    information += prior.precision
    return Expansion(
        value=value,
        derivatives=seen,
        campaign_slope=np.concatenate([seen.cuts, rows.T @ seen.predictor])
        - prior.precision @ (point.campaign - prior.mean),
        local_slope=slope,
        diagonal=diagonal,
        arrows=arrows,
        bend=bend,
        covariances=covariances,
        cross=cross,
        followed=followed,
        pushed=pushed,
        schur=np.asarray(np.linalg.cholesky(information)),
    )


def newton_step(problem: JudgedPairs, here: Expansion, point: ParameterPoint) -> NewtonStep:
    r"""Return the step to the maximum of the expansion.

    With :math:`t = \nabla_x \ell + Hx`, the local parameters would go to :math:`Lt` by themselves. So
    :math:`S\,\delta g = \nabla_g - C'(Lt - x)` with :math:`S` the Schur complement, and then
    :math:`x + \delta x = L(t - C\,\delta g)`, whose weights are :math:`t - C\,\delta g - H(x + \delta x)`.
    """
    arm = here.derivatives.predictor_scale
    target = here.local_slope + problem.information_times(here.diagonal, arm, point.local)
    alone = problem.times(here.covariances, target) - point.local
    campaign = _solve(here.schur, here.campaign_slope - here.cross.T @ alone)
    right = target - here.cross @ campaign
    ahead = problem.times(here.covariances, right)
    local = ahead - point.local
    weight = right - problem.information_times(here.diagonal, arm, ahead) - point.weight
    decrement = here.campaign_slope @ campaign + (here.local_slope - point.weight) @ local
    return NewtonStep(ParameterPoint(campaign, local, weight), float(decrement))


def closed_gaps(problem: JudgedPairs, prior: Prior, point: ParameterPoint, step: NewtonStep) -> Ints:
    """Return the gaps that a step would close because a grade has no data, except those already fixed."""
    gaps = np.arange(*problem.layout["gaps"].indices(problem.layout.size))
    small = (point.campaign[gaps] < 2 * LEAST_GAP) & (prior.precision[gaps, gaps] < HELD)
    return gaps[small & ((point.campaign + step.move.campaign)[gaps] < LEAST_GAP)]


def hold(prior: Prior, point: ParameterPoint, gaps: Ints) -> tuple[Prior, ParameterPoint]:
    """Fix these gaps at the least value."""
    mean, precision, campaign = prior.mean.copy(), prior.precision.copy(), point.campaign.copy()
    precision[gaps], precision[:, gaps], precision[gaps, gaps] = 0.0, 0.0, HELD
    mean[gaps], campaign[gaps] = LEAST_GAP, LEAST_GAP
    return replace(prior, mean=mean, precision=precision), replace(point, campaign=campaign)


def line_search(
    problem: JudgedPairs,
    prior: Prior,
    point: ParameterPoint,
    spread: Spread,
    value: float,
    step: NewtonStep,
    *,
    settled: bool,
) -> ParameterPoint:
    """Return the longest of the steps 1, 1/2, 1/4, .. that keeps gaps positive and achieves the required gain."""
    size = 1.0
    while True:
        there = ParameterPoint(
            point.campaign + size * step.move.campaign,
            point.local + size * step.move.local,
            point.weight + size * step.move.weight,
        )
        if np.all(there.campaign[problem.layout["gaps"]] > 0):
            if settled or size < SHORTEST:
                return there
            if objective(problem, prior, there, spread)[0] >= value + ENOUGH * size * step.decrement:
                return there
        size /= 2


def posterior_spread(problem: JudgedPairs, here: Expansion) -> Spread:
    """Return the posterior standard deviations over which the log-likelihood is averaged; gaps are treated as fixed."""
    inverse = inverse_root(here.schur)
    moved = -here.followed[problem.at_pair]  # the predictors with the campaign's parameters
    moved[:, problem.layout["first_cut"].start] += 1.0
    moved[:, problem.layout.columns] += problem.rows
    moved = moved @ inverse.T
    diagonal, with_scale = np.empty((2, problem.n_local))
    for block, covariance in zip(problem.blocks, here.covariances, strict=True):
        diagonal[block.where] = covariance.diagonals.ravel()
        with_scale[block.where] = covariance.with_last.ravel()
    predictor = np.sqrt(np.einsum("ij,ij->i", moved, moved) + diagonal[problem.at_pair])
    if not problem.scaled:
        return Spread(predictor, np.zeros(len(predictor)), np.empty(0))
    scales = -here.followed[problem.at_scale] @ inverse.T
    scale = np.sqrt(np.einsum("ij,ij->i", scales, scales) + diagonal[problem.at_scale])
    both = np.einsum("ij,ij->i", moved, scales[problem.place]) + with_scale[problem.at_pair]
    tied = both / scale[problem.place]
    return Spread(predictor, tied, scale)


def log_evidence(problem: JudgedPairs, prior: Prior, here: Expansion, step: NewtonStep, spread: Spread) -> float:
    r"""Return the log marginal likelihood of the variances.

    :math:`\max + \frac12 \log|P| - \frac12 \log|I + KH| - \frac12 \log|S|`, and half the trace of the information times
    the posterior covariance: the amount by which the expected log-likelihood falls below its value at the centre.
    """
    seen = here.derivatives  # the bend here is the true one, not the capped one of H
    traced = seen.predictor_twice @ spread.predictor**2 + (seen.scale_twice - seen.bend) @ spread.scale**2
    if problem.scaled:
        traced += 2 * seen.predictor_scale @ (spread.tied * spread.scale[problem.place])
    log_det = sum(k.log_determinant(arrow) for arrow, k in zip(here.arrows, prior.local, strict=True))
    halves = step.decrement + float(np.linalg.slogdet(prior.precision)[1]) - log_det + traced
    return float(here.value + halves / 2 - np.log(np.diag(here.schur)).sum())


def inverse_root(factor: Floats) -> Floats:
    """Return the inverse of a lower Cholesky factor, by LAPACK itself: checks would take longer than the work."""
    return np.asarray(dtrtri(factor, lower=1)[0])


def _solve(factor: Floats, right: Floats) -> Floats:
    return np.asarray(dpotrs(factor, right, lower=1)[0])
