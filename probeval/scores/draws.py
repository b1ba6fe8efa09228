"""Joint draws: sample relevance, evaluate every system on the same draw, keep what is needed. For every measure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from probeval.arrays import Codes, Floats
from probeval.data.runs import Runs
from probeval.data.scale import count_at_least
from probeval.metrics import Lists, Metric
from probeval.metrics.lists import gather
from probeval.relevance.distribution import RelevanceDistribution
from probeval.scores.joint import Joint

__all__ = ["draw_scores", "drawn_lists", "score_draws"]

BATCH = 4_000_000  # grades at ranks held at once: bounds memory whatever the size


def drawn_lists(runs: Runs, relevance: RelevanceDistribution, codes: Codes) -> Lists:
    """The runs' lists under drawn grades of all pairs, shape (draw, pair)."""
    n_queries, n_grades = len(runs.queries), len(relevance.scale)
    offered = count_at_least(codes, runs.pool.query, n_queries, n_grades) + relevance.beyond
    return Lists(relevance.scale, gather(codes, runs.pairs), offered)


def score_draws(
    runs: Runs, relevance: RelevanceDistribution, metric: Metric, n: int, rng: np.random.Generator
) -> Iterator[Floats]:
    """Joint draws of the score of every system on every query, in batches of shape (draw, system, query)."""
    size = max(1, min(n, BATCH // max(runs.pairs.size, len(runs.pool), 1)))
    for start in range(0, n, size):
        codes = relevance.sample(min(size, n - start), rng, start=start)
        yield metric.scores(drawn_lists(runs, relevance, codes))


def draw_scores(
    runs: Runs,
    relevance: RelevanceDistribution,
    metric: Metric,
    n: int,
    rng: np.random.Generator,
    *,
    per_query: bool = False,
) -> Joint:
    """The joint distribution by ``n`` draws, common to all systems; where all is judged, one draw says it all.

    With ``per_query`` the draws of every system on every query are kept too.
    """
    if n > 1 and relevance.certain.all():
        one = draw_scores(runs, relevance, metric, 1, rng, per_query=per_query)
        assert one.draws is not None
        return replace(one, draws=np.tile(one.draws, (n, 1)))
    n_systems, n_queries = len(runs.systems), len(runs.queries)
    first, second = np.zeros((n_systems, n_queries)), np.zeros((n_systems, n_queries))
    between = np.zeros((n_systems, n_systems))
    means, kept = [], []
    # Around the first draw, so that squares of what never varies cancel exactly.
    origin: Floats | None = None
    for batch in score_draws(runs, relevance, metric, n, rng):
        origin = batch[0] if origin is None else origin
        off = batch - origin
        first += off.sum(axis=0)
        second += (off**2).sum(axis=0)
        mean = batch.mean(axis=2)
        means.append(mean)
        if per_query:
            kept.append(batch)
        centred = (batch - mean[..., None]).transpose(1, 0, 2).reshape(n_systems, -1)
        between += centred @ centred.T
    draws = np.concatenate(means)
    assert origin is not None
    centre = draws[0] + (draws - draws[0]).mean(axis=0)
    off = draws - centre
    spare = max(n_queries * (n_queries - 1), 1)
    return Joint(
        mean=centre,
        covariance=off.T @ off / max(n - 1, 1),
        between=between / n / spare if n_queries > 1 else np.full((n_systems, n_systems), np.nan),
        query_mean=origin + first / n,
        query_variance=np.maximum(second - first**2 / n, 0.0) / max(n - 1, 1),
        draws=draws,
        query_draws=np.concatenate(kept) if per_query else None,
    )
