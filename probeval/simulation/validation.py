"""What came of a validation, in tables and against the marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from probeval.errors import ScoreError
from probeval.simulation.points import Point

__all__ = ["MARKS", "Validation", "ValidationRun"]

POLICY = "random"
STOP, TAU = 0.95, 0.9  # the mean confidence to stop at; the tau that is good enough
EARLY = 0.02  # checkpoints up to here have hardly anything to go by

# What must hold: the share of points with p of at least .01, the excess early and later, centred coverage, the level.
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


@dataclass(frozen=True)
class ValidationRun:
    """A held-out campaign judged once, in one order: a point at every checkpoint.

    Parameters
    ----------
    campaign, model, metric, seed
        What was judged, what predicted it, what was measured, and which order.
    systems, pool, depth
        How many systems took part, and how many pairs they retrieved to which depth.
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
        """What tells it from other validation_runs."""
        return {"campaign": self.campaign, "model": self.model, "metric": self.metric, "seed": self.seed}

    def to_dict(self) -> dict[str, Any]:
        """The validation_run as plain data for JSON.

        ``stop`` is the first checkpoint whose mean confidence is at least .95 (the last one, not reached, where none
        is), ``judgments_to_tau90`` the first from which on tau is at least .9.
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
                **{name: getattr(at, name) for name in ("judged", "fraction", "confidence", "accuracy", "tau")},
            },
            "points": [p.to_dict() for p in self.points],
        }


@dataclass(frozen=True)
class Validation:
    """What came of it: every held-out campaign by every model, measure and order of judging.

    Parameters
    ----------
    checkpoints
        The shares of the pools that were judged.
    validation_runs
        In the order of the campaigns, models, measures and seeds.
    """

    checkpoints: tuple[float, ...]
    validation_runs: tuple[ValidationRun, ...]

    def __add__(self, other: Validation) -> Validation:
        """Both as one: campaigns that need different depths and measures are run apart."""
        if self.checkpoints != other.checkpoints:
            raise ScoreError("Only validations with the same checkpoints can be put together.")
        return Validation(self.checkpoints, self.validation_runs + other.validation_runs)

    def to_frame(self) -> pd.DataFrame:
        """One row per point: campaign, model, metric, seed, checkpoint, and every figure."""
        return pd.DataFrame(
            [
                {**t.labels, "checkpoint": at, **p.to_dict()}
                for t in self.validation_runs
                for at, p in zip(self.checkpoints, t.points, strict=True)
            ]
        )

    def table(self) -> pd.DataFrame:
        """One row per campaign, model, metric and checkpoint: every figure, as its mean over seeds."""
        keys = ["campaign", "model", "metric", "checkpoint"]
        return self.to_frame().drop(columns="seed").groupby(keys, sort=False).mean().reset_index()

    def reliability(self, *, by: Sequence[str] = ("model",)) -> pd.DataFrame:
        """Stated confidence against accuracy, bin by bin, pooled over everything but ``by``; empty bins are left out.

        Parameters
        ----------
        by
            Any of ``campaign``, ``model``, ``metric``, ``seed``, ``checkpoint``.
        """
        rows = [
            {**t.labels, "checkpoint": at, **cell}
            for t in self.validation_runs
            for at, p in zip(self.checkpoints, t.points, strict=True)
            for cell in p.bins.rows()
        ]
        sums = pd.DataFrame(rows).groupby([*by, "low", "high"], sort=False)[["pairs", "confidence", "accuracy"]].sum()
        sums = sums[sums["pairs"] > 0]
        means = sums[["confidence", "accuracy"]].div(sums["pairs"], axis=0)
        return sums[["pairs"]].astype(int).join(means).reset_index()

    def summary(self) -> pd.DataFrame:
        """One row per model and figure: its value, the mark it is held against, and whether it holds.

        Every seed counts by itself where a share or an extreme is asked for.
        """
        frame = self.to_frame()
        rows = []
        for model, points in frame.groupby("model", sort=False):
            for figure, value in _figures(points).items():
                mark = MARKS[figure]
                holds = value <= mark if figure in AT_MOST else value >= mark
                rows.append({"model": model, "figure": figure, "value": value, "mark": mark, "holds": bool(holds)})
        return pd.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data for JSON."""
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
            "reliability": self.reliability().to_dict("records"),
            "summary": self.summary().to_dict("records"),
        }


def _figures(points: pd.DataFrame) -> dict[str, float]:
    """The figures of :data:`MARKS` over the points of one model."""
    p, z, early = points["calibration_p"].dropna(), points["level_z"].abs(), points["checkpoint"] <= EARLY
    by_campaign = points.groupby("campaign")[["centred_coverage", "centred_coverage_null01"]].mean()
    figures = (
        (p >= 0.01).mean(),
        p.min(),
        points.loc[early, "calibration_excess"].mean(),
        points.loc[~early, "calibration_excess"].mean(),
        points["centred_coverage"].mean(),
        (by_campaign["centred_coverage"] - by_campaign["centred_coverage_null01"]).min(),
        (z <= 2.6).mean(),
        z.max(),
    )
    return {name: float(value) for name, value in zip(MARKS, figures, strict=True)}
