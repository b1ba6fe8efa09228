r"""The worth of labels: how much of their variance at each level is relevance.

At level :math:`k` labels of a family have the variance :math:`T_k = \lambda^2 \rho_k\sigma_k^2 + o_k^2`: the part of
the effect's variance :math:`\sigma_k^2` that observers see (:math:`\rho_k`), by the slope, and the family's own
effects. Labels alone determine the sums; priors divide them. The parameters are the log standard deviations of the
model's effects, the coefficients of its terms and, for each family, :math:`\log|\lambda|`, the :math:`\log o_k` and its
liking for popular documents. Their posterior given :math:`T` is found by nonlinear least squares, in normal form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from probeval.arrays import Floats
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.normal import Normal
from probeval.relevance.observers.family import Family
from probeval.relevance.observers.levels import LevelVariances
from probeval.relevance.observers.prior import PAIR, ObserverPriors

__all__ = ["TOGETHER", "Worth", "WorthPosterior", "find_worth", "joint_slope"]

LOGISTIC = float(np.pi**2 / 3)  # the variance of the logistic
STEPS = 50  # of the search
SETTLED = 1e-4  # the largest step at the end
LEAST_ERROR = 0.1  # of a log variance: labels are not normal
LEAST_SLOPE_ERROR = 0.03  # of a slope, in sds of the labels per sd of the term
TOGETHER = 0.4  # sd of the joint slope on the terms, which is 1 on average: .6 to 1.4 in past campaigns
SIGNS = {1: 0.9, 0: 0.05, -1: 0.05}  # prior probabilities: a family measures relevance, is noise, or is reversed
NEGLIGIBLE = 0.01  # the probability below which a sign is left out
SPREAD = 5  # pairs of points, around the centre, over slopes and biases by system


@dataclass(frozen=True)
class Worth:
    """One setting of the worth of all families, with the model's effects.

    Parameters
    ----------
    sds
        The standard deviation of each effect on predictors, in logits.
    slopes
        The slope of each family, signed, in standard deviations of its labels per logit; 0 for noise.
    own
        The standard deviations of each family's own effects by level.
    popularity
        Each family's own liking for popular documents, as a multiple of slope and coefficient.
    weight
        The probability of the setting, labels alone considered.
    """

    sds: Mapping[str, float]
    slopes: tuple[float, ...]
    own: tuple[Mapping[str, float], ...]
    popularity: tuple[float, ...]
    weight: float


@dataclass(frozen=True, eq=False)
class WorthPosterior:
    """The posterior of the worth of labels, as weighted settings.

    Parameters
    ----------
    signs
        For each family the probabilities that it measures relevance, is noise, or is reversed.
    settings
        The settings over which the worth is integrated.
    log_slopes
        The posterior of each family's log slope.
    """

    signs: tuple[Mapping[int, float], ...]
    settings: tuple[Worth, ...]
    log_slopes: tuple[Normal, ...]


def joint_slope(design: ModelDesign) -> Floats:
    r"""Return the slope of relevance on what the terms are expected to say, as a function of their coefficients.

    Terms such as the shares of systems and teams are correlated, so their coefficients trade off from campaign to
    campaign; with :math:`\mu` the expected coefficients and :math:`C` the covariance of the terms,
    :math:`\mu'C\beta / \mu'C\mu` varies less. One row, shape (1, term); none if nothing is expected of the terms.
    """
    mean = np.array([c.mean for c in design.coefficients])
    covariance = np.atleast_2d(np.cov(design.terms.T)) if len(design.terms) > 1 and len(mean) else np.zeros((0, 0))
    size = float(mean @ covariance @ mean) if covariance.size else 0.0
    return np.asarray((covariance @ mean / size)[None] if size > 0 else np.zeros((0, len(mean))))


class LeastSquares:
    """The residuals of the parameters against their priors and of the levels against their estimates."""

    def __init__(
        self,
        design: ModelDesign,
        priors: ObserverPriors,
        families: Sequence[Family],
        levels: Sequence[LevelVariances],
        signs: Sequence[int],
    ) -> None:
        self.effects = {e.name: i for i, e in enumerate(e for e in design.effects if e.effect.acts_on == "predictor")}
        self.names = levels[0].names if levels else ()
        of = {e.name: e for e in design.effects}
        self.seen = np.array(
            [priors.share(name) if name == PAIR else priors.share(name, of[name].effect.scope) for name in self.names]
        )
        # Own effects of the campaign, biases towards systems and teams, have a prior relative to the seen effect.
        relative = [name != PAIR and of[name].effect.scope == "campaign" for name in self.names]
        self.relative = np.flatnonzero(relative)
        self.at = np.array([self.effects.get(name, -1) for name in self.names])
        self.n_terms = len(design.coefficients)
        self.direction = joint_slope(design)
        self.levels, self.signs, self.families = levels, signs, families
        known = [e.log_sd for e in design.effects if e.effect.acts_on == "predictor"] + list(design.coefficients)
        for family in families:
            known += [family.prior.log_slope, *(family.prior.own(name) for name in self.names), family.prior.popularity]
        self.mean = np.array([n.mean for n in known])
        self.sd = np.array([n.sd for n in known])
        sizes = [len(self.effects), self.n_terms] + [2 + len(self.names)] * len(families)
        self.blocks = [slice(a, b) for a, b in pairwise(np.cumsum([0, *sizes]).tolist())]

    def parts(self, x: Floats) -> Iterator[tuple[int, slice, Floats, Floats]]:
        """Yield each family's number, its parameters, and its signal and own variances by level."""
        sds = np.where(self.at < 0, LOGISTIC, np.exp(2 * x[self.blocks[0]])[self.at])
        for i, block in enumerate(self.blocks[2:]):
            signal = np.exp(2 * x[block.start]) * self.seen * sds * (self.signs[i] != 0)
            yield i, block, signal, np.exp(2 * x[block.start + 1 : block.stop - 1])

    def residuals(self, x: Floats) -> tuple[Floats, Floats]:
        """Return all residuals in units of their standard deviations, and their derivatives (residual, parameter)."""
        size = len(x)
        prior, prior_d = (x - self.mean) / self.sd, np.diag(1 / self.sd)
        beta = x[self.blocks[1]]
        together = np.zeros((len(self.direction), size))
        together[:, self.blocks[1]] = self.direction / TOGETHER
        out, slopes = [prior, together @ x - 1 / TOGETHER], [prior_d, together]
        for i, block, signal, own in self.parts(x):
            if self.signs[i]:
                biases = block.start + 1 + self.relative
                prior[biases] -= np.log(signal[self.relative]) / 2 / self.sd[biases]
                prior_d[biases, block.start] -= 1 / self.sd[biases]
                prior_d[biases, self.at[self.relative]] -= 1 / self.sd[biases]
            found = self.levels[i]
            error = np.maximum(found.error, LEAST_ERROR)
            out.append((np.log(signal + own) - found.log_variance) / error)
            share = 2 * signal / (signal + own) / error
            d = np.zeros((len(self.names), size))
            d[:, block.start] = share
            rows = np.flatnonzero(self.at >= 0)
            d[rows, self.at[rows]] = share[rows]
            d[np.arange(len(own)), np.arange(block.start + 1, block.stop - 1)] = 2 / error - share
            slopes.append(d)
            liking = x[block.stop - 1]
            factor = self.signs[i] * np.exp(x[block.start]) * (1 + liking)
            slope_error = np.maximum(found.slope_errors, LEAST_SLOPE_ERROR)
            out.append((factor * beta - found.slopes) / slope_error)
            d = np.zeros((self.n_terms, size))
            d[:, self.blocks[1]] = np.diag(factor / slope_error)
            d[:, block.start] = factor * beta / slope_error
            d[:, block.stop - 1] = self.signs[i] * np.exp(x[block.start]) * beta / slope_error
            slopes.append(d)
        return np.concatenate(out), np.concatenate(slopes)

    def solve(self) -> tuple[Floats, Floats, float]:
        """Return the best parameters, their covariance, and the log evidence (up to a constant of the data)."""
        x, damping = self.mean.copy(), 1e-3
        r, d = self.residuals(x)
        for _ in range(STEPS):
            curve, slope = d.T @ d, d.T @ r
            while True:
                step = -np.linalg.solve(curve + damping * np.diag(np.diag(curve)), slope)
                ahead, ahead_d = self.residuals(x + step)
                if ahead @ ahead <= r @ r or damping > 1e8:
                    break
                damping *= 8
            x, r, d, damping = x + step, ahead, ahead_d, max(damping / 8, 1e-9)
            if np.abs(step).max() < SETTLED:
                break
        covariance = np.asarray(np.linalg.inv(d.T @ d))
        log_evidence = -float(r @ r) / 2 + float(np.linalg.slogdet(covariance)[1]) / 2 - float(np.log(self.sd).sum())
        return x, covariance, log_evidence

    def worth(self, x: Floats, weight: float) -> Worth:
        """Return parameters as a setting."""
        return Worth(
            sds=dict(zip(self.effects, np.exp(x[self.blocks[0]]).tolist(), strict=True)),
            slopes=tuple(s * float(np.exp(x[b.start])) for s, b in zip(self.signs, self.blocks[2:], strict=True)),
            own=tuple(
                dict(zip(self.names, np.exp(x[b.start + 1 : b.stop - 1]).tolist(), strict=True))
                for b in self.blocks[2:]
            ),
            popularity=tuple(float(x[b.stop - 1]) for b in self.blocks[2:]),
            weight=weight,
        )

    def integrated(self) -> list[int]:
        """Return the parameters that get points of their own: each family's slope and its biases by system."""
        biases = [i for i, name in enumerate(self.names) if name == "system"]
        return [p for b in self.blocks[2:] for p in (b.start, *(b.start + 1 + i for i in biases))]


