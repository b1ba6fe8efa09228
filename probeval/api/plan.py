"""The judgments, queries and assessors that a target takes, and the cheapest mix of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from probeval.api.estimates import Expect, plan_estimate, unannounced
from probeval.api.inputs import (
    Note,
    Progress,
    as_collection,
    as_scale,
    note_ideal,
    note_outside,
    note_texts,
    select_model,
    silent,
)
from probeval.api.users import as_rope
from probeval.data import Scale
from probeval.data.scale import Gain
from probeval.metrics import AnyMetric
from probeval.relevance import Card
from probeval.relevance.models.base import Predicts
from probeval.scores.evaluate import as_metric
from probeval.selection import labels_used

if TYPE_CHECKING:
    from probeval.simulation import Plan, Prices

__all__ = ["plan"]


def plan(
    runs: Any,
    metric: AnyMetric,
    target: str | dict[str, float] = "confidence=.95",
    *,
    qrels: Any = None,
    queries: Sequence[int] | None = None,
    depths: Sequence[int] | None = None,
    assessors: Sequence[int] = (1,),
    disagreement: float = 0.0,
    difference: float = 0.05,
    rope: float | str = 0.0,
    mapping: str | None = None,
    prices: Prices | None = None,
    metadata: Any = None,
    labels: Any = None,
    observers: Any = None,
    docs: Any = None,
    model: str | Card | Predicts | None = None,
    scale: Scale | str | None = None,
    gain: Gain | None = None,
    order: str = "trec_eval",
    jobs: int = 1,
    scheduler: str | None = None,
    seed: int = 0,
    progress: Progress = iter,
    say: Note = silent,
    expect: Expect = unannounced,
) -> Plan:
    """Forecast how many judgments a target takes, for every mix of queries, depth, assessors and labels.

    Parameters
    ----------
    runs, qrels, metadata, labels, observers, docs, order
        Runs, and the judgments of a pilot, if any: see :func:`probeval.as_collection`.
    metric, model, scale, gain
        As in :func:`probeval.evaluate`.
    target
        Targets that must all hold, such as ``confidence=.95,erho2=.9``: see :data:`probeval.simulation.TARGETS`.
    queries, depths, assessors, disagreement, difference, prices
        The options to consider, and what they cost: see :func:`probeval.simulation.plan`.
    rope, mapping
        The largest difference that does not matter, as in :func:`probeval.evaluate`.
    jobs, scheduler, seed, progress, say, expect
        The number of processes, or the address of a Dask scheduler; same seed, same plan; wraps the trajectories;
        receives remarks; receives an estimate of the time.
    """
    from probeval.simulation import plan as make_plan
    from probeval.simulation.forecast import PATHS

    collection = as_collection(
        runs, qrels=qrels, metadata=metadata, labels=labels, observers=observers, docs=docs, scale=as_scale(scale),
        order=order,
    )  # fmt: skip
    choice = select_model(collection, model, scale=scale, gain=gain, say=say)
    deep = max(depths) if depths else as_metric(metric).cutoff or collection.runs.depth
    note_texts(collection, docs, depth=deep, model=choice.model, say=say)
    note_ideal(collection, metric, choice.scale, depth=deep, say=say)
    note_outside(collection, say)
    for sentence in labels_used(collection, depth=deep, scale=choice.scale, model=choice.model).sentences():
        say(sentence)
    expect(
        plan_estimate(
            collection, queries=queries or [len(collection.runs.queries)], depths=depths or [deep],
            options=len(assessors) * (1 + (collection.labels is not None)), paths=PATHS, jobs=jobs,
        )
    )  # fmt: skip
    return make_plan(
        collection, choice.model, metric=metric, targets=target, scale=choice.scale, queries=queries, depths=depths,
        assessors=assessors, disagreement=disagreement, difference=difference, prices=prices, n_jobs=jobs,
        scheduler=scheduler, seed=seed, rope=as_rope(rope, metric, choice.scale, mapping=mapping, say=say),
        progress=progress,
    )  # fmt: skip
