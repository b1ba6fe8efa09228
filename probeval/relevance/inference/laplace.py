r"""The hierarchical model by Laplace's method, the default: a normal posterior with the variances integrated out.

Given the variances, :mod:`probeval.relevance.inference.newton` finds the centre, with the log-likelihood averaged
over each judged pair's own posterior (a Gaussian variational approximation), which corrects the shrinkage of the plain
mode. The variances are optimised, and then integrated over a few points around the optimum, weighted by their marginal
likelihood. Given labels, each point has its own setting of their worth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from probeval.arrays import Codes, Floats, Ints
from probeval.data.scale import UNJUDGED
from probeval.relevance.inference.blocks import JudgedPairs, Start
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.inference.importance import ImportanceCheck, log_weights
from probeval.relevance.inference.newton import Mode, find_mode, inverse_root, start_from
from probeval.relevance.inference.posterior import DRAWS, Draws, Posterior
from probeval.relevance.inference.sampling import LaplaceDraws
from probeval.relevance.normal import Normal
from probeval.threads import in_order

__all__ = ["LaplacePosterior", "fit_laplace", "spread_points"]

STEPS = 25  # of the search for the variances
LONGEST = 0.7  # longest step on the log scale: a doubling, against divergence with few data
SETTLED = 0.02  # step that ends the search: two per cent of a standard deviation
LEAST_USED = 0.1  # least curvature: an effect without data stays at its prior
POINTS = 6  # points of the integration over variances: more change no score in the third digit
PRIOR_POINTS = 200  # of the prior of the variances, for predictions before judgments
MANY = 500  # judged pairs from which the points run on several cores: with fewer, threads cost more than they save
LEAST_WEIGHT = 1e-12  # least weight of a point, so that none is zero
EQUAL = 1e-6  # settings whose weights differ by less, relative to the largest, are equal: the first is the best


@dataclass(frozen=True, eq=False, repr=False)
class LaplacePosterior(Posterior):
    """The posterior as normals around centres: at the optimal variances, and at weighted points around them.

    Parameters
    ----------
    problem, best
        The judged pairs, and the centre at the best variances; given labels, at the best setting of their worth.
    problems, modes, weights
        The centres over which the variances, and the worth of labels, are integrated.
    log_sd_errors
        The posterior standard deviation of each log standard deviation, shape (effect,).
    log_evidence
        The log probability of the judgments before they were seen, all parameters integrated out.
    """

    problem: JudgedPairs
    best: Mode
    problems: tuple[JudgedPairs, ...]
    modes: tuple[Mode, ...]
    weights: Floats
    log_sd_errors: Floats
    log_evidence: float

    def _headline(self) -> str:
        return f"{len(self.problem.pairs):,} judged pairs, {len(self.modes)} points of the variances"

    @property
    def design(self) -> ModelDesign:
        """The campaign."""
        return self.problem.design

    @property
    def start(self) -> Start:
        """The starting point of the next refit."""
        points = tuple(start_from(problem, mode) for problem, mode in zip(self.problems, self.modes, strict=True))
        return replace(start_from(self.problem, self.best), points=points)

    @property
    def log_sds(self) -> Mapping[str, Normal]:
        """The posterior of each effect's log standard deviation, in normal form."""
        mean = self.weights @ np.array([m.log_sd for m in self.modes])
        moments = zip(self.design.names, mean, self.log_sd_errors, strict=True)
        return {name: Normal(float(m), float(s)) for name, m, s in moments}

    def draw(self, n: int, rng: np.random.Generator) -> LaplaceDraws:
        """Return joint draws, at each point of the variances in proportion to its weight, in random order."""
        return LaplaceDraws.of(self.problems, self.modes, self.weights, n, rng)

    @property
    def inference(self) -> str:
        """``laplace``."""
        return "laplace"

    @property
    def judged(self) -> tuple[Ints, Ints]:
        """The judged pairs, in increasing order, and their levels, shapes (judged,)."""
        order = np.argsort(self.problem.pairs)
        return self.problem.pairs[order], self.problem.level[order]

    def diagnostics(self) -> ImportanceCheck:
        """Pareto's k of the importance weights of 1,000 draws."""
        return self._checked

    @cached_property
    def _checked(self) -> ImportanceCheck:
        return ImportanceCheck.of(log_weights(self, self.draw(DRAWS, np.random.default_rng(0))))

    def own_draws(self, rng: np.random.Generator) -> tuple[LaplaceDraws, tuple[int, int], Mapping[str, Floats]]:
        """Return 1,000 draws as one chain, with the log of their importance weights."""
        draws = self.draw(DRAWS, rng)
        return draws, (1, DRAWS), {"log_weight": log_weights(self, draws)[None]}

    def before(self, rng: np.random.Generator) -> Draws:
        """Return draws of the prior."""
        return prior_draws(self.design, rng)

    @property
    def effective_settings(self) -> float:
        """The effective number of points of the integration: one over the sum of squared weights."""
        return float(1 / (self.weights**2).sum())


