"""The integrity of a store: what should hold of every log, checked row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from probeval.campaign.archive import unpack
from probeval.campaign.candidates import Candidates, Material
from probeval.campaign.events import (
    Answered,
    Created,
    Event,
    GoldChanged,
    Labelled,
    PairEvent,
    QuestionEvent,
    RunsAdded,
    Withdrawn,
)
from probeval.campaign.kinds import Adjudicated, Judged
from probeval.campaign.log import Store, chained, decode, event_classes
from probeval.campaign.questions import Pair, Question, graded
from probeval.campaign.snapshot import ModelSnapshot
from probeval.campaign.state import State, fold
from probeval.characters import printable
from probeval.data.judgments import on_scale
from probeval.display import counted
from probeval.errors import ProbevalError, StoreError
from probeval.results import Result

__all__ = ["CampaignCheck", "StoreCheck", "check_store"]


@dataclass(frozen=True)
class CampaignCheck:
    """The check of one campaign."""

    campaign: str
    events: Annotated[int, "The number of its events."]
    judgments: Annotated[int, "The number of its judgments; answers about two documents count as judgments."]
    parts: Annotated[int, "The number of its parts."]
    faults: Annotated[int, "The number of its faults."]


@dataclass(frozen=True, repr=False)
class StoreCheck(Result):
    """The check of a store."""

    store: Annotated[str, "Its name."]
    campaigns: Annotated[tuple[CampaignCheck, ...], "The check of each campaign."]
    faults: Annotated[tuple[str, ...], "Every fault, in a line."]
    warnings: Annotated[tuple[str, ...], "What may be wrong though the store does not show it, such as a missing end."]

    @property
    def exit_code(self) -> int:
        """1 if there is a fault."""
        return int(bool(self.faults))

    def _headline(self) -> str:
        return f"{self.store}, {counted(len(self.campaigns), 'campaign')}, {counted(len(self.faults), 'fault')}"

    def sentences(self) -> tuple[str, ...]:
        """Every fault and warning."""
        faults = tuple(printable(f"Fault: {fault}.") for fault in self.faults) or ("No faults.",)
        return faults + tuple(printable(f"Warning: {warning}.") for warning in self.warnings)


def check_store(store: Store) -> StoreCheck:
    """Check a store: its file, and of each campaign the log and the parts.

    - Events are numbered 1, 2, 3, .. without gaps, every one can be read, and its digest is right; so none was changed,
      removed or moved. A person who can write to the store can compute digests too: this finds accidents, not forgery.
    - Grades are on the scale, and judgments of pairs that some run retrieves, unless they were imported or are gold.
    - A withdrawal names an earlier judgment of the same pair by the same person.
    - Every part that an event names is there, and its digest is right.
    - The latest snapshot can be read, and none includes an event beyond the end of the log.

    A plain copy of an SQLite file in use has no fault, but lacks the events in the log beside it: that is a warning.
    """
    faults, known = store.integrity(), event_classes()
    campaigns = []
    for name, key in store.campaigns().items():
        try:
            found = list(_faults(store, key, name))
        except StoreError as error:  # rows that the database cannot read
            found = [str(error)]
        rows = store.event_rows(key)
        campaigns.append(
            CampaignCheck(
                campaign=name,
                events=len(rows),
                judgments=sum(issubclass(known.get(row["kind"], Event), Answered) for row in rows),
                parts=len(store.part_names(key)),
                faults=len(found),
            )
        )
        faults += [f"campaign {name!r}: {each}" for each in found]
    return StoreCheck(store.name, tuple(campaigns), tuple(faults), tuple(store.warnings()))


def _faults(store: Store, key: int, name: str) -> Iterator[str]:
    rows = store.event_rows(key)
    yield from _broken_chain(rows)
    events = []
    for row in rows:
        try:
            events.append(decode(row))
        except StoreError as error:
            yield str(error)
    yield from _broken_parts(store, key, events)
    try:
        state = fold(State(), events)
        own = [kind.material(lambda part: store.part(key, part)) for kind in state.settings.kinds]
        late = [event.part for event in state.runs]
        material = next(filter(None, own), None)
        if material is None:
            collection = unpack(name, lambda part: store.part(key, part), late=late)
            material = Candidates(collection, state.settings.depth)
    except ProbevalError as error:
        yield str(error)
        return
    yield from _wrong_events(events, state, material)
    snapshot = store.snapshot(key)
    if snapshot is not None and ModelSnapshot.read(snapshot) is None:
        yield "the latest snapshot cannot be read: the model computes it again"
    last = max((point["number"] for point in store.curve(key)), default=0)
    if last > state.number:
        yield f"the log ends at event {state.number}, but a snapshot includes event {last}: the end is missing"


def _broken_chain(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A gap in the numbers, and the events whose digest does not follow from the one before."""
    before = ""
    for expected, row in enumerate(rows, start=1):
        if row["number"] != expected:
            yield f"event {expected} is missing: event {row['number']} comes instead"
            return
        if chained(before, [row]) != [row["digest"]]:
            yield f"event {expected} was changed, or an event before it: its digest is not the one that was written"
        before = row["digest"]


def _broken_parts(store: Store, key: int, events: Sequence[Event]) -> Iterator[str]:
    names = store.part_names(key)
    wanted = {event.part: event.number for event in events if isinstance(event, (Labelled, RunsAdded))}
    for part, number in wanted.items():
        if part not in names:
            yield f"the part {part!r} of event {number} is missing"
    for part in names:
        try:
            store.part(key, part)
        except StoreError:
            yield f"the part {part!r} is damaged"


def _wrong_events(events: Sequence[Event], state: State, material: Material) -> Iterator[str]:
    """Events that no decision could have made."""
    scale, standing, gold = state.settings.scale, dict[int, tuple[Question, str]](), set[Pair]()
    for event in events:
        if isinstance(event, Created) != (event.number == 1):
            yield f"event {event.number}: only the first event creates the campaign"
        if isinstance(event, (Judged, Adjudicated)) and not on_scale(scale, event.grade):
            yield f"event {event.number}: grade {event.grade:g} is not on the scale {scale}"
        if isinstance(event, GoldChanged):
            gold.update(pair for question in event.known for pair in question.pairs)
        try:
            for question in () if isinstance(event, Answered) and event.source else _asked(event):
                if not gold.issuperset(question.pairs):
                    material.check(question)
        except ProbevalError as error:
            yield f"event {event.number}: {str(error).rstrip('.')}"
        if isinstance(event, Answered):
            standing[event.number] = event.question, event.by
        elif isinstance(event, Withdrawn) and standing.pop(event.judgment, None) != (event.question, event.by):
            yield f"event {event.number}: no answer {event.judgment} to this question by {event.by!r} to withdraw"


def _asked(event: Event) -> Iterator[Question]:
    """The question that an event is about."""
    if isinstance(event, QuestionEvent):
        yield event.question
    elif isinstance(event, PairEvent):
        yield graded(*event.pair)
