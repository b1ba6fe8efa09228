"""The distribution of a system's scores over queries: four families, and how well each predicts unseen queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincinv, ndtr, ndtri

from probeval.arrays import Floats, frozen
from probeval.display import Record
from probeval.errors import SatisfactionError, did_you_mean
from probeval.ties import TIE

__all__ = ["FAMILIES", "Fit", "fit_scores", "goodness_of_fit", "omega_squared"]

FAMILIES = {
    "empirical": "the scores themselves; the best from some 50 queries on",
    "normal": "by mean and standard deviation; its mass outside [0, 1] counts at the ends",
    "truncated": "the same normal, cut at 0 and 1",
    "beta": "by moments, or by maximum likelihood if every score is 0 or 1; the best on fine scales",
}
POINTS = 2000  # even enough for the tails of an interval


@dataclass(frozen=True, eq=False, repr=False)
class Fit(Record):
    """A distribution of scores over queries.

    Parameters
    ----------
    family
        One of :data:`FAMILIES`.
    values
        The fitted scores in increasing order, shape (query,).
    parameters
        Mean and standard deviation (normal, truncated), the two shapes (beta), none (empirical).
    """

    family: str
    values: Floats
    parameters: tuple[float, ...]

    def cdf(self, x: ArrayLike) -> Floats:
        """Return P(score <= x), shape of x."""
        x = np.asarray(x, dtype=float)
        if not self.parameters:
            return np.searchsorted(self.values, x, side="right") / len(self.values)
        first, second = self.parameters
        if self.family == "beta":
            return np.asarray(betainc(first, second, np.clip(x, 0, 1)))
        low, high = (0.0, 1.0) if self.family == "normal" else ndtr((np.array([0.0, 1.0]) - first) / second)
        return np.asarray(np.clip((ndtr((x - first) / second) - low) / (high - low), 0, 1))

    def points(self, n: int = POINTS) -> Floats:
        """Return equally weighted scores that represent the distribution: its own, or ``n`` at even probabilities."""
        if not self.parameters:
            return self.values
        first, second = self.parameters
        even = (np.arange(n) + 0.5) / n
        if self.family == "beta":
            return np.asarray(betaincinv(first, second, even))
        low, high = (0.0, 1.0) if self.family == "normal" else ndtr((np.array([0.0, 1.0]) - first) / second)
        return np.clip(first + second * ndtri(low + even * (high - low)), 0, 1)


def fit_scores(values: ArrayLike, family: str = "empirical") -> Fit:
    """Fit the distribution of a system's scores over queries, with one of :data:`FAMILIES`.

    If all scores are equal, every family is that one score.

    >>> fit = fit_scores([0.2, 0.4, 0.6, 0.8], "beta")
    >>> fit.cdf([0.0, 0.5, 1.0]).round(3).tolist()
    [0.0, 0.5, 1.0]
    """
    if family not in FAMILIES:
        raise SatisfactionError(f"No family {family!r}: {', '.join(FAMILIES)}.{did_you_mean(family, FAMILIES)}")
    x = np.sort(np.asarray(values, dtype=float))
    if len(x) < 2:
        raise SatisfactionError(f"A distribution over queries needs at least two queries, got {len(x)}.")
    if x[0] < -TIE or x[-1] > 1 + TIE:
        raise SatisfactionError(f"Scores go from 0 to 1 here, got {x[0]:g} to {x[-1]:g}. Normalise the measure.")
    x = x.clip(0.0, 1.0)  # a mean of draws that are all 1 may exceed it by rounding
    mean, sd = float(x.mean()), float(x.std(ddof=1))
    if family == "empirical" or sd < 1e-9:
        parameters: tuple[float, ...] = ()
    elif family != "beta":
        parameters = (mean, sd)
    elif sd**2 < mean * (1 - mean):
        size = mean * (1 - mean) / sd**2 - 1
        parameters = (mean * size, (1 - mean) * size)
    else:
        parameters = _most_likely_beta(x)
    return Fit(family, frozen(x), parameters)


def _most_likely_beta(x: Floats) -> tuple[float, float]:
    """Return the maximum likelihood shapes of a beta; scores of 0 and 1 are moved inside by a millionth."""
    from scipy.optimize import minimize
    from scipy.special import betaln

    inside = np.clip(x, 1e-6, 1 - 1e-6)
    log, log_rest = np.log(inside).mean(), np.log1p(-inside).mean()

    def loss(shapes: Floats) -> float:
        a, b = np.exp(shapes)
        return float(betaln(a, b) - (a - 1) * log - (b - 1) * log_rest)

    a, b = np.exp(minimize(loss, np.zeros(2), method="Nelder-Mead").x).tolist()
    return a, b


def omega_squared(fit: Fit, unseen: ArrayLike) -> float:
    r"""Return the squared distance between a fit and the distribution of unseen scores (Cramer, von Mises).

    .. math:: \omega^2 = \sum_{q} \big(F(\lambda_q) - \hat F(\lambda_q)\big)^2

    over the unseen queries, with F their own distribution (Urbano 2013, Eq 4.7).
    """
    x = np.sort(np.asarray(unseen, dtype=float))
    own = np.searchsorted(x, x, side="right") / len(x)
    return float(np.sum((own - fit.cdf(x)) ** 2))


def goodness_of_fit(scores: ArrayLike, *, n: int, rng: np.random.Generator, trials: int = 200) -> pd.DataFrame:
    """Return how well each family predicts unseen queries: the mean of omega over random splits, the best first.

    Each time ``n`` queries, the same for all systems, are fitted and the others are predicted, system by system.

    Parameters
    ----------
    scores
        Shape (query,) for one system or (system, query).
    n
        The number of queries to fit.
    rng, trials
        The generator and the number of the splits.
    """
    matrix = np.atleast_2d(np.asarray(scores, dtype=float))
    queries = matrix.shape[1]
    if not 2 <= n < queries:
        raise SatisfactionError(f"Of {queries} queries 2 to {queries - 1} can be fitted, got n={n}.")
    found: dict[str, list[float]] = {family: [] for family in FAMILIES}
    for _ in range(trials):
        order = rng.permutation(queries)
        for system in matrix:
            for family, omegas in found.items():
                omegas.append(omega_squared(fit_scores(system[order[:n]], family), system[order[n:]]) ** 0.5)
    table = pd.DataFrame(
        {"omega": {family: np.mean(omegas) for family, omegas in found.items()}},
        index=pd.Index(FAMILIES, name="family"),
    )
    return table.sort_values("omega", kind="stable")
