"""JSON output of the verbs without a result class: lists, events, installations, reports."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from probeval.scores.compare import Ranking
from probeval.scores.trust import TrustReport
from probeval.scores.two_systems import DecidedPair

__all__ = [
    "CheckDocument",
    "ConvertDocument",
    "DemoDocument",
    "DoctorDocument",
    "FigureDocument",
    "MilestoneDocument",
    "ModelDocument",
    "ReportDocument",
    "TruthDocument",
]


class ModelDocument(TypedDict):
    """A built-in model.

    Parameters
    ----------
    campaigns
        The number of campaigns that it was fitted on.
    """

    name: str
    kind: str
    scale: str
    depth: int
    campaigns: int
    title: str


class CheckDocument(TypedDict):
    """A check of the installation."""

    what: str
    found: str
    status: Literal["ok", "optional", "missing"]
    note: str


class DoctorDocument(TypedDict):
    """The state of the installation.

    Parameters
    ----------
    ok
        Whether everything required is installed.
    """

    version: str
    ok: bool
    checks: list[CheckDocument]


class FigureDocument(TypedDict):
    """A key figure of a report."""

    what: str
    value: str
    note: str


class ReportDocument(TypedDict):
    """A written report.

    Parameters
    ----------
    report, kind, title
        Its path, its kind and its title.
    lead, figures
        A summary in a sentence or two, and the key figures.
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
    """Results after a number of judgments.

    Parameters
    ----------
    judged
        Pairs of the pool with a grade.
    confidence, expected_tau, p_best, half_width
        Of the ranking: the mean over pairs of systems, the expected tau, the probability that the first system is the
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
    """Results with all judgments of the campaign.

    Parameters
    ----------
    tau_runs, tau_before, tau
        Kendall's tau of the true ranking with those by the runs alone, with labels, and after judging.
    erho2, phi
        The reliability of the true scores.
    decided, right
        The numbers of decided comparisons, and of those that are right.
    slope, correlation
        The worth of the labels: their slope, and their correlation with the grades.
    difference, verdict
        The difference of the two systems of the decision, and the right verdict.
    """

    tau_runs: float
    tau_before: float
    tau: float
    erho2: float
    phi: float
    decided: int
    right: int
    slope: float
    correlation: float | None
    difference: float
    verdict: str


class DemoDocument(TypedDict):
    """The results of the demo: rankings before and after judging, the worth of labels, a decision, and the truth."""

    model: str
    before: Ranking
    milestones: list[MilestoneDocument]
    after: Ranking
    trust: TrustReport
    decision: DecidedPair
    truth: TruthDocument
    report: NotRequired[str]


class ConvertDocument(TypedDict):
    """The file or folder that is written, its format, and how many judgments and assessors it has."""

    file: str
    format: str
    judgments: int
    assessors: int
