r"""Correlations of two rankings: Kendall's tau, Spearman's rho, AP correlation, rank-biased overlap.

The inputs are scores, higher is better; scores that differ by less than :data:`probeval.ties.TIE` are tied.
An undefined correlation (fewer than two systems, or only ties where ties are discounted) is NaN.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import ArrayLike

from probeval.arrays import Bools, Floats
from probeval.errors import ReliabilityError
from probeval.ties import TIE, signs

__all__ = ["Overlap", "agreements", "ap_correlation", "kendall", "rank", "rank_biased_overlap", "spearman"]

VARIANTS = ("a", "b")
DECIMALS = round(-np.log10(TIE))


def kendall(x: ArrayLike, y: ArrayLike, *, variant: str = "b") -> float:
    r"""Return Kendall's tau (Kendall 1938): pairs in the same order minus pairs in opposite orders.

    .. math:: \tau_a = \frac{C - D}{n(n-1)/2}, \qquad
       \tau_b = \frac{C - D}{\sqrt{(C + D + X_0)(C + D + Y_0)}},

    with :math:`X_0`, :math:`Y_0` the pairs tied on one side only.

    Parameters
    ----------
    x, y
        Scores of the same systems, shape (system,).
    variant
        ``"a"`` counts a tie as half right; ``"b"`` excludes ties from the possible agreements.

    Examples
    --------
    >>> round(kendall([8.5, 9.3, 8, 7.5, 7], [9.1, 8.2, 7.4, 6.5, 6.5]), 3)
    0.738
    """
    x, y = _paired(x, y)
    _check(variant)
    upper = np.triu_indices(len(x), k=1)
    a, b = (signs(v[:, None] - v)[upper] for v in (x, y))
    possible = float(len(a)) if variant == "a" else float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / possible if possible else float("nan")


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    r"""Return Spearman's rho: Pearson's correlation of the ranks, with mean ranks for ties.

    >>> round(spearman([9, 8, 7, 6, 5], [9.7, 8.1, 5.5, 6, 6.9]), 3)
    0.6
    """
    a, b = (rank(v, ties="mean") for v in _paired(x, y))
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size else float("nan")


def ap_correlation(x: ArrayLike, y: ArrayLike, *, variant: str = "b") -> float:
    r"""Return the AP correlation (Yilmaz, Aslam and Robertson 2008): Kendall's tau with more weight at the top.

    It averages, down the estimated order, the share of the systems above each one that are truly above it.

    .. math:: \tau_{AP} = \frac{2}{n-1} \sum_{i=2}^{n} \frac{C_i}{i-1} - 1

    Ties follow Urbano and Marrero (2017). ``"a"``, accuracy: ``x`` is the truth, and all orders of systems tied in
    ``y`` are equally likely. ``"b"``, agreement: ties on both sides; nothing is above the first group of ties, and the
    result is the mean of both directions.

    Parameters
    ----------
    x, y
        The true and the estimated scores of the same systems, shape (system,).
    variant
        ``"a"`` or ``"b"``.

    Examples
    --------
    >>> round(ap_correlation([3, 2, 1, 0], [2, 3, 1, 0], variant="a"), 4)  # the top two swapped
    0.3333
    """
    x, y = _paired(x, y)
    _check(variant)
    return _expected_ap(x, y) if variant == "a" else (_tied_ap(x, y) + _tied_ap(y, x)) / 2


def _expected_ap(x: Floats, y: Floats) -> float:
    """Return the expected AP correlation over the orders of systems tied in ``y``."""
    n = len(x)
    if n < 2:
        return float("nan")
    above = signs(y - y[:, None]) > 0  # (i, j): j is above i
    right = signs(x - x[:, None]) > 0
    tied = ~above & ~above.T
    np.fill_diagonal(tied, False)
    place, ahead = above.sum(axis=1), (above & right).sum(axis=1)
    alone = ~tied.any(axis=1) & (place > 0)
    total = float((ahead[alone] / place[alone]).sum())
    for i in np.flatnonzero(tied.any(axis=1)):
        # i is equally likely behind 0..ties of its group, which are a random subset of it.
        ties = tied[i].sum()
        behind = np.arange(ties + 1)
        expected = ahead[i] + behind * ((tied[i] & right[i]).sum() / ties)
        places = place[i] + behind
        total += float(np.divide(expected, places, out=np.zeros(len(places)), where=places > 0).mean())
    return 2 * total / (n - 1) - 1


def _tied_ap(x: Floats, y: Floats) -> float:
    """Return the AP correlation down the groups of ``y``; a pair tied in ``x`` is not in the same order."""
    above = signs(y - y[:, None]) > 0
    right = signs(x - x[:, None]) > 0
    place = above.sum(axis=1)
    led = place > 0
    return float(2 * ((above & right).sum(axis=1)[led] / place[led]).mean() - 1) if led.any() else float("nan")


@dataclass(frozen=True)
class Overlap:
    """Rank-biased overlap of two lists with only their tops observed.

    Parameters
    ----------
    least, residual
        The guaranteed overlap of the observed tops, and the possible addition of the unseen rest.
    extrapolated
        The value if the rest agreed like the tops.
    """

    least: float
    residual: float
    extrapolated: float


def rank_biased_overlap(x: Sequence[Hashable], y: Sequence[Hashable], *, p: float = 0.9) -> Overlap:
    r"""Return the rank-biased overlap (Webber, Moffat and Zobel, 2010) of two ranked lists of labels.

    :math:`(1-p) \sum_i p^{i-1} A_i`, with :math:`A_i` the share that the two top-i have in common. For lists seen to
    one depth k the extrapolated form is

    .. math:: (1-p) \sum_{i \le k} p^{i-1} A_i + p^k A_k .

    Parameters
    ----------
    x, y
        The lists, best first, without repetition; they need not be equally long.
    p
        The persistence: the top 1/(1-p) get most of the weight.

    Examples
    --------
    >>> round(rank_biased_overlap("abcde", "bacde", p=0.8).extrapolated, 3)
    0.8
    """
    if not 0 < p < 1:
        raise ReliabilityError(f"The persistence p of rank-biased overlap lies between 0 and 1, got {p:g}.")
    if not len(x) or not len(y) or len(set(x)) < len(x) or len(set(y)) < len(y):
        raise ReliabilityError("Rank-biased overlap compares lists that have something in them, and nothing twice.")
    short, long_ = sorted((list(x), list(y)), key=len)
    s, n = len(short), len(long_)
    common = _common(short, long_)
    depth = np.arange(1, n + 1)
    weight = p**depth / depth
    x_s, x_n = common[s - 1], common[-1]
    scale = (1 - p) / p
    least = scale * (float((common - x_n) @ weight) - x_n * log(1 - p))
    longest = n + s - int(x_n)  # the depth at which both lists could contain the labels of both
    tail = np.arange(1, longest + 1)
    tails = p**tail / tail
    residual = (
        p**s + p**n - p**longest
        - scale * (s * tails[s:].sum() + n * tails[n:].sum() + x_n * (-log(1 - p) - tails.sum()))
    )  # fmt: skip
    unseen = np.maximum(depth - s, 0) * x_s / s  # the shorter list continues like its observed part
    extrapolated = scale * float((common + unseen) @ weight) + ((x_n - x_s) / n + x_s / s) * p**n
    return Overlap(float(least), max(float(residual), 0.0), float(extrapolated))


def _common(short: list[Hashable], long_: list[Hashable]) -> Floats:
    """Count the common labels of the top d of both lists, for each d up to the longer list's end."""
    at = {label: i for i, label in enumerate(short)}
    met = np.array([max(at[label], i) for i, label in enumerate(long_) if label in at], dtype=np.int64)
    return np.cumsum(np.bincount(met, minlength=len(long_))).astype(float)


