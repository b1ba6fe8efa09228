"""Simulations: several policies, models and seeds on a judged collection, and their results."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Annotated, Any

import pandas as pd

from probeval.data.collection import Collection
from probeval.data.evidence import LabelTable
from probeval.data.judgments import Judgments
from probeval.display import Table
from probeval.errors import DataError, ModelError, ProbevalWarning
from probeval.parallel import parallel
from probeval.relevance import Card, Empirical, choose_model, fit_hierarchical
from probeval.relevance.cards.added import find_added, fit_model
from probeval.relevance.models.base import Predicts
from probeval.relevance.models.labels import is_label_model, label_model
from probeval.reporting import SILENT, Reporter
from probeval.results import Named, Result, UnsetType, frame, key, plain
from probeval.scores.ideal import Ideal
from probeval.scores.scores import INDEPENDENT
from probeval.simulation.budgets import (
    BudgetComparison,
    BudgetSummary,
    compare_at_budgets,
    curves_of,
    summarise_budgets,
)
from probeval.simulation.heldout import HeldOut
from probeval.simulation.protocol import SimulationProtocol
from probeval.simulation.replay import replay
from probeval.simulation.seeds import LEVEL, PolicyComparison, SeedSummary, compare_policies, summarise_seeds
from probeval.simulation.trajectory import POINT_COLUMNS, ReplaySetup, Trajectory
from probeval.simulation.validate import MODELS

__all__ = ["Simulation", "simulate"]

STOP_COLUMNS = ("judged", "fraction", "confidence", "accuracy", "tau")


@dataclass(frozen=True, repr=False)
class Simulation(Result):
    """Replays of a collection by several policies."""

    trajectories: Annotated[tuple[Trajectory, ...], "One entry per policy and seed.", Named("policies")]

    @key.flat
    def setup(self) -> ReplaySetup:
        """What the trajectories share."""
        return self.trajectories[0].setup

    @key.named("over_seeds")
    def seed_summaries(self) -> tuple[SeedSummary, ...]:
        """One entry per policy and figure: its mean over the seeds."""
        return summarise_seeds(self.trajectories)

    @key
    def comparisons(self) -> tuple[PolicyComparison, ...]:
        """One entry per pair of policies and figure: the difference in judgments, seed by seed."""
        return compare_policies(self.trajectories)

    @key.named("budgets")
    def budget_summaries(self) -> tuple[BudgetSummary, ...]:
        """One entry per policy, figure and budget, and per area under the curve: its mean over the seeds."""
        return summarise_budgets(curves_of(self.trajectories))

    @key
    def budget_comparisons(self) -> tuple[BudgetComparison, ...]:
        """One entry per pair of policies, figure and budget, or area: the difference, seed by seed."""
        return compare_at_budgets(curves_of(self.trajectories))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per trajectory and checkpoint: policy, model, seed, and all figures."""
        return pd.DataFrame(self._rows((t, plain(point)) for t in self.trajectories for point in t.points))

    def stops(self) -> pd.DataFrame:
        """Return one row per trajectory: the judgments to tau .9, how it ended, and its stop, or its end."""
        found = pd.DataFrame(
            self._rows(
                (t, {"ending": t.ending, **{name: getattr(t.end, name) for name in STOP_COLUMNS}, **_costs(t)})
                for t in self.trajectories
            )
        )
        # dtype object: counts stay integers if some are missing.
        found.insert(
            3 + len(_allocation(self.trajectories[0])),
            "to tau .9",
            pd.Series([t.judgments_to_tau90 for t in self.trajectories], dtype=object),
        )
        return found

    def rule_decisions(self) -> pd.DataFrame:
        """Return one row per trajectory and checkpoint: what the rules of Urbano and Schedl (2012) decide.

        The number of judgments, the share of pairs of systems decided, precision, recall and F of the differences
        decided to be significant, and the threshold of rule 4.
        """
        return pd.DataFrame(self._rows((t, asdict(made)) for t in self.trajectories for made in t.rules))

    def work(self) -> pd.DataFrame:
        """Return one row per trajectory and assessor: their judgments, and the switches per 100 of them."""
        return pd.DataFrame(self._rows((t, asdict(one)) for t in self.trajectories for one in t.work))

    @staticmethod
    def _rows(found: Iterable[tuple[Trajectory, dict[str, Any]]]) -> list[dict[str, Any]]:
        return [
            {"policy": t.policy, "model": t.model, **_allocation(t), "seed": t.seed, **figures} for t, figures in found
        ]

    def over_seeds(self, *, level: float = LEVEL) -> pd.DataFrame:
        """Return the mean of each figure over the seeds of each policy, with its interval.

        One row per policy and figure: ``judgments_at_stop``, ``judgments_to_tau90``, ``confidence_at_stop``,
        ``accuracy_at_stop`` and ``tau_at_stop``. The mean is over the seeds that got there, ``reached`` of ``seeds``.
        The interval is Student's t on the logit scale of the figure's range, and stays in it: from 0 to 1, from -1 to 1
        for tau, from 0 to the number of pairs that could be judged.
        """
        return frame(summarise_seeds(self.trajectories, level=level), SeedSummary)

    def compare_policies(self, *, level: float = LEVEL) -> pd.DataFrame:
        """Return the difference in judgments between every two policies, paired by seed.

        One row per pair of policies and figure (judgments at the stop, judgments to tau .9): the mean of the
        differences with its interval (Student's t), the numbers of seeds with which the first policy needs fewer
        judgments and more, and the verdict: ``fewer`` or ``more`` if the interval excludes 0, or, if one of the two did
        not get there with every seed, by the sign test of these numbers.
        """
        return frame(compare_policies(self.trajectories, level=level), PolicyComparison)

    def at_budgets(self, *, level: float = LEVEL) -> pd.DataFrame:
        """Return the mean of each figure over the seeds at each budget, with its interval.

        One row per policy, figure and budget: tau, tau among the 15 truly best systems, the AP correlation, accuracy,
        the mean absolute error of scores and the calibration error. Budgets are the checkpoints, and the stop if it is
        a budget; a budget of NaN is the area under the curve, as its mean height.
        """
        return frame(summarise_budgets(curves_of(self.trajectories), level=level), BudgetSummary)

    def compare_at_budgets(self, *, level: float = LEVEL) -> pd.DataFrame:
        """Return the differences between every two policies at each budget and in area, paired by seed.

        One row per pair of policies, figure and budget: the mean difference with its interval (Student's t), and the
        verdict: ``better`` or ``worse`` if the interval excludes 0.
        """
        return frame(compare_at_budgets(curves_of(self.trajectories), level=level), BudgetComparison)

    def _headline(self) -> str:
        labels = dict.fromkeys(t.label for t in self.trajectories)
        return f"{self.setup.metric}, {', '.join(labels)}, {self.setup.pool:,} pairs"

    def _caveat(self) -> str:
        """The end of a title: that models of independent pairs are not calibrated, and which policies have one."""
        labels = {t.label: t.independent for t in self.trajectories}
        named = [label for label, independent in labels.items() if independent]
        which = "" if len(named) == len(labels) else f" ({', '.join(named)})"
        return f"; {INDEPENDENT}{which}" if named else ""

    def tables(self) -> tuple[Table, ...]:
        """Return one row per trajectory and checkpoint, one row per trajectory, and with several seeds their means.

        Also the decisions of the significance rules if they were asked for, and the work of several assessors.
        """
        setup = self.setup
        first = ["policy", "model", *_allocation(self.trajectories[0]), "seed"]
        along = self.to_frame().reindex(columns=[*first, *POINT_COLUMNS])
        found = [
            Table(along, f"{setup.metric} at checkpoints{self._caveat()}"),
            Table(self.stops(), f"At the stop ({setup.stopping or 'none'}), or at the end{self._caveat()}"),
        ]
        if setup.shows_rules:
            rules = f"Significant differences by the rules ({setup.rule_settings})"
            found.append(Table(self.rule_decisions(), f"{rules}, against the {setup.test} test of all judgments"))
        if setup.assessors > 1 or setup.stay:
            title = "Assessors: judgments, and switches of topic per 100 of them"
            found.append(Table(self.work(), title, {"switches": 1}))
        seeds = len({t.seed for t in self.trajectories})
        if seeds > 1:
            found.append(Table(self.over_seeds(), f"Means over {seeds} seeds, {LEVEL:.0%} intervals{self._caveat()}"))
        if seeds > 1 and self.comparisons:
            title = f"Judgments of policy minus those of other, {LEVEL:.0%} intervals"
            found.append(Table(self.compare_policies(), title, dict.fromkeys(("difference", "lower", "upper"), 1)))
        if seeds > 1 and self.budget_comparisons:
            found += budget_tables(self.at_budgets(), self.compare_at_budgets())
        return tuple(found)


