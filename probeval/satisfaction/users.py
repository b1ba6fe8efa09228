"""User satisfaction with systems: satisfied users, successful queries, and noticeable differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import gammaln, ndtri, stdtr, stdtrit, xlog1py, xlogy

from probeval.arrays import Bools, Floats, frozen
from probeval.display import Table
from probeval.errors import SatisfactionError, did_you_mean
from probeval.metrics import Measured
from probeval.metrics.mapping import SatMapping
from probeval.results import Result, key, plain
from probeval.satisfaction.new_query import NewQuery, default_family, predict_query
from probeval.satisfaction.preferences import Agreement
from probeval.scores import Scores
from probeval.ties import signs

__all__ = ["Noticed", "Satisfaction", "SatisfiedSystem", "UserEstimate", "satisfied_users"]

TARGETS = ("collection", "population")


@dataclass(frozen=True)
class SatisfiedSystem:
    """Users' satisfaction with a system."""

    system: str
    p_sat: Annotated[float, "The share of satisfied users."]
    lower: Annotated[float, "Its interval."]
    upper: float
    p_success: Annotated[float, "The share of queries that satisfy most users."]
    success_lower: Annotated[float, "Its interval."]
    success_upper: float
    new_lower: Annotated[float, "The interval of the share of satisfied users on a new query."]
    new_upper: float
    new_above: Annotated[float, "The share that a new query exceeds, one-sided."]


@dataclass(frozen=True)
class UserEstimate:
    """A number with the interval that holds it."""

    mean: float
    lower: float
    upper: float

    def __str__(self) -> str:
        return f"{self.mean:.4f} [{self.lower:.4f}, {self.upper:.4f}]"


def satisfied_users(p: ArrayLike, n: int) -> Floats:
    r"""Return P(k of n users are satisfied) for k from 0 to n, shape (.., n + 1).

    .. math:: P(Sat_n = k) = \binom{n}{k}\, p^k (1 - p)^{n - k}

    >>> round(float(satisfied_users(0.7, 15)[10]), 4)
    0.2061
    """
    p = np.asarray(p, dtype=float)[..., None]
    if n < 1 or not np.all((p >= 0) & (p <= 1)):
        raise SatisfactionError(f"P(Sat) is a probability and n a whole number from 1, got n={n}.")
    k = np.arange(n + 1)
    ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return np.asarray(np.exp(ways + xlogy(k, p) + xlog1py(n - k, -p)))


