"""Evaluate a campaign in partitions, here or on the machines of a Dask scheduler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from probeval.api.evaluation import Evaluation
from probeval.api.inputs import Note, select_model
from probeval.api.users import as_rope
from probeval.data import Judgments, Scale, as_judgments, read_judgments
from probeval.data.files import is_partitioned
from probeval.data.partitions import Partitions, open_partitions
from probeval.data.scale import Gain
from probeval.errors import DataError
from probeval.metrics import Metric
from probeval.partitioned.fit import Surveyed, fit_parts, look
from probeval.partitioned.scores import check_scoring
from probeval.partitioned.state import Engine, PartitionedState
from probeval.relevance.models.hierarchical import Inference
from probeval.relevance.online import OnlineModel
from probeval.selection import Judging
from probeval.selection.goals import Goal
from probeval.selection.policies import as_policy

__all__ = ["as_partitions", "check_engine", "evaluate_partitions", "refuse_options"]


def as_partitions(runs: Any) -> Partitions | None:
    """Return a campaign in partitions, if these runs are one: a folder, or the object that stands for it."""
    if isinstance(runs, Partitions):
        return runs
    if isinstance(runs, Sequence) and not isinstance(runs, str) and len(runs) == 1:
        (runs,) = runs
    if isinstance(runs, (str, PathLike)) and is_partitioned(runs):
        return open_partitions(runs)
    return None


def refuse_options(given: Mapping[str, Any]) -> None:
    """Raise an error if an option was given that a campaign in partitions does not take."""
    for name, value in given.items():
        if value is not None and value is not False:
            raise DataError(
                f"--{name} does not go with a campaign in partitions, which holds its runs and labels itself. Leave it "
                f"out, or evaluate the runs without partitions."
            )


def check_engine(scheduler: str | None) -> None:
    """Raise an error if a scheduler was named for runs that are not in partitions."""
    if scheduler is not None:
        raise DataError(
            "A scheduler works on a campaign in partitions, got runs. Convert them: probeval convert --to partitions."
        )


def evaluate_partitions(
    parts: Partitions,
    metric: Metric,
    *,
    qrels: Any = None,
    model: Any = None,
    inference: Inference = "laplace",
    scale: Scale | None = None,
    gain: Gain | None = None,
    depth: int | None = None,
    target: str = "collection",
    method: str | None = None,
    family: str | None = None,
    draws: int = 1000,
    aggregate: str = "mean",
    level: float = 0.95,
    rope: float | str = 0.0,
    mapping: str | None = None,
    seed: int = 0,
    engine: Engine,
    note: Note,
) -> Evaluation:
    """Rank the systems of a campaign in partitions: see :func:`probeval.evaluate`."""
    found = check_scoring(metric, method=method, aggregate=aggregate, draws=draws)
    judgments = parts.read_judgments() if qrels is None else _judgments(qrels, scale)
    with engine.start() as run:
        surveyed = look(parts, judgments, depth=depth or metric.cutoff, run=run, follow=engine.follow)
        choice = select_model(surveyed.collection, model, scale=scale, gain=gain, inference=inference, say=note)
        _note_queries(surveyed, note)
        fit = fit_parts(surveyed, choice.model, scale=choice.scale, run=run, follow=engine.follow)
        collection, policy, goal = surveyed.collection, as_policy("gain"), Goal.parse("ranking")
        judging = Judging(
            online=OnlineModel(choice.model, collection, surveyed.depth, choice.scale, fit.design),
            runs=collection.lists(surveyed.depth),
            metric=metric,
            policy=policy,
            goal=goal,
            explore=policy.exploration(goal, len(collection.runs.systems)),
            method=found,
            target=target,
            family=family,
            draws=draws,
            rope=as_rope(rope, metric, choice.scale, mapping=mapping, say=note),
            seed=seed,
        )
        state = PartitionedState.of(judging, fit, engine, run)
    evaluation = Evaluation(state, choice, level)
    for sentence in evaluation.labels.sentences():
        note(sentence)
    return evaluation


def _judgments(qrels: Any, scale: Scale | None) -> Judgments:
    return read_judgments(Path(qrels), scale=scale) if isinstance(qrels, (str, PathLike)) else as_judgments(qrels)


def _note_queries(surveyed: Surveyed, note: Note) -> None:
    """Report queries that only the runs or only the judgments have."""
    judgments = surveyed.collection.judgments
    if judgments is None or not len(judgments):
        return
    judged, known = set(judgments.pool.queries.tolist()), set(surveyed.collection.runs.queries.tolist())
    without, missing = len(surveyed.queries) - len(judged & known), len(judged - known)
    if without:
        note(f"{without:,} queries of the runs have no judgment: their scores rest on the model alone.")
    if missing:
        note(f"{missing:,} judged queries are answered by no run and are left out.")
