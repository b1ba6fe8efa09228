"""Results of tasks as plain data, for JSON."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from probeval.relevance.answers.verdicts import AnswersUsed
from probeval.scores.documents import EvaluateDocument, NewQuerySystem, RankedSystem
from probeval.scores.labels import LabelsUsed
from probeval.scores.trust import TrustDocument
from probeval.scores.two_systems import DecidedPair
from probeval.scores.verdict import VerdictDocument

__all__ = [
    "CheckedStop",
    "EvaluationDocument",
    "GateCheckDocument",
    "GateDocument",
    "GateForecastDocument",
    "LaterDocument",
    "ModelComparisonsDocument",
    "NeededPair",
    "NextDocument",
    "NextPair",
    "ReuseDocument",
]

GateVerdict = Literal["better", "not worse", "worse", "tied", "undecided"]


class EvaluationDocument(EvaluateDocument):
    """A ranking, and the model that it rests on.

    Parameters
    ----------
    labels
        The sources of labels, where there are any.
    answers
        The answers about documents and their assessors, where there are any.
    trust
        How reliable each source of labels is, if asked for.
    """

    labels: NotRequired[LabelsUsed]
    answers: NotRequired[AnswersUsed]
    trust: NotRequired[TrustDocument]


class NextPair(TypedDict):
    """A pair to judge.

    Parameters
    ----------
    grade, sd
        The grade that is expected, and its standard deviation.
    systems, best_rank
        The number of systems that retrieved the document, and its best rank.
    probability
        The probability with which exploration drew the pair; null if the policy chose it.
    """

    query: str
    doc: str
    grade: float
    sd: float
    systems: int
    best_rank: int
    probability: float | None


class CheckedStop(TypedDict):
    """Whether the stopping rule says stop.

    Parameters
    ----------
    reached, reasons
        Whether it does, and why.
    values
        The value of each of its figures.
    """

    reached: bool
    reasons: list[str]
    values: dict[str, float]


class NextDocument(TypedDict):
    """The pairs to judge next.

    Parameters
    ----------
    metric, model, policy, goal
        The measure, the model, the policy and the goal.
    pool, judged, rope, confidence
        The number of pairs, the number judged, the largest difference that does not matter, and the mean confidence
        over pairs of systems.
    comparisons
        The number of comparisons of systems in each state.
    labels
        The sources of labels, where there are any.
    answers
        The answers about documents and their assessors, where there are any.
    """

    metric: str
    model: str
    policy: str
    goal: str
    pool: int
    judged: int
    rope: float
    confidence: float
    stop: CheckedStop
    comparisons: VerdictDocument
    labels: NotRequired[LabelsUsed]
    answers: NotRequired[AnswersUsed]
    next: list[NextPair]


class NeededPair(TypedDict):
    """A pair to judge for a later system.

    Parameters
    ----------
    rank
        The rank of the document in the system's list; null outside it.
    grade, sd
        The grade that is expected, and its standard deviation.
    halfwidth
        The expected half-width of the system's interval, once this pair and those above it are judged.
    """

    query: str
    doc: str
    rank: float
    grade: float
    sd: float
    halfwidth: float


class LaterDocument(TypedDict):
    """A later system, evaluated with the judgments of a campaign.

    Parameters
    ----------
    mean, lower, upper
        Its expected score by the model, and the interval; null without a model, as all figures by the model.
    rank, rank_lower, rank_upper
        Its rank among the first systems, itself included, and the interval of its rank.
    p_better, best
        The probability that it is better than the best of the first systems, and the name of that one.
    needed, target
        The number of judgments until its interval is as narrow as those of the first systems, whose median half-width
        is the target; null if more than the listed pairs are needed.
    judged
        The share of its retrieved documents that is judged.
    classical, classical_rank, bound_lower, bound_upper
        Its score and rank with unjudged documents as not relevant, and the bounds that they leave.
    pairs
        The pairs that it needs, the most informative first.
    """

    system: str
    mean: float
    lower: float
    upper: float
    rank: int | None
    rank_lower: int | None
    rank_upper: int | None
    p_better: float
    needed: int | None
    judged: float
    classical: float
    classical_rank: int
    bound_lower: float
    bound_upper: float
    best: str | None
    target: float
    pairs: list[NeededPair]


class ReuseDocument(TypedDict):
    """Later systems, evaluated with the judgments of a campaign.

    Parameters
    ----------
    metric, model, depth
        The measure, the model (``none`` for classical scores alone), and the depth of the pool.
    first
        The number of systems of the campaign.
    together
        Whether the later systems joined the campaign together; else each one alone.
    level
        The probability of intervals.
    """

    metric: str
    model: str
    depth: int
    first: int
    together: bool
    level: float
    systems: list[LaterDocument]


class GateCheckDocument(TypedDict):
    """The new system against the baseline by one measure, on all queries or on a segment of them.

    Parameters
    ----------
    metric, segment, queries
        The measure; the segment, null for all queries; the number of queries.
    pool, judged
        The number of pairs of these queries, and the number judged.
    new, baseline
        The expected scores.
    difference, lower, upper
        The expected difference, new less baseline, and the ends of its interval, each of which leaves out 1 - level.
    p_better, p_equal, p_worse
        The probabilities that the new system is better by more than the rope, that the two differ by no more than the
        rope, and that the new one is worse by more than the rope.
    p_pass, p_pass_new_queries
        The probability that the new system is as demanded; the same on new queries, null for a single query.
    verdict
        The verdict at the level.
    """

    metric: str
    segment: str | None
    queries: int
    pool: int
    judged: int
    new: float
    baseline: float
    difference: float
    lower: float
    upper: float
    p_better: float
    p_equal: float
    p_worse: float
    p_pass: float
    p_pass_new_queries: float
    verdict: GateVerdict


class GateForecastDocument(TypedDict):
    """The judgments that are likely to settle an undecided gate.

    Parameters
    ----------
    judgments, lower, upper
        The number of further judgments, with its 90% interval.
    settled
        The share of simulated truths in which judgments settle it.
    """

    judgments: int
    lower: int
    upper: int
    settled: float


class GateDocument(TypedDict):
    """The verdict on a new system against a baseline.

    Parameters
    ----------
    verdict, passed, exit_code, reason
        The verdict; whether the new system passes; the exit code of the command; one sentence on why.
    new, baseline, model
        The two systems, and the relevance model.
    level, rope, not_worse, target
        The probability that a verdict needs; the largest difference that does not matter; whether a system that is not
        worse passes; whether scores are on these queries or on their population.
    checks, segments
        One entry per measure on all queries, which decide; one per measure and segment.
    forecast
        The judgments that are likely to settle it, if undecided and asked for.
    """

    verdict: GateVerdict
    passed: bool
    exit_code: int
    reason: str
    new: str
    baseline: str
    model: str
    level: float
    rope: float
    not_worse: bool
    target: str
    checks: list[GateCheckDocument]
    segments: list[GateCheckDocument]
    forecast: NotRequired[GateForecastDocument]


class ModelComparisonsDocument(TypedDict):
    """Every pair of systems, compared by a relevance model.

    Parameters
    ----------
    metric, model
        The measure, and the model that predicts unjudged pairs.
    method
        ``model``, where tests have the name of the test.
    level, rope
        The confidence from which there is a verdict, and the largest difference that does not matter.
    pool, judged
        The number of pairs of query and document, and of these the number judged.
    labels
        The sources of labels, where there are any.
    goal, next
        If a pair of systems is open: the goal of further judging, and the next pairs to judge.
    noticeable
        The least difference in score that half of the users notice, where it is known for the measure.
    new_query
        What to expect of each system on one new query, if asked for.
    """

    metric: NotRequired[str]
    method: Literal["model"]
    model: str
    level: float
    rope: float
    pool: int
    judged: int
    systems: list[RankedSystem]
    pairs: list[DecidedPair]
    labels: NotRequired[LabelsUsed]
    goal: NotRequired[str]
    next: NotRequired[list[NextPair]]
    noticeable: NotRequired[float]
    new_query: NotRequired[list[NewQuerySystem]]
