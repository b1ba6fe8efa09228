"""The types of simulations as plain data."""

from __future__ import annotations

from typing import Literal, TypedDict

from probeval.simulation.points import PointDocument
from probeval.simulation.seeds import PolicyComparison, SeedSummary
from probeval.simulation.significance_rules import RuleDecisionsDocument

__all__ = [
    "AssessorDocument",
    "Ending",
    "ReasonedStopDocument",
    "SimulationDocument",
    "StopDocument",
    "TrajectoryDocument",
]

Ending = Literal["stopped", "until", "exhausted"]


class StopDocument(TypedDict):
    """The stop of a trajectory.

    Parameters
    ----------
    reached
        Whether the stopping rule held; if it never did, the other figures are those of the end.
    judged, fraction
        The number of judged pairs, and their share of the pool.
    confidence, accuracy, tau
        The stated confidence, and the accuracy and tau of the ranking.
    """

    reached: bool
    judged: int
    fraction: float
    confidence: float
    accuracy: float
    tau: float


class ReasonedStopDocument(StopDocument):
    """The stop of a trajectory, its reasons, and whether its accuracy is as stated.

    Parameters
    ----------
    reached
        Whether the stopping rule held; if it never did, the other figures are those of the end.
    judged, fraction
        The number of judged pairs, and their share of the pool.
    confidence, accuracy, tau
        The stated confidence, and the accuracy and tau of the ranking.
    accuracy_p
        The probability that a perfectly calibrated model is right about no more pairs of systems; null if the rule
        never held.
    reasons
        The rules that held.
    """

    accuracy_p: float | None
    reasons: list[str]


class AssessorDocument(TypedDict):
    """The work of one simulated assessor, until the stop, or the end.

    Parameters
    ----------
    assessor, judgments
        A number from 1, and the number of their judgments.
    switches
        The number of times per 100 judgments that they changed topic.
    """

    assessor: int
    judgments: int
    switches: float


class TrajectoryDocument(TypedDict):
    """One replay of a campaign by one policy.

    Parameters
    ----------
    policy, model, seed
        The policy, the model and the seed.
    ending, judged
        ``"stopped"`` (the stopping rule held), ``"until"`` (it did not hold before the share of the pool at which
        trajectories end) or ``"exhausted"`` (nor when every pair that could be judged was); and the number of judgments
        of the whole trajectory, which goes on past the stop.
    judgments_to_tau90
        The first number of judgments from which tau stays at least .9 for 100 more; null if never.
    alarm
        The number of judgments at which the audit raised its alarm; null if never.
    switches, assessors
        The number of times per 100 judgments that an assessor changed topic, until the stop, or the end; and one entry
        per assessor.
    points, rules
        One entry per checkpoint.
    """

    policy: str
    model: str
    seed: int
    ending: Ending
    judged: int
    judgments_to_tau90: int | None
    alarm: int | None
    switches: float
    assessors: list[AssessorDocument]
    stop: ReasonedStopDocument
    points: list[PointDocument]
    rules: list[RuleDecisionsDocument]


class SimulationDocument(TypedDict):
    """Replays of a campaign by several policies.

    Parameters
    ----------
    metric, pool, offered, systems
        The measure, the numbers of pairs and of pairs that could be judged, and the number of systems.
    stopping, until, noise
        The stopping rule, empty for none, the share of the pool at which trajectories end, and the probability that the
        assessor's grade is wrong.
    test, rule_settings
        The test behind "significant", and the settings of rule 4 of Urbano and Schedl (2012).
    topics, stay
        How topics are given to assessors, and the price of switching, in judgments.
    policies
        One entry per policy and seed.
    over_seeds
        One entry per policy and figure: its mean over the seeds.
    comparisons
        One entry per pair of policies and figure: the difference in judgments, seed by seed.
    """

    metric: str
    pool: int
    offered: int
    systems: int
    stopping: str
    until: float
    noise: float
    test: str
    rule_settings: str
    topics: str
    stay: float
    policies: list[TrajectoryDocument]
    over_seeds: list[SeedSummary]
    comparisons: list[PolicyComparison]
