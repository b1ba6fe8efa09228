"""JSON output of the verbs without a result class."""

from __future__ import annotations

from typing import TypedDict

from probeval.api.documents import EvaluationDocument
from probeval.metrics.classical import MeasuredDocument

__all__ = ["Evaluations", "FairnessDocument", "TeamDocument"]


class Evaluations(TypedDict):
    """Several evaluations, one per measure."""

    results: list[EvaluationDocument | MeasuredDocument]


class TeamDocument(TypedDict):
    """The judging of a team, or of a system if there are no teams.

    Parameters
    ----------
    systems, pairs, judged
        Its numbers of systems and pairs, and the share of these pairs that is judged.
    own, own_judged
        The number of pairs that it alone retrieved, and the share of these that is judged.
    score, left_out, shift
        Its mean score, the mean score without its contribution to the pool, and the number of ranks it would lose.
    """

    team: str
    systems: int
    pairs: int
    judged: float
    own: int
    own_judged: float
    score: float
    left_out: float
    shift: int


class FairnessDocument(TypedDict):
    """The judging of every team."""

    teams: list[TeamDocument]
