r"""The worth of labels: how much of their variance at each level is relevance.

At level :math:`k` labels of a family have the variance :math:`T_k = \lambda^2 \rho_k\sigma_k^2 + o_k^2`: the part of
the effect's variance :math:`\sigma_k^2` that observers see (:math:`\rho_k`), by the slope, and the family's own
effects. Labels alone determine the sums; priors divide them. The parameters are the log standard deviations of the
model's effects, the coefficients of its terms and, for each family, :math:`\log|\lambda|`, the :math:`\log o_k` and its
liking for popular documents. Their posterior given :math:`T` is found by nonlinear least squares, in normal form.

What a family is comes first: whether it measures relevance, is noise or is reversed, of which kind it is, and whether
it favours systems. Each hypothesis is fitted apart and weighted by its evidence. See docs/theory/observers.md#worth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from probeval.arrays import Floats
from probeval.relevance.inference.design import DesignedEffect, ModelDesign
from probeval.relevance.normal import Normal
from probeval.relevance.observers.family import Family
from probeval.relevance.observers.levels import LevelVariances
from probeval.relevance.observers.prior import PAIR, ObserverPrior, ObserverPriors

__all__ = [
    "Hypothesis",
    "Worth",
    "WorthPosterior",
    "find_worth",
    "hypotheses_of",
    "joint_slope",
    "judgments_to_tell",
    "n_systems",
]

LOGISTIC = float(np.pi**2 / 3)  # the variance of logistic noise: all that is particular to a pair without labels
STEPS = 50  # of the search, at most
SETTLED = 1e-4  # the largest step at the end
LEAST_ERROR = 0.1  # the least error of a log variance: labels are not normal, so REML is too sure with many pairs
LEAST_SLOPE_ERROR = 0.03  # the least error of a slope, in sds of the labels per sd of the term
NEGLIGIBLE = 0.01  # a hypothesis below this probability has no setting: judgments cannot bring it back
NEGLIGIBLE_SIGN = 1e-4  # the same, of the likeliest hypothesis of a sign: a few dozen judgments tell a sign
SURE = 0.95  # the kind of a family is told at this probability: odds of 19 to 1
SPREAD = 5  # pairs of points over slopes and biases by system; the hypotheses share them by their probabilities


class Hypothesis(NamedTuple):
    """What a family of observers may be.

    Parameters
    ----------
    sign
        1 if its labels measure relevance, 0 if they are noise, -1 if they are reversed.
    kind, prior
        Its kind, and the prior of an observer of this kind.
    favours
        Whether it favours systems far beyond its noise.
    """

    sign: int
    kind: str
    prior: ObserverPrior
    favours: bool = False

    def own(self, level: str, effect: DesignedEffect | None, favour: Normal) -> Normal:
        r"""Return the prior of the log standard deviation of the family's own effect at a level.

        Biases towards systems and teams, effects of the campaign, are :math:`\kappa` times the effect that is expected
        of them; ``favour`` is added to :math:`\log\kappa` of one that favours systems.
        """
        if effect is None or effect.effect.scope != "campaign":
            return self.prior.own(level)
        # log o = log kappa + E[log sigma], with the sigma that is expected of a campaign, not that of this one: tied to
        # the latter, a large bias would make the effects of systems seem large too (docs/theory/observers.md#biases).
        # What few systems leave to effects of systems is relevance that is not seen, and no bias.
        bias = self.prior.log_bias
        more = Normal(bias.mean + favour.mean, favour.sd) if self.favours else bias
        return Normal(more.mean + effect.log_sd.mean - effect.widening, more.sd)


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
    hypotheses
        What each family is taken for.
    weight
        The probability of the setting, labels alone considered.
    """

    sds: Mapping[str, float]
    slopes: tuple[float, ...]
    own: tuple[Mapping[str, float], ...]
    popularity: tuple[float, ...]
    hypotheses: tuple[Hypothesis, ...]
    weight: float


@dataclass(frozen=True, eq=False)
class WorthPosterior:
    """The posterior of the worth of labels, as weighted settings.

    Parameters
    ----------
    beliefs
        For each family what it may be, with the probabilities, the most probable first.
    settings
        The settings over which the worth is integrated.
    log_slopes
        The posterior of each family's log slope.
    """

    beliefs: tuple[tuple[tuple[Hypothesis, float], ...], ...]
    settings: tuple[Worth, ...]
    log_slopes: tuple[Normal, ...]

    @property
    def best(self) -> tuple[Hypothesis, ...]:
        """What each family most probably is."""
        return tuple(belief[0][0] for belief in self.beliefs)

    def probability(self, family: int, *, sign: int) -> float:
        """Return the probability of a sign of a family."""
        return sum(p for hypothesis, p in self.beliefs[family] if hypothesis.sign == sign)


