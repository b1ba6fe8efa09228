"""Comparisons of all pairs of systems of a finished evaluation: tests, corrections and effect sizes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from probeval.arrays import Bools, Floats, Ints
from probeval.display import Table
from probeval.errors import ProbevalWarning, ReliabilityError, did_you_mean
from probeval.metrics import Measured
from probeval.reliability.effect_sizes import (
    EffectSizes,
    equivalence_test,
    mean_effect,
    standardised_effect,
    superiority,
)
from probeval.reliability.multiple import CORRECTIONS, Friedman, adjust, friedman, randomised_tukey, tukey_hsd
from probeval.reliability.observed import Observed, observe
from probeval.reliability.paired import ALTERNATIVES, SAMPLES, TESTS, differences, pair_index, run_test
from probeval.reliability.twoway import signed
from probeval.results import UNSET, Result, UnsetType, frame, key, rows
from probeval.scores.decision import Verdicts

__all__ = ["COMPARISONS", "ComparedPair", "ComparedSystem", "Pairwise", "RankTest", "as_scores", "compare"]

TOGETHER = {
    "tukey": "Tukey's honestly significant differences",
    "randomised-tukey": "the same by random permutations of scores over systems",
}
COMPARISONS = TESTS | TOGETHER


@dataclass(frozen=True)
class ComparedSystem:
    """A system and its mean score."""

    system: str
    rank: Annotated[int, "Its rank by mean; ties share one."]
    mean: Annotated[float, "The mean score over queries."]
    lower: float
    upper: float
    mean_rank: Annotated[float, "The mean of its ranks on each query, 1 the best."]


@dataclass(frozen=True)
class ComparedPair:
    """A pair of systems, tested."""

    a: str
    b: str
    queries: Annotated[int, "The number of queries that they share."]
    difference: Annotated[float, "The mean score of a minus that of b."]
    lower: float
    upper: float
    statistic: float
    p: float
    adjusted: Annotated[float, "The p-value corrected for the number of pairs."]
    verdict: Annotated[Verdicts, "``equal`` is within the rope, even if the difference is significant."]
    d: Annotated[float, "The difference over its standard deviation."]
    d_lower: float
    d_upper: float
    won: Annotated[float, "The share of queries on which a is better."]
    won_lower: float
    won_upper: float
    report: Annotated[str, "The difference for a paper: value, half-width, p."]
    p_tost: Annotated[
        float | UnsetType,
        "With a rope: the p-value of the equivalence test, whose hypothesis is a difference beyond the rope.",
    ] = UNSET


@dataclass(frozen=True)
class RankTest:
    """Friedman's test of all systems by their ranks."""

    statistic: float
    p: float
    critical_difference: Annotated[float, "Nemenyi's: larger differences of mean ranks are significant."]