def find_worth(
    design: ModelDesign, priors: ObserverPriors, families: Sequence[Family], levels: Sequence[LevelVariances]
) -> WorthPosterior:
    """Return the posterior of the worth of labels, before any judgment.

    Every family may be reversed or noise. Its sign is found apart, with the other families left out: labels with
    structure are not noise, and their slope on popularity tells their direction.
    """
    signs = [_signs(design, priors, f, level) for f, level in zip(families, levels, strict=True)]
    best = tuple(max(p, key=p.__getitem__) for p in signs)
    cases = [(best, float(np.prod([p[s] for p, s in zip(signs, best, strict=True)])))]
    for i, probability in enumerate(signs):
        for sign, p in probability.items():
            if sign != best[i] and p >= NEGLIGIBLE:
                cases.append(((*best[:i], sign, *best[i + 1 :]), cases[0][1] * p / probability[best[i]]))
    total = sum(weight for _, weight in cases)
    settings: list[Worth] = []
    log_slopes: tuple[Normal, ...] = ()
    for number, (case, weight) in enumerate(cases):
        problem = LeastSquares(design, priors, families, levels, case)
        x, covariance, _ = problem.solve()
        if number == 0:
            starts = [b.start for b in problem.blocks[2:]]
            log_slopes = tuple(Normal(float(x[s]), float(np.sqrt(covariance[s, s]))) for s in starts)
        points = _points(x, covariance, problem.integrated(), SPREAD if number == 0 else 1)
        settings += [problem.worth(point, weight / total / len(points)) for point in points]
    return WorthPosterior(tuple(signs), tuple(settings), log_slopes)


def _signs(design: ModelDesign, priors: ObserverPriors, family: Family, level: LevelVariances) -> Mapping[int, float]:
    """Return the probabilities that a family measures relevance, is noise, or is reversed."""
    log_p = {s: np.log(SIGNS[s]) + LeastSquares(design, priors, [family], [level], [s]).solve()[2] for s in (1, -1)}
    log_p[0] = np.log(SIGNS[0]) - level.structure
    top = max(log_p.values())
    weight = {s: float(np.exp(v - top)) for s, v in log_p.items()}
    return {s: w / sum(weight.values()) for s, w in weight.items()}


def _points(x: Floats, covariance: Floats, which: Sequence[int], pairs: int) -> list[Floats]:
    """Return points in pairs around a centre, spread over some parameters, with the others at their conditional mean.

    A single pair is replaced by the centre itself.
    """
    if pairs < 2 or not len(which):
        return [x]
    inner = covariance[np.ix_(which, which)]
    half = np.random.default_rng(0).standard_normal((pairs, len(which)))
    half /= np.sqrt((half**2).mean(axis=0))
    follow = covariance[:, which] @ np.linalg.inv(np.linalg.cholesky(inner)).T
    return [x + follow @ z for z in (*half, *-half)]