def judgments_to_tell(design: ModelDesign, priors: ObserverPriors, worth: WorthPosterior, family: int) -> int | None:
    r"""Return about how many judgments tell the kind of a family.

    None if it can be of one kind only, or if its labels are noise for sure, which has no kind.

    A judged pair is expected to add :math:`-\frac12\log(1 - r^2)` to the log odds of a kind with the slope
    :math:`\lambda`, where :math:`r` is the correlation of label and relevance within a query. The odds are to be 19 to
    1, whichever kind it is.
    """
    if len({hypothesis.kind for hypothesis, _ in worth.beliefs[family]}) < 2:
        return None
    weight: dict[str, float] = {}
    information: dict[str, float] = {}
    for setting in worth.settings:
        kind = setting.hypotheses[family].kind
        weight[kind] = weight.get(kind, 0.0) + setting.weight
        r_squared = _correlation(design, priors, setting, family) ** 2
        information[kind] = information.get(kind, 0.0) - setting.weight * float(np.log1p(-r_squared)) / 2
    # Judged pairs confirm or refute the steeper kind fastest. The odds before judgments have to be overcome as well, if
    # the less probable kind is the right one.
    each = max(information[kind] / weight[kind] for kind in weight)
    if each == 0:
        return None
    doubt = max(abs(float(np.log(max(p, NEGLIGIBLE) / max(1 - p, NEGLIGIBLE)))) for p in weight.values())
    return int(np.ceil((np.log(SURE / (1 - SURE)) + doubt) / each))


def _correlation(design: ModelDesign, priors: ObserverPriors, setting: Worth, family: int) -> float:
    # Within a query constant effects drop out. The reference's relevance has the variance sum_k sigma_k^2, labels
    # lambda^2 sum_k rho_k sigma_k^2 + sum_k o_k^2, and their covariance is lambda sum_k rho_k sigma_k^2.
    within = [e for e in design.effects if e.effect.acts_on == "predictor" and not e.effect.constant]
    variance = {PAIR: LOGISTIC} | {e.name: setting.sds[e.name] ** 2 for e in within}
    share = {PAIR: priors.share(PAIR)} | {e.name: priors.share(e.name, e.effect.scope) for e in within}
    seen = sum(share[name] * v for name, v in variance.items())
    labels = setting.slopes[family] ** 2 * seen + sum(setting.own[family][name] ** 2 for name in variance)
    return float(setting.slopes[family] * seen / np.sqrt(labels * sum(variance.values())))


def n_systems(design: ModelDesign) -> int:
    """Return the number of systems of a campaign."""
    return len(design.coords.get("system", ("",)))


def joint_slope(design: ModelDesign) -> Floats:
    r"""Return the slope of relevance on what the terms are expected to say, as a function of their coefficients.

    Terms such as the shares of systems and teams are correlated, so their coefficients trade off from campaign to
    campaign; with :math:`\mu` the expected coefficients and :math:`C` the covariance of the terms,
    :math:`\mu'C\beta / \mu'C\mu` varies less. One row, shape (1, term); none if nothing is expected of the terms.
    """
    # At the expected coefficients it is 1, by its definition.
    mean = np.array([c.mean for c in design.coefficients])
    covariance = np.atleast_2d(np.cov(design.terms.T)) if len(design.terms) > 1 and len(mean) else np.zeros((0, 0))
    size = float(mean @ covariance @ mean) if covariance.size else 0.0
    return np.asarray((covariance @ mean / size)[None] if size > 0 else np.zeros((0, len(mean))))


