"""Results of planning: the options and their expected outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NotRequired, TypedDict, cast

import pandas as pd

from probeval.display import Table
from probeval.results import Result
from probeval.simulation.forecast import Forecast, ForecastStep

__all__ = ["Plan", "PlanDocument", "Planned", "PlannedDocument"]

DECIMALS = {
    "judgments": 0,
    "lower": 0,
    "upper": 0,
    "a_query": 1,
    "hours": 1,
    "cost": 2,
}  # of counts, times and costs


class PlannedDocument(TypedDict):
    """An option of a plan and its expected outcome.

    Parameters
    ----------
    queries, depth, assessors, labels
        Numbers of queries, pooled ranks and assessors per pair, and whether the pool has machine labels.
    judgments, lower, upper
        The number of judgments needed, including those already made: median and 90% interval.
    a_query
        The judgments per query.
    pool
        The number of pairs in the pool.
    confidence, halfwidth, erho2, phi, power
        The expected value of each target.
    hours, cost
        The time and cost of the judgments still to be made.
    meets
        Whether all targets are met.
    """

    queries: int
    depth: int
    assessors: int
    labels: bool
    judgments: float
    lower: float
    upper: float
    a_query: float
    pool: int
    confidence: NotRequired[float]
    halfwidth: NotRequired[float]
    erho2: NotRequired[float]
    phi: NotRequired[float]
    power: NotRequired[float]
    hours: float
    cost: float
    meets: bool


class PlanDocument(TypedDict):
    """A plan.

    Parameters
    ----------
    targets
        The targets.
    reached
        Whether any option meets them.
    options
        The options that meet the targets by rising cost, then the others.
    curve
        The expected trajectory of judging with the first option.
    """

    targets: dict[str, float]
    reached: bool
    options: list[PlannedDocument]
    curve: list[ForecastStep]


class Expected(TypedDict, total=False):
    """The expected value of each target."""

    confidence: float
    halfwidth: float
    erho2: float
    phi: float
    power: float


@dataclass(frozen=True, eq=False, repr=False)
class Planned(Result):
    """An option of a plan and its expected outcome.

    Parameters
    ----------
    queries, depth, assessors, labels
        Numbers of queries, pooled ranks and assessors per pair, and whether the pool has machine labels.
    judgments, lower, upper
        The number of judgments needed, including those already made: median and 90% interval.
    pool
        The number of pairs in the pool.
    expected
        The expected value of each target.
    meets
        Whether all targets are met.
    cost, hours
        The cost and time of the judgments still to be made.
    ahead
        The expected trajectory of judging.
    """

    queries: int
    depth: int
    assessors: int
    labels: bool
    judgments: float
    lower: float
    upper: float
    pool: int
    expected: dict[str, float]
    meets: bool
    cost: float
    hours: float
    ahead: Forecast

    def to_frame(self) -> pd.DataFrame:
        """Return one row."""
        return pd.DataFrame([self.to_dict()])

    def _headline(self) -> str:
        return (
            f"{self.queries} queries to depth {self.depth}, about {self.judgments:,.0f} judgments "
            f"({self.lower:,.0f} to {self.upper:,.0f}) of {self.pool:,} pairs"
        )

    def tables(self) -> tuple[Table, ...]:
        """Return one row."""
        return (Table(self.to_frame(), self._headline(), DECIMALS, ("judgments", "lower", "upper")),)

    def to_dict(self) -> PlannedDocument:
        """Return the option as plain data for JSON."""
        return {
            "queries": self.queries,
            "depth": self.depth,
            "assessors": self.assessors,
            "labels": self.labels,
            "judgments": self.judgments,
            "lower": self.lower,
            "upper": self.upper,
            "a_query": self.judgments / max(self.queries, 1),
            "pool": self.pool,
            **cast("Expected", self.expected),
            "hours": self.hours,
            "cost": self.cost,
            "meets": self.meets,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Result):
    """All options of a plan, the cheapest that meets the targets first.

    Parameters
    ----------
    targets
        The targets.
    options
        The options that meet the targets by rising cost, then the others.
    """

    targets: dict[str, float]
    options: tuple[Planned, ...]

    @property
    def best(self) -> Planned | None:
        """The cheapest option that meets the targets, or None."""
        first = self.options[0]
        return first if first.meets else None

    def to_frame(self) -> pd.DataFrame:
        """Return one row per option."""
        return pd.DataFrame([option.to_dict() for option in self.options])

    def _headline(self) -> str:
        wanted = ", ".join(f"{name} {value:g}" for name, value in self.targets.items())
        return f"{len(self.options)} options for {wanted}"

    def tables(self) -> tuple[Table, ...]:
        """Return one row per option."""
        return (Table(self.to_frame(), "Options, cheapest first", DECIMALS, ("judgments", "lower", "upper")),)

    def sentences(self) -> tuple[str, ...]:
        """Return a sentence on the cheapest option."""
        best = self.best
        if best is None:
            return ("No option reaches the target. Try more queries (--queries), or a lower target.",)
        return (
            f"Cheapest: {best.queries} queries to depth {best.depth}, about {best.judgments:,.0f} judgments "
            f"({best.lower:,.0f} to {best.upper:,.0f}) of {best.pool:,} pairs, {best.hours:,.1f} hours, "
            f"cost {best.cost:,.2f}.",
        )

    def to_dict(self) -> PlanDocument:
        """Return the plan as plain data for JSON, with the expected trajectory of the first option."""
        return {
            "targets": self.targets,
            "reached": self.best is not None,
            "options": [option.to_dict() for option in self.options],
            "curve": self.options[0].ahead.to_dict(),
        }
