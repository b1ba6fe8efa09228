"""JSON output of ``probeval campaign`` and ``probeval judge``: tasks, events, texts, people, checks."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

__all__ = [
    "AddressDocument",
    "AnsweredDocument",
    "CampaignCheckDocument",
    "ChangeDocument",
    "ContestedDocument",
    "DisagreementDocument",
    "DisagreementsDocument",
    "EventDocument",
    "GuidelineDocument",
    "HistoryDocument",
    "ImportDocument",
    "InvitationDocument",
    "PersonDocument",
    "PhaseDocument",
    "QueriesDocument",
    "QueryGuideline",
    "QueryGuidelinesDocument",
    "QueryText",
    "RevokedDocument",
    "RunsAddedDocument",
    "SettingChange",
    "StoreCheckDocument",
    "TaskDocument",
    "TasksDocument",
]


class AddressDocument(TypedDict):
    """The address of the judging page."""

    url: str
    campaign: str


class TaskDocument(TypedDict):
    """A question for an assessor.

    Parameters
    ----------
    doc, other
        The document to grade, and empty text; or the documents to compare, on the left and on the right.
    asks
        The kind of question: grade, preference or magnitude.
    text
        The text of the query.
    until
        The end of the lease, in seconds since 1970.
    switched
        Whether the query differs from that of the assessor's last question; true for their first.
    judged_in_topic, left_in_topic
        The questions of the query that the assessor has answered, and those that are worth staying for now.
    """

    query: str
    doc: str
    other: str
    asks: str
    text: str
    until: float
    switched: bool
    judged_in_topic: int
    left_in_topic: int


class TasksDocument(TypedDict):
    """Questions for an assessor."""

    assessor: str
    next: list[TaskDocument]


class EventDocument(TypedDict):
    """An event of the log.

    Parameters
    ----------
    doc, other
        The document; of two, the one on the left and the one on the right.
    grade, choice
        The grade of the document; the better of two documents: left, right, equal, or empty with numbers alone.
    """

    number: int
    event: str
    query: str
    doc: str
    by: str
    other: NotRequired[str]
    grade: NotRequired[float]
    choice: NotRequired[str]


class AnsweredDocument(TypedDict):
    """What an assessor did on the terminal: the numbers of grades, comparisons, skips and withdrawals."""

    assessor: str
    graded: int
    compared: int
    skipped: int
    withdrawn: int


class DisagreementDocument(TypedDict):
    """A pair whose assessors disagree.

    Parameters
    ----------
    grades, comments
        The grades and comments of each assessor.
    query_text, guideline, text
        The text of the query, its own guideline, and the text of the document; empty if unknown.
    """

    query: str
    doc: str
    grades: str
    comments: str
    query_text: str
    guideline: str
    text: str


class ContestedDocument(TypedDict):
    """A comparison whose assessors prefer different documents, and the answer of each."""

    query: str
    left: str
    right: str
    answers: str


class DisagreementsDocument(TypedDict):
    """The pairs and the comparisons with open disagreements."""

    disagreements: list[DisagreementDocument]
    comparisons: list[ContestedDocument]


class GuidelineDocument(TypedDict):
    """The guideline for assessors; version 0 if there is none."""

    version: int
    text: str


class QueryGuideline(TypedDict):
    """The guideline of one query; version 0 if there is none."""

    query: str
    version: int
    text: str


class QueryGuidelinesDocument(TypedDict):
    """The guidelines of single queries."""

    guidelines: list[QueryGuideline]


class QueryText(TypedDict):
    """The text of a query."""

    query: str
    text: str


class QueriesDocument(TypedDict):
    """The texts of the queries."""

    queries: list[QueryText]


class ImportDocument(TypedDict):
    """The imported judgments, answers about two documents, their assessors, labelled pairs and their machines."""

    judgments: int
    answers: int
    assessors: str
    labelled: int
    machines: str


class SettingChange(TypedDict):
    """A setting, and its values before and after a change, as text."""

    setting: str
    before: str
    after: str


class ChangeDocument(TypedDict):
    """A change of settings: the number of the event, its author, and the settings that changed."""

    number: int
    by: str
    changes: list[SettingChange]


class PhaseDocument(TypedDict):
    """The phase that a campaign is in now, and the event that changed it."""

    number: int
    phase: Literal["open", "paused", "closed"]
    reason: str
    by: str


class HistoryDocument(TypedDict):
    """A change of a campaign.

    Parameters
    ----------
    time
        In seconds since 1970.
    what
        What changed, in one line.
    """

    number: int
    time: float
    by: str
    event: str
    what: str


class RunsAddedDocument(TypedDict):
    """Late runs: the number of the event, the new systems, the new pairs, and all pairs of the pool."""

    number: int
    systems: list[str]
    pairs: int
    pool: int


class InvitationDocument(TypedDict):
    """An invitation: the link to sign in with, and its end in seconds since 1970, null for never."""

    assessor: str
    role: Literal["assessor", "adjudicator", "owner"]
    until: float | None
    link: str


class PersonDocument(TypedDict):
    """A person who may sign in.

    Parameters
    ----------
    invited, until, signed_in
        The time of the invitation, its end (null for never), and of the last sign-in (null for none), in seconds since
        1970.
    """

    assessor: str
    role: Literal["assessor", "adjudicator", "owner"]
    invited: float
    until: float | None
    signed_in: float | None


class RevokedDocument(TypedDict):
    """A revoked invitation."""

    number: int
    assessor: str
    by: str


class CampaignCheckDocument(TypedDict):
    """The check of a campaign: the numbers of its events, judgments and parts, and of the faults."""

    campaign: str
    events: int
    judgments: int
    parts: int
    faults: int


class StoreCheckDocument(TypedDict):
    """The check of a store, with one line per fault."""

    store: str
    campaigns: list[CampaignCheckDocument]
    faults: list[str]
