"""Scores as random variables: the joint distribution of all systems; every score and difference is a view of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from probeval.arrays import Floats, Ids, Ints, frozen, objects
from probeval.display import Described, Record, Table
from probeval.errors import ScoreError, did_you_mean
from probeval.metrics import AGGREGATES, Metric
from probeval.metrics.aggregates import EPSILON, aggregate_queries
from probeval.metrics.classical import QueryScore
from probeval.results import UNSET, Result, UnsetType, changed, frame, key, plain, rows
from probeval.scores.compare import Comparison, Ranking, ScoredSystem
from probeval.scores.ideal import Ideal
from probeval.ties import TIE

__all__ = [
    "INDEPENDENT",
    "Joint",
    "Score",
    "Scores",
    "between_queries",
    "expected_between",
    "usual_family",
    "with_aggregate",
    "within",
]

TARGETS = ("collection", "population")
FAMILIES = ("normal", "t", "empirical")
INDEPENDENT = "independent pairs: not calibrated"


@dataclass(frozen=True, eq=False, repr=False)
class Joint(Record):
    """Joint means and covariances of all systems, and joint draws if the method makes them.

    Parameters
    ----------
    mean, covariance
        Moments of the mean scores over these queries, due to uncertain relevance, shapes (system,) and
        (system, system). Covariances between systems are NaN if a method gives only marginals.
    between
        The additional covariance due to sampling queries from a population, shape (system, system): see
        :func:`expected_between`. NaN for a single query.
    query_mean, query_variance
        Moments of the score of each system on each query, shape (system, query).
    draws
        Joint draws of the mean scores, shape (draw, system), or None if the method gives only moments.
    query_draws
        The draws before averaging over queries, shape (draw, system, query), if requested.
    """

    mean: Floats
    covariance: Floats
    between: Floats
    query_mean: Floats
    query_variance: Floats
    draws: Floats | None = None
    query_draws: Floats | None = None

    def __post_init__(self) -> None:
        for name in ("mean", "covariance", "between", "query_mean", "query_variance", "draws", "query_draws"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, frozen(getattr(self, name)))


def between_queries(query_mean: Floats, within: Floats, covariance: Floats) -> Floats:
    r"""Return the expected between-query covariance over the number of queries, shape (system, system).

    :math:`\frac{1}{Q(Q-1)} \big[\sum_q (m_q m_q' + C_q) - Q(\bar m \bar m' + \bar C)\big]`, with ``within`` the sum of
    the within-query covariances :math:`C_q`, and :math:`\bar C` the covariance of the means.
    """
    mean = query_mean.mean(axis=1)
    square = np.outer(mean, mean) + covariance
    return expected_between(query_mean @ query_mean.T + within, square, square, np.ones(query_mean.shape[1]))


def expected_between(squares: Floats, cross: Floats, square: Floats, weights: Floats) -> Floats:
    r"""Return the expected covariance of weighted means over samples of queries, shape (system, system).

    With weights :math:`w_q` of mean 1 and scores :math:`s_q` of all systems, the mean is
    :math:`\bar s = \frac{1}{Q}\sum_q w_q s_q`, and its covariance over samples of queries

    .. math:: \frac{c}{Q^2} \sum_q w_q^2 (s_q - \bar s)(s_q - \bar s)',

    where :math:`c` makes it unbiased if scores do not depend on weights; it is :math:`Q/(Q-1)` if all weights are
    equal. A query of weight 0 plays no part. NaN if only one query has a weight. See docs/theory/scores.md#weights.

    Parameters
    ----------
    squares, cross, square
        The expectations of :math:`\sum_q w_q^2 s_q s_q'`, of :math:`\frac{1}{Q}\sum_q w_q^2 s_q\, \bar s'` and of
        :math:`\bar s \bar s'`, shapes (system, system).
    weights
        The weight of each query, of mean 1, shape (query,).
    """
    n = len(weights)
    if np.count_nonzero(weights) < 2:
        return np.full(squares.shape, np.nan)
    total = squares - n * (cross + cross.T - (weights**2).sum() / n * square)
    return np.asarray(total * _unbiased(weights) / n**2)


def with_aggregate(joint: Joint, aggregate: str, weights: Floats, *, keep: bool) -> Joint:
    r"""Return the joint distribution of geometric means over queries, from the draws of every query.

    A geometric mean is :math:`g = h(\frac1Q\sum_q w_q l_q)` with logarithms :math:`l_q` of the scores. Its covariance
    over samples of queries is that of the mean of logarithms times the derivative on both sides,
    :math:`h' = g + \epsilon` (for ``gm-eps``) or :math:`g`, at the mean of the draws.

    Parameters
    ----------
    joint
        With the draws of every query.
    aggregate
        One of :data:`~probeval.metrics.AGGREGATES`.
    weights
        The weight of each query, of mean 1, shape (query,).
    keep
        Whether the draws of every query are kept.
    """
    values = joint.query_draws
    assert values is not None
    draws = aggregate_queries(values, aggregate, weights=weights)
    centre = draws.mean(axis=0)
    off = draws - centre
    shift, floor = (EPSILON, 0.0) if aggregate == "gm-eps" else (0.0, EPSILON if aggregate == "gm-trec" else 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.maximum(values + shift, floor)) * (weights > 0)
        n = logs.shape[2]
        mean = (logs * weights).mean(axis=2)
        weighted = logs * weights
        squares = np.einsum("dsq,dtq->st", weighted, weighted) / len(logs)
        cross = (weighted * weights).mean(axis=2).T @ mean / len(logs)
        between = expected_between(squares, cross, mean.T @ mean / len(logs), weights)
        between = np.outer(centre + shift, centre + shift) * between
    if n > 1 and np.count_nonzero(weights) > 1:
        between = np.where(np.isfinite(between), between, 0.0)  # a geometric mean of 0 stays 0 with other queries
    return replace(
        joint,
        mean=centre,
        covariance=off.T @ off / max(len(draws) - 1, 1),
        between=between,
        draws=draws if joint.draws is None or len(draws) == len(joint.draws) else np.tile(draws, (len(joint.draws), 1)),
        query_draws=values if keep else None,
    )


def clustered_between(joint: Joint, clusters: Ints, weights: Floats) -> Floats:
    r"""Return the expected covariance of weighted means over samples of clusters of queries, shape (system, system).

    With :math:`u_g = \sum_{q \in g} w_q (s_q - \bar s)` for each of :math:`G` clusters it is

    .. math:: \frac{c}{Q^2} \sum_g u_g u_g',

    with the :math:`c` of :func:`expected_between` for the weights of clusters; the usual cluster-robust covariance
    (Liang and Zeger 1986). Its part due to uncertain scores is that of single queries, as these are independent given
    the parameters. NaN if only one cluster has a weight.
    """
    n, of_cluster = len(weights), _by_cluster(clusters, weights)
    if np.count_nonzero(of_cluster) < 2:
        return np.full(joint.between.shape, np.nan)
    off = (joint.query_mean - (joint.query_mean @ weights / n)[:, None]) * weights
    sums = np.array([_by_cluster(clusters, row) for row in off])
    alone, together = _unbiased(weights), _unbiased(of_cluster[of_cluster > 0])
    uncertain = joint.between / alone - off @ off.T / n**2
    return np.asarray(together * (uncertain + sums @ sums.T / n**2))


def _by_cluster(clusters: Ints, values: Floats) -> Floats:
    """The sum of values over the queries of each cluster, shape (cluster,)."""
    return np.bincount(clusters, weights=values).astype(float)


def _unbiased(weights: Floats) -> float:
    """The factor that makes the sum of squares of units with these weights unbiased; n / (n - 1) for equal ones."""
    n, w = len(weights), weights / weights.mean()
    second, third = (w**2).sum() / n, (w**3).sum() / n
    return float(n * second / (n * second + second**2 - 2 * third))


@dataclass(frozen=True, eq=False, repr=False)
class Scores(Result):
    """The joint distribution of all systems' mean scores.

    Parameters
    ----------
    systems, queries
        The systems and the queries.
    joint
        Means, covariances and optionally draws.
    family
        The distribution for probabilities and intervals: ``"normal"``, ``"t"`` (Q - 1 degrees of freedom) or, for
        these queries alone, ``"empirical"`` (from the draws).
    query_weights
        The weight of each query in the mean, of mean 1, shape (query,); None if all are equal.
    clusters
        The cluster of each query, if they are not independent, such as those of one user, shape (query,).
    ideal
        What the ideal list is taken from, if the measure has one.
    aggregate
        The mean over queries: one of :data:`~probeval.metrics.AGGREGATES`.
    per_query
        Whether the JSON and the table have one row per system and query.
    outside
        Where relevant documents outside the pool are likely and not counted: the same scores with an estimate of them.

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

    metric: Annotated[Metric, "The measure."]
    systems: tuple[str, ...]
    queries: Ids
    joint: Joint
    method: Annotated[str, "How scores were computed: moments, draws, exact, taylor or ppi."]
    target: Annotated[
        str, "``collection``: these queries; ``population``: also other queries that could have been drawn."
    ]
    family: str
    pool: Annotated[int, "How many pairs the systems retrieved."]
    judged: Annotated[int, "How many of them are judged."]
    independent: Annotated[
        bool, "Whether the model takes pairs as independent: confidence and intervals are then not calibrated."
    ] = False
    query_weights: Floats | None = None
    clusters: Ints | None = None
    ideal: Ideal | None = None
    aggregate: str = "mean"
    level: Annotated[float, "The probability that intervals hold."] = 0.95
    per_query: bool = False
    outside: Scores | None = None

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
    def title(self) -> str:
        """The measure, and that a model of independent pairs is not calibrated, if it is one."""
        return f"{self.metric}{self.caveat}"

    @property
    def caveat(self) -> str:
        """The end of a title or a sentence: empty, or that a model of independent pairs is not calibrated."""
        return f"; {INDEPENDENT}" if self.independent else ""

    @property
    def status(self) -> str:
        """The number of judged pairs, and the target of the intervals."""
        whose = "these queries" if self.target == "collection" else "the population of queries"
        return f"{self.judged:,} of {self.pool:,} pairs judged; {self.level:.0%} intervals for {whose}"

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
        r"""The number of queries or clusters; :math:`(\sum w)^2 / \sum w^2` if they have weights (Kish 1965)."""
        weights = np.ones(len(self.queries)) if self.query_weights is None else self.query_weights
        weights = weights if self.clusters is None else _by_cluster(self.clusters, weights)
        return float(weights.sum() ** 2 / (weights**2).sum())

    def with_clusters(self, clusters: Ints | None) -> Scores:
        """Return the same scores where the queries of a cluster are not independent, shape (query,)."""
        if clusters is None:
            return self
        if self.joint.query_mean.shape[1] != len(clusters) or self.aggregate != "mean":
            raise ScoreError("Clusters need the scores of all queries in memory, and their arithmetic mean.")
        weights = np.ones(len(clusters)) if self.query_weights is None else self.query_weights
        joint = replace(self.joint, between=clustered_between(self.joint, clusters, weights))
        return replace(self, joint=joint, clusters=clusters)

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

    def at(self, level: float) -> Scores:
        """The same scores, with intervals of another level."""
        return self if level == self.level else changed(self, level=level)

    @key.named("systems")
    def scored(self) -> tuple[ScoredSystem, ...]:
        """One entry per system, by falling mean."""
        low, high = self.intervals(self.level)
        rank = (-pd.Series(self.mean).round(12)).rank(method="min").astype(int)
        names = ("sd_judging", "sd_sampling") if self.target == "population" else ()
        parts = dict(zip(names, self._parts, strict=False))
        if self.outside is not None:
            wider = (self.outside.mean, *self.outside.intervals(self.level))
            parts |= dict(zip(("mean_outside", "lower_outside", "upper_outside"), wider, strict=True))
        found = rows(
            ScoredSystem,
            system=self.systems, rank=rank, mean=self.mean, sd=self.standard_deviation, lower=low, upper=high, **parts,
        )  # fmt: skip
        return tuple(found[i] for i in self.order)

    @key.named("ideal")
    def ideal_list(self) -> Ideal | UnsetType:
        """What the ideal list is taken from, for a measure that has one."""
        return UNSET if self.ideal is None else self.ideal

    @key.named("aggregate")
    def other_mean(self) -> str | UnsetType:
        """The mean over queries, if it is not the arithmetic one: ``gm``, ``gm-eps`` or ``gm-trec``."""
        return UNSET if self.aggregate == "mean" else self.aggregate

    @key.named("queries")
    def by_query(self) -> tuple[QueryScore, ...] | UnsetType:
        """If asked for, one entry per system and query; sd is of judging alone."""
        return self._each_query() if self.per_query else UNSET

    def _each_query(self) -> tuple[QueryScore, ...]:
        systems, queries = np.repeat(objects(self.systems), len(self.queries)), list(self.queries) * len(self.systems)
        mean, sd = self.joint.query_mean.ravel(), np.sqrt(self.joint.query_variance).ravel()
        return rows(QueryScore, system=systems, query=queries, mean=mean, sd=sd)

    def to_frame(self, *, per_query: bool = False) -> pd.DataFrame:
        """One row per system, by falling mean: system, rank (ties share one), mean, sd, lower, upper.

        For the population of queries also the two parts of sd: sd_judging (relevance is not known) and sd_sampling
        (other queries could have been drawn). With ``per_query`` one row per system and query: system, query, mean,
        sd (of judging alone).
        """
        if per_query or self.per_query:
            return frame(self._each_query(), QueryScore)
        return frame(self.scored, ScoredSystem)

    def to_dict(self, *, per_query: bool = False) -> dict[str, Any]:
        """The plain data that JSON prints; with ``per_query`` also the score of every system on every query."""
        return dict(plain(changed(self, per_query=per_query or self.per_query)))

    def tables(self) -> tuple[Table, ...]:
        """One row per system."""
        return (Table(self.to_frame(), self.title, intervals=("mean", "lower", "upper")),)

    def sentences(self) -> tuple[str, ...]:
        """The number of judged pairs, the target of the intervals, and what the ideal list is taken from."""
        ideal = () if self.ideal is None else (self.ideal.sentence, *self._beside)
        how = () if self.aggregate == "mean" else (f"The mean over queries is {AGGREGATES[self.aggregate]}.",)
        return (f"{self.status}{self.caveat}.", *how, *ideal)

    @property
    def _beside(self) -> tuple[str, ...]:
        """Return what the columns of scores with documents outside are, if there are any."""
        if self.outside is None or self.outside.ideal is None:
            return ()
        number = self.outside.ideal.outside or 0.0
        return (f"The columns with _outside count an estimate of these: about {number:.0f} more per query.",)

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


