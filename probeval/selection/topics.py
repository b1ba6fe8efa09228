"""Judging by topic: an assessor stays within a query as long as no other promises much more.

A *topic* is a query as an assessor's piece of work. See docs/theory/judging.md#topics.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from probeval.errors import SelectionError, did_you_mean

__all__ = ["PER_TOPIC", "TOPICS", "Queue", "check_stay", "check_topics", "deal"]

TOPICS = ("free", "in-turn", "owned")
PER_TOPIC = 10  # pairs of each topic in a queue, at least: by them a visit is valued

P = TypeVar("P", bound=Hashable)
T = TypeVar("T", bound=Hashable)


def check_stay(stay: float) -> None:
    """Raise an error unless the price of switching is a finite number from 0."""
    if not isfinite(stay) or stay < 0:
        raise SelectionError(f"The price of switching (stay) must be a finite number from 0, got {stay:g}.")


def check_topics(topics: str) -> None:
    """Raise an error unless this is a way of giving topics to assessors."""
    if topics not in TOPICS:
        raise SelectionError(
            f"Topics are given to assessors as {', '.join(TOPICS)}; got {topics!r}.{did_you_mean(topics, TOPICS)}"
        )


class _Visit(NamedTuple):
    """A visit to a topic: the position of its first pair, and the value per judgment, with the price of switching."""

    first: int
    rate: float


@dataclass(frozen=True, eq=False)
class Queue(Generic[P, T]):
    """Pairs to judge next, best first, for assessors who each take a part of them.

    Parameters
    ----------
    pairs, topics
        The pairs, and the topic of each.
    values
        What the judgment of each pair is worth to the policy, from 0.
    due
        For a pair that was drawn at random, the number of pairs of the queue after which it is due: it then waits for
        an assessor who comes to its topic, or changes topic. None for the pairs of the policy's choice.

    Examples
    --------
    >>> queue = Queue(["a1", "b1", "a2", "b2"], ["a", "b", "a", "b"], [9.0, 8.0, 5.0, 4.0], [None] * 4)
    >>> left = {"b1", "a2", "b2"}.__contains__
    >>> [queue.next(left, current="a", stay=stay) for stay in (0, 0.5, 1)]
    ['b1', 'b1', 'a2']
    """

    pairs: Sequence[P]
    topics: Sequence[T]
    values: Sequence[float]
    due: Sequence[int | None]

    def next(
        self,
        is_open: Callable[[P], bool],
        *,
        allowed: Callable[[T], bool] = lambda _: True,
        current: T | None = None,
        stay: float = 0.0,
        taken: int = 0,
    ) -> P | None:
        """Return the next pair for an assessor; None if the queue has none for them.

        Parameters
        ----------
        is_open, allowed
            Whether the assessor may get a pair, and a topic.
        current
            The topic of their last pair.
        stay
            The price of switching to another topic, in judgments.
        taken
            The pairs of the queue that assessors have taken.
        """
        best = self._best_visit(is_open, allowed, current, stay)
        due = [at for at in self._due(taken) if allowed(self.topics[at]) and is_open(self.pairs[at])]
        here = [at for at in due if self.topics[at] == current]
        if stay > 0 and best is not None and self.topics[best.first] == current:
            due = []  # the draws of other topics wait
        for at in (*here, *due):
            return self.pairs[at]
        return None if best is None else self.pairs[best.first]

    def left(
        self, is_open: Callable[[P], bool], topic: T, *, allowed: Callable[[T], bool] = lambda _: True, stay: float
    ) -> int:
        """Return the number of open pairs of a topic that are worth staying for, by the values of now."""
        other = self._best_visit(is_open, lambda each: allowed(each) and each != topic, None, stay)
        elsewhere = 0.0 if other is None else other.rate
        return sum(is_open(self.pairs[at]) and self.values[at] >= elsewhere for at in self._chosen.get(topic, ()))

    def topic_of(self, pair: P) -> T:
        """Return the topic of a pair of the queue."""
        return self._topic[pair]

    def _best_visit(
        self, is_open: Callable[[P], bool], allowed: Callable[[T], bool], current: T | None, stay: float
    ) -> _Visit | None:
        """Return the visit that is worth most, the first of several; None without an open pair.

        No visit is worth more per judgment than the best pair of its topic, so the search ends before most topics.
        """
        best = None
        for bound, topic, positions in self._by_bound:
            if best is not None and (-bound, positions[0]) > (-best.rate, best.first):
                break
            visit = self._visit(positions, is_open, 0.0 if topic == current else stay) if allowed(topic) else None
            if visit is not None and (best is None or (-visit.rate, visit.first) < (-best.rate, best.first)):
                best = visit
        return best

    def _visit(self, positions: Sequence[int], is_open: Callable[[P], bool], price: float) -> _Visit | None:
        """Return the best visit to a topic with pairs at these positions; None if none of them is open."""
        first, n, total, rate = None, price, 0.0, 0.0
        for at in positions:
            if first is not None and self.values[at] <= rate:
                break  # values fall, and so does the mean from here on
            if is_open(self.pairs[at]):
                first = at if first is None else first
                n, total = n + 1, total + self.values[at]
                rate = max(rate, total / n)
        return None if first is None else _Visit(first, rate)

    def _due(self, taken: int) -> list[int]:
        return [at for at, due in self.draws.items() if due <= taken]

    @cached_property
    def draws(self) -> dict[int, int]:
        """The positions of the pairs that were drawn at random, and when each is due."""
        return {at: due for at, due in enumerate(self.due) if due is not None}

    @cached_property
    def _topic(self) -> dict[P, T]:
        return dict(zip(self.pairs, self.topics, strict=True))

    @cached_property
    def _chosen(self) -> dict[T, list[int]]:
        """The positions of the pairs of the policy's choice, by topic."""
        out: dict[T, list[int]] = {}
        for at, topic in enumerate(self.topics):
            if self.due[at] is None:
                out.setdefault(topic, []).append(at)
        return out

    @cached_property
    def _by_bound(self) -> list[tuple[float, T, list[int]]]:
        """The value of the best pair of each topic, the topic and its positions; the best first."""
        bounds = [(max(self.values[at] for at in own), topic, own) for topic, own in self._chosen.items()]
        return sorted(bounds, key=lambda each: (-each[0], each[2][0]))


