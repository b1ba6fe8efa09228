"""Leases: the rules by which pairs are given to assessors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from probeval.campaign.controls import control_pair, task_purpose
from probeval.campaign.events import Leased, Pair, TaskPurpose
from probeval.campaign.state import State
from probeval.data.tasks import OpenPair
from probeval.display import Brief
from probeval.selection import JudgingState, Pick
from probeval.selection.topics import Queue

__all__ = ["Task", "lease", "lease_new", "open_pairs", "tasks_of", "topics_for"]


@dataclass(frozen=True, repr=False)
class Task(Brief):
    """A pair leased to an assessor for judging.

    Parameters
    ----------
    query, doc
        Ids of the query and the document.
    text
        The query text; empty if unknown.
    until
        The end of the lease, in seconds since 1970.
    switched
        Whether the query differs from that of the assessor's last pair; true for their first.
    judged_in_topic, left_in_topic
        The pairs of the query that the assessor has judged, and those that are worth staying for as far as the model
        can tell now, this one included.
    """

    query: str
    doc: str
    text: str
    until: float
    switched: bool
    judged_in_topic: int
    left_in_topic: int


def lease(
    state: State,
    pair: Pair,
    assessor: str,
    now: float,
    *,
    pick: Pick | None = None,
    purpose: TaskPurpose = TaskPurpose.judgment,
) -> Leased:
    """A lease of the pair to this assessor, starting now; with its prediction if the model proposed it."""
    until = now + state.settings.lease
    return Leased(by=assessor, time=now, query=pair[0], doc=pair[1], until=until, pick=pick, purpose=purpose)


def tasks_of(state: State, assessor: str, now: float, *, n: int, queue: Queue[Pair, str] | None) -> list[Task]:
    """The first ``n`` pairs that an assessor holds, and how far they are with the topic of each."""
    last = state.finished.get(assessor)
    before = None if last is None else last[0]
    held = state.held_by(assessor, now)
    pairs = {event.pair for event in held}
    done = Counter(pair[0] for pair, given in state.judged.items() if any(j.by == assessor for j in given))
    tasks = []
    for event in held[:n]:
        left = 0
        if queue is not None:
            left = queue.left(
                lambda pair: pair not in pairs and state.is_open(pair, assessor, now) and pair not in state.judged,
                event.query,
                allowed=topics_for(state, assessor, now),
                stay=state.settings.stay,
            )
        left += sum(pair[0] == event.query for pair in pairs)
        tasks.append(
            Task(
                query=event.query,
                doc=event.doc,
                text=state.texts.get(event.query, ""),
                until=event.until,
                switched=event.query != before,
                judged_in_topic=done[event.query],
                left_in_topic=left,
            )
        )
        before = event.query
    return tasks


def lease_new(
    state: State,
    assessor: str,
    n: int,
    now: float,
    queues: Sequence[Queue[Pair, str]],
    picks: Mapping[Pair, Pick],
) -> list[Leased]:
    """The new leases that bring an assessor to ``n`` pairs.

    Some of their tasks are gold or repeated pairs, in place of the pair that would come.

    Parameters
    ----------
    queues
        Pairs to judge; later queues serve when the earlier ones have nothing for the assessor.
    picks
        The predictions of the pairs that the model proposed.
    """
    held = state.held_by(assessor, now)
    search = _Search(state, assessor, now, queues, {event.pair for event in held})
    last = held[-1].pair if held else state.finished.get(assessor)
    here = None if last is None else last[0]
    mine = state.topics.get(assessor)
    topic = None if mine is None else mine.query
    chosen: list[Leased] = []
    while len(held) + len(chosen) < n:
        pair = search.next(topic, here)
        if pair is None:
            break
        purpose = task_purpose(state.settings, assessor, state.made.get(assessor, 0) + len(held) + len(chosen))
        allowed = topics_for(state, assessor, now)
        control = control_pair(state, assessor, purpose, taken=search.taken, here=here, allowed=allowed)
        if control is not None:
            chosen.append(lease(state, control, assessor, now, purpose=purpose))
            search.taken.add(control)
            continue
        chosen.append(lease(state, pair, assessor, now, pick=picks.get(pair)))
        search.taken.add(pair)
        here = pair[0]
        topic = topic if pair in state.waiting else here
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
    """The search for the next pair of an assessor, who takes ``taken`` already."""

    state: State
    assessor: str
    now: float
    queues: Sequence[Queue[Pair, str]]
    taken: set[Pair]

    def next(self, topic: str | None, here: str | None) -> Pair | None:
        """The next pair of an assessor with this topic, whose last pair was ``here``.

        Without a price of switching, pairs that need another opinion come first. With one, they wait until the assessor
        changes topic. The assessor then gives all the opinions that one other topic waits for, the one with the most.
        """
        waiting = [pair for pair in self.state.waiting if self._is_open(pair)]
        stays = self.state.settings.stay > 0
        counts = Counter(pair[0] for pair in waiting)
        if waiting and not stays:
            return waiting[0]
        if here in counts:
            return next(pair for pair in waiting if pair[0] == here)
        first = self._first_opinion(topic)
        changes = first is None or first[0] != topic
        if waiting and changes and (first is None or here in (None, topic)):
            most = max(counts, key=counts.__getitem__)
            return next(pair for pair in waiting if pair[0] == most)
        return first

    def _first_opinion(self, topic: str | None) -> Pair | None:
        allowed = topics_for(self.state, self.assessor, self.now)
        found = self._queued(topic, allowed)
        if found is None and self.state.settings.topics == "in-turn":
            return self._queued(topic, lambda _: True)  # more assessors than topics
        return found

    def _queued(self, topic: str | None, allowed: Callable[[str], bool]) -> Pair | None:
        for queue in self.queues:
            taken = sum(pair in self.state.judged or pair in self.state.leases for pair in queue.pairs)
            pair = queue.next(
                self._is_unjudged,
                allowed=allowed,
                current=topic,
                stay=self.state.settings.stay,
                taken=taken + len(self.taken - self.state.leases.keys()),
            )
            if pair is not None:
                return pair
        return None

    def _is_open(self, pair: Pair) -> bool:
        return pair not in self.taken and self.state.is_open(pair, self.assessor, self.now)

    def _is_unjudged(self, pair: Pair) -> bool:
        return pair not in self.state.judged and self._is_open(pair)


def open_pairs(tasks: Sequence[Task], state: JudgingState) -> list[OpenPair]:
    """Leased pairs with their expected grades, given the judgments so far."""
    table = state.prediction.relevance.to_frame()
    means = dict(zip(zip(table["query"], table["doc"], strict=True), table["mean"].tolist(), strict=True))
    return [OpenPair(task.query, task.doc, means.get((task.query, task.doc))) for task in tasks]
