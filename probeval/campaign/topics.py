"""The topics of a campaign: their owners, who judges them now, and how far they are."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TypedDict

import numpy as np
import pandas as pd

from probeval.campaign.state import State
from probeval.data.pool import Pool
from probeval.display import Table
from probeval.results import Result
from probeval.schema import records

__all__ = ["Topic", "TopicDocument", "TopicList", "TopicsDocument", "topics_of"]


class TopicDocument(TypedDict):
    """One topic of a campaign.

    Parameters
    ----------
    owner
        The assessor who owns it, or empty.
    judging
        The assessors who judge it now, by their latest leases, or empty.
    pool, judged
        Pairs of the pool, and those with a judgment.
    """

    query: str
    owner: str
    judging: str
    pool: int
    judged: int


class TopicsDocument(TypedDict):
    """The topics of a campaign, and how they are given to assessors."""

    topics: str
    stay: float
    queries: list[TopicDocument]


@dataclass(frozen=True)
class Topic:
    """One topic of a campaign.

    Parameters
    ----------
    query
        The id of the query.
    owner
        The assessor who owns it, or empty.
    judging
        The assessors who judge it now, by their latest leases, or empty.
    pool, judged
        Pairs of the pool, and those with a judgment.
    """

    query: str
    owner: str
    judging: str
    pool: int
    judged: int


@dataclass(frozen=True, repr=False)
class TopicList(Result):
    """The topics of a campaign, and how they are given to assessors.

    Parameters
    ----------
    topics, stay
        How topics are given to assessors, and the price of switching.
    queries
        One entry per query.
    """

    topics: str
    stay: float
    queries: tuple[Topic, ...]

    def to_frame(self) -> pd.DataFrame:
        """One row per query."""
        return pd.DataFrame([asdict(topic) for topic in self.queries], columns=list(Topic.__dataclass_fields__))

    def to_dict(self) -> TopicsDocument:
        """As plain data for JSON."""
        return {"topics": self.topics, "stay": self.stay, "queries": records(self.to_frame(), TopicDocument)}

    def _headline(self) -> str:
        return f"{len(self.queries):,} topics, {self.topics}, a switch costs {self.stay:g} judgments"

    def tables(self) -> tuple[Table, ...]:
        """One row per query."""
        return (Table(self.to_frame(), self._headline()),)

    def sentences(self) -> tuple[str, ...]:
        """The number of topics of each owner."""
        owned = Counter(topic.owner for topic in self.queries if topic.owner)
        return tuple(f"{name} owns {n:,} topics." for name, n in sorted(owned.items()))


def topics_of(state: State, pool: Pool, now: float) -> TopicList:
    """The topics, from the state and the pairs of the pool."""
    graded = state.judged.keys() | state.adjudicated.keys()
    done = Counter(query for query, doc in map(pool.label, range(len(pool))) if (query, doc) in graded)
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
