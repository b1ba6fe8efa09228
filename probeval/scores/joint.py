"""The result of every method: the joint distribution of the systems' mean scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from probeval.arrays import Floats, frozen

__all__ = ["Joint", "between_queries"]


@dataclass(frozen=True, eq=False)
class Joint:
    """Joint means and covariances of all systems, and joint draws if the method makes them.

    Parameters
    ----------
    mean, covariance
        Moments of the mean scores over these queries, due to uncertain relevance, shapes (system,) and
        (system, system). Covariances between systems are NaN if a method gives only marginals.
    between
        The additional covariance due to sampling queries from a population: the expected between-query covariance over
        the number of queries, shape (system, system). NaN for a single query.
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
    n = query_mean.shape[1]
    if n < 2:
        return np.full((len(query_mean),) * 2, np.nan)
    mean = query_mean.mean(axis=1)
    total = query_mean @ query_mean.T + within - n * (np.outer(mean, mean) + covariance)
    return np.asarray(total / (n * (n - 1)))
