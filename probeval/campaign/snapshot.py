"""What the model says of a campaign as it stands: how sure the ranking is, whether to stop, what to judge next.

This is the slow part, so nobody waits for it: an snapshot is computed apart, kept in the store, and used until a newer
one is there. It can always be computed again from the log.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict, cast

import numpy as np
import pandas as pd

from probeval.campaign.events import Pair
from probeval.campaign.setup import Setup
from probeval.campaign.state import State
from probeval.data.collection import Collection
from probeval.data.judgments import Judgments
from probeval.display import Shown, View
from probeval.relevance import Card, choose_model
from probeval.scores.documents import RankedSystem

if TYPE_CHECKING:
    from probeval.relevance.models.base import Predicts
    from probeval.selection import Judging, JudgingState

__all__ = ["AHEAD", "ModelRunner", "ModelSnapshot", "SnapshotDocument", "judgments_left", "way_come"]

AHEAD = 200  # pairs proposed in advance
LEVEL = 0.95
MEMORY = 20  # snapshots that an estimate goes by
FEWEST = 20  # judgments between the first snapshot and the last, before which an estimate means nothing


class SnapshotDocument(TypedDict):
    """What the model says at one moment.

    Parameters
    ----------
    number, time
        The last event of the log that it knows of, and when it was computed.
    judged
        Pairs of the pool that had a grade.
    confidence, expected_tau
        How sure the ranking is.
    reached, reasons, progress
        Whether the stopping rule says stop, why, and how far it is, from 0 to 1.
    systems
        The ranking, best first.
    """

    number: int
    time: float
    judged: int
    confidence: float
    expected_tau: float
    reached: bool
    reasons: list[str]
    progress: float
    systems: list[RankedSystem]


@dataclass(frozen=True, repr=False)
class ModelSnapshot(Shown):
    """What the model says at one moment.

    Parameters
    ----------
    number
        The last event of the log that it knows of.
    time
        When it was computed.
    judged
        Pairs of the pool that had a grade.
    confidence, expected_tau
        How sure the ranking is: mean confidence over pairs of systems, and the tau that it can expect.
    reached, reasons, progress
        Whether the stopping rule says stop, why, and how far it is, from 0 to 1.
    systems
        The ranking, best first: system, rank, mean, sd, lower, upper, p_best, group.
    queue
        Pairs to judge next, best first.
    """

    number: int
    time: float
    judged: int
    confidence: float
    expected_tau: float
    reached: bool
    reasons: tuple[str, ...]
    progress: float
    systems: tuple[Mapping[str, Any], ...]
    queue: tuple[Pair, ...]

    def to_frame(self) -> pd.DataFrame:
        """One row per system, best first: system, rank, mean, sd, lower, upper, p_best, group."""
        return pd.DataFrame(list(self.systems))

    def to_dict(self) -> SnapshotDocument:
        """The snapshot as plain data for JSON, without the queue."""
        return {
            "number": self.number,
            "time": self.time,
            "judged": self.judged,
            "confidence": self.confidence,
            "expected_tau": self.expected_tau,
            "reached": self.reached,
            "reasons": list(self.reasons),
            "progress": self.progress,
            "systems": [cast("RankedSystem", dict(row)) for row in self.systems],
        }

    def _headline(self) -> str:
        return f"{self.judged:,} pairs judged, confidence {self.confidence:.3f}"

    def views(self) -> tuple[View, ...]:
        """One row per system."""
        return (View(self.to_frame(), self._headline(), intervals=("mean", "lower", "upper")),)

    def sentences(self) -> tuple[str, ...]:
        """Whether the target is met."""
        if self.reached:
            return (f"Target met: {'; '.join(self.reasons)}.",)
        return (f"Expected tau {self.expected_tau:.3f}; {self.progress:.0%} of the target.",)

    def to_row(self) -> dict[str, Any]:
        """A row of the store."""
        head = {name: getattr(self, name) for name in HEAD}
        rest = {name: value for name, value in asdict(self).items() if name not in HEAD}
        return head | {"body": json.dumps(rest)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> ModelSnapshot:
        """From a row of the store."""
        rest = json.loads(row["body"])
        rest |= {"reasons": tuple(rest["reasons"]), "systems": tuple(rest["systems"])}
        rest["queue"] = tuple((query, doc) for query, doc in rest["queue"])
        return cls(**{name: row[name] for name in HEAD}, **rest)


HEAD = ("number", "time", "judged", "confidence", "progress")


class ModelRunner:
    """Follows a campaign with its model, and says how it stands.

    It remembers the last fit, so that the next one starts there. One thread at a time.

    Parameters
    ----------
    collection
        Runs and evidence, without judgments.
    card
        The card of the campaign's own model as JSON, where it is not one that ships.
    """

    def __init__(self, collection: Collection, *, card: bytes | None = None) -> None:
        self._collection, self._card = collection, card
        self._judging_state: JudgingState | None = None
        self._setup: Setup | None = None

    def judging_state(self, state: State) -> JudgingState:
        """The judging as it stands: scores, ranking, what comes next."""
        judgments, last = state.judgments, self._judging_state
        if last is not None and self._setup == state.settings and _grew(last.judgments, judgments):
            self._judging_state = last.after(judgments)
        else:
            self._setup = state.settings
            self._judging_state = self._judging(state).begin()
        return self._judging_state

    def snapshot(self, state: State, *, now: float, ahead: int = AHEAD) -> ModelSnapshot:
        """What the model says of this state."""
        from probeval.selection import Stopping

        judged = self.judging_state(state)
        pool, ranking = judged.judging.pool, judged.ranking
        check = Stopping.parse(state.settings.stopping).check(judged)
        table = ranking.to_frame(level=LEVEL)
        return ModelSnapshot(
            number=state.number,
            time=now,
            judged=judged.scores.judged,
            confidence=ranking.confidence,
            expected_tau=ranking.expected_tau,
            reached=check.reached,
            reasons=tuple(check.reasons),
            progress=check.progress,
            systems=tuple({str(k): _plain(v) for k, v in row.items()} for row in table.to_dict("records")),
            queue=tuple(pool.label(int(pair)) for pair in judged.next(min(ahead, len(pool) - judged.scores.judged))),
        )

    def _judging(self, state: State) -> Judging:
        from probeval.selection import Judging

        setup = state.settings
        collection = replace(self._collection, judgments=state.judgments)
        return Judging.of(
            collection,
            model=self._model(setup, collection),
            metric=setup.metric,
            policy=setup.policy,
            goal=setup.goal,
            scale=setup.scale,
            depth=setup.depth,
            seed=setup.seed,
        )

    def _model(self, setup: Setup, collection: Collection) -> Predicts:
        if self._card is None:
            return choose_model(setup.model, collection, scale=setup.scale).model
        return Card.from_dict(json.loads(self._card)).model


def _grew(before: Judgments, after: Judgments) -> bool:
    """Whether every grade of before still stands: nothing was withdrawn, changed or settled otherwise."""
    at = before.pool.within(after.pool)
    return bool(np.all(at >= 0) and np.array_equal(before.grades(), after.grades()[at], equal_nan=True))


def way_come(curve: Sequence[tuple[int, float]]) -> float | None:
    """How much of the way to the target is done, from 0 at the campaign's first snapshot to 1; None before that.

    Parameters
    ----------
    curve
        Judged pairs and progress from 0 to 1, snapshot by snapshot.

    Examples
    --------
    >>> way_come([(0, 0.25), (30, 0.5), (60, 0.7)])
    0.6
    """
    if not curve:
        return None
    first, last = curve[0][1], curve[-1][1]
    return 1.0 if last >= 1 else max(0.0, (last - first) / (1 - first))


def judgments_left(curve: Sequence[tuple[int, float]], unjudged: int) -> int | None:
    """How many more judgments until the rule says stop, by a line through the latest progress; None if unknown.

    It is unknown before the snapshots have seen 20 judgments come: a line through fewer is noise.

    Parameters
    ----------
    curve
        Judged pairs and progress from 0 to 1, snapshot by snapshot.
    unjudged
        There are no more than these.

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


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
