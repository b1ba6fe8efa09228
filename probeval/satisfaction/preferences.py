"""Users' preferences between two lists, as a function of the difference in score."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from probeval.arrays import Bools, Floats, Ids, Ints, frozen, objects
from probeval.data.scale import Scale
from probeval.data.tables import cell_text, numbers, read_table
from probeval.display import Described, Table
from probeval.errors import DataError, SatisfactionError, did_you_mean
from probeval.metrics import AnyMetric
from probeval.metrics.mapping import EDGE, TENTHS, SatMapping, fit_mapping, published_names, tenths
from probeval.metrics.users_file import is_users_file, read_users_file
from probeval.results import Result, key, rows

__all__ = [
    "ANSWERS",
    "Agreement",
    "Preferences",
    "agreement_for",
    "load_agreement",
    "published_agreements",
    "read_preferences",
]

ANSWERS = {
    "a": "the first list is better",
    "b": "the second list is better",
    "good": "no preference: both are good",
    "bad": "no preference: both are bad",
}


@dataclass(frozen=True)
class AgreementTenth:
    """Users' preferences for one tenth of the difference between two lists."""

    lower: float
    upper: float
    n: Annotated[int, "The number of answers."]
    better: Annotated[float, "The share of users who prefer the better list; null without answers."]
    neither: Annotated[float, "The share of those who prefer neither."]
    worse: Annotated[float, "The share of those who prefer the worse one."]


