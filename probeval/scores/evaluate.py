"""Evaluate runs under a distribution of relevance."""

from __future__ import annotations

import numpy as np

from probeval.arrays import Floats
from probeval.data.runs import Runs
from probeval.errors import MetricError, ScoreError, did_you_mean
from probeval.metrics import AnyMetric, Metric, metric_of
from probeval.metrics.aggregates import check_aggregate
from probeval.relevance.distribution import RelevanceDistribution
from probeval.scores.draws import draw_scores
from probeval.scores.exact import exact
from probeval.scores.ideal import Ideal, retrieved_pairs
from probeval.scores.moments import moments, taylor
from probeval.scores.ppi import check_linear, prediction_powered
from probeval.scores.scores import Joint, Scores, usual_family, with_aggregate

__all__ = ["METHODS", "as_metric", "check_method", "cut_lists", "evaluate"]

METHODS = {
    "moments": "exact means and covariances of a linear measure (the default for these)",
    "draws": "joint draws of relevance, every system on the same draw (the default for all others)",
    "exact": "closed forms (RR, ERR, AP) or enumeration of small pools; closed forms give marginals only",
    "taylor": "the first-order route of Urbano's thesis for nDCG and ideal RBP, for comparison",
    "ppi": "predictions of all pairs corrected by the judged ones, a random sample (PPI++), for linear measures",
}
WEIGHTED = ("moments", "draws")  # the methods that take weights of queries


def evaluate(
    runs: Runs,
    relevance: RelevanceDistribution,
    metric: AnyMetric,
    *,
    method: str | None = None,
    target: str = "collection",
    family: str | None = None,
    n: int = 1000,
    rng: np.random.Generator | None = None,
    per_query: bool = False,
    query_weights: Floats | None = None,
    aggregate: str = "mean",
) -> Scores:
    """Return the joint distribution of all systems' mean scores.

    Parameters
    ----------
    runs
        The lists.
    relevance
        P(grade) for every retrieved pair; pairs of other systems only count in the ideal list.
    metric
        The measure or its name.
    method
        One of :data:`METHODS`; moments for a linear measure, else draws.
    target
        ``"collection"``: these queries. ``"population"``: the queries are a sample, which adds uncertainty.
    family
        ``"normal"``, ``"t"`` or ``"empirical"``; empirical for draws on these queries, else normal.
    n, rng
        The number of draws, and the generator (seed 0 by default).
    per_query
        Keep the draws of every system on every query, for reliability studies (one draw if all pairs are judged).
    query_weights
        The weight of each query in the mean over queries, shape (query,), such as its share of the traffic; equal
        weights by default. Only their ratios count, and a query of weight 0 plays no part. For the methods moments and
        draws. See docs/theory/scores.md#weights.
    aggregate
        The mean over queries, arithmetic or geometric: one of :data:`~probeval.metrics.AGGREGATES`. Geometric means are
        computed by draws.

    Examples
    --------
    >>> from probeval.relevance import synthetic_campaign
    >>> from probeval.relevance import FallbackModel, Uniform
    >>> campaign = synthetic_campaign(seed=1, systems=4, queries=3, depth=5)
    >>> scores = evaluate(campaign.runs, FallbackModel([Uniform()]).predict(campaign.problem(depth=5)), "nDCG@5")
    >>> scores.ranking().confidence  # every pair is judged
    1.0
    """
    metric = as_metric(metric)
    if runs.pool is not relevance.pool and runs.pool != relevance.pool:
        runs = runs.on(relevance.pool)
    mine, ideal = retrieved_pairs(runs), Ideal.of(runs, relevance, metric)
    if metric.cutoff is not None and metric.cutoff < runs.depth:
        runs = cut_lists(runs, metric.cutoff)
    check_aggregate(aggregate)
    by_draws = aggregate != "mean" or not metric.is_linear
    method = ("draws" if by_draws else "moments") if method is None else method
    if aggregate != "mean" and method != "draws":
        raise ScoreError(f"Geometric means over queries are drawn: method='draws', not {method!r}.")
    if per_query and method != "draws":
        raise ScoreError(f"Draws by query are kept where draws are made: method='draws', not {method!r}.")
    if query_weights is not None and method not in WEIGHTED:
        raise ScoreError(f"Queries have weights with the methods {' and '.join(WEIGHTED)}, not with {method}.")
    if method != "draws" and ideal is not None and relevance.outside is not None:
        raise ScoreError(f"Documents outside the pool are drawn: method='draws', not {method!r}.")
    weights = _of_mean_one(query_weights, len(runs.queries))
    rng = np.random.default_rng(0) if rng is None else rng
    joint = _joint(runs, relevance, metric, method, n, rng, weights, per_query=per_query or aggregate != "mean")
    if aggregate != "mean":
        joint = with_aggregate(joint, aggregate, weights, keep=per_query)
    return Scores(
        metric=metric,
        systems=runs.systems,
        queries=runs.queries,
        joint=joint,
        method=method,
        target=target,
        family=usual_family(joint, target) if family is None else family,
        pool=int(mine.sum()),
        judged=int(relevance.certain[mine].sum()),
        independent=relevance.independent and method != "ppi",
        query_weights=None if query_weights is None else weights,
        ideal=ideal,
        aggregate=aggregate,
    )


def _of_mean_one(weights: Floats | None, n: int) -> Floats:
    """Return the weights of queries, scaled to a mean of 1."""
    if weights is None:
        return np.ones(n)
    if weights.shape != (n,) or not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ScoreError(f"{n} queries need as many weights from 0, not all of them 0; got {weights}.")
    return np.asarray(weights * (n / weights.sum()))


def as_metric(metric: AnyMetric) -> Metric:
    """Return the measure in any accepted form; it must have the cutoff and the parameters that it needs."""
    return metric_of(metric).checked()


def check_method(metric: Metric, method: str) -> None:
    """Raise an error unless this is a method of scores, for such a measure."""
    if method not in METHODS:
        raise ScoreError(f"No method {method!r}: {', '.join(METHODS)}.{did_you_mean(method, METHODS)}")
    if method == "taylor" and (metric.is_linear or metric.definition.rank_weights is None):
        raise ScoreError(f"The Taylor route is for ratios of weighted gains such as nDCG@10, not for {metric}.")
    if method == "moments" and not metric.is_linear:
        raise MetricError(f"{metric} is not a weighted sum of gains. Use method='draws'.")
    if method == "ppi":
        check_linear(metric)


def _joint(
    runs: Runs,
    relevance: RelevanceDistribution,
    metric: Metric,
    method: str,
    n: int,
    rng: np.random.Generator,
    weights: Floats,
    *,
    per_query: bool,
) -> Joint:
    check_method(metric, method)
    if method == "draws":
        if n < 2:
            raise ScoreError(f"At least two draws are needed, got {n}.")
        return draw_scores(runs, relevance, metric, n, rng, query_weights=weights, per_query=per_query)
    if method == "moments":
        return moments(runs, relevance, metric, query_weights=weights)
    if method == "exact":
        return exact(runs, relevance, metric)
    if method == "taylor":
        return taylor(runs, relevance, metric)
    return prediction_powered(runs, relevance, metric)


def cut_lists(runs: Runs, depth: int) -> Runs:
    """Return the first ranks on the same pool: deeper pairs still count in the ideal list."""
    return Runs(runs.systems, runs.pool, runs.pairs[:, :, :depth], runs.scores[:, :, :depth], runs.teams)
