"""The types of scores, rankings and comparisons as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

from probeval.metrics.classical import PairDifference, QueryScore
from probeval.scores.ideal import IdealDocument

__all__ = [
    "ComparisonDocument",
    "EvaluateDocument",
    "PairDifference",
    "QueryScore",
    "RankedSystem",
    "RankingDocument",
    "ScoredSystem",
    "ScoresDocument",
    "scored_system",
]


class ScoredSystem(TypedDict):
    """A system and the distribution of its mean score.

    Parameters
    ----------
    system, rank
        Its name, and its rank by mean; ties share one.
    mean, sd, lower, upper
        The expected score, its standard deviation, and the ends of its interval.
    sd_judging, sd_sampling
        For the population of queries, the two parts of sd: relevance is not known, and other queries could have been
        drawn.
    """

    system: str
    rank: int
    mean: float
    sd: float
    lower: float
    upper: float
    sd_judging: NotRequired[float]
    sd_sampling: NotRequired[float]


class RankedSystem(ScoredSystem):
    """A system of a ranking.

    Parameters
    ----------
    system, rank
        Its name, and its rank by mean; ties share one.
    mean, sd, lower, upper
        The expected score, its standard deviation, and the ends of its interval.
    p_best
        The probability that it is the best.
    p_near_best
        With a rope: the probability that no system is better by more than the rope.
    group
        Its group, from 1 at the top: systems of a group do not differ from the best of it.
    sd_judging, sd_sampling
        For the population of queries, the two parts of sd: relevance is not known, and other queries could have been
        drawn.
    """

    p_best: float
    p_near_best: NotRequired[float]
    group: int


class ScoresDocument(TypedDict):
    """Scores without an order."""

    metric: str
    target: str
    method: str
    pool: int
    judged: int
    level: float
    systems: list[ScoredSystem]
    ideal: NotRequired[IdealDocument]
    queries: NotRequired[list[QueryScore]]


class RankingDocument(TypedDict):
    """A ranking.

    Parameters
    ----------
    metric, aggregate
        The measure, and the mean over queries if it is not the arithmetic one: ``gm``, ``gm-eps`` or ``gm-trec``.
    target
        ``collection``: these queries; ``population``: also other queries that could have been drawn.
    method
        How scores were computed: moments, draws, exact or taylor.
    pool, judged
        How many pairs the systems retrieved, and how many of them are judged.
    level
        The probability that intervals hold.
    confidence, expected_tau
        The mean confidence over pairs of systems, and the tau with the true order that is expected.
    ideal
        What the ideal list is taken from, for a measure that has one.
    rope
        The largest difference that does not matter, if there is one.
    systems, pairs, queries
        One entry per system, best first; one per pair of systems; with ``--per-query`` one per system and query.
    """

    metric: str
    aggregate: NotRequired[str]
    target: str
    method: str
    pool: int
    judged: int
    level: float
    confidence: float
    expected_tau: float
    systems: list[RankedSystem]
    pairs: list[PairDifference]
    ideal: NotRequired[IdealDocument]
    rope: NotRequired[float]
    queries: NotRequired[list[QueryScore]]


class EvaluateDocument(RankingDocument):
    """A ranking, and the model that it rests on."""

    model: str


class ComparisonDocument(TypedDict):
    """Two systems against each other, a less b.

    Parameters
    ----------
    a, b
        The systems.
    mean, sd, lower, upper
        The expected difference, its standard deviation, and the ends of its interval.
    p_worse, p_equal, p_better
        The probabilities that a is worse than b, that they differ by no more than the rope, that a is better.
    effect_size
        The expected difference over the standard deviation of the difference between queries.
    """

    a: str
    b: str
    rope: float
    level: float
    mean: float
    sd: float
    lower: float
    upper: float
    p_worse: float
    p_equal: float
    p_better: float
    effect_size: float


def scored_system(row: Mapping[str, Any]) -> ScoredSystem:
    """A row of a table of systems as plain data."""
    found: ScoredSystem = {
        "system": row["system"],
        "rank": int(row["rank"]),
        "mean": float(row["mean"]),
        "sd": float(row["sd"]),
        "lower": float(row["lower"]),
        "upper": float(row["upper"]),
    }
    if "sd_judging" in row:
        found["sd_judging"], found["sd_sampling"] = float(row["sd_judging"]), float(row["sd_sampling"])
    return found