def fit_laplace(
    design: ModelDesign,
    judged: Codes,
    *,
    start: Start | None = None,
    steps: int = STEPS,
    points: int = POINTS,
) -> LaplacePosterior:
    """Fit the model to the judged pairs (grades as positions on the scale, negative where unjudged).

    Parameters
    ----------
    design, judged
        The campaign with the priors of all parts of the model, and the judgments, shape (pair,). The design of one
        collection can be used for any judgments.
    start
        The end of an earlier fit, from which a few steps suffice.
    steps, points
        The number of steps of the search for the variances, and of points to integrate over them.
    """
    mean = np.array([e.log_sd.mean for e in design.effects])
    sd = np.array([e.log_sd.sd for e in design.effects])
    measured = design.measured or (None,) * points
    same = JudgedPairs(design, judged, None if not design.measured else max(design.measured, key=lambda m: m.weight))
    mode = find_mode(same, mean if start is None else start.log_sd, start)
    seen = influence(same, mode)
    for _ in range(steps if len(same.pairs) else 0):
        curve = 1 / sd**2 + np.maximum(2 * seen.used, LEAST_USED)  # more than the information: small steps converge
        step = np.clip((seen.slope - (mode.log_sd - mean) / sd**2) / curve, -LONGEST, LONGEST)
        if np.abs(step).max(initial=0.0) < SETTLED:
            break
        mode = find_mode(same, mode.log_sd + step, start_from(same, mode))
        seen = influence(same, mode)
    errors = 1 / np.sqrt(1 / sd**2 + seen.information)
    offsets = spread_points(len(measured), len(mean))
    problems = tuple(same if m is None else JudgedPairs(design, judged, m) for m in measured)
    modes: tuple[Mode, ...] = (mode,)
    if len(measured) > 1:
        known = start is not None and len(start.points) == len(measured)
        starts = start.points if start is not None and known else (start_from(same, mode),) * len(measured)
        settings = [(p, mode.log_sd + errors * z, s) for p, z, s in zip(problems, offsets, starts, strict=True)]
        spread_out = in_order if len(same.pairs) >= MANY else map
        modes = tuple(spread_out(lambda setting: find_mode(*setting), settings))
    # Importance weights: the posterior over the normal that the points were drawn from.
    log_weight = np.array([m.log_evidence - np.sum(((m.log_sd - mean) / sd) ** 2) / 2 for m in modes])
    log_weight += (offsets**2).sum(axis=1) / 2 + np.log(errors / sd).sum()
    log_weight += [-np.log(len(modes)) if m is None else np.log(m.weight) for m in measured]
    weight = np.exp(log_weight - log_weight.max())
    evidence = float(log_weight.max() + np.log(weight.sum()))
    weight = (weight + LEAST_WEIGHT) / (weight + LEAST_WEIGHT).sum()
    best = int(np.argmax(weight >= (1 - EQUAL) * weight.max())) if design.measured else None
    centre = (same, mode) if best is None else (problems[best], modes[best])
    return LaplacePosterior(*centre, problems, modes, weight, errors, evidence)


def prior_draws(design: ModelDesign, rng: np.random.Generator) -> LaplaceDraws:
    """Return 1,000 draws of the model before any judgment.

    Without judgments a normal is exact given the variances, which here have 200 values; given labels, those of their
    worth.
    """
    none = np.full(len(design.pool), UNJUDGED, dtype=np.int16)
    return fit_laplace(design, none, points=PRIOR_POINTS).draw(DRAWS, rng)


class Influence(NamedTuple):
    r"""The information in the data on each effect's log standard deviation, shapes (effect,).

    With :math:`\rho` the share of a coefficient that the data determine: :math:`\sum \rho`, the information
    :math:`2 \sum \rho^2`, and the slope of the log evidence.
    """

    used: Floats
    information: Floats
    slope: Floats


def influence(problem: JudgedPairs, mode: Mode) -> Influence:
    r"""Return the information in the data on the variances at a mode.

    For coefficients :math:`b` of the campaign, :math:`\rho = I - \text{Cov}[b]/\sigma^2`. For those within queries
    :math:`\sigma^2 \text{tr}(F'RF)` takes the place of :math:`\text{tr}\,\rho`, with :math:`R = H - HLH`, minus the
    share of the campaign's parameters.
    """
    inverse = inverse_root(mode.schur)
    back = mode.pushed @ inverse.T
    covariance = inverse.T @ inverse
    information_left = resolvents(mode)
    used, information, slope = [], [], []
    for effect, log_sd in zip(problem.design.effects, mode.log_sd, strict=True):
        variance = float(np.exp(2 * log_sd))
        if effect.effect.scope == "campaign":
            where = problem.layout[effect.name]
            share = np.eye(where.stop - where.start) - covariance[where, where] / variance
            used.append(max(float(np.trace(share)), 0.0))
            information.append(2 * float((share**2).sum()))
            slope.append(float(np.sum(mode.campaign[where] ** 2) / variance) - float(np.trace(share)))
            continue
        trace = norm = square = 0.0
        for block, resolvent in zip(problem.blocks, information_left, strict=True):
            factor = block.factors[effect.name]
            transposed = factor.transpose(0, 2, 1)
            reached = transposed @ (resolvent @ factor)
            trace += float(np.trace(reached, axis1=1, axis2=2).sum())
            trace -= float(((transposed @ block.stack(back)) ** 2).sum())
            norm += float(((transposed @ block.stack(mode.weight)[..., None]) ** 2).sum())
            square += float((reached**2).sum())
        used.append(max(variance * trace, 0.0))
        information.append(2 * variance**2 * square)
        slope.append(variance * (norm - trace))
    return Influence(np.array(used), np.array(information), np.array(slope))


def resolvents(mode: Mode) -> list[Floats]:
    """Return :math:`R = (K + H^{-1})^{-1} = H - HLH` of each query, one stack per block."""
    out = []
    for arrow, covariance in zip(mode.arrows, mode.covariances, strict=True):
        out.append(arrow.dense() - arrow.times(arrow.times(covariance.matrices).transpose(0, 2, 1)))
    return out


def spread_points(n: int, dimension: int) -> Floats:
    """Return fixed points in pairs around zero, with mean square 1 in each dimension; one is zero itself."""
    if n == 1:
        return np.zeros((1, dimension))
    half = np.random.default_rng(0).standard_normal(((n + 1) // 2, dimension))
    half /= np.sqrt((half**2).mean(axis=0))
    return np.concatenate([half, -half])[:n]
