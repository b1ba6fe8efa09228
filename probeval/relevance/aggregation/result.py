"""The result of aggregating votes: P(grade) of every pair, and an estimate of every worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NotRequired, TypedDict, cast

import numpy as np
import pandas as pd
from scipy.special import ndtri

from probeval.arrays import Codes, Floats, Ints, frozen, objects
from probeval.data.judgments import Judgments
from probeval.data.scale import Scale
from probeval.data.votes import Votes
from probeval.display import Table
from probeval.relevance.aggregation.curves import LOG_SLOPE, SHIFT
from probeval.relevance.aggregation.model import FittedVotes
from probeval.relevance.aggregation.workers import KINDS
from probeval.relevance.distribution import RelevanceDistribution
from probeval.results import Result
from probeval.schema import records

__all__ = ["Aggregation", "AggregationDocument", "WorkerDocument"]

FIRST = 20  # pairs and workers in a summary


class WorkerDocument(TypedDict):
    """A worker.

    Parameters
    ----------
    votes
        The number of pairs with a vote.
    agreement
        The share of the votes that are the aggregated grade.
    gold_agreement
        The share of the votes on pairs with a gold grade that are this grade.
    slope
        How much the votes follow relevance, if the worker is not careless: logits per standard deviation of relevance
        among the pairs of a query. Negative for a reversed worker.
    shift
        How easily the worker gives high grades: the mean logit over the cutpoints, for a pair of average relevance.
    slope_lower, slope_upper, shift_lower, shift_upper
        The ends of the intervals.
    p_careless, p_reversed
        The probability that the votes do not depend on relevance, and that they are reversed.
    """

    worker: str
    votes: int
    agreement: float
    gold_agreement: NotRequired[float]
    slope: NotRequired[float]
    slope_lower: NotRequired[float]
    slope_upper: NotRequired[float]
    shift: NotRequired[float]
    shift_lower: NotRequired[float]
    shift_upper: NotRequired[float]
    p_careless: NotRequired[float]
    p_reversed: NotRequired[float]


class AggregationDocument(TypedDict):
    """Aggregated votes.

    Parameters
    ----------
    method, reference
        The method, and whose grades these are: gold, consensus, or the name of an assessor.
    no_grade
        The number of labels below 0, which are no votes.
    pairs
        One entry per pair: query, doc, the most probable grade, P of each grade, the number of votes, and the gold
        grade where there are any (null for pairs without).
    """

    method: str
    reference: str
    scale: str
    level: float
    no_grade: int
    pairs: list[dict[str, str | float]]
    workers: list[WorkerDocument]


@dataclass(frozen=True, eq=False, repr=False)
class Aggregation(Result):
    """Aggregated votes: the distribution of every pair's grade, and the workers.

    Parameters
    ----------
    votes, scale
        The votes and gold grades, and the scale of their grades.
    method, reference
        The method, and whose grades these are: ``"gold"``, ``"consensus"`` or the name of an assessor.
    probability
        P(level) of each pair; certain where there is a gold grade; shape (pair, level).
    grade
        The grade of each pair, as a position on the scale, shape (pair,).
    same_as
        The position of the worker whose estimates each worker shares, itself except for copies, shape (worker,).
    fitted
        The model; None for other methods.
    level
        The level of the workers' intervals.
    notes
        Remarks on the data.
    """

    votes: Votes
    scale: Scale
    method: str
    reference: str
    probability: Floats
    grade: Codes
    same_as: Ints
    fitted: FittedVotes | None = None
    level: float = 0.9
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("probability", "grade", "same_as"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def _headline(self) -> str:
        given = self.votes.judgments
        workers = np.unique(given.assessor).size
        return (
            f"{_counted(len(given.pool), 'pair')}, {_counted(len(given), 'vote')} by {_counted(workers, 'worker')}, "
            f"method {self.method}, reference {self.reference}"
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per pair: query, doc, grade, P of each grade, votes, and the gold grade if there is any."""
        given = self.votes.judgments
        table = given.pool.to_frame().assign(grade=_whole(self.scale.values[self.grade]))
        for i, code in enumerate(self.scale.levels):
            table[f"p{self.scale.values[code]:g}"] = self.probability[:, i]
        table["votes"] = np.bincount(given.pair, minlength=len(given.pool))
        return table if self.votes.gold is None else table.assign(gold=self.votes.gold.grades())

    def workers(self) -> pd.DataFrame:
        """One row per worker, the one with most votes first: see :class:`WorkerDocument` for the columns."""
        given = self.votes.judgments
        n = np.bincount(given.assessor, minlength=len(given.assessors))
        table = pd.DataFrame({"worker": objects(given.assessors), "votes": n})
        table["agreement"] = self._agreement(self.grade)
        if self.votes.gold is not None:
            table["gold_agreement"] = self._agreement(self.votes.gold.codes(self.scale))
        if self.fitted is not None:
            fitted = np.unique(self.same_as[given.assessor])  # the workers of the model, in its order
            place = np.searchsorted(fitted, self.same_as).clip(max=len(fitted) - 1)
            estimates = _estimates(self.fitted, self.level)
            table = table.assign(**{name: column[place] for name, column in estimates.items()})
        return table[n > 0].sort_values(["votes", "worker"], ascending=[False, True], ignore_index=True)

    def _agreement(self, codes: Codes) -> Floats:
        """The share of each worker's votes on the levels of these grades, NaN where none can be compared."""
        given, scale = self.votes.judgments, self.scale
        level = scale.level_of(codes)[given.pair]
        same = scale.level_of(scale.codes(given.grade)) == level
        total, hits = (
            np.bincount(given.assessor, weight, minlength=len(given.assessors)) for weight in (level >= 0, same)
        )
        return np.where(total > 0, hits / np.maximum(total, 1), np.nan)

    def to_judgments(self) -> Judgments:
        """The grade of every pair with a vote or a gold grade, as judgments: for qrels."""
        pool = self.votes.judgments.pool
        graded = np.zeros(len(pool), dtype=bool)
        graded[self.votes.judgments.pair] = True
        if self.votes.gold is not None:
            graded[self.votes.gold.pair] = True
        pairs = np.flatnonzero(graded)
        return Judgments.coded(pool, pairs, self.scale.values[self.grade[pairs]])

    def relevance(self) -> RelevanceDistribution:
        """The distribution of every pair's grade, as scores take it."""
        pool = self.votes.judgments.pool
        return RelevanceDistribution.of(pool, self.scale, np.array(self.probability), judgments=self.votes.gold)

    def to_dict(self) -> AggregationDocument:
        """The grades and the workers as plain data, as ``probeval aggregate --format json`` prints them."""
        return {
            "method": self.method,
            "reference": self.reference,
            "scale": str(self.scale),
            "level": self.level,
            "no_grade": self.votes.no_grade,
            "pairs": cast("list[dict[str, str | float]]", self.to_frame().to_dict("records")),
            "workers": records(self.workers(), WorkerDocument),
        }

    def tables(self) -> tuple[Table, Table]:
        """The first pairs, and the workers with most votes."""
        slope = None if self.fitted is None else ("slope", "slope_lower", "slope_upper")
        pairs = Table(self.to_frame().head(FIRST), self._headline())
        return pairs, Table(self.workers().head(FIRST), "Workers", intervals=slope)

    def sentences(self) -> list[str]:
        """What is not shown, and remarks on the data."""
        more = [
            f"{n - FIRST:,} more {what}."
            for n, what in (
                (len(self.grade), "pairs in to_frame()"),
                (np.unique(self.votes.judgments.assessor).size, "workers in workers()"),
            )
            if n > FIRST
        ]
        return [*more, *self._average(), *self.notes]

    def _average(self) -> list[str]:
        """A sentence on the average worker."""
        if self.fitted is None:
            return []
        population = self.fitted.population
        careless = population.shares[[kind.name for kind in KINDS].index("careless")]
        return [
            f"The average worker has the slope {np.exp(population.mean[LOG_SLOPE]):.2f} and the shift "
            f"{population.mean[SHIFT]:.2f}; an estimated {careless:.0%} of the workers are careless."
        ]


