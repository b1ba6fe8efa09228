"""A score as a random variable: a view of the joint distribution of all scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from probeval.arrays import Floats
from probeval.display import Described, View
from probeval.errors import ScoreError
from probeval.ties import TIE

if TYPE_CHECKING:
    from probeval.scores.scores import Scores

__all__ = ["Score", "within"]


@dataclass(frozen=True, eq=False, repr=False)
class Score(Described):
    """A random variable: a weighted sum of systems' mean scores, usually one score or one difference.

    Parameters
    ----------
    scores
        The joint distribution.
    weights
        The weight of each system, shape (system,).
    """

    scores: Scores
    weights: Floats

    def _headline(self) -> str:
        return f"{self.mean():.4f} +- {self.standard_deviation():.4f}"

    def views(self) -> tuple[View, ...]:
        """The expected value, the standard deviation and the interval."""
        low, high = self.interval()
        row = {"mean": self.mean(), "sd": self.standard_deviation(), "lower": low, "upper": high}
        return (View(pd.DataFrame([row]), str(self.scores.metric), intervals=("mean", "lower", "upper")),)

    def __sub__(self, other: Score) -> Score:
        if not isinstance(other, Score):
            return NotImplemented
        if other.scores is not self.scores:
            raise ScoreError("Only scores of one evaluation can be subtracted: others share no joint distribution.")
        return Score(self.scores, self.weights - other.weights)

    def __neg__(self) -> Score:
        return Score(self.scores, -self.weights)

    @property
    def _used(self) -> Any:
        return np.flatnonzero(self.weights)

    def mean(self) -> float:
        """Return the expected value."""
        return float(self.weights[self._used] @ self.scores.mean[self._used])

    def variance(self) -> float:
        """Return the variance under the target."""
        used = self._used
        covariance = self.scores.covariance[np.ix_(used, used)]
        if np.isnan(covariance).any():
            raise ScoreError(f"The {self.scores.method} route is marginal: differences need method='draws'.")
        weights = self.weights[used]
        value = float(weights @ covariance @ weights)
        floor = TIE * float(np.abs(weights) @ np.diag(covariance)) if len(used) else 0.0
        return value if value > max(floor, 0.0) else 0.0

    def standard_deviation(self) -> float:
        """Return the square root of the variance."""
        return float(np.sqrt(self.variance()))

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Return draws, shape (n,)."""
        return np.asarray(self.scores.sample(n, rng)[:, self._used] @ self.weights[self._used])

    def cdf(self, x: float) -> float:
        """Return P(score <= x)."""
        if self.scores.family == "empirical":
            return float((self._draws() <= x + TIE).mean())
        sd = self.standard_deviation()
        if sd == 0:
            return float(self.mean() <= x + TIE)
        z = (x - self.mean()) / sd
        return float(stdtr(self._freedom, z) if self.scores.family == "t" else ndtr(z))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the central interval with probability ``level``, cut to the limits of the measure."""
        if not 0 < level < 1:
            raise ScoreError(f"A level is a probability between 0 and 1, got {level:g}.")
        tail = (1 - level) / 2
        if self.scores.family == "empirical":
            low, high = np.quantile(self._draws(), [tail, 1 - tail])
            return float(low), float(high)
        z = -float(stdtrit(self._freedom, tail) if self.scores.family == "t" else ndtri(tail))
        mean, half = self.mean(), z * self.standard_deviation()
        low, high = within(self._limits, mean, mean - half, mean + half)
        return float(low), float(high)

    @property
    def _limits(self) -> tuple[float, float]:
        """The lowest and highest possible value of the sum."""
        weights = self.weights[self._used]
        ends = np.multiply.outer(self.scores.metric.limits, weights)
        return float(ends.min(axis=0).sum()), float(ends.max(axis=0).sum())

    @property
    def _freedom(self) -> float:
        return max(self.scores.n_effective - 1, 1.0)

    def _draws(self) -> Floats:
        assert self.scores.joint.draws is not None
        return np.asarray(self.scores.joint.draws[:, self._used] @ self.weights[self._used])


def within(limits: tuple[float, float], mean: ArrayLike, low: ArrayLike, high: ArrayLike) -> tuple[Floats, Floats]:
    """Return the ends of intervals, cut to the limits of the measure; the mean stays inside.

    A normal or t interval is symmetric and can exceed the limits of the measure.

    >>> [float(end) for end in within((0, 1), 0.9, 0.7, 1.1)]
    [0.7, 1.0]
    """
    least, most = limits
    return np.maximum(low, np.minimum(mean, least)), np.minimum(high, np.maximum(mean, most))
