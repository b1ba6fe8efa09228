"""A state of the judging of a campaign in partitions: scores over all queries, pairs of those in memory."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from probeval.arrays import Floats
from probeval.data.judgments import Judgments
from probeval.display import Brief
from probeval.errors import ModelError, ScoreError
from probeval.metrics import Metric
from probeval.parallel import Run, parallel
from probeval.partitioned.fit import PartitionedFit, fit_parts
from probeval.partitioned.scores import check_scoring, kept_relevance, score_parts
from probeval.relevance.online import Prediction
from probeval.reporting import SILENT, Reporter
from probeval.scores import Ranking, Scores
from probeval.selection.judging import Judging, JudgingState
from probeval.streams import Purpose, stream

__all__ = ["Engine", "PartitionedState"]


@dataclass(frozen=True, repr=False)
class Engine(Brief):
    """Where the work on partitions is done, and what wraps it while it goes on.

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

    def start(self) -> AbstractContextManager[Run[Any]]:
        """Return a context in which work is done in parallel."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return parallel(self.jobs or cores, self.scheduler)


@dataclass(frozen=True, eq=False, repr=False)
class PartitionedState(JudgingState):
    """A state of the judging of a campaign in partitions.

    Scores and rankings are of all queries. The pool is that of the queries in memory, the judged ones and a sample: the
    next pairs to judge are chosen among theirs.

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

    @classmethod
    def of(cls, judging: Judging, fit: PartitionedFit, engine: Engine, run: Run[Any]) -> PartitionedState:
        """Return the state after a fit, with the scores over all queries."""
        metric, judgments = judging.metric, fit.surveyed.collection.judgments
        method = check_scoring(metric, method=judging.method, aggregate=judging.aggregate, draws=judging.draws)
        relevance, plan = kept_relevance(fit, metric, method=method, draws=judging.draws, seed=judging.seed)
        scores = score_parts(
            fit, relevance, plan, target=judging.target, family=judging.family, run=run, reporter=engine.reporter
        )
        known = Judgments.none(judging.pool) if judgments is None else judgments
        prediction = Prediction(relevance, fit.posterior)
        return cls(judging, known, prediction, len(known), whole=scores, fit=fit, engine=engine)

    @property
    def _fit(self) -> PartitionedFit:
        assert self.fit is not None
        return self.fit

    @property
    def scores(self) -> Scores:
        """The joint scores of all systems over all queries."""
        assert self.whole is not None
        return self.whole

    @cached_property
    def ranking(self) -> Ranking:
        """The ranking by all queries, and its confidence."""
        judging = self.judging
        return self.scores.ranking(
            rng=stream(judging.seed, Purpose.RANKING), n=judging.ranking_draws, rope=judging.rope
        )

    def check_whole(self, what: str) -> None:
        """Raise an error: only some queries are in memory."""
        raise ModelError(
            f"{what} all pairs in memory, which a campaign in partitions does not have. Use runs without partitions, "
            "or fewer queries."
        )

    @property
    def labelled_shares(self) -> Floats:
        """The share of all pairs with a label by each source, shape (source,)."""
        surveyed = self._fit.surveyed
        return surveyed.labelled / max(surveyed.pairs, 1)

    def by(self, metric: Metric, *, depth: int) -> PartitionedState:
        """Return the state with another measure, of the same depth."""
        judging = self.judging
        if depth != judging.depth:
            raise ScoreError(
                f"{metric} is of depth {depth}, the partitions were read to depth {judging.depth}. Name one --depth "
                "for all measures, or evaluate it alone."
            )
        with self.engine.start() as run:
            return PartitionedState.of(replace(judging, metric=metric, method=None), self._fit, self.engine, run)

    def relabelled(self, sources: tuple[str, ...], *, worth_factor: float = 1.0) -> PartitionedState:
        """Return the state with the labels of some sources alone, or of none, and their worth multiplied."""
        judging, surveyed = self.judging, self._fit.surveyed
        labels = surveyed.collection.labels
        assert labels is not None
        at = [labels.sources.index(source) for source in sources]
        collection = replace(surveyed.collection, labels=labels.take(sources) if sources else None)
        fewer = replace(surveyed, collection=collection, labelled=surveyed.labelled[at])
        with self.engine.start() as run:
            reporter = self.engine.reporter
            fit = fit_parts(
                fewer, judging.model, scale=judging.scale, run=run, reporter=reporter, worth_factor=worth_factor
            )
            online = replace(judging.online, collection=collection, design=fit.design)
            return PartitionedState.of(replace(judging, online=online), fit, self.engine, run)
