"""Evaluate a campaign in partitions, here or on the machines of a Dask scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from probeval.api.evaluation import RANKING_DRAWS, Evaluation
from probeval.api.evidence import as_scale, select_model
from probeval.api.users import as_rope
from probeval.data import as_judgments
from probeval.data.files import is_partitioned
from probeval.data.partitions import Partitions, open_partitions
from probeval.errors import DataError
from probeval.partitioned.fit import Surveyed, fit_parts, look
from probeval.partitioned.scores import check_scoring
from probeval.partitioned.state import Engine, PartitionedState
from probeval.relevance.online import OnlineModel
from probeval.reporting import Reporter
from probeval.scores.evaluate import as_metric
from probeval.selection import Judging
from probeval.selection.goals import Goal
from probeval.selection.policies import as_policy

if TYPE_CHECKING:
    from probeval.api.evaluate import EvaluationInputs

__all__ = ["as_partitions", "check_engine", "evaluate_partitions"]


def as_partitions(runs: Any) -> Partitions | None:
    """Return a campaign in partitions, if these runs are one: a folder, or the object that stands for it."""
    if isinstance(runs, Partitions):
        return runs
    if isinstance(runs, Sequence) and not isinstance(runs, str) and len(runs) == 1:
        (runs,) = runs
    if isinstance(runs, (str, PathLike)) and is_partitioned(runs):
        return open_partitions(runs)
    return None


def check_engine(scheduler: str | None) -> None:
    """Raise an error if a scheduler was named for runs that are not in partitions."""
    if scheduler is not None:
        raise DataError(
            "A scheduler works on a campaign in partitions, got runs. Convert them: probeval convert --to partitions."
        )


def evaluate_partitions(parts: Partitions, given: EvaluationInputs, reporter: Reporter) -> Evaluation:
    """Rank the systems of a campaign in partitions: see :func:`probeval.evaluate`."""
    metric, scale = as_metric(given.metric), as_scale(given.scale)
    found = check_scoring(metric, method=given.method, aggregate=given.aggregate, draws=given.draws)
    judgments = parts.read_judgments() if given.qrels is None else as_judgments(given.qrels, scale=scale)
    engine = Engine(given.jobs, given.scheduler, given.reporter)
    with engine.start() as run:
        surveyed = look(parts, judgments, depth=given.depth or metric.cutoff, run=run, reporter=engine.reporter)
        choice = select_model(
            surveyed.collection, given.model, scale=scale, gain=given.gain, inference=given.inference, reporter=reporter
        )
        _note_queries(surveyed, reporter)
        fit = fit_parts(surveyed, choice.model, scale=choice.scale, run=run, reporter=engine.reporter)
        collection, policy, goal = surveyed.collection, as_policy("gain"), Goal.parse("ranking")
        judging = Judging(
            online=OnlineModel(choice.model, collection, surveyed.depth, choice.scale, fit.design),
            runs=collection.lists(surveyed.depth),
            metric=metric,
            policy=policy,
            goal=goal,
            explore=policy.exploration(goal, len(collection.runs.systems)),
            method=found,
            target=given.target,
            family=given.family,
            draws=given.draws,
            rope=as_rope(given.rope, metric, choice.scale, mapping=given.mapping, reporter=reporter),
            ranking_draws=RANKING_DRAWS,
            seed=given.seed,
        )
        state = PartitionedState.of(judging, fit, engine, run)
    evaluation = Evaluation(state, choice, given.level)
    for sentence in evaluation.labels.sentences():
        reporter.say(sentence)
    return evaluation


def _note_queries(surveyed: Surveyed, reporter: Reporter) -> None:
    """Report queries that only the runs or only the judgments have."""
    judgments = surveyed.collection.judgments
    if judgments is None or not len(judgments):
        return
    judged, known = set(judgments.pool.queries.tolist()), set(surveyed.collection.runs.queries.tolist())
    without, missing = len(surveyed.queries) - len(judged & known), len(judged - known)
    if without:
        reporter.say(f"{without:,} queries of the runs have no judgment: their scores rest on the model alone.")
    if missing:
        reporter.say(f"{missing:,} judged queries are answered by no run and are left out.")
