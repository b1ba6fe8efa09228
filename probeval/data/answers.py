"""Answers of assessors about two documents of one query, shown side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from probeval.arrays import Bools, Floats, Ids, Ints, frozen, objects
from probeval.data.tables import CONTROLS, cell_text, ids, numbers, read_table
from probeval.errors import DataError, did_you_mean

__all__ = ["CHOICES", "RELEVANT", "PairAnswers", "as_answers", "read_answers"]

CHOICES = {"left": 1, "equal": 0, "right": -1}
RELEVANT = {"both": 2, "chosen": 1, "neither": 0}
NO_ANSWER = -9  # a question that was not asked, or not answered
COLUMNS = ("query", "left", "right")
QUESTIONS = ("choice", "relevant", "left_number", "right_number")


@dataclass(frozen=True, eq=False)
class PairAnswers:
    """Answers about two documents of one query: which is better, which are relevant, and by how much.

    Parameters
    ----------
    query, left, right
        The query and the documents on either side, shape (answer,).
    choice
        1 if the left document is better, -1 if the right one is, 0 if they are equal; :data:`NO_ANSWER` if the
        question was not answered.
    relevant
        How many of the two are relevant: 2 for both, 1 for the chosen one only, 0 for neither; or
        :data:`NO_ANSWER`.
    number
        The numbers that the assessor gave the left and the right document, NaN without, shape (answer, 2).
    assessor
        The name of the assessor; empty if unknown.
    seconds
        The time that the answer took, NaN if unknown, shape (answer,).

    Examples
    --------
    >>> table = pd.DataFrame({"query": ["q"] * 2, "left": ["d1", "d3"], "right": ["d2", "d1"], "choice": ["left"] * 2})
    >>> as_answers(table)
    <PairAnswers: 2 answers by 1 assessor on 3 documents of 1 query>
    """

    query: Ids
    left: Ids
    right: Ids
    choice: Ints
    relevant: Ints
    number: Floats
    assessor: Ids
    seconds: Floats

    @classmethod
    def none(cls) -> PairAnswers:
        """Return an empty table: no answers so far."""
        empty, codes = objects([]), np.empty(0, dtype=np.int64)
        return cls(empty, empty, empty, codes, codes, np.empty((0, 2)), empty, np.empty(0))

    def __post_init__(self) -> None:
        same = np.flatnonzero(self.left == self.right)
        if same.size:
            row = int(same[0])
            raise DataError(
                f"answer {row + 1} compares document {self.left[row]!r} of query {self.query[row]!r} with itself: "
                "two documents are expected."
            )
        for name in ("choice", "relevant", "number", "seconds"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def __len__(self) -> int:
        return len(self.query)

    def __repr__(self) -> str:
        people, queries = len(set(self.assessor)), len(set(self.query))
        docs = sum(len(each.documents) for _, each in self.by_query())
        return (
            f"<PairAnswers: {len(self):,} answer{'s' * (len(self) != 1)} by {people:,} "
            f"assessor{'s' * (people != 1)} on {docs:,} documents of {queries:,} "
            f"{'query' if queries == 1 else 'queries'}>"
        )

    @property
    def documents(self) -> list[str]:
        """The documents in alphabetical order, those of all queries together."""
        return sorted({*self.left, *self.right})

    @property
    def is_preference(self) -> Bools:
        """Which answers state a choice, equal ones among them, shape (answer,)."""
        return np.asarray(self.choice != NO_ANSWER)

    def take(self, which: Any) -> PairAnswers:
        """These answers alone, by positions or by a mask."""
        return PairAnswers(*(getattr(self, name)[which] for name in self.__dataclass_fields__))

    def with_more(self, more: PairAnswers) -> PairAnswers:
        """These answers, and more after them."""
        names = self.__dataclass_fields__
        return PairAnswers(*(np.concatenate([getattr(self, name), getattr(more, name)]) for name in names))

    def by_query(self) -> Iterator[tuple[str, PairAnswers]]:
        """The answers of each query, in the order of the queries' first answers."""
        yield from self._by(self.query)

    def by_assessor(self) -> Iterator[tuple[str, PairAnswers]]:
        """The answers of each assessor, in the order of their first answers."""
        yield from self._by(self.assessor)

    def _by(self, names: Ids) -> Iterator[tuple[str, PairAnswers]]:
        for name in dict.fromkeys(names):
            yield name, self.take(np.flatnonzero(names == name))

    def preferred(self) -> tuple[Ids, Ids]:
        """The better and the worse document of each answer that prefers one."""
        some = self.take(np.abs(self.choice) == 1)
        left = some.choice == 1
        return np.where(left, some.left, some.right), np.where(left, some.right, some.left)

    def to_frame(self) -> pd.DataFrame:
        """One row per answer, in the columns that :func:`read_answers` takes."""
        choice, relevant = ({code: word for word, code in words.items()} for words in (CHOICES, RELEVANT))
        return pd.DataFrame(
            {
                "query": self.query,
                "left": self.left,
                "right": self.right,
                "choice": [choice.get(int(code), "") for code in self.choice],
                "relevant": [relevant.get(int(code), "") for code in self.relevant],
                "left_number": self.number[:, 0],
                "right_number": self.number[:, 1],
                "assessor": self.assessor,
                "seconds": self.seconds,
            }
        )


