r"""Design of experiments: power, the minimum detectable difference, and the number of queries.

All three are for a paired t test: with a true mean difference :math:`\delta` whose standard deviation over queries is
:math:`\sigma`, t follows a noncentral distribution with noncentrality :math:`\delta \sqrt n / \sigma`.
See docs/theory/significance.md#power.
"""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import nctdtr, stdtrit

from probeval.arrays import Floats
from probeval.errors import ReliabilityError

__all__ = ["minimum_difference", "power_of", "queries_needed"]

MOST_QUERIES = 10_000_000
FAR = 6.0  # standard deviations


def power_of(difference: ArrayLike, *, sd: ArrayLike, n: ArrayLike, alpha: float = 0.05, tails: int = 2) -> Floats:
    r"""Return P(significant) for a true difference of this size; arrays broadcast.

    .. math:: 1 - F_{n-1}\!\left(t_{1-\alpha/\text{tails}};\; \delta\sqrt n/\sigma\right) \;(+ \text{ the other tail})

    Parameters
    ----------
    difference, sd
        The true mean difference, and the standard deviation of differences over queries.
    n
        The number of queries, at least two.
    alpha, tails
        The test's level, and whether it is one-tailed (in the direction of the difference) or two-tailed.

    Examples
    --------
    >>> round(float(power_of(0.067, sd=0.248, n=100, tails=1)), 2)
    0.85
    """
    delta, spread, size = (np.asarray(v, dtype=float) for v in (difference, sd, n))
    _check(alpha, tails)
    if (size < 2).any() or (spread <= 0).any():
        raise ReliabilityError("Power needs at least two queries and a standard deviation above 0.")
    shift = np.abs(delta) * np.sqrt(size) / spread
    critical = np.asarray(stdtrit(size - 1, 1 - alpha / tails), dtype=float)
    power = 1 - _below(size - 1, shift, critical)
    return np.asarray(power + (_below(size - 1, shift, -critical) if tails == 2 else 0.0))


def _below(freedom: Floats, shift: Floats, point: Floats) -> Floats:
    """P(a noncentral t is below a point); scipy has NaN far below its middle, where that is 0 to eleven digits."""
    found = nctdtr(freedom, shift, point)
    return np.where(np.isnan(found) & (shift - point > FAR), 0.0, found)


def minimum_difference(*, sd: float, n: int, alpha: float = 0.05, power: float = 0.85, tails: int = 2) -> float:
    """Return the least true difference that is detected with this probability.

    >>> round(minimum_difference(sd=0.248, n=100, tails=1), 3)  # the threshold of rule (4)
    0.067
    """
    _reachable(power, alpha)

    def short(delta: float) -> float:
        return float(power_of(delta, sd=sd, n=n, alpha=alpha, tails=tails)) - power

    high = sd
    while short(high) < 0:
        high *= 2
    return float(brentq(short, 0.0, high, xtol=1e-12))


def queries_needed(
    difference: float, *, sd: float, alpha: float = 0.05, power: float = 0.85, tails: int = 2
) -> int | float:
    """Return the least number of queries that detects a true difference with this probability.

    Infinite if there is no difference.

    >>> queries_needed(0.067, sd=0.248, tails=1)
    100
    """
    _reachable(power, alpha)

    def enough(n: int) -> bool:
        return float(power_of(difference, sd=sd, n=n, alpha=alpha, tails=tails)) >= power

    low, high = 1, 2
    while not enough(high):
        low, high = high, 2 * high
        if high > MOST_QUERIES:
            return inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _check(alpha: float, tails: int) -> None:
    if not 0 < alpha < 1:
        raise ReliabilityError(f"A level of significance lies between 0 and 1, got {alpha:g}.")
    if tails not in (1, 2):
        raise ReliabilityError(f"A test has one tail or two, got {tails}.")


def _reachable(power: float, alpha: float) -> None:
    if not alpha < power < 1:
        raise ReliabilityError(f"A power to reach lies between alpha ({alpha:g}) and 1, got {power:g}.")
