"""Coordinates of two SVG plots: confidence over time, and intervals. Templates draw them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from probeval.campaign.snapshot import target_confidence

__all__ = ["Interval", "ProgressCurve", "intervals", "progress_curve"]

WIDTH, HEIGHT = 600.0, 120.0  # of the plotting area, in SVG units
MOST = 200  # points drawn
SURE = 1.0


@dataclass(frozen=True)
class ProgressCurve:
    """Confidence against judged pairs.

    Parameters
    ----------
    points
        The ``points`` of the polyline.
    lowest, last
        The confidence at the bottom of the plot, and the latest.
    first, judged
        Judged pairs at the left and right edges.
    target_at
        The vertical position of the target confidence; None if the stopping rule has none.
    """

    points: str
    lowest: float
    last: float
    first: int
    judged: int
    target_at: float | None


def progress_curve(curve: Sequence[Mapping[str, Any]], stopping: str) -> ProgressCurve | None:
    """Confidence at every snapshot; None until two snapshots differ in judged pairs.

    >>> curve = [{"judged": 0, "confidence": 0.5}, {"judged": 10, "confidence": 0.9}]
    >>> progress_curve(curve, "confidence=.95").points
    '0.0,120.0 600.0,24.0'
    """
    if len({point["judged"] for point in curve}) < 2:
        return None
    step = max(1, -(-len(curve) // MOST))
    shown = [*curve[-1::-step]][::-1]
    judged = [int(point["judged"]) for point in shown]
    sure = [float(point["confidence"]) for point in shown]
    lowest = min(0.5, *sure)
    first, last = judged[0], judged[-1]

    def height(value: float) -> float:
        return HEIGHT * (SURE - value) / (SURE - lowest)

    target = target_confidence(stopping)
    across = [WIDTH * (n - first) / max(1, last - first) for n in judged]
    points = " ".join(f"{x:.1f},{height(y):.1f}" for x, y in zip(across, sure, strict=True))
    return ProgressCurve(points, lowest, sure[-1], first, last, None if target is None else round(height(target), 1))


@dataclass(frozen=True)
class Interval:
    """A system's row, with the positions of its interval and mean on an axis of 100 units."""

    system: str
    rank: int
    mean: float
    lower: float
    upper: float
    p_best: float
    left: float
    right: float
    middle: float


def intervals(systems: Sequence[Mapping[str, Any]]) -> list[Interval]:
    """The systems of a snapshot, with their intervals on a common axis."""
    if not systems:
        return []
    low, high = min(row["lower"] for row in systems), max(row["upper"] for row in systems)

    def at(value: float) -> float:
        return float(round(2 + 96 * (value - low) / ((high - low) or 1.0), 2))

    return [
        Interval(
            system=str(row["system"]),
            rank=int(row["rank"]),
            mean=float(row["mean"]),
            lower=float(row["lower"]),
            upper=float(row["upper"]),
            p_best=float(row["p_best"]),
            left=at(row["lower"]),
            right=at(row["upper"]),
            middle=at(row["mean"]),
        )
        for row in systems
    ]
