"""The result of every method: the joint distribution of the systems' mean scores."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from probeval.arrays import Floats, frozen
from probeval.display import Brief
from probeval.metrics.aggregates import EPSILON, aggregate_queries

__all__ = ["Joint", "between_queries", "expected_between", "with_aggregate"]


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


def with_aggregate(joint: Joint, aggregate: str, weights: Floats, *, keep: bool) -> Joint:
    r"""Return the joint distribution of geometric means over queries, from the draws of every query.

    A geometric mean is :math:`g = h(\frac1Q\sum_q w_q l_q)` with logarithms :math:`l_q` of the scores. Its covariance
    over samples of queries is that of the mean of logarithms times the derivative on both sides,
    :math:`h' = g + \epsilon` (for ``gm-eps``) or :math:`g`, at the mean of the draws.

    Parameters
    ----------
    joint
        With the draws of every query.
    aggregate
        One of :data:`~probeval.metrics.AGGREGATES`.
    weights
        The weight of each query, of mean 1, shape (query,).
    keep
        Whether the draws of every query are kept.
    """
    values = joint.query_draws
    assert values is not None
    draws = aggregate_queries(values, aggregate, weights=weights)
    centre = draws.mean(axis=0)
    off = draws - centre
    shift, floor = (EPSILON, 0.0) if aggregate == "gm-eps" else (0.0, EPSILON if aggregate == "gm-trec" else 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.maximum(values + shift, floor)) * (weights > 0)
        n = logs.shape[2]
        mean = (logs * weights).mean(axis=2)
        weighted = logs * weights
        squares = np.einsum("dsq,dtq->st", weighted, weighted) / len(logs)
        cross = (weighted * weights).mean(axis=2).T @ mean / len(logs)
        between = expected_between(squares, cross, mean.T @ mean / len(logs), weights)
        between = np.outer(centre + shift, centre + shift) * between
    if n > 1 and np.count_nonzero(weights) > 1:
        between = np.where(np.isfinite(between), between, 0.0)  # a geometric mean of 0 stays 0 with other queries
    return replace(
        joint,
        mean=centre,
        covariance=off.T @ off / max(len(draws) - 1, 1),
        between=between,
        draws=draws if joint.draws is None or len(draws) == len(joint.draws) else np.tile(draws, (len(joint.draws), 1)),
        query_draws=values if keep else None,
    )
