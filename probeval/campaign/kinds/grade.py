"""The grade of a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from probeval.campaign.events import Answered, GoldChanged, Settled
from probeval.campaign.parsing import NUMBER, as_grade, check_values
from probeval.campaign.questions import GRADE, KINDS, Kind, Question, Words, graded
from probeval.data.collection import read_judgments
from probeval.data.judgments import Judgments
from probeval.errors import DataError

if TYPE_CHECKING:
    from probeval.campaign.candidates import Material
    from probeval.campaign.setup import Setup
    from probeval.campaign.state import State
    from probeval.data.scale import Scale

__all__ = ["GOLD", "Adjudicated", "GoldGradesChanged", "GradeKind", "Judged", "is_right"]

GOLD = "gold"  # the reason with which known grades are settled
MOST_BUTTONS = 10  # with more grades than this, the grade is typed


@dataclass(frozen=True, kw_only=True, repr=False)
class Judged(Answered):
    """An assessor gave a document a grade, on the campaign's scale; below -1 is junk, as in TREC."""

    kind = "judged"
    asks = GRADE
    grade: float

    @property
    def doc(self) -> str:
        """The document."""
        return self.documents[0]


@dataclass(frozen=True, kw_only=True, repr=False)
class Adjudicated(Settled):
    """The grade of a document was settled."""

    kind = "adjudicated"
    asks = GRADE
    grade: float

    @property
    def doc(self) -> str:
        """The document."""
        return self.documents[0]

    @property
    def is_gold(self) -> bool:
        """Whether the grade was settled as a known one, not by a person who looked at the judgments."""
        return self.reason == GOLD


@dataclass(frozen=True, kw_only=True, repr=False)
class GoldGradesChanged(GoldChanged):
    """The pairs with known grades are these: the grades, by query and document."""

    kind = "gold"
    asks = GRADE
    grades: Mapping[str, Mapping[str, float]]

    @property
    def known(self) -> dict[Question, float]:
        """The grade of each pair."""
        return {graded(query, doc): grade for query, docs in self.grades.items() for doc, grade in docs.items()}


class GradeKind(Kind):
    """The grade of one document."""

    name = GRADE
    asks = MappingProxyType({"grades": "grade", "mixed": "grade"})
    places = ("doc",)
    fields = MappingProxyType({"grade": 20})
    answered = Judged
    settled = Adjudicated
    gold = GoldGradesChanged
    gold_counts = True

    def question(self, query: str, documents: Sequence[str]) -> Question:
        """The question for the grade of a document."""
        (doc,) = documents
        return Question(query, (doc,), self.name)

    def values(self, given: Mapping[str, Any], setup: Setup) -> dict[str, Any]:
        """The grade, on the scale."""
        check_values(given, "grade")
        return {"grade": as_grade(setup.scale, given.get("grade"))}

    def parse(self, form: Mapping[str, str]) -> dict[str, Any]:
        """The grade as a number; other text is returned as it is, and the scale refuses it."""
        text = form["grade"]
        return {"grade": float(text) if NUMBER.fullmatch(text) else text}

    def prompt(self, setup: Setup) -> str:
        """The grades, with what each means if that was said."""
        scale, words = setup.scale, setup.grade_words
        if words:
            return "Grade? " + ", ".join(f"{grade:g} {word}" for grade, word in zip(scale.grades, words, strict=True))
        return f"Grade? {scale.grades[0]:g} to {scale.grades[-1]:g}"

    def evidence(self, answers: Sequence[Answered | Settled]) -> Judgments:
        """The grades."""
        given = cast("Sequence[Judged | Adjudicated]", answers)
        return Judgments.rows(
            [e.query for e in given],
            [e.doc for e in given],
            [e.grade for e in given],
            assessors=[e.by for e in given],
            times=[e.when if isinstance(e, Judged) else e.time for e in given],
        )

    def words(self, answer: Answered | Settled, first: str | None = None) -> Words:
        """The grade as a number."""
        return (f"{cast('Judged', answer).grade:g}",) * 2

    def order(self, answer: Answered) -> float:
        """The grade."""
        return cast("Judged", answer).grade

    def spread(self, answers: Sequence[Answered]) -> float:
        """The largest difference of two grades."""
        grades = [answer.grade for answer in cast("Sequence[Judged]", answers)]
        return max(grades) - min(grades)

    def is_right(self, answer: Answered, known: Any, setup: Setup) -> bool:
        """Whether an answer has the known grade, or nearly so."""
        return is_right(setup.scale, cast("Judged", answer).grade, known)

    def as_gold(self, given: Any, setup: Setup) -> dict[str, Any]:
        """The known grades of a file of judgments, or grades by query and document; on the scale."""
        known = _read_gold(Path(given), setup.scale) if isinstance(given, (str, Path)) else given
        grades = {
            query: {doc: as_grade(setup.scale, grade) for doc, grade in docs.items()} for query, docs in known.items()
        }
        return {"grades": grades}

    def page(self, state: State, material: Material) -> dict[str, Any]:
        """The grades with their buttons."""
        setup = state.settings
        return {
            "grades": grade_buttons(setup.scale, setup.grade_words),
            "grade_words": setup.grade_words,
            "scale": setup.scale,
        }


def is_right(scale: Scale, grade: float, known: float) -> bool:
    """Whether an answer has the known grade; on a fine scale, whether it is within one bin of it.

    >>> from probeval.data.scale import Scale
    >>> is_right(Scale.graded(3), 1.0, 2.0), is_right(Scale.fine(100, bins=10), 62.0, 70.0)
    (False, True)
    """
    if scale.bins is None:
        return grade == known
    return abs(grade - known) <= (scale.grades[-1] - scale.grades[0]) / scale.bins


@lru_cache(maxsize=16)
def grade_buttons(scale: Scale, words: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """The grades that have a button, with its caption; none if there are too many grades."""
    if len(scale) > MOST_BUTTONS:
        return []
    ends = {scale.grades[0]: "not relevant", scale.grades[-1]: "relevant" if len(scale) == 2 else "most relevant"}
    captions = words or [ends.get(grade, "") for grade in scale.grades]
    return [(f"{grade:g}", caption) for grade, caption in zip(scale.grades, captions, strict=True)]


def _read_gold(path: Path, scale: Scale) -> dict[str, dict[str, float]]:
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


KINDS.add(GRADE, GradeKind(), own=True)