class LeastSquares:
    r"""The residuals of the parameters against their priors and of the levels against their estimates.

    The parameters are one vector: :math:`\log\sigma_k` of the effects, :math:`\beta` of the terms, and for each family
    :math:`\log|\lambda|`, :math:`\log o_k` of all levels, and :math:`p`. ``blocks`` has their places: effects, terms,
    and then each family.
    """

    def __init__(
        self,
        design: ModelDesign,
        priors: ObserverPriors,
        levels: Sequence[LevelVariances],
        hypotheses: Sequence[Hypothesis],
    ) -> None:
        self.effects = {e.name: i for i, e in enumerate(e for e in design.effects if e.effect.acts_on == "predictor")}
        self.names = levels[0].names if levels else ()
        of, constants = {e.name: e for e in design.effects}, priors.constants
        self.seen = np.array(
            [priors.share(name) if name == PAIR else priors.share(name, of[name].effect.scope) for name in self.names]
        )
        # The effect of each level; -1 for single pairs, whose variance is that of logistic noise.
        self.at = np.array([self.effects.get(name, -1) for name in self.names])
        self.n_terms = len(design.coefficients)
        self.direction = joint_slope(design)
        self.together = constants.together * constants.widening(n_systems(design))
        self.levels, self.hypotheses = levels, hypotheses
        self.signs = tuple(hypothesis.sign for hypothesis in hypotheses)
        known = [e.log_sd for e in design.effects if e.effect.acts_on == "predictor"] + list(design.coefficients)
        for hypothesis in hypotheses:
            own = (hypothesis.own(name, of.get(name), constants.log_favour) for name in self.names)
            known += [hypothesis.prior.log_slope, *own, hypothesis.prior.popularity]
        self.mean = np.array([n.mean for n in known])
        self.sd = np.array([n.sd for n in known])
        sizes = [len(self.effects), self.n_terms] + [2 + len(self.names)] * len(hypotheses)
        self.blocks = [slice(a, b) for a, b in pairwise(np.cumsum([0, *sizes]).tolist())]

    def parts(self, x: Floats) -> Iterator[tuple[int, slice, Floats, Floats]]:
        """Yield each family's number, its parameters, and its signal and own variances by level."""
        # sigma_k^2 by level; the signal is lambda^2 rho_k sigma_k^2, and 0 for noise.
        sds = np.where(self.at < 0, LOGISTIC, np.exp(2 * x[self.blocks[0]])[self.at])
        for i, block in enumerate(self.blocks[2:]):
            signal = np.exp(2 * x[block.start]) * self.seen * sds * (self.signs[i] != 0)
            yield i, block, signal, np.exp(2 * x[block.start + 1 : block.stop - 1])

    def residuals(self, x: Floats) -> tuple[Floats, Floats]:
        """Return all residuals in units of their standard deviations, and their derivatives (residual, parameter)."""
        # Half the sum of squares is the negative log posterior: every residual is a standard normal.
        size = len(x)
        prior, prior_d = (x - self.mean) / self.sd, np.diag(1 / self.sd)
        beta = x[self.blocks[1]]
        # The joint slope on the terms is 1, with an sd that grows with few systems.
        together = np.zeros((len(self.direction), size))
        together[:, self.blocks[1]] = self.direction / self.together
        out, slopes = [prior, together @ x - 1 / self.together], [prior_d, together]
        for i, block, signal, own in self.parts(x):
            # log T_k = log(lambda^2 rho_k sigma_k^2 + o_k^2): its derivatives in log lambda and log sigma_k are twice
            # the share of the signal, that in log o_k is twice the rest.
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
            # The slope of the labels on the terms is lambda (1 + p) beta. It alone shows the sign of lambda.
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
        # Levenberg and Marquardt's method: damping grows until a step lowers the sum of squares, and falls after it.
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
        # Laplace's method: log Z = -r'r/2 + log|Cov|/2 - sum log sd[prior]; the powers of 2 pi cancel. It is relative
        # to the maximum of the labels' likelihood, where the residuals of levels and slopes are 0. The constant of the
        # joint slope is left out: it is the same for every hypothesis but noise.
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
            hypotheses=tuple(self.hypotheses),
            weight=weight,
        )

    def integrated(self) -> list[int]:
        """Return the parameters that get points of their own: each family's slope and its biases by system."""
        # A few points cannot cover all parameters. These decide how far a ranking follows labels.
        biases = [i for i, name in enumerate(self.names) if name == "system"]
        return [p for b in self.blocks[2:] for p in (b.start, *(b.start + 1 + i for i in biases))]


