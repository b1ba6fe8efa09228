"""The four significance rules of Urbano and Schedl (2012) along a trajectory, and their accuracy.

See docs/theory/significance.md#rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from probeval.arrays import Floats
from probeval.reliability.incomplete import difference_bounds, rules
from probeval.reliability.paired import differences, pair_index, t_test
from probeval.reliability.power import minimum_difference
from probeval.reliability.twoway import signed, two_way
from probeval.selection import JudgingState

__all__ = ["RuleDecisions", "RuleDecisionsDocument", "apply_rules"]

SD = 0.248  # of differences over queries, in the power analysis behind rule 4 (Urbano and Schedl 2012)


class RuleDecisionsDocument(TypedDict):
    """The decisions of the rules of Urbano and Schedl (2012) after a number of judgments.

    Parameters
    ----------
    judged, decided
        The number of judged pairs, and the share of pairs of systems that a rule decides.
    precision, recall, f
        Of the differences decided to be significant, against the truly significant ones.
    """

    judged: int
    decided: float
    precision: float
    recall: float
    f: float


@dataclass(frozen=True)
class RuleDecisions:
    """The decisions of the rules after a number of judgments, against the tests with all judgments.

    Parameters
    ----------
    judged
        The number of judged pairs.
    decided
        The share of pairs of systems that a rule decides.
    precision, recall, f
        Of the differences decided to be significant, against those significant with all judgments (paired t test, .05,
        same direction).
    """

    judged: int
    decided: float
    precision: float
    recall: float
    f: float

    def to_dict(self) -> RuleDecisionsDocument:
        """Return the figures as plain data."""
        return {
            "judged": self.judged,
            "decided": self.decided,
            "precision": self.precision,
            "recall": self.recall,
            "f": self.f,
        }


def apply_rules(state: JudgingState, query_truth: Floats) -> RuleDecisions:
    """Apply the rules at a state, and compare with the true scores per query, shape (system, query)."""
    runs, relevance, metric = state.judging.runs, state.prediction.relevance, state.context.metric
    a, b = pair_index(len(runs.systems))
    lower, upper = difference_bounds(runs, relevance.judged, metric, relevance.scale)
    n = query_truth.shape[1]
    threshold = minimum_difference(sd=SD, n=n, tails=1) if n > 1 else None
    mean = state.scores.mean
    decisions = rules(lower, upper, estimate=mean[a] - mean[b], threshold=threshold)
    gap = differences(query_truth, a, b)
    table = two_way(decisions.sign, signed(gap.mean(axis=-1), t_test(gap)[1]))
    decided = float(np.mean(decisions.rule > 0)) if len(a) else float("nan")
    return RuleDecisions(len(state.judgments), decided, table.precision, table.recall, table.f)
