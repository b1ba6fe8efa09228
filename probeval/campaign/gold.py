"""The gold pairs of a campaign: files of known grades, and how assessors answered each pair."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from probeval.campaign.comparison_events import Compared
from probeval.campaign.events import Pair, Question, TaskPurpose, comparison
from probeval.campaign.parsing import as_grade
from probeval.campaign.state import State
from probeval.data.collection import read_judgments
from probeval.data.files import suffix
from probeval.data.scale import Scale
from probeval.data.tables import column_names, ids, read_table
from probeval.display import Table
from probeval.errors import CampaignError, DataError, did_you_mean
from probeval.results import Result, frame

__all__ = [
    "GoldList",
    "GoldOrder",
    "GoldPair",
    "checked_gold",
    "checked_orders",
    "gold_of",
    "is_right",
    "names_orders",
    "read_gold",
    "read_gold_orders",
]

ORDER_COLUMNS = ("query", "better", "worse")


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
        """The number of gold pairs, of those that count as judged, of gold comparisons, and a missing share, if any."""
        found = [f"{len(self.pairs):,} gold pairs; {sum(p.retrieved for p in self.pairs):,} of them count as judged."]
        if self.orders:
            found.append(f"{len(self.orders):,} gold comparisons.")
        if (self.pairs or self.orders) and not self.gold_share:
            found.append("No task is a gold pair yet: set a share with campaign change --gold-share .05.")
        return tuple(found)


def read_gold(path: Path, scale: Scale) -> dict[str, dict[str, float]]:
    """The grades of a file of judgments, by query and document: one grade per pair."""
    given = read_judgments(path, scale=scale)
    grades: dict[str, dict[str, float]] = {}
    for pair, grade in zip(given.pair, given.grade, strict=True):
        query, doc = given.pool.label(int(pair))
        before = grades.setdefault(query, {}).setdefault(doc, float(grade))
        if before != grade:
            what = f"query {query!r}, document {doc!r} has the grades {before:g} and {grade:g}. Keep the right one."
            raise DataError(what, path=path)
    return grades


def names_orders(path: Path) -> bool:
    """Whether a file has comparisons with a known answer: a table with the columns better and worse."""
    return bool(suffix(path)) and {"better", "worse"} <= set(column_names(path))


def read_gold_orders(path: Path) -> dict[str, tuple[tuple[str, str], ...]]:
    """The comparisons of a table of query, better and worse, by query: the better and the worse document."""
    table = read_table(path)
    names = {str(name).strip().lower(): name for name in table.columns}
    missing = next((name for name in ORDER_COLUMNS if name not in names), None)
    if missing is not None:
        raise DataError(f"no column {missing!r}: expected {', '.join(ORDER_COLUMNS)}.", path=path)
    orders: dict[str, list[tuple[str, str]]] = {}
    for query, better, worse in zip(*(ids(table[names[name]], name, path=path) for name in ORDER_COLUMNS), strict=True):
        orders.setdefault(query, []).append((better, worse))
    return {query: tuple(pairs) for query, pairs in orders.items()}


def checked_orders(
    orders: Mapping[str, Iterable[tuple[str, str]]], queries: Iterable[str]
) -> dict[str, tuple[tuple[str, str], ...]]:
    """The orders, if all are of these queries and no two contradict each other; otherwise an error."""
    _check_queries(orders, queries, "Gold comparisons")
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for query, pairs in orders.items():
        known: dict[Question, str] = {}
        for better, worse in pairs:
            if better == worse:
                raise CampaignError(f"Gold comparisons: query {query!r} compares document {better!r} with itself.")
            if known.setdefault(comparison(query, better, worse), better) != better:
                raise CampaignError(f"Gold comparisons: query {query!r} has {better!r} and {worse!r} in both orders.")
        found[query] = tuple(dict.fromkeys((better, worse) for better, worse in pairs))
    return found


def _check_queries(named: Iterable[str], queries: Iterable[str], what: str) -> None:
    known = list(queries)
    for query in named:
        if query not in known:
            raise CampaignError(f"{what}: no query {query!r} in this campaign.{did_you_mean(str(query), known)}")


def checked_gold(
    grades: Mapping[str, Mapping[str, float]], queries: Iterable[str], scale: Scale
) -> dict[str, dict[str, float]]:
    """The grades, if all are of these queries and on the scale; otherwise an error."""
    _check_queries(grades, queries, "Gold pairs")
    return {query: {doc: as_grade(scale, grade) for doc, grade in docs.items()} for query, docs in grades.items()}


def is_right(scale: Scale, grade: float, known: float) -> bool:
    """Whether an answer has the known grade; on a fine scale, whether it is within one bin of it.

    >>> is_right(Scale.graded(3), 1.0, 2.0), is_right(Scale.fine(100, bins=10), 62.0, 70.0)
    (False, True)
    """
    if scale.bins is None:
        return grade == known
    return abs(grade - known) <= (scale.grades[-1] - scale.grades[0]) / scale.bins


def gold_of(state: State, retrieved: Collection[Pair]) -> GoldList:
    """The gold pairs and their answers, from the state and the pairs that some run retrieves."""
    scale, found = state.settings.scale, []
    for pair, known in sorted(state.gold.items()):
        given = [answer.grade for answer in state.answers(pair).values() if answer.purpose is TaskPurpose.gold]
        right = sum(is_right(scale, grade, known) for grade in given)
        mean = float(np.mean(given)) if given else float("nan")
        found.append(GoldPair(*pair, known, pair in retrieved, len(given), right, mean))
    orders = []
    for question, better in sorted(state.gold_orders.items()):
        chosen = [a.better for a in state.checks(question).values() if isinstance(a, Compared)]
        (worse,) = (doc for doc in question[1:] if doc != better)
        orders.append(GoldOrder(question[0], better, worse, len(chosen), chosen.count(better)))
    return GoldList(state.settings.gold_share, state.settings.repeat_share, tuple(found), tuple(orders))
