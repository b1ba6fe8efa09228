"""Exact means and covariances of linear measures, and the Taylor route of Urbano (2013) for ratios.

See docs/theory/scores.md#total.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from probeval.arrays import Floats
from probeval.data.runs import Runs
from probeval.metrics import Metric
from probeval.metrics.weights import divide
from probeval.relevance.distribution import RelevanceDistribution
from probeval.scores.scores import Joint, between_queries, expected_between
from probeval.threads import in_order

__all__ = ["BlockMoments", "joint_of_moments", "moments", "sum_moments", "taylor", "weight_matrix"]


def weight_matrix(runs: Runs, weights: Floats) -> csr_array:
    """Return the weight of each pair's gain in each system's sum over queries, shape (system, pair)."""
    system, query, rank = np.nonzero(runs.retrieved)
    shape = (len(runs.systems), len(runs.pool))
    return csr_array((weights[rank], (system, runs.pairs[system, query, rank])), shape=shape)


def at_ranks(runs: Runs, per_pair: Floats) -> Floats:
    """Look up a value per pair at each rank, 0 past the end of a list, shape (.., system, query, rank)."""
    padded = np.concatenate([per_pair, np.zeros((*per_pair.shape[:-1], 1))], axis=-1)
    return padded[..., runs.pairs]


class BlockMoments(NamedTuple):
    """The contribution of one block of queries to the moments of a linear measure, before dividing by queries."""

    total: Floats  # expected scores summed over queries by weight, under each draw of the parameters, (draw, system)
    squared: Floats  # the same by squared weight
    given: Floats  # covariance of the first sums given the parameters, shape (system, system)
    crossed: Floats  # covariance of the first and the second sums given the parameters, same shape
    across: Floats  # covariance over the parameters of each query's weighted scores, summed over queries, same shape
    query_mean: Floats  # shape (system, query)
    query_variance: Floats

    @classmethod
    def of(
        cls, runs: Runs, relevance: RelevanceDistribution, gains: Floats, weights: Floats, query_weights: Floats
    ) -> BlockMoments:
        """Return the contribution of one block, from the weights of ranks and those of its queries."""
        mean, variance = relevance.moments(gains)
        draws = mean if relevance.has_posterior else mean[None]
        n_systems, n_queries = len(runs.systems), len(runs.queries)
        by_query = (list_weights(runs, weights) @ draws.T).reshape(n_systems, n_queries, len(draws))
        matrix = weight_matrix(runs, weights)
        by_pair = query_weights[runs.pool.query]
        given, crossed = (np.asarray((matrix * (variance * by_pair**power)) @ matrix.T.toarray()) for power in (2, 3))
        query_mean = by_query.mean(axis=2)
        query_variance = (list_weights(runs, weights**2) @ variance).reshape(n_systems, n_queries)
        off = by_query - query_mean[..., None]
        across = np.zeros_like(given)
        if len(draws) > 1:
            flat = (off * query_weights[:, None]).reshape(n_systems, -1)
            across = flat @ flat.T / (len(draws) - 1)
            query_variance = query_variance + (off**2).sum(axis=2) / (len(draws) - 1)
        weighted = by_query * query_weights[:, None]
        squared = weighted * query_weights[:, None]
        total, squared = weighted.sum(axis=1).T, squared.sum(axis=1).T
        return cls(total, squared, given, crossed, across, query_mean, query_variance)

    @classmethod
    def added(cls, parts: Iterable[BlockMoments]) -> BlockMoments:
        """Return the contribution of several blocks, in the order of their queries."""
        columns = list(zip(*parts, strict=True))
        total, squared, given, crossed, across = (reduce(np.add, column) for column in columns[:5])
        query_mean, query_variance = (np.concatenate(column, axis=1) for column in columns[5:])
        return cls(total, squared, given, crossed, across, query_mean, query_variance)


def list_weights(runs: Runs, weights: Floats) -> csr_array:
    """Return the weight of each pair's gain in each list, shape (system and query, pair)."""
    system, query, rank = np.nonzero(runs.retrieved)
    shape = (len(runs.systems) * len(runs.queries), len(runs.pool))
    return csr_array(
        (weights[rank], (system * len(runs.queries) + query, runs.pairs[system, query, rank])), shape=shape
    )


def moments(
    runs: Runs, relevance: RelevanceDistribution, metric: Metric, *, query_weights: Floats | None = None
) -> Joint:
    r"""Return the exact moments of a linear measure, by blocks of queries.

    Given the model's parameters :math:`\theta` pairs are independent, so

    .. math:: \text{Cov} = E_\theta[W \text{diag}(v_\theta) W'] + \text{Cov}_\theta(W m_\theta),

    the second term being 0 for a model without a posterior. The mean of ``query_weights``
    must be 1; they are equal by default.
    """
    query_weights = np.ones(len(runs.queries)) if query_weights is None else query_weights
    return joint_of_moments(sum_moments(runs, relevance, metric, query_weights=query_weights), query_weights)