@dataclass(frozen=True, eq=False, repr=False)
class Agreement(Result):
    """The share of users who prefer the list with the higher score, by tenths of the difference in score.

    Parameters
    ----------
    better, neither, worse
        The numbers of users who preferred the list with the higher score, neither, or the one with the lower score,
        in each tenth of the absolute difference, shape (10,). Lists with the same score count as neither.

    Examples
    --------
    >>> music = load_agreement("CGl@5/broad")
    >>> better, neither, worse = music(0.45)
    >>> round(float(better), 2), round(float(neither), 2), round(float(worse), 2)
    (0.47, 0.47, 0.05)
    """

    better: Ints
    neither: Ints
    worse: Ints
    name: Annotated[str, "The measure and the scale of the scores."] = ""
    origin: Annotated[str, "The source of the users."] = ""

    def __post_init__(self) -> None:
        for part in ("better", "neither", "worse"):
            object.__setattr__(self, part, frozen(np.asarray(getattr(self, part), dtype=np.int64)))
        if (self.n == 0).all():
            raise SatisfactionError("Agreement needs at least one answer.")

    @property
    def n(self) -> Ints:
        """The number of answers in each tenth, shape (10,)."""
        return self.better + self.neither + self.worse

    def _share(self, count: Ints) -> Floats:
        """Return a share per tenth, shape (10,); a tenth without answers has the share of the nearest one with any."""
        seen = np.flatnonzero(self.n)
        nearest = seen[np.abs(np.arange(TENTHS)[:, None] - seen).argmin(axis=1)]
        return np.asarray(count[nearest] / self.n[nearest])

    def __call__(self, difference: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Return P(a user prefers the first list, neither, the second) given the difference, first minus second."""
        d = np.asarray(difference, dtype=float)
        at = tenths(np.abs(d))
        right, wrong = self._share(self.better)[at], self._share(self.worse)[at]
        first = np.where(d > EDGE, right, np.where(d < -EDGE, wrong, 0.0))
        second = np.where(d > EDGE, wrong, np.where(d < -EDGE, right, 0.0))
        return first, 1.0 - first - second, second

    def noticeable(self, share: float = 0.5) -> float:
        """Return the least difference from which on at least this share of users prefer the better list.

        It is the lower end of a tenth: in that tenth and in all above it, the share is reached. Tenths without answers
        are skipped. See docs/theory/satisfaction.md#noticeable.

        >>> load_agreement("CGl@5/fine").noticeable(), load_agreement("CGl@5/broad").noticeable()
        (0.3, 0.5)
        """
        if not 0 < share <= 1:
            raise SatisfactionError(f"A share of users is above 0 and at most 1, got {share:g}.")
        seen = np.flatnonzero(self.n)
        reached = self.better[seen] / self.n[seen] >= share
        if not reached[-1]:
            raise SatisfactionError(
                f"No difference is noticed by {share:.0%} of users: {self.name or 'the agreement'} reaches "
                f"{self.better[seen[-1]] / self.n[seen[-1]]:.1%}. Ask for a smaller share."
            )
        return float(seen[len(seen) - np.logical_and.accumulate(reached[::-1]).sum()] / TENTHS)

    def noticed_share(self, differences: ArrayLike, share: float = 0.5) -> float:
        """Return the share of differences in score that this share of users notice (Urbano 2013, Table 3.5).

        Small differences are frequent, so a measure that needs smaller ones need not be the one whose differences users
        notice more often.

        Parameters
        ----------
        differences
            Differences of two lists each, of either sign and any shape; NaN is left out.
        share
            The share of users, as in :meth:`noticeable`.

        Examples
        --------
        >>> load_agreement("CGl@5/fine").noticed_share([0.05, -0.4, 0.3, 0.1])
        0.5
        """
        size = np.abs(np.asarray(differences, dtype=float))
        size = size[~np.isnan(size)]
        return float((size >= self.noticeable(share) - EDGE).mean()) if size.size else float("nan")

    def noticeable_in_words(self, share: float = 0.5) -> str:
        """Return a sentence with the difference that this share of users notice, and whose users these are.

        >>> print(load_agreement("CGl@5/broad").noticeable_in_words())
        Half of the users notice a difference of 0.5 (CGl@5/broad; Urbano 2013, music similarity, 4,115 answers).
        """
        who = "Half" if share == 0.5 else f"{100 * share:g}%"
        whose = "; ".join(filter(None, (self.name, self.origin)))
        return f"{who} of the users notice a difference of {self.noticeable(share):g}{f' ({whose})' if whose else ''}."

    @key
    def distance_from_ideal(self) -> float:
        """The distance of users from always preferring the better list: the root mean of (1 - P(+1))^2."""
        seen = self.n > 0
        return float(np.sqrt(np.mean((1 - self.better[seen] / self.n[seen]) ** 2)))

    @key
    def disagreement(self) -> float:
        """The distance of users from never preferring the worse list: the root mean of P(-1)^2."""
        seen = self.n > 0
        return float(np.sqrt(np.mean((self.worse[seen] / self.n[seen]) ** 2)))

    @key
    def tenths(self) -> tuple[AgreementTenth, ...]:
        """Users' preferences by tenths of the difference."""
        n, edges = np.where(self.n > 0, self.n, np.nan), np.arange(TENTHS + 1) / TENTHS
        shares = {"better": self.better / n, "neither": self.neither / n, "worse": self.worse / n}
        return rows(AgreementTenth, lower=edges[:-1], upper=edges[1:], n=self.n, **shares)

    def to_frame(self) -> pd.DataFrame:
        """One row per tenth: from, to, n, better, neither, worse (shares; NaN without answers)."""
        return super().to_frame().rename(columns={"lower": "from", "upper": "to"})

    def _headline(self) -> str:
        return f"{self.name or 'unnamed'}, {int(self.n.sum()):,} answers"

    def tables(self) -> tuple[Table, ...]:
        """One row per tenth."""
        return (Table(self.to_frame(), "What users prefer, by the difference in score", {"from": 1, "to": 1}),)

    def sentences(self) -> tuple[str, ...]:
        """The agreement of users with the measure."""
        whose = f"{self.origin}. " if self.origin else ""
        return (f"{whose}Distance from ideal {self.distance_from_ideal:.3f}, disagreement {self.disagreement:.3f}.",)


@dataclass(frozen=True, eq=False, repr=False)
class Preferences(Described):
    """Answers to "which of these two lists is better?", with the score of each list.

    Parameters
    ----------
    a, b
        The scores of the first and the second list, from 0 to 1, shape (answer,).
    answer
        One of :data:`ANSWERS` each, shape (answer,).
    name
        The measure and scale of the scores.

    Examples
    --------
    >>> preferences = Preferences([0.2, 0.9, 0.4], [0.5, 0.1, 0.4], ["b", "a", "good"])
    >>> preferences
    <Preferences: 3 answers, 1 without preference, 1 of these good>
    >>> preferences.agreement().better.tolist()
    [0, 0, 0, 1, 0, 0, 0, 0, 1, 0]
    """

    a: Floats
    b: Floats
    answer: Ids
    name: str = ""

    def __post_init__(self) -> None:
        for side in ("a", "b"):
            object.__setattr__(self, side, frozen(np.asarray(getattr(self, side), dtype=float)))
        object.__setattr__(self, "answer", objects(list(self.answer)))
        if not len(self.a) == len(self.b) == len(self.answer):
            raise SatisfactionError(
                f"{len(self.answer)} answers need as many scores on both sides, got {len(self.a)} and {len(self.b)}."
            )
        wrong = next((answer for answer in self.answer if answer not in ANSWERS), None)
        if wrong is not None:
            raise SatisfactionError(f"An answer is {', '.join(map(repr, ANSWERS))}, got {wrong!r}. Rename it (words=).")

    def __len__(self) -> int:
        return len(self.answer)

    def _headline(self) -> str:
        undecided = f"{self.undecided.sum():,} without preference, {self.good:,} of these good"
        return f"{len(self):,} answers, {undecided}"

    def tables(self) -> tuple[Table, ...]:
        """The number of each answer."""
        counts = pd.Series(self.answer).value_counts().reindex(list(ANSWERS), fill_value=0)
        return (Table(pd.DataFrame({"answer": list(counts.index), "n": counts.to_numpy()}), self._headline()),)

    @property
    def undecided(self) -> Bools:
        """Mask of the answers without preference, shape (answer,)."""
        return np.isin(self.answer, ["good", "bad"])

    @property
    def good(self) -> int:
        """The number of answers that both lists are good."""
        return int((self.answer == "good").sum())

    def mapping(self, *, shape: str = "cubic") -> SatMapping:
        """Return P(Sat | score) from the answers without preference, each of which covers two lists.

        See :func:`fit_mapping`.
        """
        satisfied = self.answer[self.undecided] == "good"
        scores = np.concatenate([self.a[self.undecided], self.b[self.undecided]])
        return fit_mapping(scores, np.concatenate([satisfied, satisfied]), shape=shape, name=self.name)

    def agreement(self) -> Agreement:
        """Return P(users prefer the better list, neither, the worse one | difference), from all answers."""
        difference = self.a - self.b
        preferred = np.where(self.answer == "a", 1, np.where(self.answer == "b", -1, 0))
        agrees = preferred * np.where(np.abs(difference) > EDGE, np.sign(difference), 0)
        at = tenths(np.abs(difference))
        counts = [np.bincount(at[agrees == how], minlength=TENTHS) for how in (1, 0, -1)]
        return Agreement(counts[0], counts[1], counts[2], self.name, f"{len(self):,} answers")


def read_preferences(
    path: str | PathLike[str], *, a: str, b: str, answer: str = "answer", words: Mapping[str, str] | None = None
) -> Preferences:
    """Read preferences from a table with a column for the answer and two for the scores of the lists.

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
    """
    file = Path(path)
    table = read_table(file)
    for name in (a, b, answer):
        if name not in table.columns:
            raise DataError(f"no column {name!r}.{did_you_mean(name, map(str, table.columns))}", path=file)
    answers = [(words or {}).get(word, word) for word in map(cell_text, table[answer])]
    try:
        first, second = (numbers(table[side], side, path=file) for side in (a, b))
        return Preferences(first, second, objects(answers), f"{a}, {b}")
    except SatisfactionError as error:
        raise DataError(str(error), path=file) from None


@cache
def published_agreements() -> Mapping[str, Agreement]:
    """Return users' preferences of two published studies, counted by tenths, by measure and scale: ``CGl@5/broad``."""
    text = files("probeval.satisfaction").joinpath("agreement.csv").read_text(encoding="utf-8")
    counted = list(csv.DictReader(text.splitlines()))
    found = {}
    for name, origin in dict.fromkeys((row["name"], row["origin"]) for row in counted):
        own = [row for row in counted if row["name"] == name]
        better, neither, worse = (np.array([int(row[part]) for row in own]) for part in ("better", "neither", "worse"))
        found[name] = Agreement(better, neither, worse, name, origin)
    return found


def load_agreement(name: str) -> Agreement:
    """Return the agreement with this published name, or from a file, for its own measure or as an approximation.

    Files are those of :meth:`UserStudy.save`; their names end in ``.json``.
    """
    if is_users_file(name):
        users = read_users_file(Path(name))
        better, neither, worse = map(np.array, (users.agreement.better, users.agreement.neither, users.agreement.worse))
        return Agreement(better, neither, worse, users.name, users.origin)
    known = published_agreements()
    if name not in known:
        raise SatisfactionError(f"No agreement {name!r}: {', '.join(known)}.{did_you_mean(name, known)}")
    return known[name]


def agreement_for(metric: AnyMetric, scale: Scale) -> Agreement | None:
    """Return the bundled agreement for a measure on a scale, or None."""
    known = published_agreements()
    found = [name for name in published_names(metric, scale) if name in known]
    return known[found[0]] if len(found) == 1 else None
