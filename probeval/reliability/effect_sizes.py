r"""Effect sizes of differences with intervals: raw, standardised, and as the share of queries won."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import nctdtrinc, ndtri, stdtr, stdtrit

from probeval.arrays import Floats
from probeval.display import Record
from probeval.errors import ReliabilityError
from probeval.reliability.paired import describe
from probeval.scores.scores import within
from probeval.ties import TIE

__all__ = ["EffectSizes", "equivalence_test", "mean_effect", "standardised_effect", "superiority"]


@dataclass(frozen=True, eq=False, repr=False)
class EffectSizes(Record):
    """Estimates with their intervals, one per row of the input.

    Parameters
    ----------
    value, lower, upper
        The estimate and the ends of its interval, NaN if undefined.
    """

    value: Floats
    lower: Floats
    upper: Floats

    @property
    def half_width(self) -> Floats:
        """Half the width of the interval."""
        return (self.upper - self.lower) / 2


def mean_effect(values: Floats, *, level: float = 0.95, limits: tuple[float, float] = (-np.inf, np.inf)) -> EffectSizes:
    r"""Return the mean over queries with its t interval, :math:`\bar d \pm t_{n-1} \, s_d / \sqrt n`.

    For differences it is the effect in the units of the measure, and its half-width is the smallest difference that
    would be significant with this spread. For scores it is the score of a system on the population of queries.

    Parameters
    ----------
    values
        Differences or scores, NaN if missing, shape (.., query).
    level
        The probability of the interval.
    limits
        The lowest and highest possible value: the interval is cut to them.
    """
    _check(level)
    n, mean, sd = describe(values)
    half = stdtrit(np.maximum(n - 1, 1), (1 + level) / 2) * sd / np.sqrt(np.maximum(n, 1))
    return EffectSizes(mean, *within(limits, mean, mean - half, mean + half))


def standardised_effect(difference: Floats, *, level: float = 0.95) -> EffectSizes:
    r"""Return Cohen's d of paired differences, :math:`\bar d / s_d`: comparable between measures.

    Its interval is that of the noncentrality of t, over :math:`\sqrt n`. NaN if differences do not vary.
    """
    _check(level)
    n, mean, sd = describe(difference)
    d = np.divide(mean, sd, out=np.full(n.shape, np.nan), where=sd > TIE)
    root = np.sqrt(np.maximum(n, 1))
    tail = (1 - level) / 2
    lower, upper = (nctdtrinc(np.maximum(n - 1, 1), p, d * root) / root for p in (1 - tail, tail))
    return EffectSizes(d, lower, upper)


def superiority(difference: Floats, *, level: float = 0.95) -> EffectSizes:
    r"""Return the share of queries on which the first system is better, ties counting half.

    The interval is that of Wilson (1927).
    """
    _check(level)
    n = (~np.isnan(difference)).sum(axis=-1).astype(float)
    won = (difference > 0).sum(axis=-1) + (difference == 0).sum(axis=-1) / 2
    share = np.divide(won, n, out=np.full(n.shape, np.nan), where=n > 0)
    z2 = float(ndtri((1 + level) / 2)) ** 2
    centre = (share + z2 / (2 * np.maximum(n, 1))) / (1 + z2 / np.maximum(n, 1))
    half = np.sqrt(z2 * (share * (1 - share) / np.maximum(n, 1) + z2 / (4 * np.maximum(n, 1) ** 2)))
    half = half / (1 + z2 / np.maximum(n, 1))
    return EffectSizes(share, centre - half, centre + half)


def equivalence_test(difference: Floats, *, rope: float) -> Floats:
    r"""Return p of two one-sided t tests for a true difference of at least the rope in either direction.

    .. math:: p = \max\big(P(T \ge (\bar d + \rho)/s),\; P(T \le (\bar d - \rho)/s)\big), \qquad s = s_d / \sqrt n

    A small p shows that the systems are practically equal; a large p in :func:`~probeval.reliability.t_test` does not.
    """
    if not rope > 0:
        raise ReliabilityError(f"Systems can only be shown equal up to a rope above 0, got {rope:g}.")
    n, mean, sd = describe(difference)
    error = sd / np.sqrt(np.maximum(n, 1))
    inside = rope - np.abs(mean)
    t = np.divide(inside, error, out=np.copysign(np.inf, inside), where=error > TIE)
    return np.where(n > 1, stdtr(np.maximum(n - 1, 1), -t), np.nan)


def _check(level: float) -> None:
    if not 0 < level < 1:
        raise ReliabilityError(f"A level is a probability between 0 and 1, got {level:g}.")