@dataclass(frozen=True, eq=False, repr=False)
class Satisfaction(Result):
    """Users' satisfaction with every system, and whose users these are.

    Parameters
    ----------
    scores
        Joint draws of the score of every system on every query, shape (draw, system, query); known scores may come
        as (system, query).
    mapping
        The mapping from scores to P(Sat).
    systems
        The names of the systems.
    agreement
        The mapping from differences to users' preferences, or None.
    family
        The distribution of scores over queries that predicts a new one; by default that of :func:`default_family`.

    Examples
    --------
    >>> from probeval.satisfaction import load_agreement, load_mapping
    >>> scores = np.array([[0.3, 0.5, 0.1, 0.6], [0.7, 0.6, 0.4, 0.6]])
    >>> users = Satisfaction(
    ...     scores, load_mapping("DCGl@5/broad"), ("old", "new"), agreement=load_agreement("DCGl@5/broad")
    ... )
    >>> print(users.p_sat("new"))
    0.6015 [0.4294, 0.7736]
    >>> users.p_success("new").mean
    0.75
    >>> print(users.compare("new", "old"))
    new - old: P(Sat) +0.1668 [-0.0768, +0.4105], ...; of 100 users on one query 28 prefer new, 4 old, 68 neither
    """

    scores: Floats
    mapping: SatMapping
    systems: tuple[str, ...]
    agreement: Agreement | None = None
    target: Annotated[
        str,
        "``population``: including new queries (the default). ``collection``: these queries, uncertain only because "
        "relevance is.",
    ] = "population"
    level: Annotated[float, "The probability of the intervals."] = 0.95
    family: str | None = None

    def __post_init__(self) -> None:
        scores = np.asarray(self.scores, dtype=float)
        scores = scores[None] if scores.ndim == 2 else scores
        if scores.ndim != 3 or scores.shape[1] != len(self.systems):
            raise SatisfactionError(
                f"{len(self.systems)} systems need scores of shape (draw, system, query), got {scores.shape}."
            )
        if self.target not in TARGETS:
            raise SatisfactionError(f"A target is 'collection' or 'population', got {self.target!r}.")
        if self.target == "population" and scores.shape[2] < 2:
            raise SatisfactionError("One query says nothing of the population of queries. Use target='collection'.")
        object.__setattr__(self, "scores", frozen(scores))
        object.__setattr__(self, "systems", tuple(self.systems))

    @classmethod
    def of(
        cls,
        scores: Scores | Measured,
        mapping: SatMapping,
        *,
        agreement: Agreement | None = None,
        target: str = "population",
        level: float = 0.95,
    ) -> Satisfaction:
        """Return users' satisfaction with the systems of an evaluation.

        Uncertain scores need the draws of every query: ``evaluate(.., method="draws", per_query=True)``.
        """
        if isinstance(scores, Measured):
            if not scores.complete:
                raise SatisfactionError("Unjudged documents can change these scores. Use evaluate, which has draws.")
            draws = scores.values
        else:
            if scores.joint.query_draws is None:
                raise SatisfactionError(
                    "Draws of every query are needed: evaluate(.., method='draws', per_query=True)."
                )
            draws = scores.joint.query_draws
        return cls(draws, mapping, scores.systems, agreement, target, level)

    @cached_property
    def values(self) -> Floats:
        """P(Sat) of every system on every query, shape (draw, system, query)."""
        return frozen(self.mapping(self.scores))

    def _at(self, system: str) -> int:
        if system not in self.systems:
            raise SatisfactionError(f"No system {system!r}.{did_you_mean(system, self.systems)}")
        return self.systems.index(system)

    def _level(self, given: float | None) -> float:
        return self.level if given is None else given

    def p_sat(self, system: str, *, level: float | None = None) -> UserEstimate:
        """Return the mean over queries of P(Sat), with its t interval (Urbano 2013, Eqs 4.4 to 4.6), within 0 and 1."""
        return _mean(self.values[:, self._at(system)], self.target, self._level(level))

    def p_success(self, system: str, *, threshold: float = 0.5, level: float | None = None) -> UserEstimate:
        """Return the share of queries that satisfy more than ``threshold`` of users, with Wilson's interval.

        See Urbano (2013), Eq 4.8.
        """
        return _share(self.values[:, self._at(system)] > threshold, self.target, self._level(level))

    def p_satisfied(self, system: str, query: int, n: int) -> Floats:
        """Return P(k of n users are satisfied) on the query at this position, over all draws, shape (n + 1,)."""
        return np.asarray(satisfied_users(self.values[:, self._at(system), query], n).mean(axis=0))

    def new_query(self, system: str, *, family: str | None = None, level: float | None = None) -> NewQuery:
        """Return P(Sat) on one new query: its mean, its interval, and its one-sided limits (:func:`predict_query`)."""
        scores, family = self.scores[:, self._at(system)], family or self.family_used
        return predict_query(scores, mapping=self.mapping, family=family, level=self._level(level))

    def compare(self, a: str, b: str, *, level: float | None = None) -> Noticed:
        """Compare two systems from the perspective of users, ``a`` minus ``b``."""
        i, j, level = self._at(a), self._at(b), self._level(level)
        satisfied = self.values[:, i] - self.values[:, j]
        success = (self.values[:, i] > 0.5).astype(float) - (self.values[:, j] > 0.5)
        prefer: Sequence[UserEstimate | None] = (None, None, None)
        if self.agreement is not None:
            shares = self.agreement(self.scores[:, i] - self.scores[:, j])
            prefer = [_mean(share, self.target, level) for share in shares]
        return Noticed(
            a,
            b,
            _mean(satisfied, self.target, level, least=-1.0),
            _mean(success, self.target, level, least=-1.0),
            _p_positive(satisfied, self.target),
            prefer_a=prefer[0],
            neither=prefer[1],
            prefer_b=prefer[2],
        )

    @key.named("mapping")
    def mapping_name(self) -> str:
        """The mapping from scores to the share of satisfied users."""
        return self.mapping.name

    @key
    def origin(self) -> str:
        """The source of the users."""
        return self.mapping.origin

    @key.named("agreement")
    def agreement_name(self) -> str | None:
        """The mapping from differences to users' preferences; null if there is none."""
        return None if self.agreement is None else self.agreement.name

    @key.named("family")
    def family_used(self) -> str:
        """The distribution of scores over queries that predicts a new one."""
        return self.family or default_family(self.scores.shape[2])

    @key.named("systems")
    def by_system(self) -> tuple[SatisfiedSystem, ...]:
        """One entry per system, by falling share of satisfied users."""
        found = []
        for system in self.systems:
            sat, success, new = self.p_sat(system), self.p_success(system), self.new_query(system)
            found.append(
                SatisfiedSystem(
                    system=system,
                    p_sat=sat.mean,
                    lower=sat.lower,
                    upper=sat.upper,
                    p_success=success.mean,
                    success_lower=success.lower,
                    success_upper=success.upper,
                    new_lower=new.lower,
                    new_upper=new.upper,
                    new_above=new.above,
                )
            )
        return tuple(sorted(found, key=lambda one: -one.p_sat))

    def _headline(self) -> str:
        return f"{len(self.systems)} systems by {self.mapping.name}"

    def tables(self) -> tuple[Table, ...]:
        """One row per system."""
        return (Table(self.to_frame(), "Users who are satisfied", intervals=("p_sat", "lower", "upper")),)

    def sentences(self) -> tuple[str, ...]:
        """Whose users these are, and what the intervals are for."""
        whose = "new queries too" if self.target == "population" else "these queries"
        origin = f" ({self.mapping.origin})" if self.mapping.origin else ""
        return (f"Mapping {self.mapping.name}{origin}; {self.level:.0%} intervals for {whose}.",)


