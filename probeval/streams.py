"""Random streams by purpose: one seed gives an independent stream per purpose, the same in every function."""

from __future__ import annotations

import zlib
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

__all__ = ["Purpose", "query_streams", "stream"]


class Purpose(IntEnum):
    """The purposes of random draws. Numbers never change and are never reused: results of a seed depend on them."""

    ORDER = 0  # an order of pairs to judge, or of queries to divide
    RANKING = 1  # joint scores, from which the systems' ranks follow
    WEIGHTS = 2  # grades, among which the effective weight of a pair is measured
    PREDICTION = 3  # the parameters of a model of relevance
    SCORES = 4  # relevance and the scores that follow from it
    SLIPS = 5  # the grades that a simulated assessor gets wrong
    NULL = 6  # scores that could be true, which calibration is compared with
    PILOT = 7  # the pairs judged before the policy starts
    QUERY_SCORES = 8  # scores query by query, for studies of reliability and of users
    STUDY = 9  # the variance components of a G-study
    FORECAST = 10  # judgments to come
    TRUST = 11  # biases of labels, of which intervals are taken
    EXPLORATION = 12  # the pairs that exploration draws
    OUTSIDE = 13  # the number of relevant documents outside the pool
    LISTS = 14  # the pairs of lists that users compare
    COMPARISONS = 20  # the pairs of documents that a campaign compares
    QUESTIONS = 24  # the documents of a question drawn at random
    SIDES = 25  # the sides on which two documents are shown
    ANSWERS = 26  # the answers of a simulated assessor about two documents
    WORTH = 30  # labels that are taken away, to see what they bring
    AGREEMENT = 28  # the grades of unjudged pairs, with which labels are compared
    SPLITS = 27  # halves of the queries, and the resamples of tests on them


def stream(seed: int, *keys: int | str) -> np.random.Generator:
    """Return the generator of a seed and keys: numbers, a :class:`Purpose`, the name of a campaign.

    Examples
    --------
    >>> [round(stream(0, purpose).random(), 2) for purpose in (Purpose.PREDICTION, Purpose.SCORES, Purpose.PREDICTION)]
    [0.89, 0.88, 0.89]
    >>> bool(stream(0, "trec8", Purpose.PILOT).random() == stream(0, "trec7", Purpose.PILOT).random())
    False
    """
    return np.random.default_rng([seed, *(zlib.crc32(k.encode()) if isinstance(k, str) else int(k) for k in keys)])


def query_streams(seed: int, queries: slice | NDArray[np.int64]) -> list[np.random.Generator]:
    """Return one generator per query, so that draws do not depend on the size of query blocks.

    ``queries`` are positions among all queries of the campaign.

    Examples
    --------
    >>> [g.random() for g in query_streams(7, slice(1, 3))] == [g.random() for g in query_streams(7, slice(0, 3))][1:]
    True
    """
    positions = range(queries.start, queries.stop) if isinstance(queries, slice) else queries.tolist()
    return [stream(seed, query) for query in positions]
