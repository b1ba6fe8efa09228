"""Figures of a simulation over its seeds: means with intervals, and policies compared seed by seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Literal, TypedDict

import numpy as np
import pandas as pd
from scipy.special import bdtr, stdtrit

if TYPE_CHECKING:
    from probeval.simulation.trajectory import Trajectory, TrajectoryStep

__all__ = ["LEVEL", "PolicyComparison", "SeedSummary", "as_table", "compare_policies", "summarise_seeds"]

LEVEL = 0.95  # of the intervals

Figure = Literal["judgments_at_stop", "judgments_to_tau90", "confidence_at_stop", "accuracy_at_stop", "tau_at_stop"]
Verdict = Literal["fewer", "more", "undecided"]


class SeedSummary(TypedDict):
    """A figure of a policy over the seeds.

    Parameters
    ----------
    policy, model, figure
        The policy, its model, and the figure.
    seeds, reached
        The number of seeds, and of those that got there: the stopping rule held, or tau stayed at .9.
    mean, lower, upper
        The mean over the seeds that got there, and its interval; null without them, the interval also with only one.
    """

    policy: str
    model: str
    figure: Figure
    seeds: int
    reached: int
    mean: float | None
    lower: float | None
    upper: float | None


class PolicyComparison(TypedDict):
    """The judgments that one policy needs, less those of another with the same seeds.

    Parameters
    ----------
    policy, other, figure
        The two policies with their models, and the figure.
    seeds
        The number of seeds with which both got there.
    difference, lower, upper
        The mean difference over these seeds, and its interval; null without them, the interval also with only one.
    fewer, more
        The numbers of seeds with which the policy needs fewer judgments than the other, and more. If one of them never
        got there, the other needs fewer.
    verdict
        Whether the policy needs fewer judgments or more: by the interval, or by the sign test of ``fewer`` and ``more``
        if one of the two did not get there with every seed.
    """

    policy: str
    other: str
    figure: Figure
    seeds: int
    difference: float | None
    lower: float | None
    upper: float | None
    fewer: int
    more: int
    verdict: Verdict


def _at_stop(value: Callable[[TrajectoryStep], float]) -> Callable[[Trajectory], float | None]:
    return lambda trajectory: None if trajectory.stop is None else value(trajectory.stop)


JUDGMENTS: Mapping[Figure, Callable[[Trajectory], float | None]] = {
    "judgments_at_stop": _at_stop(lambda stop: stop.judged),
    "judgments_to_tau90": lambda trajectory: trajectory.judgments_to_tau90,
}
FIGURES: Mapping[Figure, Callable[[Trajectory], float | None]] = {
    **JUDGMENTS,
    "confidence_at_stop": _at_stop(lambda stop: stop.confidence),
    "accuracy_at_stop": _at_stop(lambda stop: stop.accuracy),
    "tau_at_stop": _at_stop(lambda stop: stop.tau),
}


def summarise_seeds(trajectories: Sequence[Trajectory], *, level: float = LEVEL) -> list[SeedSummary]:
    """Return the mean of each figure over the seeds of each policy, with its interval."""
    rows: list[SeedSummary] = []
    for same in _by_policy(trajectories).values():
        for figure, value in FIGURES.items():
            reached = [v for v in map(value, same) if v is not None]
            mean, lower, upper = _interval(reached, level)
            rows.append(
                {
                    "policy": same[0].policy,
                    "model": same[0].model,
                    "figure": figure,
                    "seeds": len(same),
                    "reached": len(reached),
                    "mean": mean,
                    "lower": lower,
                    "upper": upper,
                }
            )
    return rows


def compare_policies(trajectories: Sequence[Trajectory], *, level: float = LEVEL) -> list[PolicyComparison]:
    """Return the difference in judgments between every two policies, seed by seed."""
    rows: list[PolicyComparison] = []
    for (label, first), (other, second) in combinations(_by_policy(trajectories).items(), 2):
        for figure, value in JUDGMENTS.items():
            pairs = [(value(a), value(b)) for a, b in zip(first, second, strict=True)]
            differences = [a - b for a, b in pairs if a is not None and b is not None]
            signs = [_sign(a, b) for a, b in pairs]
            mean, lower, upper = _interval(differences, level)
            rows.append(
                {
                    "policy": label,
                    "other": other,
                    "figure": figure,
                    "seeds": len(differences),
                    "difference": mean,
                    "lower": lower,
                    "upper": upper,
                    "fewer": signs.count(-1),
                    "more": signs.count(1),
                    "verdict": _by_interval(lower, upper)
                    if len(differences) == len(pairs)
                    else _by_signs(signs.count(-1), signs.count(1), level),
                }
            )
    return rows


def as_table(rows: Sequence[SeedSummary] | Sequence[PolicyComparison]) -> pd.DataFrame:
    """Return rows as a table, with missing numbers as NaN."""
    table = pd.DataFrame(rows)
    numbers = [name for name in ("mean", "difference", "lower", "upper") if name in table]
    return table.astype(dict.fromkeys(numbers, float))


def _by_policy(trajectories: Sequence[Trajectory]) -> dict[str, list[Trajectory]]:
    out: dict[str, list[Trajectory]] = {}
    for trajectory in trajectories:
        out.setdefault(trajectory.label, []).append(trajectory)
    return {label: sorted(same, key=lambda t: t.seed) for label, same in out.items()}


def _interval(values: Sequence[float], level: float) -> tuple[float | None, float | None, float | None]:
    """Return the mean and its t interval; None without values, the interval also with one."""
    n = len(values)
    if not n:
        return None, None, None
    mean = float(np.mean(values))
    if n == 1:
        return mean, None, None
    half = float(stdtrit(n - 1, (1 + level) / 2) * np.std(values, ddof=1) / np.sqrt(n))
    return mean, mean - half, mean + half


def _sign(a: float | None, b: float | None) -> int:
    """Return -1 if the first is smaller, 1 if it is larger, 0 otherwise; a number that was never reached is larger."""
    ends = (np.inf if a is None else a, np.inf if b is None else b)
    return int(ends[0] > ends[1]) - int(ends[0] < ends[1])


def _by_interval(lower: float | None, upper: float | None) -> Verdict:
    if upper is not None and upper < 0:
        return "fewer"
    return "more" if lower is not None and lower > 0 else "undecided"


def _by_signs(fewer: int, more: int, level: float) -> Verdict:
    """Return the verdict of the two-sided sign test.

    >>> _by_signs(6, 0, 0.95), _by_signs(1, 9, 0.95), _by_signs(5, 0, 0.95)
    ('fewer', 'more', 'undecided')
    """
    n = fewer + more
    p = 2 * float(bdtr(min(fewer, more), n, 0.5)) if n else 1.0
    if p > 1 - level:
        return "undecided"
    return "fewer" if fewer > more else "more"