def _allocation(trajectory: Trajectory) -> dict[str, str]:
    return {} if isinstance(trajectory.allocation, UnsetType) else {"allocation": trajectory.allocation}


def _costs(trajectory: Trajectory) -> dict[str, Any]:
    """The labels and the cost at the stop, or at the end, and the cost to tau .9, where labels have a price."""
    if isinstance(trajectory.allocation, UnsetType):
        return {}
    at = trajectory.end
    return {"labels": at.labels, "cost": at.cost, "cost to tau .9": trajectory.cost_to_tau90}


def budget_tables(means: pd.DataFrame, differences: pd.DataFrame) -> list[Table]:
    """Return a table of means with one column per budget, and one of differences at the last budget and in area."""
    shown = means.assign(at=[_at(b) for b in means["budget"]])
    wide = shown.pivot_table(index=["figure", "policy"], columns="at", values="mean", sort=False, dropna=False)
    title = "Means at budgets (shares of the pool), and areas under the curves (their mean heights)"
    last = differences["budget"].max()
    kept = differences[differences["budget"].isna() | (differences["budget"] == last)]
    rows = kept.assign(budget=[_at(b) for b in kept["budget"]]).drop(columns="collections")
    return [
        Table(wide.reset_index().rename_axis(columns=None), title),
        Table(rows, f"Figure of policy minus that of other, {LEVEL:.0%} intervals"),
    ]


