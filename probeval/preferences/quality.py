r"""Quality of answers: contradictions, side bias, gold pairs, and answers to the same question twice.

See docs/theory/preferences.md#answer-quality.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Annotated

import numpy as np
import pandas as pd

from probeval.arrays import Bools, Ints
from probeval.data.answers import PairAnswers
from probeval.errors import DataError

__all__ = ["Contradictions", "ShareInterval", "answer_quality", "contradictions", "side_share", "wilson_interval"]

EXACT = 8  # documents of a knot of contradictions up to which all orders are tried


@dataclass(frozen=True)
class Contradictions:
    """How far preferences are from any order of the documents.

    Parameters
    ----------
    violated
        The fewest preferences that an order of the documents goes against.
    documents
        The share of documents in these preferences; of several best orders, the one that touches the fewest.
    exact
        Whether all orders were tried; otherwise, these are upper bounds.
    """

    violated: int
    documents: float
    exact: bool


@dataclass(frozen=True)
class ShareInterval:
    """A share of answers with its interval."""

    share: float
    lower: float
    upper: float
    n: Annotated[int, "The number of answers."]


def contradictions(better: Sequence[Hashable], worse: Sequence[Hashable]) -> Contradictions:
    """The fewest preferences that some order of the documents violates, and the share of documents that they touch.

    Documents that contradict each other are strongly connected: only within such knots an order matters. All orders
    of a knot of up to eight documents are tried; larger ones are ordered by wins and improved by moving one document
    at a time.

    Parameters
    ----------
    better, worse
        The better and the worse document of each preference.

    Examples
    --------
    >>> contradictions(["d1", "d2", "d3", "d4"], ["d2", "d3", "d4", "d1"])
    Contradictions(violated=1, documents=0.5, exact=True)
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    docs = list(dict.fromkeys([*better, *worse]))
    if not docs:
        return Contradictions(0, 0.0, True)
    place = {doc: i for i, doc in enumerate(docs)}
    wins = np.zeros((len(docs), len(docs)), dtype=np.int64)
    np.add.at(wins, ([place[doc] for doc in better], [place[doc] for doc in worse]), 1)
    _, knot = connected_components(coo_array(wins), directed=True, connection="strong")
    violated, touched, exact = 0, 0, True
    for k in range(knot.max() + 1):
        inside = np.flatnonzero(knot == k)
        if len(inside) == 1:
            continue
        some = wins[np.ix_(inside, inside)]
        if len(inside) <= EXACT:
            found = min(_against(some, order) for order in _best_orders(some))
        else:
            found, exact = _against(some, _improved(some)), False
        violated += found[0]
        touched += found[1]
    return Contradictions(violated, touched / len(docs), exact)


def _best_orders(wins: Ints) -> Ints:
    """All orders of a few documents that go against the fewest preferences, shape (order, place)."""
    orders = np.array(list(permutations(range(len(wins)))))
    later, earlier = np.tril_indices(len(wins), -1)
    against = wins[orders[:, later], orders[:, earlier]].sum(axis=1)
    return np.asarray(orders[against == against.min()])


def _against(wins: Ints, order: Sequence[int] | Ints) -> tuple[int, int]:
    """How many preferences an order (best first) goes against, and how many documents they touch."""
    places = np.asarray(order)
    against = np.tril(wins[np.ix_(places, places)])
    return int(against.sum()), int(((against.sum(axis=0) + against.sum(axis=1)) > 0).sum())


def _improved(wins: Ints) -> list[int]:
    order = [int(i) for i in np.argsort(-(wins.sum(axis=1) - wins.sum(axis=0)), kind="stable")]
    best = _against(wins, order)
    while True:
        moves = [
            [*rest[:to], doc, *rest[to:]]
            for doc in order
            for rest in [[d for d in order if d != doc]]
            for to in range(len(order))
        ]
        found = min(moves, key=lambda move: _against(wins, move))
        if _against(wins, found) >= best:
            return order
        order, best = found, _against(wins, found)


def wilson_interval(count: int, n: int, *, level: float = 0.95) -> ShareInterval:
    """A share with Wilson's interval.

    >>> found = wilson_interval(25069, 48207)
    >>> [round(x, 4) for x in (found.share, found.lower, found.upper)]
    [0.52, 0.5156, 0.5245]
    """
    if n < 1 or not 0 <= count <= n:
        raise DataError(f"a share needs a count from 0 to {max(n, 1)}, got {count} of {n}.")
    from scipy.special import ndtri

    z, p = float(ndtri(0.5 + level / 2)), count / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return ShareInterval(p, float(max(middle - half, 0.0)), float(min(middle + half, 1.0)), n)


def side_share(answers: PairAnswers, *, level: float = 0.95) -> ShareInterval:
    """The share of preferences for the left document, with its interval: .5 without a side bias.

    It is about assessors only if the sides were drawn at random.
    """
    sided = answers.choice[np.abs(answers.choice) == 1]
    return wilson_interval(int((sided == 1).sum()), len(sided), level=level)


def answer_quality(answers: PairAnswers, *, gold: Mapping[tuple[str, str, str], str] | None = None) -> pd.DataFrame:
    """The quality of each assessor's answers.

    Parameters
    ----------
    answers
        The answers of all assessors.
    gold
        The document that is known to be better, by query and two documents in alphabetical order.

    Returns
    -------
    :
        One row per assessor: ``answers``; ``left``, the share of preferences for the left document; ``contradictions``,
        the mean over queries of the share of documents in contradictory preferences; ``repeated`` and ``consistent``,
        the number of questions that were answered again, either side first, and the share of them with the same
        answer; ``gold`` and ``gold_right``, the number of gold pairs answered and the share answered right. NaN where
        there is nothing to count.
    """
    rows = []
    for assessor, own in answers.by_assessor():
        stated = own.take(own.is_preference)
        first: dict[tuple[str, str, str], str] = {}
        again, right = [], []
        for query, left, right_doc, choice in zip(stated.query, stated.left, stated.right, stated.choice, strict=True):
            key = (query, *sorted((left, right_doc)))
            best = "" if choice == 0 else left if choice == 1 else right_doc
            if key in first:
                again.append(first[key] == best)
            first.setdefault(key, best)
            if gold is not None and key in gold:
                right.append(gold[key] == best)
        knots = [contradictions(*map(list, each.preferred())).documents for _, each in stated.by_query()]
        sided = stated.choice[stated.choice != 0]
        rows.append(
            {
                "assessor": assessor,
                "answers": len(own),
                "left": _mean(sided == 1),
                "contradictions": _mean(knots),
                "repeated": len(again),
                "consistent": _mean(again),
                "gold": len(right),
                "gold_right": _mean(right),
            }
        )
    return pd.DataFrame(rows)


def _mean(values: Sequence[float] | Bools) -> float:
    return float(np.mean(values)) if len(values) else float("nan")
