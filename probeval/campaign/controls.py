"""Gold and repeated questions: the tasks with which the work of assessors is checked.

A *gold* pair has a known grade, and a gold comparison a known better document. A *repeated* question is one that the
assessor answered some time ago. All look like any other task, and the answers are not evidence: of a gold pair the
known grade counts, of a repeated question the first answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from probeval.campaign.events import Question, TaskPurpose
from probeval.campaign.setup import Setup
from probeval.campaign.state import State

__all__ = [
    "COMPARISON",
    "PAIR",
    "REPEAT_AFTER",
    "answer_purpose",
    "control_question",
    "gold_left",
    "task_purpose",
]

PAIR, COMPARISON = 2, 3  # lengths of questions
REPEAT_AFTER = 20  # own answers in between, so that an answer is not simply remembered


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

    Each comes at most once. If switching topics has a price, questions of the current one go first; then those of
    topics that the assessor may take. Otherwise the order is random: a hash of the seed, the assessor and the question.

    Parameters
    ----------
    state
        The state of the campaign.
    assessor
        Their name.
    purpose
        Gold or repeat; there is no such question for a judgment.
    like
        The question in whose place it comes: one document is replaced by one, and two by two.
    taken
        The questions that they hold.
    here
        The query of their last question.
    allowed
        Whether they may take a topic.
    """
    setup = state.settings
    candidates = {TaskPurpose.gold: _gold, TaskPurpose.repeat: _repeatable}.get(purpose)
    if candidates is None:
        return None

    def place(question: Question) -> tuple[bool, bool, float]:
        elsewhere = setup.stay > 0 and question[0] != here
        return elsewhere, not allowed(question[0]), setup.draw("control", assessor, *question)

    found = candidates(state, assessor, len(like))
    free = (question for question in found if question not in taken and assessor not in state.checks(question))
    return min(free, key=place, default=None)


def answer_purpose(state: State, assessor: str, question: Question) -> TaskPurpose:
    """The purpose of an answer: that of the lease, else of an earlier check; of other gold questions it is gold."""
    held, before = state.leases.get(question, {}).get(assessor), state.checks(question).get(assessor)
    if held is not None:
        return held.purpose
    if before is not None:
        return before.purpose
    is_gold = question in state.gold or question in state.gold_orders
    return TaskPurpose.gold if is_gold else TaskPurpose.judgment


def gold_left(state: State, assessor: str, length: int) -> int:
    """The number of gold pairs, or of gold comparisons, that the assessor may still get."""
    return sum(assessor not in state.checks(question) for question in _gold(state, assessor, length))


def _gold(state: State, assessor: str, length: int) -> Iterable[Question]:
    """The gold questions that the assessor has not answered or skipped."""
    known: Iterable[Question] = state.gold if length == PAIR else state.gold_orders
    return (
        question
        for question in known
        if all(answer.by != assessor for answer in state.given(question))
        and all(skip.by != assessor for skip in state.skipped.get(question, ()))
    )


def _repeatable(state: State, assessor: str, length: int) -> Iterable[Question]:
    """The questions that the assessor answered here long enough ago, and that are not gold now."""
    asked: Iterable[Question] = state.judged if length == PAIR else state.compared
    made = []
    for question in asked:
        own = [answer for answer in state.given(question) if answer.by == assessor]
        if own and not own[-1].source:
            made.append((own[-1].number, question))
    return (q for _, q in sorted(made)[:-REPEAT_AFTER] if q not in state.gold and q not in state.gold_orders)
