"""The decision between two systems: on these queries and on new ones, with and without labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NotRequired

import numpy as np
import pandas as pd

from probeval.display import Table
from probeval.relevance.models.hierarchical import Hierarchical
from probeval.results import Result
from probeval.scores.compare import Comparison
from probeval.scores.documents import UserEffects
from probeval.scores.estimate import ScoreEstimate
from probeval.scores.scores import Scores

__all__ = ["DecidedPair", "TwoSystems", "decide", "on_new_queries", "without_labels"]

THREE = 0.0005  # the smallest probability that three decimals show


class DecidedPair(UserEffects):
    """A pair of systems compared by a relevance model, on these queries and on new ones.

    Parameters
    ----------
    a, b
        The systems.
    difference, lower, upper
        The expected score of a less that of b on these queries, and its interval.
    p_better, p_equal, p_worse
        The probabilities that a is better by more than the rope, that they differ by no more, and that a is worse.
    confidence, verdict
        The probability of the verdict, and the verdict: ``better`` or ``worse`` (of a), ``equal`` (within the rope) or
        ``open`` (below the level). A verdict of better or worse is on the direction alone.
    lower_new, upper_new, p_better_new, p_equal_new, p_worse_new, verdict_new
        The same for new queries of the same kind; absent for a single query.
    difference_unlabelled, p_better_unlabelled
        On these queries, had there been no labels; absent without labels.
    sat, sat_lower, sat_upper, p_sat, success, success_lower, success_upper, noticed
        Where satisfaction is known for the measure: the change in the share of satisfied users with its interval, the
        probability that it is for the better, the change in the share of queries that satisfy most users with its
        interval, and the share of users who notice the difference.
    """

    a: str
    b: str
    difference: float
    lower: float
    upper: float
    p_better: float
    p_equal: float
    p_worse: float
    confidence: float
    verdict: str
    lower_new: NotRequired[float]
    upper_new: NotRequired[float]
    p_better_new: NotRequired[float]
    p_equal_new: NotRequired[float]
    p_worse_new: NotRequired[float]
    verdict_new: NotRequired[str]
    difference_unlabelled: NotRequired[float]
    p_better_unlabelled: NotRequired[float]


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
        The confidence from which there is a verdict.

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

    @property
    def verdict(self) -> str:
        """``better``, ``worse``, ``equal`` or ``open``, on these queries."""
        return self.here.verdict(level=self.level)

    @property
    def is_open(self) -> bool:
        """Whether more judgments may decide."""
        return self.verdict == "open"

    def to_frame(self) -> pd.DataFrame:
        """One row for these queries, one for new ones, and one for these queries without labels.

        The columns are queries, difference, lower, upper, p_better, p_equal (with a rope), p_worse, verdict and, with a
        rope, the confidence of the verdict: that of the direction alone, or of a tie.
        """
        rows = {"these": self.here, "new": self.new, "these, without labels": self.unlabelled}
        frame = pd.DataFrame([self._row(name, one) for name, one in rows.items() if one is not None])
        return frame if self.here.rope else frame.drop(columns=["p_equal", "confidence"])

    def _row(self, queries: str, comparison: Comparison) -> dict[str, str | float]:
        low, high = comparison.difference.interval(self.level)
        return {
            "queries": queries,
            "difference": comparison.difference.mean(),
            "lower": low,
            "upper": high,
            "p_better": comparison.p_better,
            "p_equal": comparison.p_equal,
            "p_worse": comparison.p_worse,
            "verdict": comparison.verdict(level=self.level),
            "confidence": comparison.confidence,
        }

    def to_dict(self) -> DecidedPair:
        """The decision as plain data for JSON."""
        here, new = self.here, self.new
        low, high = here.difference.interval(self.level)
        pair: DecidedPair = {
            "a": here.a,
            "b": here.b,
            "difference": here.difference.mean(),
            "lower": low,
            "upper": high,
            "p_better": here.p_better,
            "p_equal": here.p_equal,
            "p_worse": here.p_worse,
            "confidence": here.confidence,
            "verdict": self.verdict,
        }
        if new is not None:
            pair["lower_new"], pair["upper_new"] = new.difference.interval(self.level)
            pair["p_better_new"], pair["p_equal_new"], pair["p_worse_new"] = new.p_better, new.p_equal, new.p_worse
            pair["verdict_new"] = new.verdict(level=self.level)
        if self.unlabelled is not None:
            pair["difference_unlabelled"] = self.unlabelled.difference.mean()
            pair["p_better_unlabelled"] = self.unlabelled.p_better
        return pair

    def tables(self) -> tuple[Table]:
        """The rows of :meth:`to_frame`."""
        title = f"{self.here.difference.scores.metric}, {self.here.a} less {self.here.b}"
        return (Table(self.to_frame(), title, intervals=("difference", "lower", "upper")),)

    def sentences(self) -> tuple[str, ...]:
        """The verdict on these queries, that on new ones, and what labels contributed."""
        return (self.on_these, *([] if self.new is None else [self.on_new]), *self._contributed())

    @property
    def on_these(self) -> str:
        """The verdict on these queries, in a sentence."""
        here, verdict = self.here, self.verdict
        if verdict == "open":
            return f"It is open which of the two is better on these queries: {self._likelier(here)}."
        if verdict == "equal":
            return f"{self._equal(here)} on these queries, probability {probability(here.p_equal)}."
        first, second = (here.a, here.b) if verdict == "better" else (here.b, here.a)
        mean, (low, high) = here.difference.mean(), here.difference.interval(self.level)
        if verdict == "worse":
            mean, low, high = -mean, -high, -low
        size = f"{mean:.4f} more {here.difference.scores.metric} [{low:.4f}, {high:.4f}]"
        text = f"{first} is better than {second} on these queries: {size}, probability {probability(here.confidence)}"
        if here.rope:
            more = here.p_better if verdict == "better" else here.p_worse
            text += f" ({probability(more)} by more than {here.rope:g})"
        return f"{text}."

    @property
    def on_new(self) -> str:
        """The verdict on new queries, in a sentence."""
        new = self.new
        assert new is not None
        verdict = new.verdict(level=self.level)
        if verdict == "open":
            return f"On new queries of the same kind it is open: {self._likelier(new)}."
        if verdict == "equal":
            return f"On new queries of the same kind {self._equal(new)}, probability {probability(new.p_equal)}."
        first = new.a if verdict == "better" else new.b
        return f"On new queries of the same kind {first} is better, probability {probability(new.confidence)}."

    def _likelier(self, comparison: Comparison) -> str:
        """Return the likelier direction with its probability, and the rest where there is a rope."""
        first, p, worse = comparison.a, comparison.p_better, comparison.p_worse
        if p < worse:
            first, p, worse = comparison.b, worse, p
        if not comparison.rope:
            return f"{first} is with probability {probability(p)}"
        return (
            f"{first} is, by more than {comparison.rope:g}, with probability {probability(p)} (within that "
            f"{probability(comparison.p_equal)}, worse {probability(worse)})"
        )

    def _equal(self, comparison: Comparison) -> str:
        size = f"differ by no more than {comparison.rope:g}" if comparison.rope else "have equal scores"
        return f"{comparison.a} and {comparison.b} {size}"

    def _contributed(self) -> list[str]:
        bare = self.unlabelled
        if bare is None:
            return []
        by = f" by more than {bare.rope:g}" if bare.rope else ""
        return [
            f"Without labels the difference would be {bare.difference.mean():+.4f}, and {bare.a} better{by} with "
            f"probability {probability(bare.p_better)}; with them it is {self.here.difference.mean():+.4f}, and "
            f"{probability(self.here.p_better)}."
        ]


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
        The confidence from which there is a verdict, and the probability of intervals.
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
    if len(scores.queries) < 2 or np.isnan(scores.joint.between).any():
        return None
    return replace(scores, target="population", family="t")


def without_labels(estimate: ScoreEstimate) -> ScoreEstimate | None:
    """Return the same had there been no labels; None without labels, or with a model that needs them."""
    collection = estimate.estimation.collection
    if collection.labels is None or collection.consensus or not isinstance(estimate.estimation.model, Hierarchical):
        return None
    return estimate.relabelled(())
