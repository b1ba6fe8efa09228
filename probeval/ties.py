"""The definition of a tie, for the whole package."""

from __future__ import annotations

import numpy as np

from probeval.arrays import Floats

__all__ = ["TIE", "signs"]

TIE = 1e-12  # a smaller difference is a tie


def signs(difference: Floats) -> Floats:
    """Return the signs of differences: -1, 0 or 1, with ties as 0.

    Examples
    --------
    >>> signs(np.array([-0.2, 1e-15, 0.1])).tolist()
    [-1.0, 0.0, 1.0]
    """
    return np.sign(np.where(np.abs(difference) < TIE, 0.0, difference))
