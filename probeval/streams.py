"""Randomness by purpose: from one seed a stream for each thing that is drawn, the same whichever verb draws it."""

from __future__ import annotations

import numpy as np

__all__ = ["BELIEF", "RANKING", "SCORES", "stream"]

BELIEF, SCORES, RANKING = 3, 4, 1  # what a model believes, the scores that follow, and the order that follows from them


def stream(seed: int, *purpose: int) -> np.random.Generator:
    """The generator of a purpose.

    Examples
    --------
    >>> [round(stream(0, purpose).random(), 2) for purpose in (BELIEF, SCORES, BELIEF)]
    [0.89, 0.88, 0.89]
    """
    return np.random.default_rng([seed, *purpose])