@dataclass(frozen=True, repr=False)
class Noticed(Result):
    """Two systems in the eyes of users, a minus b."""

    a: Annotated[str, "The first system."]
    b: Annotated[str, "The second system."]
    sat: Annotated[UserEstimate, "The difference in P(Sat), the share of satisfied users."]
    success: Annotated[UserEstimate, "The difference in P(Succ), the share of queries that satisfy most users."]
    p_better: Annotated[float, "P(a satisfies more users than b), half of any tie."]
    prefer_a: Annotated[
        UserEstimate | None,
        "P(a user prefers the list of a) on a random query; null if users' preferences are not known, as below.",
    ] = None
    neither: Annotated[UserEstimate | None, "P(a user prefers neither)."] = None
    prefer_b: Annotated[UserEstimate | None, "P(a user prefers the list of b)."] = None

    @key
    def noticed(self) -> UserEstimate | None:
        """P(a user prefers the list of the system that satisfies more users)."""
        return self.prefer_a if self.sat.mean >= 0 else self.prefer_b

    def __str__(self) -> str:
        sat = (
            f"{self.a} - {self.b}: P(Sat) {self.sat.mean:+.4f} [{self.sat.lower:+.4f}, {self.sat.upper:+.4f}], "
            f"P(Succ) {self.success.mean:+.4f} [{self.success.lower:+.4f}, {self.success.upper:+.4f}]"
        )
        if self.prefer_a is None or self.prefer_b is None or self.neither is None:
            return sat
        return (
            f"{sat}; of 100 users on one query {100 * self.prefer_a.mean:.0f} prefer {self.a}, "
            f"{100 * self.prefer_b.mean:.0f} {self.b}, {100 * self.neither.mean:.0f} neither"
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per figure: figure, mean, lower, upper; those of preferences only where agreement is known."""
        figures = {"sat": self.sat, "success": self.success, "prefer_a": self.prefer_a, "neither": self.neither,
                   "prefer_b": self.prefer_b}  # fmt: skip
        return pd.DataFrame([{"figure": n, **plain(e)} for n, e in figures.items() if e is not None])

    def _headline(self) -> str:
        return str(self)

    def tables(self) -> tuple[Table, ...]:
        """One row per figure."""
        return (Table(self.to_frame(), f"{self.a} minus {self.b}", intervals=("mean", "lower", "upper")),)

    def sentences(self) -> tuple[str, ...]:
        """The same in words."""
        return (f"{self}.", f"P(more users are satisfied with {self.a}) {self.p_better:.3f}.")


def _tails(level: float) -> tuple[float, float]:
    """Return the two tail probabilities of the central interval."""
    if not 0 < level < 1:
        raise SatisfactionError(f"A level is a probability between 0 and 1, got {level:g}.")
    return (1 - level) / 2, (1 + level) / 2


def _mean(values: Floats, target: str, level: float, *, least: float = 0.0) -> UserEstimate:
    """Return the mean over queries of values of shape (draw, query); for new queries with a t interval.

    The values are from ``least`` to 1, and so is their interval.
    """
    draws = values.mean(axis=1)
    mean = float(draws.mean())
    if target == "collection":
        low, high = np.quantile(draws, _tails(level))
        return UserEstimate(mean, float(low), float(high))
    half = float(stdtrit(values.shape[1] - 1, _tails(level)[1])) * _sd_of_mean(values)
    return UserEstimate(mean, max(mean - half, least), min(mean + half, 1.0))


def _p_positive(values: Floats, target: str) -> float:
    """Return P(the mean over queries of values of shape (draw, query) is above 0), ties counting half."""
    draws = values.mean(axis=1)
    sd = 0.0 if target == "collection" else _sd_of_mean(values)
    if sd == 0:
        return float((signs(draws) + 1).mean() / 2)
    return float(stdtr(values.shape[1] - 1, draws.mean() / sd))


def _sd_of_mean(values: Floats) -> float:
    """Return the sd of the mean for new queries, from the variances of draws and between queries."""
    draws = values.mean(axis=1)
    return float((draws.var() + values.var(axis=1, ddof=1).mean() / values.shape[1]) ** 0.5)


def _share(hits: Bools, target: str, level: float) -> UserEstimate:
    """Return the share of hits, of shape (draw, query), with an interval; Wilson's for new queries.

    Disagreement between draws lowers the effective number of queries, to match the total variance.
    """
    draws = hits.mean(axis=1)
    p, n = float(draws.mean()), float(hits.shape[1])
    if target == "collection":
        low, high = np.quantile(draws, _tails(level))
        return UserEstimate(p, float(low), float(high))
    variance = float(draws.var() + (draws * (1 - draws)).mean() / n)
    n = p * (1 - p) / variance if variance > 0 else n
    z = float(ndtri(_tails(level)[1]))
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * (p * (1 - p) / n + z**2 / (4 * n**2)) ** 0.5
    return UserEstimate(p, max(centre - half, 0.0), min(centre + half, 1.0))
