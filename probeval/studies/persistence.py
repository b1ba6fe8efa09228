r"""The persistence at which rank-biased precision orders systems most like another measure.

See docs/how-to/measures.md#closest-persistence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pandas as pd

from probeval.arrays import Floats
from probeval.data.judgments import Judgments
from probeval.data.runs import Runs
from probeval.data.scale import Scale
from probeval.display import Table
from probeval.errors import MetricError
from probeval.metrics import AnyMetric, Lists, metric_of
from probeval.reliability.correlation import kendall
from probeval.results import Result, frame, rows
from probeval.ties import signs

__all__ = ["ClosestPersistence", "PersistencePoint", "PersistenceStudy", "QueryPersistence", "persistence_study"]

STEP = 0.01
LEAST = 0.5  # of the persistences, as in the source
DECIMALS = {"depth": 1, "relevant": 0}


@dataclass(frozen=True)
class ClosestPersistence:
    """The persistence at which RBP orders systems most like a measure."""

    metric: str
    persistence: float
    tau: Annotated[float, "Kendall's tau of the two orders of systems there."]
    depth: Annotated[float, "The expected depth of its users, 1/(1 - p)."]
    residual: Annotated[float, "The mean residual of RBP there."]
    by_query: Annotated[float, "The mean over queries of the closest persistence of each."]
    tau_by_query: Annotated[float, "The mean over queries of tau there."]
    with_relevant: Annotated[
        float, "Kendall's tau over queries of their closest persistence and their number of relevant documents."
    ]


@dataclass(frozen=True)
class QueryPersistence:
    """The persistence at which RBP orders systems most like a measure on a query."""

    metric: str
    query: str
    relevant: Annotated[int, "Its number of documents above the lowest grade."]
    persistence: Annotated[float, "The middle of those that are equally close; null where all systems are tied."]
    tau: float


@dataclass(frozen=True)
class PersistencePoint:
    """RBP at one persistence, and its likeness to a measure."""

    metric: str
    persistence: float
    depth: Annotated[float, "The expected depth of its users, 1/(1 - p)."]
    score: Annotated[float, "The mean score over systems and queries."]
    residual: Annotated[float, "The mean residual: what unjudged and unseen documents could add."]
    tau: Annotated[float, "Kendall's tau of the orders of systems by RBP and by the measure."]


@dataclass(frozen=True, eq=False, repr=False)
class PersistenceStudy(Result):
    """The persistences at which rank-biased precision orders systems most like other measures."""

    closest: Annotated[tuple[ClosestPersistence, ...], "One entry per measure."]
    curve: Annotated[tuple[PersistencePoint, ...], "One entry per measure and persistence."]
    queries: Annotated[tuple[QueryPersistence, ...], "One entry per measure and query."]
    scale: Annotated[str, "The scale of the grades."]
    systems: Annotated[int, "The number of systems."]

    def _headline(self) -> str:
        return f"the RBP nearest to {len(self.closest)} measure{'s' * (len(self.closest) != 1)}"

    def curve_frame(self) -> pd.DataFrame:
        """One row per measure and persistence."""
        return frame(self.curve, PersistencePoint)

    def queries_frame(self) -> pd.DataFrame:
        """One row per measure and query."""
        return frame(self.queries, QueryPersistence)

    def tables(self) -> tuple[Table, ...]:
        """One row per measure."""
        return (
            Table(self.to_frame(), "The rank-biased precision that orders systems most like each measure", DECIMALS),
        )

    def sentences(self) -> tuple[str, ...]:
        """What was compared, and the persistence from which on the residual is larger than the score."""
        first = [one for one in self.curve if one.metric == self.curve[0].metric]
        above = next((f"{one.persistence:g}" for one in first if one.residual > one.score), None)
        return (
            f"{self.systems} systems, {len({one.query for one in self.queries})} queries, {len(first)} persistences "
            f"from {first[0].persistence:g} to {first[-1].persistence:g}.",
            "The residual is below the score at all of them."
            if above is None
            else f"From {above} on the residual is larger than the score: too few documents are judged or retrieved.",
        )


def persistence_study(
    runs: Runs,
    judgments: Judgments,
    metrics: Sequence[AnyMetric],
    *,
    scale: Scale | None = None,
    step: float = STEP,
    depth: int | None = None,
) -> PersistenceStudy:
    """Find the persistences at which RBP orders systems most like each measure (Yang 2019, sections 4.3-4.5).

    Parameters
    ----------
    runs, judgments, scale, depth
        As in :func:`probeval.measure`.
    metrics
        The measures.
    step
        The distance between persistences, which go from .5 to 1 - step.

    Examples
    --------
    >>> from probeval.relevance import synthetic_campaign
    >>> campaign = synthetic_campaign(seed=1, systems=8, queries=20, depth=20)
    >>> found = persistence_study(campaign.runs, campaign.judgments, ["RBP(p=0.7)", "P@10"], step=0.1)
    >>> [(one.metric, one.persistence, round(one.tau, 2)) for one in found.closest][0]
    ('RBP(p=0.7)', 0.7, 1.0)
    """
    if not 0 < step <= 0.25:
        raise MetricError(f"The step of persistences is above 0 and at most .25, got {step:g}.")
    if not metrics or len(runs.systems) < 2:
        raise MetricError("Orders of systems need a measure and two systems or more.")
    grid = np.round(np.arange(LEAST, 1 - step / 2, step), 6)
    runs = runs.top(depth or runs.depth)
    grades = judgments.scale(scale)
    lists, queries = Lists.judged(runs, judgments, grades)
    each = [metric_of(f"RBP(p={p:g})") for p in grid]
    weight = np.stack([metric.weights(grades, lists.depth) for metric in each], axis=1)  # shape (rank, persistence)
    values = lists.values(each[0].gains(grades)) @ weight  # shape (system, query, persistence)
    residual = 1 - lists.judged_docs.astype(float) @ ((1 - grid) * grid ** np.arange(lists.depth)[:, None])
    means, relevant = values.mean(axis=1), lists.relevant_counts[:, 1]
    closest: list[ClosestPersistence] = []
    curve: list[PersistencePoint] = []
    per_query: list[QueryPersistence] = []
    for metric in dict.fromkeys(map(metric_of, metrics)):
        scores = metric.scores(lists)
        taus = _taus(means, scores.mean(axis=1))
        mine = [_of_query(metric, str(q), values[:, i], scores[:, i], grid, relevant[i]) for i, q in enumerate(queries)]
        known = [one for one in mine if not np.isnan(one.persistence)]
        at = _middle(taus)
        p, found = float(grid[at]), kendall([one.persistence for one in known], [one.relevant for one in known])
        mean_p, mean_tau = (float(np.mean([getattr(one, name) for one in known])) for name in ("persistence", "tau"))
        left = float(residual[..., at].mean())
        closest.append(ClosestPersistence(str(metric), p, float(taus[at]), 1 / (1 - p), left, mean_p, mean_tau, found))
        curve += rows(
            PersistencePoint,
            metric=[str(metric)] * len(grid), persistence=grid, depth=1 / (1 - grid), score=values.mean(axis=(0, 1)),
            residual=residual.mean(axis=(0, 1)), tau=taus,
        )  # fmt: skip
        per_query += mine
    return PersistenceStudy(tuple(closest), tuple(curve), tuple(per_query), str(grades), len(runs.systems))


def _taus(values: Floats, scores: Floats) -> Floats:
    """Kendall's tau, ties discounted, of scores with those at each persistence, shape (persistence,)."""
    first, second = np.triu_indices(len(scores), k=1)
    order = signs(scores[first] - scores[second])
    orders = signs(values[first] - values[second])
    possible = np.sqrt((order @ order) * (orders**2).sum(axis=0))
    return np.asarray(np.divide(order @ orders, possible, out=np.full(values.shape[1], np.nan), where=possible > 0))


def _middle(taus: Floats) -> int:
    """The position of the highest tau: the middle one of those that are equally high."""
    best = np.flatnonzero(taus >= np.nanmax(taus) - 1e-9)
    return int(best[(len(best) - 1) // 2])


def _of_query(
    metric: object, query: str, values: Floats, scores: Floats, grid: Floats, relevant: int
) -> QueryPersistence:
    """The closest persistence of a query."""
    taus = _taus(values, scores)
    if np.isnan(taus).all():
        return QueryPersistence(str(metric), query, int(relevant), float("nan"), float("nan"))
    at = _middle(taus)
    return QueryPersistence(str(metric), query, int(relevant), float(grid[at]), float(taus[at]))
