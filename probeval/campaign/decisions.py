"""Decisions: requests to a campaign as plain data, and the events that follow from each; those of assessors.

A decision is pure: its events depend on the state and the time alone. The log calls it under the store's lock, and
again if the database rolls the transaction back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar, cast

from probeval.campaign.candidates import QuestionQueues
from probeval.campaign.events import (
    Answered,
    Commented,
    Event,
    Flagged,
    Leased,
    Phase,
    QuestionEvent,
    Released,
    SetAside,
    Settled,
    Skipped,
    TaskPurpose,
    Withdrawn,
)
from probeval.campaign.leases import answer_purpose, lease, lease_new
from probeval.campaign.parsing import as_name, as_seconds, as_text
from probeval.campaign.questions import Pair, Question, kind_of
from probeval.campaign.state import State, fold
from probeval.errors import CampaignError
from probeval.selection import Pick

__all__ = [
    "NOT_CLOSED",
    "Action",
    "Answer",
    "Comment",
    "Decision",
    "Flag",
    "LeaseNext",
    "Outcome",
    "PairAction",
    "QuestionAction",
    "Release",
    "Settle",
    "Skip",
    "Withdraw",
    "too_few_right",
]

A = TypeVar("A")
E = TypeVar("E", bound=Event)
FEWEST_GOLD = 5  # answers to gold questions before too few can be right, without a quiz
NOT_CLOSED = frozenset({Phase.open, Phase.paused})


@dataclass(frozen=True)
class Outcome(Generic[A]):
    """The result of a decision, once it is on disk.

    Parameters
    ----------
    state
        The state after the decision.
    events
        The new events, numbered.
    event
        The event asked for: a new one, or an earlier one if the request was repeated.
    """

    state: State
    events: tuple[Event, ...]
    event: A


class Decision(ABC, Generic[A]):
    """A request to a campaign. ``A`` is the type of the event asked for."""

    phases: ClassVar[frozenset[Phase]] = frozenset(Phase)  # in which it is possible

    def check_phase(self, state: State) -> None:
        """Raise an error if the campaign is in a phase that does not allow this."""
        change = state.phase_change
        if change is not None and state.phase not in self.phases:
            why = f" ({change.reason})" if change.reason else ""
            raise CampaignError(f"The campaign is {state.phase}{why}: nothing was saved.")

    @abstractmethod
    def events(self, state: State, now: float) -> Sequence[Event]:
        """The new events, not yet numbered; a request that is not possible raises :class:`CampaignError`."""

    def take(self, state: State, now: float) -> Outcome[A]:
        """Decide on this state: each new event is folded once."""
        after, events = added(state, self.events(state, now))
        return Outcome(after, events, self.event_asked_for(state, events))

    @abstractmethod
    def event_asked_for(self, state: State, events: Sequence[Event]) -> A:
        """The event asked for, from the state before the decision and the new events, numbered."""

    @property
    def parts(self) -> Mapping[str, bytes]:
        """Parts of the store to add with the events."""
        return {}


def added(state: State, events: Iterable[Event]) -> tuple[State, tuple[Event, ...]]:
    """The state after new events, and these with their numbers."""
    numbered = tuple(replace(event, number=state.number + i) for i, event in enumerate(events, start=1))
    return (fold(state, numbered) if numbered else state), numbered


@dataclass(frozen=True, kw_only=True)
class Action(Decision[E]):
    """A decision for one event by one person, perhaps followed by others.

    A token names the request. If the log already has an event with this token, no second one is added: the earlier
    event is the outcome, provided that it is of the same kind, by the same person, with the same values of the fields
    in ``same_request``.

    Parameters
    ----------
    by
        The person.
    token
        Any text that names the request, or None.
    """

    kind: ClassVar[type[Event]]
    same_request: ClassVar[tuple[str, ...]] = ()
    text_fields: ClassVar[Mapping[str, str]] = MappingProxyType({})  # their names in error messages
    by: str
    token: str | None = None

    def __post_init__(self) -> None:
        self._set(by=as_name(self.by, "a user"))
        if self.token is not None:
            self._set(token=as_name(self.token, "a request"))
        for name, what in self.text_fields.items():
            self._set(**{name: as_text(getattr(self, name), what)})

    @abstractmethod
    def event(self, state: State, now: float) -> E:
        """The event asked for, where the log does not have it yet."""

    def following(self, state: State, event: E, now: float, *, is_new: bool) -> Sequence[Event]:
        """Further events, by the state after the event asked for, which is new unless the request was repeated."""
        return ()

    def events(self, state: State, now: float) -> Sequence[Event]:
        """The event asked for unless the log has it."""
        if self.earlier(state) is not None:
            return ()
        self.check_phase(state)
        return [self.event(state, now)]

    def event_asked_for(self, state: State, events: Sequence[Event]) -> E:
        """The new event, or the earlier event with this token."""
        return cast("E", events[0]) if events else cast("E", self.earlier(state))

    def take(self, state: State, now: float) -> Outcome[E]:
        """Decide on this state: the event asked for, and those that follow from the state after it."""
        first = super().take(state, now)
        after, more = added(first.state, self.following(first.state, first.event, now, is_new=bool(first.events)))
        return Outcome(after, first.events + more, first.event)

    def earlier(self, state: State) -> E | None:
        """The event that the log has for this token, if any; an error if it came from a different request."""
        event = None if self.token is None else state.tokens.get(self.token)
        if event is None:
            return None
        if not self.is_same(event):
            raise CampaignError(
                f"The token {self.token!r} was used for a different request. Use a new token for every request."
            )
        return cast("E", event)

    def is_same(self, event: Event) -> bool:
        """Whether an event is that of the same request."""
        same = ("by", *self.same_request)
        return isinstance(event, self.kind) and all(getattr(event, name) == getattr(self, name) for name in same)

    def _head(self, now: float) -> dict[str, Any]:
        return {"by": self.by, "time": now, "token": self.token}

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True, kw_only=True)
class PairAction(Action[E]):
    """An action on a pair that some run retrieves; by default one of an assessor, in an open campaign."""

    phases = frozenset({Phase.open})
    same_request: ClassVar[tuple[str, ...]] = ("pair",)
    pair: Pair

    def _head(self, now: float) -> dict[str, Any]:
        return {**super()._head(now), "query": self.pair[0], "doc": self.pair[1]}


@dataclass(frozen=True, kw_only=True)
class QuestionAction(Action[E]):
    """An action of an assessor on a question.

    Parameters
    ----------
    question
        The question.
    query, documents
        Its query, and its documents as they were shown; by default as the person holds the question.
    """

    phases = frozenset({Phase.open})
    same_request: ClassVar[tuple[str, ...]] = ("question",)
    question: Question
    query: str = ""
    documents: tuple[str, ...] = ()

    def is_same(self, event: Event) -> bool:
        """Whether an event is that of the same request: also with the documents in the same places, if given."""
        shown = self.documents or getattr(event, "documents", ())
        return super().is_same(event) and cast("QuestionEvent", event).documents == shown

    def _about(self, state: State, now: float) -> dict[str, Any]:
        """The fields that every event about a question has."""
        held = state.leases.get(self.question, {}).get(self.by)
        shown = self.documents or (self.question if held is None else held).documents
        return {**self._head(now), "query": self.query or self.question.query, "documents": shown}


@dataclass(frozen=True, kw_only=True)
class TaskAction(QuestionAction[E]):
    """An action on a question that names its kind."""

    def _about(self, state: State, now: float) -> dict[str, Any]:
        return {**super()._about(state, now), "asks": self.question.kind}


@dataclass(frozen=True, kw_only=True)
class LeaseNext(Decision[Leased | None]):
    """Lease questions to an assessor until they hold ``n``.

    Parameters
    ----------
    assessor
        Their name.
    n
        Questions to hold.
    questions
        From the state at that moment to the questions to lease, beside those that need another opinion.
    picks
        The predictions of the pairs that the model proposed.
    """

    assessor: str
    n: int
    questions: Callable[[State], QuestionQueues]
    picks: Mapping[Question, Pick]

    def events(self, state: State, now: float) -> Sequence[Leased]:
        """The new leases; none unless the campaign is open."""
        if state.phase is not Phase.open:
            return []
        return lease_new(state, self.assessor, self.n, now, self.questions(state), self.picks)

    def event_asked_for(self, state: State, events: Sequence[Event]) -> Leased | None:
        """The first new lease, if any."""
        return cast("Leased", events[0]) if events else None


@dataclass(frozen=True, kw_only=True)
class Answer(QuestionAction[Answered]):
    """Answer a question, and perhaps lease the next ones.

    Parameters
    ----------
    values
        The values of the answer, as its kind has checked them.
    comment, seconds
        A remark, and the time spent, without breaks.
    next
        The next leases.
    """

    kind = Answered
    text_fields = MappingProxyType({"comment": "A comment"})
    values: Mapping[str, Any] = field(default_factory=dict)
    comment: str = ""
    seconds: float | None = None
    next: LeaseNext | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.seconds is not None:
            self._set(seconds=as_seconds(self.seconds))

    def is_same(self, event: Event) -> bool:
        """Whether an event is that of the same request: also with the same values."""
        return super().is_same(event) and all(getattr(event, name) == value for name, value in self.values.items())

    def event(self, state: State, now: float) -> Answered:
        """The answer, under the current guideline."""
        return kind_of(self.question.kind).answered(
            **self._about(state, now),
            **self.values,
            comment=self.comment,
            guideline=state.guideline_version,
            seconds=_spent(state, self.by, self.question, self.seconds, now),
            purpose=answer_purpose(state, self.by, self.question),
        )

    def following(self, state: State, event: Answered, now: float, *, is_new: bool) -> Sequence[Event]:
        """The next leases; none if too few answers to gold questions are right, and the answers are set aside."""
        if is_new and event.purpose is TaskPurpose.gold:
            reason = too_few_right(state, self.by)
            if reason:
                return [SetAside(by=self.by, time=now, assessor=self.by, reason=reason)]
        return () if self.next is None else self.next.events(state, now)


def too_few_right(state: State, assessor: str) -> str:
    """Why the answers of a person are set aside by the least share of right answers; empty if they are not.

    Answers to gold questions count from the end of the quiz on, or from the fifth; after a restoration new ones alone.
    """
    setup, own, before = state.settings, state.own.get(assessor), state.standing.get(assessor)
    if not setup.least_right or own is None or state.is_set_aside(assessor):
        return ""
    since = 0 if before is None else before.number
    given = [a for a in own.answers() if a.purpose is TaskPurpose.gold and a.question in state.gold]
    right = [a.asked.is_right(a, state.gold[a.question], setup) for a in given if a.number > since]
    if len(right) < (setup.quiz or FEWEST_GOLD) or sum(right) >= setup.least_right * len(right):
        return ""
    return f"{sum(right)} of {len(right)} gold questions right, and {setup.least_right:.0%} is the least share"


def _spent(state: State, assessor: str, question: Question, seconds: float | None, now: float) -> float | None:
    """The time spent, at most the time since the question was leased; None if it was not leased to this person."""
    held = state.leases.get(question, {}).get(assessor)
    if seconds is None or held is None:
        return None
    return min(seconds, max(0.0, now - held.time))


@dataclass(frozen=True, kw_only=True)
class Settle(QuestionAction[Settled]):
    """Settle the answer to a question.

    Parameters
    ----------
    values, reason
        The values of the answer, as its kind has checked them, and the reason.
    """

    kind = Settled
    phases = NOT_CLOSED
    text_fields = MappingProxyType({"reason": "A reason"})
    values: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""

    def is_same(self, event: Event) -> bool:
        """Whether an event is that of the same request: also with the same values and reason."""
        same = {**self.values, "reason": self.reason}
        return super().is_same(event) and all(getattr(event, name) == value for name, value in same.items())

    def event(self, state: State, now: float) -> Settled:
        """The settled answer."""
        settled = kind_of(self.question.kind).settled
        if settled is None:
            raise CampaignError(f"Answers to questions about {self.question.kind} are not settled.")
        return settled(**self._about(state, now), **self.values, reason=self.reason)


@dataclass(frozen=True, kw_only=True)
class Withdraw(Action[Withdrawn]):
    """Withdraw one's answer with this number, or one's latest; the question is leased again."""

    kind = Withdrawn
    phases = frozenset({Phase.open})
    judgment: int | None = None

    def event(self, state: State, now: float) -> Withdrawn:
        """The withdrawal; only the person's own answers given here can be withdrawn."""
        own = state.own.get(self.by)
        given = () if own is None else own.answers()
        last = next((each for each in given if self.judgment in (None, each.number)), None)
        if last is None:
            which = "" if self.judgment is None else f" {self.judgment}"
            raise CampaignError(f"{self.by!r} has no judgment{which} to withdraw.")
        about = {"query": last.query, "documents": last.documents, "asks": last.asks}
        return Withdrawn(**self._head(now) | about, judgment=last.number, purpose=last.purpose)

    def following(self, state: State, event: Withdrawn, now: float, *, is_new: bool) -> Sequence[Event]:
        """A lease of the question; the person's other leases are renewed so that it comes before them."""
        if state.is_set_aside(self.by):
            return ()
        is_control = event.purpose is not TaskPurpose.judgment
        if state.phase is not Phase.open or not (is_control or state.is_open(event.question, self.by, now)):
            return ()
        again: list[Withdrawn | Leased] = [event, *state.held_by(self.by, now)]
        return [lease(state, each.question, self.by, now, purpose=each.purpose, shown=each.documents) for each in again]


