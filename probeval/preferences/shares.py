r"""Relevance of documents as shares of answers about pairs (Yang 2019).

See docs/theory/preferences.md#shares.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from probeval.arrays import Floats, Ids, Ints, objects
from probeval.data.answers import NO_ANSWER, PairAnswers
from probeval.errors import DataError

__all__ = ["combine_questions", "grades_by_shares", "relevance_shares", "win_shares"]


def win_shares(answers: PairAnswers, *, bias: float = 0.0) -> pd.DataFrame:
    r"""The share of a document's comparisons in which it was preferred.

    .. math:: s_d = \frac{1}{n_d} \sum_{a \ni d} w_a(d), \qquad
       w_a = 1 - b \text{ for the better document}, \; b \text{ for the worse}, \; 1/2 \text{ for equal ones}.

    Parameters
    ----------
    answers
        The answers; those without a choice do not count.
    bias
        b, the weight that an answer leaves to the other document, for assessors who favour a side; 0 as published,
        .04 as suggested there.

    Returns
    -------
    :
        ``query``, ``doc``, ``share`` and ``answers``, the number of comparisons.

    Examples
    --------
    >>> from probeval.data import as_answers
    >>> rows = pd.DataFrame(
    ...     {"query": "q", "left": list("aba"), "right": list("bcc"), "choice": ["left", "left", "equal"]}
    ... )
    >>> win_shares(as_answers(rows)).to_string(index=False)
    'query doc  share  answers\n    q   a   0.75        2\n    q   b   0.50        2\n    q   c   0.25        2'
    """
    if not 0 <= bias <= 0.5:
        raise DataError(f"the bias must be from 0 to .5, got {bias:g}.")
    stated = answers.take(answers.is_preference)
    left = np.asarray(0.5 + (0.5 - bias) * stated.choice, dtype=np.float64)
    return _shares(stated, left, 1 - left)


def relevance_shares(answers: PairAnswers) -> pd.DataFrame:
    """The share of a document's appearances in which it was called relevant.

    "Only the chosen" document is the one that the same answer prefers.

    Returns
    -------
    :
        ``query``, ``doc``, ``share`` and ``answers``.
    """
    stated = answers.take(answers.relevant != NO_ANSWER)
    open_ = np.flatnonzero((stated.relevant == 1) & (np.abs(stated.choice) != 1))
    if open_.size:
        row = int(open_[0])
        raise DataError(
            f"query {stated.query[row]!r}: only the chosen one of {stated.left[row]!r} and {stated.right[row]!r} is "
            "relevant, but the answer prefers neither."
        )
    both = stated.relevant == 2
    left = both | ((stated.relevant == 1) & (stated.choice == 1))
    right = both | ((stated.relevant == 1) & (stated.choice == -1))
    return _shares(stated, left.astype(float), right.astype(float))


def _shares(answers: PairAnswers, left: Floats, right: Floats) -> pd.DataFrame:
    rows = pd.DataFrame(
        {
            "query": np.concatenate([answers.query, answers.query]),
            "doc": np.concatenate([answers.left, answers.right]),
            "share": np.concatenate([left, right]),
        }
    )
    return rows.groupby(["query", "doc"], as_index=False).agg(share=("share", "mean"), answers=("share", "size"))


def combine_questions(scores: Sequence[ArrayLike], *, eps: float = 1.0) -> Floats:
    r"""Scores of the same documents by several questions, combined by a shifted geometric mean.

    .. math:: \Big(\prod_{q=1}^{Q} (s_q + \epsilon)\Big)^{1/Q} - \epsilon

    >>> float(combine_questions([0.2, 0.5, 0.9]).round(6))
    0.506637
    """
    values = np.asarray(scores, dtype=float)
    if not eps > 0 or (values < 0).any():
        raise DataError("combining needs scores from 0, and a positive shift.")
    return np.asarray(np.exp(np.log(values + eps).mean(axis=0)) - eps)


def grades_by_shares(scores: ArrayLike, shares: ArrayLike, *, ids: Sequence[str] | None = None) -> Ints:
    """Grades 0, 1, .. such that each has its share of the documents, the highest scores getting the highest grade.

    Parameters
    ----------
    scores
        The scores of one query's documents, shape (doc,).
    shares
        The share of each grade, from grade 0 upwards; they sum to 1. Counts are rounded such that the grades from the
        top together have the nearest number of documents to their share.
    ids
        Names that break ties of scores in alphabetical order; by default, the order of the documents does.

    Examples
    --------
    >>> grades_by_shares([0.9, 0.1, 0.4, 0.3], [0.5, 0.25, 0.25]).tolist()
    [2, 0, 1, 0]
    """
    values, wanted = np.asarray(scores, dtype=float), np.asarray(shares, dtype=float)
    if (wanted < 0).any() or abs(wanted.sum() - 1) > 1e-9:
        raise DataError(f"the shares of grades must sum to 1, got {wanted.tolist()}.")
    names: Ids = objects(range(len(values)) if ids is None else ids)
    order = np.lexsort((np.argsort(np.argsort(names)), -values))
    upto = np.floor(len(values) * np.cumsum(wanted[::-1]) + 0.5).astype(np.int64)  # from the highest grade
    grades = np.empty(len(values), dtype=np.int64)
    grades[order] = len(wanted) - 1 - np.searchsorted(upto, np.arange(len(values)), side="right")
    return grades
