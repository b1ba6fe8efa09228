"""Exact means and variances: RR, ERR and AP by recursion, any measure of a small pool by enumeration.

Given the model's parameters pairs are independent. The recursions are marginal, one list at a time, so they give no
covariances between systems; enumeration does.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from probeval.arrays import Floats
from probeval.data.runs import Runs
from probeval.data.scale import count_at_least
from probeval.errors import MetricError
from probeval.metrics import Lists, Metric
from probeval.metrics.cascade import stopping
from probeval.metrics.lists import gather
from probeval.metrics.recall import ap_denominator
from probeval.relevance.distribution import RelevanceDistribution
from probeval.scores.draws import BATCH
from probeval.scores.moments import at_ranks, moments
from probeval.scores.scores import Joint, between_queries

__all__ = ["enumerate_scores", "exact", "poisson_binomial"]

LIMIT = 20_000  # most combinations of grades of one query's open pairs to enumerate


def exact(runs: Runs, relevance: RelevanceDistribution, metric: Metric) -> Joint:
    """Return exact moments: by enumeration if every query's pool is small, else in closed form if there is one."""
    if metric.is_linear:
        return moments(runs, relevance, metric)
    if not relevance.has_posterior and _most_open(relevance) * np.log(len(relevance.levels)) <= np.log(LIMIT):
        return enumerate_scores(runs, relevance, metric)
    recursion = CLOSED.get(metric.name)
    if recursion is None:
        raise MetricError(f"{metric} has no exact form on a pool of this size. Use method='draws'.")
    given = relevance.probability if relevance.has_posterior else relevance.probability[None]
    parts = [recursion(runs, relevance, probability, metric) for probability in given]
    by_query, squares = (np.stack([part[i] for part in parts]) for i in (0, 1))
    first, n = by_query.mean(axis=0), len(runs.queries)
    inside = np.maximum(squares - by_query**2, 0.0).mean(axis=0)  # given the parameters, queries are independent
    variance, own = inside, inside.sum(axis=1) / n**2
    if len(parts) > 1:
        variance = inside + by_query.var(axis=0, ddof=1)
        own = own + by_query.mean(axis=2).var(axis=0, ddof=1)
    mean = first.mean(axis=1)
    covariance, between = np.full((2, len(mean), len(mean)), np.nan)
    np.fill_diagonal(covariance, own)
    if n > 1:
        np.fill_diagonal(between, ((first**2 + variance).sum(axis=1) - n * (mean**2 + own)) / (n * (n - 1)))
    return Joint(mean, covariance, between, first, variance)


def poisson_binomial(p: Floats) -> Floats:
    """Return the distribution of the number of successes in independent trials, shape (.., n + 1) from (.., n).

    >>> poisson_binomial(np.array([0.5, 0.5]))
    array([0.25, 0.5 , 0.25])
    """
    out = np.zeros((*p.shape[:-1], p.shape[-1] + 1))
    out[..., 0] = 1.0
    for i in range(p.shape[-1]):
        success = p[..., i, None]
        out[..., 1:] = out[..., 1:] * (1 - success) + out[..., :-1] * success
        out[..., 0] *= 1 - p[..., i]
    return out


def enumerate_scores(runs: Runs, relevance: RelevanceDistribution, metric: Metric) -> Joint:
    """Return exact joint moments, by enumerating all combinations of grades of each query's open pairs."""
    n_systems, n_queries = len(runs.systems), len(runs.queries)
    mean, within = np.zeros((n_systems, n_queries)), np.zeros((n_systems, n_systems))
    variance = np.zeros((n_systems, n_queries))
    for query in range(n_queries):
        weight, score = _worlds(runs, relevance, metric, query)
        mean[:, query] = score[0] + weight @ (score - score[0])  # around one of them, so that certain scores stay exact
        off = score - mean[:, query]
        spread = (off * weight[:, None]).T @ off
        within += spread
        variance[:, query] = np.diag(spread)
    covariance = within / n_queries**2
    return Joint(mean.mean(axis=1), covariance, between_queries(mean, within, covariance), mean, variance)


