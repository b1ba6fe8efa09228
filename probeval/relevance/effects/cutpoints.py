r"""Cutpoints: the thresholds of grades on the logit scale, and their distances for each query.

.. math:: \alpha_\ell = \alpha_1 - \sum_{i < \ell} \gamma_i,\quad \gamma_i > 0,\qquad
          \alpha_{q\ell} = \bar\alpha + e^{v_q} (\alpha_\ell - \bar\alpha)

The first cutpoint :math:`\alpha_1` and the gaps :math:`\gamma` belong to the campaign. The *cutpoint scale* :math:`v_q`
of a query scales the distances of its cutpoints from their middle :math:`\bar\alpha`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import log_expit

from probeval.arrays import Floats, Ints
from probeval.data.scale import Scale
from probeval.relevance.effects.effect import CampaignView, Columns, Effect

__all__ = [
    "CutpointScale",
    "GapColumns",
    "cutpoints",
    "gap_columns",
    "level_probabilities",
    "log_probability",
    "logistic",
]


class CutpointScale(Effect):
    """The log scale of a query's cutpoint distances: :math:`v_q`."""

    name = "cutpoint_scale"
    scope = "query"
    acts_on = "cutpoints"
    typical = 0.3

    def columns(self, view: CampaignView) -> Columns:
        """Return one column: the same for every pair of the query."""
        return Columns.of(csr_array(np.ones((len(view.runs.pool), 1))))

    def exists(self, scale: Scale) -> bool:
        """Whether the scale has at least two cutpoints, and so a distance between them."""
        return len(scale.levels) > 2


class GapColumns(NamedTuple):
    """Cutpoints as sums of gaps: their middle minus the first, and each one's distance from the middle."""

    middle: Floats  # shape (gap,)
    apart: Floats  # shape (cut, gap)


def gap_columns(n_cuts: int) -> GapColumns:
    """Return the columns of the gaps for ``n_cuts`` cutpoints.

    >>> gap_columns(2).apart @ np.array([1.0])
    array([ 0.5, -0.5])
    """
    below = -np.tri(n_cuts)[:, 1:]  # each cutpoint is the first one minus the gaps before it
    middle = below.mean(axis=0)
    return GapColumns(middle, below - middle)


def cutpoints(first: Floats, gaps: Floats, log_scale: Floats) -> Floats:
    """Return every query's cutpoints, shape (draw, query, cut).

    Parameters
    ----------
    first, gaps
        The first cutpoint and the gaps after it, shapes (draw,) and (draw, gap).
    log_scale
        The cutpoint scales, shape (draw, query).

    Examples
    --------
    >>> cutpoints(np.array([1.0]), np.array([[2.0]]), np.log([[1.0, 1.5]]))
    array([[[ 1. , -1. ],
            [ 1.5, -1.5]]])
    """
    columns = gap_columns(gaps.shape[1] + 1)
    middle = first + gaps @ columns.middle
    return np.asarray(middle[:, None, None] + np.exp(log_scale)[..., None] * (gaps @ columns.apart.T)[:, None, :])


def level_probabilities(cuts: Floats, eta: Floats) -> Floats:
    r"""Return P(level) for linear predictors ``eta`` of any shape, shape (.., level).

    :math:`\text{logit}\,P(R \ge \ell) = \alpha_\ell + \eta`. See docs/theory/relevance-models.md#ord.

    >>> np.round(level_probabilities(np.array([-1.4351, -3.5205]), np.array([2.7132])), 3)
    array([[0.218, 0.474, 0.308]])
    """
    reach = [logistic(eta + cut) for cut in np.moveaxis(cuts, -1, 0)]
    out = np.empty((len(reach) + 1, *reach[0].shape))  # in memory by level, as others read it
    np.subtract(1.0, reach[0], out=out[0])
    for lower, higher, between in zip(reach, reach[1:], out[1:-1], strict=False):
        np.subtract(lower, higher, out=between)
    out[-1] = reach[-1]
    return np.moveaxis(out, 0, -1)


def logistic(x: Floats) -> Floats:
    """Return :math:`1/(1 + e^{-x})`, in a third of the time of scipy's expit.

    >>> logistic(np.array([-np.inf, 0.0, np.inf]))
    array([0. , 0.5, 1. ])
    """
    out = np.negative(x)
    with np.errstate(over="ignore"):  # the inverse of infinity is 0
        np.exp(out, out=out)
    out += 1
    return np.reciprocal(out, out=out)


def log_probability(eta: Floats, cuts: Floats, level: Ints) -> Floats:
    """Return the log probability of each judged level, shape (draw, judged), from cutpoints (draw, judged, cut).

    With u and v the logits of reaching the level and the next, F(u) - F(v) = F(u) F(-v) (1 - exp(v - u)), which does
    not cancel.
    """
    top, pair = cuts.shape[2], np.arange(len(level))
    out = np.where(level > 0, log_expit(eta + cuts[:, pair, np.maximum(level - 1, 0)]), 0.0)
    out = out + np.where(level < top, log_expit(-eta - cuts[:, pair, np.minimum(level, top - 1)]), 0.0)
    between = np.flatnonzero((level > 0) & (level < top))
    gap = cuts[:, between, level[between] - 1] - cuts[:, between, level[between]]
    out[:, between] += np.log(-np.expm1(-gap))
    return np.asarray(out)