@dataclass(frozen=True, eq=False, repr=False)
class Pairwise(Result):
    """Every pair of systems, tested. Systems stand by falling mean, so the first of a pair is the better-looking one.

    Parameters
    ----------
    systems
        The systems by falling mean.
    method, correction
        One of :data:`COMPARISONS`, and the correction of p-values
        (:data:`~probeval.reliability.CORRECTIONS`).
    queries
        The number of common queries of each pair, shape (pair,).
    mean
        The mean score of each system, shape (system,).
    difference, standardised, superiority
        The effect of each pair in the units of the measure, over its standard deviation, and as the share of queries on
        which the first is better, shape (pair,). The intervals of differences are simultaneous for methods that test
        all pairs together, else those of one paired t test each.
    statistic, p, adjusted
        The statistic (:math:`q` of methods that test all pairs together), p-value and corrected p-value of the test,
        shape (pair,).
    p_tost
        The p-value of the equivalence test (two one-sided t tests), whose hypothesis is a difference beyond the rope;
        NaN without a rope, shape (pair,).
    friedman
        The test of all systems by their ranks, or None for a single system.
    alternative
        One of :data:`~probeval.reliability.ALTERNATIVES`. One-tailed tests are of the other systems against a baseline;
        the p-values of other pairs are NaN.
    """

    systems: tuple[str, ...]
    method: Annotated[str, "The test."]
    correction: Annotated[str, "How p-values were corrected for their number."]
    level: Annotated[float, "The probability of intervals; 1 - level is the level of significance."]
    rope: Annotated[float, "The difference up to which systems count as equal."]
    queries: Ints
    mean: EffectSizes
    difference: EffectSizes
    standardised: EffectSizes
    superiority: EffectSizes
    statistic: Floats
    p: Floats
    adjusted: Floats
    p_tost: Floats
    friedman: Friedman | None
    alternative: Annotated[str, "``two-sided``, or of one-tailed tests against a baseline ``greater`` or ``less``."] = (
        "two-sided"
    )

    @property
    def alpha(self) -> float:
        """The level of significance, 1 - ``level``."""
        return 1 - self.level

    @property
    def decision(self) -> Ints:
        """1 or -1 if the first or the second system is significantly better, 0 if neither is, shape (pair,)."""
        return signed(self.difference.value, self.adjusted, alpha=self.alpha)

    @property
    def equal(self) -> Bools:
        """Mask of the pairs shown to differ by less than the rope, shape (pair,)."""
        return np.nan_to_num(self.p_tost, nan=1.0) < self.alpha

    @key
    def discrimination(self) -> float:
        """The share of pairs that differ significantly; null for a single system."""
        return float((self.decision != 0).mean()) if len(self.p) else float("nan")

    def matrix(self, values: Floats, *, flip: float = 1.0) -> Floats:
        """Return one value per pair as a matrix, shape (system, system); ``flip=-1`` if swapping changes the sign."""
        out = np.full((len(self.systems),) * 2, np.nan)
        a, b = pair_index(len(self.systems))
        out[a, b], out[b, a] = values, flip * values
        return out

    @key.named("friedman")
    def rank_test(self) -> RankTest | None:
        """The test of all systems by their ranks; null for a single system."""
        found = self.friedman
        if found is None:
            return None
        return RankTest(found.statistic, found.p, found.critical_difference(alpha=self.alpha))

    @key
    def pairs(self) -> tuple[ComparedPair, ...]:
        """One entry per pair of systems."""
        a, b = pair_index(len(self.systems))
        names = np.array(self.systems, dtype=object)
        equivalence = {"p_tost": self.p_tost} if self.rope else {}
        return rows(
            ComparedPair,
            a=names[a],
            b=names[b],
            queries=self.queries,
            difference=self.difference.value,
            lower=self.difference.lower,
            upper=self.difference.upper,
            statistic=self.statistic,
            p=self.p,
            adjusted=self.adjusted,
            verdict=self.verdicts(),
            d=self.standardised.value,
            d_lower=self.standardised.lower,
            d_upper=self.standardised.upper,
            won=self.superiority.value,
            won_lower=self.superiority.lower,
            won_upper=self.superiority.upper,
            report=self.report(),
            **equivalence,
        )

    @key.named("systems")
    def system_rows(self) -> tuple[ComparedSystem, ...]:
        """One entry per system, by falling mean."""
        return rows(
            ComparedSystem,
            system=self.systems,
            rank=pd.Series(-self.mean.value.round(12)).rank(method="min").astype(int),
            mean=self.mean.value,
            lower=self.mean.lower,
            upper=self.mean.upper,
            mean_rank=self.friedman.ranks if self.friedman else np.full(len(self.systems), np.nan),
        )

    def systems_frame(self) -> pd.DataFrame:
        """One row per system, by falling mean: rank, mean, lower, upper, mean_rank (on each query, 1 the best)."""
        return frame(self.system_rows, ComparedSystem)

    def to_frame(self) -> pd.DataFrame:
        """One row per pair, numbers in full."""
        return super().to_frame().drop(columns="report")

    def verdicts(self) -> list[Verdicts]:
        """The verdict per pair: ``equal`` (within the rope, even if significant), else by significance."""
        words: tuple[Verdicts, ...] = ("undecided", "better", "worse")  # of the decisions 0, 1 and -1
        return ["equal" if equal else words[sign] for equal, sign in zip(self.equal, self.decision, strict=True)]

    def report(self) -> list[str]:
        """Return each pair's difference as value +- half-width (p = ..).

        >>> scores = [[0.9, 0.7, 0.8, 0.6], [0.5, 0.6, 0.6, 0.4]]
        >>> compare(scores, systems=["new", "old"]).report()
        ['0.2250 +- 0.2002 (p = 0.037)']
        """
        halves = self.difference.half_width
        return [
            f"{value:.4f} +- {half:.4f} ({'p < 0.001' if p < 0.001 else f'p = {p:.3f}'})"
            for value, half, p in zip(self.difference.value, halves, self.p, strict=True)
        ]

    def _headline(self) -> str:
        n = int((self.decision != 0).sum())
        return f"{n:,} of {len(self.p):,} pairs of {len(self.systems)} systems differ by {self.method}"

    def tables(self) -> tuple[Table, ...]:
        """One row per system; one row per pair, with the columns that people read."""
        pairs = self.to_frame()
        kept = ["lower", "upper", "adjusted", "verdict", "d", "won", *(["p_tost"] if self.rope else [])]
        return (
            Table(self.systems_frame(), "Systems", intervals=("mean", "lower", "upper")),
            Table(pairs[["a", "b", "difference", *kept]], "Pairs", intervals=("difference", "lower", "upper")),
        )

    def sentences(self) -> tuple[str, ...]:
        """The test and its correction, the number of pairs that differ, and the target of the intervals."""
        test, n = COMPARISONS[self.method], int((self.decision != 0).sum())
        tested = int((~np.isnan(self.p)).sum()) if self.alternative != "two-sided" else len(self.p)
        tail = "" if self.alternative == "two-sided" else f", one-tailed ({self.alternative} than the baseline)"
        correction = f"; {CORRECTIONS[self.correction]}" if self.method in TESTS else ", all pairs together"
        overall = self.rank_test
        friedman = (
            ()
            if overall is None
            else (
                f"Friedman: chi-squared {overall.statistic:.2f}, p {overall.p:.2g}; mean ranks differ by more than "
                f"{overall.critical_difference:.2f} where systems do.",
            )
        )
        return (
            f"{test[0].upper()}{test[1:]}{tail}{correction}.",
            f"{n:,} of {tested:,} pairs differ significantly (alpha {self.alpha:g}).",
            *friedman,
            f"{self.level:.0%} intervals are for the population of queries"
            f"{'; those of differences are simultaneous, for all pairs together' * (self.method in TOGETHER)}.",
        )


