"""Estimates of the time that long work takes, from the size of a campaign."""

from __future__ import annotations

from collections.abc import Sequence

from probeval.data import Collection
from probeval.metrics import Metric
from probeval.reporting import TimeEstimate

__all__ = ["evaluation_estimate", "plan_estimate"]

# Seconds on one core, measured on the campaigns of tests/bench/first_answer.py.
PER_RANK = 2e-8  # of a draw: a document at a rank of a list
PER_PAIR = 1e-4  # without draws or labels: features, parameters, probabilities
PER_LABEL = 1.5e-4  # a pair with labels
PER_JUDGMENT = 6e-4
PER_STEP = 1e-4  # a pair, at one step of a forecast
STEPS = 30  # of a forecast from no judgments to a large pool


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
