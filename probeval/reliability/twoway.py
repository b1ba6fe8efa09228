r"""Two sets of decisions on the same pairs of systems: those of a tested condition and those of a reference.

A decision is 1 or -1 if the first or the second system of a pair is significantly better, 0 if neither is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc

from probeval.arrays import Bools, Floats, Ints
from probeval.errors import ReliabilityError

__all__ = ["TwoWay", "compare_counts", "p_trend", "signed", "straddling", "two_way"]


def signed(difference: Floats, p: Floats, *, alpha: float = 0.05) -> Ints:
    """Return decisions from differences and p-values; 0 for a p of NaN.

    >>> signed(np.array([0.2, -0.1, 0.3]), np.array([0.01, 0.02, 0.4]))
    array([ 1, -1,  0])
    """
    return np.where(p < alpha, np.sign(np.nan_to_num(difference)), 0).astype(np.int64)


@dataclass(frozen=True)
class TwoWay:
    """Counts of pairs significant in both, in the tested condition only, in the reference only, and in neither.

    A pair with opposite winners counts as a false positive (Yang, 2019).

    >>> table = TwoWay(tp=1355, fp=60, fn=164, tn=501)
    >>> round(table.discrimination, 3), round(table.concordance, 3)
    (0.68, 0.892)
    """

    tp: int
    fp: int
    fn: int
    tn: int

    @property
    def pairs(self) -> int:
        """The number of pairs."""
        return self.tp + self.fp + self.fn + self.tn

    @property
    def discrimination(self) -> float:
        """The discrimination ratio: the share of pairs significant in the tested condition."""
        return _share(self.tp + self.fp, self.pairs)

    @property
    def concordance(self) -> float:
        """The share of pairs with the same decision, which can change under a constant discrimination ratio."""
        return _share(self.tp + self.tn, self.pairs)

    @property
    def precision(self) -> float:
        """The share of the significant pairs that are significant in the reference too."""
        return _share(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float:
        """The share of the reference's significant pairs that are significant in the tested condition too."""
        return _share(self.tp, self.tp + self.fn)

    @property
    def f(self) -> float:
        """The harmonic mean of precision and recall."""
        return _share(2 * self.tp, 2 * self.tp + self.fp + self.fn)


def two_way(found: Ints, reference: Ints) -> TwoWay:
    """Count pairs by two sets of decisions, shapes (pair,).

    >>> two_way(np.array([1, 1, 0, 0, -1]), np.array([1, 0, -1, 0, 1]))
    TwoWay(tp=1, fp=2, fn=1, tn=1)
    """
    if found.shape != reference.shape:
        raise ReliabilityError(f"Decisions must be on the same pairs, got shapes {found.shape} and {reference.shape}.")
    return TwoWay(
        tp=int(((found != 0) & (found == reference)).sum()),
        fp=int(((found != 0) & (found != reference)).sum()),
        fn=int(((found == 0) & (reference != 0)).sum()),
        tn=int(((found == 0) & (reference == 0)).sum()),
    )


def straddling(p: Floats, *, alpha: float = 0.05) -> Bools:
    """Return the pairs significant under some conditions but not others; ``p`` has shape (condition, pair)."""
    return np.asarray((p.min(axis=0) < alpha) & (p.max(axis=0) > alpha))


def p_trend(conditions: ArrayLike, p: Floats) -> Floats:
    r"""Return Kendall's tau between conditions in order, such as depths of a pool, and the p-values of each pair.

    -1 where every deeper pool separates the two systems more clearly, 1 where every deeper one does so less clearly.

    .. math:: \tau = \frac{C - D}{n(n-1)/2}

    Parameters
    ----------
    conditions
        A number for each condition, shape (condition,).
    p
        The p-values, shape (condition, pair).

    Examples
    --------
    >>> p = np.array([[0.0836, 0.0044], [0.0128, 0.0080], [0.0076, 0.0071], [0.0070, 0.0083], [0.0067, 0.0095]])
    >>> p_trend([5, 10, 15, 20, 25], p).tolist()
    [-1.0, 0.8]
    """
    number = np.asarray(conditions, dtype=float)
    if number.shape != p.shape[:1] or len(number) < 2:
        raise ReliabilityError(
            f"A trend needs p-values of two conditions or more, got {number.size} and shape {p.shape}."
        )
    a, b = np.triu_indices(len(number), k=1)
    return np.asarray((np.sign(number[b] - number[a])[:, None] * np.sign(p[b] - p[a])).sum(axis=0) / len(a))


def compare_counts(first: int, second: int, *, n: int) -> tuple[float, float]:
    r"""Test whether two conditions find different numbers of pairs, both out of n; return chi-squared and p.

    .. math:: \chi^2 = \frac{(x - y)^2}{2n \, \bar p (1 - \bar p)}, \qquad \bar p = \frac{x + y}{2n}

    The test assumes independent pairs, which they are not: read p as a lower bound.

    >>> chi2, p = compare_counts(3650, 3226, n=7503)
    >>> round(chi2, 1), f"{p:.0e}"
    (48.3, '4e-12')
    """
    if not 0 <= min(first, second) <= max(first, second) <= n or n < 1:
        raise ReliabilityError(f"Counts lie between 0 and the number of pairs; got {first} and {second} of {n}.")
    share = (first + second) / (2 * n)
    chi2 = (first - second) ** 2 / (2 * n * share * (1 - share)) if 0 < share < 1 else 0.0
    return chi2, float(chdtrc(1, chi2))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")
