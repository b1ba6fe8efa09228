"""Relevance scales: the grades, their gains, and the levels that models distinguish."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from probeval.arrays import Codes, Floats, Ints, frozen
from probeval.display import Described, View
from probeval.errors import ScaleError

__all__ = ["ABSENT", "POOLED", "UNJUDGED", "Scale", "count_at_least"]

# A grade is stored as its position on the scale. Codes without a grade are negative, so that a lookup table
# with three zeros at its end gives them the gain 0 without a branch.
UNJUDGED = -1  # the document is not judged
ABSENT = -2  # the list has no document at this rank
POOLED = -3  # sampled for judging but not judged: grade -1 in a sampled qrels (only infAP treats it specially)
_NO_GRADE = 3

GAINS = ("linear", "exp")
MOST_GRADES = 10_000  # codes are 16-bit
TOP_OF_GRADED = 9  # at most ten levels are "graded", more are "fine"


@dataclass(frozen=True)
class Scale(Described):
    """Grades in increasing order and the gain of each.

    Parameters
    ----------
    grades
        The possible values of a judgment, in increasing order. Grade 0 (or the first) is "not relevant".
    gain
        ``"linear"`` for g(l) = l, ``"exp"`` for g(l) = 2^l - 1.
    bins
        The number of levels that relevance models distinguish, if fewer than the grades
        (fine grades 0-100 are modelled in ten bins with the values 5, 15, .., 95; a judged value stays exact).

    Examples
    --------
    >>> Scale.graded(3, gain="exp").gains
    array([0., 1., 3., 7.])
    >>> Scale.parse("fine")
    Scale.fine(100, bins=10)
    """

    grades: tuple[float, ...]
    gain: str = "linear"
    bins: int | None = None

    def __post_init__(self) -> None:
        if len(self.grades) < 2 or any(not b > a for a, b in zip(self.grades, self.grades[1:], strict=False)):
            raise ScaleError(f"A scale needs at least two grades in rising order, got {self.grades}.")
        if self.grades[0] < 0:
            raise ScaleError(
                f"Grades are not negative, got {self.grades[0]:g}: -1 (not judged) and -2 (junk) need no place."
            )
        if len(self.grades) > MOST_GRADES:
            raise ScaleError(f"A scale has at most {MOST_GRADES:,} grades, got {len(self.grades):,}.")
        if self.gain not in GAINS:
            raise ScaleError(f"A gain is 'linear' or 'exp', got {self.gain!r}.")
        if self.bins is not None and not 2 <= self.bins <= len(self.grades):
            raise ScaleError(
                f"{len(self.grades)} grades can be cut into 2 to {len(self.grades)} bins, got {self.bins}."
            )

    @classmethod
    def binary(cls) -> Scale:
        """Return the scale of two grades: not relevant, relevant."""
        return cls((0, 1))

    @classmethod
    def graded(cls, top: int, *, gain: str = "linear") -> Scale:
        """Return the scale of grades 0, 1, .., ``top``."""
        return cls(tuple(range(top + 1)), gain=gain)

    @classmethod
    def fine(cls, top: int = 100, *, bins: int = 10) -> Scale:
        """Return the scale of grades 0, 1, .., ``top``, modelled in ``bins`` levels."""
        return cls(tuple(range(top + 1)), bins=bins)

    @classmethod
    def parse(cls, text: str) -> Scale:
        """Return the scale of a name: ``binary``, ``graded:M`` (grades 0..M) or ``fine`` (0..100)."""
        kind, _, top = text.partition(":")
        if kind == "binary" and not top:
            return cls.binary()
        if kind == "fine" and not top:
            return cls.fine()
        if kind == "graded" and top.isdecimal() and len(top) <= 4 and int(top) >= 1:
            return cls.graded(int(top))
        digits = re.search(r"(?<!\d)[1-9]\d{0,3}$", text)  # 0-3, 0..3, 3
        hint = f" For 0 to {digits[0]}: graded:{digits[0]}." if digits else ""
        raise ScaleError(f"A scale is 'binary', 'graded:M' (grades 0..M) or 'fine' (0..100), got {text!r}.{hint}")

    @classmethod
    def infer(cls, grades: ArrayLike) -> Scale:
        """Infer the scale from grades: 0/1 binary, at most ten levels graded, up to 100 fine.

        >>> Scale.infer([0, 2, 1, -2])
        Scale.graded(2)
        """
        seen = np.asarray(grades, dtype=float)
        seen = seen[seen >= 0]
        if seen.size == 0:
            return cls.binary()
        top = float(seen.max())
        if np.any(seen != np.round(seen)) or top > 100:
            raise ScaleError(
                f"No scale can be inferred from grades up to {top:g}: whole numbers from 0 to 100 are expected. "
                "Give the scale by name."
            )
        if top <= 1:
            return cls.binary()
        return cls.graded(int(top)) if top <= TOP_OF_GRADED else cls.fine()

    def with_gain(self, gain: str) -> Scale:
        """Return the same grades with another gain."""
        return replace(self, gain=gain)

    def __len__(self) -> int:
        return len(self.grades)

    def __str__(self) -> str:
        """Return the name that :meth:`parse` accepts, if there is one."""
        whole = self.grades == tuple(range(len(self.grades)))
        if whole and self.bins is not None:
            return "fine" if len(self) == 101 and self.bins == 10 else f"fine:{len(self) - 1}/{self.bins}"
        if whole:
            return "binary" if len(self) == 2 else f"graded:{len(self) - 1}"
        return ",".join(f"{g:g}" for g in self.grades)

    def _headline(self) -> str:
        return str(self)

    def views(self) -> tuple[View, ...]:
        """The grades and their gains."""
        table = pd.DataFrame({"grade": [f"{grade:g}" for grade in self.grades], "gain": self.gains})
        return (View(table, f"Scale {self}"),)

    def __repr__(self) -> str:
        gain = "" if self.gain == "linear" else f", gain={self.gain!r}"
        if self.grades == tuple(range(len(self.grades))):
            top = len(self.grades) - 1
            if self.bins is not None:
                return f"Scale.fine({top}, bins={self.bins})"
            return "Scale.binary()" if top == 1 and not gain else f"Scale.graded({top}{gain})"
        return f"Scale({self.grades}{gain})"

    @cached_property
    def values(self) -> Floats:
        """The grades as numbers, shape (grade,)."""
        return frozen(np.array(self.grades, dtype=float))

    @cached_property
    def gains(self) -> Floats:
        """The gain of each grade, shape (grade,)."""
        return self.gains_as(self.gain)

    def gains_as(self, gain: str) -> Floats:
        """The gain of each grade under a named gain, shape (grade,)."""
        return frozen(np.array(self.values if gain == "linear" else np.exp2(self.values) - 1))

    def at_least(self, grade: float) -> int:
        """Return the position of the first grade that is at least ``grade`` (``len(self)`` if none is)."""
        return int(np.searchsorted(self.values, grade))

    def codes(self, grades: ArrayLike) -> Codes:
        """Return positions on the scale: NaN is unjudged, -1 sampled but not judged, below -1 junk (the lowest grade).

        >>> Scale.graded(3).codes([3, 0, -1, -2, float("nan")]).tolist()
        [3, 0, -3, 0, -1]
        """
        given = np.asarray(grades, dtype=float)
        at = np.asarray(np.searchsorted(self.values, given)).clip(0, len(self) - 1)
        codes = np.array(at, dtype=np.int16)
        codes[given < -1] = 0
        codes[given == -1] = POOLED
        codes[np.isnan(given)] = UNJUDGED
        off = (given >= 0) & (self.values[at] != given) | (given < 0) & (given != np.round(given))
        if off.any():
            raise ScaleError(f"Grade {given[off].flat[0]:g} is not on the scale {self}. Name the right scale.")
        return codes

    @cached_property
    def levels(self) -> Codes:
        """The representative grade of each model level, shape (level,): every grade, or the middle of each bin."""
        if self.bins is None:
            return np.arange(len(self), dtype=np.int16)
        width = (len(self) - 1) / self.bins
        return np.asarray(np.floor(width * (np.arange(self.bins) + 0.5)), dtype=np.int16)

    def level_of(self, codes: Codes) -> Codes:
        """Return the level of each grade (equal intervals of grades), negative where there is no grade."""
        if self.bins is None:
            return codes
        return np.where(codes < 0, codes, codes.astype(np.int64) * self.bins // len(self)).astype(np.int16)

    def lookup(self, per_grade: ArrayLike) -> Floats:
        """Return a table indexed by grade code, with value 0 for codes without a grade."""
        return np.append(np.asarray(per_grade, dtype=float), np.zeros(_NO_GRADE))


def count_at_least(codes: Codes, query: Ints, n_queries: int, n_grades: int) -> Ints:
    """Count each query's pairs with at least each grade, shape (.., query, grade).

    ``codes`` has shape (.., pair), negative where there is no grade; ``query`` has shape (pair,).
    """
    width = n_grades + 1  # the first cell of a query is for pairs without a grade
    flat = codes.reshape(math.prod(codes.shape[:-1]), codes.shape[-1])
    counts, first = np.empty((len(flat), n_queries * width), dtype=np.int64), query * width + 1
    for row, drawn in zip(counts, flat, strict=True):
        row[:] = np.bincount(first + np.maximum(drawn, -1), minlength=n_queries * width)
    counts = counts.reshape(*codes.shape[:-1], n_queries, width)[..., 1:]
    return np.cumsum(counts[..., ::-1], axis=-1)[..., ::-1]
