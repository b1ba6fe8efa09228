"""Graded relatives of average precision: Q, GAP and ADR."""

from __future__ import annotations

import numpy as np

from probeval.arrays import Floats
from probeval.data.scale import Scale
from probeval.errors import MetricError
from probeval.metrics.lists import Lists
from probeval.metrics.metric import Metric, Parameter, define
from probeval.metrics.weights import GAIN, IDEAL, divide, graded_gains

__all__ = ["ADR", "GAP", "Q"]


def _perfect_is_monotone(metric: Metric) -> str | None:
    return "monotone" if metric["norm"] == "perfect" else None


@define(
    "Q",
    "Q-measure: average precision blended with cumulative gain",
    r"\frac{1}{R}\sum_{i\le k} 1(r_i > 0)\,\frac{\mathrm{count}_i + \beta\, cg_i}{i + \beta\, cg^*_i}",
    parameters={
        "beta": Parameter(1, "the weight of the gain", low=0),
        "gain": GAIN,
        "norm": Parameter(
            None, "min: by min(k, R) in place of R; perfect: by k and a list of top grades", ("min", "perfect")
        ),
    },
    gains=graded_gains,
    bounds=_perfect_is_monotone,
)
def Q(metric: Metric, lists: Lists) -> Floats:
    beta, gains = metric.number("beta"), graded_gains(metric, lists.scale)
    rank = np.arange(1.0, lists.depth + 1)
    relevant = lists.codes > 0
    got = np.cumsum(relevant, axis=-1) + beta * np.cumsum(lists.values(gains), axis=-1)
    k = metric.cutoff or lists.depth
    if metric["norm"] == "perfect":
        return np.asarray((relevant * got / (rank * (1 + beta * gains[-1]))).sum(axis=-1) / k)
    steps = np.diff(gains, prepend=0)
    best = (
        np.minimum(rank[:, None], lists.relevant_counts[..., None, :]) @ steps
    )  # the ideal list's running gain, (.., query, rank)
    total = (relevant * got / (rank + beta * best[..., None, :, :])).sum(axis=-1)
    n = lists.relevant_counts[..., None, :, 1]
    return divide(total, np.minimum(k, n) if metric["norm"] == "min" else n)


@define(
    "GAP",
    "graded average precision for a user who draws the line at each grade with probability p, equal by default",
    r"\sum_{i\le k} \frac1i \sum_{\ell\le r_i} p_\ell\, |\{j\le i : r_j \ge \ell\}| \,\Big/\, "
    r"\sum_{i\le k} \sum_{\ell\le r_{I_i}} p_\ell",
    parameters={
        "p": Parameter(None, "the probability of each grade above the lowest, as in (0.5, 0.3, 0.2)", shares=True),
        "norm": IDEAL,
    },
    bounds=_perfect_is_monotone,
)
def GAP(metric: Metric, lists: Lists) -> Floats:
    rank, line = np.arange(1.0, lists.depth + 1), thresholds(metric, lists.scale)
    total = np.zeros(lists.codes.shape[:-1])
    for level, p in enumerate(line, start=1):
        reached = lists.codes >= level
        total += p * (reached * np.cumsum(reached, axis=-1) / rank).sum(axis=-1)
    if metric["norm"] == "perfect":
        return total / (metric.cutoff or lists.depth)
    offered = lists.relevant_counts if metric.cutoff is None else np.minimum(lists.relevant_counts, metric.cutoff)
    return divide(total, offered[..., None, :, 1:] @ line)


def thresholds(metric: Metric, scale: Scale) -> Floats:
    """Return the probability that a user draws the line at each grade above the lowest, shape (grade - 1,)."""
    levels, given = len(scale) - 1, metric["p"]
    if given is None:
        return np.full(levels, 1 / levels)
    assert isinstance(given, tuple)
    if len(given) != levels:
        raise MetricError(f"{metric}: the scale {scale} has {levels} grades above the lowest, got {len(given)} for p.")
    return np.array(given, dtype=float)


@define(
    "ADR",
    "average dynamic recall: of the first i documents, the share as good as the ideal list's i-th, averaged over i",
    r"\frac1k \sum_{i\le k} \frac1i\, |\{j \le i : r_j \ge r_{I_i}\}|",
    parameters={"norm": IDEAL},
    bounds=_perfect_is_monotone,
)
def ADR(metric: Metric, lists: Lists) -> Floats:
    k = metric.cutoff or lists.depth
    top = len(lists.scale) - 1
    total = np.zeros(lists.codes.shape[:-1])
    for i in range(1, k + 1):
        due = (
            top
            if metric["norm"] == "perfect"
            else (lists.relevant_counts[..., None, :, 1:] >= i).sum(axis=-1)[..., None]
        )
        total += (lists.codes[..., :i] >= due).sum(axis=-1) / i
    return total / k