def sum_moments(runs: Runs, relevance: RelevanceDistribution, metric: Metric, *, query_weights: Floats) -> BlockMoments:
    """Return the sums over some queries of the moments of their scores, computed by blocks."""
    weights, gains = metric.weights(relevance.scale, runs.depth), metric.gains(relevance.scale)
    # A block's scores, by draw, system and query, need less memory than its probabilities unless systems are many.
    per_pair = max(len(relevance.levels), -(-len(runs.systems) * len(runs.queries) // max(len(runs.pool), 1)))
    parts = in_order(
        lambda b: BlockMoments.of(runs.part(b), relevance.part(b), gains, weights, query_weights[b.queries]),
        relevance.blocks(relevance.n_draws * per_pair),
    )
    return BlockMoments.added(parts)


def joint_of_moments(sums: BlockMoments, query_weights: Floats) -> Joint:
    """Return the joint distribution from the sums over all queries."""
    n = len(query_weights)
    draws, squared = sums.total / n, sums.squared / n
    weighted = sums.query_mean * query_weights
    mean, by_square = weighted.mean(axis=1), (weighted * query_weights).mean(axis=1)
    covariance, crossed = sums.given / n**2, sums.crossed / n**2
    if len(draws) > 1:
        off = draws - mean
        covariance = covariance + off.T @ off / (len(draws) - 1)
        crossed = crossed + (squared - by_square).T @ off / (len(draws) - 1)
    squares = weighted @ weighted.T + sums.given + sums.across
    cross, square = np.outer(by_square, mean) + crossed, np.outer(mean, mean) + covariance
    return Joint(
        mean=mean,
        covariance=covariance,
        between=expected_between(squares, cross, square, query_weights),
        query_mean=sums.query_mean,
        query_variance=sums.query_variance,
    )


def taylor(runs: Runs, relevance: RelevanceDistribution, metric: Metric) -> Joint:
    r"""Return moments by Urbano (2013, Eqs 8.5-8.8) for nDCG and ideal RBP, for comparison: biased upwards.

    See docs/theory/scores.md#taylor.

    :math:`E[X/Y] \approx E[X]/E[Y]` with the ideal list sorted by expected gain, and numerator and denominator taken as
    independent:
    :math:`\text{Cov}(X_a/Y, X_b/Y) \approx \text{Cov}(X_a, X_b)/E[Y]^2 + E[X_a]E[X_b]\text{Var}[Y]/E[Y]^4`.
    """
    weights = metric.rank_weights(max(runs.depth, 1))
    mean, variance = relevance.moments(metric.gains(relevance.scale))
    if relevance.has_posterior:
        mean, variance = mean.mean(axis=0), variance + mean.var(axis=0)
    top, top_variance = _sorted_ideal(runs, relevance, mean, variance, metric)
    numerator = at_ranks(runs, mean) @ weights
    query_mean = divide(numerator, top)
    scaled = divide(np.ones_like(top), top)
    matrix = weight_matrix(runs, weights)
    weight = variance * (scaled**2)[runs.pool.query]
    relative = query_mean * np.sqrt(top_variance) * scaled
    within = np.asarray((matrix * weight) @ matrix.T.toarray()) + relative @ relative.T
    n = len(runs.queries)
    query_variance = (at_ranks(runs, variance) @ weights**2) * scaled**2 + relative**2
    covariance = within / n**2
    return Joint(
        mean=query_mean.mean(axis=1),
        covariance=covariance,
        between=between_queries(query_mean, within, covariance),
        query_mean=query_mean,
        query_variance=query_variance,
    )


def _sorted_ideal(
    runs: Runs, relevance: RelevanceDistribution, mean: Floats, variance: Floats, metric: Metric
) -> tuple[Floats, Floats]:
    """Return mean and variance of the weighted gains of each query's list sorted by expected gain, shape (query,)."""
    n = len(runs.queries)
    # Judged pairs that no system retrieved are part of the ideal list too: their number of each grade.
    exactly = relevance.beyond - np.append(relevance.beyond[:, 1:], np.zeros((n, 1), dtype=np.int64), axis=1)
    more, grade = np.repeat(np.argwhere(exactly), exactly[exactly > 0], axis=0).T
    query = np.concatenate([runs.pool.query, more])
    mean = np.concatenate([mean, metric.gains(relevance.scale)[grade]])
    variance = np.concatenate([variance, np.zeros(len(more))])
    order = np.lexsort((-mean, query))
    query, mean, variance = query[order], mean[order], variance[order]
    sizes = np.bincount(query, minlength=n)
    rank = np.arange(len(query)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    weight = metric.rank_weights(max(int(sizes.max(initial=0)), 1))[rank]
    first = np.bincount(query, weight * mean, minlength=n)
    second = np.bincount(query, weight**2 * variance, minlength=n)
    return first.astype(float), second.astype(float)