@dataclass(frozen=True, kw_only=True)
class Skip(TaskAction[Skipped]):
    """Leave a question to other assessors."""

    kind = Skipped
    same_request = ("question", "reason")
    text_fields = MappingProxyType({"reason": "A reason"})
    reason: str = ""

    def event(self, state: State, now: float) -> Skipped:
        """The skip."""
        return Skipped(**self._about(state, now), reason=self.reason)


@dataclass(frozen=True, kw_only=True)
class Flag(PairAction[Flagged]):
    """Report a problem with a pair."""

    kind = Flagged
    same_request = ("pair", "reason")
    text_fields = MappingProxyType({"reason": "A reason"})
    reason: str = ""

    def event(self, state: State, now: float) -> Flagged:
        """The flag."""
        return Flagged(**self._head(now), reason=self.reason)


@dataclass(frozen=True, kw_only=True)
class Comment(PairAction[Commented]):
    """Comment on a pair."""

    kind = Commented
    same_request = ("pair", "text")
    text_fields = MappingProxyType({"text": "A comment"})
    text: str

    def event(self, state: State, now: float) -> Commented:
        """The comment."""
        return Commented(**self._head(now), text=self.text)


@dataclass(frozen=True, kw_only=True)
class Release(TaskAction[Released]):
    """End one's lease of a question."""

    kind = Released

    def event(self, state: State, now: float) -> Released:
        """The end of the lease."""
        return Released(**self._about(state, now))
