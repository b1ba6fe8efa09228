"""Simulation of several policies, models and seeds on a finished campaign."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from probeval.data.collection import Collection
from probeval.data.evidence import LabelTable
from probeval.data.judgments import Judgments
from probeval.errors import DataError, ModelError, ProbevalWarning
from probeval.parallel import parallel
from probeval.relevance import Card, Empirical, choose_model, fit_hierarchical
from probeval.relevance.cards.added import find_added, fit_model
from probeval.relevance.models.base import Predicts
from probeval.relevance.models.labels import is_label_model, label_model
from probeval.reporting import SILENT, Reporter
from probeval.scores.ideal import Ideal
from probeval.simulation.heldout import HeldOut
from probeval.simulation.protocol import SimulationProtocol
from probeval.simulation.replay import replay
from probeval.simulation.trajectory import Simulation
from probeval.simulation.validate import MODELS

__all__ = ["simulate"]


def simulate(
    collection: Collection,
    protocol: SimulationProtocol,
    *,
    fit: Sequence[Collection] = (),
    labelled: Sequence[tuple[LabelTable, Judgments]] = (),
    n_jobs: int = 1,
    scheduler: str | None = None,
    reporter: Reporter = SILENT,
) -> Simulation:
    """Judge a finished campaign again with several policies, models and seeds.

    Parameters
    ----------
    collection
        A campaign with judgments, which are the assessor and the truth.
    protocol
        The settings: measure, policies and models, stopping rule, seeds, and so on.
    fit
        Campaigns to fit the models on; without any, the models shipped with probeval are used.
    labelled
        Tables of labels with grades, to fit the effect of labels; needs ``fit``.
    n_jobs, scheduler
        The number of processes, or the address of a Dask scheduler.
    reporter
        Receives progress, and remarks on the systems and models.

    Examples
    --------
    >>> from probeval.relevance import synthetic_campaign
    >>> campaign = synthetic_campaign(seed=1, systems=5, queries=6, depth=5)
    >>> protocol = SimulationProtocol.of("DCG@5", policies=["mtc:uniform", "random:uniform"], batch=5)
    >>> simulate(campaign, protocol).stops()["ending"].tolist()
    ['stopped', 'stopped']
    """
    held = protocol.hold_out(collection)
    reporter.say(str(held))
    ideal = Ideal.of_pool(held.collection.runs.top(held.depth), protocol.metric, held.scale)
    if ideal is not None:
        reporter.say(ideal.fact)
    named = {c.relevance_model: c.given for c in protocol.policies}
    _check_fit(collection, fit)
    if labelled and not fit:
        raise DataError("Graded labels need models to fit: name campaigns to fit on as well.")
    past = [c.judged_part(held.depth) for c in fit]
    models = {
        n: _model(n, named[n], collection, held, past, labelled, reporter)
        for n in reporter.track(list(named), "Simulating")
    }
    work = [(c, protocol.seed + s) for c in protocol.policies for s in range(protocol.seeds)]
    with parallel(min(n_jobs, len(work)), scheduler) as run:
        made = run(
            partial(
                replay, held, models[c.relevance_model], protocol,
                policy=c.policy, name=c.model, method=c.method or protocol.method, seed=s,
            )
            for c, s in work
        )  # fmt: skip
        trajectories = tuple(trajectory for _, trajectory in zip(reporter.track(work, "Simulating"), made, strict=True))
    return Simulation(trajectories)


def _check_fit(collection: Collection, fit: Sequence[Collection]) -> None:
    """Raise an error if a campaign is fitted on its own judgments, under any name."""
    if collection.judgments is None or not fit:
        return
    mine = collection.judgments.fingerprint()
    for past in fit:
        if past.judgments is not None and past.judgments.fingerprint() == mine:
            raise DataError(f"{past.name} has the judgments of the simulated campaign: leave it out of the fit.")


def _model(
    name: str,
    given: Card | Predicts | None,
    collection: Collection,
    held: HeldOut,
    fit: Sequence[Collection],
    labelled: Sequence[tuple[LabelTable, Judgments]],
    reporter: Reporter,
) -> Predicts:
    """Return the model: fitted on other campaigns if there are any and it can be, else as it is or as it ships."""
    added = find_added(name) if given is None else given
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbevalWarning)
        if fit and added is not None and not isinstance(added, Card):
            return fit_model(added, fit, depth=held.depth)
        if fit and given is None and name in MODELS:
            if name == "hierarchical" and labelled:
                return fit_hierarchical(fit, depth=held.depth, labelled=labelled)
            return MODELS[name](fit, depth=held.depth)
        if fit and given is None and is_label_model(name):
            return label_model(name, collection.labels, Empirical.fit(fit, depth=held.depth))
    if name == "none":
        raise ModelError("Policies need a model: uniform, empirical, independent, hierarchical or a card.")
    unjudged = replace(held.collection, judgments=None)
    choice = choose_model(name if given is None else given, unjudged, scale=held.scale)
    reporter.say(f"Model {choice.name}: {choice.why}")
    warning = choice.warning(collection)
    if warning is not None:
        reporter.say(warning)
    return choice.model
