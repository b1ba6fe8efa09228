"""Results of a simulation: trajectories and their stops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import ne

import pandas as pd

from probeval.display import Table
from probeval.results import Result
from probeval.selection import AuditReport
from probeval.simulation.documents import AssessorDocument, Ending, SimulationDocument, TrajectoryDocument
from probeval.simulation.points import Point
from probeval.simulation.seeds import LEVEL, as_table, compare_policies, summarise_seeds
from probeval.simulation.significance_rules import RuleDecisions, RuleSettings
from probeval.ties import TIE

__all__ = ["LASTS", "TAU", "Simulation", "Trajectory", "TrajectoryStep", "lasting"]

TAU, LASTS = 0.9, 100  # a ranking is good when tau stays at .9 for this many more judgments
SHOWN = (
    "policy", "model", "seed", "judged", "confidence", "accuracy", "tau", "tau_top15", "mae", "calibration_excess",
    "coverage",
)  # fmt: skip


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


def lasting(
    steps: Sequence[TrajectoryStep], tau: float = TAU, lasts: int = LASTS, *, exhausted: bool = False
) -> int | None:
    """Return the first number of judgments from which tau stays at least ``tau`` for ``lasts`` more; None if never.

    With ``exhausted`` (every pair is judged) tau need only stay until the end.
    """
    first: int | None = None
    for step in steps:
        if not step.tau >= tau - TIE:  # NaN for a single system
            first = None
        elif first is None:
            first = step.judged
        if first is not None and step.judged >= first + lasts:
            return first
    return first if exhausted else None


@dataclass(frozen=True, repr=False)
class Trajectory(Result):
    """One replay of a campaign by one policy.

    Parameters
    ----------
    policy, model, metric, seed
        The policy, the model, the measure and the seed.
    pool, offered, systems
        The numbers of pairs, of pairs that could be judged, and of systems.
    stopping, until, noise
        The stopping rule, empty for none, the share of the pool at which trajectories end, and the probability that the
        assessor's grade is wrong.
    test, rule_settings
        The test behind "significant", and the settings of rule 4.
    steps
        One per batch.
    points, rules
        One per checkpoint: all figures, and the decisions of the rules of Urbano and Schedl (2012).
    stop, at_stop, reasons
        The first step at which the stopping rule held, its figures, and the rules that held; None if it never did.
    order
        The pairs in the order in which they were judged.
    queries, judged_by
        The query of each of them, by its position, and the assessor who judged it; None for those of a pilot.
    probabilities
        The probability of each of them that was drawn at random; None for those that the policy chose.
    audit, alarm
        The level and the systems by the model and by the pairs drawn at random, at the end; the number of judgments at
        which the alarm was raised, None if never. A pilot is not audited.
    campaign, kind
        The name of the campaign, and the kind of the model (:func:`probeval.selection.model_kind`).
    """

    policy: str
    model: str
    metric: str
    seed: int
    pool: int
    offered: int
    systems: int
    steps: tuple[TrajectoryStep, ...]
    points: tuple[Point, ...]
    rules: tuple[RuleDecisions, ...]
    stop: TrajectoryStep | None
    reasons: tuple[str, ...]
    order: tuple[int, ...]
    at_stop: Point | None = None
    queries: tuple[int, ...] = ()
    judged_by: tuple[int | None, ...] = ()
    probabilities: tuple[float | None, ...] = ()
    audit: AuditReport | None = None
    alarm: int | None = None
    stopping: str = ""
    until: float = 1.0
    noise: float = 0.0
    test: str = "t"
    rule_settings: RuleSettings = field(default_factory=RuleSettings)
    assessors: int = 1
    topics: str = "free"
    stay: float = 0.0
    campaign: str = ""
    kind: str = ""

    @property
    def switches(self) -> float:
        """The number of times per 100 judgments that an assessor changed topic, until the stop, or the end."""
        shares = self.work()
        judged = sum(share["judgments"] for share in shares)
        return sum(share["judgments"] * share["switches"] for share in shares) / judged if judged else 0.0

    def work(self) -> list[AssessorDocument]:
        """The judgments of each assessor and their switches, until the stop, or the end."""
        n = (self.stop or self.steps[-1]).judged
        mine = [
            [q for q, a in zip(self.queries[:n], self.judged_by[:n], strict=True) if a == who]
            for who in range(self.assessors)
        ]
        return [
            {
                "assessor": who + 1,
                "judgments": len(queries),
                "switches": 100 * sum(map(ne, queries, queries[1:])) / max(len(queries), 1),
            }
            for who, queries in enumerate(mine)
        ]

    @property
    def ending(self) -> Ending:
        """How it ended: the stopping rule held, or not until the end, or not even with every pair judged.

        ``"stopped"``, ``"until"`` (at the share of the pool at which trajectories end) or ``"exhausted"`` (every pair
        that could be judged was).
        """
        if self.stop is not None:
            return "stopped"
        return "exhausted" if self.steps[-1].judged >= self.offered else "until"

    @property
    def judgments_to_tau90(self) -> int | None:
        """The first number of judgments from which tau stays at least .9 for 100 more; None if it never does."""
        return lasting(self.steps, exhausted=self.steps[-1].judged >= self.offered)

    @property
    def label(self) -> str:
        """The label in plots and tables."""
        return f"{self.policy}:{self.model}"

    @property
    def significant(self) -> int | None:
        """The first number of judgments at which all significant comparisons have the right sign; None if never."""
        return next((s.judged for s in self.steps if s.significant >= 1), None)

    def reaches(self, confidence: float) -> int | None:
        """Return the first number of judgments with this mean confidence; None if never reached."""
        return next((s.judged for s in self.steps if s.confidence >= confidence), None)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per batch: judged, confidence, accuracy, tau, significant, sd and mae of scores."""
        return pd.DataFrame([vars(step) for step in self.steps])

    def _headline(self) -> str:
        return f"{self.metric} by {self.label}, {self.steps[-1].judged:,} of {self.pool:,} pairs judged"

    def tables(self) -> tuple[Table, ...]:
        """Return one row per checkpoint."""
        points = pd.DataFrame([point.to_dict() for point in self.points])
        shown = [c for c in SHOWN if c in points.columns]
        return (Table(points[shown], self._headline()),)

    def sentences(self) -> tuple[str, ...]:
        """Return a sentence on the stop and its accuracy."""
        at = self.stop or self.steps[-1]
        rule = f"The stopping rule {self.stopping} did not hold" if self.stopping else "No stopping rule"
        how = {
            "stopped": f"Stopped ({'; '.join(self.reasons)}) after",
            "until": f"{rule}; ended after",
            "exhausted": f"{rule}; ended with every pair judged that could be, after",
        }[self.ending]
        share = f"{at.judged / self.pool:.1%} of the pool"
        stop = f"{how} {at.judged:,} judgments ({share}): accuracy {at.accuracy:.3f}, tau {at.tau:.3f}."
        return (stop, *(() if self.audit is None else self.audit.sentences()))

    def to_dict(self) -> TrajectoryDocument:
        """Return the trajectory as plain data for JSON."""
        at = self.stop or self.steps[-1]
        return {
            "policy": self.policy,
            "model": self.model,
            "seed": self.seed,
            "ending": self.ending,
            "judged": self.steps[-1].judged,
            "judgments_to_tau90": self.judgments_to_tau90,
            "alarm": self.alarm,
            "switches": self.switches,
            "assessors": self.work(),
            "stop": {
                "reached": self.stop is not None,
                "judged": at.judged,
                "fraction": at.judged / self.pool,
                "confidence": at.confidence,
                "accuracy": at.accuracy,
                "tau": at.tau,
                "accuracy_p": None if self.at_stop is None else self.at_stop.accuracy_p,
                "reasons": list(self.reasons),
            },
            "points": [point.to_dict() for point in self.points],
            "rules": [decisions.to_dict() for decisions in self.rules],
        }


