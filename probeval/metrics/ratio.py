"""Sums of gains relative to the query's best list: nDCG, and CG, DCG, RBP with ``norm="ideal"``."""

from __future__ import annotations

import numpy as np

from probeval.arrays import Floats, Ints
from probeval.metrics.lists import Lists
from probeval.metrics.metric import Metric, define
from probeval.metrics.weights import BASE, DISCOUNT, GAIN, IDEAL, discount, divide, graded_gains

__all__ = ["bounded_by_norm", "ideal", "nDCG", "weighted_sum"]


def weighted_sum(metric: Metric, lists: Lists) -> Floats:
    """Return the score of every list: its gains weighted by rank, over the denominator of the norm.

    With the ideal norm, the score is 0 if the query has no relevant document.
    """
    gain = lists.values(metric.gains(lists.scale))
    if metric.is_linear:
        return np.asarray(gain @ metric.weights(lists.scale, lists.depth))
    return divide(
        gain @ metric.rank_weights(lists.depth),
        ideal(metric, metric.gains(lists.scale), lists.relevant_counts)[..., None, :],
    )


def ideal(metric: Metric, gains: Floats, relevant_counts: Ints) -> Floats:
    r"""Return the weighted gains of each query's best list, shape (.., query).

    With :math:`N_\ell` the number of known pairs of at least grade :math:`\ell` and :math:`C` the running sum of the
    rank weights, the sorted list is worth :math:`\sum_\ell (g_\ell - g_{\ell-1})\, C(\min(k, N_\ell))`: no sorting.
    """
    running = np.append(0, np.cumsum(metric.rank_weights(max(int(relevant_counts.max(initial=0)), 1))))
    steps = np.diff(gains, prepend=0)
    out: Floats = running[relevant_counts] @ steps
    return out


def bounded_by_norm(metric: Metric) -> str:
    """Return the method of bounds for a weighted sum: only with the ideal norm can a higher grade lower the score."""
    return "ratio" if metric["norm"] == "ideal" else "monotone"


nDCG = define(
    "nDCG",
    "DCG over that of the query's best list",
    r"\sum_{i\le k} \frac{g(r_i)}{\log_2(i+1)} \,\Big/\, \sum_{i\le k} \frac{g(r_{I_i})}{\log_2(i+1)}",
    parameters={"gain": GAIN, "discount": DISCOUNT, "base": BASE, "norm": IDEAL},
    rank_weights=discount,
    gains=graded_gains,
    bounds=bounded_by_norm,
)(weighted_sum)
