"""Scores of a campaign in partitions: each partition adds its queries' contributions."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from probeval.errors import ScoreError
from probeval.metrics import Metric
from probeval.metrics.aggregates import check_aggregate
from probeval.parallel import Run
from probeval.partitioned.fit import PartitionedFit, followed
from probeval.partitioned.tasks import PartScores, ScorePlan, added, score, score_part
from probeval.relevance.distribution import RelevanceDistribution
from probeval.reporting import Reporter
from probeval.scores import Scores
from probeval.scores.draws import joint_of_draws
from probeval.scores.evaluate import check_method
from probeval.scores.ideal import Ideal
from probeval.scores.moments import BlockMoments, joint_of_moments
from probeval.scores.scores import usual_family
from probeval.streams import Purpose, stream
from probeval.threads import one_thread

__all__ = ["check_scoring", "kept_relevance", "score_parts"]

METHODS = ("moments", "draws")


def check_scoring(metric: Metric, *, method: str | None, aggregate: str, draws: int) -> str:
    """Return the method of scores; raise an error if it cannot be done in parts."""
    check_aggregate(aggregate)
    if aggregate != "mean":
        raise ScoreError("Geometric means need the draws of every query, which partitions do not keep: use the mean.")
    found = ("moments" if metric.is_linear else "draws") if method is None else method
    check_method(metric, found)
    if found not in METHODS:
        raise ScoreError(f"A campaign in partitions is scored by {' or '.join(METHODS)}, not by {found}.")
    if found == "draws" and draws < 2:
        raise ScoreError(f"At least two draws are needed, got {draws}.")
    return found


def kept_relevance(
    fit: PartitionedFit, metric: Metric, *, method: str, draws: int, seed: int
) -> tuple[RelevanceDistribution, ScorePlan]:
    """Return the relevance of the kept queries, and how all others are scored with the same draws of parameters."""
    surveyed, design = fit.surveyed, fit.design
    n = fit.model.model.number_of_draws(surveyed.pairs)
    with one_thread():
        drawn = fit.posterior.draw(n, stream(seed, Purpose.PREDICTION))
        relevance = RelevanceDistribution.of(design.pool, design.scale, drawn, judgments=fit.problem.grades)
    plan = ScorePlan(
        drawn.of_campaign(),
        fit.campaigns,
        metric,
        method,
        draws,
        int(stream(seed, Purpose.SCORES).integers(2**63)),
        surveyed.kept,
    )
    return relevance, plan


def score_parts(
    fit: PartitionedFit,
    relevance: RelevanceDistribution,
    plan: ScorePlan,
    *,
    target: str,
    family: str | None,
    run: Run[Any],
    reporter: Reporter,
) -> Scores:
    """Return the joint distribution of all systems' mean scores over all queries.

    Parameters
    ----------
    fit, relevance, plan
        The model, and the relevance of the kept queries, which are scored here; the partitions score all others.
    target, family
        As in :func:`probeval.scores.evaluate`.
    run, reporter
        Does work on parts in parallel; receives progress.
    """
    surveyed = fit.surveyed
    work = [partial(score_part, part, fit.model, plan) for part in surveyed.parts]
    others = list(followed(run(work), len(work), reporter, "Scores"))
    with one_thread():
        own = PartScores(surveyed.kept, score(fit.problem, relevance, plan))
    parts = [part for part in (own, *others) if part.sums is not None]
    sums = added([part.sums for part in parts if part.sums is not None])
    order = np.argsort(np.concatenate([part.positions for part in parts]))
    weights = np.ones(len(surveyed.queries))
    if isinstance(sums, BlockMoments):
        in_place = sums._replace(query_mean=sums.query_mean[:, order], query_variance=sums.query_variance[:, order])
        joint = joint_of_moments(in_place, weights)
    else:
        joint = joint_of_draws(replace(sums, mean=sums.mean[:, order], variance=sums.variance[:, order]), weights)
    systems = surveyed.systems
    ideal = None
    if plan.metric.needs_ideal(relevance.scale):
        goes_on = plan.metric.counts_all(relevance.scale) and int(relevance.certain.sum()) < surveyed.pairs
        ideal = Ideal(surveyed.pairs, surveyed.pairs, len(systems), int(relevance.beyond[:, 0].sum()), goes_on=goes_on)
    return Scores(
        metric=plan.metric,
        systems=systems,
        queries=surveyed.queries,
        joint=joint,
        method=plan.method,
        target=target,
        family=usual_family(joint, target) if family is None else family,
        pool=surveyed.pairs,
        judged=int(relevance.certain.sum()),
        independent=not relevance.has_posterior and int(relevance.certain.sum()) < surveyed.pairs,
        ideal=ideal,
    )
