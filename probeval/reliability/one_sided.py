r"""Tests of one system at a time: its mean against a target, and whether it is not inferior to a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from probeval.arrays import Floats
from probeval.display import Table
from probeval.errors import ReliabilityError
from probeval.metrics import Measured
from probeval.reliability.effect_sizes import mean_effect
from probeval.reliability.multiple import CORRECTIONS, adjust
from probeval.reliability.observed import Observed
from probeval.reliability.paired import SAMPLES, TESTS, run_test
from probeval.reliability.significance import as_scores
from probeval.reliability.twoway import signed
from probeval.results import Result, rows
from probeval.ties import TIE

__all__ = ["TargetSystem", "TargetTests", "compare_with_target", "noninferiority_test"]


TargetVerdict = Literal["above", "below", "undecided"]


@dataclass(frozen=True)
class TargetSystem:
    """A system, tested against a target."""

    system: str
    queries: Annotated[int, "The number of its queries."]
    mean: float
    lower: float
    upper: float
    statistic: float
    p: float
    adjusted: Annotated[float, "The p-value corrected for the number of systems."]
    verdict: Annotated[TargetVerdict, "Whether the mean differs significantly from the target."]


@dataclass(frozen=True, eq=False, repr=False)
class TargetTests(Result):
    """The mean score of every system, tested against a target; systems stand by falling mean."""

    target: Annotated[float, "The score that means are tested against."]
    alternative: Annotated[str, "``two-sided``, or of one-tailed tests ``greater`` or ``less``."]
    method: Annotated[str, "The test."]
    correction: Annotated[str, "How p-values were corrected for their number."]
    level: Annotated[float, "The probability of intervals; 1 - level is the level of significance."]
    systems: Annotated[tuple[TargetSystem, ...], "One entry per system."]

    @property
    def verdicts(self) -> list[TargetVerdict]:
        """The verdict per system."""
        return [system.verdict for system in self.systems]

    def _headline(self) -> str:
        n = sum(verdict != "undecided" for verdict in self.verdicts)
        return f"{n} of {len(self.systems)} systems differ from {self.target:g} by {self.method}"

    def tables(self) -> tuple[Table, ...]:
        """One row per system."""
        return (Table(self.to_frame(), f"Against {self.target:g}", intervals=("mean", "lower", "upper")),)

    @property
    def _test(self) -> str:
        return TESTS[self.method].replace(" paired", "")

    def sentences(self) -> tuple[str, ...]:
        """The test, and how many systems are above and below the target."""
        above, below, undecided = (self.verdicts.count(word) for word in get_args(TargetVerdict))
        return (
            f"Means against {self.target:g}, {self.alternative}: {self._test}; {CORRECTIONS[self.correction]}.",
            f"{above} above, {below} below, {undecided} undecided (alpha {1 - self.level:g}).",
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
        One of :data:`TESTS`, applied to the scores minus the target.
    alternative
        ``"two-sided"``, or ``"greater"`` and ``"less"`` for one-tailed tests.
    correction, level, samples, rng
        As in :func:`compare`.

    Examples
    --------
    >>> scores = [[0.9, 0.7, 0.8, 0.6], [0.5, 0.6, 0.6, 0.4]]
    >>> compare_with_target(scores, 0.5, systems=["new", "old"], alternative="greater").to_frame()["verdict"].tolist()
    ['above', 'undecided']
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
    mean, adjusted = mean_effect(scores, level=level), adjust(p, correction)
    words: tuple[TargetVerdict, ...] = ("undecided", "above", "below")  # of the signs 0, 1 and -1
    found = rows(
        TargetSystem,
        system=[names[i] for i in order],
        queries=(~np.isnan(scores)).sum(axis=1),
        mean=mean.value,
        lower=mean.lower,
        upper=mean.upper,
        statistic=statistic,
        p=p,
        adjusted=adjusted,
        verdict=[words[sign] for sign in signed(mean.value - target, adjusted, alpha=1 - level)],
    )
    return TargetTests(target, alternative, method, correction, level, found)


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
