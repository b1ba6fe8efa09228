"""Figures of a simulation over its seeds: means with intervals, and policies compared seed by seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from scipy.special import bdtr, expit, logit, stdtrit

from probeval.results import UNSET, UnsetType

if TYPE_CHECKING:
    from probeval.simulation.trajectory import Trajectory

__all__ = [
    "LEVEL",
    "PolicyComparison",
    "SeedSummary",
    "compare_policies",
    "is_budget",
    "mean_interval",
    "summarise_seeds",
    "t_interval",
]

LEVEL = 0.95  # of the intervals

FigureName = Literal[
    "judgments_at_stop", "judgments_to_tau90", "confidence_at_stop", "accuracy_at_stop", "tau_at_stop",
    "labels_at_stop", "cost_at_stop", "cost_to_tau90",
]  # fmt: skip
SeedVerdict = Literal["fewer", "more", "undecided"]
Interval = tuple[float | None, float | None, float | None]  # the mean and its limits


@dataclass(frozen=True)
class SeedSummary:
    """A figure of a policy over the seeds."""

    policy: str
    model: str
    figure: FigureName
    seeds: Annotated[int, "The number of seeds."]
    reached: Annotated[int, "The number of seeds that got there: the stopping rule held, or tau stayed at .9."]
    mean: Annotated[float | None, "The mean over the seeds that got there; null without any."]
    lower: Annotated[float | None, "The lower limit of the mean, in the range of the figure; null without two seeds."]
    upper: Annotated[float | None, "The upper limit of the mean, in the range of the figure; null without two seeds."]
    allocation: Annotated[
        str | UnsetType, "The rule that shares the cost between people and machines, where labels have a price."
    ] = UNSET


@dataclass(frozen=True)
class PolicyComparison:
    """The judgments that one policy needs, or their cost and that of labels, minus those of another, seed by seed."""

    policy: str
    other: str
    figure: FigureName
    seeds: Annotated[int, "The number of seeds with which both got there."]
    difference: Annotated[float | None, "The mean difference over these seeds; null without any."]
    lower: Annotated[float | None, "The lower limit of the mean difference; null without two seeds."]
    upper: Annotated[float | None, "The upper limit of the mean difference; null without two seeds."]
    fewer: Annotated[
        int,
        "The number of seeds with which the policy needs fewer judgments than the other. If one of them never got "
        "there, the other needs fewer.",
    ]
    more: Annotated[int, "The number of seeds with which the policy needs more judgments than the other."]
    verdict: Annotated[
        SeedVerdict,
        "Whether the policy needs fewer judgments or more: by the interval, or by the sign test of ``fewer`` and "
        "``more`` if one of the two did not get there with every seed.",
    ]


@dataclass(frozen=True)
class SeedFigure:
    """A figure of a trajectory: its value, None if it did not get there, and its range."""

    name: FigureName
    value: Callable[[Trajectory], float | None]
    bounds: Callable[[Trajectory], tuple[float, float]]


def _at_stop(name: str) -> Callable[[Trajectory], float | None]:
    return lambda trajectory: None if trajectory.stop is None else getattr(trajectory.stop, name)


def _within(low: float, high: float) -> Callable[[Trajectory], tuple[float, float]]:
    return lambda _: (low, high)


def _count(trajectory: Trajectory) -> tuple[float, float]:
    return 0.0, float(trajectory.setup.offered)


def _labels(trajectory: Trajectory) -> tuple[float, float]:
    return 0.0, float(trajectory.setup.pool * len(trajectory.setup.answer_prices.machines or {}))


def _expense(trajectory: Trajectory) -> tuple[float, float]:
    prices = trajectory.setup.answer_prices
    everything = dict.fromkeys(prices.machines or {}, trajectory.setup.pool)
    return 0.0, prices.cost(trajectory.setup.offered, everything)


JUDGMENTS = (
    SeedFigure("judgments_at_stop", _at_stop("judged"), _count),
    SeedFigure("judgments_to_tau90", lambda trajectory: trajectory.judgments_to_tau90, _count),
)
FIGURES = (
    *JUDGMENTS,
    SeedFigure("confidence_at_stop", _at_stop("confidence"), _within(0.0, 1.0)),
    SeedFigure("accuracy_at_stop", _at_stop("accuracy"), _within(0.0, 1.0)),
    SeedFigure("tau_at_stop", _at_stop("tau"), _within(-1.0, 1.0)),
)
COSTS = (  # of trajectories in which labels have a price
    SeedFigure("cost_at_stop", _at_stop("cost"), _expense),
    SeedFigure("cost_to_tau90", lambda trajectory: trajectory.cost_to_tau90 or None, _expense),
)
LABELS = SeedFigure("labels_at_stop", _at_stop("labels"), _labels)


def summarise_seeds(trajectories: Sequence[Trajectory], *, level: float = LEVEL) -> tuple[SeedSummary, ...]:
    """Return the mean of each figure over the seeds of each policy, with its interval (:func:`mean_interval`)."""
    found = []
    for same in _by_policy(trajectories).values():
        first = same[0]
        for figure in FIGURES if first.allocation is UNSET else (*FIGURES, LABELS, *COSTS):
            reached = [v for v in map(figure.value, same) if v is not None]
            interval = mean_interval(reached, *figure.bounds(first), level=level)
            n = len(reached)
            found.append(SeedSummary(first.policy, first.model, figure.name, len(same), n, *interval, first.allocation))
    return tuple(found)


def compare_policies(trajectories: Sequence[Trajectory], *, level: float = LEVEL) -> tuple[PolicyComparison, ...]:
    """Return the difference in judgments between every two policies, seed by seed.

    The judgments at the stop are left out where the rule is a budget: all policies then stop after as many.

    The interval is that of a paired t test. No difference exceeds the number of pairs, and limits beyond it are set to
    it, which leaves their coverage and the verdict as they are.
    """
    found = []
    for (label, first), (other, second) in combinations(_by_policy(trajectories).items(), 2):
        figures = JUDGMENTS[1:] if is_budget(first[0].setup.stopping) else JUDGMENTS
        figures = figures if first[0].allocation is UNSET else (*figures, *COSTS)
        for figure in figures:
            pairs = [(figure.value(a), figure.value(b)) for a, b in zip(first, second, strict=True)]
            differences = [a - b for a, b in pairs if a is not None and b is not None]
            signs = [_sign(a, b) for a, b in pairs]
            fewer, more = signs.count(-1), signs.count(1)
            mean, lower, upper = t_interval(differences, level, most=figure.bounds(first[0])[1])
            decided = len(differences) == len(pairs)
            verdict = _by_interval(lower, upper) if decided else _by_signs(fewer, more, level)
            n = len(differences)
            found.append(PolicyComparison(label, other, figure.name, n, mean, lower, upper, fewer, more, verdict))
    return tuple(found)


def _by_policy(trajectories: Sequence[Trajectory]) -> dict[str, list[Trajectory]]:
    out: dict[str, list[Trajectory]] = {}
    for trajectory in trajectories:
        out.setdefault(trajectory.label, []).append(trajectory)
    return {label: sorted(same, key=lambda t: t.seed) for label, same in out.items()}


def is_budget(stopping: str) -> bool:
    """Whether a stopping rule is a number of judgments and nothing else."""
    return stopping.startswith("budget=") and "," not in stopping


def mean_interval(values: Sequence[float], low: float, high: float, *, level: float = LEVEL) -> Interval:
    r"""Return the mean of a bounded figure and its interval, which stays in the range of the figure.

    Student's t interval of the mean on the logit scale, its standard error by the delta method. With the mean as a
    share of the range, :math:`m = (\bar x - l) / (h - l)`, and :math:`s` the standard deviation of the shares,

    .. math:: \text{logit}(m) \pm t_{n-1} \frac{s / \sqrt n}{m (1 - m)},

    taken back to the range. For a correlation, from -1 to 1, this is Fisher's z; for a count far below its largest
    value, the logarithm. It is the t interval where the spread is small for the distance to the ends of the range;
    near an end it is skewed as the figure is, and holds the true mean more often. Values that are all equal, as those
    of a policy without chance, have an interval without width.

    Parameters
    ----------
    values
        One per seed. Without any, all three are None; with one, the interval is.
    low, high
        The range of the figure.
    level
        The level of the interval.

    Examples
    --------
    >>> [round(x, 3) for x in mean_interval([0.95, 0.99, 1.0], 0, 1)]
    [0.98, 0.631, 0.999]
    >>> [round(x) for x in mean_interval([300, 800], 0, 4000)]
    [550, 1, 3969]
    """
    n = len(values)
    if n < 2:
        return (float(values[0]) if n else None), None, None
    shares = (np.asarray(values, dtype=float) - low) / (high - low)
    mean, sd = float(np.mean(values)), float(np.std(shares, ddof=1))
    share = float(shares.mean())
    if not 0 < share < 1 or not sd > 0:  # at an end of the range all values are equal, and so is the mean to them
        return mean, mean, mean
    half = float(stdtrit(n - 1, (1 + level) / 2)) * sd / np.sqrt(n) / (share * (1 - share))
    lower, upper = (low + (high - low) * float(expit(logit(share) + x)) for x in (-half, half))
    return mean, lower, upper


def t_interval(values: Sequence[float], level: float, *, most: float) -> Interval:
    """Return the mean and its t interval, of differences that are at most this large."""
    n = len(values)
    if n < 2:
        return (float(values[0]) if n else None), None, None
    mean = float(np.mean(values))
    half = float(stdtrit(n - 1, (1 + level) / 2) * np.std(values, ddof=1) / np.sqrt(n))
    return mean, max(mean - half, -most), min(mean + half, most)


def _sign(a: float | None, b: float | None) -> int:
    """Return -1 if the first is smaller, 1 if it is larger, 0 otherwise; a number that was never reached is larger."""
    ends = (np.inf if a is None else a, np.inf if b is None else b)
    return int(ends[0] > ends[1]) - int(ends[0] < ends[1])


def _by_interval(lower: float | None, upper: float | None) -> SeedVerdict:
    if upper is not None and upper < 0:
        return "fewer"
    return "more" if lower is not None and lower > 0 else "undecided"


def _by_signs(fewer: int, more: int, level: float) -> SeedVerdict:
    """Return the verdict of the two-sided sign test.

    >>> _by_signs(6, 0, 0.95), _by_signs(1, 9, 0.95), _by_signs(5, 0, 0.95)
    ('fewer', 'more', 'undecided')
    """
    n = fewer + more
    p = 2 * float(bdtr(min(fewer, more), n, 0.5)) if n else 1.0
    if p > 1 - level:
        return "undecided"
    return "fewer" if fewer > more else "more"
