"""Policies, models and seeds side by side on a finished campaign."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

from probeval.data.collection import Collection
from probeval.data.evidence import LabelTable
from probeval.data.judgments import Judgments
from probeval.errors import DataError, ModelError, ProbevalWarning
from probeval.relevance import choose_model, fit_hierarchical
from probeval.relevance.models.base import Predicts
from probeval.simulation.heldout import HeldOut
from probeval.simulation.protocol import SimulationProtocol
from probeval.simulation.replay import replay
from probeval.simulation.trajectory import Simulation, Trajectory
from probeval.simulation.validate import MODELS

__all__ = ["simulate"]


def simulate(
    collection: Collection,
    protocol: SimulationProtocol,
    *,
    fit: Sequence[Collection] = (),
    labelled: tuple[LabelTable, Judgments] | None = None,
    n_jobs: int = 1,
    scheduler: str | None = None,
    progress: Callable[[Sequence[Any]], Iterable[Any]] = iter,
    say: Callable[[str], None] = lambda _: None,
) -> Simulation:
    """Judge a finished campaign again by several policies, models and seeds.

    Parameters
    ----------
    collection
        A campaign with judgments: they are the assessor and the truth.
    protocol
        What is measured, which policies and models, when to stop, how many seeds, and so on.
    fit
        Campaigns to fit the models on, afresh; without any, models that ship are used.
    labelled
        Labels with grades, from which the worth of labels is learned, where models are fitted.
    n_jobs, scheduler
        How many processes share the work, or the address of a Dask scheduler that shares it out.
    progress, say
        Wraps the pieces of work while they are done; is told what takes part.

    Examples
    --------
    >>> import numpy as np
    >>> from probeval.relevance import synthetic_campaign
    >>> campaign = synthetic_campaign(np.random.default_rng(1), systems=5, queries=6, depth=5)
    >>> protocol = SimulationProtocol.of("DCG@5", policies=["mtc:uniform", "random:uniform"], batch=5)
    >>> simulate(campaign, protocol).stops()["stopped"].tolist()
    [True, True]
    """
    held = protocol.hold_out(collection)
    say(str(held))
    names = list(dict.fromkeys(c.model for c in protocol.policies))
    _refuse_answers(collection, fit)
    if labelled is not None and not fit:
        raise DataError("Graded labels are learned from where models are fitted: name campaigns to fit on as well.")
    models = {name: _model(name, collection, held, fit, labelled, say) for name in progress(names)}
    work = [(c, protocol.seed + s) for c in protocol.policies for s in range(protocol.seeds)]
    with _parallel(min(n_jobs, len(work)), scheduler) as run:
        made = run(
            partial(replay, held, models[c.model], protocol, policy=c.policy, name=c.model, seed=s) for c, s in work
        )
        trajectories = tuple(trajectory for _, trajectory in zip(progress(work), made, strict=True))
    return Simulation(trajectories)


def _refuse_answers(collection: Collection, fit: Sequence[Collection]) -> None:
    """A campaign is not fitted on its own judgments, under whatever name."""
    if collection.judgments is None or not fit:
        return
    mine = collection.judgments.fingerprint()
    for past in fit:
        if past.judgments is not None and past.judgments.fingerprint() == mine:
            raise DataError(f"{past.name} cannot be fitted on and judged again: leave it out of the fit.")


def _model(
    name: str,
    collection: Collection,
    held: HeldOut,
    fit: Sequence[Collection],
    labelled: tuple[LabelTable, Judgments] | None,
    say: Callable[[str], None],
) -> Predicts:
    """The model of that name: fitted on other campaigns where there are any, else one that ships."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbevalWarning)
        if fit and name in MODELS:
            if name == "hierarchical" and labelled is not None:
                return fit_hierarchical(fit, depth=held.depth, labelled=labelled)
            return MODELS[name](fit, depth=held.depth)
    if name == "none":
        raise ModelError("Judging needs a model to choose by: uniform, empirical, independent, hierarchical or a card.")
    unjudged = replace(held.collection, judgments=None)
    choice = choose_model(name, unjudged, scale=held.scale)
    say(f"Model {choice.name}: {choice.why}")
    warning = choice.warning(collection)
    if warning is not None:
        say(warning)
    return choice.model


Run = Callable[[Iterable[Callable[[], Trajectory]]], Iterator[Trajectory]]


@contextmanager
def _parallel(n_jobs: int, scheduler: str | None) -> Iterator[Run]:
    """What runs the pieces of work and gives their results in order: processes here, or a Dask scheduler."""
    from joblib import Parallel, delayed, parallel_config

    if scheduler is None:
        yield lambda work: iter(Parallel(n_jobs=n_jobs, return_as="generator")(delayed(_call)(w) for w in work))
        return
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise DataError("A scheduler needs Dask: pip install 'probeval[distributed]'.") from None
    try:
        client = distributed.Client(scheduler)
    except (OSError, ValueError):
        raise DataError(
            f"No Dask scheduler answers at {scheduler}. Start one, or simulate without a scheduler."
        ) from None
    with client, parallel_config(backend="dask"):
        yield lambda work: iter(Parallel()(delayed(_call)(w) for w in work))


def _call(work: Callable[[], Trajectory]) -> Trajectory:
    return work()
