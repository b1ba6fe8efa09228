"""The events of a campaign. The log of these events is the campaign; everything else is computed from it.

.. code-block:: text

    Created           the campaign was created, with these settings
    Changed           settings changed
    GuidelineChanged  the assessors' guideline changed; versions count from 1
    QueryGuidelinesChanged  the guidelines of some queries changed; versions count on
    QueriesChanged    query texts were added or replaced
    GoldChanged       the questions with a known answer changed
    TopicsAssigned    topics were given to assessors
    Leased            a question was given to an assessor until a time
    Released          a lease ended early
    Answered          an assessor answered a question
    Withdrawn         an answer was withdrawn; the assessor's previous one, if any, counts again
    Skipped           an assessor left a question to others
    Flagged           an assessor reported a problem with a document
    Commented         a comment on a document
    Settled           the answer to a question was settled, overriding all others
    Imported          a file was imported; its answers follow as separate events
    Labelled          machine labels were imported: evidence, never judgments
    RunsAdded         late runs joined: the pool grew
    PhaseChanged      the campaign was paused, resumed, closed or reopened
    Invited           a person got a link to sign in with, and a role
    Revoked           a person may no longer sign in
    SetAside          the answers of a person do not count, earlier and later ones; their questions open again
    Restored          the answers of a person count again
    SignedIn          a person exchanged their link for a session
    SignedOut         a session ended

Answers, settled answers and known answers have a class for each kind of question, in the file of the kind (``kinds/``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar

from probeval.campaign.questions import GRADE, Kind, Pair, Question, kind_of
from probeval.campaign.setup import Setup
from probeval.display import Record
from probeval.selection import Pick

__all__ = [
    "Answered",
    "Changed",
    "Commented",
    "Created",
    "Event",
    "Flagged",
    "GoldChanged",
    "GuidelineChanged",
    "Imported",
    "Invited",
    "Labelled",
    "Leased",
    "PairEvent",
    "Phase",
    "PhaseChanged",
    "QueriesChanged",
    "QueryGuidelinesChanged",
    "QuestionEvent",
    "Released",
    "Restored",
    "Revoked",
    "Role",
    "RunsAdded",
    "SetAside",
    "Settled",
    "SignedIn",
    "SignedOut",
    "Skipped",
    "TaskPurpose",
    "TopicsAssigned",
    "Withdrawn",
]


class Phase(StrEnum):
    """Whether a campaign goes on."""

    open = "open"
    paused = "paused"
    closed = "closed"


class TaskPurpose(StrEnum):
    """The reason why an assessor gets a question: for the answer, or to check their work."""

    judgment = "judgment"
    gold = "gold"  # the answer is known
    repeat = "repeat"  # they answered it before
    aside = "aside"  # for the answer, which is set aside with all answers of the person; never so in the log


class Role(StrEnum):
    """What a person may do: judge; also settle disagreements; also see the ranking, export and change the campaign."""

    assessor = "assessor"
    adjudicator = "adjudicator"
    owner = "owner"


@dataclass(frozen=True, kw_only=True, repr=False)
class Event(Record):
    """An event of a campaign.

    Parameters
    ----------
    by
        The person who caused it.
    time
        The time, in seconds since 1970.
    number
        Its position in the log: 1, 2, 3, .. without gaps. 0 before it is in the log.
    token
        The sender's name for the request, so that a request sent twice counts once.
    """

    kind: ClassVar[str] = ""
    by: str
    time: float
    number: int = 0
    token: str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class PairEvent(Event):
    """An event about a document of a query."""

    query: str
    doc: str

    @property
    def pair(self) -> Pair:
        """The query and the document."""
        return self.query, self.doc


@dataclass(frozen=True, kw_only=True, repr=False)
class QuestionEvent(Event):
    """An event about a question.

    Parameters
    ----------
    query, documents
        Its query, and its documents as the assessor saw them.
    """

    query: str
    documents: tuple[str, ...]

    @property
    @abstractmethod
    def asked(self) -> Kind:
        """The kind of the question."""

    @cached_property
    def question(self) -> Question:
        """The question, whichever way its documents were shown."""
        return self.asked.question(self.query, self.documents)


@dataclass(frozen=True, kw_only=True, repr=False)
class TaskEvent(QuestionEvent):
    """An event about a question that an assessor got.

    Parameters
    ----------
    asks
        The name of its kind.
    """

    asks: str = GRADE

    @property
    def asked(self) -> Kind:
        """The kind of the question."""
        return kind_of(self.asks)


@dataclass(frozen=True, kw_only=True, repr=False)
class Answered(QuestionEvent):
    """An assessor answered a question. Each kind of question has a class with the fields of its answer.

    Parameters
    ----------
    comment
        A remark of the assessor.
    guideline
        The version of the guideline that it was made under; 0 for none, or for an imported answer.
    source
        The file that it was imported from; empty if it was made in this campaign.
    at
        The time at which it was made, if known and different from the time of the event.
    seconds
        The time that the assessor spent on it, without breaks; None if it was not measured.
    purpose
        The reason why they were asked. An answer to a gold or a repeated question is not evidence.
    """

    asks: ClassVar[str]
    comment: str = ""
    guideline: int = 0
    source: str = ""
    at: float | None = None
    seconds: float | None = None
    purpose: TaskPurpose = TaskPurpose.judgment

    @property
    def asked(self) -> Kind:
        """The kind of the question."""
        return kind_of(self.asks)

    @property
    def counts(self) -> bool:
        """Whether it is evidence."""
        return self.purpose is TaskPurpose.judgment

    @property
    def when(self) -> float:
        """The time at which it was made."""
        return self.time if self.at is None else self.at


@dataclass(frozen=True, kw_only=True, repr=False)
class Settled(QuestionEvent):
    """The answer to a question was settled; it overrides all answers of assessors, earlier and later."""

    asks: ClassVar[str]
    reason: str = ""

    @property
    def asked(self) -> Kind:
        """The kind of the question."""
        return kind_of(self.asks)


@dataclass(frozen=True, kw_only=True, repr=False)
class GoldChanged(Event):
    """The known answers to questions of one kind are these from now on. Earlier ones no longer are."""

    asks: ClassVar[str]

    @property
    @abstractmethod
    def known(self) -> dict[Question, Any]:
        """The known answer of each question."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Created(Event):
    """The campaign was created."""

    kind = "created"
    setup: Setup


