"""Everything that probeval raises on purpose.

.. code-block:: text

    ProbevalError
    ├── DataError      a file or table cannot be read as what it should be
    ├── FeatureError   no such feature, or nothing to compute it from
    ├── MetricError    no such measure, or a parameter it does not take
    ├── ModelError     a model that cannot be fitted, loaded or applied
    ├── ScaleError     a grade that the scale does not have, or no such scale
    └── ScoreError     a question that a distribution of scores cannot answer

Every message says where, what must be, what was got and what to do; the command line prints it as one line.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from os import PathLike

__all__ = [
    "DataError",
    "FeatureError",
    "MetricError",
    "ModelError",
    "ProbevalError",
    "ProbevalWarning",
    "ScaleError",
    "ScoreError",
    "did_you_mean",
]


class ProbevalError(Exception):
    """Base of every error that probeval raises on purpose."""


class DataError(ProbevalError):
    """A file or table cannot be read as what it should be.

    >>> str(DataError("expected 6 columns, got 5.", path="runs/bm25", line=118))
    'runs/bm25:118: expected 6 columns, got 5.'
    """

    def __init__(self, message: str, *, path: str | PathLike[str] | None = None, line: int | None = None) -> None:
        self.path, self.line = path, line
        where = "" if path is None else f"{path}: " if line is None else f"{path}:{line}: "
        super().__init__(where + message)


class FeatureError(ProbevalError):
    """No such feature, or nothing to compute it from."""


class MetricError(ProbevalError):
    """No such measure, or a parameter that it does not take."""


class ModelError(ProbevalError):
    """A model that cannot be fitted, loaded or applied."""


class ScaleError(ProbevalError):
    """A grade that the scale does not have, or no such scale."""


class ScoreError(ProbevalError):
    """A question that a distribution of scores cannot answer."""


class ProbevalWarning(UserWarning):
    """Something is missing or has been replaced; the result stands, with less behind it."""


def did_you_mean(word: str, known: Iterable[str], *, suffix: str = "") -> str:
    """`` Did you mean 'x'?`` for the nearest known word, or nothing.

    >>> did_you_mean("NDGC", ["AP", "nDCG"])
    " Did you mean 'nDCG'?"
    """
    folded = {k.lower(): k for k in known}
    near = difflib.get_close_matches(word.lower(), folded, n=1, cutoff=0.5)
    return f" Did you mean {folded[near[0]] + suffix!r}?" if near else ""
