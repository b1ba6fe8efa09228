"""The four significance rules of Urbano and Schedl (2012) along a trajectory, and their accuracy.

See docs/theory/significance.md#rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from probeval.arrays import Floats
from probeval.display import Record
from probeval.errors import SelectionError, did_you_mean
from probeval.reliability.incomplete import difference_bounds, rules
from probeval.reliability.multiple import significant_signs
from probeval.reliability.paired import pair_index
from probeval.reliability.power import minimum_difference
from probeval.reliability.twoway import two_way
from probeval.scores import Scores
from probeval.selection import JudgingState

__all__ = ["RuleDecisions", "RuleSettings", "apply_rules"]

SETTINGS = ("gate", "threshold", "sd")


@dataclass(frozen=True, repr=False)
class RuleSettings(Record):
    """The settings of rule 4: the differences that are taken as significant before the bounds decide.

    Parameters
    ----------
    gate
        The least confidence in the sign of a difference with which it is taken as significant; 0 for any.
    threshold
        The size above which an estimated difference is taken as significant. None: the difference that a one-tailed
        paired t test at .05 finds with power .85, given ``sd`` and the number of queries.
    sd
        The standard deviation of differences over queries behind the threshold. None: estimated from the collection as
        judged so far. The paper has .248, from earlier editions of MIREX.

    Examples
    --------
    >>> published = RuleSettings.parse("gate=0,sd=.248")
    >>> published.gate, published.sd, published.threshold
    (0.0, 0.248, None)
    >>> str(RuleSettings())
    'gate=0.95'
    """

    gate: float = 0.95
    threshold: float | None = None
    sd: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.gate <= 1:
            raise SelectionError(f"The gate of rule 4 is a confidence, from 0 to 1; got {self.gate:g}.")
        if self.threshold is not None and not self.threshold >= 0:
            raise SelectionError(
                f"The threshold of rule 4 is a difference of scores, at least 0; got {self.threshold:g}."
            )
        if self.sd is not None and not self.sd > 0:
            raise SelectionError(f"The sd of rule 4 is a standard deviation above 0; got {self.sd:g}.")
        if self.threshold is not None and self.sd is not None:
            raise SelectionError("Rule 4 takes a threshold, or the sd that it follows from, not both: leave one out.")

    @classmethod
    def parse(cls, text: str | RuleSettings) -> RuleSettings:
        """Parse a text such as ``gate=.95,sd=.248``; what is not named has its default."""
        if isinstance(text, RuleSettings):
            return text
        given: dict[str, float] = {}
        for item in filter(None, (part.strip() for part in text.split(","))):
            name, _, value = (s.strip() for s in item.partition("="))
            if name not in SETTINGS:
                known = ", ".join(SETTINGS)
                raise SelectionError(f"No setting {name!r} of rule 4: {known}.{did_you_mean(name, SETTINGS)}")
            try:
                given[name] = float(value)
            except ValueError:
                raise SelectionError(
                    f"The {name} of rule 4 is a number, got {value!r}. Write for example {name}=.95."
                ) from None
        return cls(**given)

    def __str__(self) -> str:
        given = ((name, getattr(self, name)) for name in SETTINGS)
        return ",".join(f"{name}={value:.15g}" for name, value in given if value is not None)

    def threshold_at(self, scores: Scores) -> float | None:
        """Return the threshold, given the scores as estimated so far; None for a single query."""
        if self.threshold is not None:
            return self.threshold
        n = len(scores.queries)
        sd = collection_sd(scores) if self.sd is None else self.sd
        if n < 2 or not np.isfinite(sd):
            return None
        return minimum_difference(sd=sd, n=n, tails=1) if sd > 0 else 0.0


@dataclass(frozen=True)
class RuleDecisions:
    """The decisions of the rules of Urbano and Schedl (2012) after a number of judgments."""

    judged: Annotated[int, "The number of judged pairs."]
    decided: Annotated[float, "The share of pairs of systems that a rule decides."]
    precision: Annotated[
        float,
        "The precision of the differences decided to be significant, against those significant with all judgments "
        "(.05, same direction).",
    ]
    recall: Annotated[float, "Their recall."]
    f: Annotated[float, "The harmonic mean of the two."]
    threshold: Annotated[float | None, "The difference above which rule 4 applies; null for a single query."]


def collection_sd(scores: Scores) -> float:
    r"""Return the standard deviation of differences over queries that these scores let expect.

    The root of the mean over pairs of systems of :math:`E[s^2_{ab}]`, the expected sample variance of their
    differences: with all judgments, the sample variance itself. NaN for a single query or a single system.
    """
    a, b = pair_index(len(scores.systems))
    between = scores.joint.between
    own = np.diag(between)
    variance = (own[a] + own[b] - 2 * between[a, b]) * scores.n_effective
    return float(np.sqrt(np.maximum(variance, 0.0).mean())) if len(a) else float("nan")


def apply_rules(
    state: JudgingState, query_truth: Floats, *, settings: RuleSettings | None = None, test: str = "t"
) -> RuleDecisions:
    """Apply the rules at a state, and compare with the true scores.

    Parameters
    ----------
    state
        The collection, part judged. Rules 1 to 3 test its bounds by a paired t test.
    query_truth
        The true scores per query, shape (system, query).
    settings
        Those of rule 4.
    test
        The test of the true scores: one of :data:`probeval.reliability.SIGNIFICANCE`.
    """
    settings = RuleSettings() if settings is None else settings
    runs, relevance, metric = state.judging.runs, state.prediction.relevance, state.context.metric
    a, b = pair_index(len(runs.systems))
    lower, upper = difference_bounds(runs, relevance.judged, metric, relevance.scale)
    threshold = settings.threshold_at(state.scores)
    mean = state.scores.mean
    decisions = rules(
        lower,
        upper,
        estimate=mean[a] - mean[b],
        threshold=threshold,
        confidence=state.ranking.pair_confidence[a, b],
        gate=settings.gate,
    )
    table = two_way(decisions.sign, significant_signs(query_truth, test=test))
    decided = float(np.mean(decisions.rule > 0)) if len(a) else float("nan")
    return RuleDecisions(len(state.judgments), decided, table.precision, table.recall, table.f, threshold)
