"""Predictions for one new query: the score of a system on it, and the share of users that it satisfies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from probeval.arrays import Floats
from probeval.display import Record
from probeval.errors import SatisfactionError
from probeval.metrics.mapping import SatMapping
from probeval.results import HIDDEN
from probeval.satisfaction.distributions import POINTS, fit_scores

__all__ = ["NewQuery", "default_family", "predict_query"]

MOST_FITS = 100  # most draws, evenly spaced, whose fits are mixed into one distribution
LEAST_POINTS = 100  # of each fit in a mixture: the mixture has at least as many as one fit alone
ENOUGH = 50  # queries from which on their own scores are the best prediction (Urbano 2013, section 4.2)


@dataclass(frozen=True, repr=False)
class NewQuery(Record):
    """The distribution of a figure on one new query of the same kind."""

    mean: float
    lower: Annotated[float, "The two-sided interval, which holds the figure with the level's probability."]
    upper: float
    above: Annotated[float, "One-sided: the value that the figure exceeds with the level's probability."]
    below: Annotated[float, "One-sided: the value that it stays below with that probability."]
    level: Annotated[float, HIDDEN] = 0.95

    def __str__(self) -> str:
        return f"{self.mean:.4f} [{self.lower:.4f}, {self.upper:.4f}], {self.level:.0%} above {self.above:.4f}"


def default_family(queries: int) -> str:
    """Return the family for this number of queries: empirical from 50 on, beta for fewer.

    >>> default_family(100), default_family(20)
    ('empirical', 'beta')
    """
    return "empirical" if queries >= ENOUGH else "beta"


def predict_query(
    scores: Floats,
    *,
    mapping: SatMapping | None = None,
    family: str | None = None,
    level: float = 0.95,
    limits: tuple[float, float] = (0.0, 1.0),
) -> NewQuery:
    r"""Predict the score of a system on one new query, or by a mapping the share of users that it satisfies.

    The distribution of scores over queries is fitted, and its quantiles are the limits (Urbano 2013, section 4.2):
    :math:`[Q(\alpha/2), Q(1 - \alpha/2)]` two-sided, above :math:`Q(\alpha)` one-sided. A mapping is applied to the
    distribution point by point, because one that is not monotone does not map quantiles to quantiles. Fits to several
    draws are mixed.

    Parameters
    ----------
    scores
        The scores on the queries of the evaluation, shape (query,), or joint draws of them, shape (draw, query).
    mapping
        The mapping from scores to P(Sat); without it, the score is predicted.
    family
        One of :data:`FAMILIES`; by default :func:`default_family`.
    level
        The probability of the interval, and of each one-sided limit.
    limits
        The lowest and highest possible score. Without finite ones, the family is empirical.

    Examples
    --------
    >>> scores = np.linspace(0, 1, 101)
    >>> print(predict_query(scores, level=0.9))
    0.5000 [0.0500, 0.9500], 90% above 0.1000
    """
    if not 0 < level < 1:
        raise SatisfactionError(f"A level is a probability between 0 and 1, got {level:g}.")
    draws = np.atleast_2d(np.asarray(scores, dtype=float))
    family = default_family(draws.shape[1]) if family is None and np.isfinite(limits).all() else family or "empirical"
    least, most = limits if np.isfinite(limits).all() else (float(draws.min()), float(draws.max()))
    if family != "empirical" and not np.isfinite(limits).all():
        raise SatisfactionError(f"The family {family} needs scores with limits. Leave it out: empirical needs none.")
    width = (most - least) or 1.0
    some = draws[np.linspace(0, len(draws) - 1, min(len(draws), MOST_FITS)).astype(int)]
    n = max(POINTS // len(some), LEAST_POINTS)
    points = least + width * np.concatenate([fit_scores((draw - least) / width, family).points(n) for draw in some])
    if mapping is not None:
        points = mapping(points)
    tail = (1 - level) / 2
    lower, upper, above, below = np.quantile(points, [tail, 1 - tail, 1 - level, level]).tolist()
    return NewQuery(float(points.mean()), lower, upper, above, below, level)