@dataclass(frozen=True, kw_only=True, repr=False)
class Changed(Event):
    """The settings changed to these."""

    kind = "changed"
    setup: Setup


@dataclass(frozen=True, kw_only=True, repr=False)
class GuidelineChanged(Event):
    """The guideline changed. Judgments keep the version that they were made under."""

    kind = "guideline"
    version: int
    text: str


@dataclass(frozen=True, kw_only=True, repr=False)
class QueryGuidelinesChanged(Event):
    """The guidelines of some queries changed, by id; an empty text removes one.

    Versions count all changes of guidelines, so the version of a judgment names the texts that it was made under.
    """

    kind = "query guidelines"
    version: int
    texts: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, repr=False)
class QueriesChanged(Event):
    """Query texts were added or replaced, by id."""

    kind = "queries"
    texts: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, repr=False)
class TopicsAssigned(Event):
    """Topics were given to assessors, by the id of the query; an empty name leaves a topic to all."""

    kind = "topics"
    owners: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, repr=False)
class Leased(TaskEvent):
    """A question was given to an assessor until a time.

    Parameters
    ----------
    until
        The time.
    pick
        The prediction of the pair when the model proposed it, and its probability if it was drawn at random; None if
        the model did not propose it, and in logs of earlier versions.
    purpose
        The reason why they get it.
    """

    kind = "leased"
    until: float
    pick: Pick | None = None
    purpose: TaskPurpose = TaskPurpose.judgment


@dataclass(frozen=True, kw_only=True, repr=False)
class Released(TaskEvent):
    """An assessor's lease of a question ended early."""

    kind = "released"


@dataclass(frozen=True, kw_only=True, repr=False)
class Withdrawn(TaskEvent):
    """An answer, named by its number and with its purpose, was withdrawn."""

    kind = "withdrawn"
    judgment: int
    purpose: TaskPurpose = TaskPurpose.judgment


@dataclass(frozen=True, kw_only=True, repr=False)
class Skipped(TaskEvent):
    """An assessor left a question to others."""

    kind = "skipped"
    reason: str = ""


@dataclass(frozen=True, kw_only=True, repr=False)
class Flagged(PairEvent):
    """An assessor reported a problem with a document: no text, wrong language, a duplicate."""

    kind = "flagged"
    reason: str = ""


@dataclass(frozen=True, kw_only=True, repr=False)
class Commented(PairEvent):
    """A comment on a document."""

    kind = "commented"
    text: str


@dataclass(frozen=True, kw_only=True, repr=False)
class Imported(Event):
    """A file was imported; this number of judgments, or of answers about two documents, follows."""

    kind = "imported"
    source: str
    judgments: int
    answers: int = 0


@dataclass(frozen=True, kw_only=True, repr=False)
class Labelled(Event):
    """Machine labels were imported; the table is a part of the store."""

    kind = "labelled"
    source: str
    part: str
    columns: tuple[str, ...]
    pairs: int


@dataclass(frozen=True, kw_only=True, repr=False)
class RunsAdded(Event):
    """Late runs joined; they are a part of the store.

    Parameters
    ----------
    source
        The files that they were read from.
    part
        The part of the store.
    systems
        The names of the new systems.
    pairs
        The number of pairs that the pool gained.
    """

    kind = "runs"
    source: str
    part: str
    systems: tuple[str, ...]
    pairs: int


@dataclass(frozen=True, kw_only=True, repr=False)
class PhaseChanged(Event):
    """The campaign was paused, resumed, closed or reopened."""

    kind = "phase"
    phase: Phase
    reason: str = ""


@dataclass(frozen=True, kw_only=True, repr=False)
class Invited(Event):
    """A person may sign in with a token, of which only the digest is kept. An earlier token of theirs ends.

    Parameters
    ----------
    assessor
        The person.
    role
        What they may do.
    digest
        The SHA-256 digest of the token.
    until
        The time at which the token ends, in seconds since 1970; None for never.
    """

    kind = "invited"
    assessor: str
    role: Role
    digest: str
    until: float | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Revoked(Event):
    """A person may no longer sign in, and their sessions ended."""

    kind = "revoked"
    assessor: str


@dataclass(frozen=True, kw_only=True, repr=False)
class SetAside(Event):
    """The answers of a person do not count, earlier and later ones, until they are restored."""

    kind = "set aside"
    assessor: str
    reason: str = ""


@dataclass(frozen=True, kw_only=True, repr=False)
class Restored(Event):
    """The answers of a person, which were set aside, count again."""

    kind = "restored"
    assessor: str
    reason: str = ""


@dataclass(frozen=True, kw_only=True, repr=False)
class SignedIn(Event):
    """A person exchanged their token for a session.

    Parameters
    ----------
    digest
        The SHA-256 digest of the session's secret.
    until
        The time at which it ends, in seconds since 1970.
    """

    kind = "signed in"
    digest: str
    until: float


@dataclass(frozen=True, kw_only=True, repr=False)
class SignedOut(Event):
    """A session, named by its digest, ended."""

    kind = "signed out"
    digest: str
