r"""Tests of one system at a time: its mean against a target, and whether it is not inferior to a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from probeval.arrays import Floats, Ints
from probeval.display import Table
from probeval.errors import ReliabilityError
from probeval.metrics import Measured
from probeval.reliability.effect_sizes import EffectSizes, mean_effect
from probeval.reliability.multiple import CORRECTIONS, adjust
from probeval.reliability.observed import Observed
from probeval.reliability.paired import SAMPLES, TESTS, run_test
from probeval.reliability.significance import as_scores
from probeval.reliability.twoway import signed
from probeval.results import Result
from probeval.schema import records
from probeval.ties import TIE

__all__ = ["TargetSystem", "TargetTests", "TargetTestsDocument", "compare_with_target", "noninferiority_test"]


class TargetSystem(TypedDict):
    """A system, tested against a target.

    Parameters
    ----------
    system, queries
        Its name, and the number of its queries.
    mean, lower, upper
        The mean score, and its interval.
    statistic, p, adjusted
        Of the test, and the p-value corrected for the number of systems.
    verdict
        ``above``, ``below`` or ``open``.
    """

    system: str
    queries: int
    mean: float
    lower: float
    upper: float
    statistic: float
    p: float
    adjusted: float
    verdict: str


class TargetTestsDocument(TypedDict):
    """The mean score of every system, tested against a target."""

    target: float
    alternative: str
    method: str
    correction: str
    level: float
    systems: list[TargetSystem]


@dataclass(frozen=True, eq=False, repr=False)
class TargetTests(Result):
    """The mean score of every system, tested against a target.

    Parameters
    ----------
    systems
        The systems by falling mean.
    target, alternative
        The score that means are tested against, and one of :data:`~probeval.reliability.ALTERNATIVES`.
    method, correction, level
        The test, the correction of p-values for the number of systems, and the probability of intervals.
    queries
        The number of queries of each system, shape (system,).
    mean
        The mean score with its interval, shape (system,).
    statistic, p, adjusted
        Of the test, shape (system,).
    """

    systems: tuple[str, ...]
    target: float
    alternative: str
    method: str
    correction: str
    level: float
    queries: Ints
    mean: EffectSizes
    statistic: Floats
    p: Floats
    adjusted: Floats

    @property
    def verdicts(self) -> list[str]:
        """``above`` or ``below`` if the mean differs significantly from the target, else ``open``."""
        words = np.array(["below", "open", "above"], dtype=object)
        return [str(w) for w in words[signed(self.mean.value - self.target, self.adjusted, alpha=1 - self.level) + 1]]

    def to_frame(self) -> pd.DataFrame:
        """One row per system: queries, mean, lower, upper, statistic, p, adjusted, verdict."""
        ends = {"mean": self.mean.value, "lower": self.mean.lower, "upper": self.mean.upper}
        tested = {"statistic": self.statistic, "p": self.p, "adjusted": self.adjusted, "verdict": self.verdicts}
        return pd.DataFrame({"system": self.systems, "queries": self.queries, **ends, **tested})

    def to_dict(self) -> TargetTestsDocument:
        """The tests as plain data for JSON."""
        return {
            "target": self.target,
            "alternative": self.alternative,
            "method": self.method,
            "correction": self.correction,
            "level": self.level,
            "systems": records(self.to_frame(), TargetSystem),
        }

    def _headline(self) -> str:
        n = sum(verdict != "open" for verdict in self.verdicts)
        return f"{n} of {len(self.systems)} systems differ from {self.target:g} by {self.method}"

    def tables(self) -> tuple[Table, ...]:
        """One row per system."""
        return (Table(self.to_frame(), f"Against {self.target:g}", intervals=("mean", "lower", "upper")),)

    @property
    def _test(self) -> str:
        return TESTS[self.method].replace(" paired", "")

    def sentences(self) -> tuple[str, ...]:
        """The test, and how many systems are above and below the target."""
        counts = {word: self.verdicts.count(word) for word in ("above", "below", "open")}
        return (
            f"Means against {self.target:g}, {self.alternative}: {self._test}; {CORRECTIONS[self.correction]}.",
            f"{counts['above']} above, {counts['below']} below, {counts['open']} open (alpha {1 - self.level:g}).",
        )


def compare_with_target(
    values: ArrayLike | Observed | Measured,
    target: float,
    *,
    systems: Sequence[str] | None = None,
    method: str = "t",
    alternative: str = "two-sided",
    correction: str = "holm",
    level: float = 0.95,
    samples: int = SAMPLES,
    rng: np.random.Generator | None = None,
) -> TargetTests:
    r"""Test the mean score of every system against a target: one sample, :math:`t = (\bar x - \tau) / (s / \sqrt n)`.

    Parameters
    ----------
    values, systems
        The scores and the names, as in :func:`compare`.
    target
        The score to compare means with.
    method
        One of :data:`TESTS`, applied to the scores less the target.
    alternative
        ``"two-sided"``, or ``"greater"`` and ``"less"`` for one-tailed tests.
    correction, level, samples, rng
        As in :func:`compare`.

    Examples
    --------
    >>> scores = [[0.9, 0.7, 0.8, 0.6], [0.5, 0.6, 0.6, 0.4]]
    >>> compare_with_target(scores, 0.5, systems=["new", "old"], alternative="greater").to_frame()["verdict"].tolist()
    ['above', 'open']
    """
    scores, names, _ = as_scores(values, systems)
    if not np.isfinite(target):
        raise ReliabilityError(f"A target is a score, a finite number; got {target:g}.")
    order = np.argsort(-np.round(mean_effect(scores, level=level).value, 12), kind="stable")
    scores = scores[order]
    off = scores - target
    off[np.abs(off) < TIE] = 0.0
    rng = np.random.default_rng(0) if rng is None else rng
    statistic, p = run_test(method, off, alternative=alternative, samples=samples, rng=rng)
    return TargetTests(
        systems=tuple(names[i] for i in order),
        target=target,
        alternative=alternative,
        method=method,
        correction=correction,
        level=level,
        queries=(~np.isnan(scores)).sum(axis=1),
        mean=mean_effect(scores, level=level),
        statistic=statistic,
        p=p,
        adjusted=adjust(p, correction),
    )


def noninferiority_test(
    scores: Floats,
    baseline: Floats,
    *,
    margin: float,
    method: str = "t",
    samples: int = SAMPLES,
    rng: np.random.Generator | None = None,
) -> tuple[Floats, Floats]:
    r"""Return the statistic and p of one-tailed paired tests of whether scores exceed (1 - margin) of the baseline's.

    .. math:: H_0: \mu_a \le (1 - \delta)\,\mu_b

    A small p shows that a system loses less than the share :math:`\delta` of the baseline's score (Yang 2019, section
    3.3.3).

    Parameters
    ----------
    scores
        The scores of the systems, NaN if missing, shape (system, query).
    baseline
        The scores of the baseline, shape (query,), or one baseline per system, shape (system, query).
    margin
        The share of the baseline's score that may be lost, from 0, less than 1.
    method, samples, rng
        As in :func:`run_test`.

    Examples
    --------
    >>> old = np.array([0.50, 0.62, 0.31, 0.44])
    >>> _, p = noninferiority_test(np.array([[0.50, 0.61, 0.31, 0.43]]), old, margin=0.05)
    >>> round(float(p[0]), 4)
    0.0039
    """
    if not 0 <= margin < 1:
        raise ReliabilityError(f"A margin is a share of the baseline's score, from 0, less than 1; got {margin:g}.")
    off = np.atleast_2d(scores) - (1 - margin) * baseline
    off[np.abs(off) < TIE] = 0.0
    return run_test(method, off, alternative="greater", samples=samples, rng=rng)