def find_worth(
    design: ModelDesign, priors: ObserverPriors, families: Sequence[Family], levels: Sequence[LevelVariances]
) -> WorthPosterior:
    """Return the posterior of the worth of labels, before any judgment.

    What a family is is found apart, with the other families left out: labels with structure are not noise, and their
    slope on popularity tells their direction. One family at a time may be something else than it most probably is.
    """
    # All combinations of hypotheses would be too many: from the most probable one, one family at a time is changed. The
    # weight of a case is its probability relative to that of the most probable one.
    beliefs = tuple(_belief(design, priors, f, level) for f, level in zip(families, levels, strict=True))
    best = tuple(belief[0][0] for belief in beliefs)
    cases = [(best, 1.0)]
    for i, ((_, most), *others) in enumerate(map(_worth_a_setting, beliefs)):
        cases += [((*best[:i], other, *best[i + 1 :]), p / most) for other, p in others]
    total = sum(weight for _, weight in cases)
    settings: list[Worth] = []
    log_slopes: tuple[Normal, ...] = ()
    for number, (case, weight) in enumerate(cases):
        problem = LeastSquares(design, priors, levels, case)
        x, covariance, _ = problem.solve()  # all families together, as they share the effects of the campaign
        if number == 0:
            starts = [b.start for b in problem.blocks[2:]]
            log_slopes = tuple(Normal(float(x[s]), float(np.sqrt(covariance[s, s]))) for s in starts)
        points = _points(x, covariance, problem.integrated(), int(SPREAD * weight / total))
        settings += [problem.worth(point, weight / total / len(points)) for point in points]
    return WorthPosterior(beliefs, tuple(settings), log_slopes)


def _worth_a_setting(belief: Sequence[tuple[Hypothesis, float]]) -> list[tuple[Hypothesis, float]]:
    # Labels of few pairs say little of their sign, and can make noise of a perfect judge. Judgments cannot bring back
    # what is left out here, so the likeliest hypothesis of each sign stays while a few dozen of them may turn it.
    likeliest = {hypothesis.sign: hypothesis for hypothesis, _ in reversed(belief)}
    return [(h, p) for h, p in belief if p >= (NEGLIGIBLE_SIGN if h is likeliest[h.sign] else NEGLIGIBLE)]


def hypotheses_of(priors: ObserverPriors, family: Family) -> list[tuple[Hypothesis, float]]:
    """Return what a family may be, with the probabilities before its labels are seen; noise first."""
    # P(noise) once, whatever the kind; else P(kind) P(sign) P(favour). See docs/theory/observers.md#hypotheses.
    noise, favours = priors.constants.noise, priors.constants.favours
    likeliest = max(family.priors, key=lambda possible: possible.weight)
    out = [(Hypothesis(0, likeliest.kind, likeliest.prior), noise)]
    for kind, weight, prior in family.priors:
        turned = min(prior.reversed, 1 - noise)
        for sign, p_sign in ((1, 1 - noise - turned), (-1, turned)):
            for favour, p_favour in ((False, 1 - favours), (True, favours)):
                out.append((Hypothesis(sign, kind, prior, favour), weight * p_sign * p_favour))
    return [(hypothesis, p) for hypothesis, p in out if p > 0]


def _belief(
    design: ModelDesign, priors: ObserverPriors, family: Family, level: LevelVariances
) -> tuple[tuple[Hypothesis, float], ...]:
    # Evidence is relative to the maximum of the mixed model's likelihood. Noise has no variances to divide, so its own
    # is minus the log-likelihood ratio.
    possible = hypotheses_of(priors, family)
    evidence = [
        LeastSquares(design, priors, [level], [hypothesis]).solve()[2] if hypothesis.sign else -level.structure
        for hypothesis, _ in possible
    ]
    log_p = np.log([p for _, p in possible]) + evidence
    weight = np.exp(log_p - log_p.max())
    found = zip((hypothesis for hypothesis, _ in possible), (weight / weight.sum()).tolist(), strict=True)
    return tuple(sorted(found, key=lambda each: -each[1]))


def _points(x: Floats, covariance: Floats, which: Sequence[int], pairs: int) -> list[Floats]:
    """Return points in pairs around a centre, spread over some parameters, with the others at their conditional mean.

    Without a pair, the centre itself.
    """
    if not pairs or not len(which):
        return [x]
    # The same normals z each time, in opposite pairs and with mean square 1: they have the mean and the variances of
    # standard normals. With LL' the covariance of the chosen parameters, z moves these by Lz, and all others by
    # Cov L^-' z, to their conditional mean.
    inner = covariance[np.ix_(which, which)]
    half = np.random.default_rng(0).standard_normal((pairs, len(which)))
    half /= np.sqrt((half**2).mean(axis=0))
    follow = covariance[:, which] @ np.linalg.inv(np.linalg.cholesky(inner)).T
    return [x + follow @ z for z in (*half, *-half)]
