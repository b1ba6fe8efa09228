"""Rank systems with few judgments or none, and choose the pairs to judge next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from probeval.api.estimates import Expect, evaluation_estimate, unannounced
from probeval.api.evaluation import Evaluation, NextPairs
from probeval.api.inputs import (
    Note,
    Progress,
    as_collection,
    as_scale,
    collect_notes,
    note_outside,
    note_texts,
    select_model,
    silent,
    unanswered,
    unjudged,
)
from probeval.api.partitioned import as_partitions, check_engine, evaluate_partitions, refuse_options
from probeval.api.users import as_goal_metric, as_rope
from probeval.data import Collection, Scale, with_reference
from probeval.data.collection import JUDGED
from probeval.data.scale import Gain
from probeval.errors import ModelError
from probeval.metrics import AnyMetric
from probeval.metrics.aggregates import check_aggregate
from probeval.partitioned.fit import Follow
from probeval.partitioned.state import Engine, unfollowed
from probeval.relevance import Card, Hierarchical
from probeval.relevance.models.base import Predicts
from probeval.relevance.models.hierarchical import Inference
from probeval.relevance.outside import OutsideModel, load_outside
from probeval.scores.evaluate import as_metric
from probeval.selection import Judging, Stopping

__all__ = ["evaluate", "next_pairs"]


def evaluate(
    runs: Any,
    metric: AnyMetric,
    *,
    qrels: Any = None,
    labels: Any = None,
    observers: Any = None,
    preferences: Any = None,
    magnitudes: Any = None,
    metadata: Any = None,
    docs: Any = None,
    pool: Any = None,
    teams: Any = None,
    outside: bool | OutsideModel = False,
    model: str | Card | Predicts | None = None,
    inference: Inference = "laplace",
    scale: Scale | str | None = None,
    gain: Gain | None = None,
    depth: int | None = None,
    reference: str | None = None,
    systems: str = "all",
    target: str = "collection",
    method: str | None = None,
    family: str | None = None,
    draws: int = 1000,
    aggregate: str = "mean",
    level: float = 0.95,
    rope: float | str = 0.0,
    mapping: str | None = None,
    order: str = "trec_eval",
    seed: int = 0,
    jobs: int | None = None,
    scheduler: str | None = None,
    progress: Progress = iter,
    follow: Follow = unfollowed,
    say: Note = silent,
    expect: Expect = unannounced,
) -> Evaluation:
    """Rank systems: with no judgments, with some, or with all; every score with its uncertainty.

    Parameters
    ----------
    runs, qrels, labels, observers, preferences, magnitudes, metadata, docs, pool, teams, order
        Paths, frames, dicts or objects of other packages: see :func:`probeval.as_collection`. Or, for ``runs``, the
        folder of a campaign in partitions, which has its own labels and judgments and is worked on in parts.
    metric
        The measure, such as ``nDCG@10``.
    outside
        Whether to estimate the relevant documents outside the pool, which nDCG, AP and recall depend on; or a model of
        them of your own. See docs/theory/scores.md#outside.
    model, inference, scale, gain
        The relevance model and the grades: see :func:`probeval.api.select_model`.
    depth
        The depth of the pool; by default the measure's cutoff, or the whole runs.
    reference
        Whose grades measures count: an assessor, or ``"consensus"``; the grades of others are labels. By default grades
        on which the assessors of a pair agree are certain. See :func:`probeval.data.with_reference`.
    systems
        ``"all"``, or ``"judged"``: only systems with more than .99 of their documents judged.
    target
        ``"collection"``: scores on these queries. ``"population"``: on the population that they are drawn from.
    method, family, draws
        The computation of scores: see :func:`probeval.scores.evaluate`.
    aggregate
        The mean over queries: ``"mean"``, or a geometric mean, ``"gm"``, ``"gm-eps"`` or ``"gm-trec"``.
    level
        The probability of intervals.
    rope, mapping
        Differences up to this size count as ties: a number, or ``"users=.5"`` for the difference that half of the users
        notice, by the published agreement of the measure, or by that of this name.
    seed
        The random seed; the same seed gives the same result.
    jobs, scheduler
        For a campaign in partitions: the number of processes, by default one per core, or the address of a Dask
        scheduler. The result is the same.
    progress, follow, say, expect
        Wraps the run files while they are read; wraps partitions while they are worked on, with a title; receives
        remarks while the work goes on; receives an estimate of its time once the files are read.

    Examples
    --------
    >>> import numpy as np, probeval
    >>> campaign = probeval.synthetic_campaign(np.random.default_rng(1), systems=4, queries=5, depth=5)
    >>> evaluation = probeval.evaluate(campaign.runs, "nDCG@5", scale="graded:2")
    >>> evaluation
    <Evaluation: nDCG@5 of 4 systems on 5 queries, 0 of 56 pairs judged, confidence 0.610>
    """
    measured, grades = as_metric(metric), as_scale(scale)
    notes, note = collect_notes(say)
    parts = as_partitions(runs)
    if parts is not None:
        refuse_options(
            {
                "labels": labels, "observers": observers, "preferences": preferences, "magnitudes": magnitudes,
                "metadata": metadata, "docs": docs, "pool": pool, "teams": teams, "outside": outside,
                "reference": reference, "systems": None if systems == "all" else systems,
            }
        )  # fmt: skip
        found = evaluate_partitions(
            parts, measured, qrels=qrels, model=model, inference=inference, scale=grades, gain=gain, depth=depth,
            target=target, method=method, family=family, draws=draws, aggregate=aggregate, level=level, rope=rope,
            mapping=mapping, seed=seed, engine=Engine(jobs, scheduler, follow), note=note,
        )  # fmt: skip
        return replace(found, notes=tuple(notes))
    check_engine(scheduler)
    collection = as_collection(
        runs,
        qrels=qrels,
        metadata=metadata,
        labels=labels,
        observers=observers,
        preferences=preferences,
        magnitudes=magnitudes,
        docs=docs,
        pool=pool,
        teams=teams,
        scale=grades,
        order=order,
        progress=progress,
    )
    deep = depth or measured.cutoff or collection.runs.depth
    if systems == "judged":
        collection = judged_systems(collection, deep, note)
    choice = select_model(collection, model, scale=grades, gain=gain, inference=inference, say=note)
    note_texts(collection, docs, depth=deep, model=choice.model, say=note)
    note_outside(collection, note)
    _note_queries(collection, note)
    collection = with_reference(collection, reference)
    _note_disagreements(collection, choice.scale, note)
    if collection.consensus and not isinstance(choice.model, Hierarchical):
        raise ModelError("Only the hierarchical model has a consensus. Use --model hierarchical.")
    check_aggregate(aggregate)
    expect(evaluation_estimate(collection, measured, depth=deep, method=method, draws=draws))
    judging = Judging.of(
        collection,
        choice.model,
        measured,
        scale=choice.scale,
        depth=depth,
        method=method,
        target=target,
        family=family,
        draws=draws,
        rope=as_rope(rope, measured, choice.scale, mapping=mapping, say=note),
        outside=load_outside() if outside is True else outside or None,
        aggregate=aggregate,
        seed=seed,
    )
    evaluation = Evaluation(judging.begin(), choice, level)
    for sentence in (*evaluation.labels.sentences(), *evaluation.answers.sentences()):
        note(sentence)
    return replace(evaluation, notes=tuple(notes))


def next_pairs(
    runs: Any,
    metric: AnyMetric,
    n: int = 20,
    *,
    policy: str = "gain",
    goal: str = "ranking",
    stop: Stopping | str = "confidence=.95",
    explore: float | None = None,
    **options: Any,
) -> NextPairs:
    """The next pairs to judge, given the judgments so far, and whether judging may stop.

    Parameters
    ----------
    runs, metric, options
        As in :func:`probeval.evaluate`.
    n, policy, goal, stop, explore
        As in :meth:`Evaluation.next`.

    Examples
    --------
    >>> import numpy as np, probeval
    >>> campaign = probeval.synthetic_campaign(np.random.default_rng(1), systems=4, queries=5, depth=5)
    >>> probeval.next_pairs(campaign.runs, "DCG@5", n=3, scale="graded:2").to_frame().columns.tolist()
    ['query', 'doc', 'grade', 'sd', 'systems', 'best_rank', 'probability']
    """
    rule = Stopping.parse(stop)
    measure = as_goal_metric(metric, goal, mapping=options.get("mapping"), rope=options.get("rope", 0.0))
    return evaluate(runs, measure, **options).next(n, policy=policy, goal=goal, stop=rule, explore=explore)


def judged_systems(collection: Collection, depth: int, say: Note) -> Collection:
    """The collection with its fully judged systems alone."""
    kept = collection.judged_systems(depth)
    n, everything = len(kept.runs.systems), len(collection.runs.systems)
    say(f"{n} of {everything} systems have more than {JUDGED:g} of their documents judged.")
    return kept


def _note_disagreements(collection: Collection, scale: Scale, say: Note) -> None:
    """Pairs whose assessors differ are not certain."""
    if collection.judgments is None:
        return
    n = int((collection.judgments.limits_on(collection.runs.pool, scale)[1] >= 0).sum())
    if n:
        say(f"Assessors differ on {n:,} pairs: their grades are uncertain, between the lowest and the highest given.")


def _note_queries(collection: Collection, say: Note) -> None:
    """Report queries that only the runs or only the judgments have."""
    if collection.judgments is None:
        return
    alone, missing = unjudged(collection), unanswered(collection)
    if alone:
        say(f"{len(alone)} queries of the runs have no judgment: their scores rest on the model alone.")
    if missing:
        say(f"{len(missing)} judged queries are answered by no run and are left out.")
