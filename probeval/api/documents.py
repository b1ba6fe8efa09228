"""Results of tasks as plain data, for JSON."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from probeval.relevance.answers.verdicts import AnswersDocument
from probeval.scores.documents import EvaluateDocument
from probeval.scores.labels import LabelsUsed
from probeval.scores.trust import TrustDocument
from probeval.scores.verdict import VerdictDocument

__all__ = [
    "CheckedStop",
    "EvaluationDocument",
    "NextDocument",
    "NextPair",
]


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
    answers: NotRequired[AnswersDocument]
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
    answers: NotRequired[AnswersDocument]
    next: list[NextPair]
