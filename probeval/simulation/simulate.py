"""Policies, models and seeds side by side on a finished campaign."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

from probeval.data.collection import Collection
from probeval.data.evidence import LabelTable
from probeval.data.judgments import Judgments
from probeval.data.scale import Scale
from probeval.errors import DataError, ModelError, ProbevalWarning, SelectionError
from probeval.metrics import Metric
from probeval.relevance import choose_model, fit_hierarchical
from probeval.relevance.models.base import Predicts
from probeval.scores.evaluate import as_metric
from probeval.selection import POLICIES, Stopping
from probeval.selection.goals import Goal
from probeval.selection.policies import find_policy
from probeval.simulation.heldout import HeldOut
from probeval.simulation.replay import replay
from probeval.simulation.trajectory import Simulation, Trajectory
from probeval.simulation.validate import MODELS

__all__ = ["DEFAULTS", "Contender", "simulate"]

# The model of a policy that names none: pairs independent where the policy was made for that.
DEFAULTS = {name: "independent" if name in ("mtc", "mtc-thesis", "variance") else "hierarchical" for name in POLICIES}


@dataclass(frozen=True)
class Contender:
    """A policy and the name of its model.

    Examples
    --------
    >>> Contender.parse("mtc"), Contender.parse("gain:uniform")
    (Contender(policy='mtc', model='independent'), Contender(policy='gain', model='uniform'))
    """

    policy: str
    model: str

    @classmethod
    def parse(cls, text: str, *, model: str | None = None) -> Contender:
        """From ``POLICY`` or ``POLICY:MODEL``; ``model`` stands in where none is named."""
        policy, _, named = text.partition(":")
        find_policy(policy)
        return cls(policy, named or model or DEFAULTS[policy])


def simulate(
    collection: Collection,
    *,
    metric: Metric | str,
    policies: Sequence[str] = ("gain",),
    model: str | None = None,
    fit: Sequence[Collection] = (),
    labelled: tuple[LabelTable, Judgments] | None = None,
    depth: int | None = None,
    scale: Scale | None = None,
    systems: str = "judged",
    gain: str | None = None,
    goal: str = "ranking",
    stop: Stopping | str = "confidence=.95",
    batch: int = 1,
    checkpoints: Sequence[float] = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2),
    until: float = 1.0,
    explore: float | None = None,
    refresh: int | None = None,
    pilot: float = 0.0,
    noise: float = 0.0,
    family: str | None = None,
    draws: int = 1000,
    seeds: int = 1,
    seed: int = 0,
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
    metric, depth, scale, gain
        The measure, the depth of the pool, the grades (those of the judgments when not given), and what each is worth.
    policies, model
        ``POLICY`` or ``POLICY:MODEL``, and the model of those that name none.
    fit
        Campaigns to fit the models on, afresh; without any, models that ship are used.
    labelled
        Labels with grades, from which the worth of labels is learned, where models are fitted.
    systems
        ``"judged"``: those with more than .99 of their documents judged; ``"all"``: pairs without a judgment count as
        the lowest grade in the truth and are never offered.
    goal, stop, batch, checkpoints, until, explore, refresh, pilot, noise, family, draws
        As in :func:`probeval.simulation.replay`.
    seeds, seed
        How many, and the first.
    n_jobs, scheduler
        How many processes share the work, or the address of a Dask scheduler that shares it out.
    progress, say
        Wraps the pieces of work while they are done; is told what takes part.

    Examples
    --------
    >>> import numpy as np
    >>> from probeval.relevance import synthetic_campaign
    >>> campaign = synthetic_campaign(np.random.default_rng(1), systems=5, queries=6, depth=5)
    >>> result = simulate(campaign, metric="DCG@5", policies=["mtc:uniform", "random:uniform"], batch=5)
    >>> result.stops()["stopped"].tolist()
    [True, True]
    """
    if seeds < 1 or batch < 1 or not policies:
        raise SelectionError("A simulation needs at least one policy, one seed, and batches of at least one.")
    if any(not 0 <= share <= 1 for share in checkpoints) or not 0 < until <= 1 or not 0 <= pilot <= 1:
        raise SelectionError("Checkpoints, pilot and until are shares of the pool, from 0 to 1.")
    measured, rule = as_metric(metric), Stopping.parse(stop)
    Goal.parse(goal)
    contenders = list(dict.fromkeys(Contender.parse(p, model=model) for p in policies))
    depth = depth or measured.cutoff or collection.runs.depth
    held = HeldOut.of(collection, depth=depth, systems=systems)
    if scale is not None or gain is not None:
        grades = held.scale if scale is None else scale
        held = replace(held, scale=grades if gain is None else grades.with_gain(gain))
    say(str(held))
    names = list(dict.fromkeys(c.model for c in contenders))
    _refuse_answers(collection, fit)
    if labelled is not None and not fit:
        raise DataError("Graded labels are learned from where models are fitted: name campaigns to fit on as well.")
    models = {name: _model(name, collection, held, fit, labelled, say) for name in progress(names)}
    work = [(c, seed + s) for c in contenders for s in range(seeds)]
    settings: Mapping[str, Any] = {
        "goal": goal, "stop": rule, "batch": batch, "checkpoints": tuple(checkpoints), "until": until,
        "explore": explore, "refresh": refresh, "pilot": pilot, "noise": noise, "family": family, "draws": draws,
    }  # fmt: skip
    with _parallel(min(n_jobs, len(work)), scheduler) as run:
        made = run(
            (partial(replay, held, models[c.model], measured, policy=c.policy, name=c.model, seed=s, **settings))
            for c, s in work
        )
        trajectories = tuple(trajectory for _, trajectory in zip(progress(work), made, strict=True))
    return Simulation(trajectories)


def _refuse_answers(collection: Collection, fit: Sequence[Collection]) -> None:
    """A campaign is not fitted on its own judgments, under whatever name."""
    assert collection.judgments is not None
    mine = collection.judgments.fingerprint() if fit else None
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
    seen = choice.fitted_on(collection)
    if seen:
        say(f"These judgments are those of {seen}, which {choice.name} was fitted on: it has seen the answers.")
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
        raise DataError(f"No Dask scheduler answers at {scheduler}. Start one, or leave --scheduler out.") from None
    with client, parallel_config(backend="dask"):
        yield lambda work: iter(Parallel()(delayed(_call)(w) for w in work))


def _call(work: Callable[[], Trajectory]) -> Trajectory:
    return work()
