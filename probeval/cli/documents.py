"""The JSON that verbs print where no result class has it: lists, events, installations, reports."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from probeval.metrics.classical import MeasuredDocument
from probeval.scores.documents import EvaluateDocument, RankingDocument

__all__ = [
    "AddressDocument",
    "CheckDocument",
    "DemoDocument",
    "DisagreementDocument",
    "DisagreementsDocument",
    "DoctorDocument",
    "Evaluations",
    "EventDocument",
    "FairnessDocument",
    "GuidelineDocument",
    "ImportDocument",
    "MilestoneDocument",
    "ModelDocument",
    "QueriesDocument",
    "QueryText",
    "ReportDocument",
    "TaskDocument",
    "TasksDocument",
    "TruthDocument",
    "VerbDocument",
]


class Evaluations(TypedDict):
    """Several evaluations, one per measure."""

    results: list[EvaluateDocument | MeasuredDocument]


class TeamDocument(TypedDict):
    """How a team, or a system where there are no teams, was judged.

    Parameters
    ----------
    systems, pairs, judged
        How many systems and pairs it has, and the share of these pairs that is judged.
    own, own_judged
        How many pairs it alone retrieved, and the share of these that is judged.
    score, left_out, shift
        Its mean score, what that would be had it not taken part in the pool, and how many places it would fall.
    """

    team: str
    systems: int
    pairs: int
    judged: float
    own: int
    own_judged: float
    score: float
    left_out: float
    shift: int


class FairnessDocument(TypedDict):
    """How every team was judged."""

    teams: list[TeamDocument]


class ModelDocument(TypedDict):
    """A model that ships.

    Parameters
    ----------
    campaigns
        How many campaigns it was fitted on.
    """

    name: str
    kind: str
    scale: str
    depth: int
    campaigns: int
    title: str


class CheckDocument(TypedDict):
    """One thing that was looked at."""

    what: str
    found: str
    status: Literal["ok", "optional", "missing"]
    note: str


class DoctorDocument(TypedDict):
    """The state of the installation.

    Parameters
    ----------
    ok
        Whether everything that is required is there.
    """

    version: str
    ok: bool
    checks: list[CheckDocument]


class FigureDocument(TypedDict):
    """A figure that one looks for first."""

    what: str
    value: str
    note: str


class ReportDocument(TypedDict):
    """A report that was written.

    Parameters
    ----------
    report, kind, title
        Where it is, what it is about, and what it is called.
    lead, figures
        What was found, in a sentence or two, and the figures that one looks for first.
    sections, paragraph
        The titles of its sections, and the paragraph for a paper.
    """

    report: str
    kind: Literal["evaluation", "campaign", "simulation"]
    title: str
    lead: str
    figures: list[FigureDocument]
    sections: list[str]
    paragraph: str


class MilestoneDocument(TypedDict):
    """How things stand after so many judgments.

    Parameters
    ----------
    judged
        Pairs of the pool with a grade.
    confidence, expected_tau, p_best, half_width
        Of the ranking: the mean over pairs of systems, the tau that is expected, the probability that the leader is the
        best, and the mean half-width of the 95% intervals.
    erho2, erho2_lower, erho2_upper, phi, phi_lower, phi_upper
        The reliability of the scores as judged so far.
    """

    judged: int
    confidence: float
    expected_tau: float
    p_best: float
    half_width: float
    erho2: float
    erho2_lower: float
    erho2_upper: float
    phi: float
    phi_lower: float
    phi_upper: float


class TruthDocument(TypedDict):
    """What all judgments of the campaign say.

    Parameters
    ----------
    tau, accuracy
        The agreement of the ranking with the true one.
    erho2, phi
        The reliability of the true scores.
    decided, right
        How many comparisons were decided, and how many of them are right.
    """

    tau: float
    accuracy: float
    erho2: float
    phi: float
    decided: int
    right: int


class DemoDocument(TypedDict):
    """The story of the demo: the ranking before and after judging, and the truth."""

    model: str
    before: RankingDocument
    milestones: list[MilestoneDocument]
    after: RankingDocument
    truth: TruthDocument
    report: NotRequired[str]


class AddressDocument(TypedDict):
    """Where the judging page is served."""

    url: str
    campaign: str


class TaskDocument(TypedDict):
    """A pair for an assessor.

    Parameters
    ----------
    text
        The text of the query.
    until
        When the lease runs out, in seconds since 1970.
    """

    query: str
    doc: str
    text: str
    until: float


class TasksDocument(TypedDict):
    """Pairs for an assessor."""

    assessor: str
    next: list[TaskDocument]


class EventDocument(TypedDict):
    """An event of the log: what happened, to what, by whom."""

    number: int
    event: str
    query: str
    doc: str
    by: str
    grade: NotRequired[float]


class DisagreementDocument(TypedDict):
    """A pair whose assessors differ: their grades, and what they remarked."""

    query: str
    doc: str
    grades: str
    comments: str


class DisagreementsDocument(TypedDict):
    """The pairs that wait to be settled."""

    disagreements: list[DisagreementDocument]


class GuidelineDocument(TypedDict):
    """What assessors are told; version 0 where there is no guideline."""

    version: int
    text: str


class QueryText(TypedDict):
    """The text of a query."""

    query: str
    text: str


class QueriesDocument(TypedDict):
    """The texts of the queries."""

    queries: list[QueryText]


class ImportDocument(TypedDict):
    """What was taken in: judgments and who made them, labelled pairs and the machines."""

    judgments: int
    assessors: str
    labelled: int
    machines: str


class VerbDocument(TypedDict):
    """A verb whose output has a schema."""

    verb: str
    output: str