def _at(budget: float) -> str:
    return "area" if pd.isna(budget) else f"{budget:.3g}"


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
    """Judge a collection again with several policies, models and seeds.

    Parameters
    ----------
    collection
        A collection with judgments, which are the assessor and the truth.
    protocol
        The settings: measure, policies and models, stopping rule, seeds, and so on.
    fit
        Collections to fit the models on; without any, the models shipped with probeval are used.
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
    rules = protocol.allocations if protocol.prices is not None else ("gain",)
    work = [(c, rule, protocol.seed + s) for c in protocol.policies for rule in rules for s in range(protocol.seeds)]
    with parallel(min(n_jobs, len(work)), scheduler) as run:
        made = run(
            partial(
                replay, held, models[c.relevance_model], protocol,
                policy=c.policy, name=c.model, method=c.method or protocol.method, allocation=rule, seed=s,
            )
            for c, rule, s in work
        )  # fmt: skip
        trajectories = tuple(trajectory for _, trajectory in zip(reporter.track(work, "Simulating"), made, strict=True))
    return Simulation(trajectories)


def _check_fit(collection: Collection, fit: Sequence[Collection]) -> None:
    """Raise an error if a model is fitted on the simulated collection's own judgments, under any name."""
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
    """Return the model: fitted on other collections if there are any and it can be, else as it is or as it ships."""
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
