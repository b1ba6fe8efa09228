"""The gold pairs of a campaign: files of known grades, and how assessors answered each pair."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np
import pandas as pd

from probeval.campaign.events import Pair, TaskPurpose
from probeval.campaign.parsing import as_grade
from probeval.campaign.state import State
from probeval.data.collection import read_judgments
from probeval.data.scale import Scale
from probeval.display import Shown, View
from probeval.errors import CampaignError, DataError, did_you_mean
from probeval.schema import records

__all__ = [
    "GoldDocument",
    "GoldList",
    "GoldPair",
    "GoldPairDocument",
    "checked_gold",
    "gold_of",
    "is_right",
    "read_gold",
]


class GoldPairDocument(TypedDict):
    """A pair with a known grade.

    Parameters
    ----------
    grade
        The known grade.
    retrieved
        Whether some run retrieves it; the known grade then counts.
    answers, right, mean
        The number of answers of assessors, of those that are right, and their mean grade, null for none.
    """

    query: str
    doc: str
    grade: float
    retrieved: bool
    answers: int
    right: int
    mean: float


class GoldDocument(TypedDict):
    """The gold pairs of a campaign, and the shares of tasks that are gold and repeated pairs."""

    gold_share: float
    repeat_share: float
    pairs: list[GoldPairDocument]


@dataclass(frozen=True)
class GoldPair:
    """A pair with a known grade, and its answers: the fields of :class:`GoldPairDocument`."""

    query: str
    doc: str
    grade: float
    retrieved: bool
    answers: int
    right: int
    mean: float


@dataclass(frozen=True, repr=False)
class GoldList(Shown):
    """The gold pairs of a campaign.

    Parameters
    ----------
    gold_share, repeat_share
        The shares of an assessor's tasks that are gold pairs and repeated ones.
    pairs
        One entry per gold pair.
    """

    gold_share: float
    repeat_share: float
    pairs: tuple[GoldPair, ...]

    def to_frame(self) -> pd.DataFrame:
        """One row per pair."""
        return pd.DataFrame([asdict(pair) for pair in self.pairs], columns=list(GoldPair.__dataclass_fields__))

    def to_dict(self) -> GoldDocument:
        """As plain data for JSON."""
        pairs = records(self.to_frame(), GoldPairDocument)
        return {"gold_share": self.gold_share, "repeat_share": self.repeat_share, "pairs": pairs}

    def _headline(self) -> str:
        return f"{len(self.pairs):,} gold pairs, {self.gold_share:.0%} of the tasks"

    def views(self) -> tuple[View, ...]:
        """One row per pair."""
        return (View(self.to_frame(), self._headline()),)

    def sentences(self) -> tuple[str, ...]:
        """The number of gold pairs, of those that count as judged, and a missing share, if any."""
        found = [f"{len(self.pairs):,} gold pairs; {sum(p.retrieved for p in self.pairs):,} of them count as judged."]
        if self.pairs and not self.gold_share:
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


def checked_gold(
    grades: Mapping[str, Mapping[str, float]], queries: Iterable[str], scale: Scale
) -> dict[str, dict[str, float]]:
    """The grades, if all are of these queries and on the scale; otherwise an error."""
    known = dict.fromkeys(queries)
    for query in grades:
        if query not in known:
            raise CampaignError(
                f"Gold pairs: no query {query!r} in this campaign.{did_you_mean(str(query), list(known))}"
            )
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
    return GoldList(state.settings.gold_share, state.settings.repeat_share, tuple(found))
