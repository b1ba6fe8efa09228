r"""Scores of queries as one score of a system: the arithmetic mean, and geometric means.

A geometric mean gives more weight to the queries on which a system is bad (Robertson 2006).
See docs/theory/measures.md#aggregates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from probeval.arrays import Floats
from probeval.errors import MetricError, did_you_mean

__all__ = ["AGGREGATES", "EPSILON", "aggregate_queries", "check_aggregate"]

AGGREGATES = {
    "mean": "the arithmetic mean",
    "gm": "the geometric mean; 0 if any score is",
    "gm-eps": "the geometric mean of scores plus epsilon, less epsilon",
    "gm-trec": "the geometric mean of scores of at least epsilon, as in trec_eval",
}
EPSILON = 1e-5  # that of trec_eval


def check_aggregate(aggregate: str) -> None:
    """Raise an error unless this is one of :data:`AGGREGATES`."""
    if aggregate not in AGGREGATES:
        raise MetricError(f"No aggregate {aggregate!r}: {', '.join(AGGREGATES)}.{did_you_mean(aggregate, AGGREGATES)}")


def aggregate_queries(
    values: ArrayLike, aggregate: str = "mean", *, epsilon: float = EPSILON, weights: Floats | None = None
) -> Floats:
    r"""Return one score over queries, the last axis.

    .. math:: GM = \exp\frac1Q\sum_q \log x_q, \qquad
       GM_\epsilon = \exp\Big[\frac1Q\sum_q \log(\epsilon + x_q)\Big] - \epsilon, \qquad
       GM_{trec} = \exp\frac1Q\sum_q \log\max(\epsilon, x_q)

    Parameters
    ----------
    values
        Scores from 0, shape (.., query).
    aggregate
        One of :data:`AGGREGATES`.
    epsilon
        Of the last two; trec_eval's by default.
    weights
        The weights of queries, of mean 1, shape (query,).

    Examples
    --------
    >>> [round(float(aggregate_queries([0.0, 0.5], name)), 7) for name in AGGREGATES]
    [0.25, 0.0, 0.0022261, 0.0022361]
    """
    check_aggregate(aggregate)
    scores = np.asarray(values, dtype=float)
    scores, weights = (scores, np.ones(scores.shape[-1])) if weights is None else (scores, weights)
    if aggregate == "mean":
        return np.asarray((scores * weights).mean(axis=-1))
    if (scores < 0).any():
        raise MetricError(f"A geometric mean needs scores from 0, got {np.nanmin(scores):g}.")
    shift = epsilon if aggregate == "gm-eps" else 0.0
    floor = epsilon if aggregate == "gm-trec" else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.maximum(scores + shift, floor))
        total = np.where(weights > 0, logs * weights, 0.0).mean(axis=-1)
    return np.asarray(np.exp(total) - shift)
