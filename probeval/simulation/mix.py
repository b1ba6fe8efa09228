"""The mix of machine labels and judgments that a target takes: judging and labelling played on possible truths.

A path has a joint draw of all grades, and one of what the labels are worth: their correlation with relevance, from the
posterior of the machine's worth, noise included. Labels are the gains of the pairs with normal errors, on the scale of
the grades. Then requests go to people or to the machine by :func:`probeval.selection.next_request`, and the model is
fitted again after each.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

import numpy as np

from probeval.arrays import Codes, Floats
from probeval.data.evidence import LabelTable
from probeval.data.judgments import Judgments
from probeval.errors import ProbevalWarning
from probeval.parallel import parallel
from probeval.reporting import SILENT, Reporter
from probeval.results import Result
from probeval.selection import AnswerPrices, JudgingState, next_request
from probeval.selection.labellers import label_correlations
from probeval.simulation.forecast import BATCH, DRAWS, GROWTH, LASTS, first_passage, passage_interval
from probeval.simulation.machines import SimulatedMachines

__all__ = ["MIX_PATHS", "Mix", "forecast_mix"]

MIX_PATHS = 4  # a path fits the model some thirty times, with labels
ROUNDED = 12  # grades of a scale, up to which labels are whole grades


@dataclass(frozen=True, repr=False)
class Mix(Result):
    """The machine labels and the judgments that a target takes, beside judgments alone."""

    labeller: Annotated[str, "The machine."]
    labels: Annotated[float, "The labels still to be bought: the median over possible truths."]
    judgments: Annotated[float, "The judgments still to be made beside them."]
    cost: Annotated[float, "What they cost: the median."]
    lower: Annotated[float, "The lower end of its 90% interval."]
    upper: Annotated[float, "The upper end of its 90% interval."]
    alone_judgments: Annotated[float, "The judgments still to be made without labels."]
    alone_cost: Annotated[float, "What they cost."]

    @property
    def is_cheaper(self) -> bool:
        """Whether labels are bought, and are expected to lower the cost."""
        return self.labels >= 1 and self.cost < self.alone_cost

    def _headline(self) -> str:
        return (
            f"{self.labels:,.0f} labels by {self.labeller} and {self.judgments:,.0f} judgments, {self.cost:,.2f} "
            f"({self.lower:,.2f} to {self.upper:,.2f}); judgments alone {self.alone_judgments:,.0f}, "
            f"{self.alone_cost:,.2f}"
        )

    def sentences(self) -> tuple[str, ...]:
        """Return the cheaper one first."""
        if self.is_cheaper:
            return (f"Cheapest mix: {self._headline()}.",)
        return (f"Judgments alone are expected to cost less than the mix: {self._headline()}.",)


def forecast_mix(
    state: JudgingState,
    prices: AnswerPrices,
    *,
    target: float,
    alone: float,
    paths: int = MIX_PATHS,
    n_jobs: int = 1,
    scheduler: str | None = None,
    rng: np.random.Generator | None = None,
    reporter: Reporter = SILENT,
) -> Mix:
    """Forecast the labels of one machine and the judgments until confidence has reached its target and holds.

    Parameters
    ----------
    state
        The state of the judging now, with the labels that the machine has given, if any.
    prices
        The price of a judgment, and that of a label of one machine.
    target
        The mean confidence over pairs of systems, which holds for the price of 100 more judgments.
    alone
        The judgments still to be made without labels.
    paths, n_jobs, scheduler, rng, reporter
        As in :func:`forecast`.
    """
    (name,) = prices.machines or {}
    rng = np.random.default_rng(0) if rng is None else rng
    state = replace(state, judging=replace(state.judging, draws=min(state.judging.draws, DRAWS)))
    truths = state.prediction.relevance.sample(paths, rng, start=int(rng.integers(1_000_000)))
    worlds = [(truth, _machine(state, prices, name, truth, rng)) for truth in truths]
    track = partial(_track, state, target=target, lasts=LASTS * prices.person)
    with parallel(n_jobs, scheduler) as run:
        made = run(partial(track, truth, machine) for truth, machine in worlds)
        ends = np.array([end for _, end in zip(reporter.track(range(paths), "Planning"), made, strict=True)])
    labels, judgments = np.median(ends[:, 1:], axis=0)
    most = prices.cost(int(state.open.sum()), {name: len(state.judging.pool)})
    found = passage_interval(ends[:, 0] / prices.person, start=0.0, most=most / prices.person)
    cost, lower, upper = (each * prices.person for each in found)
    return Mix(name, float(labels), float(judgments), cost, lower, upper, alone, alone * prices.person)


def _machine(
    state: JudgingState, prices: AnswerPrices, name: str, truth: Codes, rng: np.random.Generator
) -> SimulatedMachines:
    """Return the machine with its labels so far, and those that it would give if a truth held."""
    context, scale, pool = state.context, state.judging.scale, state.judging.pool
    gains, grades = context.gains, scale.judged_values
    weights, correlations = label_correlations(state, name)
    r = float(rng.choice(correlations, p=weights / weights.sum()))
    gain = gains[truth]
    seen = r * (gain - gain.mean()) / (gain.std() or 1.0) + np.sqrt(1 - r**2) * rng.normal(size=len(gain))
    given = gain.mean() + gain.std() * seen
    label = np.interp(given, gains, grades)
    made = np.rint(label) if len(scale) <= ROUNDED else label
    there = state.estimate.problem.labels
    if there is None:
        return SimulatedMachines(
            prices, LabelTable(pool, (name,), made[:, None]), {name: np.zeros(len(pool), dtype=bool)}
        )
    if name not in there.sources:
        return SimulatedMachines(
            prices,
            there.joined([LabelTable(pool, (name,), made[:, None])]).on(pool),
            {name: np.zeros(len(pool), dtype=bool)},
        )
    at = there.sources.index(name)
    values, bought = there.values.copy(), ~np.isnan(there.values[:, at])
    values[~bought, at] = made[~bought]
    plain = {source: shares for source, shares in there.probabilities.items() if source != name}
    return SimulatedMachines(prices, replace(there, values=values, probabilities=plain), {name: bought})


def _track(
    state: JudgingState, truth: Codes, machine: SimulatedMachines, *, target: float, lasts: float
) -> tuple[float, float, float]:
    """Run one path; return the cost, the labels and the judgments to the target."""
    judging = state.judging
    pool = state.judgments.pool.union(judging.pool)
    past, place, grades = state.judgments.on(pool), judging.pool.within(pool), judging.scale.judged_values[truth]
    made: list[int] = []
    start, before = state.scores.judged, machine.total
    steps: list[tuple[float, float, float, float]] = []  # cost, labels, judgments, confidence
    since: float | None = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbevalWarning)
        while True:
            labels = machine.total - before
            cost = machine.prices.cost(len(made), dict.fromkeys(machine.bought, labels))
            confidence = state.ranking.confidence
            steps.append((cost, labels, len(made), confidence))
            since = (cost if since is None else since) if confidence >= target else None
            if since is not None and cost >= since + lasts:
                break
            n = max(BATCH, round(GROWTH * (start + len(made))))
            request = next_request(state, machine.prices, n, available=machine.available)
            if not len(request.batch):
                break
            if not request.is_for_people:
                machine.buy(request.observer, request.batch.pairs)
                state = state.labelled(machine.shown)
                continue
            made += request.batch.pairs.tolist()
            state = state.after(
                Judgments.coded(
                    pool, np.concatenate([past.pair, place[made]]), np.concatenate([past.grade, grades[made]])
                )
            )
    return _at_passage(np.array(steps), target, lasts)


def _at_passage(steps: Floats, target: float, lasts: float) -> tuple[float, float, float]:
    """Return the cost at which confidence passes its target, and the labels and judgments by then."""
    costs = steps[:, 0]
    cost = first_passage(costs, steps[:, 3] - target, lasts, float(costs[-1]))
    return cost, float(np.interp(cost, costs, steps[:, 1])), float(np.interp(cost, costs, steps[:, 2]))