def compare(
    values: ArrayLike | Observed | Measured,
    *,
    systems: Sequence[str] | None = None,
    method: str = "t",
    correction: str | None = None,
    level: float = 0.95,
    rope: float = 0.0,
    alternative: str = "two-sided",
    against: str | None = None,
    samples: int = SAMPLES,
    rng: np.random.Generator | None = None,
) -> Pairwise:
    """Test every pair of systems, and estimate the effect sizes.

    Parameters
    ----------
    values
        The score of every system on every query, NaN if missing, shape (system, query); or
        :class:`Observed` or :class:`~probeval.metrics.Measured`.
    systems
        Their names, if ``values`` is an array; ``s1``, ``s2``, .. by default.
    method
        One of :data:`COMPARISONS`.
    correction
        One of :data:`~probeval.reliability.CORRECTIONS`; Holm's by default. Tukey's tests are corrected already.
    level
        The probability of intervals; a difference is significant if p is below 1 - ``level``.
    rope
        The difference up to which systems count as equal.
    alternative, against
        ``"greater"`` or ``"less"`` for one-tailed tests of whether the other systems are better, or worse, than the
        baseline ``against``. The direction has to be chosen before the scores are seen, so other pairs, which stand by
        falling mean, are not tested.
    samples, rng
        The number of resamples of bootstrap, permutation and randomised Tukey, and the generator (seed 0 by default).

    Examples
    --------
    >>> scores = [[0.9, 0.7, 0.8, 0.6], [0.5, 0.6, 0.6, 0.4], [0.5, 0.6, 0.6, 0.4]]
    >>> compare(scores, systems=["new", "old", "copy"]).to_frame()[["a", "b", "difference", "adjusted", "verdict"]]
         a     b  difference  adjusted    verdict
    0  new   old       0.225   0.11...  undecided
    1  new  copy       0.225   0.11...  undecided
    2  old  copy       0.000   1.00...  undecided
    """
    scores, names, _ = as_scores(values, systems)
    if method not in COMPARISONS:
        raise ReliabilityError(f"No method {method!r}: {', '.join(COMPARISONS)}.{did_you_mean(method, COMPARISONS)}")
    if method in TOGETHER and correction not in (None, "none"):
        raise ReliabilityError(f"{method} looks at all pairs already: it takes no correction, got {correction!r}.")
    correction = ("none" if method in TOGETHER else "holm") if correction is None else correction
    if not rope >= 0:
        raise ReliabilityError(f"A rope is a difference of at least 0, got {rope:g}.")
    limits = values.metric.limits if isinstance(values, Measured) else (-np.inf, np.inf)
    order = np.argsort(-np.round(mean_effect(scores, level=level).value, 12), kind="stable")
    scores = scores[order]
    a, b = pair_index(len(scores))
    gap = differences(scores, a, b)
    difference = mean_effect(gap, level=level)
    forward, backward = _one_tailed([names[i] for i in order], a, b, alternative, against, method)
    rng = np.random.default_rng(0) if rng is None else rng
    queries = (~np.isnan(gap)).sum(axis=1)
    if method in TOGETHER:
        found = (
            tukey_hsd(scores, level=level)
            if method == "tukey"
            else randomised_tukey(scores, level=level, samples=samples, rng=rng)
        )
        statistic, p, queries = found.statistic, found.p, np.full(len(gap), found.queries)
        difference = EffectSizes(found.difference, found.difference - found.half, found.difference + found.half)
    else:
        # One-tailed, the baseline is the second of some pairs and the first of others: these are tested the other way.
        statistic, p = run_test(method, gap, alternative=alternative, samples=samples, rng=rng)
        if backward.any():
            p[backward] = run_test(method, -gap[backward], alternative=alternative, samples=samples, rng=rng)[1]
        p = np.where(forward | backward, p, np.nan)
        _warn_of_floor(method, correction, len(gap), samples, level)
    return Pairwise(
        systems=tuple(names[i] for i in order),
        method=method,
        correction=correction,
        level=level,
        rope=rope,
        queries=queries,
        mean=mean_effect(scores, level=level, limits=limits),
        difference=difference,
        standardised=standardised_effect(gap, level=level),
        superiority=superiority(gap, level=level),
        statistic=statistic,
        p=p,
        adjusted=adjust(p, correction),
        p_tost=equivalence_test(gap, rope=rope) if rope else np.full(len(gap), np.nan),
        friedman=friedman(scores) if len(scores) > 1 and (~np.isnan(scores).any(axis=0)).sum() > 1 else None,
        alternative=alternative,
    )


