"""The estimate of a campaign in parts: scores over all queries, pairs of those in memory."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from probeval.arrays import Floats
from probeval.data.collection import Collection
from probeval.data.evidence import LabelTable
from probeval.data.runs import Runs
from probeval.display import Record
from probeval.errors import ModelError, ScoreError
from probeval.metrics import Metric
from probeval.parallel import Run, parallel
from probeval.partitioned.fit import PartitionedFit, fit_parts
from probeval.partitioned.scores import check_scoring, kept_relevance, score_parts
from probeval.relevance.online import OnlineModel, Prediction
from probeval.reporting import SILENT, Reporter
from probeval.scores import ScoreEstimate, ScoreEstimation, Scores

__all__ = ["Engine", "PartitionedEstimate"]


@dataclass(frozen=True, repr=False)
class Engine(Record):
    """Where the work on parts is done, and what hears of it.

    Parameters
    ----------
    jobs
        The number of processes here; one per core by default.
    scheduler
        The address of a Dask scheduler, in place of local processes.
    reporter
        Receives progress.
    """

    jobs: int | None = None
    scheduler: str | None = None
    reporter: Reporter = SILENT

    @property
    def processes(self) -> int:
        """The number of processes here."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return self.jobs or cores

    def start(self) -> AbstractContextManager[Run[Any]]:
        """Return a context in which work is done in parallel."""
        return parallel(self.processes, self.scheduler)


