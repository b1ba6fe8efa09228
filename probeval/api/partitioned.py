"""Campaigns in partitions, and runs in memory that are worked on in several processes or by a Dask scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from probeval.data import Collection
from probeval.data.partitioning import LEFT_OUT
from probeval.errors import ModelError, ScoreError
from probeval.metrics import Metric
from probeval.partitioned import Engine, PartitionedEstimate, fit_parts, look, memory_parts
from probeval.partitioned.fit import Surveyed, check_model
from probeval.partitioned.scores import check_scoring
from probeval.relevance import Choice
from probeval.reporting import Reporter
from probeval.scores import ScoreEstimate, ScoreEstimation

__all__ = ["estimate_in_parts", "note_unjudged"]

PARTS = 4  # of runs in memory, for each process


def estimate_in_parts(
    collection: Collection,
    choice: Choice,
    metric: Metric,
    *,
    depth: int,
    engine: Engine,
    reporter: Reporter,
    settings: Mapping[str, Any],
) -> ScoreEstimate:
    """The scores of runs in memory, their queries worked on in several processes or by a scheduler.

    What needs all pairs at once is done in this process, with a remark.
    """
    reason = _needs_one_process(collection, choice, metric, settings)
    if reason is not None or len(collection.runs.queries) < 2:
        if reason is not None:
            reporter.say(f"Estimated in one process: {reason}")
        return ScoreEstimation.of(collection, choice.model, metric, depth=depth, scale=choice.scale, **settings).first()
    n = min(PARTS * engine.processes, len(collection.runs.queries))
    with engine.start() as run:
        surveyed = look(
            memory_parts(collection, n),
            collection.judgments,
            n_queries=len(collection.runs.queries),
            depth=depth,
            longest=collection.runs.depth,
            run=run,
            reporter=engine.reporter,
        )
        fit = fit_parts(surveyed, choice.model, scale=choice.scale, run=run, reporter=engine.reporter)
        return PartitionedEstimate.of(fit, metric, engine, run, full_collection=collection, **settings)


def _needs_one_process(
    collection: Collection, choice: Choice, metric: Metric, settings: Mapping[str, Any]
) -> str | None:
    """Why runs cannot be worked on in parts; None if they can."""
    try:
        check_model(choice.model)
        check_scoring(metric, method=settings["method"], aggregate=settings["aggregate"], draws=settings["draws"])
    except (ModelError, ScoreError):
        return "this model, or this kind of scores, needs all queries at once."
    outside = settings["outside"]
    if outside is not None and (not outside.only_bases or metric.counts_all(choice.scale)):
        return "documents outside the pool are estimated from all queries."
    if collection.consensus:
        return "a consensus tells of assessors, over all queries."
    extra = [name for name in LEFT_OUT if getattr(collection, name) is not None]
    return f"{', '.join(extra)} need all queries at once." if extra else None


def note_unjudged(surveyed: Surveyed, reporter: Reporter) -> None:
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
