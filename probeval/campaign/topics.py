"""The topics of a campaign: their owners, who judges them now, and how far they are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from probeval.campaign.state import State
from probeval.data.pool import Pool
from probeval.results import Result

__all__ = ["Topic", "TopicList", "topics_of"]


@dataclass(frozen=True)
class Topic:
    """One topic of a campaign."""

    query: str
    owner: Annotated[str, "The assessor who owns it, or empty."]
    judging: Annotated[str, "The assessors who judge it now, by their latest leases, or empty."]
    pool: Annotated[int, "Its pairs in the pool."]
    judged: Annotated[int, "Its pairs with a judgment."]


@dataclass(frozen=True, repr=False)
class TopicList(Result):
    """The topics of a campaign, and how they are given to assessors."""

    topics: Annotated[str, "How topics are given to assessors: ``free``, ``in-turn`` or ``owned``."]
    stay: Annotated[float, "The price of switching."]
    queries: Annotated[tuple[Topic, ...], "One entry per query."]

    def _headline(self) -> str:
        return f"{len(self.queries):,} topics, {self.topics}, a switch costs {self.stay:g} judgments"

    def sentences(self) -> tuple[str, ...]:
        """The number of topics of each owner."""
        owned = Counter(topic.owner for topic in self.queries if topic.owner)
        return tuple(f"{name} owns {n:,} topics." for name, n in sorted(owned.items()))


def topics_of(state: State, pool: Pool, now: float) -> TopicList:
    """The topics, from the state and the pairs of the pool."""
    done = Counter(query for query, doc in map(pool.label, range(len(pool))) if (query, doc) in state.graded)
    judging: dict[str, list[str]] = {}
    for name, event in sorted(state.topics.items()):
        if event.until > now:
            judging.setdefault(event.query, []).append(name)
    sizes = np.asarray(pool.sizes).tolist()
    return TopicList(
        state.settings.topics,
        state.settings.stay,
        tuple(
            Topic(query, state.owners.get(query, ""), ", ".join(judging.get(query, [])), size, done[query])
            for query, size in zip(map(str, pool.queries), sizes, strict=True)
        ),
    )
