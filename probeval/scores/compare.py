"""Comparisons of two systems and rankings of all, with their uncertainty.

See docs/theory/scores.md#conf.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pandas as pd
from scipy.special import ndtr, stdtr

from probeval.arrays import Bools, Floats, Ints, frozen
from probeval.display import Table
from probeval.errors import ScoreError
from probeval.metrics.classical import PairDifference
from probeval.results import FLAT, UNSET, Result, UnsetType, changed, frame, key, rows
from probeval.scores.decision import PairDecision, Verdicts
from probeval.ties import TIE, signs

if TYPE_CHECKING:
    from probeval.scores.scores import Score, Scores

__all__ = ["Comparison", "RankedSystem", "Ranking", "ScoredSystem", "check_rope"]


@dataclass(frozen=True, kw_only=True)
class ScoredSystem:
    """A system and the distribution of its mean score."""

    system: str
    rank: Annotated[int, "Its rank by mean; ties share one."]
    mean: Annotated[float, "The expected score."]
    sd: Annotated[float, "The standard deviation of the score."]
    lower: Annotated[float, "The lower end of its interval."]
    upper: Annotated[float, "The upper end of its interval."]
    mean_outside: Annotated[
        float | UnsetType,
        "Where relevant documents outside the pool are likely and not counted: the expected score if they are.",
    ] = UNSET
    lower_outside: Annotated[float | UnsetType, "The lower end of its interval if they are."] = UNSET
    upper_outside: Annotated[float | UnsetType, "The upper end of its interval if they are."] = UNSET
    sd_judging: Annotated[
        float | UnsetType, "For the population of queries, the part of sd because relevance is not known."
    ] = UNSET
    sd_sampling: Annotated[
        float | UnsetType, "For the population of queries, the part of sd because other queries could have been drawn."
    ] = UNSET


@dataclass(frozen=True, kw_only=True)
class RankedSystem(ScoredSystem):
    """A system of a ranking."""

    p_best: Annotated[float, "The probability that it is the best."]
    p_near_best: Annotated[
        float | UnsetType, "With a rope: the probability that no system is better by more than the rope."
    ] = UNSET
    group: Annotated[int, "Its group, from 1 at the top: systems of a group do not differ from the best of it."]


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result):
    """The difference of two systems' scores, a minus b, in three probabilities."""

    difference: Score  # as a random variable
    a: Annotated[str, "The first system."]
    b: Annotated[str, "The second system."]
    rope: Annotated[float, "Differences up to this size count as none."] = 0.0
    level: Annotated[float, "The probability that the interval holds."] = 0.95

    @key
    def mean(self) -> float:
        """The expected difference."""
        return self.difference.mean()

    @key
    def sd(self) -> float:
        """The standard deviation of the difference."""
        return self.difference.standard_deviation()

    @key
    def lower(self) -> float:
        """The lower end of its interval."""
        return self.difference.interval(self.level)[0]

    @key
    def upper(self) -> float:
        """The upper end of its interval."""
        return self.difference.interval(self.level)[1]

    @key
    def p_worse(self) -> float:
        """P(a is worse than b by more than the rope)."""
        return self.difference.cdf(-self.rope - 2 * TIE)  # a cdf includes differences within a tie

    @key
    def p_equal(self) -> float:
        """P(they differ by no more than the rope)."""
        return max(0.0, 1.0 - self.p_worse - self.p_better)

    @key
    def p_better(self) -> float:
        """P(a is better than b by more than the rope)."""
        return 1.0 - self.difference.cdf(self.rope)

    @property
    def confidence(self) -> float:
        """The probability that the likelier direction is right, or that it is a tie, whichever is higher."""
        not_higher, lower = self.difference.cdf(0.0), self.difference.cdf(-2 * TIE)
        return max(not_higher, 1.0 - lower, self.p_equal)

    def verdict(self, *, level: float = 0.95) -> Verdicts:
        """``better`` or ``worse`` (of a), ``equal`` (within the rope), or ``undecided`` below this probability."""
        return PairDecision(self.p_better, self.p_worse, self.p_equal, level).verdict

    @key
    def effect_size(self) -> float:
        """The expected difference over the standard deviation of the difference between queries; NaN for one query."""
        scores, weights = self.difference.scores, self.difference.weights
        spread = float(weights @ scores.joint.between @ weights) * scores.n_effective
        return float(self.mean / np.sqrt(spread)) if spread > 0 else float("nan")

    def to_frame(self) -> pd.DataFrame:
        """One row: a, b, mean, sd, lower, upper, p_worse, p_equal, p_better, effect_size."""
        return frame([self], Comparison).drop(columns=["rope", "level"])

    def _headline(self) -> str:
        return f"{self.a} - {self.b}, {self.difference.scores.metric}, P(better) {self.p_better:.3f}"

    def tables(self) -> tuple[Table, ...]:
        """One row."""
        title = f"{self.difference.scores.metric}, {self.a} minus {self.b}"
        return (Table(self.to_frame(), title, intervals=("mean", "lower", "upper")),)

    def sentences(self) -> tuple[str, ...]:
        """The rope."""
        return (f"Differences up to {self.rope:g} count as none.",) if self.rope else ()

    def __str__(self) -> str:
        return (
            f"{self.a} - {self.b}: {self.mean:+.4f} [{self.lower:+.4f}, {self.upper:+.4f}], "
            f"better {self.p_better:.3f}, equal {self.p_equal:.3f}, worse {self.p_worse:.3f}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Ranking(Result):
    """All systems in the order of their mean scores."""

    scores: Annotated[Scores, FLAT]  # the joint distribution
    draws: Floats  # joint draws of it, from which rank probabilities are counted, shape (draw, system)
    rope: float = 0.0  # differences up to this size do not matter

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

    @key
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

    @key
    def expected_tau(self) -> float:
        """The tau with the true order that is expected."""
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

    def at(self, level: float) -> Ranking:
        """The same ranking, with intervals of another level."""
        return changed(self, scores=self.scores.at(level))

    @key
    def systems(self) -> tuple[RankedSystem, ...]:
        """One entry per system, best first."""
        order = self.scores.order
        groups, near = self.groups(level=self.scores.level)[order].tolist(), self.p_near_best[order].tolist()
        return tuple(
            RankedSystem(**vars(one), p_best=best, p_near_best=close if self.rope else UNSET, group=group)
            for one, best, close, group in zip(
                self.scores.scored, self.p_best[order].tolist(), near, groups, strict=True
            )
        )

    @key
    def pairs(self) -> tuple[PairDifference, ...]:
        """One entry per pair of systems."""
        systems, (mean, sd) = self.scores.systems, self.scores.difference_moments()
        first, second = np.triu_indices(len(mean), k=1)
        equal = {"p_equal": self.p_equal[first, second]} if self.rope else {}
        return rows(
            PairDifference,
            a=[systems[i] for i in first], b=[systems[j] for j in second], mean=mean[first, second],
            sd=sd[first, second], p_better=self.p_better[first, second], **equal,
        )  # fmt: skip

    @key.named("rope")
    def rope_used(self) -> float | UnsetType:
        """The largest difference that does not matter, if there is one."""
        return self.rope or UNSET

    def to_frame(self) -> pd.DataFrame:
        """One row per system, by falling mean: system, rank, mean, sd, lower, upper, p_best, group.

        For the population of queries also sd_judging and sd_sampling, before p_best; with a rope p_near_best, after it.
        """
        return frame(self.systems, RankedSystem)

    def _headline(self) -> str:
        return f"{self.scores.metric} of {len(self.scores.systems)} systems, mean confidence {self.confidence:.3f}"

    def tables(self) -> tuple[Table, ...]:
        """One row per system."""
        return (Table(self.to_frame(), self.scores.title, intervals=("mean", "lower", "upper")),)

    def sentences(self) -> tuple[str, ...]:
        """The judged pairs, the target of the intervals, the confidence of the order, the ideal list, and ties."""
        scores = self.scores
        _, *ideal = scores.sentences()
        if len(scores.systems) < 2:
            return (f"{scores.status}; one system, and nothing to compare it with{scores.caveat}.", *ideal)
        sure = f"mean confidence {self.confidence:.3f}, expected tau {self.expected_tau:.3f}"
        return (f"{scores.status}; {sure}{scores.caveat}.", *ideal, *self.ties())

    def ties(self) -> tuple[str, ...]:
        """Sentences on the rope, and on the systems that are tied with the first of the order."""
        rope = (f"Differences up to {self.rope:g} count as ties.",) if self.rope else ()
        tied = self.tied_with_best(level=self.scores.level)
        return (*rope, f"Tied with {self.order[0]}: {', '.join(tied)}.") if tied else rope


def check_rope(rope: float) -> None:
    """Raise an error unless the rope is a number from 0."""
    if not 0 <= rope < np.inf:
        raise ScoreError(f"The rope is the largest difference that does not matter, a number from 0; got {rope:g}.")
