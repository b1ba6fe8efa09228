"""What ties leave open: the range of every system's score over all orders of the documents that it scored alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from probeval.arrays import Floats, Ids, frozen
from probeval.data.judgments import Judgments
from probeval.data.runs import Runs
from probeval.data.scale import Scale
from probeval.display import Table
from probeval.errors import MetricError
from probeval.metrics import AnyMetric, Lists, Metric, metric_of
from probeval.metrics.ties import TieGroups, expected, extremes
from probeval.results import Result, key, rows

__all__ = ["TieStudy", "TiedSystem", "tie_study"]

DECIMALS = {"tied_docs": 0}


@dataclass(frozen=True)
class TiedSystem:
    """A system with the range of its score by ties."""

    system: str
    mean: Annotated[float, "The mean score, with ties in the order of the rule."]
    expected: Annotated[float, "The mean over all orders of tied documents; null without a closed form."]
    lower: Annotated[float, "The least mean score of these orders."]
    upper: Annotated[float, "The largest."]
    range: Annotated[float, "The difference of both."]
    tied_docs: Annotated[int, "The documents that are tied, over all queries."]
    tied_lists: Annotated[float, "The share of its lists with a tie."]


@dataclass(frozen=True, eq=False, repr=False)
class TieStudy(Result):
    """The range of every system's score over all orders of the documents that it scored alike.

    Parameters
    ----------
    systems, queries
        The labels of the axes, systems by falling mean.
    scores, expected, lower, upper
        The score in the order of the rule, the mean over all orders (NaN without a closed form), and the lowest and
        the highest, shape (system, query).
    tied
        The number of tied documents in each list, shape (system, query).
    """

    metric: Metric
    systems: tuple[str, ...]
    queries: Ids
    scores: Floats
    expected: Floats
    lower: Floats
    upper: Floats
    tied: Floats

    def __post_init__(self) -> None:
        for name in ("scores", "expected", "lower", "upper", "tied"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @key.named("metric")
    def metric_text(self) -> str:
        """The measure."""
        return str(self.metric)

    @key.named("systems")
    def by_system(self) -> tuple[TiedSystem, ...]:
        """One entry per system, by falling mean."""
        mean, middle, low, high = (v.mean(axis=1) for v in (self.scores, self.expected, self.lower, self.upper))
        return rows(
            TiedSystem,
            system=self.systems, mean=mean, expected=middle, lower=low, upper=high, range=high - low,
            tied_docs=self.tied.sum(axis=1).astype(int), tied_lists=(self.tied > 0).mean(axis=1),
        )  # fmt: skip

    @key
    def open_pairs(self) -> int:
        """The number of pairs of systems whose ranges overlap, so that ties alone could turn them."""
        low, high = np.array([(one.lower, one.upper) for one in self.by_system]).T
        wide = high - low > 0
        overlap = (low[:, None] <= high) & (low <= high[:, None]) & (wide[:, None] | wide)
        return int(np.triu(overlap, 1).sum())

    def _headline(self) -> str:
        return f"{self.metric} of {len(self.systems)} systems under ties"

    def tables(self) -> tuple[Table, ...]:
        """One row per system."""
        title = f"{self.metric}, range over all orders of tied documents"
        return (Table(self.to_frame(), title, decimals=DECIMALS, intervals=("mean", "lower", "upper")),)

    def sentences(self) -> tuple[str, ...]:
        """How many systems have ties, and what these could change."""
        tied = sum(one.tied_docs > 0 for one in self.by_system)
        pairs = len(self.systems) * (len(self.systems) - 1) // 2
        return (
            f"{tied} of {len(self.systems)} systems have ties. The widest range is "
            f"{max(one.range for one in self.by_system):.4f}; {self.open_pairs:,} of {pairs:,} ranges overlap.",
        )


def tie_study(
    runs: Runs,
    judgments: Judgments,
    metric: AnyMetric,
    *,
    scale: Scale | None = None,
    depth: int | None = None,
) -> TieStudy:
    """Find the range of every system's score by ties (Yang 2019, section 3.2.2).

    The parameters are those of :func:`probeval.measure`. A group of ties that goes on below the depth counts with the
    documents above it alone.

    Examples
    --------
    >>> from probeval.data import as_judgments, as_runs
    >>> runs = as_runs({"a": {"q": {"d1": 2, "d2": 1, "d3": 1}}})
    >>> tie_study(runs, as_judgments({"q": {"d1": 0, "d2": 0, "d3": 1}}), "RR").to_frame()[["lower", "upper"]]
          lower  upper
    0  0.333333    0.5
    """
    measure = metric_of(metric)
    runs = runs.top(depth or measure.cutoff or runs.depth)
    lists, queries = Lists.judged(runs, judgments, judgments.scale(scale))
    start = runs.tie_starts[:, np.isin(runs.queries, queries)]
    low, high = extremes(measure, lists, start)
    score = measure.scores(lists)
    try:
        middle = expected(measure, lists, start)
    except MetricError:
        middle = np.full(score.shape, np.nan)
    tied = ((TieGroups(start).length > 1) & lists.retrieved).sum(axis=-1).astype(float)
    order = np.argsort(-np.round(score.mean(axis=1), 12), kind="stable")
    return TieStudy(
        measure, tuple(runs.systems[i] for i in order), queries,
        score[order], middle[order], low[order], high[order], tied[order],
    )  # fmt: skip