@dataclass(frozen=True, eq=False, repr=False)
class PartitionedEstimate(ScoreEstimate):
    """Scores and their ranking for a campaign in parts.

    Scores and rankings are of all queries. The pool is that of the queries in memory, the judged ones and a sample: the
    next pairs to judge are chosen among theirs.

    Parameters
    ----------
    whole_scores
        The scores over all queries.
    fit
        The model, with the parts.
    engine
        Where parts are worked on.
    full_collection
        The whole collection, if it is in memory; None if it is on disk.
    worth_factor
        As in :func:`probeval.relevance.observers.measure.with_labels`.
    """

    whole_scores: Scores = field(kw_only=True)
    fit: PartitionedFit = field(kw_only=True)
    engine: Engine = field(kw_only=True)
    full_collection: Collection | None = field(kw_only=True)
    worth_factor: float = field(default=1.0, kw_only=True)

    @classmethod
    def of(
        cls,
        fit: PartitionedFit,
        metric: Metric,
        engine: Engine,
        run: Run[Any],
        *,
        full_collection: Collection | None = None,
        worth_factor: float = 1.0,
        **settings: Any,
    ) -> PartitionedEstimate:
        """Return the estimate after a fit, with the scores over all queries; settings are those of an estimation."""
        how = ScoreEstimation(OnlineModel(fit.model.model, fit.problem, fit.design), metric, **settings)
        method = check_scoring(how.metric, method=how.method, aggregate=how.aggregate, draws=how.draws)
        relevance, plan = kept_relevance(fit, how.metric, method=method, draws=how.draws, seed=how.seed)
        scores = score_parts(
            fit, relevance, plan, target=how.target, family=how.family, run=run, reporter=engine.reporter
        )
        prediction = Prediction(relevance, fit.posterior)
        return cls(
            how,
            how.first_judgments,
            prediction,
            whole_scores=scores,
            fit=fit,
            engine=engine,
            full_collection=full_collection,
            worth_factor=worth_factor,
        )

    def _again(self, fit: PartitionedFit, run: Run[Any], **changes: Any) -> PartitionedEstimate:
        """Return the estimate after another fit, or with other settings."""
        settings = {f.name: getattr(self.estimation, f.name) for f in fields(ScoreEstimation) if f.name != "online"}
        kept = {"full_collection": self.full_collection, "worth_factor": self.worth_factor}
        return PartitionedEstimate.of(fit, engine=self.engine, run=run, **(settings | kept | changes))

    @property
    def scores(self) -> Scores:
        """The joint scores of all systems over all queries."""
        return self.whole_scores

    @cached_property
    def scores_with_outside(self) -> Scores | None:
        """The scores with an estimate of the relevant documents outside the pool; None for a campaign on disk."""
        narrow = self.full_collection is not None and self.scores.ideal is not None and self.scores.ideal.is_narrow
        return self._in_one_process.scores_with_outside if narrow else None

    @cached_property
    def in_memory(self) -> ScoreEstimate:
        """The estimate of the queries in memory."""
        return ScoreEstimate(self.estimation, self.judgments, self.prediction)

    @cached_property
    def with_all_pairs(self) -> ScoreEstimate:
        """The same with all pairs in memory, estimated in this process; on disk, itself."""
        if self.full_collection is None:
            return self
        self.engine.reporter.say("All pairs are needed at once: estimated again in one process.")
        return self._in_one_process

    @cached_property
    def _in_one_process(self) -> ScoreEstimate:
        """The same with all pairs of the collection in memory."""
        assert self.full_collection is not None
        how, model = self.estimation, self.fit.model.model
        problem = self.full_collection.problem(depth=how.depth, scale=how.scale)
        design = model.design(problem, worth_factor=self.worth_factor)
        return replace(how, online=OnlineModel(model, problem, design)).first()

    @property
    def lists(self) -> Runs:
        """The lists to evaluate, of all queries that are in memory."""
        if self.full_collection is None:
            return self.estimation.runs
        top = self.full_collection.runs.top(self.estimation.depth)
        return top if self.full_collection.ranked is None else top.only(self.full_collection.ranked)

    @property
    def longest(self) -> int:
        """The length of the longest list."""
        return self.fit.surveyed.longest

    def check_whole(self, what: str) -> None:
        """Raise an error if only some queries can be in memory."""
        if self.full_collection is not None:
            return
        raise ModelError(
            f"{what} all pairs in memory, which a campaign in partitions does not have. Use runs without partitions, "
            "or fewer queries."
        )

    @property
    def labelled_shares(self) -> Floats:
        """The share of all pairs with a label by each source, shape (source,)."""
        surveyed = self.fit.surveyed
        return surveyed.labelled / max(surveyed.pairs, 1)

    def by(self, metric: Metric, *, depth: int) -> ScoreEstimate:
        """Return the estimate with another measure; on disk, of the same depth."""
        how = self.estimation
        beyond = how.outside is not None and metric.counts_all(how.scale)
        if (depth != how.depth or beyond) and self.full_collection is not None:
            return self.with_all_pairs.by(metric, depth=depth)
        if depth != how.depth:
            raise ScoreError(
                f"{metric} is of depth {depth}, the partitions were read to depth {how.depth}. Name one --depth "
                "for all measures, or evaluate it alone."
            )
        with self.engine.start() as run:
            return self._again(self.fit, run, metric=metric, method=None)

    def relabelled(self, sources: tuple[str, ...], *, worth_factor: float = 1.0) -> PartitionedEstimate:
        """Return the estimate with the labels of some sources alone, or of none, and their worth multiplied."""
        how, surveyed = self.estimation, self.fit.surveyed
        labels = surveyed.collection.labels
        assert labels is not None
        at = [labels.sources.index(source) for source in sources]
        collection = replace(surveyed.collection, labels=_taken(labels, sources))
        fewer = replace(surveyed, collection=collection, labelled=surveyed.labelled[at])
        with self.engine.start() as run:
            reporter = self.engine.reporter
            fit = fit_parts(fewer, how.model, scale=how.scale, run=run, reporter=reporter, worth_factor=worth_factor)
            full = self.full_collection
            if full is not None and full.labels is not None:
                full = replace(full, labels=_taken(full.labels, sources))
            return self._again(fit, run, full_collection=full, worth_factor=worth_factor)


def _taken(labels: LabelTable, sources: tuple[str, ...]) -> LabelTable | None:
    """Return the labels of some sources; None for none."""
    return labels.take(sources) if sources else None
