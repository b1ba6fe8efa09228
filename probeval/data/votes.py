"""Votes: several labels per pair by crowd workers, and the expert's ("gold") grades of some pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from probeval.data.collection import as_judgments
from probeval.data.files import first_bytes, suffix
from probeval.data.judgments import Judgments
from probeval.data.tables import column, ids, judgments_from_table, names_pairs, numbers, read_table
from probeval.display import Described, Table
from probeval.errors import DataError

__all__ = ["Votes", "as_votes", "read_votes", "votes_from_table"]


@dataclass(frozen=True, eq=False, repr=False)
class Votes(Described):
    """Votes of workers on pairs, and gold grades of some of the pairs.

    Parameters
    ----------
    judgments
        One event per worker and pair: the worker's latest grade. The pool has every pair with a label, also pairs
        whose labels are no grades.
    gold
        The expert's grades, on the same pool; None without any.
    no_grade
        The number of labels below 0: broken links and the like. They are no grades and no votes.
    repeated
        The number of labels that the same worker replaced by a later one for the same pair.

    Examples
    --------
    >>> table = {"topicID": ["1"] * 3, "docID": ["d", "d", "e"], "workerID": ["w", "x", "w"], "label": [2, 1, -2]}
    >>> votes = votes_from_table(pd.DataFrame(table))
    >>> votes, len(votes.judgments.pool), votes.no_grade
    (<Votes: 2 votes by 2 workers on 2 pairs>, 2, 1)
    """

    judgments: Judgments
    gold: Judgments | None = None
    no_grade: int = 0
    repeated: int = 0

    @classmethod
    def of(cls, labels: Judgments, gold: Judgments | None = None) -> Votes:
        """Return the votes among labels, which may repeat or be below 0; the gold grades are put on the same pool."""
        graded = labels.take(labels.grade >= 0)
        key = graded.pair * max(len(graded.assessors), 1) + graded.assessor
        _, from_end = np.unique(key[::-1], return_index=True)
        latest = np.sort(len(key) - 1 - from_end)
        votes = graded.take(latest)
        known = None
        if gold is not None:
            known = gold.on(labels.pool)
            known = known.take(known.grade >= 0)
        return cls(
            votes,
            known if known is not None and len(known) else None,
            no_grade=len(labels) - len(graded),
            repeated=len(graded) - len(votes),
        )

    def _headline(self) -> str:
        used = np.unique(self.judgments.assessor).size
        gold = "" if self.gold is None else f", {np.unique(self.gold.pair).size:,} with a gold grade"
        return (
            f"{len(self.judgments):,} votes by {used:,} worker{'s' * (used != 1)} "
            f"on {len(self.judgments.pool):,} pairs{gold}"
        )

    def tables(self) -> tuple[Table, ...]:
        """The number of votes with each grade."""
        (given,) = self.judgments.tables()
        return (Table(given.frame.rename(columns={"judgments": "votes"}), self._headline()),)


def read_votes(path: str | PathLike[str]) -> Votes:
    """Read votes from a table (TSV, CSV, JSONL, parquet; gzipped or not), or from TREC qrels that name assessors.

    A table needs columns for the query, the document, the worker and the label, under any of their usual names. A
    column ``gold`` has the expert's grades; values below 0 are none. A ``.txt`` file whose first line names the
    columns, separated by tabs, is a table too.
    """
    file = Path(path)
    if suffix(file):
        return votes_from_table(read_table(file), path=file)
    header = first_bytes(file).decode("utf-8-sig", "replace").lstrip().splitlines()[:1]
    if header and names_pairs(header[0].split("\t")):
        return votes_from_table(read_table(file, separator="\t"), path=file)
    return Votes.of(as_judgments(file))


def votes_from_table(table: pd.DataFrame, *, path: Path | None = None) -> Votes:
    """Return the votes of a table with columns for query, doc, worker and label, and perhaps ``gold``."""
    column(table, "assessor", path=path)  # votes without workers are an error
    labels = judgments_from_table(table, path=path)
    gold = column(table, "gold", path=path, required=False)
    if gold is None:
        return Votes.of(labels)
    grades = numbers(gold, "gold grade", path=path, missing=True)
    rows = np.flatnonzero(grades >= 0)  # NaN is not
    if not rows.size:
        return Votes.of(labels)
    named = table.iloc[rows]
    expert = Judgments.rows(
        ids(_required(named, "query"), "query", path=path), ids(_required(named, "doc"), "doc", path=path), grades[rows]
    )
    clash = np.flatnonzero(expert.grades("latest")[expert.pair] != expert.grade)
    if clash.size:
        query, doc = expert.pool.label(int(expert.pair[clash[0]]))
        raise DataError(f"query {query!r}, document {doc!r} has several gold grades: one is expected.", path=path)
    _, first = np.unique(expert.pair, return_index=True)
    return Votes.of(labels, expert.take(first))


def _required(table: pd.DataFrame, name: str) -> pd.Series:
    found = column(table, name)
    assert found is not None
    return found


def as_votes(votes: Any, gold: Any = None) -> Votes:
    """Votes from a path, a data frame or :class:`Judgments`; ``gold`` replaces the gold grades that they have.

    Parameters
    ----------
    votes
        :class:`Votes`; a path; a data frame; or judgments by several assessors.
    gold
        A path of judgments, or anything that :func:`~probeval.data.as_judgments` takes.
    """
    if isinstance(votes, Votes):
        found = votes
    elif isinstance(votes, (str, PathLike)):
        found = read_votes(votes)
    elif isinstance(votes, pd.DataFrame):
        found = votes_from_table(votes)
    else:
        found = Votes.of(as_judgments(votes))
    if gold is None:
        return found
    expert = as_judgments(gold)
    return replace(found, gold=Votes.of(found.judgments, expert).gold)
