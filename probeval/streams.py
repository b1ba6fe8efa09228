"""Randomness by purpose: from one seed a stream for each thing that is drawn, the same whichever verb draws it."""

from __future__ import annotations

import zlib
from enum import IntEnum

import numpy as np

__all__ = ["Purpose", "query_streams", "stream"]


class Purpose(IntEnum):
    """What is drawn. The numbers are part of what a seed means: no number changes, none has two meanings."""

    ORDER = 0  # an order of pairs to judge, or of queries to divide
    RANKING = 1  # joint scores, from which the systems' ranks follow
    WEIGHTS = 2  # grades, among which the effective weight of a pair is measured
    PREDICTION = 3  # the parameters of a model of relevance
    SCORES = 4  # relevance and the scores that follow from it
    SLIPS = 5  # the grades that a simulated assessor gets wrong
    NULL = 6  # scores that could be true, which calibration is compared with
    PILOT = 7  # the pairs that are judged before a policy sets in
    QUERY_SCORES = 8  # scores query by query, for studies of reliability and of users
    STUDY = 9  # the variance components of a G-study
    FORECAST = 10  # judgments to come


def stream(seed: int, *keys: int | str) -> np.random.Generator:
    """The generator that a seed and keys give: numbers, a :class:`Purpose`, the name of a campaign.

    Examples
    --------
    >>> [round(stream(0, purpose).random(), 2) for purpose in (Purpose.PREDICTION, Purpose.SCORES, Purpose.PREDICTION)]
    [0.89, 0.88, 0.89]
    >>> bool(stream(0, "trec8", Purpose.PILOT).random() == stream(0, "trec7", Purpose.PILOT).random())
    False
    """
    return np.random.default_rng([seed, *(zlib.crc32(k.encode()) if isinstance(k, str) else int(k) for k in keys)])


def query_streams(seed: int, queries: slice) -> list[np.random.Generator]:
    """A generator for each of these queries by itself, so that blocks of queries of any size draw the same.

    Examples
    --------
    >>> [g.random() for g in query_streams(7, slice(1, 3))] == [g.random() for g in query_streams(7, slice(0, 3))][1:]
    True
    """
    return [stream(seed, query) for query in range(queries.start, queries.stop)]
