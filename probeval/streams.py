"""Randomness by purpose: from one seed a stream for each thing that is drawn, the same whichever verb draws it."""

from __future__ import annotations

import numpy as np

__all__ = ["BELIEF", "RANKING", "SCORES", "query_streams", "stream"]

BELIEF, SCORES, RANKING = 3, 4, 1  # what a model believes, the scores that follow, and the order that follows from them


def stream(seed: int, *purpose: int) -> np.random.Generator:
    """The generator of a purpose.

    Examples
    --------
    >>> [round(stream(0, purpose).random(), 2) for purpose in (BELIEF, SCORES, BELIEF)]
    [0.89, 0.88, 0.89]
    """
    return np.random.default_rng([seed, *purpose])


def query_streams(seed: int, queries: slice) -> list[np.random.Generator]:
    """A generator for each of these queries by itself, so that blocks of queries of any size draw the same.

    Examples
    --------
    >>> [g.random() for g in query_streams(7, slice(1, 3))] == [g.random() for g in query_streams(7, slice(0, 3))][1:]
    True
    """
    return [np.random.default_rng([seed, query]) for query in range(queries.start, queries.stop)]
