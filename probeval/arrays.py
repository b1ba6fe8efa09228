"""Array types for signatures, and read-only views of arrays."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bools", "Codes", "Floats", "Ids", "Ints", "frozen", "objects"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Codes = NDArray[np.int16]  # grades as positions on a Scale; negative for entries without a grade
Ids = NDArray[np.object_]  # ids, as str

A = TypeVar("A", bound=NDArray[Any])


def frozen(array: A) -> A:
    """Return a read-only view of an array."""
    view = array.view()
    view.flags.writeable = False
    return view


def objects(labels: Any) -> Ids:
    """Labels as an array of ``str`` objects (numpy would trim or widen fixed-width strings)."""
    out = np.empty(len(labels), dtype=object)
    out[:] = labels
    return out
