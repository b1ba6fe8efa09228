r"""Bands of ranks: documents whose order within a band is left open, and the most that this can cost.

See docs/theory/ties-and-bounds.md#bands.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil

import numpy as np

from probeval.arrays import Ints
from probeval.data.runs import Runs
from probeval.errors import MetricError
from probeval.metrics.metric import Metric

__all__ = ["band_starts", "banded", "worst_case"]

DEPTH = 1000  # ranks of the published worst cases


def band_starts(rho: float, depth: int) -> Ints:
    r"""Return the first rank of each band, from 1: :math:`b_1 = 1`, :math:`b_{g+1} = \lceil \rho \, b_g \rceil`.

    The ratio is taken as the decimal number that is written, because in binary 1.1 is a little more than 1.1.

    >>> band_starts(2, 7).tolist(), band_starts(1.62, 11).tolist()
    ([1, 2, 4], [1, 2, 4, 7])
    """
    ratio = Fraction(str(rho)) if np.isfinite(rho) else Fraction(0)
    if ratio <= 1:
        raise MetricError(f"The ratio of bands is a number above 1, got {rho:g}.")
    starts = [1]
    while (following := ceil(ratio * starts[-1])) <= depth:
        starts.append(following)
    return np.array(starts, dtype=np.int64)


def banded(runs: Runs, rho: float) -> Runs:
    """Return runs whose documents are tied within each band: band g has the score 1/g, whatever the scores were.

    >>> runs = Runs.rows(["a"] * 3, ["q"] * 3, ["d1", "d2", "d3"], [9.0, 7.5, 7.0])
    >>> banded(runs, 2).scores.tolist()
    [[[1.0, 0.5, 0.5]]]
    """
    starts = band_starts(rho, runs.depth)
    score = 1.0 / np.searchsorted(starts, np.arange(1, runs.depth + 1), side="right")
    return replace(runs, scores=np.where(runs.retrieved, score, np.nan))


def worst_case(metric: Metric, rho: float, *, depth: int = DEPTH) -> float:
    r"""Return the most that the expected score of a list can lose by bands, with binary relevance.

    For a weighted sum, the sum over bands of :math:`\max_R \sum_{i=b_g}^{b_g+R-1} w_i - R \bar w_g`: the relevant
    documents of each band stood first. For RR, :math:`\max_g 1/b_g - \overline{1/i}`: the only relevant document stood
    first in its band. Other measures have no such bound (Yang 2019, section 3.3.2).

    >>> from probeval.metrics import RR
    >>> round(worst_case(RR(), 2.0), 4)
    0.0833
    """
    starts = band_starts(rho, depth)
    ends = np.append(starts[1:], depth + 1)
    if metric.name == "RR":
        weights = 1 / np.arange(1.0, depth + 1)
    elif metric.definition.rank_weights is not None and metric.is_linear:
        weights = metric.rank_weights(depth)
    else:
        raise MetricError(f"{metric} has no worst case under bands: RR and weighted sums such as RBP have one.")
    losses = [0.0]
    for start, end in zip(starts - 1, ends - 1, strict=True):
        inside = weights[start:end]
        gained = np.cumsum(inside) - np.arange(1, len(inside) + 1) * inside.mean()
        losses.append(float(gained[0] if metric.name == "RR" else max(gained.max(), 0.0)))
    return max(losses) if metric.name == "RR" else sum(losses)
