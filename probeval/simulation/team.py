"""A team of simulated assessors, who take pairs in turn, each by topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from math import ceil

import numpy as np

from probeval.arrays import Ints
from probeval.selection import Batch, JudgingState, Pick, foresee
from probeval.selection.topics import PER_TOPIC, Queue, deal

__all__ = ["SimulatedTeam"]


@dataclass(eq=False)
class SimulatedTeam:
    """Simulated assessors, who judge in parallel: each takes a pair in turn.

    Parameters
    ----------
    assessors
        Their number.
    topics, stay
        How topics are given to them, and the price of switching (:mod:`probeval.selection.topics`).
    sizes
        The number of pairs of each query, shape (query,), to deal topics evenly.
    """

    assessors: int
    topics: str
    stay: float
    sizes: Ints
    _turns: int = 0
    _current: list[int | None] = field(init=False)
    _owners: Ints = field(init=False)
    _waiting: dict[int, Pick] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._current = [None] * self.assessors
        dealt = deal(dict(enumerate(self.sizes.tolist())), [str(each) for each in range(self.assessors)])
        self._owners = np.array([int(dealt[q]) for q in range(len(self.sizes))])

    def take(self, state: JudgingState, n: int) -> list[tuple[int, int, Pick]]:
        """Return up to ``n`` pairs that the team judges next: the assessor, the pair and its prediction.

        The queue is made once, as in a campaign whose model runs apart from judging.
        """
        if self.topics == "free" and self.stay == 0:
            batch = state.next(n)
            foreseen = zip(batch.pairs.tolist(), foresee(state, batch), strict=True)
            return [(self._take_turn(), pair, pick) for pair, pick in foreseen]
        per_topic = max(PER_TOPIC, n if self.topics == "free" else ceil(n / self.assessors))
        current = [topic for topic in self._current if topic is not None]
        queue, draws = state.by_topic(n, per_topic=per_topic, waiting=self._waiting, current=current)
        self._waiting |= dict(zip(draws.pairs.tolist(), foresee(state, draws), strict=True))
        taken: dict[int, int] = {}
        while len(taken) < n:
            found = self._next(queue, taken)
            if found is None:
                break
            taken[found[1]] = found[0]
        chosen = np.array([pair for pair in taken if pair not in self._waiting], dtype=np.int64)
        picks = dict(zip(chosen.tolist(), foresee(state, Batch(chosen, np.full(len(chosen), np.nan))), strict=True))
        picks |= {pair: self._waiting.pop(pair) for pair in taken if pair in self._waiting}
        return [(who, pair, picks[pair]) for pair, who in taken.items()]

    def _next(self, queue: Queue[int, int], taken: Mapping[int, int]) -> tuple[int, int] | None:
        """Return the next assessor in turn for whom the queue has a pair, and the pair."""
        for _ in range(self.assessors):
            who = self._take_turn()
            pair = queue.next(
                lambda each: each not in taken,
                allowed=partial(self._allowed, who),
                current=self._current[who],
                stay=self.stay,
                taken=len(taken),
            )
            if pair is not None:
                self._current[who] = queue.topic_of(pair)
                return who, pair
        return None

    def _take_turn(self) -> int:
        self._turns += 1
        return (self._turns - 1) % self.assessors

    def _allowed(self, who: int, topic: int) -> bool:
        if self.topics == "owned":
            return int(self._owners[topic]) == who
        return self.topics == "free" or all(self._current[o] != topic for o in range(self.assessors) if o != who)
