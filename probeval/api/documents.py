"""Results of tasks as plain data, for JSON."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from probeval.scores.documents import EvaluateDocument, RankedSystem
from probeval.selection.labels import LabelsDocument
from probeval.selection.trust import TrustDocument
from probeval.selection.two_systems import DecidedPair
from probeval.selection.verdict import VerdictDocument

__all__ = ["CheckedStop", "EvaluationDocument", "ModelComparisonsDocument", "NextDocument", "NextPair"]


class EvaluationDocument(EvaluateDocument):
    """A ranking, and the model that it rests on.

    Parameters
    ----------
    labels
        The sources of labels, where there are any.
    trust
        How reliable each source of labels is, if asked for.
    """

    labels: NotRequired[LabelsDocument]
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
    labels: NotRequired[LabelsDocument]
    next: list[NextPair]


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
    labels: NotRequired[LabelsDocument]
    goal: NotRequired[str]
    next: NotRequired[list[NextPair]]
    noticeable: NotRequired[float]
