"""Estimates of the time that long work takes, from the size of a campaign."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from probeval.data import Collection
from probeval.metrics import Metric

__all__ = ["Expect", "TimeEstimate", "evaluation_estimate", "plan_estimate", "unannounced"]

# Seconds on one core, measured on the campaigns of tests/bench/first_answer.py.
PER_RANK = 2e-8  # of a draw: a document at a rank of a list
PER_PAIR = 1e-4  # without draws or labels: features, parameters, probabilities
PER_LABEL = 1.5e-4  # a pair with labels
PER_JUDGMENT = 6e-4
PER_STEP = 1e-4  # a pair, at one step of a forecast
STEPS = 30  # of a forecast from no judgments to a large pool


@dataclass(frozen=True)
class TimeEstimate:
    """An estimate of time.

    Parameters
    ----------
    seconds
        The estimate, on one core.
    work
        The size of the work in words.

    Examples
    --------
    >>> str(TimeEstimate(41.0, "49,528 pairs, 1,000 draws"))
    'About 40 s: 49,528 pairs, 1,000 draws.'
    >>> str(TimeEstimate(400.0, "8,173 pairs, 8 paths"))
    'About 7 min: 8,173 pairs, 8 paths.'
    """

    seconds: float
    work: str

    def __str__(self) -> str:
        if self.seconds >= 120:
            return f"About {self.seconds / 60:.0f} min: {self.work}."
        step = 5 if self.seconds < 60 else 10
        return f"About {max(round(self.seconds / step), 1) * step} s: {self.work}."


Expect = Callable[[TimeEstimate], None]


def unannounced(_: TimeEstimate) -> None:
    """Drop an estimate."""


def evaluation_estimate(
    collection: Collection, metric: Metric, *, depth: int, method: str | None, draws: int
) -> TimeEstimate:
    """Estimate the time of an evaluation."""
    runs = collection.runs.top(depth)
    pairs, drawn = len(runs.pool), method == "draws" or (method is None and not metric.is_linear)
    seconds = PER_PAIR * pairs
    if collection.judgments is not None:
        seconds += PER_JUDGMENT * len(collection.judgments)
    if collection.labels is not None:
        seconds += PER_LABEL * pairs
    if drawn:
        seconds += PER_RANK * draws * int(runs.retrieved.sum())
    return TimeEstimate(seconds, f"{pairs:,} pairs" + (f", {draws:,} draws" if drawn else ""))


def plan_estimate(
    collection: Collection, *, queries: Sequence[int], depths: Sequence[int], options: int, paths: int, jobs: int
) -> TimeEstimate:
    """Estimate the time of a plan with some numbers of queries and depths, ``options`` times each."""
    share = [n / max(len(collection.runs.queries), 1) for n in queries]
    pairs = round(sum(s * len(collection.runs.top(depth).pool) for s in share for depth in depths) * options)
    return TimeEstimate(PER_STEP * STEPS * paths * pairs / max(jobs, 1), f"{pairs:,} pairs, {paths} paths")
