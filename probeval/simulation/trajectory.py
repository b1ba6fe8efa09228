"""What came of a replay: figures along the way, where it stopped, and when the ranking was good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import pandas as pd

from probeval.display import Shown, View
from probeval.simulation.points import Point, PointDocument
from probeval.simulation.significance_rules import RuleDecisions, RuleDecisionsDocument
from probeval.ties import TIE

__all__ = [
    "LASTS",
    "TAU",
    "Simulation",
    "SimulationDocument",
    "StopDocument",
    "Trajectory",
    "TrajectoryDocument",
    "TrajectoryStep",
    "lasting",
]

TAU, LASTS = 0.9, 100  # a ranking is good when tau stays at .9 for as many more judgments
SHOWN = ("policy", "model", "seed", "judged", "confidence", "accuracy", "tau", "mae", "calibration_excess", "coverage")


class StopDocument(TypedDict):
    """Where judging stopped.

    Parameters
    ----------
    reached
        Whether the stopping rule held; the other figures are those of the end where it never did.
    judged, fraction
        How many pairs were judged, and their share of the pool.
    confidence, accuracy, tau
        What was stated there, and how right it was.
    """

    reached: bool
    judged: int
    fraction: float
    confidence: float
    accuracy: float
    tau: float


class ReasonedStopDocument(StopDocument):
    """Where judging stopped, and why.

    Parameters
    ----------
    reached
        Whether the stopping rule held; the other figures are those of the end where it never did.
    judged, fraction
        How many pairs were judged, and their share of the pool.
    confidence, accuracy, tau
        What was stated there, and how right it was.
    reasons
        Why the rule held.
    """

    reasons: list[str]


class TrajectoryDocument(TypedDict):
    """A campaign judged once by one policy.

    Parameters
    ----------
    policy, model, seed
        What chose, what predicted, and which randomness.
    judgments_to_tau90
        The first number of judgments from which tau stays at least .9 for 100 more; null if never.
    points, rules
        One entry per checkpoint.
    """

    policy: str
    model: str
    seed: int
    judgments_to_tau90: int | None
    stop: ReasonedStopDocument
    points: list[PointDocument]
    rules: list[RuleDecisionsDocument]


class SimulationDocument(TypedDict):
    """A campaign judged again by several policies.

    Parameters
    ----------
    metric, pool, systems
        The measure, how many pairs there are, and how many systems.
    policies
        One entry per policy and seed.
    """

    metric: str
    pool: int
    systems: int
    policies: list[TrajectoryDocument]


@dataclass(frozen=True)
class TrajectoryStep:
    """After so many judgments: what is stated, and how right it is."""

    judged: int
    confidence: float
    accuracy: float
    tau: float
    significant: float = float("nan")  # accuracy among the pairs whose true difference is significant


def lasting(
    steps: Sequence[TrajectoryStep], tau: float = TAU, lasts: int = LASTS, *, exhausted: bool = False
) -> int | None:
    """The first number of judgments from which tau stays at least ``tau`` for the next ``lasts``; None if never.

    Where all is judged, what is left of the trajectory suffices.
    """
    first: int | None = None
    for step in steps:
        if not step.tau >= tau - TIE:  # not known, for a single system
            first = None
        elif first is None:
            first = step.judged
        if first is not None and step.judged >= first + lasts:
            return first
    return first if exhausted else None


@dataclass(frozen=True, repr=False)
class Trajectory(Shown):
    """A campaign judged once by one policy.

    Parameters
    ----------
    policy, model, metric, seed
        Who chose, what predicted, what was measured, and which randomness.
    pool, offered, systems
        How many pairs there were, how many of them could be judged, and how many systems.
    steps
        One per batch.
    points, rules
        One per checkpoint: every figure, and what the rules of Urbano and Schedl (2012) would say.
    stop, at_stop, reasons
        The first step at which the stopping rule held, every figure there, and why it held; None where it never did.
    order
        The pairs in the order in which they were judged.
    """

    policy: str
    model: str
    metric: str
    seed: int
    pool: int
    offered: int
    systems: int
    steps: tuple[TrajectoryStep, ...]
    points: tuple[Point, ...]
    rules: tuple[RuleDecisions, ...]
    stop: TrajectoryStep | None
    reasons: tuple[str, ...]
    order: tuple[int, ...]
    at_stop: Point | None = None

    @property
    def judgments_to_tau90(self) -> int | None:
        """The first number of judgments from which tau stays at least .9 for 100 more; None if it never does."""
        return lasting(self.steps, exhausted=self.steps[-1].judged >= self.offered)

    @property
    def label(self) -> str:
        """How pictures and tables name it."""
        return f"{self.policy}:{self.model}"

    @property
    def significant(self) -> int | None:
        """The first number of judgments with which all significant comparisons have the right sign; None if never."""
        return next((s.judged for s in self.steps if s.significant >= 1), None)

    def reaches(self, confidence: float) -> int | None:
        """The first number of judgments with this mean confidence; None if it is never reached."""
        return next((s.judged for s in self.steps if s.confidence >= confidence), None)

    def to_frame(self) -> pd.DataFrame:
        """One row per batch: judged, confidence, accuracy, tau, significant."""
        return pd.DataFrame([vars(step) for step in self.steps])

    def _headline(self) -> str:
        return f"{self.metric} by {self.label}, {self.steps[-1].judged:,} of {self.pool:,} pairs judged"

    def views(self) -> tuple[View, ...]:
        """One row per checkpoint."""
        points = pd.DataFrame([point.to_dict() for point in self.points])
        shown = [c for c in SHOWN if c in points.columns]
        return (View(points[shown], self._headline()),)

    def sentences(self) -> tuple[str, ...]:
        """Where it stopped, and how right it was there."""
        at = self.stop or self.steps[-1]
        why = f"Stopped ({'; '.join(self.reasons)})" if self.stop is not None else "The stopping rule never held; ended"
        return (f"{why} with {at.judged:,} judgments: accuracy {at.accuracy:.3f}, tau {at.tau:.3f}.",)

    def to_dict(self) -> TrajectoryDocument:
        """The trajectory as plain data for JSON."""
        at = self.stop or self.steps[-1]
        return {
            "policy": self.policy,
            "model": self.model,
            "seed": self.seed,
            "judgments_to_tau90": self.judgments_to_tau90,
            "stop": {
                "reached": self.stop is not None,
                "judged": at.judged,
                "fraction": at.judged / self.pool,
                "confidence": at.confidence,
                "accuracy": at.accuracy,
                "tau": at.tau,
                "reasons": list(self.reasons),
            },
            "points": [point.to_dict() for point in self.points],
            "rules": [decisions.to_dict() for decisions in self.rules],
        }


@dataclass(frozen=True, repr=False)
class Simulation(Shown):
    """Several trajectories of one campaign side by side.

    Parameters
    ----------
    trajectories
        In the order of the policies and seeds.
    """

    trajectories: tuple[Trajectory, ...]

    def to_dict(self) -> SimulationDocument:
        """The result as plain data for JSON."""
        first = self.trajectories[0]
        return {
            "metric": first.metric,
            "pool": first.pool,
            "systems": first.systems,
            "policies": [trajectory.to_dict() for trajectory in self.trajectories],
        }

    def to_frame(self) -> pd.DataFrame:
        """One row per trajectory and checkpoint: policy, model, seed, and every figure."""
        return pd.DataFrame(
            [
                {"policy": c.policy, "model": c.model, "seed": c.seed, **point.to_dict()}
                for c in self.trajectories
                for point in c.points
            ]
        )

    def stops(self) -> pd.DataFrame:
        """One row per trajectory: where it stopped, how right it was there, and when the ranking was good."""
        rows = []
        for trajectory in self.trajectories:
            stop = trajectory.to_dict()["stop"]
            rows.append(
                {
                    "policy": trajectory.policy,
                    "model": trajectory.model,
                    "seed": trajectory.seed,
                    "stopped": stop["reached"],
                    "judged": stop["judged"],
                    "fraction": stop["fraction"],
                    "confidence": stop["confidence"],
                    "accuracy": stop["accuracy"],
                    "tau": stop["tau"],
                }
            )
        frame = pd.DataFrame(rows)
        # Counts stay whole where some are missing.
        frame.insert(3, "to tau .9", pd.Series([c.judgments_to_tau90 for c in self.trajectories], dtype=object))
        return frame

    def _headline(self) -> str:
        first = self.trajectories[0]
        return f"{first.metric}, {', '.join(dict.fromkeys(t.label for t in self.trajectories))}, {first.pool:,} pairs"

    def views(self) -> tuple[View, ...]:
        """One row per trajectory and checkpoint; one row per trajectory."""
        along = View(self.to_frame()[list(SHOWN)], f"{self.trajectories[0].metric} along the way")
        return along, View(self.stops(), "At the stop, or at the end")
