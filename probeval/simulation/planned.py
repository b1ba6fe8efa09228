"""What came of a plan: every way that was looked at, and what is expected of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NotRequired, TypedDict, cast

import pandas as pd

from probeval.display import Shown, View
from probeval.simulation.forecast import Forecast, ForecastStep

__all__ = ["Plan", "PlanDocument", "Planned", "PlannedDocument"]

DECIMALS = {"judgments": 0, "lower": 0, "upper": 0, "a_query": 1, "hours": 1, "cost": 2}  # of what is counted or paid


class PlannedDocument(TypedDict):
    """One way of doing it, and what is expected of it.

    Parameters
    ----------
    queries, depth, assessors, labels
        How many queries, ranks pooled and assessors per pair, and whether machines label the pool.
    judgments, lower, upper
        How many judgments it takes, those already made included: median, and 90% interval.
    a_query
        The judgments for each query.
    pool
        How many pairs there are to judge.
    confidence, halfwidth, erho2, phi, power
        What each target comes to.
    hours, cost
        How long the judgments still to be made take, and what they cost.
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
        What is to be reached.
    reached
        Whether some option reaches it.
    options
        Those that do by rising cost, then the others.
    curve
        The trajectory that judging is expected to take with the first option.
    """

    targets: dict[str, float]
    reached: bool
    options: list[PlannedDocument]
    curve: list[ForecastStep]


class Expected(TypedDict, total=False):
    """What each target comes to."""

    confidence: float
    halfwidth: float
    erho2: float
    phi: float
    power: float


@dataclass(frozen=True, eq=False, repr=False)
class Planned(Shown):
    """One way of doing it, and what is expected of it.

    Parameters
    ----------
    queries, depth, assessors, labels
        How many queries, ranks pooled and assessors a pair, and whether machines label the pool.
    judgments, lower, upper
        How many judgments it takes, those already made included: median, and 90% interval.
    pool
        How many pairs there are to judge.
    expected
        What each target comes to.
    meets
        Whether all targets do.
    cost, hours
        What the judgments still to be made cost, and how long they take.
    ahead
        The trajectory that judging is expected to take.
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
        """One row."""
        return pd.DataFrame([self.to_dict()])

    def _headline(self) -> str:
        return (
            f"{self.queries} queries to depth {self.depth}, about {self.judgments:,.0f} judgments "
            f"({self.lower:,.0f} to {self.upper:,.0f}) of {self.pool:,} pairs"
        )

    def views(self) -> tuple[View, ...]:
        """One row."""
        return (View(self.to_frame(), self._headline(), DECIMALS, ("judgments", "lower", "upper")),)

    def to_dict(self) -> PlannedDocument:
        """The option as plain data for JSON."""
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
class Plan(Shown):
    """All ways that were looked at, the cheapest that meets the targets first.

    Parameters
    ----------
    targets
        What is to be reached.
    options
        Those that meet the targets by rising cost, then the others.
    """

    targets: dict[str, float]
    options: tuple[Planned, ...]

    @property
    def best(self) -> Planned | None:
        """The cheapest that meets the targets, or None."""
        first = self.options[0]
        return first if first.meets else None

    def to_frame(self) -> pd.DataFrame:
        """One row per option."""
        return pd.DataFrame([option.to_dict() for option in self.options])

    def _headline(self) -> str:
        wanted = ", ".join(f"{name} {value:g}" for name, value in self.targets.items())
        return f"{len(self.options)} options for {wanted}"

    def views(self) -> tuple[View, ...]:
        """One row per option."""
        return (View(self.to_frame(), "The cheapest first", DECIMALS, ("judgments", "lower", "upper")),)

    def sentences(self) -> tuple[str, ...]:
        """The cheapest option."""
        best = self.best
        if best is None:
            return ("No option reaches the target. Look at more queries (--queries), or lower it.",)
        return (
            f"Cheapest: {best.queries} queries to depth {best.depth}, about {best.judgments:,.0f} judgments "
            f"({best.lower:,.0f} to {best.upper:,.0f}) of {best.pool:,} pairs, {best.hours:,.1f} hours, "
            f"cost {best.cost:,.2f}.",
        )

    def to_dict(self) -> PlanDocument:
        """The plan as plain data for JSON, with the expected trajectory of the first option."""
        return {
            "targets": self.targets,
            "reached": self.best is not None,
            "options": [option.to_dict() for option in self.options],
            "curve": self.options[0].ahead.to_dict(),
        }
