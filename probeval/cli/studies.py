"""Inputs that studies of reliability share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, TypeVar

from probeval.api.evidence import as_scale
from probeval.api.studies import StudyInputs, is_score_table
from probeval.cli.output import Messages
from probeval.errors import ProbevalError
from probeval.records import About
from probeval.scores.evaluate import as_metric

__all__ = ["StudyMetrics", "study_each"]

S = TypeVar("S", bound=StudyInputs)
R = TypeVar("R")


StudyMetrics = Annotated[
    list[str] | None, About("A measure such as nDCG@10, for runs.", metavar="METRIC", kind=str, many=True)
]


def study_each(given: S, metrics: Sequence[str], study: Callable[[S], R], messages: Messages) -> tuple[R, ...]:
    """The studies of each measure, or of a table of scores; runs are read once."""
    if not metrics:
        if not is_score_table(given.runs):
            raise ProbevalError("Runs need a measure (--metric nDCG@10); a single table (.csv) is read as scores.")
        return (messages.warned(lambda: study(given)),)
    names = [str(as_metric(text)) for text in metrics]
    if given.model == "none":
        given.refuse("judgments")
    collection = messages.warned(lambda: given.collection(given.runs, scale=as_scale(given.scale), reporter=messages))
    if given.model == "none" and collection.judgments is None:
        raise ProbevalError("Runs need judgments (--qrels FILE), or a model that works without them (--model NAME).")
    read = given.read_as(collection)
    return tuple(messages.warned(lambda name=name: study(replace(read, metric=name))) for name in names)  # type: ignore[misc]
