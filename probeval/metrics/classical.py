"""Classical evaluation: scores from the judged documents, and bounds over the unjudged ones."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, NotRequired, TypedDict

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
from probeval.results import Result
from probeval.ties import TIE

__all__ = ["Measured", "MeasuredDocument", "MeasuredSystem", "PairDifference", "QueryScore", "measure"]


class MeasuredSystem(TypedDict):
    """A system, measured.

    Parameters
    ----------
    system, rank
        Its name, and its rank by mean; ties share one.
    mean, sd
        The mean score over queries with the unjudged worth nothing, and 0.
    lower, upper
        The bounds that unjudged documents leave.
    p_best
        Whether it is the best, 1 or 0; null where unjudged documents leave that open.
    judged
        The share of its retrieved documents that are judged.
    """

    system: str
    rank: int
    mean: float
    sd: float
    lower: float
    upper: float
    p_best: float | None
    judged: float


class PairDifference(TypedDict):
    """The difference of two systems.

    Parameters
    ----------
    a, b
        The systems.
    mean, sd
        The score of a less that of b, and the standard deviation of this difference.
    p_better
        The probability that a is better than b, by more than the rope if there is one; null where it is not known.
    p_equal
        With a rope: the probability that they differ by no more than that.
    """

    a: str
    b: str
    mean: float
    sd: float
    p_better: float | None
    p_equal: NotRequired[float]


class QueryScore(TypedDict):
    """The score of a system on a query."""

    system: str
    query: str
    mean: float
    sd: float


class MeasuredDocument(TypedDict):
    """An evaluation without a model.

    Parameters
    ----------
    metric, scale
        The measure, and the scale of the grades.
    aggregate
        The mean over queries, if it is not the arithmetic one: ``gm``, ``gm-eps`` or ``gm-trec``.
    pool, judged
        How many pairs the systems retrieved, and how many of them are judged.
    confidence
        1 where no unjudged document can change a score, else null.
    interval
        What lower and upper are: the bounds that unjudged documents leave.
    """

    metric: str
    aggregate: NotRequired[str]
    model: Literal["none"]
    target: Literal["collection"]
    scale: str
    pool: int
    judged: int
    confidence: float | None
    interval: Literal["bounds"]
    systems: list[MeasuredSystem]
    pairs: list[PairDifference]
    queries: NotRequired[list[QueryScore]]


@dataclass(frozen=True, eq=False, repr=False)
class Measured(Result):
    """A measure of every system on every query.

    Parameters
    ----------
    metric, scale
        The measure and the scale of the grades.
    systems, queries
        The labels of the axes.
    values, lower, upper
        The scores with unjudged documents worth nothing, and the bounds over their grades, shape (system, query).
        Bounds are NaN for a measure without exact ones.
    judged
        The judged share of each system's retrieved documents (to the evaluated depth), shape (system,).
    pool, judged_pairs
        The number of pairs retrieved to that depth for these queries, and the number of these that are judged.
    aggregate
        How the scores of queries make one score of a system: one of :data:`~probeval.metrics.AGGREGATES`.
    """

    metric: Metric
    scale: Scale
    systems: tuple[str, ...]
    queries: Ids
    values: Floats
    lower: Floats
    upper: Floats
    judged: Floats
    pool: int
    judged_pairs: int
    aggregate: str = "mean"

    def __post_init__(self) -> None:
        check_aggregate(self.aggregate)
        for name in ("values", "lower", "upper", "judged"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @property
    def complete(self) -> bool:
        """Whether no unjudged document can change a score."""
        return bool(np.all(np.abs(self.upper - self.lower) < TIE))

    def to_frame(self, *, per_query: bool = False) -> pd.DataFrame:
        """One row per system, by falling mean: system, rank (ties share one), mean, judged, lower, upper.

        With ``per_query`` one row per system and query: system, query, value, lower, upper.
        """
        if per_query:
            index = pd.MultiIndex.from_product([self.systems, list(self.queries)], names=["system", "query"])
            columns = {"value": self.values.ravel(), "lower": self.lower.ravel(), "upper": self.upper.ravel()}
            return pd.DataFrame(columns, index=index).reset_index()
        frame = pd.DataFrame(
            {
                "system": self.systems,
                "mean": aggregate_queries(self.values, self.aggregate),
                "judged": self.judged,
                "lower": aggregate_queries(self.lower, self.aggregate),
                "upper": aggregate_queries(self.upper, self.aggregate),
            }
        )
        frame.insert(1, "rank", (-frame["mean"].round(12)).rank(method="min").astype(int))
        return frame.sort_values("rank", kind="stable", ignore_index=True)

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

    def to_dict(self, *, per_query: bool = False) -> MeasuredDocument:
        """The result as plain data for JSON.

        Intervals are the bounds over unjudged documents; a probability is given only if they cannot change it.
        """
        low, high, mean = (aggregate_queries(v, self.aggregate) for v in (self.lower, self.upper, self.values))
        others = [np.delete(np.arange(len(mean)), i) for i in range(len(mean))]
        best = [
            _settled(low[i] - high[o].max(initial=-np.inf), high[i] - low[o].max(initial=-np.inf))
            for i, o in enumerate(others)
        ]
        at = {system: i for i, system in enumerate(self.systems)}
        rows: Any = self.to_frame().itertuples(index=False)
        result: MeasuredDocument = {
            "metric": str(self.metric),
            "model": "none",
            "target": "collection",
            "scale": str(self.scale),
            "pool": self.pool,
            "judged": self.judged_pairs,
            "confidence": 1.0 if self.complete else None,
            "interval": "bounds",
            "systems": [
                {
                    "system": row.system,
                    "rank": int(row.rank),
                    "mean": float(row.mean),
                    "sd": 0.0,
                    "lower": float(row.lower),
                    "upper": float(row.upper),
                    "p_best": best[at[row.system]],
                    "judged": float(row.judged),
                }
                for row in rows
            ],
            "pairs": [
                {
                    "a": self.systems[i],
                    "b": self.systems[j],
                    "mean": float(mean[i] - mean[j]),
                    "sd": 0.0,
                    "p_better": _settled(low[i] - high[j], high[i] - low[j]),
                }
                for i, j in combinations(range(len(mean)), 2)
            ],
        }
        if self.aggregate != "mean":
            result["aggregate"] = self.aggregate
        if per_query:
            rows = self.to_frame(per_query=True)[["system", "query", "value"]].itertuples(index=False)
            result["queries"] = [{"system": s, "query": q, "mean": v, "sd": 0.0} for s, q, v in rows]
        return result


def _settled(lowest: float, highest: float) -> float | None:
    """Return P(difference > 0) if its bounds decide it: 1 or 0 (a tie is not better); else None."""
    if lowest > TIE:
        return 1.0
    return 0.0 if highest <= TIE else None


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
