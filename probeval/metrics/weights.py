"""Shared parts of measures: gains of grades, weights of ranks, and their parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from probeval.arrays import Floats
from probeval.data.scale import Scale
from probeval.metrics.metric import Metric, Parameter

__all__ = ["discount", "divide", "even", "graded_gains", "inverse_square", "persistence", "trigamma"]

GAIN = Parameter(None, "linear (the grade) or exp (2^grade - 1); the scale's own by default", ("linear", "exp"))
DISCOUNT = Parameter("log2", "log2: 1/log2(rank + 1); jk: 1/max(1, log2 rank), the original one", ("log2", "jk"))
BASE = Parameter(2, "b, the base of the logarithm: 1/log_b(rank + b - 1), or with jk 1/max(1, log_b rank)", low=1.01)
REL = Parameter(1, "the lowest grade that counts as relevant", low=0)
BINARY = Parameter(None, "count grades from this one on as 1, the rest as 0; graded by default", low=0)
WANTED = Parameter(1, "how many relevant documents the user wants", low=0.5)
NORM = Parameter(
    "perfect",
    "perfect: by a list of top grades; ideal: by the query's best list; none: raw",
    ("perfect", "ideal", "none"),
)
IDEAL = Parameter("ideal", "ideal: by the query's best list; perfect: by a list of top grades", ("ideal", "perfect"))


def graded_gains(metric: Metric, scale: Scale) -> Floats:
    """Return the gain of each grade under the metric's ``gain`` or ``rel``, shape (grade,)."""
    rel, gain = metric.parameters.get("rel"), metric.parameters.get("gain")
    if rel is not None:
        return np.asarray(scale.values >= metric.number("rel"), dtype=float)
    return scale.gains if gain is None else scale.gains_as(str(gain))


def even(metric: Metric, depth: int) -> Floats:
    """Return equal weights, shape (depth,)."""
    return np.ones(depth)


def discount(metric: Metric, depth: int) -> Floats:
    """Return the discount of DCG at each rank, shape (depth,)."""
    rank, base = np.arange(1, depth + 1), metric.number("base")
    if metric["discount"] == "log2":
        return np.asarray(np.log2(base) / np.log2(rank + base - 1))
    return np.asarray(1 / np.maximum(1, np.log2(rank) / np.log2(base)))


def persistence(metric: Metric, depth: int) -> Floats:
    """Return the weights of RBP, which sum to 1 over an endless list, shape (depth,)."""
    p = metric.number("p")
    return np.asarray((1 - p) * p ** np.arange(depth))


def inverse_square(metric: Metric, depth: int) -> Floats:
    """Return the weights of INSQ, which sum to 1 over an endless list, shape (depth,)."""
    start = 2 * metric.number("T")
    return np.asarray(1 / (float(trigamma(start)) * (np.arange(depth) + start) ** 2))


def trigamma(x: Floats | float) -> Floats:
    """Return 1/x^2 + 1/(x+1)^2 + .., shape of x."""
    from scipy.special import polygamma  # slow to import

    return np.asarray(polygamma(1, x))


def divide(numerator: NDArray[Any], denominator: NDArray[Any]) -> Floats:
    """Return the quotient, 0 where the denominator is 0."""
    return np.asarray(numerator / np.where(denominator == 0, np.inf, denominator))
