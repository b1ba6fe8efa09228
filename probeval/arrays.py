"""The array types that signatures name, and how an array is made read-only."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bools", "Codes", "Floats", "Ids", "Ints", "frozen", "objects"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Codes = NDArray[np.int16]  # grades as positions on a Scale; negative for what has no grade
Ids = NDArray[np.object_]  # ids, as str

A = TypeVar("A", bound=NDArray[Any])


def frozen(array: A) -> A:
    """The same data, read-only."""
    view = array.view()
    view.flags.writeable = False
    return view


def objects(labels: Any) -> Ids:
    """Labels as an array of ``str`` objects (numpy would trim or widen fixed-width strings)."""
    out = np.empty(len(labels), dtype=object)
    out[:] = labels
    return out
