"""Answers about documents as a state of the judging uses them."""

from __future__ import annotations

from probeval.relevance.answers.verdicts import AnswersUsed, answers_used
from probeval.relevance.models.base import FallbackModel
from probeval.selection.judging import JudgingState

__all__ = ["answers_of"]


def answers_of(state: JudgingState) -> AnswersUsed:
    """The answers at a state of the judging, and the verdict on each assessor; none without answers."""
    if state.collection.has_answers and isinstance(state.judging.model, FallbackModel):
        return AnswersUsed(used=False)
    return answers_used(state.prediction.answers)
