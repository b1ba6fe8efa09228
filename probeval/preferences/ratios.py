r"""Scores from ratios of two documents, by logarithmic least squares on the graph of comparisons.

See docs/theory/preferences.md#ratios.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from probeval.arrays import Floats, Ints
from probeval.data.answers import PairAnswers
from probeval.display import Record
from probeval.errors import DataError

__all__ = ["RatioScores", "ratio_scores"]

NAMED_DOCS = 3  # documents of a part of the graph that an error names


@dataclass(frozen=True, eq=False, repr=False)
class RatioScores(Record):
    r"""Scores of one query's documents whose ratios fit the answers best, and their covariance.

    With the graph of comparisons, its Laplacian L and y the mean log ratio of each pair,

    .. math:: L w = \sum_j y_{ij}, \qquad S = e^{w - \max w}, \qquad
       \operatorname{Cov}(w) = \sigma^2 L^{+},

    where :math:`\sigma^2` is the residual variance of an answer's log ratio.

    Parameters
    ----------
    docs
        The documents.
    log_score
        w, with mean 0, shape (doc,).
    laplacian
        L, with one count per answer, shape (doc, doc).
    variance
        :math:`\sigma^2`; NaN if the answers leave no degree of freedom.
    """

    docs: tuple[str, ...]
    log_score: Floats
    laplacian: Floats
    variance: float

    @property
    def score(self) -> Floats:
        """S: the scores, 1 for the best document, shape (doc,)."""
        return np.asarray(np.exp(self.log_score - self.log_score.max()))

    @cached_property
    def covariance(self) -> Floats:
        """The covariance of the log scores, shape (doc, doc)."""
        return np.asarray(self.variance * np.linalg.pinv(self.laplacian, hermitian=True))

    def to_frame(self) -> pd.DataFrame:
        """``doc``, ``score``, and the log score with its standard deviation, best first."""
        sd = np.sqrt(np.clip(np.diag(self.covariance), 0, None))
        rows = pd.DataFrame({"doc": self.docs, "score": self.score, "log_score": self.log_score, "sd": sd})
        return rows.sort_values(["score", "doc"], ascending=[False, True], ignore_index=True)


def ratio_scores(answers: PairAnswers, *, eps: float = 1.0) -> RatioScores:
    r"""Scores of one query's documents from the numbers that assessors gave them in pairs.

    An answer's ratio is :math:`(s_i + \epsilon) / (s_j + \epsilon)`. The published iteration (geometric means of rows,
    missing ratios filled in by the scores, 100 rounds) converges to this solution.

    Parameters
    ----------
    answers
        The answers of one query; those without numbers do not count.
    eps
        The shift; 1 as published. With 0, numbers must be positive.

    Raises
    ------
    DataError
        If the comparisons do not connect all documents: the ratio between two parts is unknown. The error names them.

    Examples
    --------
    >>> from probeval.data import as_answers
    >>> rows = pd.DataFrame({"query": "q", "left": list("0120"), "right": list("1232"),
    ...                      "left_number": [2, 3, 2, 5], "right_number": [1, 1, 1, 1]})
    >>> ratio_scores(as_answers(rows), eps=0).score.round(6).tolist()
    [1.0, 0.531329, 0.188207, 0.094104]
    """
    given = answers.take(~np.isnan(answers.number).any(axis=1))
    if not len(given):
        raise DataError("no numbers of two documents: ratios need them.")
    if len(set(given.query)) > 1:
        raise DataError("ratios are within one query, got answers of several: take each query's with by_query().")
    if eps < 0 or (eps == 0 and (given.number == 0).any()):
        raise DataError("a ratio with 0 is undefined: give positive numbers, or a positive shift.")
    docs = given.documents
    place = {doc: i for i, doc in enumerate(docs)}
    i = np.array([place[doc] for doc in given.left])
    j = np.array([place[doc] for doc in given.right])
    ratio = np.log(given.number[:, 0] + eps) - np.log(given.number[:, 1] + eps)
    _connected(docs, i, j)
    laplacian = np.zeros((len(docs), len(docs)))
    np.add.at(laplacian, (i, i), 1.0)
    np.add.at(laplacian, (j, j), 1.0)
    np.add.at(laplacian, (i, j), -1.0)
    np.add.at(laplacian, (j, i), -1.0)
    flow = np.bincount(i, ratio, len(docs)) - np.bincount(j, ratio, len(docs))
    w = np.linalg.solve(laplacian + 1 / len(docs), flow)  # the constant keeps the mean at 0
    residual = ratio - (w[i] - w[j])
    free = len(given) - (len(docs) - 1)
    return RatioScores(tuple(docs), w, laplacian, float(residual @ residual / free) if free else float("nan"))


def _connected(docs: list[str], i: Ints, j: Ints) -> None:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(i)), (i, j)), shape=(len(docs), len(docs)))
    parts, part = connected_components(graph, directed=False)
    if parts > 1:
        members = [[docs[k] for k in np.flatnonzero(part == p)] for p in range(parts)]
        shown = "; ".join(
            ", ".join(m[:NAMED_DOCS]) + f" and {len(m) - NAMED_DOCS:,} more" * (len(m) > NAMED_DOCS)
            for m in members[:NAMED_DOCS]
        )
        rest = f"; and {parts - NAMED_DOCS:,} more parts" * (parts > NAMED_DOCS)
        raise DataError(
            f"the comparisons are in {parts:,} parts that no answer connects ({shown}{rest}): the ratio between parts "
            "is unknown. Compare a document of each part with one of another."
        )
