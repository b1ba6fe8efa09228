"""Leases: the rules by which questions are given to assessors, gold and repeated ones among them.

A *gold* question has a known answer. A *repeated* one is a question that the assessor answered some time ago. Both look
like any other, and their answers are not evidence: of a gold pair the known grade counts, of a repeated question the
first answer. A check takes the place of another question and is about its query, so that it does not stand alone; if
there is none for the query, it waits for one of the next questions. A campaign may begin with a *quiz*: an assessor
then gets some gold questions before all others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

from probeval.campaign.candidates import QuestionQueues
from probeval.campaign.events import Leased, TaskPurpose
from probeval.campaign.questions import Question, graded, kind_of
from probeval.campaign.setup import Setup
from probeval.campaign.state import State
from probeval.data.tasks import OpenPair
from probeval.display import Record
from probeval.results import HIDDEN, key
from probeval.selection import JudgingState, Pick
from probeval.selection.topics import Queue

__all__ = [
    "REPEAT_AFTER",
    "Task",
    "answer_purpose",
    "control_question",
    "due_checks",
    "gold_left",
    "is_quizzed",
    "lease",
    "lease_new",
    "open_pairs",
    "task_purpose",
    "tasks_of",
    "topics_for",
]

REPEAT_AFTER = 10  # own answers in between, so that an answer is not simply remembered
WAITS = 20  # tasks for which a check waits for a question in whose place it can come


@dataclass(frozen=True, repr=False)
class Task(Record):
    """A question leased to an assessor."""

    TIMES = ("until",)

    query: str
    documents: Annotated[tuple[str, ...], "The documents, as the assessor sees them."]
    text: Annotated[str, "The text of the query; empty if unknown."]
    until: Annotated[float, "The end of the lease, in seconds since 1970."]
    switched: Annotated[
        bool, "Whether the query differs from that of the assessor's last question; true for their first."
    ]
    judged_in_topic: Annotated[int, "The questions of the query that the assessor has answered."]
    left_in_topic: Annotated[
        int, "Those that are worth staying for as far as the model can tell now, this one included."
    ]
    question: Annotated[Question, HIDDEN]
    asks: Annotated[
        str,
        "The question: the ``grade`` of a document, a ``preference`` between two, the ``magnitude`` of each, ``lists`` "
        "or another kind.",
    ] = "grade"

    @key
    def doc(self) -> str:
        """The first document; of two, the one on the left."""
        return self.documents[0]

    @key
    def other(self) -> str:
        """The document on the right; empty if there is only one."""
        return self.documents[1] if len(self.documents) > 1 else ""


def lease(
    state: State,
    question: Question,
    assessor: str,
    now: float,
    *,
    pick: Pick | None = None,
    purpose: TaskPurpose = TaskPurpose.judgment,
    shown: tuple[str, ...] | None = None,
) -> Leased:
    """A lease of the question to this assessor, starting now; with its prediction if the model proposed it.

    ``shown`` has the documents in their places. By default the kind of question places them, by a random number that is
    a hash of the seed, the assessor and the question.
    """
    if shown is None:
        before = [answer for answer in state.answers.get(question, ()) if answer.by == assessor]
        draw = state.settings.draw("side", assessor, *question.names)
        shown = kind_of(question.kind).shown(question, purpose, before, draw)
    return Leased(
        by=assessor,
        time=now,
        query=question.query,
        documents=shown,
        asks=question.kind,
        until=now + state.settings.lease,
        pick=pick,
        purpose=purpose,
    )


def tasks_of(
    state: State,
    assessor: str,
    now: float,
    *,
    n: int,
    queue: Queue[Question, str] | None,
    query_of: Callable[[Question], str],
) -> list[Task]:
    """The first ``n`` questions that an assessor holds, and how far they are with the topic of each."""
    last = state.finished.get(assessor)
    before = None if last is None else last.query
    held = state.held_by(assessor, now)
    mine = {event.question for event in held}
    setup, tasks = state.settings, []
    for event in held[:n]:
        left = 0
        if queue is not None:
            left = queue.left(
                lambda each: each not in mine and state.is_open(each, assessor, now) and not state.given(each),
                event.query,
                allowed=topics_for(state, assessor, now),
                stay=state.settings.stay,
            )
        left += sum(each.query == event.query for each in mine)
        query = query_of(event.question)
        tasks.append(
            Task(
                query=query,
                documents=event.documents,
                text=state.texts.get(query, ""),
                until=event.until,
                switched=event.query != before,
                judged_in_topic=state.answered.get((assessor, event.query), 0),
                left_in_topic=left,
                question=event.question,
                asks=event.asked.asks.get(setup.ask) or event.asks,
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
    if state.is_set_aside(assessor):
        return []
    held = state.held_by(assessor, now)
    search = _Search(state, assessor, now, questions.queues, {event.question for event in held})
    tasks = _latest_tasks(state, assessor, held)
    last = held[-1].question if held else state.finished.get(assessor)
    here = None if last is None else last.query
    mine = state.topics.get(assessor)
    topic = None if mine is None else mine.query
    chosen: list[Leased] = []
    while len(held) + len(chosen) < n:
        question = search.next(topic, here)
        if question is None:
            break
        position = state.own_count(assessor) + len(held) + len(chosen)
        control, purpose = None, TaskPurpose.judgment
        due = due_checks(state.settings, assessor, position, [purpose for _, purpose in tasks])
        allowed = _topics_of_checks(state, assessor, now, question.query, [query for query, _ in tasks])
        if is_quizzed(state, assessor, [*held, *chosen]):
            due, allowed = [TaskPurpose.gold], topics_for(state, assessor, now)
        for check in due:
            control = control_question(
                state, assessor, check, like=question, taken=search.taken, here=here, allowed=allowed
            )
            if control is not None:
                purpose = check
                break
        given = control or question
        pick, shown = (picks.get(given), questions.shown(given)) if control is None else (None, None)
        chosen.append(lease(state, given, assessor, now, pick=pick, purpose=purpose, shown=shown))
        search.taken.add(given)
        tasks = [*tasks, (given.query, purpose)]
        if control is None:
            here = question.query
            topic = topic if question in state.waiting else here
    return chosen


def is_quizzed(state: State, assessor: str, held: Sequence[Leased]) -> bool:
    """Whether an assessor who holds these questions still gets those with a known answer first."""
    quiz = state.settings.quiz
    if not quiz:
        return False
    own = state.own.get(assessor)
    tasks = (*held, *(() if own is None else own.answers()))
    return sum(each.purpose is TaskPurpose.gold for each in tasks) < quiz


def _latest_tasks(state: State, assessor: str, held: Sequence[Leased]) -> list[tuple[str, TaskPurpose]]:
    """The query and the purpose of the assessor's latest tasks, those that they hold last."""
    own = state.own.get(assessor)
    given = [] if own is None else list(islice(own.answers(), WAITS))[::-1]
    return [*((each.query, each.purpose) for each in given), *((each.query, each.purpose) for each in held)]


