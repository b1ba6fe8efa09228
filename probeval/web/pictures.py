"""Coordinates of two SVG plots: confidence over time, and intervals. Templates draw them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from probeval.campaign.snapshot import ForecastPoint, TargetForecast, target_confidence
from probeval.scores.compare import RankedSystem
from probeval.selection.stopping import Stopping

__all__ = ["Interval", "ProgressCurve", "intervals", "progress_curve"]

WIDTH, HEIGHT = 600.0, 120.0  # of the plotting area, in SVG units
MAX_POINTS = 200  # points drawn
SURE = 1.0


@dataclass(frozen=True)
class ProgressCurve:
    """Confidence against judged pairs, so far and as expected.

    Parameters
    ----------
    points
        The ``points`` of the polyline.
    lowest, last
        The confidence at the bottom of the plot, and the latest.
    first, judged, end
        Judged pairs at the left edge, at the latest snapshot, and at the right edge.
    target_at
        The vertical position of the target confidence; None if the stopping rule has none.
    ahead, band
        The ``points`` of the expected trajectory, and of the area between its bounds; empty without a forecast.
    needed, needed_at
        The judged pairs at which the target is expected, and their horizontal position; None without a forecast.
    """

    points: str
    lowest: float
    last: float
    first: int
    judged: int
    end: int
    target_at: float | None
    ahead: str = ""
    band: str = ""
    needed: int | None = None
    needed_at: float | None = None


def progress_curve(
    curve: Sequence[Mapping[str, Any]],
    stopping: Stopping,
    *,
    forecast: TargetForecast | None = None,
    needed: int | None = None,
) -> ProgressCurve | None:
    """Confidence at every snapshot, and its forecast; None until two snapshots differ in judged pairs.

    ``needed`` is the number of judged pairs at which the target is expected, as the status states it.

    >>> curve = [{"judged": 0, "confidence": 0.5}, {"judged": 10, "confidence": 0.9}]
    >>> progress_curve(curve, Stopping.parse("confidence=.95")).points
    '0.0,120.0 600.0,24.0'
    """
    if len({point["judged"] for point in curve}) < 2:
        return None
    step = max(1, -(-len(curve) // MAX_POINTS))
    shown = [*curve[-1::-step]][::-1]
    judged = [int(point["judged"]) for point in shown]
    sure = [float(point["confidence"]) for point in shown]
    target = target_confidence(stopping)
    steps = () if forecast is None else _until(forecast)
    lowest = min(0.5, *sure, *(point.lower for point in steps))
    first, last = judged[0], judged[-1]
    end = max([last, *(point.judged for point in steps)])

    def place(n: float, value: float) -> str:
        return f"{across(n):.1f},{height(value):.1f}"

    def across(n: float) -> float:
        return WIDTH * (n - first) / max(1, end - first)

    def height(value: float) -> float:
        return HEIGHT * (SURE - value) / (SURE - lowest)

    inside = needed is not None and bool(steps) and needed <= end
    return ProgressCurve(
        points=" ".join(map(place, judged, sure)),
        lowest=lowest,
        last=sure[-1],
        first=first,
        judged=last,
        end=end,
        target_at=None if target is None else round(height(target), 1),
        ahead=" ".join(place(p.judged, p.confidence) for p in steps),
        band=" ".join(
            [
                *(place(p.judged, p.upper) for p in steps),
                *(place(p.judged, p.lower) for p in reversed(steps)),
            ]
        ),
        needed=needed if inside else None,
        needed_at=round(across(needed), 1) if inside and needed is not None else None,
    )


def _until(forecast: TargetForecast) -> tuple[ForecastPoint, ...]:
    """The points of a forecast up to a little beyond the target."""
    within = [point for point in forecast.points if point.judged <= 1.1 * forecast.needed]
    return forecast.points[: len(within) + 1]


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


def intervals(systems: Sequence[RankedSystem]) -> list[Interval]:
    """The systems of a snapshot, with their intervals on a common axis."""
    if not systems:
        return []
    low, high = min(row.lower for row in systems), max(row.upper for row in systems)

    def at(value: float) -> float:
        return float(round(2 + 96 * (value - low) / ((high - low) or 1.0), 2))

    return [
        Interval(
            system=row.system,
            rank=row.rank,
            mean=row.mean,
            lower=row.lower,
            upper=row.upper,
            p_best=row.p_best,
            left=at(row.lower),
            right=at(row.upper),
            middle=at(row.mean),
        )
        for row in systems
    ]
