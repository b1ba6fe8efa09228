"""Evaluate a campaign in partitions, here or on the machines of a Dask scheduler."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from probeval.api.evaluation import Evaluation
from probeval.api.inputs import Note, select_model
from probeval.api.users import as_rope
from probeval.data import Judgments, Scale, as_judgments, read_judgments
from probeval.data.partitions import Partitions, is_partitioned, open_partitions
from probeval.data.scale import Gain
from probeval.errors import DataError, ScoreError
from probeval.metrics import AnyMetric, Metric
from probeval.parallel import Run, parallel
from probeval.partitioned.fit import Follow, PartitionedFit, Surveyed, fit_parts, look
from probeval.partitioned.scores import check_scoring, kept_relevance, score_parts
from probeval.relevance.models.hierarchical import Inference
from probeval.relevance.online import OnlineModel, Prediction
from probeval.scores import Scores
from probeval.scores.evaluate import as_metric
from probeval.selection import Judging, JudgingState, LabelsUsed, labels_of
from probeval.selection.goals import Goal
from probeval.selection.policies import as_policy

__all__ = ["Engine", "PartitionedEvaluation", "as_partitions", "evaluate_partitions", "refuse_options", "unfollowed"]


def unfollowed(work: Sequence[Any], _: str) -> Iterable[Any]:
    """Return work as it is."""
    return work


@dataclass(frozen=True)
class Engine:
    """Where the work on partitions is done, and what wraps it while it goes on.

    Parameters
    ----------
    jobs
        The number of processes here; one per core by default.
    scheduler
        The address of a Dask scheduler, in place of local processes.
    follow
        Wraps the partitions while they are worked on, with a title.
    """

    jobs: int | None = None
    scheduler: str | None = None
    follow: Follow = unfollowed

    def start(self) -> AbstractContextManager[Run[Any]]:
        """Return a context in which work is done in parallel."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return parallel(self.jobs or cores, self.scheduler)


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
                f"--{name} does not go with a campaign in partitions, which has its own runs and labels. Leave it out, "
                "or evaluate without partitions."
            )


@dataclass(frozen=True, eq=False, repr=False)
class PartitionedEvaluation(Evaluation):
    """The evaluation of a campaign in partitions.

    Scores, ranking and comparisons are of all queries. The state holds the queries in memory, judged ones and a sample:
    the next pairs to judge are chosen among theirs.

    Parameters
    ----------
    whole
        The scores over all queries.
    fit
        The model, with the partitions.
    engine
        Where partitions are worked on.
    """

    whole: Scores | None = None
    fit: PartitionedFit | None = None
    engine: Engine = Engine()

    @property
    def scores(self) -> Scores:
        """The joint distribution of all systems' mean scores over all queries."""
        assert self.whole is not None
        return self.whole

    @cached_property
    def labels(self) -> LabelsUsed:
        """The sources of labels: known to the model or new, their share of the pool, their agreement with people."""
        used, surveyed = labels_of(self.state), self._fit.surveyed
        shares = surveyed.labelled / max(surveyed.pairs, 1)
        sources = (replace(s, labelled=float(share)) for s, share in zip(used.sources, shares, strict=True))
        return replace(used, sources=tuple(sources))

    @property
    def _fit(self) -> PartitionedFit:
        assert self.fit is not None
        return self.fit

    def by(self, metric: AnyMetric, *, depth: int | None = None) -> Evaluation:
        """The same campaign evaluated by another measure, of the same depth."""
        judging, measure = self.state.judging, as_metric(metric)
        wanted = depth or measure.cutoff or self._fit.surveyed.parts.depth
        if wanted != judging.depth:
            raise ScoreError(
                f"{measure} is of depth {wanted}, the campaign was read to depth {judging.depth}. Evaluate it apart."
            )
        state = replace(self.state, judging=replace(judging, metric=measure))
        with self.engine.start() as run:
            whole = _scores(self._fit, judging, measure, run, self.engine.follow)[0]
        return replace(self, state=state, whole=whole)


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
) -> PartitionedEvaluation:
    """Rank the systems of a campaign in partitions: see :func:`probeval.evaluate`."""
    found = check_scoring(metric, method=method, aggregate=aggregate, draws=draws)
    judgments = parts.read_judgments() if qrels is None else _judgments(qrels, scale)
    with engine.start() as run:
        surveyed = look(parts, judgments, depth=depth or metric.cutoff, run=run, follow=engine.follow)
        choice = select_model(surveyed.collection, model, scale=scale, gain=gain, inference=inference, say=note)
        _note_queries(surveyed, note)
        fit = fit_parts(surveyed, choice.model, scale=choice.scale, run=run, follow=engine.follow)
        collection, policy = surveyed.collection, as_policy("gain")
        judging = Judging(
            online=OnlineModel(choice.model, collection, surveyed.depth, choice.scale, fit.design),
            runs=collection.lists(surveyed.depth),
            metric=metric,
            policy=policy,
            goal=Goal.parse("ranking"),
            explore=policy.explores,
            method=found,
            target=target,
            family=family,
            draws=draws,
            rope=as_rope(rope, metric, choice.scale, mapping=mapping, say=note),
            seed=seed,
        )
        whole, prediction = _scores(fit, judging, metric, run, engine.follow)
    known = Judgments.none(judging.pool) if judgments is None else judgments
    state = JudgingState(judging, known, prediction, len(known))
    evaluation = PartitionedEvaluation(state, choice, level, whole=whole, fit=fit, engine=engine)
    for sentence in evaluation.labels.sentences():
        note(sentence)
    return evaluation


def _scores(
    fit: PartitionedFit, judging: Judging, metric: Metric, run: Run[Any], follow: Follow
) -> tuple[Scores, Prediction]:
    """Return the scores over all queries, and the prediction for those in memory."""
    method = check_scoring(metric, method=judging.method, aggregate="mean", draws=judging.draws)
    relevance, plan = kept_relevance(fit, metric, method=method, draws=judging.draws, seed=judging.seed)
    scores = score_parts(fit, relevance, plan, target=judging.target, family=judging.family, run=run, follow=follow)
    return scores, Prediction(relevance, fit.posterior)


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
