"""The input of measures: the grade at each rank, and the number of documents of each grade per query."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from probeval.arrays import Bools, Codes, Floats, Ids, Ints
from probeval.data.judgments import Judgments
from probeval.data.runs import Runs
from probeval.data.scale import ABSENT, Scale, count_at_least
from probeval.display import Record
from probeval.errors import DataError

__all__ = ["Lists", "gather"]


@dataclass(frozen=True, eq=False, repr=False)
class Lists(Record):
    """Ranked grades, with any number of leading axes (relevance draws).

    Parameters
    ----------
    scale
        The scale of the codes.
    codes
        The grade at each rank, shape (.., system, query, rank); negative where there is none
        (:data:`~probeval.data.scale.UNJUDGED`, :data:`~probeval.data.scale.ABSENT`, ..).
    relevant_counts
        The number of known pairs of each query with at least each grade, shape (.., query, grade).
        The ideal list follows from it without sorting.

    Examples
    --------
    >>> lists = Lists.of_grades([[3, 2, 3, 0, 1, 2]], Scale.graded(3))
    >>> lists.relevant_counts
    array([[6, 5, 4, 2]])
    """

    scale: Scale
    codes: Codes
    relevant_counts: Ints

    @classmethod
    def of_grades(cls, grades: object, scale: Scale, *, known: object | None = None) -> Lists:
        """Return lists of one system from grades by query and rank (NaN unjudged); ``known`` has all grades per query.

        Without ``known``, the lists contain all known grades.
        """
        codes = scale.codes(np.atleast_2d(np.asarray(grades, dtype=float)))
        offered = codes if known is None else scale.codes(np.atleast_2d(np.asarray(known, dtype=float)))
        query = np.broadcast_to(np.arange(len(offered))[:, None], offered.shape)
        return cls(scale, codes[None], count_at_least(offered.ravel(), query.ravel(), len(offered), len(scale)))

    @classmethod
    def judged(cls, runs: Runs, judgments: Judgments, scale: Scale, *, rule: str = "median") -> tuple[Lists, Ids]:
        """Return the graded lists of the queries with both runs and judgments, and the ids of these queries."""
        known = judgments.codes(scale, rule=rule)
        offered = count_at_least(known, judgments.pool.query, len(judgments.pool.queries), len(scale))
        row = {q: i for i, q in enumerate(judgments.pool.queries) if offered[i, 0]}
        common = [i for i, q in enumerate(runs.queries) if q in row]
        if not common:
            raise DataError(
                f"no query in common: the runs answer {_some(runs.queries)}, the judgments are for {_some(row)}."
            )
        codes = judgments.codes_on(runs.pool, scale, rule=rule)
        lists = cls(scale, gather(codes, runs.pairs[:, common]), offered[[row[runs.queries[i]] for i in common]])
        return lists, runs.queries[common]

    def __post_init__(self) -> None:
        if self.relevant_counts.shape[-2:] != (self.codes.shape[-2], len(self.scale)):
            raise DataError(
                f"Lists of shape {self.codes.shape} cannot have relevant_counts of shape {self.relevant_counts.shape}."
            )

    @property
    def depth(self) -> int:
        """The number of ranks."""
        return int(self.codes.shape[-1])

    @property
    def retrieved(self) -> Bools:
        """Mask of the ranks with a document."""
        return np.not_equal(self.codes, ABSENT)

    @property
    def judged_docs(self) -> Bools:
        """Mask of the ranks with a grade."""
        return self.codes >= 0

    @property
    def unjudged(self) -> Bools:
        """Mask of the ranks with an unjudged document."""
        return np.less(self.codes, 0) & self.retrieved

    def top(self, depth: int | None) -> Lists:
        """Return the first ranks only, with the same relevant_counts."""
        return self if depth is None or depth >= self.depth else replace(self, codes=self.codes[..., :depth])

    def filled(self, code: int) -> Lists:
        """Return the lists with one grade for every unjudged document, and the same relevant_counts."""
        return replace(self, codes=np.where(self.unjudged, np.int16(code), self.codes))

    def condensed(self) -> Lists:
        """Return the lists without their unjudged documents, the judged ones moved up (Sakai 2007b).

        >>> Lists.of_grades([[1, float("nan"), 0, float("nan"), 1]], Scale.binary()).condensed().codes.tolist()
        [[[1, 0, 1, -2, -2]]]
        """
        order = np.argsort(~self.judged_docs, axis=-1, kind="stable")
        codes = np.take_along_axis(self.codes, order, axis=-1)
        return replace(self, codes=np.where(codes >= 0, codes, np.int16(ABSENT)))

    def values(self, per_grade: Floats) -> Floats:
        """Look up a value per grade at each rank (0 where there is no grade), shape of ``codes``."""
        return self.scale.lookup(per_grade)[self.codes]

    def relevant(self, grade: float) -> Bools:
        """Return a mask of the ranks with at least ``grade``, shape of ``codes``."""
        return self.codes >= self.scale.at_least(grade)

    def n_relevant(self, grade: float) -> Ints:
        """Return the number of known pairs with at least ``grade``, shape (.., 1, query) to broadcast over systems."""
        level = self.scale.at_least(grade)
        if level == len(self.scale):
            return np.zeros(self.relevant_counts.shape[:-1], dtype=np.int64)[..., None, :]
        return self.relevant_counts[..., None, :, level]


def gather(codes: Codes, pairs: Ints) -> Codes:
    """Return the code at each rank: ``codes`` (.., pair) at ``pairs`` (system, query, rank), -1 for no document."""
    absent = np.full((*codes.shape[:-1], 1), ABSENT, dtype=np.int16)
    return np.take(np.concatenate([codes, absent], axis=-1), pairs, axis=-1)


def _some(labels: object) -> str:
    listed = [str(x) for x in labels]  # type: ignore[attr-defined]
    return ", ".join(map(repr, listed[:3])) + (", .." if len(listed) > 3 else "") if listed else "nothing"
