"""The result of every method: the joint distribution of the systems' mean scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from probeval.arrays import Floats, frozen
from probeval.display import Brief

__all__ = ["Joint", "between_queries", "expected_between"]


@dataclass(frozen=True, eq=False, repr=False)
class Joint(Brief):
    """Joint means and covariances of all systems, and joint draws if the method makes them.

    Parameters
    ----------
    mean, covariance
        Moments of the mean scores over these queries, due to uncertain relevance, shapes (system,) and
        (system, system). Covariances between systems are NaN if a method gives only marginals.
    between
        The additional covariance due to sampling queries from a population, shape (system, system): see
        :func:`expected_between`. NaN for a single query.
    query_mean, query_variance
        Moments of the score of each system on each query, shape (system, query).
    draws
        Joint draws of the mean scores, shape (draw, system), or None if the method gives only moments.
    query_draws
        The draws before averaging over queries, shape (draw, system, query), if requested.
    """

    mean: Floats
    covariance: Floats
    between: Floats
    query_mean: Floats
    query_variance: Floats
    draws: Floats | None = None
    query_draws: Floats | None = None

    def __post_init__(self) -> None:
        for name in ("mean", "covariance", "between", "query_mean", "query_variance", "draws", "query_draws"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, frozen(getattr(self, name)))


def between_queries(query_mean: Floats, within: Floats, covariance: Floats) -> Floats:
    r"""Return the expected between-query covariance over the number of queries, shape (system, system).

    :math:`\frac{1}{Q(Q-1)} \big[\sum_q (m_q m_q' + C_q) - Q(\bar m \bar m' + \bar C)\big]`, with ``within`` the sum of
    the within-query covariances :math:`C_q`, and :math:`\bar C` the covariance of the means.
    """
    mean = query_mean.mean(axis=1)
    square = np.outer(mean, mean) + covariance
    return expected_between(query_mean @ query_mean.T + within, square, square, np.ones(query_mean.shape[1]))


def expected_between(squares: Floats, cross: Floats, square: Floats, weights: Floats) -> Floats:
    r"""Return the expected covariance of weighted means over samples of queries, shape (system, system).

    With weights :math:`w_q` of mean 1 and scores :math:`s_q` of all systems, the mean is
    :math:`\bar s = \frac{1}{Q}\sum_q w_q s_q`, and its covariance over samples of queries

    .. math:: \frac{c}{Q^2} \sum_q w_q^2 (s_q - \bar s)(s_q - \bar s)',

    where :math:`c` makes it unbiased if scores do not depend on weights; it is :math:`Q/(Q-1)` if all weights are
    equal. A query of weight 0 plays no part. NaN if only one query has a weight. See docs/theory/scores.md#weights.

    Parameters
    ----------
    squares, cross, square
        The expectations of :math:`\sum_q w_q^2 s_q s_q'`, of :math:`\frac{1}{Q}\sum_q w_q^2 s_q\, \bar s'` and of
        :math:`\bar s \bar s'`, shapes (system, system).
    weights
        The weight of each query, of mean 1, shape (query,).
    """
    n = len(weights)
    if np.count_nonzero(weights) < 2:
        return np.full(squares.shape, np.nan)
    second, third = (weights**2).sum() / n, (weights**3).sum() / n
    total = squares - n * (cross + cross.T - second * square)
    correction = n * second / (n * second + second**2 - 2 * third)
    return np.asarray(total * correction / n**2)
