r"""The Bayesian comparison of a finished campaign: a hierarchical model of scores, by NUTS (PyMC).

Systems have effects a and queries effects b, both normal with unknown spread, and each system has its own residual
spread. Scores from 0 to 1 stay there: with :math:`\eta_{sq} = \mu + a_s + b_q` they follow the ordered beta
(Kubinec, 2023),

.. math:: P(0) = \sigma(c_0 - \eta), \quad P(1) = \sigma(\eta - c_1), \quad
   \text{else } \text{Beta}(\sigma(\eta)\,\kappa_s, (1 - \sigma(\eta))\,\kappa_s),

so that scores of exactly 0 and 1 have positive probability. Other scores are normal.

The sampled coordinates of the systems' residual spreads are :math:`z_s \sim N(0, \sigma^{\lambda})`, and
:math:`\sigma^{1-\lambda} z_s` their effects with standard deviation :math:`\sigma`: with :math:`\lambda = 0` they are
apart from :math:`\sigma`, as suits effects that the scores hardly determine, and with :math:`\lambda = 1` they are the
effects themselves, as suits those that the scores determine well. :math:`\lambda` is the share of an effect that the
scores determine, by their own variances.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import compress
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import betaln, expit, log_expit, logit

from probeval.arrays import Floats, Ints
from probeval.bayes import NutsDiagnostics, arviz_data, diagnose, draw_prior, load, sample
from probeval.display import Table
from probeval.errors import ReliabilityError, did_you_mean
from probeval.metrics import Measured
from probeval.reliability.observed import Observed
from probeval.reliability.significance import as_scores
from probeval.results import Result, frame, key, rows
from probeval.scores.decision import PairDecision, Verdicts

__all__ = ["FAMILIES", "ModelledPair", "ModelledSystem", "ScorePosterior", "compare_bayes"]

FAMILIES = {
    "bounded": "scores from 0 to 1, both ends possible (ordered beta)",
    "normal": "scores without bounds",
}
NODES = 24  # of the quadrature over the population of queries
DRAWS = 2000  # of each chain: with 1,000, the largest R-hat of over 100 parameters can pass 1.01 by chance
TARGET_ACCEPT = 0.95  # of the sampler: with .8, one draw in 500 diverged on CLEF eHealth 2018
COORDINATE = "spread_coordinate"  # z, of which the effect on the spread is a function
TINY = 1e-12  # least shape of a beta distribution that is drawn from
MIN_SCORE = 0.5e-6  # least score inside (0, 1): half of the last digit that most tools print


@dataclass(frozen=True)
class ModelledSystem:
    """A system and the posterior of its mean score."""

    system: str
    observed: Annotated[float, "The mean of its scores on these queries."]
    mean: Annotated[float, "Its mean score over the population of queries."]
    sd: float
    lower: float
    upper: float
    p_best: Annotated[float, "The probability that it is the best."]


@dataclass(frozen=True)
class ModelledPair:
    """A pair of systems by the posterior."""

    a: str
    b: str
    difference: Annotated[float, "The mean score of a minus that of b."]
    sd: float
    lower: float
    upper: float
    p_better: Annotated[float, "The probability that a is better, by more than the rope."]
    p_equal: Annotated[float, "The probability that they differ by no more than the rope."]
    p_worse: Annotated[float, "The probability that a is worse, by more than the rope."]
    verdict: Annotated[Verdicts, "``undecided`` where no verdict has the probability of the level."]


@dataclass(frozen=True, eq=False, repr=False)
class ScorePosterior(Result):
    """The posterior of the systems' mean scores over the population of queries.

    Parameters
    ----------
    systems, queries
        The labels; systems by falling mean score.
    family
        One of :data:`FAMILIES`.
    values
        The scores, NaN if missing, shape (system, query).
    modelled
        The system of the model that stands for each system, shape (system,): systems with the same scores on all
        queries are one in it.
    chains, statistics
        The parameters and the sampler's statistics, each of shape (chain, draw, ..).
    means
        Joint draws of the systems' means over the population of queries, shape (draw, system).
    """

    systems: tuple[str, ...]
    queries: tuple[str, ...]
    family: Annotated[str, "The distribution of scores: bounded or normal."]
    values: Floats
    level: Annotated[float, "The probability of intervals, and that a verdict needs."]
    rope: Annotated[float, "The difference up to which systems count as equal."]
    modelled: Ints
    chains: Mapping[str, Floats]
    statistics: Mapping[str, Floats]
    means: Floats

    @key
    def method(self) -> Literal["bayes"]:
        """``bayes``, where tests have the name of the test."""
        return "bayes"

    @key
    def diagnostics(self) -> NutsDiagnostics:
        """R-hat, bulk ESS and the share of divergences; warns if the draws are unreliable."""
        return diagnose(self.chains, self.statistics)

    @property
    def p_best(self) -> Floats:
        """P(each system is the best), shape (system,); systems with the same scores share it evenly."""
        n = len(self.systems)
        best = np.bincount(self.modelled[self.means.argmax(axis=1)], minlength=n) / len(self.means)
        return np.asarray((best / np.maximum(np.bincount(self.modelled, minlength=n), 1))[self.modelled])

    @property
    def alike(self) -> tuple[tuple[str, ...], ...]:
        """Groups of systems with the same scores on all queries."""
        groups = [tuple(compress(self.systems, self.modelled == one)) for one in np.unique(self.modelled)]
        return tuple(group for group in groups if len(group) > 1)

    @key
    def pairs(self) -> tuple[ModelledPair, ...]:
        """One entry per pair of systems."""
        found: list[ModelledPair] = []
        for i, a in enumerate(self.systems[:-1]):  # one system at a time, to bound memory
            gap = self.means[:, [i]] - self.means[:, i + 1 :]
            low, high = np.quantile(gap, self._tails, axis=0)
            better, worse = (gap > self.rope).mean(axis=0), (gap < -self.rope).mean(axis=0)
            chances = zip(better.tolist(), worse.tolist(), (1 - better - worse).tolist(), strict=True)
            found += rows(
                ModelledPair,
                a=[a] * len(better),
                b=self.systems[i + 1 :],
                difference=gap.mean(axis=0),
                sd=gap.std(axis=0, ddof=1),
                lower=low,
                upper=high,
                p_better=better,
                p_equal=1 - better - worse,
                p_worse=worse,
                verdict=[PairDecision(*each, self.level).verdict for each in chances],
            )
        return tuple(found)

    @key.named("systems")
    def system_rows(self) -> tuple[ModelledSystem, ...]:
        """One entry per system, by falling mean score."""
        low, high = np.quantile(self.means, self._tails, axis=0)
        return rows(
            ModelledSystem,
            system=self.systems,
            observed=np.nanmean(self.values, axis=1),
            mean=self.means.mean(axis=0),
            sd=self.means.std(axis=0, ddof=1),
            lower=low,
            upper=high,
            p_best=self.p_best,
        )

    def systems_frame(self) -> pd.DataFrame:
        """One row per system, by falling mean score."""
        return frame(self.system_rows, ModelledSystem)

    @property
    def _tails(self) -> tuple[float, float]:
        return (1 - self.level) / 2, (1 + self.level) / 2

    @property
    def _intervals(self) -> str:
        return f"{self.level:.0%} posterior intervals (equal tails)"

    def _headline(self) -> str:
        return f"{len(self.systems)} systems on {len(self.queries)} queries, {self.family} scores"

    def tables(self) -> tuple[Table, ...]:
        """One row per system; one row per pair."""
        return (
            Table(self.systems_frame(), f"Systems, {self._intervals}", intervals=("mean", "lower", "upper")),
            Table(self.to_frame(), f"Pairs, {self._intervals}", intervals=("difference", "lower", "upper")),
        )

    def sentences(self) -> tuple[str, ...]:
        """Diagnostics of the sampler, the target of the intervals, and systems that are one in the model."""
        found = self.diagnostics
        same = (
            f"{', '.join(group)}: the same scores on all queries, so they are one system of the model, and tied."
            for group in self.alike
        )
        return (
            f"Hierarchical model of {self.family} scores, by NUTS: {found}.",
            f"{self.level:.0%} intervals are for the population of queries.",
            *same,
        )

    def to_arviz(self, *, rng: np.random.Generator | None = None) -> Any:
        """Return ArviZ data: prior and posterior with their predictions, log-likelihood, sampler statistics, scores.

        Systems with the same scores are one, by the first name. ``rng`` draws the prior and the predictions; seed 0 by
        default.
        """
        rng = np.random.default_rng(0) if rng is None else rng
        shape = self.chains["mean"].shape[:2]
        first = np.unique(self.modelled, return_index=True)[1]
        systems, scores = [self.systems[i] for i in first], self.values[first]
        there = ~np.isnan(scores)
        at = dict(zip(("system_index", "query_index"), np.nonzero(there), strict=True))
        cells = [f"{systems[s]} {self.queries[q]}" for s, q in zip(*at.values(), strict=True)]
        prior = draw_prior(_model(scores, self.family), shape[0] * shape[1], rng)
        del prior[COORDINATE]
        prior = {name: values.reshape(*shape, *values.shape[1:]) for name, values in prior.items()}
        groups: dict[str, Mapping[str, Any]] = {
            "prior": prior,
            "prior_predictive": {"score": self._predicted(prior, rng)[:, :, there]},
            "posterior": {**self.chains, "system_mean": self.means[:, first].reshape(*shape, -1)},
            "posterior_predictive": {"score": self._predicted(self.chains, rng)[:, :, there]},
            "log_likelihood": {"score": self._log_likelihood(scores)[:, :, there]},
            "sample_stats": dict(self.statistics),
            "observed_data": {"score": scores[there]},
            "constant_data": at,
        }
        by_system = {name: ["system"] for name in ("system_effect", "spread_effect", "system_mean")}
        dims = {**by_system, "query_effect": ["query"], "score": ["cell"], **{name: ["cell"] for name in at}}
        coords = {"system": systems, "query": list(self.queries), "cell": cells}
        attributes = {"model": f"{self.family} scores", "inference": "nuts", **asdict(self.diagnostics)}
        return arviz_data(groups, coords, dims, attributes)

    def _predicted(self, chains: Mapping[str, Floats], rng: np.random.Generator) -> Floats:
        """Return new scores under each draw of the parameters, shape (chain, draw, system, query)."""
        typical = (chains["mean"][..., None] + chains["system_effect"])[..., None]
        eta = typical + chains["query_effect"][:, :, None, :]
        spread = np.exp(chains["log_spread"][..., None] + chains["spread_effect"])[..., None]
        if self.family == "normal":
            return rng.normal(eta, spread)
        low = chains["low_cut"][..., None, None]
        zero, one = expit(low - eta), expit(eta - low - chains["cut_gap"][..., None, None])
        precision = spread / (expit(typical) * expit(-typical))
        # A shape that underflows to 0 is the end of the scale.
        inside = rng.beta(np.maximum(expit(eta) * precision, TINY), np.maximum(expit(-eta) * precision, TINY))
        place = rng.random(eta.shape)
        return np.where(place < zero, 0.0, np.where(place > 1 - one, 1.0, inside))

    def _log_likelihood(self, scores: Floats) -> Floats:
        """Return the log-likelihood of each score, shape (chain, draw, system, query)."""
        return np.stack(
            [self._of_chain(scores, {k: v[i] for k, v in self.chains.items()}) for i in range(len(self.chains["mean"]))]
        )

    def _of_chain(self, y: Floats, c: Mapping[str, Floats]) -> Floats:
        eta = c["mean"][:, None, None] + c["system_effect"][:, :, None] + c["query_effect"][:, None, :]
        log_spread = (c["log_spread"][:, None] + c["spread_effect"])[:, :, None]
        if self.family == "normal":
            spread = np.exp(log_spread)
            return np.asarray(-0.5 * ((y - eta) / spread) ** 2 - np.log(spread) - 0.5 * np.log(2 * np.pi))
        low = c["low_cut"][:, None, None]
        high = low + c["cut_gap"][:, None, None]
        inside = np.clip(y, MIN_SCORE, 1 - MIN_SCORE)
        typical = expit(c["mean"][:, None] + c["system_effect"])[:, :, None]
        spread = np.exp(log_spread) / (typical * (1 - typical))
        share = expit(eta)
        first, second = share * spread, (1 - share) * spread
        between = log_expit(eta - low) + log_expit(high - eta) + np.log(-np.expm1(low - high))
        beta = (first - 1) * np.log(inside) + (second - 1) * np.log1p(-inside) - betaln(first, second)
        return np.where(y <= 0, log_expit(low - eta), np.where(y >= 1, log_expit(eta - high), between + beta))


def compare_bayes(
    values: ArrayLike | Observed | Measured,
    *,
    systems: Sequence[str] | None = None,
    family: str | None = None,
    level: float = 0.95,
    rope: float = 0.0,
    draws: int = DRAWS,
    tune: int = 500,
    chains: int = 2,
    target_accept: float | None = None,
    rng: np.random.Generator | None = None,
) -> ScorePosterior:
    """Estimate all systems' means over the population of queries jointly, from their scores on some queries.

    Systems share a spread, so their differences shrink with few queries, and no correction for many pairs is needed.
    Systems with the same scores on all queries are one system of the model, and tied.
    ``probeval compare --bayes`` does the same.

    Parameters
    ----------
    values
        The score of every system on every query, NaN if missing, shape (system, query); or
        :class:`~probeval.reliability.Observed` or :class:`~probeval.metrics.Measured`.
    systems
        Their names, if ``values`` is an array; ``s1``, ``s2``, .. by default.
    family
        One of :data:`FAMILIES`; by default bounded if all scores are between 0 and 1.
    level
        The probability of intervals, and that a verdict of better, equal or worse needs.
    rope
        The difference up to which systems count as equal.
    draws, tune, chains
        The length of the NUTS run.
    target_accept
        Its target acceptance rate, between 0 and 1: a higher one takes smaller steps and has fewer divergences. By
        default .95.
    rng
        The generator of its seed (seed 0 by default).
    """
    scores, names, queries = as_scores(values, systems)
    if family is not None and family not in FAMILIES:
        raise ReliabilityError(f"No family {family!r}: {', '.join(FAMILIES)}.{did_you_mean(family, FAMILIES)}")
    inside = bool((np.nanmin(scores) >= 0) & (np.nanmax(scores) <= 1))
    family = ("bounded" if inside else "normal") if family is None else family
    if family == "bounded" and not inside:
        raise ReliabilityError("Bounded scores lie between 0 and 1. Use family='normal' for others.")
    if len(scores) < 2 or scores.shape[1] < 2:
        raise ReliabilityError(f"Two systems and two queries are the least to learn from, got shape {scores.shape}.")
    if np.nanmax(scores) - np.nanmin(scores) < MIN_SCORE:
        raise ReliabilityError("All scores are alike: there is nothing to learn from them.")
    target_accept = TARGET_ACCEPT if target_accept is None else target_accept
    if not 0 < target_accept < 1:
        raise ReliabilityError(f"The target acceptance rate lies between 0 and 1, such as .95; got {target_accept:g}.")
    rng = np.random.default_rng(0) if rng is None else rng
    order = np.argsort(-np.round(np.nanmean(scores, axis=1), 12), kind="stable")
    scores = scores[order]
    modelled = _as_one(scores)
    distinct = scores[np.unique(modelled, return_index=True)[1]]
    if len(distinct) < 2:
        raise ReliabilityError("All systems have the same scores on every query: there is nothing to compare.")
    found, statistics = sample(
        _model(distinct, family),
        draws=draws,
        tune=tune,
        chains=chains,
        target_accept=target_accept,
        random_seed=int(rng.integers(2**31)),
        progressbar=False,
    )
    del found[COORDINATE]
    return ScorePosterior(
        systems=tuple(names[i] for i in order),
        queries=tuple(queries),
        family=family,
        values=scores,
        modelled=modelled,
        level=level,
        rope=rope,
        chains=found,
        statistics=statistics,
        means=_population_means(found, family, rng)[:, modelled],
    )


def _as_one(scores: Floats) -> Ints:
    """Return the number of the first system with the same scores on all queries among distinct ones, shape (system,).

    The model has an independent residual for each system. Two that share theirs would count twice: their common scores
    would look more certain than they are, and a difference that never varies has no residual at all.
    """
    found: dict[bytes, int] = {}
    rows = np.round(np.where(np.isnan(scores), np.inf, scores), 12) + 0.0
    return np.array([found.setdefault(row.tobytes(), len(found)) for row in rows])


def _model(scores: Floats, family: str) -> Any:
    """Return the PyMC model of the scores, shape (system, query)."""
    return _bounded(scores) if family == "bounded" else _normal(scores)


def _effects(
    pm: Any, scores: Floats, *, scale: float, centre: float, spread: float, start: tuple[float, float]
) -> tuple[Any, Any, Any]:
    """Return the linear predictor (system, query), and its mean over queries and the log-spreads (system,).

    Chains begin near ``start``, the mean and the log-spread that moments give.
    """
    shape, share = scores.shape, _share_determined(scores)
    system = pm.ZeroSumNormal("system_effect", sigma=pm.HalfNormal("system_sd", scale), shape=shape[0])
    query = pm.ZeroSumNormal("query_effect", sigma=pm.HalfNormal("query_sd", scale), shape=shape[1])
    sd = pm.HalfNormal("spread_sd", 0.5)
    coordinate = pm.ZeroSumNormal(COORDINATE, sigma=sd**share, shape=shape[0])
    own = pm.Deterministic("spread_effect", sd ** (1 - share) * coordinate)
    typical = pm.Normal("mean", centre, 2 * scale, initval=start[0]) + system
    return typical[:, None] + query[None, :], typical, pm.Normal("log_spread", spread, 1.5, initval=start[1]) + own


def _share_determined(scores: Floats) -> float:
    r"""Return the share of the systems' log-spreads that the scores determine, :math:`\lambda`.

    The log of a variance from :math:`n` scores has the error variance :math:`2/n`; what the systems' log-variances vary
    by beyond it is their own. It is a setting of the sampler, on which the posterior does not depend.
    """
    left = scores - np.nanmean(scores, axis=1, keepdims=True) - np.nanmean(scores, axis=0) + np.nanmean(scores)
    error = 2 / float(np.mean((~np.isnan(scores)).sum(axis=1)))
    varies = float(np.log(np.maximum(np.nanvar(left, axis=1), MIN_SCORE**2)).var(ddof=1)) - error
    return max(varies, 0.0) / (max(varies, 0.0) + error)


def _bounded(scores: Floats) -> Any:
    pm, pt = load("pymc"), load("pytensor.tensor")
    low, high = (scores <= 0).astype(float), (scores >= 1).astype(float)
    between = ((scores > 0) & (scores < 1)).astype(float)
    y = np.where(between > 0, np.clip(scores, MIN_SCORE, 1 - MIN_SCORE), 0.5)
    # From a start far from the scores, as m = .5 is from a mean AP of .02, chains may never move.
    m = float(np.clip(np.nanmean(scores), MIN_SCORE, 1 - MIN_SCORE))
    own = float(2 * np.log(m * (1 - m)) - np.log(np.nanvar(scores)))
    with pm.Model() as model:
        eta, typical, log_spread = _effects(pm, scores, scale=1.5, centre=0.0, spread=1.0, start=(float(logit(m)), own))
        # Precision over m(1 - m) is the parameter that scores separate from the mean m, especially near 0 and 1.
        spread = pt.exp(log_spread + pt.softplus(typical) + pt.softplus(-typical))
        low_cut, gap = pm.Normal("low_cut", -5.0, 3.0), pm.LogNormal("cut_gap", 2.0, 0.7)
        high_cut = low_cut + gap
        first = pt.sigmoid(eta) * spread[:, None]
        second = spread[:, None] - first
        beta = (first - 1) * np.log(y) + (second - 1) * np.log1p(-y) - pt.gammaln(first) - pt.gammaln(second)
        # log(sigmoid(high - eta) - sigmoid(low - eta)) in terms that neither overflow nor cancel.
        stays = -pt.softplus(low_cut - eta) - pt.softplus(eta - high_cut) + pt.log1mexp(-gap)
        pm.Potential("inside", (between * (beta + stays)).sum() + (between.sum(axis=1) * pt.gammaln(spread)).sum())
        pm.Potential("ends", -(low * pt.softplus(eta - low_cut) + high * pt.softplus(high_cut - eta)).sum())
    return model


def _normal(scores: Floats) -> Any:
    pm, pt = load("pymc"), load("pytensor.tensor")
    there = ~np.isnan(scores)
    scale, centre = float(np.nanstd(scores)), float(np.nanmean(scores))
    spread = float(np.log(scale))
    with pm.Model() as model:
        eta, _, log_spread = _effects(pm, scores, scale=scale, centre=centre, spread=spread, start=(centre, spread))
        log_sd = log_spread[:, None]
        gap = (np.where(there, scores, 0.0) - eta) * pt.exp(-log_sd)
        pm.Potential("scores", -(there * (0.5 * gap**2 + log_sd)).sum())
    return model


def _population_means(chains: Mapping[str, Floats], family: str, rng: np.random.Generator) -> Floats:
    r"""Return the mean of each system over the population of queries in each draw, shape (draw, system).

    .. math:: m_s = \int E[y \mid \mu - \bar b + a_s + b] \, N(b \mid 0, \tau^2) \, db

    The sampled query effects sum to 0, so :math:`\mu` includes their mean :math:`\bar b \sim N(0, \tau^2/n_q)`: the
    sampling error of these queries, common to all systems.
    """
    mean, sd = chains["mean"].ravel(), chains["query_sd"].ravel()
    system = chains["system_effect"].reshape(len(mean), -1)
    n_queries = chains["query_effect"].shape[-1]
    centre: Floats = (mean + rng.standard_normal(len(mean)) * sd / np.sqrt(n_queries))[:, None] + system
    if family == "normal":
        return centre
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    low = chains["low_cut"].reshape(-1, 1)
    high = low + chains["cut_gap"].reshape(-1, 1)
    out: Floats = np.zeros_like(centre)
    for node, weight in zip(nodes, weights / weights.sum(), strict=True):
        eta = centre + node * sd[:, None]
        top = expit(eta - high)
        out += weight * ((expit(eta - low) - top) * expit(eta) + top)
    return out
