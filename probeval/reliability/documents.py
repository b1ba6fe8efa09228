"""The types of tested comparisons as plain data."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from probeval.scores.documents import NewQuerySystem, UserEffects

__all__ = ["ComparedPair", "ComparedSystem", "FriedmanDocument", "PairwiseDocument"]


class ComparedSystem(TypedDict):
    """A system and its mean score.

    Parameters
    ----------
    system, rank
        Its name, and its rank by mean; ties share one.
    mean, lower, upper
        The mean score over queries, and its interval.
    mean_rank
        The mean of its ranks on each query, 1 the best.
    p_target, adjusted_target, verdict_target
        With a target: the p-value of the test of the mean against it, the same corrected for the number of systems, and
        the verdict: ``above``, ``below`` or ``open``.
    """

    system: str
    rank: int
    mean: float
    lower: float
    upper: float
    mean_rank: float
    p_target: NotRequired[float]
    adjusted_target: NotRequired[float]
    verdict_target: NotRequired[str]


class ComparedPair(UserEffects):
    """A pair of systems, tested.

    Parameters
    ----------
    a, b, queries
        The systems, and how many queries they share.
    difference, lower, upper
        The mean score of a less that of b, and its interval.
    statistic, p, adjusted
        Of the test, and the p-value corrected for the number of pairs.
    verdict
        ``better``, ``worse``, ``equal`` (within the rope) or ``open``.
    d, d_lower, d_upper
        The difference over its standard deviation.
    won, won_lower, won_upper
        The share of queries on which a is better.
    p_tost
        With a rope: the p-value of the equivalence test, whose hypothesis is a difference beyond the rope.
    p_noninferior, noninferior
        With a margin: the p-value of the test that the other system is not inferior to the baseline by more than the
        margin, corrected for the number of systems, and whether it is shown: yes, or open. Null for the other pairs.
    when_judged
        Whether the difference will be significant when everything is judged: yes, no or open.
    p_significant
        The probability that it will be, with a model.
    sat, sat_lower, sat_upper, p_sat, success, success_lower, success_upper, noticed
        Where satisfaction is known for the measure: the change in the share of satisfied users with its interval, the
        probability that it is for the better, the change in the share of queries that satisfy most users with its
        interval, and the share of users who notice the difference.
    report
        The difference for a paper: value, half-width, p.
    """

    a: str
    b: str
    queries: int
    difference: float
    lower: float
    upper: float
    statistic: float
    p: float
    adjusted: float
    verdict: str
    d: float
    d_lower: float
    d_upper: float
    won: float
    won_lower: float
    won_upper: float
    p_tost: NotRequired[float]
    p_noninferior: NotRequired[float]
    noninferior: NotRequired[str | None]
    when_judged: NotRequired[str]
    p_significant: NotRequired[float]
    report: str


class FriedmanDocument(TypedDict):
    """The test of all systems by their ranks."""

    statistic: float
    p: float
    critical_difference: float


class PairwiseDocument(TypedDict):
    """Every pair of systems, tested.

    Parameters
    ----------
    metric
        The measure, where the scores come from runs.
    method, correction
        The test, and how p-values were corrected for their number.
    level, rope
        The probability that intervals hold, and the difference up to which systems count as equal.
    alternative
        ``two-sided``, or of one-tailed tests against a baseline ``greater`` or ``less``.
    target, margin
        The score that means are tested against, and the margin of non-inferiority, where given.
    discrimination
        The share of pairs that differ significantly.
    noticeable
        The least difference in score that half of the users notice, where it is known for the measure.
    new_query
        What to expect of each system on one new query, if asked for.
    """

    metric: NotRequired[str]
    method: str
    correction: str
    level: float
    rope: float
    alternative: str
    target: NotRequired[float]
    margin: NotRequired[float]
    discrimination: float
    friedman: FriedmanDocument | None
    systems: list[ComparedSystem]
    pairs: list[ComparedPair]
    noticeable: NotRequired[float]
    new_query: NotRequired[list[NewQuerySystem]]