@dataclass(frozen=True, eq=False, repr=False)
class Score(Described):
    """A random variable: a weighted sum of systems' mean scores, usually one score or one difference.

    Parameters
    ----------
    scores
        The joint distribution.
    weights
        The weight of each system, shape (system,).
    """

    scores: Scores
    weights: Floats

    def _headline(self) -> str:
        return f"{self.mean():.4f} +- {self.standard_deviation():.4f}"

    def tables(self) -> tuple[Table, ...]:
        """The expected value, the standard deviation and the interval."""
        low, high = self.interval()
        row = {"mean": self.mean(), "sd": self.standard_deviation(), "lower": low, "upper": high}
        return (Table(pd.DataFrame([row]), str(self.scores.metric), intervals=("mean", "lower", "upper")),)

    def __sub__(self, other: Score) -> Score:
        if not isinstance(other, Score):
            return NotImplemented
        if other.scores is not self.scores:
            raise ScoreError("Only scores of one evaluation can be subtracted: others share no joint distribution.")
        return Score(self.scores, self.weights - other.weights)

    def __neg__(self) -> Score:
        return Score(self.scores, -self.weights)

    @property
    def _used(self) -> Any:
        return np.flatnonzero(self.weights)

    def mean(self) -> float:
        """Return the expected value."""
        return float(self.weights[self._used] @ self.scores.mean[self._used])

    def variance(self) -> float:
        """Return the variance under the target."""
        used = self._used
        covariance = self.scores.covariance[np.ix_(used, used)]
        if np.isnan(covariance).any():
            raise ScoreError(f"The {self.scores.method} route is marginal: differences need method='draws'.")
        weights = self.weights[used]
        value = float(weights @ covariance @ weights)
        floor = TIE * float(np.abs(weights) @ np.diag(covariance)) if len(used) else 0.0
        return value if value > max(floor, 0.0) else 0.0

    def standard_deviation(self) -> float:
        """Return the square root of the variance."""
        return float(np.sqrt(self.variance()))

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Return draws, shape (n,)."""
        return np.asarray(self.scores.sample(n, rng)[:, self._used] @ self.weights[self._used])

    def cdf(self, x: float) -> float:
        """Return P(score <= x)."""
        if self.scores.family == "empirical":
            return float((self._draws() <= x + TIE).mean())
        sd = self.standard_deviation()
        if sd == 0:
            return float(self.mean() <= x + TIE)
        z = (x - self.mean()) / sd
        return float(stdtr(self._freedom, z) if self.scores.family == "t" else ndtr(z))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the central interval with probability ``level``, cut to the limits of the measure."""
        if not 0 < level < 1:
            raise ScoreError(f"A level is a probability between 0 and 1, got {level:g}.")
        tail = (1 - level) / 2
        if self.scores.family == "empirical":
            low, high = np.quantile(self._draws(), [tail, 1 - tail])
            return float(low), float(high)
        z = -float(stdtrit(self._freedom, tail) if self.scores.family == "t" else ndtri(tail))
        mean, half = self.mean(), z * self.standard_deviation()
        low, high = within(self._limits, mean, mean - half, mean + half)
        return float(low), float(high)

    @property
    def _limits(self) -> tuple[float, float]:
        """The lowest and highest possible value of the sum."""
        weights = self.weights[self._used]
        ends = np.multiply.outer(self.scores.metric.limits, weights)
        return float(ends.min(axis=0).sum()), float(ends.max(axis=0).sum())

    @property
    def _freedom(self) -> float:
        return max(self.scores.n_effective - 1, 1.0)

    def _draws(self) -> Floats:
        assert self.scores.joint.draws is not None
        return np.asarray(self.scores.joint.draws[:, self._used] @ self.weights[self._used])


def within(limits: tuple[float, float], mean: ArrayLike, low: ArrayLike, high: ArrayLike) -> tuple[Floats, Floats]:
    """Return the ends of intervals, cut to the limits of the measure; the mean stays inside.

    A normal or t interval is symmetric and can exceed the limits of the measure.

    >>> [float(end) for end in within((0, 1), 0.9, 0.7, 1.1)]
    [0.7, 1.0]
    """
    least, most = limits
    return np.maximum(low, np.minimum(mean, least)), np.minimum(high, np.maximum(mean, most))
