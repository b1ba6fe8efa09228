"""Leases: the rules by which questions are given to assessors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from probeval.campaign.controls import control_question, task_purpose
from probeval.campaign.events import Leased, Question, TaskPurpose
from probeval.campaign.questions import QuestionQueues
from probeval.campaign.state import State
from probeval.data.tasks import OpenPair
from probeval.display import Record
from probeval.selection import JudgingState, Pick
from probeval.selection.topics import Queue

__all__ = ["Task", "lease", "lease_new", "open_pairs", "tasks_of", "topics_for"]


@dataclass(frozen=True, repr=False)
class Task(Record):
    """A question leased to an assessor: one document to grade, or two to compare."""

    TIMES = ("until",)

    query: str
    doc: Annotated[str, "The document; of two documents, the one on the left."]
    text: Annotated[str, "The text of the query; empty if unknown."]
    until: Annotated[float, "The end of the lease, in seconds since 1970."]
    switched: Annotated[
        bool, "Whether the query differs from that of the assessor's last question; true for their first."
    ]
    judged_in_topic: Annotated[int, "The questions of the query that the assessor has answered."]
    left_in_topic: Annotated[
        int, "Those that are worth staying for as far as the model can tell now, this one included."
    ]
    other: Annotated[str, "The document on the right; empty if one document is to be graded."] = ""
    asks: Annotated[
        str,
        "The kind of question: the ``grade`` of a document, a ``preference`` between two, or the ``magnitude`` of "
        "each.",
    ] = "grade"


def lease(
    state: State,
    question: Question,
    assessor: str,
    now: float,
    *,
    pick: Pick | None = None,
    purpose: TaskPurpose = TaskPurpose.judgment,
    left: str | None = None,
) -> Leased:
    """A lease of the question to this assessor, starting now; with its prediction if the model proposed it.

    Of two documents, ``left`` names the one on the left. By default it is random, by a hash of the seed, the assessor
    and the question; in a repeated question the sides are exchanged.
    """
    query, doc, *others = question
    other = others[0] if others else ""
    if other and (_on_the_left(state, question, assessor, purpose) if left is None else left) == other:
        doc, other = other, doc
    until = now + state.settings.lease
    return Leased(by=assessor, time=now, query=query, doc=doc, other=other, until=until, pick=pick, purpose=purpose)


def _on_the_left(state: State, question: Question, assessor: str, purpose: TaskPurpose) -> str:
    before = [a for a in state.compared.get(question, ()) if a.by == assessor]
    if purpose is TaskPurpose.repeat and before:
        return before[0].right
    return question[1] if state.settings.draw("side", assessor, *question) < 0.5 else question[2]


def tasks_of(state: State, assessor: str, now: float, *, n: int, queue: Queue[Question, str] | None) -> list[Task]:
    """The first ``n`` questions that an assessor holds, and how far they are with the topic of each."""
    last = state.finished.get(assessor)
    before = None if last is None else last[0]
    held = state.held_by(assessor, now)
    mine = {event.question for event in held}
    two = "magnitude" if state.settings.ask == "magnitudes" else "preference"
    tasks = []
    for event in held[:n]:
        left = 0
        if queue is not None:
            left = queue.left(
                lambda each: each not in mine and state.is_open(each, assessor, now) and not state.given(each),
                event.query,
                allowed=topics_for(state, assessor, now),
                stay=state.settings.stay,
            )
        left += sum(each[0] == event.query for each in mine)
        tasks.append(
            Task(
                query=event.query,
                doc=event.doc,
                text=state.texts.get(event.query, ""),
                until=event.until,
                switched=event.query != before,
                judged_in_topic=state.answered.get((assessor, event.query), 0),
                left_in_topic=left,
                other=event.other,
                asks=two if event.other else "grade",
            )
        )
        before = event.query
    return tasks


def lease_new(
    state: State,
    assessor: str,
    n: int,
    now: float,
    questions: QuestionQueues,
    picks: Mapping[Question, Pick],
) -> list[Leased]:
    """The new leases that bring an assessor to ``n`` questions.

    Some of their tasks are gold or repeated questions, in place of the one that would come.

    Parameters
    ----------
    questions
        The questions to ask.
    picks
        The predictions of the pairs that the model proposed.
    """
    held = state.held_by(assessor, now)
    search = _Search(state, assessor, now, questions.queues, {event.question for event in held})
    last = held[-1].question if held else state.finished.get(assessor)
    here = None if last is None else last[0]
    mine = state.topics.get(assessor)
    topic = None if mine is None else mine.query
    chosen: list[Leased] = []
    while len(held) + len(chosen) < n:
        question = search.next(topic, here)
        if question is None:
            break
        purpose = task_purpose(state.settings, assessor, state.made.get(assessor, 0) + len(held) + len(chosen))
        allowed = topics_for(state, assessor, now)
        control = control_question(
            state, assessor, purpose, like=question, taken=search.taken, here=here, allowed=allowed
        )
        if control is not None:
            chosen.append(lease(state, control, assessor, now, purpose=purpose))
            search.taken.add(control)
            continue
        pick, left = picks.get(question), questions.left(question)
        chosen.append(lease(state, question, assessor, now, pick=pick, left=left))
        search.taken.add(question)
        here = question[0]
        topic = topic if question in state.waiting else here
    return chosen


def topics_for(state: State, assessor: str, now: float) -> Callable[[str], bool]:
    """The topics that an assessor may take, by the settings of the campaign."""
    setup = state.settings
    if setup.topics == "free":
        return lambda topic: True
    busy = {event.query for name, event in state.topics.items() if name != assessor and event.until > now}
    if setup.topics == "in-turn":
        return lambda topic: topic not in busy
    return lambda topic: state.owners.get(topic, assessor) == assessor and (topic in state.owners or topic not in busy)


@dataclass(frozen=True)
class _Search:
    """The search for the next question of an assessor, who takes ``taken`` already."""

    state: State
    assessor: str
    now: float
    queues: Iterable[Queue[Question, str]]
    taken: set[Question]

    def next(self, topic: str | None, here: str | None) -> Question | None:
        """The next question of an assessor with this topic, whose last question was about the query ``here``.

        Without a price of switching, questions that need another opinion come first. With one, they wait until the
        assessor changes topic. The assessor then gives all the opinions that one other topic waits for, the one with
        the most.
        """
        waiting = [question for question in self.state.waiting if self._is_open(question)]
        stays = self.state.settings.stay > 0
        counts = Counter(question[0] for question in waiting)
        if waiting and not stays:
            return waiting[0]
        if here in counts:
            return next(question for question in waiting if question[0] == here)
        first = self._first_opinion(topic)
        changes = first is None or first[0] != topic
        if waiting and changes and (first is None or here in (None, topic)):
            most = max(counts, key=counts.__getitem__)
            return next(question for question in waiting if question[0] == most)
        return first

    def _first_opinion(self, topic: str | None) -> Question | None:
        allowed = topics_for(self.state, self.assessor, self.now)
        found = self._queued(topic, allowed)
        if found is None and self.state.settings.topics == "in-turn":
            return self._queued(topic, lambda _: True)  # more assessors than topics
        return found

    def _queued(self, topic: str | None, allowed: Callable[[str], bool]) -> Question | None:
        state = self.state
        for queue in self.queues:
            taken = 0
            if queue.draws:
                taken = sum(bool(state.given(each)) or each in state.leases for each in queue.pairs)
                taken += len(self.taken - state.leases.keys())
            question = queue.next(self._is_new, allowed=allowed, current=topic, stay=state.settings.stay, taken=taken)
            if question is not None:
                return question
        return None

    def _is_open(self, question: Question) -> bool:
        return question not in self.taken and self.state.is_open(question, self.assessor, self.now)

    def _is_new(self, question: Question) -> bool:
        """Whether it has no answer yet, and grades do not tell it."""
        if self.state.given(question) or question in self.taken:
            return False
        known = len(question) > 2 and all(self.state.has_grade((question[0], doc)) for doc in question[1:])
        return not known and self._is_open(question)


def open_pairs(tasks: Sequence[Task], state: JudgingState) -> list[OpenPair]:
    """Leased pairs with their expected grades, given the judgments so far."""
    table = state.prediction.relevance.to_frame()
    means = dict(zip(zip(table["query"], table["doc"], strict=True), table["mean"].tolist(), strict=True))
    return [OpenPair(task.query, task.doc, means.get((task.query, task.doc))) for task in tasks]
