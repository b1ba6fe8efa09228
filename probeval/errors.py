"""The errors that probeval raises on purpose.

.. code-block:: text

    ProbevalError
    ├── CampaignError  a step that a campaign does not allow
    ├── DataError      a file or table that cannot be read as expected
    ├── FeatureError   no such feature, or nothing to compute it from
    ├── LabellingError a server of labels that cannot be used, or that refuses the work
    ├── MetricError    no such measure, or a parameter it does not take
    ├── ModelError     a model that cannot be fitted, loaded or applied
    ├── ReliabilityError  a study that the scores do not allow
    ├── SatisfactionError  no mapping to satisfaction, or answers that none can be fitted to
    ├── ScaleError     a grade outside the scale, no such scale, or no scale given
    ├── ScoreError     a question that a distribution of scores cannot answer
    ├── SelectionError no such policy, goal or stopping rule, or none that fits
    └── StoreError     a store of campaigns that cannot be opened, read or written

Every message gives the place, the expected value, the value found and the remedy; the command line prints it as one
line.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice
from os import PathLike

from probeval.characters import printable

__all__ = [
    "CampaignError",
    "DataError",
    "FeatureError",
    "LabellingError",
    "MetricError",
    "ModelError",
    "ProbevalError",
    "ProbevalWarning",
    "ReliabilityError",
    "SatisfactionError",
    "ScaleError",
    "ScoreError",
    "SelectionError",
    "StoreError",
    "did_you_mean",
]


LONGEST = 2000  # characters of a message


class ProbevalError(Exception):
    """Base of every error that probeval raises on purpose: one line, whatever names and values it quotes."""

    def __init__(self, message: str = "") -> None:
        super().__init__(_one_line(message))


class CampaignError(ProbevalError):
    """A step that a campaign does not allow."""


class DataError(ProbevalError):
    """A file or table that cannot be read as expected.

    >>> str(DataError("expected 6 columns, got 5.", path="runs/bm25", line=118))
    'runs/bm25:118: expected 6 columns, got 5.'
    """

    def __init__(self, message: str, *, path: str | PathLike[str] | None = None, line: int | None = None) -> None:
        self.path, self.line = path, line
        where = "" if path is None else f"{path}: " if line is None else f"{path}:{line}: "
        super().__init__(where + message)


class FeatureError(ProbevalError):
    """No such feature, or nothing to compute it from."""


class LabellingError(ProbevalError):
    """A server of labels that cannot be used, or that refuses the work."""


class MetricError(ProbevalError):
    """No such measure, or a parameter that it does not take."""


class ModelError(ProbevalError):
    """A model that cannot be fitted, loaded or applied."""


class ReliabilityError(ProbevalError):
    """A reliability study that the scores do not allow."""


class SatisfactionError(ProbevalError):
    """No mapping to satisfaction, or answers that none can be fitted to."""


class ScaleError(ProbevalError):
    """A grade outside the scale, no such scale, or no scale given."""


class ScoreError(ProbevalError):
    """A question that a distribution of scores cannot answer."""


class SelectionError(ProbevalError):
    """No such policy, goal or stopping rule, or none that fits the question."""


class StoreError(ProbevalError):
    """A store of campaigns that cannot be opened, read or written."""


class ProbevalWarning(UserWarning):
    """Something is missing or was replaced; the result is valid but rests on less data."""

    def __init__(self, message: str = "") -> None:
        super().__init__(_one_line(message))


def _one_line(message: str) -> str:
    """A message as one line that a terminal shows as it is; the middle of a very long one is left out."""
    text = printable(str(message))
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]}\N{HORIZONTAL ELLIPSIS}{text[-half:]}"


# A suggestion takes milliseconds, whatever was asked for.
MOST_COMPARED = 200  # words
LONGEST_COMPARED = 40  # letters of a word


def did_you_mean(word: str, known: Iterable[str], *, suffix: str = "") -> str:
    """`` Did you mean 'x'?`` for the nearest known word, or nothing.

    Of many words, those with the same beginning or end are compared.

    >>> did_you_mean("NDGC", ["AP", "nDCG"])
    " Did you mean 'nDCG'?"
    """
    folded = {k.lower(): k for k in known if len(k) <= LONGEST_COMPARED}
    lowered = word.lower()
    if len(word) > LONGEST_COMPARED:
        return ""
    if len(folded) > MOST_COMPARED:
        alike = (k for k in folded if k[:2] == lowered[:2] or k[-2:] == lowered[-2:])
        folded = {k: folded[k] for k in islice(alike, MOST_COMPARED)}
    near = difflib.get_close_matches(lowered, folded, n=1, cutoff=0.5)
    return f" Did you mean {folded[near[0]] + suffix!r}?" if near else ""
