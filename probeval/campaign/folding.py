"""The fold over the log of a campaign: from its events to its state, pure.

.. math:: S_n = f(S_{n-1}, e_n)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import replace
from typing import Any

from probeval.campaign.comparison_events import Compared, ComparisonAdjudicated, GoldOrdersChanged
from probeval.campaign.events import (
    Adjudicated,
    Changed,
    Commented,
    Created,
    Event,
    Flagged,
    GoldChanged,
    GuidelineChanged,
    Imported,
    Invited,
    Judged,
    Labelled,
    Leased,
    PhaseChanged,
    QueriesChanged,
    QueryGuidelinesChanged,
    Question,
    Released,
    Revoked,
    RunsAdded,
    SignedIn,
    SignedOut,
    Skipped,
    TaskPurpose,
    TopicsAssigned,
    Withdrawn,
    comparison,
)
from probeval.campaign.layers import Layers
from probeval.campaign.state import State
from probeval.campaign.study_events import ListsCompared, ListsWithdrawn, StudyCreated
from probeval.errors import CampaignError

__all__ = ["concerns_models", "fold"]

PACES = 50  # latest answers of a kind whose times are kept
# Events that change a model's input.
FOR_MODELS = (
    Created, Changed, Judged, Compared, Withdrawn, Adjudicated, ComparisonAdjudicated, Labelled, RunsAdded,
)  # fmt: skip


def concerns_models(event: Event) -> bool:
    """Whether an event changes a model's input; answers to gold and repeated questions do not."""
    is_answer = isinstance(event, (Judged, Compared, Withdrawn)) and event.purpose is not TaskPurpose.judgment
    return isinstance(event, FOR_MODELS) and not is_answer


def _place(event: Judged | Withdrawn) -> str:
    """Where the state has an answer: judgments of the campaign, answers to gold and repeated pairs, comparisons."""
    if isinstance(event, Withdrawn) and event.other:
        return "compared"
    return "judged" if event.purpose is TaskPurpose.judgment else "controls"


def fold(state: State, events: Iterable[Event]) -> State:
    """The state after these events; the given state is not modified.

    >>> from probeval.campaign import Setup
    >>> from probeval.data import Scale
    >>> setup = Setup(name="mine", metric="P@5", scale=Scale.binary(), model="uniform", depth=5)
    >>> log = [
    ...     Created(by="eve", time=0.0, number=1, setup=setup),
    ...     Judged(by="ann", time=1.0, number=2, query="q", doc="d", grade=1.0),
    ...     Withdrawn(by="ann", time=2.0, number=3, query="q", doc="d", judgment=2),
    ... ]
    >>> before, after = fold(State(), log[:2]), fold(State(), log)
    >>> len(before.judged), len(after.judged)
    (1, 0)
    """
    draft = _Draft(state)
    for event in events:
        draft.add(event)
    return draft.state()


