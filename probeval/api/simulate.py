"""Policies, models and seeds compared on a finished campaign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from probeval.api.inputs import (
    Note,
    Progress,
    as_collection,
    as_scale,
    note_outside,
    note_texts,
    read_labelled,
    silent,
    with_observers,
)
from probeval.api.users import as_goal_metric, as_rope
from probeval.data import Collection, read_campaign
from probeval.errors import DataError
from probeval.metrics import AnyMetric
from probeval.selection import labels_used

if TYPE_CHECKING:
    from probeval.selection import Policy, PolicyFunction
    from probeval.simulation import Contender, Simulation

__all__ = ["simulate"]


def simulate(
    runs: Any,
    metric: AnyMetric,
    policies: Sequence[str | Policy | PolicyFunction | Contender] = ("gain",),
    *,
    qrels: Any = None,
    metadata: Any = None,
    labels: Any = None,
    observers: Any = None,
    docs: Any = None,
    order: str = "trec_eval",
    fit: Sequence[Collection | str | PathLike[str]] = (),
    labels_from: Any = None,
    rope: float | str = 0.0,
    mapping: str | None = None,
    jobs: int = 1,
    scheduler: str | None = None,
    progress: Progress = iter,
    say: Note = silent,
    **protocol: Any,
) -> Simulation:
    """Judge a finished campaign again by several policies: its judgments answer, and are the truth.

    Parameters
    ----------
    runs, qrels, metadata, labels, observers, docs, order
        A campaign with judgments: see :func:`probeval.as_collection`.
    metric, policies
        The measure, and policies: ``POLICY``, ``POLICY:MODEL`` or ``POLICY:MODEL:COLUMN`` (a column of labels) each; or
        policies of one's own, as functions or objects.
    fit
        Campaigns (folders or collections) on which the models are fitted; by default the built-in models are used.
    labels_from
        A table of labels beside grades, or several, to learn how reliable those are who gave them, with ``fit``.
    rope, mapping
        The largest difference that does not matter, as in :func:`probeval.evaluate`.
    jobs, scheduler
        The number of processes, or the address of a Dask scheduler.
    progress, say
        Wraps the trajectories; receives remarks.
    protocol
        The rest of :meth:`probeval.simulation.SimulationProtocol.of`, such as ``model``, ``stop``, ``batch`` and
        ``seeds``.

    Examples
    --------
    >>> import numpy as np, probeval
    >>> campaign = probeval.synthetic_campaign(np.random.default_rng(1), systems=5, queries=6, depth=5)
    >>> found = probeval.simulate(campaign, "DCG@5", ["mtc:uniform", "random:uniform"], batch=5)
    >>> found.stops()["ending"].tolist()
    ['stopped', 'stopped']
    """
    from probeval.simulation import SimulationProtocol
    from probeval.simulation import simulate as judge_again

    measure = as_goal_metric(metric, protocol.get("goal", "ranking"), mapping=mapping, rope=rope)
    settings = SimulationProtocol.of(measure, policies=policies, **protocol)
    past = [c if isinstance(c, Collection) else read_campaign(c) for c in fit]
    collection = as_collection(
        runs, qrels=qrels, metadata=metadata, labels=labels, docs=docs, scale=as_scale(protocol.get("scale")),
        order=order,
    )  # fmt: skip
    depth = settings.depth or settings.metric.cutoff or collection.runs.depth
    note_texts(collection, docs, depth=depth, say=say)
    note_outside(collection, say)
    described, labelled = with_observers([collection, *past], observers, read_labelled(labels_from))
    collection, *past = described
    if collection.judgments is None:
        raise DataError("A simulation needs the judgments of a finished campaign: give qrels.")
    scale = collection.scale(settings.scale)
    scale = scale if settings.gain is None else scale.with_gain(settings.gain)
    for sentence in labels_used(collection, depth=depth, scale=scale).sentences():
        say(sentence)
    settings = replace(settings, rope=as_rope(rope, settings.metric, scale, mapping=mapping, say=say))
    return judge_again(
        collection, settings, fit=past, labelled=labelled,
        n_jobs=jobs, scheduler=scheduler, progress=progress, say=say,
    )  # fmt: skip
