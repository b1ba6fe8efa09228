"""Two pictures as numbers for SVG: confidence over time, and intervals side by side. Templates draw them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from probeval.selection import Stopping
from probeval.selection.rules import CONFIDENCE

__all__ = ["Interval", "ProgressCurve", "intervals", "progress_curve", "target_confidence"]

WIDTH, HEIGHT = 600.0, 120.0  # of the plotting area, in units of its own
MOST = 200  # points that are drawn
SURE = 1.0


@dataclass(frozen=True)
class ProgressCurve:
    """Confidence against judged pairs.

    Parameters
    ----------
    points
        For ``points`` of a polyline.
    lowest, last
        The confidence at the bottom of the field, and now.
    first, judged
        Judged pairs at its left and right end.
    target_at
        The height in the field of the confidence that is asked for; None where the rule asks for something else.
    """

    points: str
    lowest: float
    last: float
    first: int
    judged: int
    target_at: float | None


def progress_curve(curve: Sequence[Mapping[str, Any]], stopping: str) -> ProgressCurve | None:
    """Confidence over time, snapshot by snapshot; None before judgments have come between two.

    >>> curve = [{"judged": 0, "confidence": 0.5}, {"judged": 10, "confidence": 0.9}]
    >>> progress_curve(curve, "confidence=.95").points
    '0.0,120.0 600.0,24.0'
    """
    if len({point["judged"] for point in curve}) < 2:
        return None
    step = max(1, -(-len(curve) // MOST))
    seen = [*curve[-1::-step]][::-1]
    judged = [int(point["judged"]) for point in seen]
    sure = [float(point["confidence"]) for point in seen]
    lowest = min(0.5, *sure)
    first, last = judged[0], judged[-1]

    def height(value: float) -> float:
        return HEIGHT * (SURE - value) / (SURE - lowest)

    target = target_confidence(stopping)
    across = [WIDTH * (n - first) / max(1, last - first) for n in judged]
    points = " ".join(f"{x:.1f},{height(y):.1f}" for x, y in zip(across, sure, strict=True))
    return ProgressCurve(points, lowest, sure[-1], first, last, None if target is None else round(height(target), 1))


def target_confidence(stopping: str) -> float | None:
    """The mean confidence that a rule asks for, the lowest of several; None where it asks for none.

    >>> target_confidence("confidence=.9+halfwidth=.02,budget=100"), target_confidence("budget=100")
    (0.9, None)
    """
    return min(Stopping.parse(stopping).targets(CONFIDENCE), default=None)


@dataclass(frozen=True)
class Interval:
    """A system's row, with where its interval and its mean stand in a field of 100 units."""

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
    """The systems of an snapshot with their intervals on one axis."""
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
