"""Judgments as events, and one grade per pair by a stated rule."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from probeval.arrays import Codes, Floats, Ints, frozen, objects
from probeval.data.pool import Pool, number
from probeval.data.scale import Scale
from probeval.display import Described, Table
from probeval.errors import DataError, ScaleError, did_you_mean

__all__ = ["GRADE_RULES", "RULES", "Judgments", "on_scale"]

NOT_JUDGED = -1  # sampled for judging but not judged

RULES = {
    "median": "the (lower) median over assessors of each one's latest grade (the default)",
    "majority": "the most frequent of the assessors' latest grades; the lower on a tie",
    "min": "the lowest of the assessors' latest grades",
    "max": "the highest of the assessors' latest grades",
    "latest": "the latest grade by any assessor",
    "unanimous": "the grade that all assessors agree on in the end; none where they differ",
    "mean": "the mean of the assessors' latest grades, a real number",
}
GRADE_RULES = tuple(rule for rule in RULES if rule != "mean")  # their results are grades of the scale


@dataclass(frozen=True, eq=False, repr=False)
class Judgments(Described):
    """Judgments as events in chronological order: an assessor, a pair and a grade each.

    Parameters
    ----------
    pool
        The pairs that may have judgments, including unjudged ones.
    pair, grade
        The pair and the grade of each event, shape (event,). Grade -1 is "sampled for judging but not judged";
        grades below that are junk: judged, and equivalent to the lowest grade.
    assessor, assessors
        The position of each event's assessor in ``assessors``, shape (event,), and the names.
    time
        Seconds since 1970, NaN where unknown, shape (event,).

    Examples
    --------
    >>> judged = Judgments.rows(["q", "q", "q"], ["d1", "d2", "d2"], [1, 0, 2], assessors=["ann", "ann", "bob"])
    >>> judged.grades("max").tolist(), judged.grades("median").tolist()
    ([1.0, 2.0], [1.0, 0.0])
    """

    pool: Pool
    pair: Ints
    grade: Floats
    assessor: Ints
    assessors: tuple[str, ...]
    time: Floats

    def __post_init__(self) -> None:
        for name in ("pair", "grade", "assessor", "time"):
            column = getattr(self, name)
            if column.shape != self.pair.shape:
                raise DataError(f"{len(self.pair)} judgments need as many values of {name}, got {column.shape}.")
            object.__setattr__(self, name, frozen(column))

    @classmethod
    def rows(
        cls,
        queries: Sequence[str],
        docs: Sequence[str],
        grades: Sequence[float] | NDArray[Any],
        *,
        assessors: Sequence[str] | None = None,
        times: Sequence[float] | NDArray[Any] | None = None,
    ) -> Judgments:
        """Return judgments from parallel columns, one row per event, in chronological order."""
        columns = {"docs": docs, "grades": grades, "assessors": assessors, "times": times}
        for name, column in columns.items():
            if column is not None and len(column) != len(queries):
                raise DataError(f"{len(queries)} rows need as many {name}, got {len(column)}.")
        q, query_labels = number(queries)
        d, doc_labels = number(docs)
        pool, pair = Pool.coded(query_labels, doc_labels, q, d)
        return cls.coded(pool, pair, np.asarray(grades, dtype=float), assessors=assessors, times=times)

    @classmethod
    def coded(
        cls,
        pool: Pool,
        pair: Ints,
        grade: Floats,
        *,
        assessors: Sequence[str] | None = None,
        times: Sequence[float] | NDArray[Any] | None = None,
    ) -> Judgments:
        """Return judgments from events whose pairs are positions in ``pool``."""
        n = len(pair)
        who, names = (np.zeros(n, dtype=np.int64), [""]) if assessors is None else number(assessors)
        time = np.full(n, np.nan) if times is None else np.asarray(times, dtype=float)
        return cls(pool, np.asarray(pair, dtype=np.int64), np.asarray(grade, dtype=float), who, tuple(names), time)

    @classmethod
    def none(cls, pool: Pool) -> Judgments:
        """Return an empty set of judgments."""
        return cls.coded(pool, np.empty(0, dtype=np.int64), np.empty(0))

    def __len__(self) -> int:
        return len(self.pair)

    def _headline(self) -> str:
        judged = np.unique(self.pair).size
        who = f" by {len(self.assessors)} assessors" if len(self.assessors) > 1 else ""
        return f"{len(self):,} of {judged:,} pairs{who}"

    def tables(self) -> tuple[Table, ...]:
        """The number of judgments with each grade."""
        grades, counts = np.unique(self.grade, return_counts=True)
        names = ["not judged" if grade == NOT_JUDGED else f"{grade:g}" for grade in grades]
        return (Table(pd.DataFrame({"grade": names, "judgments": counts}), self._headline()),)

    def grades(self, rule: str = "median") -> Floats:
        """Return one grade per pair by one of :data:`RULES`, NaN where unjudged, shape (pair,)."""
        if rule not in RULES:
            raise DataError(f"No rule {rule!r}: {', '.join(RULES)}.{did_you_mean(rule, RULES)}")
        out = np.full(len(self.pool), np.nan)
        if rule == "latest" or len(self.assessors) == 1:
            out[self.pair] = self.grade  # later events overwrite earlier ones
            return out
        last = pd.Series(self.grade).groupby([self.pair, self.assessor]).last()
        by_pair = last.where(last != NOT_JUDGED).groupby(level=0)  # assessors who did not judge have no vote
        if rule == "median":
            reduced = by_pair.quantile(0.5, interpolation="lower")
        elif rule == "majority":
            reduced = by_pair.agg(lambda g: g.mode().min())
        elif rule == "mean":
            reduced = last.where(last != NOT_JUDGED).clip(lower=0).groupby(level=0).mean()  # junk is worth nothing
        elif rule == "unanimous":
            low, high = by_pair.min(), by_pair.max()
            reduced = low.fillna(NOT_JUDGED).where(low.isna() | (low == high))
            out[reduced.index.to_numpy()] = reduced.to_numpy()
            return out
        else:
            reduced = by_pair.agg(rule)
        out[reduced.index.to_numpy()] = reduced.fillna(NOT_JUDGED).to_numpy()
        return out

    def codes(self, scale: Scale, *, rule: str = "median") -> Codes:
        """Return one grade per pair as its position on ``scale``, negative where unjudged, shape (pair,)."""
        grades = self.grades(rule)
        try:
            return scale.codes(grades)
        except ScaleError as error:
            bad = next(i for i in np.flatnonzero(~np.isnan(grades)) if not on_scale(scale, grades[i]))
            query, doc = self.pool.label(int(bad))
            raise ScaleError(f"Query {query!r}, document {doc!r}: {error}") from None

    def codes_on(self, pool: Pool, scale: Scale, *, rule: str = "median") -> Codes:
        """Return one grade per pair of another pool as its position on ``scale``, negative where unjudged."""
        return self.on(pool).codes(scale, rule=rule)

    def limits(self, scale: Scale) -> tuple[Codes, Codes]:
        """The lowest and highest grade of each pair whose assessors differ, negative elsewhere, shapes (pair,).

        Examples
        --------
        >>> judged = Judgments.rows(["q", "q", "q"], ["d1", "d2", "d2"], [1, 0, 2], assessors=["ann", "ann", "bob"])
        >>> [codes.tolist() for codes in judged.limits(Scale.graded(2))]
        [[-1, 0], [-1, 2]]
        """
        low, high = (self.codes(scale, rule=rule) for rule in ("min", "max"))
        differ = (low >= 0) & (low < high)
        return np.where(differ, low, -1).astype(np.int16), np.where(differ, high, -1).astype(np.int16)

    def by(self, *assessors: str) -> Judgments:
        """Return the events of some assessors."""
        return self.take(np.isin(np.array(self.assessors, dtype=object)[self.assessor], assessors))

    def scale(self, named: Scale | None = None, *, rule: str = "median") -> Scale:
        """The scale of the grades by a rule: the one named, else the one that they suggest (see :meth:`Scale.infer`).

        >>> Judgments.rows(["q", "q"], ["d", "d"], [0, 1], assessors=["ann", "bob"]).scale(rule="mean")
        <Scale real: 2 values from 0 to 0.5>
        """
        grades = self.grade if rule in GRADE_RULES else self.grades(rule)
        return Scale.infer(grades[~np.isnan(grades)]) if named is None else named.of(grades)

    def on(self, pool: Pool, place: Ints | None = None) -> Judgments:
        """Return the events on another pool, without those whose pair it lacks.

        ``place`` is the position of each pair of this pool in the other, if it is known already.
        """
        if pool is self.pool:
            return self
        moved = (self.pool.within(pool) if place is None else place)[self.pair]
        kept = self.take(moved >= 0)
        return replace(kept, pool=pool, pair=moved[moved >= 0])

    def take(self, events: NDArray[Any]) -> Judgments:
        """Return some of the events, by position or mask, on the same pool."""
        return replace(
            self,
            pair=self.pair[events],
            grade=self.grade[events],
            assessor=self.assessor[events],
            time=self.time[events],
        )

    def fingerprint(self) -> str:
        """Return a short hash of the judgments, independent of file and order."""
        grades = self.grades()
        known = ~np.isnan(grades)
        lines = sorted(
            f"{self.pool.queries[q]} {self.pool.docs[d]} {g:g}"
            for q, d, g in zip(self.pool.query[known], self.pool.doc[known], grades[known], strict=True)
        )
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per event: query, doc, grade, assessor, time."""
        table = self.pool.to_frame().iloc[self.pair].reset_index(drop=True)
        return table.assign(grade=self.grade, assessor=objects(self.assessors)[self.assessor], time=self.time)


def on_scale(scale: Scale, grade: float) -> bool:
    """Whether the scale has this grade."""
    try:
        scale.codes([grade])
    except ScaleError:
        return False
    return True
