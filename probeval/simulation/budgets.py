"""Policies compared at fixed budgets and over whole curves, paired over seeds and collections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import pandas as pd

from probeval.simulation.seeds import LEVEL, is_budget, mean_interval, t_interval

if TYPE_CHECKING:
    from probeval.simulation.trajectory import Trajectory

__all__ = [
    "BUDGET_FIGURES",
    "BudgetComparison",
    "BudgetSummary",
    "area_under",
    "compare_at_budgets",
    "curves_of",
    "summarise_budgets",
]

BudgetName = Literal["tau", "tau_top15", "tau_ap", "accuracy", "mae", "calibration_error"]
BudgetVerdict = Literal["better", "worse", "undecided"]
BUDGET_FIGURES: dict[BudgetName, int] = {  # 1 if more of it is better, -1 if less is
    "tau": 1,
    "tau_top15": 1,
    "tau_ap": 1,
    "accuracy": 1,
    "mae": -1,
    "calibration_error": -1,
}
FROM_MINUS_ONE = ("tau", "tau_top15", "tau_ap")
SAME = ["campaign", "policy", "seed"]


@dataclass(frozen=True)
class BudgetSummary:
    """A figure of a policy at a budget, or over its whole curve."""

    policy: Annotated[str, "The policy and its model."]
    figure: BudgetName
    budget: Annotated[float | None, "The judged share of the pool; null for the area under the curve."]
    collections: Annotated[int, "The number of collections."]
    seeds: Annotated[int, "The number of trajectories, over seeds and collections."]
    mean: Annotated[float | None, "The mean over collections of the means over seeds; over seeds with one collection."]
    lower: Annotated[float | None, "The lower limit of the mean, in the range of the figure; null without two values."]
    upper: Annotated[float | None, "The upper limit of the mean, in the range of the figure; null without two values."]


@dataclass(frozen=True)
class BudgetComparison:
    """A figure of one policy minus that of another, with the same collections, seeds and budget."""

    policy: str
    other: str
    figure: BudgetName
    budget: Annotated[float | None, "The judged share of the pool; null for the area under the curve."]
    collections: Annotated[int, "The number of collections."]
    seeds: Annotated[int, "The number of pairs of trajectories, over seeds and collections."]
    difference: Annotated[float | None, "The mean difference, over collections if there are several, else over seeds."]
    lower: Annotated[float | None, "The lower limit of the mean difference; null without two values."]
    upper: Annotated[float | None, "The upper limit of the mean difference; null without two values."]
    verdict: Annotated[
        BudgetVerdict,
        "Whether the policy is better: its interval excludes 0. Better is more of tau and accuracy, less of an error.",
    ]


def curves_of(trajectories: Sequence[Trajectory]) -> pd.DataFrame:
    """Return one row per collection, policy, seed and budget: the figures there.

    Budgets are the checkpoints, and the stop if it is a budget.
    """
    found = []
    for trajectory in trajectories:
        shares = trajectory.setup.checkpoints or tuple(p.fraction for p in trajectory.points)
        points = dict(zip(shares, trajectory.points, strict=True))
        if is_budget(trajectory.setup.stopping) and trajectory.at_stop is not None:
            points.setdefault(trajectory.at_stop.fraction, trajectory.at_stop)
        at = {"campaign": trajectory.setup.collection, "policy": trajectory.label, "seed": trajectory.seed}
        found += [
            at | {"budget": share} | {name: getattr(points[share], name) for name in BUDGET_FIGURES}
            for share in sorted(points)
        ]
    return pd.DataFrame(found, columns=[*SAME, "budget", *BUDGET_FIGURES])


def area_under(budgets: Sequence[float], values: Sequence[float]) -> float:
    r"""Return the area under a curve as its mean height: the trapezoidal rule, divided by the range of budgets.

    .. math:: \frac{1}{b_n - b_1} \sum_{i=2}^{n} (b_i - b_{i-1}) \frac{y_i + y_{i-1}}{2}

    NaN for fewer than two budgets.

    Examples
    --------
    >>> area_under([0, 0.1, 0.2], [0.0, 0.8, 1.0])
    0.65
    """
    x, y = np.asarray(budgets, dtype=float), np.asarray(values, dtype=float)
    if len(x) < 2:
        return float("nan")
    return round(float((np.diff(x) * (y[1:] + y[:-1]) / 2).sum() / (x[-1] - x[0])), 12)


def summarise_budgets(curves: pd.DataFrame, *, level: float = LEVEL) -> tuple[BudgetSummary, ...]:
    """Return the mean of each figure at each budget, and of the area under its curve.

    Parameters
    ----------
    curves
        As from :func:`curves_of`.
    level
        The level of intervals (:func:`~probeval.simulation.seeds.mean_interval`).
    """
    found, table = [], _with_areas(curves)
    for policy in dict.fromkeys(curves["policy"]):
        mine = table[table["policy"] == policy]
        for figure in BUDGET_FIGURES:
            for budget, part in mine.groupby("budget", dropna=False, sort=False):
                values = _blocks(part.set_index(["campaign", "seed"])[figure])
                low = -1.0 if figure in FROM_MINUS_ONE else 0.0
                interval = mean_interval(values, low, max([1.0, *values]), level=level)
                n = part["campaign"].nunique()
                found.append(BudgetSummary(policy, figure, _budget(budget), n, len(part), *interval))
    return tuple(found)


def compare_at_budgets(curves: pd.DataFrame, *, level: float = LEVEL) -> tuple[BudgetComparison, ...]:
    """Return the differences between every two policies at each budget, and between the areas under their curves.

    With one collection differences are paired by seed. With several they are means over the seeds of each collection,
    and the interval, Student's t, is over collections: seeds of one collection tell little of another.

    Parameters
    ----------
    curves
        As from :func:`curves_of`. A policy without chance may have a single seed, which stands for all.
    level
        The level of intervals.
    """
    found, table = [], _with_areas(curves)
    for policy, other in combinations(dict.fromkeys(curves["policy"]), 2):
        for figure, sign in BUDGET_FIGURES.items():
            for budget, part in table.groupby("budget", dropna=False, sort=False):
                first, second = (
                    part[part["policy"] == name].set_index(["campaign", "seed"])[figure] for name in (policy, other)
                )
                differences = _paired(first, second)
                values = _blocks(differences)
                mean, lower, upper = t_interval(values, level, most=2.0 * max([1.0, *map(abs, values)]))
                verdict: BudgetVerdict = "undecided"
                if lower is not None and upper is not None and (lower > 0 or upper < 0):
                    verdict = "better" if lower * sign > 0 else "worse"
                n = differences.index.get_level_values("campaign").nunique()
                at = (_budget(budget), n, len(differences), mean, lower, upper)
                found.append(BudgetComparison(policy, other, figure, *at, verdict))
    return tuple(found)


def _with_areas(curves: pd.DataFrame) -> pd.DataFrame:
    """Return the curves at the budgets that all of them have and, if there are two, the areas, with a budget of NaN."""
    counts = curves.groupby("budget")[SAME[0]].size()
    common = counts[counts == counts.max()].index if len(counts) else counts.index
    kept = curves[curves["budget"].isin(common)].sort_values("budget", kind="stable")
    if len(common) < 2:
        return kept
    areas = [
        dict(zip(SAME, same, strict=True))
        | {"budget": float("nan")}
        | {name: area_under(part["budget"].tolist(), part[name].tolist()) for name in BUDGET_FIGURES}
        for same, part in kept.groupby(SAME, sort=False)
    ]
    return pd.concat([kept, pd.DataFrame(areas, columns=kept.columns)], ignore_index=True)


def _paired(first: pd.Series, second: pd.Series) -> pd.Series:
    """Return the differences over the seeds that both have; a single seed of a collection is paired with all."""
    found = {}
    for campaign in dict.fromkeys(first.index.get_level_values("campaign")):
        if campaign not in second.index.get_level_values("campaign"):
            continue
        a, b = first.loc[campaign], second.loc[campaign]
        for seed in a.index if len(b) == 1 else b.index:
            left = a.iloc[0] if len(a) == 1 else a.get(seed)
            right = b.iloc[0] if len(b) == 1 else b.get(seed)
            if left is not None and right is not None:
                found[campaign, seed] = left - right
    index = pd.MultiIndex.from_tuples(list(found), names=["campaign", "seed"])
    return pd.Series(list(found.values()), index=index, dtype=float).dropna()


def _blocks(values: pd.Series) -> list[float]:
    """Return the means over seeds of each collection, or the values of the seeds if there is one collection."""
    known = values.dropna()
    by = known.groupby(level="campaign", sort=False).mean()
    return [float(v) for v in (by if len(by) > 1 else known)]


def _budget(budget: Any) -> float | None:
    return None if np.isnan(budget) else float(budget)
