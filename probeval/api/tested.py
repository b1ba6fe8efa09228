"""The tests of a comparison: of all pairs, against a baseline or a target, and once all is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from probeval.arrays import Floats
from probeval.data import Collection
from probeval.data.problem import Grades
from probeval.errors import ReliabilityError, did_you_mean
from probeval.metrics import Measured
from probeval.streams import stream

if TYPE_CHECKING:
    from probeval.reliability import Observed, Pairwise, ScorePosterior, TargetTests

__all__ = ["ComparisonTests", "check_system", "significant_by_bounds", "significant_by_draws", "tested"]


@dataclass(frozen=True)
class ComparisonTests:
    """What is tested, and how.

    Parameters
    ----------
    method, correction, samples
        The test of pairs, the correction for multiple comparisons, and the number of resamples.
    alternative, against
        The alternative, and the baseline of one-tailed tests and of non-inferiority.
    target
        A score to test means against.
    margin
        The share of the baseline's score that a system may lose and still not be inferior.
    level, rope, seed
        The probability of intervals, the difference up to which systems count as equal, and the random seed.
    """

    method: str | None
    correction: str | None
    samples: int
    alternative: str
    against: str | None
    target: float | None
    margin: float | None
    level: float
    rope: float
    seed: int

    @property
    def asked(self) -> bool:
        """Whether tests are asked for, rather than a model."""
        named = (self.method, self.correction, self.target, self.margin)
        return self.alternative != "two-sided" or any(value is not None for value in named)

    def check(self, *, bayes: bool) -> None:
        """Raise an error if tests are asked for besides the Bayesian model, or a baseline is needed and not given."""
        if bayes and self.asked:
            raise ReliabilityError(
                "The hierarchical model of scores (--bayes, bayes=) replaces tests: leave out --method, --correction, "
                "--alternative, --target and --noninferior."
            )
        if self.margin is not None and self.against is None:
            raise ReliabilityError("Non-inferiority is relative to a baseline: name it with --against (against=).")
        if self.alternative != "two-sided" and self.against is None and self.target is None:
            raise ReliabilityError(
                f"A one-tailed test ({self.alternative}) is against a baseline or a target: give --against SYSTEM or "
                "--target SCORE (against=, target=)."
            )

    def pairs(self, scores: Observed | Measured) -> Pairwise:
        """Return the tests of all pairs; one-tailed against the baseline, if there is one."""
        from probeval.reliability import compare

        return compare(
            scores,
            method=self.method or "t",
            correction=self.correction,
            level=self.level,
            rope=self.rope,
            alternative="two-sided" if self.against is None else self.alternative,
            against=self.against,
            samples=self.samples,
            rng=stream(self.seed),
        )

    def means(self, scores: Observed | Measured) -> TargetTests | None:
        """Return the tests of means against the target; None without one."""
        from probeval.reliability import TESTS, compare_with_target

        if self.target is None:
            return None
        return compare_with_target(
            scores,
            self.target,
            method=self.method if self.method in TESTS else "t",
            alternative=self.alternative,
            correction=self.correction or "holm",
            level=self.level,
            samples=self.samples,
            rng=stream(self.seed),
        )

    def noninferior(self, scores: Observed | Measured, pairs: pd.DataFrame) -> pd.DataFrame:
        """Return the columns p_noninferior and noninferior of each pair with the baseline, others empty."""
        from probeval.reliability import TESTS, adjust, noninferiority_test
        from probeval.reliability.significance import as_scores

        if self.margin is None:
            return pd.DataFrame(index=pairs.index)
        values, names, _ = as_scores(scores)
        others = pairs["b"].where(pairs["a"] == self.against, pairs["a"])
        with_baseline = ((pairs["a"] == self.against) | (pairs["b"] == self.against)).to_numpy()
        kept = [names.index(other) for other in others[with_baseline]]
        p = np.full(len(pairs), np.nan)
        if kept:
            baseline = values[names.index(str(self.against))]
            method = self.method if self.method in TESTS else "t"
            _, p[with_baseline] = noninferiority_test(
                values[kept], baseline, margin=self.margin, method=method, samples=self.samples, rng=stream(self.seed)
            )
        p = adjust(p, self.correction or "holm")
        words = ["yes" if value < 1 - self.level else "open" for value in p]
        shown = [word if tested else None for word, tested in zip(words, with_baseline, strict=True)]
        return pd.DataFrame({"p_noninferior": p, "noninferior": shown}, index=pairs.index)


def tested(
    scores: Observed | Measured, settings: ComparisonTests, *, bayes: bool, draws: int, target_accept: float | None
) -> Pairwise | ScorePosterior:
    """Return the tests of all pairs, or the posterior of the hierarchical model of scores."""
    from probeval.reliability import compare_bayes

    result: Pairwise | ScorePosterior
    if bayes:
        result = compare_bayes(
            scores, level=settings.level, rope=settings.rope, draws=draws, target_accept=target_accept,
            rng=stream(settings.seed),
        )  # fmt: skip
        _ = result.diagnostics  # warns where sampling did not converge
    else:
        check_system(settings.against, _names(scores))
        result = settings.pairs(scores)
    check_system(settings.against, result.systems)
    return result


def _names(scores: Observed | Measured) -> Sequence[str]:
    return scores.systems if isinstance(scores, Measured) else list(scores.labels.get("system", ()))


def check_system(against: str | None, systems: Sequence[str]) -> None:
    """Raise an error if the baseline is not one of the systems."""
    if against is not None and against not in systems:
        raise ReliabilityError(f"No system {against!r} to compare with.{did_you_mean(against, systems)}")


def significant_by_bounds(collection: Collection, found: Measured, systems: Sequence[str], level: float) -> list[str]:
    """Whether each difference will be significant once all is judged, by its bounds: yes, no, or open."""
    from probeval.reliability import difference_bounds, pair_index, rules

    at = [found.systems.index(s) for s in systems]
    if found.metric.is_linear:
        runs = collection.runs.top(found.metric.cutoff or collection.runs.depth).select(systems)
        codes = Grades.of(collection.judgments, runs.pool, found.scale).codes
        asked = np.isin(runs.queries, found.queries)
        low, high = (end[:, asked] for end in difference_bounds(runs, codes, found.metric, found.scale))
    else:
        a, b = pair_index(len(at))
        least, most = found.lower[at], found.upper[at]
        low, high = least[a] - most[b], most[a] - least[b]
    decided = rules(low, high, alpha=1 - level)
    return [
        "open" if rule == 0 else "yes" if sign else "no" for sign, rule in zip(decided.sign, decided.rule, strict=True)
    ]


def significant_by_draws(draws: Floats | None, drawn: Sequence[str], systems: Sequence[str], level: float) -> Floats:
    """P(significant once all is judged) of each pair, from joint draws of shape (draw, system, query)."""
    from probeval.reliability import probability_significant

    if draws is None:
        raise ReliabilityError("P(significant) needs joint draws by query.")
    better, worse = probability_significant([draws[:, [drawn.index(s) for s in systems]]], alpha=1 - level)
    return np.asarray(better + worse)
