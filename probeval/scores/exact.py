"""Exact means and variances: RR, ERR and AP by recursion, any measure of a small pool by enumeration.

Given the model's parameters pairs are independent. The recursions are marginal, one list at a time, so covariances
between systems are not known; enumeration knows them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from probeval.arrays import Floats
from probeval.data.runs import Runs
from probeval.errors import MetricError
from probeval.metrics import Metric
from probeval.metrics.cascade import stopping
from probeval.metrics.recall import ap_denominator
from probeval.relevance.distribution import RelevanceDistribution
from probeval.scores.draws import drawn_lists
from probeval.scores.joint import Joint, between_queries
from probeval.scores.moments import at_ranks, moments

__all__ = ["enumerate_scores", "exact", "poisson_binomial"]

LIMIT = 20_000  # combinations of grades of one query's open pairs that are listed one by one


def exact(runs: Runs, relevance: RelevanceDistribution, metric: Metric) -> Joint:
    """Exact moments: by enumeration where every query's pool is small, else in closed form where there is one."""
    if metric.is_linear:
        return moments(runs, relevance, metric)
    if not relevance.has_posterior and _combinations(relevance).max(initial=0) <= LIMIT:
        return enumerate_scores(runs, relevance, metric)
    form = CLOSED.get(metric.name)
    if form is None:
        raise MetricError(f"{metric} has no exact form on a pool of this size. Use method='draws'.")
    if not relevance.has_posterior:
        first, second = form(runs, relevance, relevance.probability, metric)
    else:
        parts = [form(runs, relevance, probability, metric) for probability in relevance.probability]
        first, second = (np.mean([p[i] for p in parts], axis=0) for i in (0, 1))
    variance = np.maximum(second - first**2, 0.0)
    n = len(runs.queries)
    unknown = np.full((len(runs.systems),) * 2, np.nan)
    covariance = unknown.copy()
    if not relevance.has_posterior:  # queries are independent
        np.fill_diagonal(covariance, variance.sum(axis=1) / n**2)
    return Joint(first.mean(axis=1), covariance, unknown, first, variance)


def poisson_binomial(p: Floats) -> Floats:
    """The distribution of the number of successes in independent trials, shape (.., trial + 1) from (.., trial).

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
    """Every combination of grades of each query's open pairs, with its probability: exact joint moments."""
    n_systems, n_queries = len(runs.systems), len(runs.queries)
    mean, within = np.zeros((n_systems, n_queries)), np.zeros((n_systems, n_systems))
    variance = np.zeros((n_systems, n_queries))
    pool, levels = runs.pool, relevance.levels
    base = np.where(relevance.certain, relevance.judged, levels[0]).astype(np.int16)
    for query in range(n_queries):
        open_pairs = np.flatnonzero((pool.query == query) & ~relevance.certain)
        choice = np.array(list(product(range(len(levels)), repeat=len(open_pairs))), dtype=np.int64)
        choice = choice.reshape(-1, len(open_pairs))
        weight = np.prod(relevance.probability[open_pairs, choice], axis=1)
        codes = np.broadcast_to(base, (len(choice), len(base))).copy()
        codes[:, open_pairs] = levels[choice]
        score = metric.scores(drawn_lists(runs, relevance, codes))[:, :, query]
        mean[:, query] = weight @ score
        off = score - mean[:, query]
        spread = (off * weight[:, None]).T @ off
        within += spread
        variance[:, query] = np.diag(spread)
    covariance = within / n_queries**2
    return Joint(mean.mean(axis=1), covariance, between_queries(mean, within, covariance), mean, variance)


def _combinations(relevance: RelevanceDistribution) -> Floats:
    open_pairs = np.bincount(relevance.pool.query, ~relevance.certain, minlength=len(relevance.pool.queries))
    return np.asarray(float(len(relevance.levels)) ** open_pairs)


def _expected(relevance: RelevanceDistribution, probability: Floats, per_grade: Floats) -> Floats:
    """The expectation of a function of the grade of each pair, given one draw of the parameters, shape (pair,)."""
    known = np.append(per_grade, 0.0)[relevance.judged]
    return np.where(relevance.certain, known, probability @ per_grade[relevance.levels])


def _p_relevant(relevance: RelevanceDistribution, probability: Floats, metric: Metric) -> Floats:
    return _expected(relevance, probability, (relevance.scale.values >= metric.number("rel")).astype(float))


def _rr(runs: Runs, relevance: RelevanceDistribution, probability: Floats, metric: Metric) -> tuple[Floats, Floats]:
    """E and E of the square of RR: the first relevant document is at rank i with probability p_i prod (1 - p_j)."""
    p = at_ranks(runs, _p_relevant(relevance, probability, metric))[..., : metric.cutoff]
    none_before = np.concatenate([np.ones_like(p[..., :1]), np.cumprod(1 - p, axis=-1)[..., :-1]], axis=-1)
    rank = np.arange(1.0, p.shape[-1] + 1)
    at = p * none_before
    return (at / rank).sum(axis=-1), (at / rank**2).sum(axis=-1)


def _err(runs: Runs, relevance: RelevanceDistribution, probability: Floats, metric: Metric) -> tuple[Floats, Floats]:
    """E and E of the square of ERR, backwards: T_i = R_i/i + (1 - R_i) T_{i+1} with independent R."""
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
    r"""E and E of the square of AP.

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
