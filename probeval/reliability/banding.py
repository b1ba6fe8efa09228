"""A stress test of rankings: what systems lose if documents are only placed in the right band of ranks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from probeval.arrays import Floats, frozen
from probeval.data.judgments import Judgments
from probeval.data.runs import Runs
from probeval.data.scale import Scale
from probeval.display import Table
from probeval.errors import MetricError
from probeval.metrics import AnyMetric, Lists, Metric, metric_of
from probeval.metrics.bands import band_starts, banded, worst_case
from probeval.metrics.ties import expected
from probeval.reliability.one_sided import noninferiority_test
from probeval.reliability.paired import differences, pair_index, t_test
from probeval.reliability.twoway import TwoWay, signed, two_way
from probeval.results import Result, key, rows

__all__ = ["BandStudy", "BandedSystem", "band_study"]

MARGINS = (0.01, 0.03, 0.05)  # shares of the score that may be lost; those of Yang (2019)
ALPHA = 0.05


@dataclass(frozen=True)
class BandedSystem:
    """A system with its order in bands alone."""

    system: str
    mean: Annotated[float, "The mean score of the order as it is."]
    banded: Annotated[float, "The mean over all orders within bands."]
    loss: Annotated[float, "The difference."]
    p_99: Annotated[float, "The p-value of the one-tailed paired t test that ``banded`` is more than 99% of ``mean``."]
    p_97: Annotated[float, "The same for 97%."]
    p_95: Annotated[float, "The same for 95%."]


@dataclass(frozen=True, eq=False, repr=False)
class BandStudy(Result):
    """What systems lose if documents are only placed in the right band of ranks."""

    metric: Metric
    rho: Annotated[float, "The ratio of the first ranks of neighbouring bands."]
    systems: tuple[str, ...]  # by falling mean
    original: Floats  # the scores of the order as it is, shape (system, query)
    banded: Floats  # the means over all orders within bands, shape (system, query)
    bands: Annotated[tuple[int, ...], "The first rank of each band."]

    @key.named("metric")
    def metric_text(self) -> str:
        """The measure."""
        return str(self.metric)

    @key
    def worst_case(self) -> float | None:
        """The most that a score can lose; null for a measure without such a bound."""
        try:
            return worst_case(self.metric, self.rho)
        except MetricError:
            return None

    @key.named("systems")
    def by_system(self) -> tuple[BandedSystem, ...]:
        """One entry per system, by falling mean."""
        mean, after = self.original.mean(axis=1), self.banded.mean(axis=1)
        tests = {
            f"p_{round(100 * (1 - margin))}": noninferiority_test(self.banded, self.original, margin=margin)[1]
            for margin in MARGINS
        }
        return rows(BandedSystem, system=self.systems, mean=mean, banded=after, loss=mean - after, **tests)

    @cached_property
    def p_values(self) -> tuple[Floats, Floats]:
        """The p-values of all pairs of systems by paired t-tests, as they are and in bands, each with shape (pair,)."""
        return self._tested(self.original)[1], self._tested(self.banded)[1]

    def _tested(self, values: Floats) -> tuple[Floats, Floats]:
        """The mean differences of all pairs of systems and their p-values; 1 where two systems are equal."""
        gap = differences(values, *pair_index(len(values)))
        return gap.mean(axis=1), np.nan_to_num(t_test(gap)[1], nan=1.0)

    @key.flat
    def decisions(self) -> TwoWay:
        """Significant pairs: in both, in bands alone, as they are alone, in neither."""
        was, found = (signed(*self._tested(values), alpha=ALPHA) for values in (self.original, self.banded))
        return two_way(found, was)

    def kept(self, margin: float, *, alpha: float = ALPHA) -> int:
        """Return how many systems are shown to lose less than this share of their score."""
        return int((noninferiority_test(self.banded, self.original, margin=margin)[1] <= alpha).sum())

    def _headline(self) -> str:
        return f"{self.metric} of {len(self.systems)} systems in bands of ratio {self.rho:g}"

    def tables(self) -> tuple[Table, ...]:
        """One row per system."""
        return (Table(self.to_frame(), f"{self.metric}, bands of ratio {self.rho:g}"),)

    def sentences(self) -> tuple[str, ...]:
        """The bands, the worst case, and how many systems are shown to keep most of their score."""
        first = ", ".join(map(str, self.bands[:6]))
        most = "" if self.worst_case is None else f" A score loses at most {self.worst_case:.4f}."
        kept = ", ".join(f"{self.kept(margin)} keep more than {1 - margin:.0%}" for margin in MARGINS)
        return (
            f"Bands start at ranks {first}{', ..' if len(self.bands) > 6 else ''}; within a band any order is equally "
            f"likely.{most}",
            f"Of {len(self.systems)} systems, {kept} of the score (one-tailed paired t, alpha {ALPHA:g}).",
            f"Of {self.decisions.pairs:,} pairs of systems, {self.decisions.tp:,} differ significantly both ways, "
            f"{self.decisions.fn:,} only as they are, {self.decisions.fp:,} only in bands (paired t, alpha {ALPHA:g}).",
        )


def band_study(
    runs: Runs,
    judgments: Judgments,
    metric: AnyMetric,
    rho: float,
    *,
    scale: Scale | None = None,
    depth: int | None = None,
) -> BandStudy:
    """Compare the scores of runs with those of the same runs known up to bands of ranks (Yang 2019, section 3.3).

    Parameters
    ----------
    runs, judgments, metric, scale, depth
        As in :func:`probeval.measure`.
    rho
        The ratio of the first ranks of neighbouring bands, above 1: with 2, the bands are 1, 2-3, 4-7, and so on.

    Examples
    --------
    >>> from probeval.data import as_judgments, as_runs
    >>> runs = as_runs({"a": {"q": {"d1": 3, "d2": 2, "d3": 1}, "r": {"d1": 1}}})
    >>> study = band_study(runs, as_judgments({"q": {"d1": 0, "d2": 1, "d3": 0}, "r": {"d1": 1}}), "RR", 2)
    >>> study.original.tolist(), study.banded.round(4).tolist()
    ([[0.5, 1.0]], [[0.4167, 1.0]])
    """
    measure = metric_of(metric)
    runs = runs.top(depth or measure.cutoff or runs.depth)
    lists, queries = Lists.judged(runs, judgments, judgments.scale(scale))
    judged = np.flatnonzero(np.isin(runs.queries, queries))
    original = measure.scores(lists)
    after = expected(measure, lists, banded(runs, rho).tie_starts[:, judged])
    order = np.argsort(-np.round(original.mean(axis=1), 12), kind="stable")
    return BandStudy(
        measure,
        rho,
        tuple(runs.systems[i] for i in order),
        frozen(original[order]),
        frozen(after[order]),
        tuple(band_starts(rho, runs.depth).tolist()),
    )
