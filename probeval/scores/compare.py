"""Comparisons of two systems and rankings of all, with their uncertainty.

See docs/theory/scores.md#conf.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, stdtr

from probeval.arrays import Floats, Ints, frozen
from probeval.display import Shown, View
from probeval.scores.documents import ComparisonDocument, RankedSystem, RankingDocument, scored_system
from probeval.scores.score import Score
from probeval.ties import TIE, signs

if TYPE_CHECKING:
    from probeval.scores.scores import Scores

__all__ = ["Comparison", "Ranking"]


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Shown):
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
        """The probability of the likelier direction, ties on its side."""
        return max(self.p_worse, self.p_better) + self.p_equal

    @property
    def effect_size(self) -> float:
        """The expected difference over the standard deviation of the difference between queries; NaN for one query."""
        scores, weights = self.difference.scores, self.difference.weights
        spread = float(weights @ scores.joint.between @ weights) * len(scores.queries)
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

    def views(self) -> tuple[View, ...]:
        """One row."""
        title = f"{self.difference.scores.metric}, {self.a} less {self.b}"
        return (View(self.to_frame(), title, intervals=("mean", "lower", "upper")),)

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
class Ranking(Shown):
    """All systems in the order of their mean scores.

    Parameters
    ----------
    scores
        The joint distribution.
    draws
        Joint draws of it, from which rank probabilities are counted, shape (draw, system).
    """

    scores: Scores
    draws: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "draws", frozen(self.draws))

    @property
    def order(self) -> list[str]:
        """The systems by falling mean; tied ones stay in the order of the runs."""
        return [self.scores.systems[i] for i in self.scores.order]

    @cached_property
    def p_better(self) -> Floats:
        """P(the row's system is better than the column's), ties on neither side, shape (system, system)."""
        if self.scores.family == "empirical":
            better = [(self.draws[:, [i]] - self.draws > TIE).mean(axis=0) for i in range(self.draws.shape[1])]
            return np.array(better)
        mean, sd = self.scores.difference_moments()
        z = np.divide(mean, sd, out=np.zeros_like(mean), where=sd > 0)
        freedom = max(len(self.scores.queries) - 1, 1)
        tail = stdtr(freedom, z) if self.scores.family == "t" else ndtr(z)
        return np.where(sd > 0, tail, np.where(mean > TIE, 1.0, 0.0))

    @cached_property
    def pair_confidence(self) -> Floats:
        """The probability of each pair's likelier direction, ties on its side, shape (system, system)."""
        better = self.p_better
        return np.asarray(1.0 - np.minimum(better, better.T))

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
        ``level``: no system of a group is distinguishable from its best.
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

        For the population of queries also sd_judging and sd_sampling, before p_best.
        """
        frame = self.scores.to_frame(level=level)
        order = self.scores.order
        return frame.assign(p_best=self.p_best[order], group=self.groups(level=level)[order])

    def to_dict(self, *, level: float = 0.95, per_query: bool = False) -> RankingDocument:
        """The ranking as plain data for JSON."""
        scores = self.scores
        mean, sd = scores.difference_moments()
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
            "pairs": [
                {
                    "a": scores.systems[i],
                    "b": scores.systems[j],
                    "mean": float(mean[i, j]),
                    "sd": float(sd[i, j]),
                    "p_better": float(self.p_better[i, j]),
                }
                for i, j in combinations(range(len(mean)), 2)
            ],
        }
        if per_query:
            result["queries"] = scores.query_scores()
        return result

    def _headline(self) -> str:
        return f"{self.scores.metric} of {len(self.scores.systems)} systems, mean confidence {self.confidence:.3f}"

    def views(self) -> tuple[View, ...]:
        """One row per system."""
        return (View(self.to_frame(), str(self.scores.metric), intervals=("mean", "lower", "upper")),)

    def sentences(self, *, level: float = 0.95) -> tuple[str, ...]:
        """The number of judged pairs, the target of the intervals, and the confidence of the order."""
        known = self.scores.sentences(level=level)[0].removesuffix(".")
        if len(self.scores.systems) < 2:
            return (f"{known}; one system, and nothing to compare it with.",)
        return (f"{known}; mean confidence {self.confidence:.3f}, expected tau {self.expected_tau:.3f}.",)


def _ranked_system(row: Mapping[str, Any]) -> RankedSystem:
    return {**scored_system(row), "p_best": float(row["p_best"]), "group": int(row["group"])}
