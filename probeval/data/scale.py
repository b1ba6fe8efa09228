"""Relevance scales: the grades, their gains, and the levels that models distinguish."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from probeval.arrays import Codes, Floats, Ints, frozen
from probeval.display import Described, Table
from probeval.errors import ScaleError

__all__ = ["ABSENT", "POOLED", "UNJUDGED", "Gain", "Scale", "count_at_least"]

# A grade is stored as its position on the scale. Codes without a grade are negative, so that a lookup table
# with three zeros at its end gives them the gain 0 without a branch.
UNJUDGED = -1  # the document is not judged
ABSENT = -2  # the list has no document at this rank
POOLED = -3  # sampled for judging but not judged: grade -1 in a sampled qrels (only infAP treats it specially)
_NO_GRADE = 3

Gain = str | Sequence[float]  # "linear", "exp", or a gain per grade, as numbers or as "0,.25,.5,1"
GAINS = ("linear", "exp")
MOST_GRADES = 10_000  # codes are 16-bit
TOP_OF_GRADED = 9  # at most ten levels are "graded", more are "fine"
FINE = 100  # the top grade of the fine scale
BINS = 10  # levels of models on scales with many grades


@dataclass(frozen=True)
class Scale(Described):
    """Grades in increasing order and the gain of each.

    Parameters
    ----------
    grades
        The possible values of a judgment, in increasing order. Grade 0 (or the first) is "not relevant".
    gain
        ``"linear"`` for g(l) = l, ``"exp"`` for g(l) = 2^l - 1, or a gain per grade.
    bins
        The number of levels that relevance models distinguish, if fewer than the grades
        (fine grades 0-100 are modelled in ten bins with the values 5, 15, .., 95; a judged value stays exact).
    cuts
        For judgments on another scale: the lowest judged value of each grade but the first.
    top
        The highest judged value, where judged values are cut or real; None for no limit.
    real
        Whether the grades are the real numbers that the judgments have.

    Examples
    --------
    >>> Scale.graded(3, gain="exp").gains
    array([0., 1., 3., 7.])
    >>> Scale.graded(3).with_gain("0,.25,.5,1").gains
    array([0.  , 0.25, 0.5 , 1.  ])
    >>> Scale.parse("fine")
    Scale.fine(100, bins=10)
    >>> Scale.parse("fine:4").codes([25, 26, 100]).tolist()
    [0, 1, 3]
    """

    grades: tuple[float, ...]
    gain: str | tuple[float, ...] = "linear"
    bins: int | None = None
    cuts: tuple[float, ...] = ()
    top: float | None = None
    real: bool = False

    def __post_init__(self) -> None:
        if len(self.grades) < 2 or any(not b > a for a, b in zip(self.grades, self.grades[1:], strict=False)):
            raise ScaleError(f"A scale needs at least two grades in rising order, got {self.grades}.")
        if self.grades[0] < 0:
            raise ScaleError(
                f"Grades are not negative, got {self.grades[0]:g}: -1 (not judged) and -2 (junk) need no place."
            )
        if len(self.grades) > MOST_GRADES:
            raise ScaleError(f"A scale has at most {MOST_GRADES:,} grades, got {len(self.grades):,}.")
        self._check_gain()
        if self.cuts and (len(self.cuts) != len(self.grades) - 1 or np.any(np.diff((0.0, *self.cuts)) <= 0)):
            raise ScaleError(f"{len(self.grades)} grades need {len(self.grades) - 1} rising cuts, got {self.cuts}.")
        if self.bins is not None and not 2 <= self.bins <= len(self.grades):
            raise ScaleError(
                f"{len(self.grades)} grades can be cut into 2 to {len(self.grades)} bins, got {self.bins}."
            )

    def _check_gain(self) -> None:
        if isinstance(self.gain, str):
            if self.gain not in GAINS:
                raise ScaleError(f"Gains are 'linear', 'exp', or one per grade as in 0,.25,.5,1; got {self.gain!r}.")
            return
        shown = ", ".join(f"{g:g}" for g in self.gain[:6]) + (", .." if len(self.gain) > 6 else "")
        if len(self.gain) != len(self.grades):
            cut = " Cut it first: fine:4, for example." if str(self) == "fine" else ""
            raise ScaleError(
                f"The scale {self} has {len(self.grades)} grades: give as many gains, got {len(self.gain)} ({shown})."
                + cut
            )
        gains = np.array(self.gain, dtype=float)
        if not (np.all(np.isfinite(gains)) and gains[0] >= 0 and np.all(np.diff(gains) >= 0) and gains[-1] > 0):
            raise ScaleError(f"Gains are finite, from 0, do not fall, and the last is above 0; got {shown}.")

    @classmethod
    def binary(cls) -> Scale:
        """Return the scale of two grades: not relevant, relevant."""
        return cls((0, 1))

    @classmethod
    def graded(cls, top: int, *, gain: str | tuple[float, ...] = "linear") -> Scale:
        """Return the scale of grades 0, 1, .., ``top``."""
        return cls(tuple(range(top + 1)), gain=gain)

    @classmethod
    def fine(cls, top: int = FINE, *, bins: int = BINS) -> Scale:
        """Return the scale of grades 0, 1, .., ``top``, modelled in ``bins`` levels."""
        return cls(tuple(range(top + 1)), bins=bins)

    @classmethod
    def cut(cls, n: int, *, top: int = FINE) -> Scale:
        """Return the scale of ``n`` grades into which judgments 0, 1, .., ``top`` are cut, at equal distances.

        The grade of a judged value r is the whole part of r n / (top + 1).

        >>> Scale.cut(3).codes([0, 33, 34, 67, 68, 100]).tolist()
        [0, 0, 1, 1, 2, 2]
        """
        return cls(tuple(range(n)), cuts=tuple(level * (top + 1) / n for level in range(1, n)), top=top)

    @classmethod
    def at_threshold(cls, grade: float) -> Scale:
        """Return the binary scale on which judged values from ``grade`` on are relevant.

        >>> Scale.at_threshold(40).codes([0, 39, 40, 100]).tolist()
        [0, 0, 1, 1]
        """
        return cls((0, 1), cuts=(grade,))

    @classmethod
    def of_values(cls, values: ArrayLike) -> Scale:
        """Return the scale of real numbers from 0, such as gains; models have up to ten levels of them.

        >>> Scale.of_values([0.75, 0.5, 0.75])
        <Scale real: 3 values from 0 to 0.75>
        """
        seen = np.asarray(values, dtype=float)
        known = np.unique(seen[np.isfinite(seen) & (seen > 0)])
        if not known.size:
            raise ScaleError("The scale real takes its values from the judgments, and none is above 0.")
        if known.size >= MOST_GRADES:
            raise ScaleError(
                f"The scale real has at most {MOST_GRADES:,} values, got {known.size:,}. Round the judgments."
            )
        grades = (0.0, *known.tolist())
        return cls(grades, bins=BINS if len(grades) > BINS else None, top=grades[-1], real=True)

    @classmethod
    def parse(cls, text: str) -> Scale:
        """Return the scale of a name.

        ``binary``; ``binary:G`` (judged values from G on are relevant); ``graded:M`` (grades 0..M); ``fine`` (0..100);
        ``fine:N`` (0..100 cut into N equal levels); ``real`` (any numbers from 0: those of the judgments).
        """
        kind, _, size = text.partition(":")
        n = int(size) if size.isdecimal() and len(size) <= 4 else 0
        if kind == "binary" and (n or not size):
            return cls.at_threshold(n) if n else cls.binary()
        if kind == "fine" and (2 <= n <= FINE or not size):
            return cls.cut(n) if n else cls.fine()
        if kind == "graded" and n:
            return cls.graded(n)
        if text == "real":
            return cls((0, 1), real=True)
        digits = re.search(r"(?<!\d)[1-9]\d{0,3}$", text)  # 0-3, 0..3, 3
        hint = f" For 0 to {digits[0]}: graded:{digits[0]}." if digits and kind not in ("binary", "fine") else ""
        raise ScaleError(
            "A scale is 'binary', 'binary:G' (relevant from G on), 'graded:M' (grades 0..M), 'fine' (0..100), 'fine:N' "
            f"(0..100 cut into N levels, 2 to 100) or 'real' (any numbers from 0), got {text!r}.{hint}"
        )

    @classmethod
    def infer(cls, grades: ArrayLike) -> Scale:
        """Infer the scale from grades: 0/1 binary, at most ten levels graded, up to 100 fine; fractions are real.

        >>> Scale.infer([0, 2, 1, -2])
        Scale.graded(2)
        """
        seen = np.asarray(grades, dtype=float)
        seen = seen[seen >= 0]
        if seen.size == 0:
            return cls.binary()
        top = float(seen.max())
        if np.any(seen != np.round(seen)):
            return cls.of_values(seen)
        if top > FINE:
            raise ScaleError(
                f"No scale can be inferred from grades up to {top:g}: whole numbers from 0 to {FINE} are expected. "
                "Give the scale by name: real, for numbers of any size."
            )
        if top <= 1:
            return cls.binary()
        return cls.graded(int(top)) if top <= TOP_OF_GRADED else cls.fine()

    def with_gain(self, gain: Gain) -> Scale:
        """Return the same grades with other gains: ``"linear"``, ``"exp"``, or one per grade.

        >>> Scale.graded(2).with_gain([0, 1, 10]).gains
        array([ 0.,  1., 10.])
        """
        if isinstance(gain, str) and gain not in GAINS:
            with suppress(ValueError):  # the check of the scale says what is expected
                gain = tuple(float(part) for part in gain.split(","))
        return replace(self, gain=gain if isinstance(gain, str) else tuple(map(float, gain)))

    def of(self, values: ArrayLike) -> Scale:
        """Return the scale for judged values: itself, or the scale of these if it is open."""
        return replace(Scale.of_values(values), gain=self.gain) if self.is_open else self

    @property
    def is_open(self) -> bool:
        """Whether its values are still to be taken from judgments: ``real``, by its name alone."""
        return self.real and self.top is None

    def __len__(self) -> int:
        return len(self.grades)

    def __str__(self) -> str:
        """Return the name that :meth:`parse` accepts, if there is one."""
        whole = self.grades == tuple(range(len(self.grades)))
        if self.real:
            return "real"
        if self.cuts:
            return f"binary:{self.cuts[0]:g}" if self.top is None and len(self) == 2 else f"fine:{len(self)}"
        if whole and self.bins is not None:
            return "fine" if len(self) == FINE + 1 and self.bins == BINS else f"fine:{len(self) - 1}/{self.bins}"
        if whole:
            return "binary" if len(self) == 2 else f"graded:{len(self) - 1}"
        return ",".join(f"{g:g}" for g in self.grades)

    def _headline(self) -> str:
        return str(self)

    def tables(self) -> tuple[Table, ...]:
        """The grades and their gains."""
        table = pd.DataFrame({"grade": [f"{grade:g}" for grade in self.grades], "gain": self.gains})
        return (Table(table, f"Scale {self}"),)

    def __repr__(self) -> str:
        gain = "" if self.gain == "linear" else f", gain={self.gain!r}"
        if self.real:
            return f"<Scale real: {len(self):,} values from 0 to {self.grades[-1]:g}{gain}>"
        if self.cuts:
            return f"Scale.parse({str(self)!r})" + (f".with_gain({self.gain!r})" if gain else "")
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
    def judged_values(self) -> Floats:
        """A judged value of each grade, shape (grade,): the grade itself, or the lowest value that is cut to it."""
        return frozen(np.ceil([0.0, *self.cuts])) if self.cuts else self.values

    @cached_property
    def gains(self) -> Floats:
        """The gain of each grade, shape (grade,)."""
        return self.gains_as(self.gain) if isinstance(self.gain, str) else frozen(np.array(self.gain, dtype=float))

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
        if self.cuts:
            at = np.asarray(np.searchsorted(self.cuts, given, side="right")).clip(0, len(self) - 1)
            off = given > (math.inf if self.top is None else self.top)
        else:
            at = np.asarray(np.searchsorted(self.values, given)).clip(0, len(self) - 1)
            off = (given >= 0) & (self.values[at] != given)
        codes = np.array(at, dtype=np.int16)
        codes[given < -1] = 0
        codes[given == -1] = POOLED
        codes[np.isnan(given)] = UNJUDGED
        off |= (given < 0) & (given != np.round(given))
        if off.any():
            raise ScaleError(f"Grade {given[off].flat[0]:g} is not on the scale {self}. Name the right scale.")
        return codes

    @cached_property
    def _bin(self) -> Ints:
        """The bin of each grade, shape (grade,); bins without a grade have no number."""
        bins = self.bins or len(self)
        if not self.real:
            return np.arange(len(self)) * bins // len(self)
        by_value = np.floor(self.values / self.values[-1] * bins).clip(max=bins - 1)
        return np.asarray(np.unique(by_value, return_inverse=True)[1], dtype=np.int64)

    @cached_property
    def levels(self) -> Codes:
        """The representative grade of each model level, shape (level,); every grade, or the middle of each bin."""
        if self.bins is None:
            return np.arange(len(self), dtype=np.int16)
        if self.real:
            members = [np.flatnonzero(self._bin == b) for b in range(int(self._bin[-1]) + 1)]
            return np.array([m[(len(m) - 1) // 2] for m in members], dtype=np.int16)
        width = (len(self) - 1) / self.bins
        return np.asarray(np.floor(width * (np.arange(self.bins) + 0.5)), dtype=np.int16)

    def level_of(self, codes: Codes) -> Codes:
        """Return the level of each grade (equal intervals of grades), negative where there is no grade."""
        return codes if self.bins is None else np.where(codes < 0, codes, self._bin[codes]).astype(np.int16)

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