def agreements(x: ArrayLike, y: ArrayLike) -> tuple[float, float, float]:
    """Return the shares of pairs on which two sets of scores agree, disagree, or at least one is tied.

    Without ties, tau is twice the first share minus one.

    >>> agreements([3, 2, 1, 1], [3, 1, 2, 0])
    (0.6666666666666666, 0.16666666666666666, 0.16666666666666666)
    """
    x, y = _paired(x, y)
    upper = np.triu_indices(len(x), k=1)
    product = signs(x[:, None] - x)[upper] * signs(y[:, None] - y)[upper]
    if not len(product):
        return (float("nan"),) * 3
    return float((product > 0).mean()), float((product < 0).mean()), float((product == 0).mean())


def rank(values: ArrayLike, *, ties: str = "min", descending: bool = True) -> Floats:
    """Return ranks from 1, the best first; tied values share the least (``"min"``) or the mean (``"mean"``) rank.

    Ranks are along the last axis.

    >>> rank([8.3, 7.8, 6.5, 6.5, 5]), rank([8.3, 7.8, 6.5, 6.5, 5], ties="mean")
    (array([1., 2., 3., 3., 5.]), array([1. , 2. , 3.5, 3.5, 5. ]))
    """
    flat = np.round(np.asarray(values, dtype=float), DECIMALS)
    flat = -flat if descending else flat
    order = np.argsort(flat, axis=-1, kind="stable")
    ordered = np.take_along_axis(flat, order, axis=-1)
    place = np.broadcast_to(np.arange(1.0, flat.shape[-1] + 1), flat.shape)
    starts: Bools = np.diff(ordered, axis=-1, prepend=-np.inf) > 0
    first = np.maximum.accumulate(np.where(starts, place, 0.0), axis=-1)
    if ties == "mean":
        ends: Bools = np.diff(ordered, axis=-1, append=np.inf) > 0
        last = np.minimum.accumulate(np.where(ends, place, np.inf)[..., ::-1], axis=-1)[..., ::-1]
        first = (first + last) / 2
    out = np.empty_like(flat)
    np.put_along_axis(out, order, first, axis=-1)
    return out


def _paired(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    a, b = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if a.ndim != 1 or a.shape != b.shape or np.isnan(a).any() or np.isnan(b).any():
        raise ReliabilityError(
            f"A correlation needs two numbers for each system, none missing; got shapes {a.shape} and {b.shape}."
        )
    return a, b


def _check(variant: str) -> None:
    if variant not in VARIANTS:
        raise ReliabilityError(f"A variant is 'a' or 'b', got {variant!r}.")
