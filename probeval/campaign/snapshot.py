"""Snapshots of the model's results: confidence, the ranking, the stopping rule, the pairs to judge next.

A snapshot is computed apart from judging, kept in the store, and used until a newer one replaces it. It can always be
recomputed from the log.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Annotated, Any, get_type_hints

import msgspec
import numpy as np
import pandas as pd

from probeval.campaign.archive import digest_of
from probeval.campaign.questions import Pair, Question, as_question, graded
from probeval.campaign.verdicts import Surprise
from probeval.display import Table
from probeval.relevance.answers.verdicts import AnsweringAssessor
from probeval.relevance.surprise import SurprisingGrades
from probeval.results import Result, frame, plain
from probeval.scores.compare import RankedSystem
from probeval.scores.scores import INDEPENDENT
from probeval.selection import AuditReport, Pick, Stopping, StoppingFigure
from probeval.selection.rules import CONFIDENCE
from probeval.selection.stopping import stated
from probeval.selection.topics import Queue

__all__ = [
    "ForecastPoint",
    "ModelSnapshot",
    "TargetForecast",
    "Tendency",
    "forecast_target",
    "judgments_left",
    "target_confidence",
    "way_come",
]

MEMORY = 20  # latest snapshots that an estimate uses
FEWEST = 20  # judgments from the first snapshot to the last; with fewer, an estimate is noise
HEAD = ("number", "time", "judged", "confidence", "progress")  # columns of the store; the rest is JSON


@dataclass(frozen=True)
class ForecastPoint:
    """The expected confidence after a number of judgments, with its interval."""

    judged: int
    confidence: float
    lower: float
    upper: float


@dataclass(frozen=True)
class TargetForecast:
    """The expected rise of confidence to the target, from simulated judging."""

    target: Annotated[float, "The confidence that the stopping rule asks for."]
    judged: Annotated[int, "Judged pairs when the forecast was made."]
    needed: Annotated[float, "Judged pairs when the target is reached: the median."]
    lower: Annotated[float, "The lower end of its 90% interval."]
    upper: Annotated[float, "The upper end of its 90% interval."]
    points: Annotated[tuple[ForecastPoint, ...], "The trajectory."]
    number: Annotated[int, "The last event of the log that it includes; 0 in stores of earlier versions."] = 0

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> TargetForecast:
        """From the JSON of the store."""
        return cls(**{**stored, "points": tuple(ForecastPoint(**point) for point in stored["points"])})


@dataclass(frozen=True)
class Tendency:
    """How much more easily than the others an assessor gives high grades, in logits, with the 95% interval."""

    assessor: str
    tendency: float
    lower: float
    upper: float


@dataclass(frozen=True)
class RankingFigures:
    """How sure a ranking is."""

    confidence: Annotated[float, "The mean confidence over pairs of systems."]
    expected_tau: Annotated[float, "The expected Kendall's tau of the ranking."]


@dataclass(frozen=True, repr=False)
class ModelSnapshot(Result):
    """The model's results on the judgments up to one event."""

    number: Annotated[int, "The last event of the log that it includes."]
    time: Annotated[float, "The time of the computation, in seconds since 1970."]
    judged: Annotated[int, "Pairs of the pool that had a grade, and answers about two documents."]
    confidence: Annotated[
        float, "The mean confidence over the comparisons of the goal: all pairs of systems, for a ranking."
    ]
    expected_tau: Annotated[float, "The expected Kendall's tau of the ranking."]
    reached: Annotated[bool, "Whether the stopping rule is met."]
    reasons: Annotated[tuple[str, ...], "Why it is met."]
    progress: Annotated[float, "The progress towards it, from 0 to 1."]
    systems: Annotated[tuple[RankedSystem, ...], "The ranking, best first."]
    # Pairs to judge next: the best first, and by topic some of every query.
    queue: tuple[Pair, ...]
    # The trust in each source of labels: source, slope, lower, upper, missing, judged, finding. Examined again after
    # every few dozen judgments.
    labels: tuple[Mapping[str, Any], ...] = ()
    surprising: Annotated[
        SurprisingGrades | None,
        "The judgments that the model expects the least given all others; null if unknown. They are looked for again "
        "after every few dozen judgments.",
    ] = None
    audit: Annotated[
        AuditReport | None,
        "The level and the systems by the model and by the pairs drawn at random, and the alarm; null if unknown.",
    ] = None
    # The prediction of each pair of the queue, to be kept with its lease.
    picks: tuple[Pick, ...] = ()
    # The value of each pair of the queue, and when it is due if it was drawn at random
    # (probeval.selection.topics.Queue). Without values, in order.
    values: tuple[float, ...] = ()
    due: tuple[int | None, ...] = ()
    # Two documents to compare, and what each answer is worth per second, as are then the values of a mixed queue; none
    # if the model does not choose them.
    comparisons: tuple[Question, ...] = ()
    comparison_values: tuple[float, ...] = ()
    forecast: Annotated[
        TargetForecast | None,
        "The expected rise of confidence to the target; null if there is no forecast. It is made again after every few "
        "dozen judgments.",
    ] = None
    # For each query the standard deviation of a system's score on it (root mean square over systems).
    uncertainty: Mapping[str, float] = field(default_factory=dict)
    # How generous each assessor is, by the model of assessors; empty with few pairs that several judged.
    tendencies: tuple[Tendency, ...] = ()
    # The verdicts on the assessors who answered about two documents; empty if the model does not use answers.
    answering: tuple[AnsweringAssessor, ...] = ()
    # What the model expected of the grades of each assessor; looked for again as often as surprising grades.
    surprise: tuple[Surprise, ...] = ()
    uses_answers: bool = True
    as_certain: Annotated[RankingFigures | None, "The figures with answers as certain; null if unknown."] = None
    by_consensus: Annotated[
        RankingFigures | None,
        "The figures with the errors of assessors; null if no answer is checked, so that grades are taken as right.",
    ] = None
    figures: Annotated[
        tuple[StoppingFigure, ...],
        "The figures of the model that the stopping rule tests, each beside its target; empty for a budget alone.",
    ] = ()
    # Whether the fit began anew: one that begins with the fit before it may differ in the third decimal.
    fresh: bool = False
    independent: Annotated[
        bool, "Whether the model takes pairs as independent: confidence and intervals are then not calibrated."
    ] = False

    @cached_property
    def topic_queue(self) -> Queue[Question, str]:
        """The queue for assessors, with the topic of each pair."""
        values, topics = self.values or (1.0,) * len(self.queue), [query for query, _ in self.queue]
        return Queue([graded(*pair) for pair in self.queue], topics, values, self.due or (None,) * len(self.queue))

    @cached_property
    def pick_of(self) -> Mapping[Question, Pick]:
        """The prediction of each pair of the queue; snapshots of earlier versions have none."""
        return dict(zip(self.topic_queue.pairs, self.picks, strict=False))

    @property
    def draws(self) -> Mapping[Pair, int]:
        """The pairs of the queue that were drawn at random, and when each is due."""
        return {pair: due for pair, due in zip(self.queue, self.due, strict=False) if due is not None}

    def to_frame(self) -> pd.DataFrame:
        """One row per system, best first: system, rank, mean, sd, lower, upper, p_best, group."""
        return frame(self.systems, RankedSystem)

    def _headline(self) -> str:
        return f"{self.judged:,} pairs judged, {self.stated}{self.caveat}"

    def forecast_for(self, target: float | None, aimed: int) -> TargetForecast | None:
        """The forecast, if it is for this target and of what the confidence is of since event ``aimed``."""
        found = self.forecast
        return found if found is not None and found.target == target and found.number >= aimed else None

    @property
    def stated(self) -> str:
        """What the stopping rule tests, beside its targets; the confidence if it tests nothing of the model."""
        return stated(self.figures, self.confidence)

    @property
    def caveat(self) -> str:
        """The end of a sentence: empty, or that a model of independent pairs is not calibrated."""
        return f"; {INDEPENDENT}" if self.independent else ""

    def tables(self) -> tuple[Table, ...]:
        """One row per system."""
        return (Table(self.to_frame(), self._headline(), intervals=("mean", "lower", "upper")),)

    def sentences(self) -> tuple[str, ...]:
        """Whether the target is met, and the audit."""
        audited = () if self.audit is None else self.audit.sentences()
        if self.reached:
            return (f"Target met: {'; '.join(self.reasons)}.", *audited)
        return (f"Expected tau {self.expected_tau:.3f}; {self.progress:.0%} of the target.", *audited)

    def to_row(self) -> dict[str, Any]:
        """As a row of the store."""
        head = {name: getattr(self, name) for name in HEAD}
        rest = {name: value for name, value in asdict(self).items() if name not in HEAD}
        rest["systems"] = plain(self.systems)
        rest["comparisons"] = [question.names for question in self.comparisons]
        return head | {"body": json.dumps({**rest, "digest": _digest(head, rest)})}

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> ModelSnapshot | None:
        """From a row of the store; None if it is damaged."""
        try:
            return cls.from_row(row)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> ModelSnapshot:
        """From a row of the store."""
        rest = json.loads(row["body"])
        written = rest.pop("digest", None)  # those of earlier versions have none
        if written is not None and written != _digest({name: row[name] for name in HEAD}, rest):
            raise ValueError("not what was written")
        rest |= {"reasons": tuple(rest["reasons"]), "systems": tuple(RankedSystem(**each) for each in rest["systems"])}
        rest["labels"] = tuple(rest.get("labels", ()))  # snapshots of earlier versions have none
        rest["queue"] = tuple((query, doc) for query, doc in rest["queue"])
        surprised = rest.get("surprising")
        rest["surprising"] = None if surprised is None else SurprisingGrades.from_dict(surprised)
        audited = rest.get("audit")
        rest["audit"] = None if audited is None else AuditReport.from_dict(audited)
        ahead = rest.get("forecast")
        rest["forecast"] = None if ahead is None else TargetForecast.from_dict(ahead)
        rest["picks"] = tuple(map(Pick.from_dict, rest.get("picks", ())))
        rest |= {"values": tuple(rest.get("values", ())), "due": tuple(rest.get("due", ()))}
        rest["tendencies"] = tuple(Tendency(**each) for each in rest.get("tendencies", ()))
        rest["answering"] = tuple(AnsweringAssessor(**one) for one in rest.get("answering", ()))
        rest["surprise"] = tuple(
            Surprise(**{**one, "log_likelihood": tuple(one["log_likelihood"])}) for one in rest.get("surprise", ())
        )
        rest["figures"] = tuple(StoppingFigure(**one) for one in rest.get("figures", ()))
        for name in ("as_certain", "by_consensus"):
            rest[name] = None if rest.get(name) is None else RankingFigures(**rest[name])
        rest["comparisons"] = tuple(map(as_question, rest.get("comparisons", ())))
        rest["comparison_values"] = tuple(rest.get("comparison_values", ()))
        found = cls(**{name: row[name] for name in HEAD}, **rest)
        if written is None:  # nothing else tells whether its values are of their types
            for name, kind in get_type_hints(cls).items():
                msgspec.convert(msgspec.to_builtins(getattr(found, name)), kind)
        return found


