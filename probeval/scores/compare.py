"""Comparisons of two systems and rankings of all, with their uncertainty.

See docs/theory/scores.md#conf.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
from scipy.special import ndtr, stdtr

from probeval.arrays import Bools, Floats, Ints, frozen
from probeval.display import Table
from probeval.errors import ScoreError
from probeval.results import Result
from probeval.scores.decision import Decision, Verdicts
from probeval.scores.documents import (
    ComparisonDocument,
    PairDifference,
    RankedSystem,
    RankingDocument,
    scored_system,
)
from probeval.ties import TIE, signs

if TYPE_CHECKING:
    from probeval.scores.scores import Score, Scores

__all__ = ["Comparison", "Ranking", "check_rope"]


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result):
    """The difference of two systems' scores, ``a`` less ``b``, in three probabilities.

    Parameters
    ----------
    difference
        The difference as a random variable.
    a, b
        The systems.
    rope
        Differences up to this size count as none.
    """

    difference: Score
    a: str
    b: str
    rope: float = 0.0

    @property
    def p_worse(self) -> float:
        """P(a is worse than b by more than the rope)."""
        return self.difference.cdf(-self.rope - 2 * TIE)  # a cdf includes differences within a tie

    @property
    def p_better(self) -> float:
        """P(a is better than b by more than the rope)."""
        return 1.0 - self.difference.cdf(self.rope)

    @property
    def p_equal(self) -> float:
        """P(they differ by no more than the rope)."""
        return max(0.0, 1.0 - self.p_worse - self.p_better)

    @property
    def confidence(self) -> float:
        """The probability that the likelier direction is right, or that it is a tie, whichever is higher."""
        not_higher, lower = self.difference.cdf(0.0), self.difference.cdf(-2 * TIE)
        return max(not_higher, 1.0 - lower, self.p_equal)

    def verdict(self, *, level: float = 0.95) -> Verdicts:
        """``better`` or ``worse`` (of a), ``equal`` (within the rope), or ``undecided`` below this probability."""
        return Decision(self.p_better, self.p_worse, self.p_equal, level).verdict

    @property
    def effect_size(self) -> float:
        """The expected difference over the standard deviation of the difference between queries; NaN for one query."""
        scores, weights = self.difference.scores, self.difference.weights
        spread = float(weights @ scores.joint.between @ weights) * scores.n_effective
        return self.difference.mean() / np.sqrt(spread) if spread > 0 else float("nan")

    def to_frame(self, *, level: float = 0.95) -> pd.DataFrame:
        """One row: a, b, mean, sd, lower, upper, p_worse, p_equal, p_better, effect_size."""
        return pd.DataFrame([self.to_dict(level=level)]).drop(columns=["rope", "level"])

    def to_dict(self, *, level: float = 0.95) -> ComparisonDocument:
        """The comparison as plain data for JSON."""
        low, high = self.difference.interval(level)
        return {
            "a": self.a,
            "b": self.b,
            "rope": self.rope,
            "level": level,
            "mean": self.difference.mean(),
            "sd": self.difference.standard_deviation(),
            "lower": low,
            "upper": high,
            "p_worse": self.p_worse,
            "p_equal": self.p_equal,
            "p_better": self.p_better,
            "effect_size": float(self.effect_size),
        }

    def _headline(self) -> str:
        return f"{self.a} - {self.b}, {self.difference.scores.metric}, P(better) {self.p_better:.3f}"

    def tables(self) -> tuple[Table, ...]:
        """One row."""
        title = f"{self.difference.scores.metric}, {self.a} less {self.b}"
        return (Table(self.to_frame(), title, intervals=("mean", "lower", "upper")),)

    def sentences(self) -> tuple[str, ...]:
        """The rope."""
        return (f"Differences up to {self.rope:g} count as none.",) if self.rope else ()

    def __str__(self) -> str:
        low, high = self.difference.interval()
        return (
            f"{self.a} - {self.b}: {self.difference.mean():+.4f} [{low:+.4f}, {high:+.4f}], "
            f"better {self.p_better:.3f}, equal {self.p_equal:.3f}, worse {self.p_worse:.3f}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Ranking(Result):
    """All systems in the order of their mean scores.

    Parameters
    ----------
    scores
        The joint distribution.
    draws
        Joint draws of it, from which rank probabilities are counted, shape (draw, system).
    rope
        Differences up to this size do not matter.
    """

    scores: Scores
    draws: Floats
    rope: float = 0.0

    def __post_init__(self) -> None:
        check_rope(self.rope)
        object.__setattr__(self, "draws", frozen(self.draws))

    @property
    def order(self) -> list[str]:
        """The systems by falling mean; tied ones stay in the order of the runs."""
        return [self.scores.systems[i] for i in self.scores.order]

    def p_above(self, gap: float) -> Floats:
        """P(the row's score is higher than the column's by more than ``gap``), shape (system, system)."""
        if self.scores.family == "empirical":
            above = [(self.draws[:, [i]] - self.draws > gap + TIE).mean(axis=0) for i in range(self.draws.shape[1])]
            return np.array(above)
        mean, sd = self.scores.difference_moments()
        z = np.divide(mean - gap, sd, out=np.zeros_like(mean), where=sd > 0)
        freedom = max(self.scores.n_effective - 1, 1)
        tail = stdtr(freedom, z) if self.scores.family == "t" else ndtr(z)
        return np.where(sd > 0, tail, np.where(mean > gap + TIE, 1.0, 0.0))

    @cached_property
    def p_higher(self) -> Floats:
        """P(the row's score is higher than the column's), equal scores on neither side, shape (system, system)."""
        return self.p_above(0.0)

    @cached_property
    def p_better(self) -> Floats:
        """P(the row's system is better than the column's by more than the rope), shape (system, system)."""
        return self.p_above(self.rope) if self.rope else self.p_higher

    @cached_property
    def p_equal(self) -> Floats:
        """P(two systems differ by no more than the rope), shape (system, system)."""
        return np.maximum(1.0 - self.p_better - self.p_better.T, 0.0)

    @cached_property
    def direction_confidence(self) -> Floats:
        """The probability of each pair's likelier direction, equal scores on its side, shape (system, system)."""
        higher = self.p_higher
        return np.asarray(1.0 - np.minimum(higher, higher.T))

    @cached_property
    def pair_confidence(self) -> Floats:
        """The confidence of each pair: that its direction is right, or that it is a tie, shape (system, system).

        See docs/theory/scores.md#conf.
        """
        return np.maximum(self.direction_confidence, self.p_equal)

    @cached_property
    def tied(self) -> Bools:
        """Whether a tie is at least as sure as the likelier direction of each pair, shape (system, system)."""
        return np.asarray(self.p_equal >= self.direction_confidence)

    @property
    def confidence(self) -> float:
        """The mean confidence over all pairs of systems; 1 for a single system."""
        upper = np.triu_indices(len(self.scores.systems), k=1)
        return float(self.pair_confidence[upper].mean()) if len(upper[0]) else 1.0

    @cached_property
    def p_rank(self) -> Floats:
        """P(each system has each rank), tied systems sharing their ranks evenly, shape (system, rank)."""
        n = self.draws.shape[1]
        out = np.zeros((n, n + 1))
        for i in range(n):
            gap = self.draws - self.draws[:, [i]]
            above, level = (gap > TIE).sum(axis=1), (np.abs(gap) <= TIE).sum(axis=1)
            np.add.at(out[i], above, 1.0 / level)
            np.add.at(out[i], above + level, -1.0 / level)
        return np.asarray(np.cumsum(out, axis=1)[:, :n] / len(self.draws))

    @property
    def p_best(self) -> Floats:
        """P(each system is the best), shape (system,)."""
        return self.p_rank[:, 0]

    @cached_property
    def p_near_best(self) -> Floats:
        """P(no system is better than this one by more than the rope), shape (system,)."""
        return np.asarray((self.draws.max(axis=1, keepdims=True) - self.draws <= self.rope + TIE).mean(axis=0))

    def tied_with_best(self, *, level: float = 0.95) -> list[str]:
        """Return the systems that are tied with the first of the order, with at least this confidence."""
        first, *others = self.scores.order
        return [self.scores.systems[i] for i in others if self.p_equal[first, i] >= level]

    @cached_property
    def tau_draws(self) -> Floats:
        """Kendall's tau between this order and each draw of the truth, shape (draw,)."""
        n = self.draws.shape[1]
        if n < 2:
            return np.ones(len(self.draws))
        total = np.zeros(len(self.draws))
        for i in range(n):
            estimated = signs(self.scores.mean[i] - self.scores.mean)
            true = signs(self.draws[:, [i]] - self.draws)
            total += true @ estimated
        return np.asarray(total / (n * (n - 1)))

    @property
    def expected_tau(self) -> float:
        """The expected tau between this order and the truth."""
        return float(self.tau_draws.mean())

    def groups(self, *, level: float = 0.95) -> Ints:
        """Return the group of each system, from 1 at the top, shape (system,).

        From the best down, a new group starts at the first system that is worse than its group's best with probability
        ``level``, by more than the rope: no system of a group is distinguishable from its best.
        """
        order = self.scores.order
        group = np.zeros(len(order), dtype=np.int64)
        leader, number = order[0], 1
        for system in order:
            if self.p_better[leader, system] >= level:
                leader, number = system, number + 1
            group[system] = number
        return group

    def to_frame(self, *, level: float = 0.95) -> pd.DataFrame:
        """One row per system, by falling mean: system, rank, mean, sd, lower, upper, p_best, group.

        For the population of queries also sd_judging and sd_sampling, before p_best; with a rope p_near_best, after it.
        """
        frame = self.scores.to_frame(level=level)
        order = self.scores.order
        near = {"p_near_best": self.p_near_best[order]} if self.rope else {}
        return frame.assign(p_best=self.p_best[order], **near, group=self.groups(level=level)[order])

    def to_dict(self, *, level: float = 0.95, per_query: bool = False) -> RankingDocument:
        """The ranking as plain data for JSON."""
        scores = self.scores
        rows: Any = self.to_frame(level=level).to_dict("records")
        result: RankingDocument = {
            "metric": str(scores.metric),
            "target": scores.target,
            "method": scores.method,
            "pool": scores.pool,
            "judged": scores.judged,
            "level": level,
            "confidence": self.confidence,
            "expected_tau": self.expected_tau,
            "systems": [_ranked_system(row) for row in rows],
            "pairs": self._pairs(),
        }
        if scores.aggregate != "mean":
            result["aggregate"] = scores.aggregate
        if scores.ideal is not None:
            result["ideal"] = scores.ideal.to_dict()
        if self.rope:
            result["rope"] = self.rope
        if per_query:
            result["queries"] = scores.query_scores()
        return result

    def _pairs(self) -> list[PairDifference]:
        """Every pair of systems as plain data."""
        systems, (mean, sd) = self.scores.systems, self.scores.difference_moments()
        pairs: list[PairDifference] = []
        for i, j in combinations(range(len(mean)), 2):
            pair: PairDifference = {
                "a": systems[i],
                "b": systems[j],
                "mean": float(mean[i, j]),
                "sd": float(sd[i, j]),
                "p_better": float(self.p_better[i, j]),
            }
            if self.rope:
                pair["p_equal"] = float(self.p_equal[i, j])
            pairs.append(pair)
        return pairs

    def _headline(self) -> str:
        return f"{self.scores.metric} of {len(self.scores.systems)} systems, mean confidence {self.confidence:.3f}"

    def tables(self) -> tuple[Table, ...]:
        """One row per system."""
        return (Table(self.to_frame(), str(self.scores.metric), intervals=("mean", "lower", "upper")),)

    def sentences(self, *, level: float = 0.95) -> tuple[str, ...]:
        """The judged pairs, the target of the intervals, the confidence of the order, the ideal list, and ties."""
        first, *ideal = self.scores.sentences(level=level)
        known = first.removesuffix(".")
        if len(self.scores.systems) < 2:
            return (f"{known}; one system, and nothing to compare it with.", *ideal)
        sure = f"{known}; mean confidence {self.confidence:.3f}, expected tau {self.expected_tau:.3f}."
        return (sure, *ideal, *self.ties(level=level))

    def ties(self, *, level: float = 0.95) -> tuple[str, ...]:
        """Sentences on the rope, and on the systems that are tied with the first of the order."""
        rope = (f"Differences up to {self.rope:g} count as ties.",) if self.rope else ()
        tied = self.tied_with_best(level=level)
        return (*rope, f"Tied with {self.order[0]}: {', '.join(tied)}.") if tied else rope


def check_rope(rope: float) -> None:
    """Raise an error unless the rope is a number from 0."""
    if not 0 <= rope < np.inf:
        raise ScoreError(f"The rope is the largest difference that does not matter, a number from 0; got {rope:g}.")


def _ranked_system(row: Mapping[str, Any]) -> RankedSystem:
    probabilities = {name: float(row[name]) for name in ("p_best", "p_near_best") if name in row}
    return cast("RankedSystem", {**scored_system(row), **probabilities, "group": int(row["group"])})