def read_answers(path: str | PathLike[str]) -> PairAnswers:
    """Read answers from a table (CSV, TSV, JSONL, parquet; gzipped or not).

    Its columns are ``query``, ``left`` and ``right``, and one or more of ``choice`` (left, right or equal),
    ``relevant`` (both, chosen or neither), and ``left_number`` with ``right_number``. An ``assessor`` and the
    ``seconds`` that the answer took are optional. An empty cell is a question without an answer.
    Rows whose ``purpose`` is gold, repeat or aside, in the export of a campaign, do not count and are left out.
    """
    return as_answers(read_table(Path(path)), path=Path(path))


def as_answers(table: pd.DataFrame, *, path: Path | None = None) -> PairAnswers:
    """The answers of a table with the columns of :func:`read_answers`."""
    names = {str(name).strip().lower(): name for name in table.columns}
    missing = next((name for name in COLUMNS if name not in names), None)
    if missing is not None:
        near = did_you_mean(missing, names)
        raise DataError(f"no column {missing!r}: expected {', '.join(COLUMNS)}.{near}", path=path)
    if not any(name in names for name in QUESTIONS):
        raise DataError(f"no answers: expected one or more of the columns {', '.join(QUESTIONS)}.", path=path)
    if "purpose" in names:
        table = table[~table[names["purpose"]].isin(CONTROLS)]
    query, left, right = (objects(ids(table[names[name]], name, path=path)) for name in COLUMNS)

    def codes(name: str, words: dict[str, int]) -> Ints:
        if name not in names:
            return np.full(len(table), NO_ANSWER)
        return _codes(table[names[name]].tolist(), name, words, path)

    def number(name: str) -> Floats:
        if name not in names:
            return np.full(len(table), np.nan)
        return numbers(table[names[name]], name.replace("_", " "), path=path, missing=True, finite=True)

    given = np.column_stack([number("left_number"), number("right_number")])
    wrong = np.flatnonzero((np.isnan(given).sum(axis=1) == 1) | (given < 0).any(axis=1))
    if wrong.size:
        row = int(wrong[0])
        raise DataError(
            f"the numbers in row {row + 1} must be two numbers from 0, got {given[row].tolist()}.", path=path
        )
    people = [cell_text(name) for name in table[names["assessor"]]] if "assessor" in names else [""] * len(table)
    return PairAnswers(
        query,
        left,
        right,
        codes("choice", CHOICES),
        codes("relevant", RELEVANT),
        given,
        objects(people),
        number("seconds"),
    )


def _codes(values: Sequence[Any], name: str, words: dict[str, int], path: Path | None) -> Ints:
    out = np.full(len(values), NO_ANSWER)
    for row, value in enumerate(values):
        word = cell_text(value).strip().lower()
        if word and word not in words:
            raise DataError(
                f"the {name} in row {row + 1} must be one of {', '.join(words)}, or empty, got {value!r}.", path=path
            )
        if word:
            out[row] = words[word]
    return out
