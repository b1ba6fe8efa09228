"""Classical scores: by the judgments alone, unjudged documents counting as not relevant."""

from __future__ import annotations

from probeval.api.evidence import unanswered
from probeval.data import Collection, Judgments, Scale
from probeval.data.scale import Gain
from probeval.errors import DataError
from probeval.metrics import Measured, Metric, measure
from probeval.reporting import Reporter

__all__ = ["judged_scores", "note_left_out", "required_judgments"]


def required_judgments(collection: Collection) -> Judgments:
    """The judgments of a collection, or an error where it has none."""
    if collection.judgments is None:
        raise DataError("This task needs judgments. Without any, a relevance model can rank the systems.")
    return collection.judgments


def judged_scores(
    collection: Collection, metric: Metric, *, scale: Scale | None = None, gain: Gain | None = None,
    depth: int | None = None, aggregate: str = "mean",
) -> Measured:  # fmt: skip
    """Scores of a collection by its judgments alone, with the bounds that unjudged documents leave."""
    judgments = required_judgments(collection)
    grades = judgments.scale(scale)
    grades = grades if gain is None else grades.with_gain(gain)
    return measure(collection.runs, judgments, metric, scale=grades, depth=depth, aggregate=aggregate)


def note_left_out(collection: Collection, found: Measured, reporter: Reporter) -> None:
    """Report the queries that only the runs or only the judgments have: judgments alone cannot score them."""
    alone, missing = set(collection.runs.queries) - set(found.queries), unanswered(collection)
    if alone:
        reporter.say(f"{len(alone)} queries of the runs have no judgment and are left out.")
    if missing:
        reporter.say(f"{len(missing)} judged queries are answered by no run and are left out.")