def _topics_of_checks(
    state: State, assessor: str, now: float, query: str, latest: Sequence[str]
) -> Callable[[str], bool]:
    """The queries that a check may be about, in the place of a question about this ``query``.

    Any that the assessor may take if their tasks change query each time anyway; otherwise this one alone.
    """
    if len(latest) > 1 and latest[-2] != latest[-1] != query:
        return topics_for(state, assessor, now)
    return lambda topic: topic == query


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
        counts = Counter(question.query for question in waiting)
        if waiting and not stays:
            return waiting[0]
        if here in counts:
            return next(question for question in waiting if question.query == here)
        first = self._first_opinion(topic)
        changes = first is None or first.query != topic
        if waiting and changes and (first is None or here in (None, topic)):
            most = max(counts, key=counts.__getitem__)
            return next(question for question in waiting if question.query == most)
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
        if question in self.taken or (self.state.given(question) and not kind_of(question.kind).by_everyone):
            return False
        several = len(question.documents) > 1
        known = several and all(self.state.is_known(graded(*pair)) for pair in question.pairs)
        return not known and self._is_open(question)


def task_purpose(setup: Setup, assessor: str, task: int) -> TaskPurpose:
    """The purpose of an assessor's task, by its position 0, 1, 2, ..

    It comes from a hash of the seed, the assessor and the position. So it needs no model, does not depend on grades or
    on other assessors, and is the same in every process.

    Examples
    --------
    >>> from probeval.data import Scale
    >>> setup = Setup(name="a", metric="P@5", scale=Scale.binary(), model="uniform", depth=5, gold_share=0.2)
    >>> [task for task in range(20) if task_purpose(setup, "ann", task) is TaskPurpose.gold]
    [0, 3, 5, 6, 7, 12]
    """
    at = setup.draw("purpose", assessor, str(task))
    if at < setup.gold_share:
        return TaskPurpose.gold
    return TaskPurpose.repeat if at < setup.gold_share + setup.repeat_share else TaskPurpose.judgment


