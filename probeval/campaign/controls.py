"""Gold and repeated pairs: the tasks with which the work of assessors is checked.

A *gold* pair has a known grade. A *repeated* pair is one that the assessor judged some time ago. Both look like any
other task, and the answers are not judgments of the campaign: of a gold pair the known grade counts, of a repeated pair
the first answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from probeval.campaign.events import Pair, TaskPurpose
from probeval.campaign.setup import Setup
from probeval.campaign.state import State

__all__ = ["REPEAT_AFTER", "answer_purpose", "control_pair", "gold_left", "task_purpose"]

REPEAT_AFTER = 20  # own judgments in between, so that an answer is not simply remembered


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


def control_pair(
    state: State,
    assessor: str,
    purpose: TaskPurpose,
    *,
    taken: Collection[Pair],
    here: str | None,
    allowed: Callable[[str], bool],
) -> Pair | None:
    """The gold or repeated pair that this assessor gets next; None if there is none for them.

    Each comes at most once. If switching topics has a price, pairs of the current one go first; then those of topics
    that the assessor may take. Otherwise the order is random: a hash of the seed, the assessor and the pair.

    Parameters
    ----------
    state
        The state of the campaign.
    assessor
        Their name.
    purpose
        Gold or repeat; there is no such pair for a judgment.
    taken
        The pairs that they hold.
    here
        The query of their last pair.
    allowed
        Whether they may take a topic.
    """
    setup = state.settings
    candidates = {TaskPurpose.gold: _gold, TaskPurpose.repeat: _repeatable}.get(purpose)
    if candidates is None:
        return None

    def place(pair: Pair) -> tuple[bool, bool, float]:
        elsewhere = setup.stay > 0 and pair[0] != here
        return elsewhere, not allowed(pair[0]), setup.draw("control", assessor, *pair)

    free = (pair for pair in candidates(state, assessor) if pair not in taken and assessor not in state.answers(pair))
    return min(free, key=place, default=None)


def answer_purpose(state: State, assessor: str, pair: Pair) -> TaskPurpose:
    """The purpose of an answer: that of the lease, else that of an earlier answer; of other gold pairs it is gold."""
    held, before = state.leases.get(pair, {}).get(assessor), state.answers(pair).get(assessor)
    if held is not None:
        return held.purpose
    if before is not None:
        return before.purpose
    return TaskPurpose.gold if pair in state.gold else TaskPurpose.judgment


def gold_left(state: State, assessor: str) -> int:
    """The number of gold pairs that the assessor may still get."""
    return sum(assessor not in state.answers(pair) for pair in _gold(state, assessor))


def _gold(state: State, assessor: str) -> Iterable[Pair]:
    """The gold pairs that the assessor has not judged or skipped."""
    return (
        pair
        for pair in state.gold
        if assessor not in state.latest(pair) and all(skip.by != assessor for skip in state.skipped.get(pair, ()))
    )


def _repeatable(state: State, assessor: str) -> Iterable[Pair]:
    """The pairs that the assessor judged here long enough ago, and that are not gold now."""
    own = (state.latest(pair).get(assessor) for pair in state.judged)
    made = sorted((j.number, j.pair) for j in own if j is not None and not j.source)
    return (pair for _, pair in made[:-REPEAT_AFTER] if pair not in state.gold)