def _one_tailed(
    systems: Sequence[str], a: Ints, b: Ints, alternative: str, against: str | None, method: str
) -> tuple[Bools, Bools]:
    """Return masks of the pairs that are tested as they stand, and of those whose other order is tested."""
    if alternative not in ALTERNATIVES:
        raise ReliabilityError(
            f"No alternative {alternative!r}: {', '.join(ALTERNATIVES)}.{did_you_mean(alternative, ALTERNATIVES)}"
        )
    if alternative == "two-sided":
        return np.ones(len(a), dtype=bool), np.zeros(len(a), dtype=bool)
    if method in TOGETHER:
        raise ReliabilityError(f"{method} is two-sided. Take another method for one-tailed tests, such as t.")
    if against is None or against not in systems:
        raise ReliabilityError(
            f"One-tailed tests are against a baseline, one of the systems; got {against!r}. Name it with against."
            f"{did_you_mean(against or '', systems)}"
        )
    at = list(systems).index(against)
    return b == at, a == at


def _warn_of_floor(method: str, correction: str, pairs: int, samples: int, level: float) -> None:
    """Warn if the least p of resampling, after Holm's correction for many pairs, cannot be significant."""
    least = pairs / (samples + 1)
    if method in ("bootstrap", "permutation") and correction == "holm" and least >= 1 - level:
        warnings.warn(
            f"{samples:,} samples give no p below {1 / (samples + 1):.1g}: corrected by Holm for {pairs:,} pairs that "
            f"is {least:.2g}, and nothing can be significant. Use more samples, correction bh, or randomised-tukey.",
            ProbevalWarning,
            stacklevel=3,
        )


def as_scores(values: object, systems: Sequence[str] | None = None) -> tuple[Floats, list[str], list[str]]:
    """Return scores of shape (system, query), NaN if missing, and the names of the axes."""
    if isinstance(values, (Observed, Measured)):
        observed = observe(values)
        if set(observed.sizes) != {"system", "query"} or observed.is_uncertain:
            raise ReliabilityError(f"A comparison needs one score for each system and query, got {observed!r}.")
        scores, names, queries = observed.values[0], list(observed.labels["system"]), list(observed.labels["query"])
    else:
        scores = np.array(values, dtype=float)
        if scores.ndim != 2:
            raise ReliabilityError(f"A comparison needs scores by system and query, got shape {scores.shape}.")
        names = [f"s{i + 1}" for i in range(len(scores))] if systems is None else list(systems)
        queries = [f"q{i + 1}" for i in range(scores.shape[1])]
    if not scores.size:
        raise ReliabilityError(f"A comparison needs scores by system and query, got shape {scores.shape}.")
    if len(names) != len(scores):
        raise ReliabilityError(f"{len(scores)} rows of scores need as many names, got {len(names)}.")
    if np.isinf(scores).any():
        raise ReliabilityError("Scores must be finite numbers, or NaN where there is none; got infinity.")
    empty = np.isnan(scores).all(axis=1)
    if empty.any():
        raise ReliabilityError(f"{names[int(np.argmax(empty))]} has no score on any query. Leave it out.")
    return scores, names, queries