def due_checks(setup: Setup, assessor: str, task: int, latest: Sequence[TaskPurpose]) -> list[TaskPurpose]:
    """The checks that may take the place of an assessor's task at this position: those drawn lately and not given yet.

    Parameters
    ----------
    setup, assessor, task
        As in :func:`task_purpose`.
    latest
        The purposes of the tasks before, the last ones at least.

    Examples
    --------
    >>> from probeval.data import Scale
    >>> setup = Setup(name="a", metric="P@5", scale=Scale.binary(), model="uniform", depth=5, gold_share=0.2)
    >>> [[each.value for each in due_checks(setup, "ann", 4, made)] for made in ([], [TaskPurpose.gold] * 2)]
    [['gold'], []]
    """
    drawn = Counter(task_purpose(setup, assessor, at) for at in range(max(0, task - WAITS + 1), task + 1))
    given = Counter(latest[-(WAITS - 1) :])
    return [check for check in (TaskPurpose.gold, TaskPurpose.repeat) if drawn[check] > given[check]]


def control_question(
    state: State,
    assessor: str,
    purpose: TaskPurpose,
    *,
    like: Question,
    taken: Collection[Question],
    here: str | None,
    allowed: Callable[[str], bool],
) -> Question | None:
    """The gold or repeated question that this assessor gets next; None if there is none for them.

    Each comes at most once. Those about the query of the question in whose place it comes go first, then those about
    the query of the last question. Otherwise the order is random: a hash of the seed, the assessor and the question.

    Parameters
    ----------
    state
        The state of the campaign.
    assessor
        Their name.
    purpose
        Gold or repeat; there is no such question for a judgment.
    like
        The question in whose place it comes: it is of the same kind.
    taken
        The questions that they hold.
    here
        The query of their last question.
    allowed
        Whether it may be about a query.
    """
    setup = state.settings
    candidates = {TaskPurpose.gold: _gold, TaskPurpose.repeat: _repeatable}.get(purpose)
    if candidates is None:
        return None

    def place(question: Question) -> tuple[bool, bool, float]:
        query = question.query
        return query != like.query, query != here, setup.draw("control", assessor, *question.names)

    found = (question for question in candidates(state, assessor, like.kind) if allowed(question.query))
    free = (question for question in found if question not in taken and assessor not in state.checks(question))
    return min(free, key=place, default=None)


def answer_purpose(state: State, assessor: str, question: Question) -> TaskPurpose:
    """The purpose of an answer: that of the lease, else of an earlier check; of other gold questions it is gold."""
    held, before = state.leases.get(question, {}).get(assessor), state.checks(question).get(assessor)
    if held is not None:
        return held.purpose
    if before is not None:
        return before.purpose
    return TaskPurpose.gold if question in state.gold else TaskPurpose.judgment


def gold_left(state: State, assessor: str, kind: str) -> int:
    """The number of gold questions of a kind that the assessor may still get."""
    return sum(assessor not in state.checks(question) for question in _gold(state, assessor, kind))


def _gold(state: State, assessor: str, kind: str) -> Iterable[Question]:
    """The gold questions that the assessor has not answered or skipped."""
    return (
        question
        for question in state.known(kind)
        if assessor not in state.latest(question)
        and all(skip.by != assessor for skip in state.skipped.get(question, ()))
    )


def _repeatable(state: State, assessor: str, kind: str) -> Iterable[Question]:
    """The questions that the assessor answered here long enough ago, and that are not gold now."""
    made = []
    for question, given in state.of_kind(kind):
        own = [answer for answer in given if answer.by == assessor]
        if own and not own[-1].source:
            made.append((own[-1].number, question))
    return (question for _, question in sorted(made)[:-REPEAT_AFTER] if question not in state.gold)


def open_pairs(tasks: Sequence[Task], state: JudgingState) -> list[OpenPair]:
    """Leased pairs with their expected grades, given the judgments so far."""
    table = state.prediction.relevance.to_frame()
    means = dict(zip(zip(table["query"], table["doc"], strict=True), table["mean"].tolist(), strict=True))
    return [OpenPair(task.query, task.doc, means.get((task.query, task.doc))) for task in tasks]