class _Draft:
    """A state under construction: each mapping is copied once per batch of events, on its first change.

    A copy shares what did not change (:class:`Layers`), so a step takes as long late in a campaign as at its start.
    """

    def __init__(self, before: State) -> None:
        self.before, self.now = before, before
        self.copies: dict[str, MutableMapping[Any, Any]] = {}

    def state(self) -> State:
        changed: dict[str, Any] = self.copies
        return replace(self.now, **changed)

    def seen(self, name: str) -> Mapping[Any, Any]:
        """The current value of a mapping, to read."""
        before: Mapping[Any, Any] = getattr(self.before, name)
        return self.copies.get(name, before)

    def of(self, name: str) -> MutableMapping[Any, Any]:
        """The current value of a mapping, to write."""
        if name not in self.copies:
            known = getattr(self.before, name)
            self.copies[name] = known.copy() if isinstance(known, Layers) else Layers(known)
        return self.copies[name]

    def add(self, event: Event) -> None:
        if event.number != self.now.number + 1:
            raise CampaignError(f"Event {event.number} of the log follows event {self.now.number}: events are missing.")
        changed = event.number if concerns_models(event) else self.now.changed
        self.now = replace(self.now, number=event.number, changed=changed)
        if event.token is not None:
            self.of("tokens")[event.token] = event
        match event:
            case Created() | Changed():
                if self.now.setup is not None and any(
                    getattr(self.now.setup, name) != getattr(event.setup, name) for name in ("metric", "depth")
                ):
                    self.repool()
                self.now = replace(self.now, setup=event.setup)
                for question in (*self.seen("judged"), *self.seen("compared")):
                    self.update_waiting(question)
            case GuidelineChanged():
                self.now = replace(self.now, guideline=event)
            case QueryGuidelinesChanged():
                self.of("query_guidelines").update(dict.fromkeys(event.texts, event))
            case QueriesChanged():
                self.of("texts").update(event.texts)
            case GoldChanged():
                self.copies["gold"] = {
                    (query, doc): grade for query, docs in event.grades.items() for doc, grade in docs.items()
                }
            case TopicsAssigned():
                owners = {**self.seen("owners"), **event.owners}
                self.copies["owners"] = {query: name for query, name in owners.items() if name}
            case Labelled():
                self.now = replace(self.now, labels=(*self.now.labels, event))
            case Imported():
                self.now = replace(self.now, imports=(*self.now.imports, event))
            case RunsAdded():
                self.repool()
                self.now = replace(self.now, runs=(*self.now.runs, event))
            case PhaseChanged():
                self.now = replace(self.now, phase_change=event)
            case Invited() | Revoked() | SignedIn() | SignedOut():
                self.now = replace(self.now, access=self.now.access.after(event))
            case StudyCreated():
                self.now = replace(self.now, study=event.study)
            case ListsCompared():
                self.of("lists_compared")[event.by, event.question] = event
            case ListsWithdrawn():
                self.of("lists_compared").pop((event.by, event.question), None)
            case GoldOrdersChanged():
                self.copies["gold_orders"] = {
                    comparison(query, *order): order[0] for query, orders in event.orders.items() for order in orders
                }
            case Leased():
                leases = self.of("leases")
                leases[event.question] = {**leases.get(event.question, {}), event.by: event}
                if event.purpose is TaskPurpose.judgment and not self.is_answered(event.question):
                    self.of("topics")[event.by] = event
                if event.pick is not None and event.pair not in self.seen("judged"):
                    self.of("picks")[event.pair] = event
            case Released():
                self.release(event.question, event.by)
            case Judged():
                self.pace("grade", event.seconds)
                self.answer(_place(event), event.pair, event)
                if not event.source:
                    self.of("finished")[event.by] = event.pair
                    self.count(event.by, 1)
                self.release(event.pair, event.by)
                self.update_waiting(event.pair)
                self.end_leases(event.pair, event.source)
            case Compared():
                self.pace("preference" if event.choice else "magnitude", event.seconds)
                self.answer("compared", event.question, event)
                if not event.source:
                    self.of("finished")[event.by] = event.question
                    self.count(event.by, 1)
                self.release(event.question, event.by)
                self.update_waiting(event.question)
                self.end_leases(event.question, event.source)
            case Withdrawn():
                self.withdraw(event)
                self.count(event.by, -1)
                self.update_waiting(event.question)
            case Skipped():
                self.append("skipped", event.question, event)
                self.of("finished")[event.by] = event.question
                self.release(event.question, event.by)
            case Flagged():
                self.append("flags", event.pair, event)
            case Commented():
                self.append("comments", event.pair, event)
            case ComparisonAdjudicated():
                self.of("settled")[event.question] = event
                self.update_waiting(event.question)
            case Adjudicated():
                self.of("adjudicated")[event.pair] = event
                self.update_waiting(event.pair)

    def repool(self) -> None:
        """Forget the predictions so far: they are of another pool or measure."""
        self.of("picks").clear()
        self.now = replace(self.now, pooled=self.now.number)

    def append(self, name: str, key: Question, event: Judged | Compared | Skipped | Flagged | Commented) -> None:
        lists = self.of(name)
        lists[key] = (*lists.get(key, ()), event)

    def answer(self, name: str, question: Question, event: Judged | Compared) -> None:
        """Add an answer, and count the question for its assessor if it is their first that counts."""
        before = self.answered_by(question, event.by)
        self.append(name, question, event)
        self.count_answered(question, event.by, self.answered_by(question, event.by) - before)

    def answered_by(self, question: Question, assessor: str) -> bool:
        """Whether the assessor has given the question an answer that counts."""
        given = (*self.seen("judged").get(question, ()), *self.seen("compared").get(question, ()))
        return any(answer.by == assessor and answer.purpose is TaskPurpose.judgment for answer in given)

    def count_answered(self, question: Question, assessor: str, change: int) -> None:
        if change:
            answered, key = self.of("answered"), (assessor, question[0])
            answered[key] = answered.get(key, 0) + change

    def count(self, assessor: str, change: int) -> None:
        made = self.of("made")
        made[assessor] = made.get(assessor, 0) + change

    def pace(self, kind: str, seconds: float | None) -> None:
        if seconds is not None:
            paces = self.of("paces")
            paces[kind] = (*paces.get(kind, ()), seconds)[-PACES:]

    def release(self, question: Question, assessor: str) -> None:
        held = self.seen("leases").get(question, {})
        if assessor not in held:
            return
        left = {who: lease for who, lease in held.items() if who != assessor}
        if left:
            self.of("leases")[question] = left
        else:
            del self.of("leases")[question]

    def end_leases(self, question: Question, source: str) -> None:
        """End the leases of a question that was answered in another tool, perhaps under another name."""
        if source and question not in self.seen("waiting"):
            self.of("leases").pop(question, None)

    def withdraw(self, event: Withdrawn) -> None:
        before = self.answered_by(event.question, event.by)
        answers = self.of(_place(event))
        left = tuple(answer for answer in answers.get(event.question, ()) if answer.number != event.judgment)
        if left:
            answers[event.question] = left
        else:
            answers.pop(event.question, None)
        self.count_answered(event.question, event.by, self.answered_by(event.question, event.by) - before)
        self.now = replace(self.now, withdrawn=event.number)

    def is_answered(self, question: Question) -> bool:
        """Whether the question has an answer that counts."""
        if question in self.seen("judged"):
            return True
        return any(answer.purpose is TaskPurpose.judgment for answer in self.seen("compared").get(question, ()))

    def update_waiting(self, question: Question) -> None:
        """Add the question to the waiting ones, or remove it."""
        given = (*self.seen("judged").get(question, ()), *self.seen("compared").get(question, ()))
        opinions = len({answer.by for answer in given if answer.purpose is TaskPurpose.judgment})
        settled = question in self.seen("adjudicated") or question in self.seen("settled")
        if not settled and 0 < opinions < self.now.settings.wanted(*question):
            self.of("waiting").setdefault(question)
        elif question in self.seen("waiting"):
            del self.of("waiting")[question]
