"""The progress of each query: pairs judged and left, assessors, uncertainty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from probeval.campaign.snapshot import ModelSnapshot
from probeval.campaign.state import State
from probeval.display import Record

__all__ = ["QueryProgress", "QueryProgressDocument", "query_progress"]


class QueryProgressDocument(TypedDict):
    """The progress of one query.

    Parameters
    ----------
    query, text
        Its id and its text.
    pool, judged, answers
        Its pairs in the pool, those with a grade, and the answers about two of its documents.
    proposed
        Its unjudged pairs among those that the model proposes to judge next.
    assessors
        The assessors who judged some of them.
    uncertainty
        The standard deviation of a system's score on this query; null if the model has not run.
    """

    query: str
    text: str
    pool: int
    judged: int
    answers: int
    proposed: int
    assessors: list[str]
    uncertainty: float


@dataclass(frozen=True, repr=False)
class QueryProgress(Record):
    """The progress of one query: the fields of :class:`QueryProgressDocument`."""

    query: str
    text: str
    pool: int
    judged: int
    answers: int
    proposed: int
    assessors: tuple[str, ...]
    uncertainty: float


def query_progress(
    state: State, pool: Sequence[tuple[str, str]], snapshot: ModelSnapshot | None
) -> tuple[QueryProgress, ...]:
    """The progress of each query, by id."""
    graded = state.judged.keys() | state.adjudicated.keys()
    size: dict[str, int] = {}
    judged: dict[str, int] = {}
    for pair in pool:
        size[pair[0]] = size.get(pair[0], 0) + 1
        judged[pair[0]] = judged.get(pair[0], 0) + (pair in graded)
    who: dict[str, set[str]] = {}
    for (query, _), events in state.judged.items():
        who.setdefault(query, set()).update(judgment.by for judgment in events)
    answers: dict[str, int] = {}
    for answer in state.counted_answers:
        answers[answer.query] = answers.get(answer.query, 0) + 1
        who.setdefault(answer.query, set()).add(answer.by)
    proposed: dict[str, int] = {}
    for query, doc in () if snapshot is None else snapshot.queue:
        proposed[query] = proposed.get(query, 0) + ((query, doc) not in graded)
    uncertainty: Mapping[str, float] = {} if snapshot is None else snapshot.uncertainty
    return tuple(
        QueryProgress(
            query=query,
            text=state.texts.get(query, ""),
            pool=size[query],
            judged=judged[query],
            answers=answers.get(query, 0),
            proposed=proposed.get(query, 0),
            assessors=tuple(sorted(who.get(query, ()))),
            uncertainty=uncertainty.get(query, float("nan")),
        )
        for query in sorted(size)
    )