def _digest(head: Mapping[str, Any], rest: Mapping[str, Any]) -> str:
    return digest_of(json.dumps([head, rest]).encode())


def target_confidence(stopping: Stopping) -> float | None:
    """The mean confidence that a stopping rule requires, the lowest of several; None if it requires none.

    >>> target_confidence(Stopping.parse("confidence=.9+halfwidth=.02,budget=100"))
    0.9
    """
    return min(stopping.targets(CONFIDENCE), default=None)


def forecast_target(stopping: Stopping) -> float | None:
    """The mean confidence at which a stopping rule is met by itself, the lowest of several; None if there is none.

    A forecast is of confidence alone: of a rule that asks for more beside it, it would promise too much.

    >>> rules = "confidence=.9,budget=100", "confidence=.9+halfwidth=.02,confidence=.95", "confidence=.9+halfwidth=.02"
    >>> [forecast_target(Stopping.parse(rule)) for rule in rules]
    [0.9, 0.95, None]
    """
    alone = [together[0] for together in stopping.alternatives if len(together) == 1]
    return min((one.target for one in alone if one.rule == CONFIDENCE), default=None)


def way_come(curve: Sequence[tuple[int, float]]) -> float | None:
    """Progress to the target, from 0 at the campaign's first snapshot to 1; None before the first.

    A target that was met at once, and was raised since, says nothing of the first snapshot: then the way begins at 0.

    Parameters
    ----------
    curve
        Judged pairs and progress from 0 to 1, snapshot by snapshot.

    Examples
    --------
    >>> way_come([(0, 0.25), (30, 0.5), (60, 0.7)]), way_come([(0, 1.0), (30, 0.7)])
    (0.6, 0.7)
    """
    if not curve:
        return None
    first, last = curve[0][1], curve[-1][1]
    if first >= 1:
        first = 0.0
    return 1.0 if last >= 1 else max(0.0, (last - first) / (1 - first))


def judgments_left(curve: Sequence[tuple[int, float]], unjudged: int) -> int | None:
    """Judgments still needed to meet the stopping rule, by a line through the latest progress; None if unknown.

    It is unknown until 20 judgments lie between the first snapshot and the last: a line through fewer is noise.

    Parameters
    ----------
    curve
        Judged pairs and progress from 0 to 1, snapshot by snapshot.
    unjudged
        The number of unjudged pairs, an upper bound.

    Examples
    --------
    >>> judgments_left([(0, 0.0), (10, 0.2), (20, 0.4)], unjudged=500)
    30
    >>> judgments_left([(0, 0.0), (10, 0.2)], unjudged=500)
    """
    judged, progress = np.array(curve[-MEMORY:], dtype=float).reshape(-1, 2).T
    if len(judged) and progress[-1] >= 1:
        return 0
    if not len(judged) or judged[-1] - curve[0][0] < FEWEST or np.ptp(judged) == 0:
        return None
    slope = np.polyfit(judged, progress, 1)[0]
    return min(unjudged, int(np.ceil((1 - progress[-1]) / slope - 1e-9))) if slope > 0 else None
