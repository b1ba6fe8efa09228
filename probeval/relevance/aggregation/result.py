"""The result of aggregating votes: P(grade) of every pair, and an estimate of every worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, cast

import numpy as np
import pandas as pd
from scipy.special import ndtri

from probeval.arrays import Codes, Floats, Ints, frozen
from probeval.data.judgments import Judgments
from probeval.data.scale import Scale
from probeval.data.votes import Votes
from probeval.display import Table
from probeval.relevance.aggregation.curves import LOG_SLOPE, SHIFT
from probeval.relevance.aggregation.model import FittedVotes
from probeval.relevance.aggregation.workers import KINDS
from probeval.relevance.distribution import RelevanceDistribution
from probeval.results import UNSET, Result, UnsetType, frame, key, rows

__all__ = ["Aggregation", "Worker"]


@dataclass(frozen=True)
class Worker:
    """A worker: the votes, how they agree with the grades and, with the model, how they depend on relevance."""

    worker: str
    votes: Annotated[int, "The number of pairs with a vote."]
    agreement: Annotated[float, "The share of the votes that are the aggregated grade."]
    gold_agreement: Annotated[
        float | UnsetType, "The share of the votes on pairs with a gold grade that are this grade."
    ] = UNSET
    slope: Annotated[
        float | UnsetType,
        "How much the votes follow relevance, if the worker is not careless: logits per standard deviation of "
        "relevance among the pairs of a query. Negative for a reversed worker.",
    ] = UNSET
    slope_lower: Annotated[float | UnsetType, "The ends of its interval."] = UNSET
    slope_upper: float | UnsetType = UNSET
    shift: Annotated[
        float | UnsetType,
        "How easily the worker gives high grades: the mean logit over the cutpoints, for a pair of average relevance.",
    ] = UNSET
    shift_lower: Annotated[float | UnsetType, "The ends of its interval."] = UNSET
    shift_upper: float | UnsetType = UNSET
    p_careless: Annotated[float | UnsetType, "The probability that the votes do not depend on relevance."] = UNSET
    p_reversed: Annotated[float | UnsetType, "The probability that the votes are reversed."] = UNSET


@dataclass(frozen=True, eq=False, repr=False)
class Aggregation(Result):
    """Aggregated votes: the distribution of every pair's grade, and the workers.

    Parameters
    ----------
    votes, scale
        The votes and gold grades, and the scale of their grades.
    probability
        P(level) of each pair; certain where there is a gold grade; shape (pair, level).
    grade
        The grade of each pair, as a position on the scale, shape (pair,).
    same_as
        The position of the worker whose estimates each worker shares, itself except for copies, shape (worker,).
    fitted
        The model; None for other methods.
    notes
        Remarks on the data.
    """

    votes: Votes
    scale: Scale
    method: Annotated[str, "The method."]
    reference: Annotated[str, "Whose grades these are: ``gold``, ``consensus`` or the name of an assessor."]
    probability: Floats
    grade: Codes
    same_as: Ints
    fitted: FittedVotes | None = None
    level: Annotated[float, "The level of the workers' intervals."] = 0.9
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

    @key.named("scale")
    def scale_name(self) -> str:
        """The scale of the grades."""
        return str(self.scale)

    @key
    def no_grade(self) -> int:
        """The number of labels below 0, which are no votes."""
        return self.votes.no_grade

    @key
    def pairs(self) -> list[dict[str, str | float]]:
        """One entry per pair: query, doc, the most probable grade, P of each grade, the number of votes, and the gold
        grade where there are any (null for pairs without).
        """
        return cast("list[dict[str, str | float]]", self.to_frame().to_dict("records"))

    @key.named("workers")
    def each_worker(self) -> tuple[Worker, ...]:
        """One entry per worker, the one with most votes first."""
        given = self.votes.judgments
        n = np.bincount(given.assessor, minlength=len(given.assessors))
        columns: dict[str, Floats | Ints] = {"votes": n, "agreement": self._agreement(self.grade)}
        if self.votes.gold is not None:
            columns["gold_agreement"] = self._agreement(self.votes.gold.codes(self.scale))
        if self.fitted is not None:
            fitted = np.unique(self.same_as[given.assessor])  # the workers of the model, in its order
            place = np.searchsorted(fitted, self.same_as).clip(max=len(fitted) - 1)
            columns |= {name: column[place] for name, column in _estimates(self.fitted, self.level).items()}
        found = rows(Worker, worker=given.assessors, **columns)
        return tuple(sorted((one for one in found if one.votes), key=lambda one: (-one.votes, one.worker)))

    def workers(self) -> pd.DataFrame:
        """One row per worker, the one with most votes first: see :class:`Worker` for the columns."""
        return frame(self.each_worker, Worker)

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

    def tables(self) -> tuple[Table, Table]:
        """The pairs, and the workers."""
        slope = None if self.fitted is None else ("slope", "slope_lower", "slope_upper")
        return Table(self.to_frame(), "Pairs", {"gold": 0}), Table(self.workers(), "Workers", intervals=slope)

    def sentences(self) -> list[str]:
        """What was aggregated, the average worker, and remarks on the data."""
        return [f"{self._headline()}.", *self._average(), *self.notes]

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
