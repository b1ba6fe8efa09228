"""The decision between two systems: on these queries and on new ones, with and without labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np
import pandas as pd

from probeval.display import Table
from probeval.relevance.models.hierarchical import Hierarchical
from probeval.results import UNSET, Result, UnsetType, frame, plain
from probeval.scores.compare import Comparison
from probeval.scores.decision import PairDecision, Verdicts
from probeval.scores.estimate import ScoreEstimate
from probeval.scores.scores import Scores

__all__ = ["DecidedOn", "DecidedPair", "TwoSystems", "decide", "on_new_queries", "without_labels"]

THREE = 0.0005  # the smallest probability that three decimals show


@dataclass(frozen=True)
class DecidedPair:
    """A pair of systems compared by a relevance model, on these queries and on new ones."""

    a: str
    b: str
    difference: Annotated[float, "The expected score of a minus that of b, on these queries."]
    lower: float
    upper: float
    p_better: Annotated[float, "The probability that a is better, by more than the rope."]
    p_equal: Annotated[float, "The probability that they differ by no more than the rope."]
    p_worse: Annotated[float, "The probability that a is worse, by more than the rope."]
    confidence: Annotated[float, "The probability of the likeliest verdict."]
    verdict: Annotated[Verdicts, "``undecided`` where no verdict has the probability of the level."]
    lower_new: Annotated[float | UnsetType, "The same for new queries of the same kind; absent for one query."] = UNSET
    upper_new: float | UnsetType = UNSET
    p_better_new: float | UnsetType = UNSET
    p_equal_new: float | UnsetType = UNSET
    p_worse_new: float | UnsetType = UNSET
    verdict_new: Verdicts | UnsetType = UNSET
    difference_unlabelled: Annotated[
        float | UnsetType, "On these queries, had there been no labels; absent without labels."
    ] = UNSET
    p_better_unlabelled: float | UnsetType = UNSET


@dataclass(frozen=True)
class DecidedOn:
    """A pair of systems compared on one kind of queries."""

    queries: Annotated[str, "These, new ones, or these without labels."]
    difference: float
    lower: float
    upper: float
    p_better: float
    p_equal: Annotated[float | UnsetType, "With a rope."]
    p_worse: float
    verdict: Verdicts


@dataclass(frozen=True, eq=False, repr=False)
class TwoSystems(Result):
    """Which of two systems is better, on these queries and on new ones.

    Parameters
    ----------
    here
        The comparison on these queries.
    new
        The comparison for the population of queries; None for a single query.
    unlabelled
        The comparison on these queries, had there been no labels; None without labels.
    level
        The probability that a verdict needs, and that of intervals.

    Examples
    --------
    >>> import probeval
    >>> runs = {"bm25": {"q1": {"d1": 2.0, "d2": 1.0}}, "dense": {"q1": {"d2": 2.0, "d3": 1.0}}}
    >>> evaluation = probeval.evaluate(runs, "P@2", qrels={"q1": {"d1": 1, "d3": 0}}, scale="binary")
    >>> print(*decide(evaluation.estimate, "bm25", "dense").sentences())
    bm25 is better than dense on these queries: 0.5000 more P@2 [0.5000, 0.5000], probability >0.999.
    """

    here: Comparison
    new: Comparison | None
    unlabelled: Comparison | None
    level: float = 0.95

    def _headline(self) -> str:
        return f"{self.here.a} against {self.here.b}, {self.verdict} at {self.level:g}"

    def _decision(self, comparison: Comparison) -> PairDecision:
        return PairDecision(comparison.p_better, comparison.p_worse, comparison.p_equal, self.level)

    @property
    def verdict(self) -> Verdicts:
        """The verdict on these queries."""
        return self._decision(self.here).verdict

    @property
    def is_undecided(self) -> bool:
        """Whether more judgments may decide."""
        return self.verdict == "undecided"

    def to_frame(self) -> pd.DataFrame:
        """One row for these queries, one for new ones, and one for these queries without labels."""
        kinds = {"these": self.here, "new": self.new, "these, without labels": self.unlabelled}
        return frame([self._row(name, one) for name, one in kinds.items() if one is not None], DecidedOn)

    def _row(self, queries: str, comparison: Comparison) -> DecidedOn:
        decision = self._decision(comparison)
        low, high = comparison.difference.interval(self.level)
        return DecidedOn(
            queries=queries,
            difference=comparison.difference.mean(),
            lower=low,
            upper=high,
            p_better=decision.p_better,
            p_equal=decision.p_equal if comparison.rope else UNSET,
            p_worse=decision.p_worse,
            verdict=decision.verdict,
        )

    @cached_property
    def pair(self) -> DecidedPair:
        """The decision as a row among those of other pairs."""
        here = self._decision(self.here)
        low, high = self.here.difference.interval(self.level)
        new: dict[str, Any] = {}
        if self.new is not None:
            there = self._decision(self.new)
            new["lower_new"], new["upper_new"] = self.new.difference.interval(self.level)
            new |= {"p_better_new": there.p_better, "p_equal_new": there.p_equal, "p_worse_new": there.p_worse}
            new["verdict_new"] = there.verdict
        if self.unlabelled is not None:
            new["difference_unlabelled"] = self.unlabelled.difference.mean()
            new["p_better_unlabelled"] = self.unlabelled.p_better
        return DecidedPair(
            a=self.here.a,
            b=self.here.b,
            difference=self.here.difference.mean(),
            lower=low,
            upper=high,
            p_better=here.p_better,
            p_equal=here.p_equal,
            p_worse=here.p_worse,
            confidence=here.confidence,
            verdict=here.verdict,
            **new,
        )

    def to_dict(self) -> Any:
        """The plain data of :attr:`pair`."""
        return plain(self.pair)

    def tables(self) -> tuple[Table]:
        """The rows of :meth:`to_frame`."""
        title = f"{self.here.difference.scores.metric}, {self.here.a} minus {self.here.b}"
        return (Table(self.to_frame(), title, intervals=("difference", "lower", "upper")),)

    def sentences(self) -> tuple[str, ...]:
        """The verdict on these queries, that on new ones, and what labels contributed."""
        return (self.on_these, *([] if self.new is None else [self.on_new]), *self._contributed())

    @property
    def on_these(self) -> str:
        """The verdict on these queries, in a sentence."""
        here, verdict = self.here, self.verdict
        if verdict == "undecided":
            return f"It is undecided which of the two is better on these queries: {self._likelier(here)}."
        if verdict == "equal":
            return f"{self._equal(here)} on these queries, probability {probability(here.p_equal)}."
        first, second = (here.a, here.b) if verdict == "better" else (here.b, here.a)
        mean, (low, high) = here.difference.mean(), here.difference.interval(self.level)
        if verdict == "worse":
            mean, low, high = -mean, -high, -low
        size = f"{mean:.4f} more {here.difference.scores.metric} [{low:.4f}, {high:.4f}]"
        sure = probability(self._decision(here).confidence)
        return f"{first} is better than {second}{_by(here)} on these queries: {size}, probability {sure}."

    @property
    def on_new(self) -> str:
        """The verdict on new queries, in a sentence."""
        new = self.new
        assert new is not None
        decision = self._decision(new)
        if decision.verdict == "undecided":
            return f"On new queries of the same kind it is undecided: {self._likelier(new)}."
        if decision.verdict == "equal":
            return f"On new queries of the same kind {self._equal(new)}, probability {probability(new.p_equal)}."
        first = new.a if decision.verdict == "better" else new.b
        sure = probability(decision.confidence)
        return f"On new queries of the same kind {first} is better{_by(new)}, probability {sure}."

    def _likelier(self, comparison: Comparison) -> str:
        """Return the likelier direction with its probability, and the rest where there is a rope."""
        first, p, worse = comparison.a, comparison.p_better, comparison.p_worse
        if p < worse:
            first, p, worse = comparison.b, worse, p
        text = f"{first} is better{_by(comparison)} with probability {probability(p)}"
        if not comparison.rope:
            return text
        return f"{text} (within that {probability(comparison.p_equal)}, worse {probability(worse)})"

    def _equal(self, comparison: Comparison) -> str:
        size = f"differ by no more than {comparison.rope:g}" if comparison.rope else "have equal scores"
        return f"{comparison.a} and {comparison.b} {size}"

    def _contributed(self) -> list[str]:
        bare = self.unlabelled
        if bare is None:
            return []
        return [
            f"Without labels the difference would be {bare.difference.mean():+.4f}, and {bare.a} better{_by(bare)} "
            f"with probability {probability(bare.p_better)}; with them it is {self.here.difference.mean():+.4f}, and "
            f"{probability(self.here.p_better)}."
        ]


def _by(comparison: Comparison) -> str:
    """Return the size that better and worse are meant by, where there is a rope."""
    return f" by more than {comparison.rope:g}" if comparison.rope else ""


def probability(p: float) -> str:
    """Return a probability with the precision of a thousand draws.

    >>> probability(0.98765), probability(1.0)
    ('0.988', '>0.999')
    """
    return "<0.001" if p < THREE else ">0.999" if p > 1 - THREE else f"{p:.3f}"


def decide(
    estimate: ScoreEstimate, a: str, b: str, *, level: float = 0.95, unlabelled: ScoreEstimate | None = None
) -> TwoSystems:
    """Compare two systems on these queries and on new ones.

    Parameters
    ----------
    estimate
        The scores.
    a, b
        The systems.
    level
        The probability that a verdict needs, and that of intervals.
    unlabelled
        The same without labels (:func:`without_labels`), to see what they contributed.
    """
    rope, new = estimate.estimation.rope, on_new_queries(estimate.scores)
    return TwoSystems(
        estimate.scores.with_target("collection").compare(a, b, rope=rope),
        None if new is None else new.compare(a, b, rope=rope),
        None if unlabelled is None else unlabelled.scores.with_target("collection").compare(a, b, rope=rope),
        level,
    )


def on_new_queries(scores: Scores) -> Scores | None:
    """Return the same scores for the population of queries, Student's t; None for a single query.

    With all pairs judged, its intervals and p-values are those of the paired t test.
    """
    if scores.n_effective <= 1 or np.isnan(scores.joint.between).any():
        return None
    return replace(scores, target="population", family="t")


def without_labels(estimate: ScoreEstimate) -> ScoreEstimate | None:
    """Return the same had there been no labels; None without labels, or with a model that needs them."""
    collection = estimate.estimation.collection
    if collection.labels is None or collection.consensus or not isinstance(estimate.estimation.model, Hierarchical):
        return None
    return estimate.relabelled(())
