r"""Real-valued relevance of documents from a table of answers, by the published methods under their names.

See docs/theory/preferences.md#shares, #ratios and #magnitudes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd

from probeval.data.answers import PairAnswers, as_answers
from probeval.data.files import suffix
from probeval.data.judgments import Judgments
from probeval.data.magnitudes import as_magnitudes
from probeval.data.tables import read_table
from probeval.data.votes import Votes, as_votes
from probeval.display import Table
from probeval.errors import DataError, did_you_mean
from probeval.preferences.magnitudes import mean_numbers, normalised_magnitudes
from probeval.preferences.ratios import ratio_scores
from probeval.preferences.shares import combine_questions, grades_by_shares, relevance_shares, win_shares
from probeval.results import UNSET, Result, UnsetType, rows

__all__ = ["SCORING", "DocumentScores", "ScoredDocument", "score_documents"]

SCORING = {
    "win-shares": "the share of a document's comparisons in which it was preferred",
    "relevance-shares": "the share of a document's appearances in which it was called relevant",
    "ratios": "logarithmic least squares of the ratios of two numbers, over the best of the query",
    "magnitudes": "numbers of any size, normalised by unit; their geometric mean over assessors",
    "mean": "the mean of the assessors' numbers or labels",
}
OF_PAIRS = ("win-shares", "relevance-shares", "ratios")
PAIR = ["query", "doc"]


@dataclass(frozen=True)
class ScoredDocument:
    """A document of a query."""

    query: str
    doc: str
    score: float
    answers: Annotated[int, "The number of answers that the score rests on."]
    sd: Annotated[
        float | UnsetType | None,
        "With ratios alone: the standard deviation of the logarithm of the score; null if the answers leave no degree "
        "of freedom.",
    ] = UNSET
    grade: Annotated[int | UnsetType, "With shares of grades: the grade."] = UNSET


@dataclass(frozen=True, eq=False, repr=False)
class DocumentScores(Result):
    """Scores of documents by one of :data:`SCORING`, or by several combined."""

    methods: Annotated[tuple[str, ...], "The method; several are combined."]
    pairs: Annotated[tuple[ScoredDocument, ...], "One entry per query and document, the best of a query first."]
    shares: Annotated[tuple[float, ...] | None, "The share of each grade, or null if there are no grades."] = None

    def _headline(self) -> str:
        n, queries = len(self.pairs), len({pair.query for pair in self.pairs})
        return (
            f"{n:,} document{'s' * (n != 1)} of {queries:,} {'query' if queries == 1 else 'queries'} by "
            f"{' and '.join(self.methods)}"
        )

    def tables(self) -> tuple[Table]:
        """One row per query and document."""
        return (Table(self.to_frame(), "Scores of documents"),)

    def sentences(self) -> tuple[str]:
        """What was scored, and how."""
        return (f"{self._headline()}.",)

    def to_judgments(self) -> Judgments:
        """The grades if there are any, else the scores, as judgments."""
        values = [pair.score if pair.grade is UNSET else pair.grade for pair in self.pairs]
        return Judgments.rows([pair.query for pair in self.pairs], [pair.doc for pair in self.pairs], np.array(values))


def score_documents(
    answers: Any,
    methods: str | Sequence[str] = "win-shares",
    *,
    bias: float = 0.0,
    shift: float = 1.0,
    shares: Sequence[float] | None = None,
) -> DocumentScores:
    r"""Score the documents of each query by the answers of assessors.

    Parameters
    ----------
    answers
        A path or a data frame. For ``win-shares``, ``relevance-shares`` and ``ratios``: answers about two documents
        (see :func:`probeval.data.read_answers`). For ``magnitudes``: numbers above 0 (see
        :func:`probeval.data.read_magnitudes`; the unit is by default the documents of an assessor). For ``mean``:
        numbers from 0 to 100, or votes (see :func:`probeval.data.read_votes`), of which each assessor's latest counts.
    methods
        One of :data:`SCORING`; or several of those for two documents, combined by a shifted geometric mean.
    bias
        Of win shares: the weight that an answer leaves to the other document.
    shift
        :math:`\epsilon` of ratios and of combinations; 1 as published.
    shares
        The share of each grade, from grade 0 upwards, to turn the scores of each query into grades.

    Raises
    ------
    DataError
        If ratios do not connect all documents of a query: the error names the parts.

    Examples
    --------
    >>> table = pd.DataFrame({"query": "q", "left": list("aab"), "right": list("bcc"), "choice": ["left"] * 3,
    ...                       "left_number": [4, 9, 4], "right_number": [1, 0, 1]})
    >>> score_documents(table, ["win-shares", "ratios"], shares=[0.5, 0.5]).to_frame().round(3)
      query doc  score  answers  grade
    0     q   a  1.000        2      1
    1     q   b  0.419        2      1
    2     q   c  0.057        2      0
    """
    path = Path(answers) if isinstance(answers, (str, PathLike)) else None
    names = (methods,) if isinstance(methods, str) else tuple(dict.fromkeys(methods))
    unknown = next((name for name in names if name not in SCORING), None)
    if unknown is not None or not names:
        raise DataError(f"No method {unknown!r}: {', '.join(SCORING)}.{did_you_mean(unknown or '', SCORING)}")
    apart = [name for name in names if name not in OF_PAIRS]
    if apart and len(names) > 1:
        raise DataError(f"{apart[0]} cannot be combined with others: only {', '.join(OF_PAIRS)} can.")
    try:
        if apart:
            scored = (_magnitudes if apart == ["magnitudes"] else _means)(answers, path)
        else:
            scored = _of_pairs(answers, path, names, bias, shift)
    except DataError as error:
        raise error if path is None or error.path is not None else DataError(str(error), path=path) from None
    scored = scored.sort_values(["query", "score", "doc"], ascending=[True, False, True], ignore_index=True)
    if shares is not None:
        parts = (part for _, part in scored.groupby("query"))
        grades = [grades_by_shares(part["score"], shares, ids=part["doc"].tolist()) for part in parts]
        scored = scored.assign(grade=np.concatenate(grades))
    pairs = rows(ScoredDocument, **{str(name): scored[name].to_numpy() for name in scored})
    return DocumentScores(names, pairs, None if shares is None else tuple(map(float, shares)))


def _table(answers: Any, path: Path | None) -> pd.DataFrame:
    return answers if path is None else read_table(path)


def _of_pairs(answers: Any, path: Path | None, names: Sequence[str], bias: float, shift: float) -> pd.DataFrame:
    given = answers if isinstance(answers, PairAnswers) else as_answers(_table(answers, path), path=path)
    ways: dict[str, Callable[[PairAnswers], pd.DataFrame]] = {
        "win-shares": lambda each: win_shares(each, bias=bias),
        "relevance-shares": relevance_shares,
        "ratios": lambda each: _ratios(each, shift),
    }
    found = []
    for name in names:
        scored = ways[name](given).rename(columns={"share": "score"})
        if scored.empty:
            raise DataError(f"no answer gives {name.replace('-', ' ')}.")
        found.append(scored)
    if len(found) == 1:
        return found[0]
    indexed = [scored.set_index(PAIR) for scored in found]
    scores = pd.concat([scored["score"] for scored in indexed], axis=1)
    counts = pd.concat([scored["answers"] for scored in indexed], axis=1).max(axis=1)
    lacking = np.argwhere(scores.isna().to_numpy())
    if lacking.size:
        row, which = lacking[0]
        query, doc = scores.index[row]
        raise DataError(
            f"document {doc!r} of query {query!r} has no answer for {names[which]}: a combination needs one for each "
            "method."
        )
    combined = combine_questions(list(scores.to_numpy().T), eps=shift)
    return scores.index.to_frame(index=False).assign(score=combined, answers=counts.to_numpy(dtype=np.int64))


def _ratios(answers: PairAnswers, shift: float) -> pd.DataFrame:
    parts = [pd.DataFrame(columns=[*PAIR, "score", "answers", "sd"])]
    for query, numbered in answers.take(~np.isnan(answers.number).any(axis=1)).by_query():
        try:
            found = ratio_scores(numbered, eps=shift).to_frame()
        except DataError as error:
            raise DataError(f"query {query!r}: {error}") from None
        counts = pd.Series([*numbered.left, *numbered.right]).value_counts()
        parts.append(
            pd.DataFrame(
                {
                    "query": query,
                    "doc": found["doc"],
                    "score": found["score"],
                    "answers": counts.reindex(found["doc"]).to_numpy(),
                    "sd": found["sd"],
                }
            )
        )
    return pd.concat(parts[1:] or parts, ignore_index=True)


def _numbers(table: pd.DataFrame, kind: str, path: Path | None) -> pd.DataFrame:
    """The columns query, doc, number and unit of a table; numbers are of this kind unless the table has another."""
    kinds = {} if "kind" in {str(name).strip().lower() for name in table.columns} else {"kind": kind}
    given = as_magnitudes(table.assign(**kinds), path=path)
    unit = np.where(given.unit == "", given.assessor, given.unit)
    return pd.DataFrame({"query": given.query, "doc": given.doc, "number": given.number, "unit": unit})


def _magnitudes(answers: Any, path: Path | None) -> pd.DataFrame:
    scored = normalised_magnitudes(_numbers(_table(answers, path), "magnitude", path))
    logs = scored.assign(log=np.log(scored["magnitude"])).groupby(PAIR, as_index=False)
    found = logs.agg(score=("log", "mean"), answers=("log", "size"))
    return found.assign(score=np.exp(found["score"]))


def _means(answers: Any, path: Path | None) -> pd.DataFrame:
    table = answers
    if path is not None and suffix(path):
        table = read_table(path)
    if isinstance(table, pd.DataFrame) and "number" in {str(name).strip().lower() for name in table.columns}:
        return mean_numbers(_numbers(table, "s100", path)).rename(columns={"number": "score"})
    votes: Votes = as_votes(answers)
    given = votes.judgments
    score = given.grades("mean")
    known = np.flatnonzero(~np.isnan(score))
    pairs = given.pool.to_frame().iloc[known][PAIR].reset_index(drop=True)
    return pairs.assign(score=score[known], answers=np.bincount(given.pair, minlength=len(score))[known])