def _estimates(fitted: FittedVotes, level: float) -> dict[str, Floats]:
    """The columns of workers that the model estimates."""
    workers = fitted.workers
    attentive, careless, reversed_ = range(len(KINDS))
    turned = workers.kinds[reversed_] > workers.kinds[attentive]
    kind = np.where(turned, reversed_, attentive)
    own = np.take_along_axis(workers.parameters, kind[None, :, None], axis=0)[0]
    variance = np.take_along_axis(workers.covariance, kind[None, :, None, None], axis=0)[0]
    half = ndtri((1 + level) / 2) * np.sqrt(np.einsum("jpp->jp", variance))
    low, high = (np.exp(own[:, LOG_SLOPE] + side * half[:, LOG_SLOPE]) for side in (-1.0, 1.0))
    return {
        "slope": np.where(turned, -1.0, 1.0) * np.exp(own[:, LOG_SLOPE]),
        "slope_lower": np.where(turned, -high, low),
        "slope_upper": np.where(turned, -low, high),
        "shift": own[:, SHIFT],
        "shift_lower": own[:, SHIFT] - half[:, SHIFT],
        "shift_upper": own[:, SHIFT] + half[:, SHIFT],
        "p_careless": workers.kinds[careless],
        "p_reversed": workers.kinds[reversed_],
    }


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


def _whole(grades: Floats) -> Floats | Ints:
    """Grades as integers where all are whole."""
    return grades.astype(np.int64) if np.all(grades == np.round(grades)) else grades
