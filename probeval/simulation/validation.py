"""Results of a validation, in tables and against criteria."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

import pandas as pd

from probeval.display import Record, Table
from probeval.errors import ScoreError
from probeval.results import Result
from probeval.schema import records
from probeval.simulation.documents import StopDocument
from probeval.simulation.points import Point, PointDocument

__all__ = ["MARKS", "Validation", "ValidationDocument", "ValidationRun", "ValidationRunDocument"]

POLICY: Literal["random"] = "random"
STOP, TAU = 0.95, 0.9  # the mean confidence to stop at; the tau that is good enough
SHOWN = (
    "campaign", "model", "metric", "checkpoint", "confidence", "accuracy", "tau", "tau_top15",
    "calibration_error", "calibration_excess", "calibration_p", "coverage", "centred_coverage", "level_z",
)  # fmt: skip
EARLY = 0.02  # checkpoints up to here have few judgments

# Criteria: the share of points with p of at least .01, the excess early and later, centred coverage, the level.
MARKS = {
    "calibration_p >= .01": 0.95,
    "smallest calibration_p": 0.001,
    "calibration_excess to 2%": 0.03,
    "calibration_excess from 5%": 0.02,
    "centred_coverage": 0.85,
    "centred_coverage over null": 0.0,
    "|level_z| <= 2.6": 0.95,
    "largest |level_z|": 4.0,
}
AT_MOST = ("calibration_excess to 2%", "calibration_excess from 5%", "largest |level_z|")


class ValidationRunDocument(TypedDict):
    """A held-out campaign judged in one random order.

    Parameters
    ----------
    policy, model, seed
        The policy, the model and the order of judging.
    pool
        The number of pairs.
    judgments_to_tau90
        The first checkpoint from which tau stays at least .9, in judgments; null if none.
    stop
        The first checkpoint with mean confidence of at least .95; if none, the last one with ``reached`` false.
    points
        One entry per checkpoint.
    """

    policy: Literal["random"]
    model: str
    seed: int
    pool: int
    judgments_to_tau90: int | None
    stop: StopDocument
    points: list[PointDocument]


class HeldOutDocument(TypedDict):
    """A held-out campaign by one measure.

    Parameters
    ----------
    campaign, metric
        Its name, and the measure.
    depth, pool, systems
        The depth of the pool, its number of pairs, and the number of systems.
    policies
        One entry per model and order of judging.
    """

    campaign: str
    metric: str
    depth: int
    pool: int
    systems: int
    policies: list[ValidationRunDocument]


class ReliabilityBin(TypedDict):
    """Stated confidence against accuracy in one bin.

    Parameters
    ----------
    low, high
        The edges of the bin of stated confidence.
    pairs, confidence, accuracy
        The number of pairs of systems in it, their mean confidence, and the share of them in the true order.
    """

    model: str
    low: float
    high: float
    pairs: int
    confidence: float
    accuracy: float


class MarkDocument(TypedDict):
    """A figure and its criterion."""

    model: str
    figure: str
    value: float
    mark: float
    holds: bool


class ValidationDocument(TypedDict):
    """The results of a validation.

    Parameters
    ----------
    checkpoints
        The judged shares of the pools.
    campaigns
        One entry per held-out campaign and measure.
    reliability
        Stated confidence against accuracy, bin by bin.
    summary
        Every figure and its criterion.
    """

    checkpoints: list[float]
    campaigns: list[HeldOutDocument]
    reliability: list[ReliabilityBin]
    summary: list[MarkDocument]


@dataclass(frozen=True, repr=False)
class ValidationRun(Record):
    """A held-out campaign judged in one random order: a point per checkpoint.

    Parameters
    ----------
    campaign, model, metric, seed
        The campaign, the model, the measure, and the order of judging.
    systems, pool, depth
        The number of systems, the number of pairs in their pool, and its depth.
    points
        One per checkpoint.
    """

    campaign: str
    model: str
    metric: str
    seed: int
    systems: int
    pool: int
    depth: int
    points: tuple[Point, ...]

    @property
    def labels(self) -> dict[str, str | int]:
        """The labels of this run in tables."""
        return {"campaign": self.campaign, "model": self.model, "metric": self.metric, "seed": self.seed}

    def to_dict(self) -> ValidationRunDocument:
        """Return the run as plain data for JSON.

        ``stop`` is the first checkpoint with mean confidence of at least .95 (if none, the last one, not reached),
        ``judgments_to_tau90`` the first from which tau stays at least .9.
        """
        good = [p.tau >= TAU for p in self.points]
        lasting = next((p.judged for i, p in enumerate(self.points) if all(good[i:])), None)
        stop = next((p for p in self.points if p.confidence >= STOP), None)
        at = stop or self.points[-1]
        return {
            "policy": POLICY,
            "model": self.model,
            "seed": self.seed,
            "pool": self.pool,
            "judgments_to_tau90": lasting,
            "stop": {
                "reached": stop is not None,
                "judged": at.judged,
                "fraction": at.fraction,
                "confidence": at.confidence,
                "accuracy": at.accuracy,
                "tau": at.tau,
            },
            "points": [p.to_dict() for p in self.points],
        }


@dataclass(frozen=True, repr=False)
class Validation(Result):
    """The results of a validation: every held-out campaign, model, measure and order of judging.

    Parameters
    ----------
    checkpoints
        The judged shares of the pools.
    validation_runs
        In the order of the campaigns, models, measures and seeds.
    """

    checkpoints: tuple[float, ...]
    validation_runs: tuple[ValidationRun, ...]

    def __add__(self, other: Validation) -> Validation:
        """Combine two validations, such as of campaigns with different depths and measures."""
        if self.checkpoints != other.checkpoints:
            raise ScoreError("Only validations with the same checkpoints can be combined.")
        return Validation(self.checkpoints, self.validation_runs + other.validation_runs)

    def to_frame(self, *, by_seed: bool = False) -> pd.DataFrame:
        """Return one row per campaign, model, metric and checkpoint, with all figures as means over seeds.

        With ``by_seed``, one row per seed as well.
        """
        frame = pd.DataFrame(
            [
                {**t.labels, "checkpoint": at, **p.to_dict()}
                for t in self.validation_runs
                for at, p in zip(self.checkpoints, t.points, strict=True)
            ]
        )
        if by_seed:
            return frame
        keys = ["campaign", "model", "metric", "checkpoint"]
        return frame.drop(columns="seed").groupby(keys, sort=False).mean().reset_index()

    def reliability(self, *, by: Sequence[str] = ("model",)) -> pd.DataFrame:
        """Return stated confidence and accuracy per non-empty bin, pooled over everything but ``by``.

        Parameters
        ----------
        by
            Any of ``campaign``, ``model``, ``metric``, ``seed``, ``checkpoint``.
        """
        rows = [
            p.bins.to_frame().assign(**t.labels, checkpoint=at)
            for t in self.validation_runs
            for at, p in zip(self.checkpoints, t.points, strict=True)
        ]
        sums = pd.concat(rows).groupby([*by, "low", "high"], sort=False)[["pairs", "confidence", "accuracy"]].sum()
        sums = sums[sums["pairs"] > 0]
        means = sums[["confidence", "accuracy"]].div(sums["pairs"], axis=0)
        return sums[["pairs"]].astype(int).join(means).reset_index()

    def marks(self) -> pd.DataFrame:
        """Return one row per model and figure: its value, its criterion, and whether it holds.

        Shares and extremes are over single seeds.
        """
        frame = self.to_frame(by_seed=True)
        rows = []
        for model, points in frame.groupby("model", sort=False):
            for figure, value in _figures(points).items():
                mark = MARKS[figure]
                holds = value <= mark if figure in AT_MOST else value >= mark
                rows.append({"model": model, "figure": figure, "value": value, "mark": mark, "holds": bool(holds)})
        return pd.DataFrame(rows)

    def _headline(self) -> str:
        campaigns, models = ({getattr(t, name) for t in self.validation_runs} for name in ("campaign", "model"))
        return f"{len(campaigns)} campaigns, {len(models)} models, {len(self.checkpoints)} checkpoints"

    def tables(self) -> tuple[Table, ...]:
        """Return means over seeds, stated confidence and accuracy, and figures against criteria."""
        seeds = len({t.seed for t in self.validation_runs})
        return (
            Table(self.to_frame()[list(SHOWN)], f"Means over {seeds} order{'s' * (seeds > 1)} of judging"),
            Table(self.reliability(), "Reliability: stated confidence and accuracy of pairs of systems"),
            Table(self.marks(), "Criteria"),
        )

    def to_dict(self) -> ValidationDocument:
        """Return the result as plain data for JSON."""
        cells: dict[tuple[str, str], list[ValidationRun]] = {}
        for validation_run in self.validation_runs:
            cells.setdefault((validation_run.campaign, validation_run.metric), []).append(validation_run)
        return {
            "checkpoints": list(self.checkpoints),
            "campaigns": [
                {
                    "campaign": campaign,
                    "metric": metric,
                    "depth": validation_runs[0].depth,
                    "pool": validation_runs[0].pool,
                    "systems": validation_runs[0].systems,
                    "policies": [validation_run.to_dict() for validation_run in validation_runs],
                }
                for (campaign, metric), validation_runs in cells.items()
            ],
            "reliability": records(self.reliability(), ReliabilityBin),
            "summary": records(self.marks(), MarkDocument),
        }


def _figures(points: pd.DataFrame) -> dict[str, float]:
    """Return the figures of :data:`MARKS` over the points of one model."""
    p, z, early = points["calibration_p"].dropna(), points["level_z"].abs(), points["checkpoint"] <= EARLY
    by_campaign = points.groupby("campaign")[["centred_coverage", "centred_coverage_null05"]].mean()
    figures = (
        (p >= 0.01).mean(),
        p.min(),
        points.loc[early, "calibration_excess"].mean(),
        points.loc[~early, "calibration_excess"].mean(),
        points["centred_coverage"].mean(),
        (by_campaign["centred_coverage"] - by_campaign["centred_coverage_null05"]).min(),
        (z <= 2.6).mean(),
        z.max(),
    )
    return {name: float(value) for name, value in zip(MARKS, figures, strict=True)}
