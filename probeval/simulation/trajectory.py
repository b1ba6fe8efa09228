"""The trajectory of a replay: its figures along the judging, and its stop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import ne
from typing import Annotated, Literal

import pandas as pd

from probeval.display import Record, Table
from probeval.results import HIDDEN, UNSET, Result, UnsetType, frame, key
from probeval.scores.scores import INDEPENDENT
from probeval.selection import AnswerPrices, AuditReport
from probeval.simulation.points import Point
from probeval.simulation.significance_rules import RuleDecisions
from probeval.ties import TIE

__all__ = [
    "LASTS",
    "POINT_COLUMNS",
    "TAU",
    "AssessorWork",
    "CheckpointStop",
    "Ending",
    "ReplaySetup",
    "Trajectory",
    "TrajectoryStep",
    "TrajectoryStop",
    "lasting",
    "lasting_cost",
]

TAU, LASTS = 0.9, 100  # a ranking is good when tau stays at .9 for this many more judgments
POINT_COLUMNS = (
    "judged", "confidence", "accuracy", "tau", "tau_top15", "mae", "calibration_excess", "coverage",
)  # fmt: skip

Ending = Literal["stopped", "until", "exhausted"]


@dataclass(frozen=True)
class TrajectoryStep:
    """Confidence, accuracy and tau after a number of judgments."""

    judged: int
    confidence: float
    accuracy: float
    tau: float
    significant: float = float("nan")  # accuracy among the pairs whose true difference is significant
    sd: float = float("nan")  # the stated standard deviation of scores, the root of their mean variance
    mae: float = float("nan")  # the true mean absolute error of scores
    labels: int = 0  # the number of labels bought
    cost: float = float("nan")  # of judgments and labels


def lasting(
    steps: Sequence[TrajectoryStep], tau: float = TAU, lasts: float = LASTS, *, exhausted: bool = False
) -> int | None:
    """Return the first number of judgments from which tau stays at least ``tau`` for ``lasts`` more; None if never.

    With ``exhausted`` (every pair is judged) tau need only stay until the end.
    """
    at = _lasting([step.tau for step in steps], [step.judged for step in steps], tau, lasts, exhausted)
    return None if at is None else steps[at].judged


def lasting_cost(
    steps: Sequence[TrajectoryStep], price: float = 1.0, *, tau: float = TAU, exhausted: bool = False
) -> float | None:
    """Return the first cost from which tau stays at least ``tau`` for the price of 100 more judgments; None if never.

    With ``exhausted`` (nothing is left to ask for) tau need only stay until the end.
    """
    costs = [step.cost for step in steps]
    at = _lasting([step.tau for step in steps], costs, tau, LASTS * price - TIE, exhausted)
    return None if at is None else costs[at]


def _lasting(taus: Sequence[float], along: Sequence[float], tau: float, lasts: float, exhausted: bool) -> int | None:
    """Return the first position from which tau stays for ``lasts`` more along an axis; None if never."""
    first: int | None = None
    for at, found in enumerate(taus):
        if not found >= tau - TIE:  # NaN for a single system
            first = None
        elif first is None:
            first = at
        if first is not None and along[at] >= along[first] + lasts:
            return first
    return first if exhausted else None


@dataclass(frozen=True, repr=False)
class ReplaySetup(Record):
    """What the replays of a collection by several policies share."""

    metric: Annotated[str, "The measure."]
    pool: Annotated[int, "The number of pairs."]
    offered: Annotated[int, "The number of pairs that could be judged."]
    systems: Annotated[int, "The number of systems."]
    stopping: Annotated[str, "The stopping rule, empty for none."] = ""
    until: Annotated[float, "The share of the pool at which trajectories end."] = 1.0
    noise: Annotated[float, "The probability that the assessor's grade is wrong."] = 0.0
    test: Annotated[str, 'The test behind "significant".'] = "t"
    rule_settings: Annotated[str, "The settings of rule 4 of Urbano and Schedl (2012)."] = ""
    topics: Annotated[str, "How topics are given to assessors."] = "free"
    stay: Annotated[float, "The price of switching to another topic, in judgments."] = 0.0
    prices: Annotated[str | UnsetType, "What an answer of each observer costs, where labels have a price."] = UNSET
    assessors: Annotated[int, HIDDEN] = 1
    shows_rules: Annotated[bool, HIDDEN] = False  # whether the decisions of these rules were asked for
    collection: Annotated[str, HIDDEN] = ""  # its name
    checkpoints: Annotated[tuple[float, ...], HIDDEN] = ()  # the judged shares of the points

    @property
    def answer_prices(self) -> AnswerPrices:
        """What an answer of each observer costs: a judgment 1, where labels have no price."""
        return AnswerPrices() if isinstance(self.prices, UnsetType) else AnswerPrices.parse(self.prices)


@dataclass(frozen=True)
class CheckpointStop:
    """The stop, or the end if the stopping rule never held."""

    reached: Annotated[bool, "Whether the stopping rule held; if it never did, the other figures are those of the end."]
    judged: Annotated[int, "The number of judged pairs."]
    fraction: Annotated[float, "Their share of the pool."]
    confidence: Annotated[float, "The stated confidence."]
    accuracy: Annotated[float, "The accuracy of the ranking."]
    tau: Annotated[float, "The tau of the ranking."]


@dataclass(frozen=True)
class TrajectoryStop(CheckpointStop):
    """The stop of a trajectory, its reasons, and whether its accuracy is as stated."""

    accuracy_p: Annotated[
        float | None,
        "The probability that a perfectly calibrated model is right about no more pairs of systems; null if the rule "
        "never held.",
    ]
    reasons: Annotated[tuple[str, ...], "The rules that held."]
    labels: Annotated[int | UnsetType, "The number of labels bought, where labels have a price."] = UNSET
    cost: Annotated[float | UnsetType, "The cost of judgments and labels, where labels have a price."] = UNSET


@dataclass(frozen=True)
class AssessorWork:
    """The work of one simulated assessor, until the stop, or the end."""

    assessor: Annotated[int, "A number from 1."]
    judgments: Annotated[int, "The number of their judgments."]
    switches: Annotated[float, "The number of times per 100 judgments that they changed topic."]


@dataclass(frozen=True, repr=False)
class Trajectory(Result):
    """One replay of a collection by one policy.

    Parameters
    ----------
    setup
        What it shares with the other replays of a simulation.
    steps
        One per batch.
    stop, at_stop, reasons
        The first step at which the stopping rule held, its figures, and the rules that held; None if it never did.
    order
        The pairs in the order in which they were judged.
    queries, judged_by
        The query of each of them, by its position, and the assessor who judged it; None for those of a pilot.
    probabilities
        The probability of each of them that was drawn at random; None for those that the policy chose.
    audit
        The level and the systems by the model and by the pairs drawn at random, at the end. A pilot is not audited.
    kind
        The kind of the model (:func:`probeval.selection.model_kind`).
    is_exhausted
        Whether nothing was left to ask for at the end.
    """

    setup: ReplaySetup
    policy: Annotated[str, "The policy."]
    model: Annotated[str, "Its model."]
    seed: Annotated[int, "The seed."]
    steps: tuple[TrajectoryStep, ...]
    points: Annotated[tuple[Point, ...], "One entry per checkpoint: all figures."]
    rules: Annotated[
        tuple[RuleDecisions, ...],
        "One entry per checkpoint: the decisions of the rules of Urbano and Schedl (2012).",
    ]
    stop: TrajectoryStep | None
    reasons: tuple[str, ...]
    order: tuple[int, ...]
    at_stop: Point | None = None
    queries: tuple[int, ...] = ()
    judged_by: tuple[int | None, ...] = ()
    probabilities: tuple[float | None, ...] = ()
    audit: AuditReport | None = None
    alarm: Annotated[int | None, "The number of judgments at which the audit raised its alarm; null if never."] = None
    kind: str = ""
    is_exhausted: bool = False
    allocation: Annotated[
        str | UnsetType, "The rule that shares the cost between people and machines, where labels have a price."
    ] = UNSET
    independent: Annotated[
        bool, "Whether its model takes pairs as independent: confidence and intervals are then not calibrated."
    ] = False

    @key
    def judged(self) -> int:
        """The number of judgments of the whole trajectory, which goes on past the stop."""
        return self.steps[-1].judged

    @key
    def ending(self) -> Ending:
        """How it ended: ``stopped`` (the stopping rule held), ``until`` (it did not hold before the share of the pool
        at which trajectories end) or ``exhausted`` (nor when every pair that could be judged was).
        """
        if self.stop is not None:
            return "stopped"
        return "exhausted" if self._has_ended else "until"

    @key
    def judgments_to_tau90(self) -> int | None:
        """The first number of judgments from which tau stays at least .9 for 100 more; null if never."""
        return lasting(self.steps, exhausted=self._has_ended)

    @key
    def cost_to_tau90(self) -> float | UnsetType | None:
        """The first cost from which tau stays at least .9 for that of 100 more judgments; null if never.

        It is there where labels have a price.
        """
        if self.allocation is UNSET:
            return UNSET
        return lasting_cost(self.steps, self.setup.answer_prices.person, exhausted=self._has_ended)

    @property
    def _has_ended(self) -> bool:
        return self.is_exhausted or self.judged >= self.setup.offered

    @key.named("stop")
    def end(self) -> TrajectoryStop:
        """The stop, or the end if the stopping rule never held."""
        at = self.stop or self.steps[-1]
        p = None if self.at_stop is None else self.at_stop.accuracy_p
        share = at.judged / self.setup.pool
        reached = self.stop is not None
        found = TrajectoryStop(reached, at.judged, share, at.confidence, at.accuracy, at.tau, p, self.reasons)
        return found if self.allocation is UNSET else replace(found, labels=at.labels, cost=at.cost)

    @key.named("assessors")
    def work(self) -> tuple[AssessorWork, ...]:
        """The work of each assessor, until the stop, or the end."""
        n = self.end.judged
        found = []
        for who in range(self.setup.assessors):
            mine = [q for q, a in zip(self.queries[:n], self.judged_by[:n], strict=True) if a == who]
            found.append(AssessorWork(who + 1, len(mine), 100 * sum(map(ne, mine, mine[1:])) / max(len(mine), 1)))
        return tuple(found)

    @key
    def switches(self) -> float:
        """The number of times per 100 judgments that an assessor changed topic, until the stop, or the end."""
        judged = sum(one.judgments for one in self.work)
        return sum(one.judgments * one.switches for one in self.work) / judged if judged else 0.0

    @property
    def label(self) -> str:
        """The label in plots and tables."""
        allocation = "" if self.allocation is UNSET else f" ({self.allocation})"
        return f"{self.policy}:{self.model}{allocation}"

    @property
    def significant(self) -> int | None:
        """The first number of judgments at which all significant comparisons have the right sign; None if never."""
        return next((s.judged for s in self.steps if s.significant >= 1), None)

    def reaches(self, confidence: float) -> int | None:
        """Return the first number of judgments with this mean confidence; None if never reached."""
        return next((s.judged for s in self.steps if s.confidence >= confidence), None)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per batch: judged, confidence, accuracy, tau, significant, sd and mae of scores.

        Where labels have a price, also labels, the number bought, and cost.
        """
        rows = frame(self.steps, TrajectoryStep)
        return rows.drop(columns=["labels", "cost"]) if self.allocation is UNSET else rows

    def _headline(self) -> str:
        how = f"; {INDEPENDENT}" if self.independent else ""
        return f"{self.setup.metric} by {self.label}, {self.judged:,} of {self.setup.pool:,} pairs judged{how}"

    def tables(self) -> tuple[Table, ...]:
        """Return one row per checkpoint."""
        return (Table(frame(self.points, Point)[list(POINT_COLUMNS)], self._headline()),)

    def sentences(self) -> tuple[str, ...]:
        """Return a sentence on the stop and its accuracy, and those of the audit."""
        rule = f"The stopping rule {self.setup.stopping} did not hold" if self.setup.stopping else "No stopping rule"
        how = {
            "stopped": f"Stopped ({'; '.join(self.reasons)}) after",
            "until": f"{rule}; ended after",
            "exhausted": f"{rule}; ended with every pair judged that could be, after",
        }[self.ending]
        at = self.end
        share = f"{at.fraction:.1%} of the pool"
        if isinstance(at.labels, int):
            share += f"; with {at.labels:,} labels the cost is {at.cost:,.2f}"
        stop = f"{how} {at.judged:,} judgments ({share}): accuracy {at.accuracy:.3f}, tau {at.tau:.3f}."
        return (stop, *(() if self.audit is None else self.audit.sentences()))
