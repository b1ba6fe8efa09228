r"""What judging will bring, before it is done: confidence against judgments, simulated forward from the posterior.

To first order the posterior is normal, so what a batch of judgments takes from the covariance :math:`\Sigma` of the
scores does not depend on how they turn out. The policy [gain] is run forward on covariances alone; along its course
the means move as a martingale whose steps have the covariance that is taken away,

.. math:: \mu_{n+1} = \mu_n + \varepsilon,\quad \varepsilon \sim N(0, \Sigma_n - \Sigma_{n+1}),

and every path of them has its own course of confidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.linalg import cholesky, solve_triangular
from scipy.special import ndtr, ndtri

from probeval.arrays import Bools, Floats, Ints, frozen
from probeval.errors import SelectionError
from probeval.scores.score import TIE
from probeval.selection import Stage
from probeval.selection.batch import SHORT_LIST, in_turn
from probeval.selection.policies import laplacian

__all__ = ["Forecast", "forecast"]

LEVEL = 0.9  # of the interval of a forecast


@dataclass(frozen=True, eq=False)
class Forecast:
    """Courses that judging may take, one a path.

    Parameters
    ----------
    judged
        Numbers of judgments, those already made included, shape (step,).
    confidence, halfwidth
        The mean confidence over pairs of systems, and the widest 95% half-width of a score; the former of shape
        (path, step), the latter of shape (step,).
    pool
        How many pairs there are.
    """

    judged: Ints
    confidence: Floats
    halfwidth: Floats
    pool: int

    def __post_init__(self) -> None:
        for name in ("judged", "confidence", "halfwidth"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def passage(self, confidence: float, *, lasts: int = 100) -> Floats:
        """The first number of judgments from which on confidence stays for ``lasts`` more, of each path.

        The size of the pool where it never does: with everything judged all is certain.
        """
        steps = np.searchsorted(self.judged, self.judged + lasts, side="right")
        good = self.confidence >= confidence - 1e-12
        first = np.full(len(good), float(self.pool))
        for path, row in enumerate(good):
            bad = np.concatenate([[0], np.cumsum(~row)])
            lasting = np.flatnonzero(row & (bad[np.minimum(steps, len(row))] == bad[:-1]))
            if len(lasting):
                first[path] = self.judged[lasting[0]]
        return first

    def needed(self, confidence: float, *, level: float = LEVEL, lasts: int = 100) -> dict[str, float]:
        """The judgments that a mean confidence needs: their median and interval over the paths."""
        tail = (1 - level) / 2
        low, middle, high = np.quantile(self.passage(confidence, lasts=lasts), [tail, 0.5, 1 - tail])
        return {"judgments": float(middle), "lower": float(low), "upper": float(high)}

    def needed_halfwidth(self, halfwidth: float) -> float:
        """The judgments after which no 95% interval is wider."""
        narrow = np.flatnonzero(self.halfwidth <= halfwidth + TIE)
        return float(self.judged[narrow[0]]) if len(narrow) else float(self.pool)

    def table(self, *, level: float = LEVEL) -> pd.DataFrame:
        """One row a step: judged, confidence (median), lower, upper, halfwidth."""
        tail = (1 - level) / 2
        low, middle, high = np.quantile(self.confidence, [tail, 0.5, 1 - tail], axis=0)
        return pd.DataFrame(
            {
                "judged": self.judged,
                "confidence": middle,
                "lower": low,
                "upper": high,
                "halfwidth": self.halfwidth,
            }
        )


class _Course:
    """The state of a forecast: what is still open, and what it has to do with the scores."""

    def __init__(self, stage: Stage, noise: float) -> None:
        knowledge = stage.knowledge
        self.noise = noise
        self.dependence = knowledge.dependence
        self.own = knowledge.gain_moments[1]
        self.variance = knowledge.gain_variance.copy()
        self.with_scores = knowledge.covariance.copy()
        self.scores = knowledge.weights.T @ self.with_scores
        self.mean = knowledge.scores.mean
        self.open: Bools = stage.open.copy()
        self.factor = np.zeros((len(self.own), 0))

    @cached_property
    def gaps(self) -> Floats:
        """The differences expected now, shape (system, system)."""
        return np.asarray(self.mean[:, None] - self.mean)

    @property
    def gap_variance(self) -> Floats:
        """Of every difference, shape (system, system)."""
        own = np.diag(self.scores)
        return np.maximum(own[:, None] + own - 2 * self.scores, 0.0)

    def choose(self, n: int) -> Ints:
        """The next batch by [gain], what each pair says of the others taken out of them."""
        variance = self.gap_variance
        z = np.divide(self.gaps, np.sqrt(variance), out=np.zeros_like(variance), where=variance > TIE)
        open_ = np.divide(np.exp(-(z**2) / 2), variance, out=np.zeros_like(variance), where=variance > TIE)
        matrix = laplacian(open_)
        value = _worth(self.with_scores, self.variance, matrix)
        value[~self.open] = -1.0
        pairs = np.argpartition(-value, min(SHORT_LIST, len(value)) - 1)[:SHORT_LIST]
        pairs = pairs[self.open[pairs]]
        between = self.dependence.between(pairs) - self.factor[pairs] @ self.factor[pairs].T
        at = in_turn(self.with_scores[pairs], self.variance[pairs], between, n, lambda g, v: _worth(g, v, matrix))
        return np.asarray(pairs[at])

    def judge(self, pairs: Ints) -> Floats:
        """Judge pairs, whatever comes out; the root of what that takes from the scores, shape (pair, system)."""
        hot = np.zeros((len(self.own), len(pairs)))
        hot[pairs, np.arange(len(pairs))] = 1.0
        columns = self.dependence.times(hot) - self.factor @ self.factor[pairs].T
        inside = columns[pairs] + np.diag(np.maximum(self.own[pairs] + self.noise, TIE))
        root = cholesky(inside + TIE * np.eye(len(pairs)), lower=True)
        taken = solve_triangular(root, self.with_scores[pairs], lower=True)
        new = solve_triangular(root, columns.T, lower=True).T
        self.scores = self.scores - taken.T @ taken
        self.with_scores -= new @ taken
        self.variance = np.maximum(self.variance - (new**2).sum(axis=1), 0.0)
        self.factor = np.concatenate([self.factor, new], axis=1)
        self.open[pairs] = False
        self.variance[pairs] = 0.0
        return np.asarray(taken)


def _worth(columns: Floats, variance: Floats, matrix: Floats) -> Floats:
    total = ((columns @ matrix) * columns).sum(axis=1)
    return np.asarray(np.divide(total, variance, out=np.zeros(len(total)), where=variance > TIE))


def forecast(
    stage: Stage,
    *,
    target: float = 0.95,
    batch: int = 10,
    paths: int = 400,
    lasts: int = 100,
    most: int | None = None,
    noise: float = 0.0,
    rng: np.random.Generator | None = None,
) -> Forecast:
    """Simulate judging by [gain] forward from what is known at a stage.

    Parameters
    ----------
    stage
        A moment of the judging: nothing judged, a pilot, or more.
    target
        The mean confidence at which forecasting may end.
    batch
        How many judgments a step.
    paths
        How many courses of the means.
    lasts
        How long confidence must stay.
    most
        The most judgments to look ahead; all that are open when not given.
    noise
        The variance of what an assessor's grade adds to a pair's gain.
    rng
        From which paths are drawn (seed 0 when not given).

    Examples
    --------
    >>> from probeval.data import Scale, synthetic_campaign
    >>> from probeval.relevance import load_card
    >>> from probeval.selection import Judging
    >>> campaign = synthetic_campaign(np.random.default_rng(1), systems=4, queries=6, depth=5)
    >>> judging = Judging(campaign, load_card("text-hierarchical").model, "DCG@5")
    >>> ahead = forecast(judging.begin(), paths=20)
    >>> ahead.needed(0.95)["judgments"] == ahead.pool == len(judging.pool)  # every pair is judged
    True
    """
    if not 0.5 <= target <= 1:
        raise SelectionError(f"A target is a confidence between .5 and 1, got {target:g}.")
    rng = np.random.default_rng(0) if rng is None else rng
    course = _Course(stage, noise)
    systems = len(course.mean)
    a, b = np.triu_indices(systems, k=1)
    means = np.tile(course.mean, (paths, 1))
    judged, confidence, halfwidth = [stage.scores.judged], [], []
    left = int(course.open.sum()) if most is None else min(most, int(course.open.sum()))
    steady = 0
    while True:
        sd = np.sqrt(course.gap_variance[a, b])
        gap = np.abs(means[:, a] - means[:, b])
        z = np.divide(gap, sd, out=np.full_like(gap, np.inf), where=sd > TIE)
        confidence.append(ndtr(z).mean(axis=1) if len(a) else np.ones(paths))
        halfwidth.append(float(ndtri(0.975) * np.sqrt(np.maximum(np.diag(course.scores), 0.0).max(initial=0.0))))
        steady = steady + batch if np.quantile(confidence[-1], 0.02) >= target else 0
        size = min(batch, left)
        if size <= 0 or steady > lasts + batch:
            break
        taken = course.judge(course.choose(size))
        means = means + rng.standard_normal((paths, len(taken))) @ taken
        judged.append(judged[-1] + len(taken))
        left -= len(taken)
    return Forecast(np.array(judged), np.stack(confidence, axis=1), np.array(halfwidth), stage.scores.pool)
