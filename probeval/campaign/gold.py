"""The gold questions of a campaign, and how assessors answered each."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np

from probeval.campaign.questions import COMPARISON, GRADE, Pair, kind_of
from probeval.campaign.state import State
from probeval.display import Table, counted
from probeval.errors import CampaignError, did_you_mean
from probeval.results import Result, frame

if TYPE_CHECKING:
    from probeval.campaign.kinds.grade import Judged

__all__ = ["GoldList", "GoldOrder", "GoldPair", "checked_gold", "gold_of"]


@dataclass(frozen=True)
class GoldPair:
    """A pair with a known grade, and its answers."""

    query: str
    doc: str
    grade: Annotated[float, "The known grade."]
    retrieved: Annotated[bool, "Whether some run retrieves it; the known grade then counts."]
    answers: Annotated[int, "The number of answers of assessors."]
    right: Annotated[int, "The number of right answers."]
    mean: Annotated[float, "Their mean grade; null for none."]


@dataclass(frozen=True)
class GoldOrder:
    """Two documents of which one is known to be better, and the answers."""

    query: str
    better: str
    worse: str
    answers: Annotated[int, "The number of answers of assessors."]
    right: Annotated[int, "The number of right answers."]


@dataclass(frozen=True, repr=False)
class GoldList(Result):
    """The gold pairs and comparisons of a campaign."""

    gold_share: Annotated[float, "The share of an assessor's tasks that are gold questions."]
    repeat_share: Annotated[float, "The share of an assessor's tasks that are repeated questions."]
    pairs: Annotated[tuple[GoldPair, ...], "One entry per gold pair."]
    orders: Annotated[tuple[GoldOrder, ...], "One entry per gold comparison."] = ()

    def _headline(self) -> str:
        compared = f" and {len(self.orders):,} gold comparisons" if self.orders else ""
        return f"{len(self.pairs):,} gold pairs{compared}, {self.gold_share:.0%} of the tasks"

    def tables(self) -> tuple[Table, ...]:
        """One row per pair; one per comparison, if any."""
        pairs = Table(self.to_frame(), self._headline())
        return (pairs, Table(frame(self.orders, GoldOrder), "Gold comparisons")) if self.orders else (pairs,)

    def sentences(self) -> tuple[str, ...]:
        """The gold pairs, how many were asked and how many count as judged; comparisons; a missing share, if any."""
        asked, answers = sum(pair.answers > 0 for pair in self.pairs), sum(pair.answers for pair in self.pairs)
        right = f": {sum(pair.right for pair in self.pairs):,} of {counted(answers, 'answer')} right" if answers else ""
        found = [
            f"{counted(len(self.pairs), 'gold pair')}, {asked:,} of them asked so far{right}.",
            f"{sum(pair.retrieved for pair in self.pairs):,} of them count as judged.",
        ]
        if self.orders:
            found.append(f"{len(self.orders):,} gold comparisons.")
        if (self.pairs or self.orders) and not self.gold_share:
            found.append("No task is a gold pair yet: set a share with campaign change --gold-share .05.")
        return tuple(found)


def gold_of(state: State, retrieved: Collection[Pair]) -> GoldList:
    """The gold questions and their answers, from the state and the pairs that some run retrieves."""
    pairs, orders = list[GoldPair](), list[GoldOrder]()
    for question, known in sorted(state.gold.items(), key=lambda each: each[0]):
        given = state.gold_answers(question)
        right = sum(kind_of(question.kind).is_right(answer, known, state.settings) for answer in given)
        if question.kind == GRADE:
            (pair,), grades = question.pairs, [cast("Judged", answer).grade for answer in given]
            mean = float(np.mean(grades)) if grades else float("nan")
            pairs.append(GoldPair(*pair, known, pair in retrieved, len(given), right, mean))
        elif question.kind == COMPARISON:
            (worse,) = (doc for doc in question.documents if doc != known)
            orders.append(GoldOrder(question.query, known, worse, len(given), right))
    return GoldList(state.settings.gold_share, state.settings.repeat_share, tuple(pairs), tuple(orders))


def checked_gold(values: dict[str, Any], queries: Iterable[str]) -> dict[str, Any]:
    """Known answers by query, if all are of these queries; otherwise an error."""
    known = list(queries)
    for query in (query for by_query in values.values() for query in by_query):
        if query not in known:
            raise CampaignError(f"Gold: no query {query!r} in this campaign.{did_you_mean(str(query), known)}")
    return values