def _worlds(runs: Runs, relevance: RelevanceDistribution, metric: Metric, query: int) -> tuple[Floats, Floats]:
    """Return P of each combination of one query's open grades, and its scores, shapes (world,) and (world, system)."""
    mine = np.flatnonzero(runs.pool.query == query)
    judged, levels = relevance.judged[mine], relevance.levels
    open_ = np.flatnonzero(judged < 0)
    n = len(levels) ** len(open_)
    digits = len(levels) ** np.arange(len(open_))
    pairs = runs.pairs[:, query : query + 1]
    local = np.where(pairs < 0, -1, np.searchsorted(mine, pairs))
    weights, scores = [], []
    size = max(1, BATCH // max(local.size, len(mine), 1))
    for start in range(0, n, size):
        choice = np.arange(start, min(start + size, n))[:, None] // digits % len(levels)
        weights.append(np.prod(relevance.probability[mine[open_], choice], axis=1))
        codes = np.tile(judged, (len(choice), 1))
        codes[:, open_] = levels[choice]
        offered = count_at_least(codes, np.zeros(len(mine), dtype=np.int64), 1, len(relevance.scale))
        lists = Lists(relevance.scale, gather(codes, local), offered + relevance.beyond[query : query + 1])
        scores.append(metric.scores(lists)[:, :, 0])
    return np.concatenate(weights), np.concatenate(scores)


def _most_open(relevance: RelevanceDistribution) -> int:
    """Return the largest number of open pairs of any query."""
    counts = np.bincount(relevance.pool.query[~relevance.certain], minlength=1)
    return int(counts.max())


def _expected(relevance: RelevanceDistribution, probability: Floats, per_grade: Floats) -> Floats:
    """Return the expectation of a function of each pair's grade, given one draw of the parameters, shape (pair,)."""
    known = np.append(per_grade, 0.0)[relevance.judged]
    return np.where(relevance.certain, known, probability @ per_grade[relevance.levels])


def _p_relevant(relevance: RelevanceDistribution, probability: Floats, metric: Metric) -> Floats:
    return _expected(relevance, probability, (relevance.scale.values >= metric.number("rel")).astype(float))


def _rr(runs: Runs, relevance: RelevanceDistribution, probability: Floats, metric: Metric) -> tuple[Floats, Floats]:
    """Return the means of RR and its square: P(the first relevant document is at rank i) = p_i prod (1 - p_j)."""
    p = at_ranks(runs, _p_relevant(relevance, probability, metric))[..., : metric.cutoff]
    none_before = np.concatenate([np.ones_like(p[..., :1]), np.cumprod(1 - p, axis=-1)[..., :-1]], axis=-1)
    rank = np.arange(1.0, p.shape[-1] + 1)
    at = p * none_before
    return (at / rank).sum(axis=-1), (at / rank**2).sum(axis=-1)


def _err(runs: Runs, relevance: RelevanceDistribution, probability: Floats, metric: Metric) -> tuple[Floats, Floats]:
    """Return the means of ERR and its square, backwards: T_i = R_i/i + (1 - R_i) T_{i+1} with independent R."""
    stop = stopping(metric, relevance.scale)
    one, two = (at_ranks(runs, _expected(relevance, probability, stop**power)) for power in (1, 2))
    first = second = np.zeros(runs.pairs.shape[:2])
    for i in reversed(range(min(runs.depth, metric.cutoff or runs.depth))):
        r, r2 = one[..., i], two[..., i]
        second = r2 / (i + 1) ** 2 + 2 * (r - r2) / (i + 1) * first + (1 - 2 * r + r2) * second
        first = r / (i + 1) + (1 - r) * first
    if metric["norm"] == "perfect":
        perfect, going = 0.0, 1.0
        for i in range(metric.cutoff or runs.depth):
            perfect, going = perfect + going * stop[-1] / (i + 1), going * (1 - stop[-1])
        first, second = first / perfect, second / perfect**2
    return first, second


def _ap(runs: Runs, relevance: RelevanceDistribution, probability: Floats, metric: Metric) -> tuple[Floats, Floats]:
    r"""Return the means of AP and its square.

    Down the list, the sum of precisions grows by (c + 1)/i at a relevant document with c relevant ones above, so its
    moments are kept by c. The number of relevant documents is c plus those outside the list, which are independent of
    it: :math:`E[AP] = \sum_c \sum_n E[SP; c]\, P(n)/(c+n)`.
    """
    p_pair = _p_relevant(relevance, probability, metric)
    p = at_ranks(runs, p_pair)[..., : metric.cutoff]
    depth = p.shape[-1]
    count = np.arange(depth + 1)
    chance = np.zeros((*p.shape[:2], depth + 1))
    chance[..., 0] = 1.0
    sums = [chance, np.zeros_like(chance), np.zeros_like(chance)]  # P(c), E[SP; c], E[SP^2; c]
    for i in range(depth):
        hit, miss = p[..., i, None], 1 - p[..., i, None]
        step = (count[:-1] + 1) / (i + 1)
        zero, one, two = (s[..., :-1] for s in sums)
        found = [zero, one + step * zero, two + 2 * step * one + step**2 * zero]
        new = []
        for old, gained in zip(sums, found, strict=True):
            fresh = old * miss
            fresh[..., 1:] += gained * hit
            new.append(fresh)
        sums = new
    if metric["norm"] == "perfect":
        k = metric.cutoff or runs.depth
        return sums[1].sum(axis=-1) / k, sums[2].sum(axis=-1) / k**2
    first, second = np.zeros(p.shape[:2]), np.zeros(p.shape[:2])
    level = relevance.scale.at_least(metric.number("rel"))
    known = relevance.beyond[:, level] if level < len(relevance.scale) else np.zeros(len(runs.queries), dtype=np.int64)
    for query in range(len(runs.queries)):
        pairs = np.flatnonzero(runs.pool.query == query)
        inside = (runs.pairs[:, query, : metric.cutoff, None] == pairs).any(axis=1)
        outside = poisson_binomial(np.where(inside, 0.0, p_pair[pairs]))  # (system, number)
        total = count[:, None] + np.arange(outside.shape[1]) + known[query]
        denominator = ap_denominator(metric, total, depth).astype(float)
        for power, out in ((1, first), (2, second)):
            share = np.divide(1.0, denominator**power, out=np.zeros_like(denominator), where=denominator > 0)
            out[:, query] = np.einsum("sc,sn,cn->s", sums[power][:, query], outside, share)
    return first, second


CLOSED: dict[str, Callable[[Runs, RelevanceDistribution, Floats, Metric], tuple[Floats, Floats]]] = {
    "RR": _rr,
    "ERR": _err,
    "AP": _ap,
}
