"""The joint distribution of all systems' scores; every score, difference and ranking is a view of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from probeval.arrays import Floats, Ids, Ints
from probeval.display import Shown, View
from probeval.errors import ScoreError, did_you_mean
from probeval.metrics import AGGREGATES, Metric
from probeval.scores.compare import Comparison, Ranking
from probeval.scores.documents import QueryScore, ScoresDocument, scored_system
from probeval.scores.ideal import Ideal
from probeval.scores.joint import Joint
from probeval.scores.score import Score
from probeval.ties import TIE

__all__ = ["Scores", "usual_family"]

TARGETS = ("collection", "population")
FAMILIES = ("normal", "t", "empirical")


@dataclass(frozen=True, eq=False, repr=False)
class Scores(Shown):
    """The joint distribution of all systems' mean scores.

    Parameters
    ----------
    metric, systems, queries
        The measure, the systems and the queries.
    joint
        Means, covariances and optionally draws.
    method
        The method: ``"moments"``, ``"draws"``, ``"exact"``, ``"taylor"`` or ``"ppi"``.
    target
        ``"collection"``: these queries, uncertain because relevance is. ``"population"``: also because the queries are
        a sample.
    family
        The distribution for probabilities and intervals: ``"normal"``, ``"t"`` (Q - 1 degrees of freedom) or, for
        these queries alone, ``"empirical"`` (from the draws).
    pool, judged
        The number of retrieved pairs, and of these the number judged.
    query_weights
        The weight of each query in the mean, of mean 1, shape (query,); None if all are equal.
    ideal
        What the ideal list is taken from, if the measure has one.
    aggregate
        The mean over queries: one of :data:`~probeval.metrics.AGGREGATES`.

    Examples
    --------
    >>> from probeval import as_judgments, as_runs
    >>> from probeval.data import Collection, Scale
    >>> from probeval.relevance import FallbackModel, Uniform
    >>> from probeval.scores import evaluate
    >>> runs = as_runs({"a": {"q": {"d1": 2, "d2": 1}}, "b": {"q": {"d2": 2, "d3": 1}}})
    >>> problem = Collection("", runs).problem(depth=2, scale=Scale.binary())
    >>> relevance = FallbackModel([Uniform()]).predict(problem)
    >>> scores = evaluate(runs, relevance, "P@2")
    >>> scores["a"].mean(), round(scores["a"].standard_deviation(), 4)
    (0.5, 0.3536)
    >>> (scores["a"] - scores["a"]).variance()
    0.0
    """

    metric: Metric
    systems: tuple[str, ...]
    queries: Ids
    joint: Joint
    method: str
    target: str
    family: str
    pool: int
    judged: int
    query_weights: Floats | None = None
    ideal: Ideal | None = None
    aggregate: str = "mean"

    def __post_init__(self) -> None:
        if self.target not in TARGETS:
            raise ScoreError(f"A target is 'collection' or 'population', got {self.target!r}.")
        if self.family not in FAMILIES or (self.family == "empirical" and self.joint.draws is None):
            raise ScoreError(f"A family is 'normal' or 't', or 'empirical' where there are draws; got {self.family!r}.")
        if self.family == "empirical" and self.target == "population":
            raise ScoreError(
                "Draws are of these queries, not of the population of queries. Use family='normal' or 't', or "
                "target='collection'."
            )
        if self.target == "population" and self.n_effective <= 1:
            raise ScoreError("One query says nothing of the population of queries. Use target='collection'.")

    def _headline(self) -> str:
        return f"{self.metric} of {len(self.systems)} systems on {len(self.queries)} queries, {self.method}"

    def __getitem__(self, system: str) -> Score:
        if system not in self.systems:
            raise ScoreError(f"No system {system!r}.{did_you_mean(system, self.systems)}")
        return Score(self, np.eye(len(self.systems))[self.systems.index(system)])

    @property
    def mean(self) -> Floats:
        """The mean score of each system, shape (system,)."""
        return self.joint.mean

    @property
    def covariance(self) -> Floats:
        """The covariance of the mean scores under the target, shape (system, system)."""
        if self.target == "collection":
            return self.joint.covariance
        return np.asarray(self.joint.covariance + self.joint.between)

    @property
    def n_effective(self) -> float:
        r"""The number of queries, :math:`(\sum_q w_q)^2 / \sum_q w_q^2` if they have weights (Kish 1965)."""
        weights = np.ones(len(self.queries)) if self.query_weights is None else self.query_weights
        return float(weights.sum() ** 2 / (weights**2).sum())

    @property
    def order(self) -> Ints:
        """The positions of systems by falling mean; ties in the order of the runs, shape (system,)."""
        return np.argsort(-np.round(self.mean, 12), kind="stable")

    @property
    def standard_deviation(self) -> Floats:
        """The standard deviation of each system's mean score under the target, shape (system,)."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    def with_target(self, target: str) -> Scores:
        """Return the scores for another target; unless the family is t, it becomes the default of that target."""
        if target == self.target:
            return self
        return replace(
            self, target=target, family=self.family if self.family == "t" else usual_family(self.joint, target)
        )

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Return joint draws of all mean scores under the target, shape (n, system)."""
        if self.joint.draws is None:
            return _normal(self.mean, self.covariance, n, rng)
        drawn = self.joint.draws[rng.integers(len(self.joint.draws), size=n)]
        if self.target == "collection":
            return drawn
        return drawn + _normal(np.zeros(len(self.systems)), self.joint.between, n, rng)

    def draws(self, rng: np.random.Generator, *, n: int = 10_000) -> Floats:
        """Return the existing joint draws, or ``n`` normal ones, shape (draw, system)."""
        if self.joint.draws is not None and self.target == "collection":
            return self.joint.draws
        return self.sample(n, rng)

    def difference_moments(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of every difference, first system minus second, shape (system, system)."""
        covariance = self.covariance
        if np.isnan(covariance).any() and len(self.systems) > 1:
            raise ScoreError(f"The {self.method} route is marginal: differences need method='draws'.")
        own = np.diag(covariance)
        variance = np.maximum(own[:, None] + own - 2 * covariance, 0.0)
        variance[variance < TIE * np.maximum(own[:, None] + own, TIE)] = 0.0
        return self.mean[:, None] - self.mean, np.sqrt(variance)

    def compare(self, a: str, b: str, *, rope: float = 0.0) -> Comparison:
        """Compare ``a`` with ``b``; differences up to ``rope`` count as none."""
        return Comparison(self[a] - self[b], a, b, rope)

    def ranking(self, *, rng: np.random.Generator | None = None, n: int = 10_000, rope: float = 0.0) -> Ranking:
        """Return the ranking of the systems, with its uncertainty; differences up to ``rope`` do not matter."""
        return Ranking(self, self.draws(np.random.default_rng(0) if rng is None else rng, n=n), rope)

    def intervals(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the ends of each system's central interval, shapes (system,)."""
        low, high = np.array([self[s].interval(level) for s in self.systems]).T
        return low, high

    def halfwidth(self, level: float = 0.95) -> float:
        """Return half the width of the widest interval."""
        low, high = self.intervals(level)
        return float((high - low).max() / 2)

    def to_frame(self, *, per_query: bool = False, level: float = 0.95) -> pd.DataFrame:
        """One row per system, by falling mean: system, rank (ties share one), mean, sd, lower, upper.

        For the population of queries also the two parts of sd: sd_judging (relevance is not known) and sd_sampling
        (other queries could have been drawn). With ``per_query`` one row per system and query: system, query, mean,
        sd (of judging alone).
        """
        if per_query:
            index = pd.MultiIndex.from_product([self.systems, list(self.queries)], names=["system", "query"])
            columns = {"mean": self.joint.query_mean.ravel(), "sd": np.sqrt(self.joint.query_variance).ravel()}
            return pd.DataFrame(columns, index=index).reset_index()
        low, high = self.intervals(level)
        frame = pd.DataFrame(
            {
                "system": self.systems,
                "mean": self.mean,
                "sd": self.standard_deviation,
                "lower": low,
                "upper": high,
            }
        )
        if self.target == "population":
            frame["sd_judging"], frame["sd_sampling"] = self._parts
        frame.insert(1, "rank", (-frame["mean"].round(12)).rank(method="min").astype(int))
        return frame.sort_values("rank", kind="stable", ignore_index=True)

    def to_dict(self, *, level: float = 0.95, per_query: bool = False) -> ScoresDocument:
        """The scores as plain data for JSON."""
        rows: Any = self.to_frame(level=level).to_dict("records")
        result: ScoresDocument = {
            "metric": str(self.metric),
            "target": self.target,
            "method": self.method,
            "pool": self.pool,
            "judged": self.judged,
            "level": level,
            "systems": [scored_system(row) for row in rows],
        }
        if self.ideal is not None:
            result["ideal"] = self.ideal.to_dict()
        if per_query:
            result["queries"] = self.query_scores()
        return result

    def query_scores(self) -> list[QueryScore]:
        """The score of every system on every query, as plain data."""
        rows = self.to_frame(per_query=True).itertuples(index=False)
        return [{"system": s, "query": q, "mean": m, "sd": d} for s, q, m, d in rows]

    def views(self) -> tuple[View, ...]:
        """One row per system."""
        return (View(self.to_frame(), str(self.metric), intervals=("mean", "lower", "upper")),)

    def sentences(self, *, level: float = 0.95) -> tuple[str, ...]:
        """The number of judged pairs, the target of the intervals, and what the ideal list is taken from."""
        whose = "these queries" if self.target == "collection" else "the population of queries"
        ideal = () if self.ideal is None else (self.ideal.sentence,)
        how = () if self.aggregate == "mean" else (f"The mean over queries is {AGGREGATES[self.aggregate]}.",)
        return (f"{self.judged:,} of {self.pool:,} pairs judged; {level:.0%} intervals for {whose}.", *how, *ideal)

    @property
    def _parts(self) -> tuple[Floats, Floats]:
        """Return the standard deviations due to judging and to sampling queries, each with shape (system,)."""
        judging, sampling = (np.diag(m) for m in (self.joint.covariance, self.joint.between))
        return np.sqrt(np.maximum(judging, 0.0)), np.sqrt(np.maximum(sampling, 0.0))


def usual_family(joint: Joint, target: str) -> str:
    """Return the default family: empirical if there are draws for the target, else normal."""
    return "empirical" if joint.draws is not None and target == "collection" else "normal"


def _normal(mean: Floats, covariance: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Return joint normal draws; the covariance may be singular."""
    if np.isnan(covariance).any():
        raise ScoreError("Only marginals are known here: joint draws need method='draws'.")
    value, vector = np.linalg.eigh(covariance)
    # Rounding leaves a null direction with a tiny variance, whose root would distinguish identical systems.
    noise = 10 * len(value) * np.finfo(float).eps * value.max(initial=0.0)
    root = vector * np.sqrt(np.where(value > noise, value, 0.0))
    return np.asarray(mean + rng.standard_normal((n, len(mean))) @ root.T)
