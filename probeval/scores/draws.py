"""Scores of any measure by joint draws: sample relevance, and evaluate every system on the same draw."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from probeval.arrays import Codes, Floats, Ints
from probeval.data.pool import QueryBlock
from probeval.data.runs import Runs
from probeval.data.scale import count_at_least
from probeval.metrics import Lists, Metric
from probeval.metrics.lists import gather
from probeval.metrics.ratio import ideal
from probeval.metrics.weights import divide
from probeval.relevance.distribution import RelevanceDistribution
from probeval.relevance.outside import OutsideStreams, outside_streams
from probeval.scores.moments import weight_matrix
from probeval.scores.scores import Joint, expected_between
from probeval.streams import query_streams
from probeval.threads import in_order

__all__ = [
    "BATCH",
    "BlockScores",
    "DrawnQuery",
    "draw_scores",
    "drawn_lists",
    "drawn_queries",
    "joint_of_draws",
    "score_blocks",
    "sum_draws",
    "sums_of_gains",
]

BATCH = 4_000_000  # most grades at ranks in memory at once


def drawn_lists(
    runs: Runs,
    relevance: RelevanceDistribution,
    codes: Codes,
    streams: OutsideStreams = (),
    *,
    start: int = 0,
) -> Lists:
    """Return the runs' lists under drawn grades of all pairs, shape (draw, pair), after ``start`` draws.

    ``streams`` are for documents outside the pool, if they are estimated.
    """
    counts = relevance.relevant_counts(codes, streams, start=start)
    return Lists(relevance.scale, gather(codes, runs.pairs), counts)


class DrawnQuery(NamedTuple):
    """Draws of one query: gains of its pairs, up to a constant, and scores of the lists, (draw, pair or system)."""

    gains: Floats
    scores: Floats


def sums_of_gains(
    runs: Runs,
    relevance: RelevanceDistribution,
    metric: Metric,
    streams: Sequence[np.random.Generator],
    n: int,
    outside: OutsideStreams = (),
    *,
    start: int = 0,
) -> list[DrawnQuery]:
    r"""Return draws of a weighted sum of gains, query by query, without the grades at every rank.

    With :math:`X_\ell` whether a pair reaches level :math:`\ell`, its gain over that of the lowest is
    :math:`\sum_\ell (g_\ell - g_{\ell-1}) X_\ell`, and the sums are a product with weights of pairs in lists.
    Judged pairs add a constant, so that the scores of a judged query are exactly constant; their gains are drawn as if
    they were not judged.
    """
    scale, open_ = relevance.scale, ~relevance.certain
    gains = metric.gains(scale)
    value, step = gains[relevance.levels], np.diff(gains[relevance.levels])
    at_rank = metric.weights(scale, runs.depth) if metric.is_linear else metric.rank_weights(runs.depth)
    weights = weight_matrix(runs, at_rank).T.toarray()
    constant = weights * np.where(open_, value[0], gains[relevance.judged])[:, None]
    weights *= open_[:, None]
    judged = count_at_least(relevance.judged, relevance.pool.query, len(relevance.pool.queries), len(scale))
    first = np.searchsorted(relevance.levels, np.arange(len(scale)))  # the lowest level with at least each grade
    inside, drawn_gains, sums = np.empty((n, *judged.shape), dtype=np.int64), [], []
    for query, reached in enumerate(relevance.reached_by_query(streams, n, start=start)):
        mine = relevance.pool.pairs_of(query)
        counts, gain = np.zeros((n, len(value) + 1)), np.zeros((n, mine.stop - mine.start))
        counts[:, 0] = np.count_nonzero(open_[mine])
        for level, mask in enumerate(reached, start=1):
            drawn = mask.astype(float)
            counts[:, level] = drawn @ open_[mine].astype(float)
            gain += np.multiply(drawn, step[level - 1], out=drawn)
        inside[:, query] = judged[query] + counts[:, first].astype(np.int64)
        drawn_gains.append(gain)
        sums.append(gain @ weights[mine] + constant[mine].sum(axis=0))
    if metric.is_linear:
        return list(map(DrawnQuery, drawn_gains, sums))
    best = ideal(metric, gains, relevance.with_unretrieved(inside, outside, start=start))
    return list(map(DrawnQuery, drawn_gains, (divide(y, b[:, None]) for y, b in zip(sums, best.T, strict=True))))


def drawn_queries(
    runs: Runs,
    relevance: RelevanceDistribution,
    metric: Metric,
    gains: Floats,
    streams: Sequence[np.random.Generator],
    n: int,
    outside: OutsideStreams = (),
    *,
    start: int = 0,
) -> list[DrawnQuery]:
    """Return draws query by query; ``gains`` of each grade are for a measure that is not a sum of its own."""
    if metric.definition.rank_weights is not None:
        return sums_of_gains(runs, relevance, metric, streams, n, outside, start=start)
    codes = relevance.sample_from(streams, n, start=start)
    size = max(1, BATCH // max(runs.pairs.size, 1))
    parts = [
        metric.scores(drawn_lists(runs, relevance, codes[at : at + size], outside, start=start + at))
        for at in range(0, n, size)
    ]
    scores = np.moveaxis(np.concatenate(parts), -1, 0)
    return [DrawnQuery(gains[codes[:, relevance.pool.pairs_of(query)]], y) for query, y in enumerate(scores)]


def score_blocks(runs: Runs, relevance: RelevanceDistribution, n: int) -> list[QueryBlock]:
    """Return blocks of queries within the memory limit for ``n`` draws of grades at all ranks."""
    ranks = -(-runs.pairs.size // max(len(runs.pool), 1))  # per pair; their codes take a quarter of a float
    return relevance.blocks(max(n * ranks // 2, relevance.n_draws * len(relevance.levels)))


@dataclass(frozen=True, eq=False)
class BlockScores:
    """The contribution of one block of queries: sums over its queries, and moments of each.

    Parameters
    ----------
    total, squared
        The sums of each system's scores over the queries under each draw, by the weights of the queries and by their
        squares, shapes (draw, system).
    products
        The sum over draws and queries of the products of two systems' weighted scores, shape (system, system).
    mean, variance
        The moments of each system's score on each query, shape (system, query).
    draws
        The scores themselves, shape (draw, system, query), if they are kept.
    """

    total: Floats
    squared: Floats
    products: Floats
    mean: Floats
    variance: Floats
    draws: Floats | None

    @classmethod
    def of(
        cls,
        runs: Runs,
        relevance: RelevanceDistribution,
        metric: Metric,
        n: int,
        streams: Sequence[np.random.Generator],
        query_weights: Floats,
        *,
        keep: bool,
    ) -> BlockScores:
        """Draw and score the lists of one block, with one random stream and one weight per query."""
        n_systems, n_queries = len(runs.systems), len(runs.queries)
        total, squared = np.zeros((2, n, n_systems))
        products, (first, second) = np.zeros((n_systems, n_systems)), np.zeros((2, n_queries, n_systems))
        origin = np.empty((n_queries, n_systems))
        draws = np.empty((n, n_systems, n_queries)) if keep else None
        # A query with many pairs, or many draws, is processed in several batches.
        size = max(1, min(n, BATCH // max(runs.pairs.size, len(runs.pool), 1)))
        outside, gains = () if relevance.outside is None else outside_streams(streams), relevance.scale.gains
        for start in range(0, n, size):
            now = slice(start, min(start + size, n))
            found = drawn_queries(runs, relevance, metric, gains, streams, now.stop - start, outside, start=start)
            for query, (drawn, weight) in enumerate(zip(found, query_weights.tolist(), strict=True)):
                if start == 0:
                    origin[query] = drawn.scores[0]
                off = drawn.scores - origin[query]  # around the first draw: squares of constant scores cancel exactly
                first[query] += off.sum(axis=0)
                second[query] += np.einsum("ds,ds->s", off, off)
                weighted = weight * drawn.scores
                total[now] += weighted
                products += weighted.T @ weighted
                squared[now] += np.multiply(weighted, weight, out=weighted)
                if draws is not None:
                    draws[now, :, query] = drawn.scores
        variance = np.maximum(second - first**2 / n, 0.0) / max(n - 1, 1)
        return cls(total, squared, products, (origin + first / n).T, variance.T, draws)

    @classmethod
    def added(cls, parts: Iterable[BlockScores]) -> BlockScores:
        """Return the contribution of several blocks, in the order of their queries."""
        first, *others = parts
        total, squared, products = first.total.copy(), first.squared.copy(), first.products.copy()
        for part in others:
            total += part.total
            squared += part.squared
            products += part.products
        every = [first, *others]
        kept = [part.draws for part in every if part.draws is not None]
        return cls(
            total,
            squared,
            products,
            np.concatenate([part.mean for part in every], axis=1),
            np.concatenate([part.variance for part in every], axis=1),
            np.concatenate(kept, axis=2) if kept else None,
        )


def draw_scores(
    runs: Runs,
    relevance: RelevanceDistribution,
    metric: Metric,
    n: int,
    rng: np.random.Generator,
    *,
    query_weights: Floats,
    per_query: bool = False,
) -> Joint:
    """Return the joint distribution by ``n`` draws, common to all systems; one draw if all pairs are judged.

    Draws are made, scored and discarded by blocks of queries. The mean of ``query_weights`` must be 1. With
    ``per_query`` the draws of every system on every query are kept.
    """
    if n > 1 and relevance.certain.all() and relevance.outside is None:
        one = draw_scores(runs, relevance, metric, 1, rng, query_weights=query_weights, per_query=per_query)
        assert one.draws is not None
        return replace(one, draws=np.tile(one.draws, (n, 1)))
    seed, every = int(rng.integers(2**63)), np.arange(len(runs.queries))
    sums = sum_draws(runs, relevance, metric, n, seed, every, query_weights=query_weights, per_query=per_query)
    return joint_of_draws(sums, query_weights)


def sum_draws(
    runs: Runs,
    relevance: RelevanceDistribution,
    metric: Metric,
    n: int,
    seed: int,
    positions: Ints,
    *,
    query_weights: Floats,
    per_query: bool = False,
) -> BlockScores:
    """Return the sums over some queries of scores under ``n`` draws, computed by blocks.

    ``positions`` are those of the queries in the campaign, by which each has its random stream, shape (query,).
    """

    def score(block: QueryBlock) -> BlockScores:
        streams = query_streams(seed, positions[block.queries])
        mine = query_weights[block.queries]
        return BlockScores.of(runs.part(block), relevance.part(block), metric, n, streams, mine, keep=per_query)

    return BlockScores.added(in_order(score, score_blocks(runs, relevance, n)))


def joint_of_draws(sums: BlockScores, query_weights: Floats) -> Joint:
    """Return the joint distribution from the sums over all queries."""
    n, n_queries = len(sums.total), len(query_weights)
    draws, squared = sums.total / n_queries, sums.squared / n_queries
    centre = draws[0] + (draws - draws[0]).mean(axis=0)
    off = draws - centre
    return Joint(
        mean=centre,
        covariance=off.T @ off / max(n - 1, 1),
        between=expected_between(sums.products / n, squared.T @ draws / n, draws.T @ draws / n, query_weights),
        query_mean=sums.mean,
        query_variance=sums.variance,
        draws=draws,
        query_draws=sums.draws,
    )
