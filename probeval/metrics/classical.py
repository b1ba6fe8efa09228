"""Classical evaluation: scores from the judged documents, and bounds over the unjudged ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd

from probeval.arrays import Floats, Ids, frozen
from probeval.data.collection import as_judgments, as_runs
from probeval.data.scale import Scale
from probeval.display import Table
from probeval.metrics.aggregates import AGGREGATES, aggregate_queries, check_aggregate
from probeval.metrics.bounds import bounds
from probeval.metrics.convert import AnyMetric, metric_of
from probeval.metrics.lists import Lists
from probeval.metrics.metric import Metric
from probeval.results import UNSET, Named, Result, UnsetType, changed, frame, key, plain, rows
from probeval.ties import TIE

__all__ = ["Measured", "MeasuredSystem", "Measurements", "PairDifference", "QueryScore", "measure"]


@dataclass(frozen=True)
class MeasuredSystem:
    """A system, measured."""

    system: str
    rank: Annotated[int, "Its rank by mean; ties share one."]
    mean: Annotated[float, "The mean score over queries, with the unjudged worth nothing."]
    lower: Annotated[float, "The least score that the grades of unjudged documents allow."]
    upper: Annotated[float, "The largest score that they allow."]
    p_best: Annotated[
        float | None, "Whether it is the best, 1 or 0; null where unjudged documents leave that undecided."
    ]
    judged: Annotated[float, "The share of its retrieved documents that are judged."]
    sd: Annotated[float, "0: there is no model."] = 0.0


@dataclass(frozen=True)
class PairDifference:
    """The difference of two systems, a minus b."""

    a: str
    b: str
    mean: Annotated[float, "The score of a minus that of b."]
    sd: Annotated[float, "The standard deviation of this difference."]
    p_better: Annotated[
        float | None,
        "The probability that a is better than b, by more than the rope if there is one; null where it is not known.",
    ]
    p_equal: Annotated[float | UnsetType, "With a rope: the probability that they differ by no more than that."] = UNSET


@dataclass(frozen=True)
class QueryScore:
    """The score of a system on a query."""

    system: str
    query: str
    mean: float
    sd: float


@dataclass(frozen=True, eq=False, repr=False)
class Measured(Result):
    """A measure of every system on every query, without a model.

    Intervals are the bounds over unjudged documents; a probability is given only if they cannot change it.

    Parameters
    ----------
    systems, queries
        The labels of the axes.
    values, lower, upper
        The scores with unjudged documents worth nothing, and the bounds over their grades, shape (system, query).
        Bounds are NaN for a measure without exact ones.
    judged
        The judged share of each system's retrieved documents (to the evaluated depth), shape (system,).
    per_query
        Whether the JSON and the table have one row per system and query.
    """

    metric: Annotated[Metric, "The measure."]
    scale: Annotated[Scale, "The scale of the grades."]
    systems: tuple[str, ...]
    queries: Ids
    values: Floats
    lower: Floats
    upper: Floats
    judged: Floats
    pool: Annotated[int, "How many pairs the systems retrieved, for these queries and to the evaluated depth."]
    judged_pairs: Annotated[int, "How many of them are judged.", Named("judged")]
    aggregate: str = "mean"
    per_query: bool = False

    def __post_init__(self) -> None:
        check_aggregate(self.aggregate)
        for name in ("values", "lower", "upper", "judged"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @property
    def complete(self) -> bool:
        """Whether no unjudged document can change a score."""
        return bool(np.all(np.abs(self.upper - self.lower) < TIE))

    @key
    def model(self) -> Literal["none"]:
        """None: scores come from the judgments alone."""
        return "none"

    @key
    def target(self) -> Literal["collection"]:
        """These queries."""
        return "collection"

    @key
    def interval(self) -> Literal["bounds"]:
        """What lower and upper are: the bounds that unjudged documents leave."""
        return "bounds"

    @key
    def confidence(self) -> float | None:
        """1 where no unjudged document can change a score, else null."""
        return 1.0 if self.complete else None

    @key.named("aggregate")
    def other_mean(self) -> str | UnsetType:
        """The mean over queries, if it is not the arithmetic one: ``gm``, ``gm-eps`` or ``gm-trec``."""
        return UNSET if self.aggregate == "mean" else self.aggregate

    @cached_property
    def _means(self) -> tuple[Floats, Floats, Floats]:
        """The score of each system and its bounds, each with shape (system,)."""
        mean, low, high = (aggregate_queries(v, self.aggregate) for v in (self.values, self.lower, self.upper))
        return mean, low, high

    @key.named("systems")
    def ranked(self) -> tuple[MeasuredSystem, ...]:
        """One entry per system, by falling mean."""
        mean, low, high = self._means
        others = [np.delete(np.arange(len(mean)), i) for i in range(len(mean))]
        best = [
            _settled(low[i] - high[o].max(initial=-np.inf), high[i] - low[o].max(initial=-np.inf))
            for i, o in enumerate(others)
        ]
        rank = (-pd.Series(mean).round(12)).rank(method="min").astype(int)
        found = rows(
            MeasuredSystem,
            system=self.systems, rank=rank, mean=mean, lower=low, upper=high, p_best=best, judged=self.judged,
        )  # fmt: skip
        return tuple(sorted(found, key=lambda row: row.rank))

    @key
    def pairs(self) -> tuple[PairDifference, ...]:
        """One entry per pair of systems."""
        mean, low, high = self._means
        return tuple(
            PairDifference(
                self.systems[i], self.systems[j], float(mean[i] - mean[j]), 0.0,
                _settled(low[i] - high[j], high[i] - low[j]),
            )
            for i, j in combinations(range(len(mean)), 2)
        )  # fmt: skip

    @key.named("queries")
    def by_query(self) -> tuple[QueryScore, ...] | UnsetType:
        """If asked for, one entry per system and query."""
        if not self.per_query:
            return UNSET
        each = self._each_query()
        return rows(QueryScore, system=each["system"], query=each["query"], mean=each["value"], sd=[0.0] * len(each))

    def _each_query(self) -> pd.DataFrame:
        index = pd.MultiIndex.from_product([self.systems, list(self.queries)], names=["system", "query"])
        columns = {"value": self.values.ravel(), "lower": self.lower.ravel(), "upper": self.upper.ravel()}
        return pd.DataFrame(columns, index=index).reset_index()

    def to_frame(self, *, per_query: bool = False) -> pd.DataFrame:
        """One row per system, by falling mean: system, rank (ties share one), mean, judged, lower, upper.

        With ``per_query`` one row per system and query: system, query, value, lower, upper.
        """
        if per_query or self.per_query:
            return self._each_query()
        return frame(self.ranked, MeasuredSystem)[["system", "rank", "mean", "judged", "lower", "upper"]]

    def to_dict(self, *, per_query: bool = False) -> dict[str, Any]:
        """The plain data that JSON prints; with ``per_query`` also the score of every system on every query."""
        return dict(plain(changed(self, per_query=per_query or self.per_query)))

    def _headline(self) -> str:
        return f"{self.metric} of {len(self.systems)} systems on {len(self.queries)} queries"

    def tables(self) -> tuple[Table, ...]:
        """One row per system."""
        return (Table(self.to_frame(), str(self.metric), intervals=("mean", "lower", "upper")),)

    def sentences(self) -> tuple[str, ...]:
        """The number of judged pairs, and the meaning of the bounds."""
        how = () if self.aggregate == "mean" else (f"The mean over queries is {AGGREGATES[self.aggregate]}.",)
        return (
            f"{self.judged_pairs:,} of {self.pool:,} pairs judged, scale {self.scale}. The mean counts unjudged "
            "documents as 0; lower and upper are the bounds that their grades allow.",
            *how,
        )


def _settled(lowest: float, highest: float) -> float | None:
    """Return P(difference > 0) if its bounds decide it: 1 or 0 (a tie is not better); else None."""
    if lowest > TIE:
        return 1.0
    return 0.0 if highest <= TIE else None


@dataclass(frozen=True, eq=False, repr=False)
class Measurements(Result):
    """Several evaluations without a model, one per measure."""

    results: Annotated[tuple[Measured, ...], "One entry per measure."]

    def _headline(self) -> str:
        return f"{len(self.results)} measures"

    def to_frame(self) -> pd.DataFrame:
        """The rows by every measure, which stands in the last column."""
        return pd.concat([one.to_frame().assign(metric=str(one.metric)) for one in self.results])

    def tables(self) -> tuple[Table, ...]:
        """One per measure."""
        return tuple(table for one in self.results for table in one.tables())

    def sentences(self) -> tuple[str, ...]:
        """Those of every measure, each once."""
        return tuple(dict.fromkeys(sentence for one in self.results for sentence in one.sentences()))


def measure(
    runs: Any,
    judgments: Any,
    metric: AnyMetric,
    *,
    scale: Scale | str | None = None,
    depth: int | None = None,
    rule: str = "median",
    aggregate: str = "mean",
) -> Measured:
    """Measure every system on every query with both results and judgments.

    Unjudged documents count as worthless in the score and as any grade in the bounds. Queries without results score 0.

    Parameters
    ----------
    runs, judgments
        In any form that :func:`~probeval.data.as_runs` and :func:`~probeval.data.as_judgments` take.
    metric
        The measure or its name.
    scale
        The scale of the grades; inferred by default.
    depth
        The evaluation depth; by default the measure's cutoff, else the whole run.
    rule
        The rule that combines grades of several assessors (:data:`probeval.data.judgments.RULES`).
    aggregate
        The mean over queries, arithmetic or geometric: one of :data:`~probeval.metrics.AGGREGATES`.

    Examples
    --------
    >>> runs = {"a": {"q": {"d1": 2, "d2": 1}}, "b": {"q": {"d2": 2, "d3": 1}}}
    >>> measure(runs, {"q": {"d1": 0, "d2": 1}}, "P@2").to_frame()
      system  rank  mean  judged  lower  upper
    0      a     1   0.5     1.0    0.5    0.5
    1      b     1   0.5     0.5    0.5    1.0
    """
    metric = metric_of(metric)
    named = Scale.parse(scale) if isinstance(scale, str) else scale
    runs, judgments = as_runs(runs), as_judgments(judgments, scale=named)
    grades = judgments.scale(named, rule=rule)
    runs = runs.top(depth or metric.cutoff or runs.depth)
    lists, queries = Lists.judged(runs, judgments, grades, rule=rule)
    open_pairs = judgments.codes_on(runs.pool, grades, rule=rule) < 0
    rows = np.flatnonzero(np.isin(runs.queries, queries))
    open_in_query = np.bincount(runs.pool.query, open_pairs, minlength=len(runs.queries)).astype(np.int64)[rows]
    outside = open_in_query - lists.top(metric.cutoff).unjudged.sum(axis=-1)
    lower, upper = bounds(metric, lists, outside)
    seen = lists.retrieved.sum(axis=(1, 2))
    judged = np.where(seen > 0, lists.judged_docs.sum(axis=(1, 2)) / np.maximum(seen, 1), np.nan)
    pool = int(runs.pool.sizes[rows].sum())
    return Measured(
        metric=metric,
        scale=grades,
        systems=runs.systems,
        queries=queries,
        values=metric.scores(lists),
        lower=lower,
        upper=upper,
        judged=judged,
        pool=pool,
        judged_pairs=pool - int(open_in_query.sum()),
        aggregate=aggregate,
    )