def deal(sizes: Mapping[T, int], assessors: Sequence[str], owners: Mapping[T, str] | None = None) -> dict[T, str]:
    """Return an owner for each topic: as many topics for each assessor, and about as many pairs.

    A topic that one of the assessors owns stays theirs. The others are dealt, the largest first, to the assessor with
    the fewest topics, and among these with the fewest pairs.

    Parameters
    ----------
    sizes
        The number of pairs of each topic.
    assessors
        Their names.
    owners
        The present owners, if any.

    Examples
    --------
    >>> deal({"q1": 40, "q2": 30, "q3": 20, "q4": 10}, ["ann", "bob"])
    {'q1': 'ann', 'q2': 'bob', 'q3': 'bob', 'q4': 'ann'}
    """
    names = list(dict.fromkeys(assessors))
    if not names:
        raise SelectionError("Topics are dealt to assessors: name at least one.")
    known = {} if owners is None else owners
    out = {topic: known[topic] for topic in sizes if known.get(topic) in names}
    load = {name: np.zeros(2, dtype=int) for name in names}
    for topic, name in out.items():
        load[name] += (1, sizes[topic])
    for topic in sorted((t for t in sizes if t not in out), key=lambda t: -sizes[t]):
        name = min(names, key=lambda each: tuple(load[each]))
        out[topic] = name
        load[name] += (1, sizes[topic])
    return {topic: out[topic] for topic in sizes}
