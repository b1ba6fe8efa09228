"""Users' answers about two lists, with the lists, the users and the traps: files, and the parts of a study."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from probeval.arrays import Bools, Floats, Ids, frozen, objects
from probeval.data.spreadsheets import csv_text
from probeval.data.tables import cell_text, ids, numbers, read_table
from probeval.display import Described, Table
from probeval.errors import DataError, SatisfactionError, did_you_mean
from probeval.satisfaction.preferences import Preferences

__all__ = ["ANSWER_FORMATS", "ListAnswers", "read_list_answers"]

ANSWER_FORMATS = ("csv", "jsonl")
TRAPS = ("", "a", "b", "same")
RANK = "#"  # in the name of a column, the rank of a document


@dataclass(frozen=True, eq=False, repr=False)
class ListAnswers(Described):
    """Answers of users to "which of these two lists is better, and is it good?".

    Parameters
    ----------
    preferences
        The scores of the lists and the answers; list ``a`` was shown first, or on the left.
    query, user
        The query and the user of each answer; empty if unknown.
    docs_a, docs_b
        The documents of the two lists, best first, separated by spaces; empty if unknown.
    trap
        The right answer of a trap question: ``a``, ``b``, or ``same`` for no preference; empty for other questions.
    chosen_good
        Whether the preferred list is good, 1 or 0; NaN if the user prefers neither, or was not asked.
    seconds
        The time that the answer took; NaN if unknown.
    """

    preferences: Preferences
    query: Ids
    user: Ids
    docs_a: Ids
    docs_b: Ids
    trap: Ids
    chosen_good: Floats
    seconds: Floats

    def __post_init__(self) -> None:
        for name in ("chosen_good", "seconds"):
            object.__setattr__(self, name, frozen(np.asarray(getattr(self, name), dtype=float)))
        wrong = next((trap for trap in self.trap if trap not in TRAPS), None)
        if wrong is not None:
            raise SatisfactionError(f"The right answer of a trap is a, b or same, or empty for none, got {wrong!r}.")
        odd = self.chosen_good[~np.isnan(self.chosen_good)]
        if not np.isin(odd, (0, 1)).all():
            raise SatisfactionError("Whether the preferred list is good must be 1, 0 or empty.")

    @classmethod
    def of(cls, preferences: Preferences) -> ListAnswers:
        """Answers of which only the scores are known: no users, documents or traps."""
        empty, unknown = objects([""] * len(preferences)), np.full(len(preferences), np.nan)
        return cls(preferences, empty, empty, empty, empty, empty, unknown, unknown)

    def __len__(self) -> int:
        return len(self.preferences)

    def _headline(self) -> str:
        users = len(set(self.user))
        return f"{len(self):,} answers of {users:,} user{'s' * (users != 1)}, {self.is_trap.sum():,} of them to traps"

    def tables(self) -> tuple[Table, ...]:
        """One row per answer."""
        return (Table(self.to_frame(), self._headline()),)

    @property
    def is_trap(self) -> Bools:
        """Which answers are to trap questions, shape (answer,)."""
        return np.asarray(self.trap != "")

    @property
    def is_right(self) -> Bools:
        """Which answers are those of the trap question, shape (answer,); false for other questions."""
        given = np.where(self.preferences.undecided, "same", self.preferences.answer)
        return np.asarray((given == self.trap) & self.is_trap)

    @property
    def is_identical(self) -> Bools:
        """Which answers are about one list that was shown twice, in other questions than traps, shape (answer,)."""
        return np.asarray((self.docs_a == self.docs_b) & (self.docs_a != "") & ~self.is_trap)

    def take(self, which: Any) -> ListAnswers:
        """These answers alone, by positions or by a mask."""
        kept, fields = self.preferences, ("query", "user", "docs_a", "docs_b", "trap", "chosen_good", "seconds")
        chosen = Preferences(kept.a[which], kept.b[which], kept.answer[which], kept.name)
        return ListAnswers(chosen, *(getattr(self, name)[which] for name in fields))

    def by_user(self) -> Iterator[tuple[str, ListAnswers]]:
        """The answers of each user, in the order of their first answers."""
        for user in dict.fromkeys(self.user):
            yield user, self.take(np.flatnonzero(self.user == user))

    def to_frame(self) -> pd.DataFrame:
        """One row per answer, in the columns that :func:`read_list_answers` takes."""
        return pd.DataFrame(
            {
                "query": self.query,
                "user": self.user,
                "answer": self.preferences.answer,
                "chosen_good": pd.Series(self.chosen_good).astype("Int64"),
                "score_a": self.preferences.a,
                "score_b": self.preferences.b,
                "docs_a": self.docs_a,
                "docs_b": self.docs_b,
                "trap": self.trap,
                "seconds": self.seconds,
                "measure": self.preferences.name,
            }
        )

    def export(self, kind: str = "csv") -> str:
        """The answers as the text of a file, CSV or JSON lines."""
        if kind not in ANSWER_FORMATS:
            raise SatisfactionError(f"No format {kind!r}: {', '.join(ANSWER_FORMATS)}.")
        frame = self.to_frame()
        if kind == "csv":
            return csv_text(frame)
        rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
        return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def read_list_answers(
    path: str | PathLike[str],
    *,
    a: str = "score_a",
    b: str = "score_b",
    answer: str = "answer",
    words: Mapping[str, str] | None = None,
    docs_a: str = "docs_a",
    docs_b: str = "docs_b",
) -> ListAnswers:
    """Read users' answers about two lists: the export of a study, or a table of your own.

    The scores and the answers are required; ``query``, ``user``, ``trap``, ``chosen_good``, ``seconds`` and
    ``measure`` are optional columns.

    Parameters
    ----------
    path
        CSV, TSV, JSONL or parquet, plain or gzipped.
    a, b
        The columns of the scores.
    answer
        The column of the answers.
    words
        Mapping from the words in the table to :data:`ANSWERS`, if they differ.
    docs_a, docs_b
        The columns of the documents, separated by spaces; or of one document each, with ``#`` for its rank: ``d#a``.
    """
    file = Path(path)
    table = read_table(file)
    names = {str(name).strip(): name for name in table.columns}
    for name in (a, b, answer):
        if name not in names:
            raise DataError(f"no column {name!r}.{did_you_mean(name, names)}", path=file)

    def text(name: str) -> Ids:
        return objects([cell_text(v).strip() for v in table[names[name]]] if name in names else [""] * len(table))

    def number(name: str) -> Floats:
        if name not in names:
            return np.full(len(table), np.nan)
        return numbers(table[names[name]], name.replace("_", " "), path=file, missing=True, finite=True)

    measures = sorted(set(text("measure")) - {""})
    translated = [(words or {}).get(word, word) for word in text(answer)]
    try:
        first, second = (numbers(table[names[side]], side, path=file) for side in (a, b))
        stated = Preferences(first, second, objects(translated), measures[0] if len(measures) == 1 else f"{a}, {b}")
        return ListAnswers(
            stated,
            text("query"),
            text("user"),
            _documents(table, names, docs_a, file),
            _documents(table, names, docs_b, file),
            text("trap"),
            number("chosen_good"),
            number("seconds"),
        )
    except SatisfactionError as error:
        raise DataError(str(error), path=file) from None


def _documents(table: pd.DataFrame, names: Mapping[str, Any], column: str, path: Path) -> Ids:
    """The documents of each list, separated by spaces, from one column or one per rank."""
    if RANK not in column:
        cells = [cell_text(value) for value in table[names[column]]] if column in names else [""] * len(table)
        return objects([" ".join(cell.split()) for cell in cells])
    ranked: list[list[str]] = []
    while (name := column.replace(RANK, str(len(ranked) + 1))) in names:
        ranked.append(ids(table[names[name]], name, path=path))
    if not ranked:
        first = column.replace(RANK, "1")
        raise DataError(
            f"no column {first!r}: {RANK} is the rank of a document.{did_you_mean(first, names)}", path=path
        )
    return objects([" ".join(docs) for docs in zip(*ranked, strict=True)])