@dataclass(frozen=True, repr=False)
class Simulation(Result):
    """Several trajectories of one campaign.

    Parameters
    ----------
    trajectories
        In the order of the policies and seeds.
    """

    trajectories: tuple[Trajectory, ...]

    def to_dict(self) -> SimulationDocument:
        """Return the result as plain data for JSON."""
        first = self.trajectories[0]
        return {
            "metric": first.metric,
            "pool": first.pool,
            "offered": first.offered,
            "systems": first.systems,
            "stopping": first.stopping,
            "until": first.until,
            "noise": first.noise,
            "test": first.test,
            "rule_settings": str(first.rule_settings),
            "topics": first.topics,
            "stay": first.stay,
            "policies": [trajectory.to_dict() for trajectory in self.trajectories],
            "over_seeds": summarise_seeds(self.trajectories),
            "comparisons": compare_policies(self.trajectories),
        }

    def to_frame(self) -> pd.DataFrame:
        """Return one row per trajectory and checkpoint: policy, model, seed, and all figures."""
        return pd.DataFrame(
            [
                {"policy": c.policy, "model": c.model, "seed": c.seed, **point.to_dict()}
                for c in self.trajectories
                for point in c.points
            ]
        )

    def stops(self) -> pd.DataFrame:
        """Return one row per trajectory: how it ended, its stop, or its end, and the judgments to tau .9."""
        rows = []
        for trajectory in self.trajectories:
            stop = trajectory.to_dict()["stop"]
            rows.append(
                {
                    "policy": trajectory.policy,
                    "model": trajectory.model,
                    "seed": trajectory.seed,
                    "ending": trajectory.ending,
                    "judged": stop["judged"],
                    "fraction": stop["fraction"],
                    "confidence": stop["confidence"],
                    "accuracy": stop["accuracy"],
                    "tau": stop["tau"],
                }
            )
        frame = pd.DataFrame(rows)
        # dtype object: counts stay integers if some are missing.
        frame.insert(3, "to tau .9", pd.Series([c.judgments_to_tau90 for c in self.trajectories], dtype=object))
        return frame

    def rule_decisions(self) -> pd.DataFrame:
        """Return one row per trajectory and checkpoint: what the rules of Urbano and Schedl (2012) decide.

        The number of judgments, the share of pairs of systems decided, precision, recall and F of the differences
        decided to be significant, and the threshold of rule 4.
        """
        return pd.DataFrame(
            [
                {"policy": t.policy, "model": t.model, "seed": t.seed, **decisions.to_dict()}
                for t in self.trajectories
                for decisions in t.rules
            ]
        )

    def work(self) -> pd.DataFrame:
        """Return one row per trajectory and assessor: their judgments, and the switches per 100 of them."""
        return pd.DataFrame(
            [
                {"policy": t.policy, "model": t.model, "seed": t.seed, **share}
                for t in self.trajectories
                for share in t.work()
            ]
        )

    def over_seeds(self, *, level: float = LEVEL) -> pd.DataFrame:
        """Return the mean of each figure over the seeds of each policy, with its interval (Student's t).

        One row per policy and figure: ``judgments_at_stop``, ``judgments_to_tau90``, ``confidence_at_stop``,
        ``accuracy_at_stop`` and ``tau_at_stop``. The mean is over the seeds that got there, ``reached`` of ``seeds``.
        """
        return as_table(summarise_seeds(self.trajectories, level=level))

    def compare_policies(self, *, level: float = LEVEL) -> pd.DataFrame:
        """Return the difference in judgments between every two policies, paired by seed.

        One row per pair of policies and figure (judgments at the stop, judgments to tau .9): the mean of the
        differences with its interval, the numbers of seeds with which the first policy needs fewer judgments and more,
        and the verdict: ``fewer`` or ``more`` if the interval excludes 0, or, if one of the two did not get there with
        every seed, by the sign test of these numbers.
        """
        return as_table(compare_policies(self.trajectories, level=level))

    def _headline(self) -> str:
        first = self.trajectories[0]
        return f"{first.metric}, {', '.join(dict.fromkeys(t.label for t in self.trajectories))}, {first.pool:,} pairs"

    def tables(self) -> tuple[Table, ...]:
        """Return one row per trajectory and checkpoint, one row per trajectory, and with several seeds their means."""
        along = Table(self.to_frame().reindex(columns=list(SHOWN)), f"{self.trajectories[0].metric} at checkpoints")
        views = [along, Table(self.stops(), "At the stop, or at the end")]
        first = self.trajectories[0]
        if first.assessors > 1 or first.stay:
            views.append(
                Table(self.work(), "Assessors: judgments, and switches of topic per 100 of them", {"switches": 1})
            )
        seeds = len({t.seed for t in self.trajectories})
        if seeds > 1:
            views.append(Table(self.over_seeds(), f"Means over {seeds} seeds, {LEVEL:.0%} intervals"))
        compared = self.compare_policies()
        if seeds > 1 and len(compared):
            title = f"Judgments of policy less those of other, {LEVEL:.0%} intervals"
            views.append(Table(compared, title, dict.fromkeys(("difference", "lower", "upper"), 1)))
        return tuple(views)
