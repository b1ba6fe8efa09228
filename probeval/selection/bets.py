"""Bets against the model: their wealth is evidence that its predictions are wrong.

Were the predictions right, each residual would have mean 0 given all judgments before, and no bettor could win: the
wealth is an e-process, and by Ville's inequality it ever reaches 20 with a probability of .05 at most. See
docs/theory/judging.md#audit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from probeval.arrays import Floats, Ints
from probeval.ties import TIE

__all__ = ["BETS", "Bet", "Residuals", "e_process"]

STAKE = 0.9  # the largest share of the wealth that a bet may lose


@dataclass(frozen=True)
class Bet:
    r"""A bet against the model: the mean residual :math:`\mu` of a pair, were the model wrong in one way.

    The stake is :math:`\lambda = m \mu / (v + \mu^2)` per unit of the residual, with :math:`m` the number of picks of
    the fit, over which bets are averaged: it wins fastest if residuals have that mean and the variance :math:`v`. At
    most .9 of the wealth can be lost, and :math:`\mu` is cut so that the gain stays on the scale.

    Parameters
    ----------
    name, finding
        The name, and the finding if the bet wins.
    weight
        The share of the wealth that begins with this bet.
    mean
        :math:`\mu` by the expected gain of the pair and of the pool, as shares of the scale.
    """

    name: str
    finding: str
    weight: float
    mean: Callable[[Floats, Floats], Floats]

    def stakes(self, residuals: Residuals, sizes: Floats) -> Floats:
        """Return the stake on each pair of groups of these sizes, shape (pick,)."""
        f = residuals.predicted
        mean = np.clip(self.mean(f, residuals.centre), -f, 1 - f)
        stake = sizes * mean / np.maximum(residuals.variance + mean**2, TIE)
        return np.clip(stake, -STAKE / np.maximum(1 - f, TIE), STAKE / np.maximum(f, TIE))


def _level(shift: float) -> Bet:
    way = "higher" if shift > 0 else "lower"
    finding = f"gains are {way} than predicted, by about {abs(shift):g} of the scale or more"
    return Bet(f"level {shift:+g}", finding, 0.2, lambda f, centre: np.full_like(f, shift))


def _slope(slope: float, finding: str) -> Bet:
    return Bet(f"slope {slope:g}", finding, 0.1, lambda f, centre: (slope - 1) * (f - centre))


BETS = (
    _level(0.1),
    _level(-0.1),
    _level(0.2),
    _level(-0.2),
    _slope(0.0, "pairs that are predicted to be good are no better than others"),
    _slope(-1.0, "pairs that are predicted to be good are worse than others"),
)


class Residuals(NamedTuple):
    """Judged picks in the order of their fits, as shares of the scale, shapes (pick,)."""

    actual: Floats
    predicted: Floats
    variance: Floats
    centre: Floats
    fitted: Ints


def e_process(residuals: Residuals) -> Floats:
    r"""Return the wealth of each bet after each fit, shape (fit, bet).

    Residuals of one fit depend on each other: the model did not yet learn one from another. Their bets are therefore
    averaged, which needs no independence:

    .. math:: E_k = \prod_{j \le k} \Big(1 + \frac{1}{m_j} \sum_{i=1}^{m_j} \lambda_{ji} (y_{ji} - f_{ji})\Big),

    with :math:`m_j` judged picks of fit :math:`j`. Under the model it has mean 1 at all times, and by Ville's
    inequality it ever reaches :math:`1/\alpha` with probability :math:`\alpha` at most.

    Examples
    --------
    >>> always = np.full(40, 0.5)
    >>> right = Residuals(np.tile([0.0, 1.0], 20), always, always / 2, always, np.arange(40))
    >>> wrong = right._replace(predicted=always + 0.2)
    >>> [float(np.round(e_process(r)[-1].max(), 1)) for r in (right, wrong)]
    [1.0, 32.6]
    """
    _, group, counts = np.unique(residuals.fitted, return_inverse=True, return_counts=True)
    sizes = counts[group].astype(float)
    gap = residuals.actual - residuals.predicted
    steps = [np.bincount(group, bet.stakes(residuals, sizes) * gap / sizes) for bet in BETS]
    return np.exp(np.cumsum(np.log1p(np.column_stack(steps)), axis=0)) if len(group) else np.ones((0, len(BETS)))
