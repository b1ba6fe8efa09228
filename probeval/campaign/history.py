"""The history of a campaign: its events as lines for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any

from probeval.campaign.events import (
    Changed,
    Created,
    Event,
    GoldChanged,
    GuidelineChanged,
    Imported,
    Invited,
    Labelled,
    PairEvent,
    PhaseChanged,
    QueriesChanged,
    QueryGuidelinesChanged,
    QuestionEvent,
    Restored,
    Revoked,
    RunsAdded,
    SetAside,
    TaskPurpose,
    TopicsAssigned,
)
from probeval.campaign.setup import Setup
from probeval.characters import printable
from probeval.display import counted

__all__ = ["HistoryEntry", "changed_settings", "history"]

# Events that change what a campaign is, apart from its judgments.
CHANGES = (
    Created, Changed, GuidelineChanged, QueryGuidelinesChanged, QueriesChanged, TopicsAssigned, GoldChanged,
    Imported, Labelled, RunsAdded, PhaseChanged, Invited, Revoked,
    SetAside, Restored,
)  # fmt: skip
HIDDEN = {"number", "time", "by", "token", "query", "doc", "documents", "asks", "pick", "digest", "until", "part"}
LONGEST = 120


@dataclass(frozen=True)
class HistoryEntry:
    """An event as a line for people."""

    TIMES = ("time",)

    number: int
    time: Annotated[float, "In seconds since 1970."]
    by: Annotated[str, "Its author."]
    event: Annotated[str, "Its kind."]
    what: Annotated[str, "The values that it carries, in one line."]


def history(log: Iterable[Event], *, everything: bool = False) -> list[HistoryEntry]:
    """The events of a log that changed the campaign, oldest first.

    Parameters
    ----------
    log
        All events, from the first on.
    everything
        Also those of assessors: leases, judgments, comments and the like.
    """
    entries, setup = list[HistoryEntry](), None
    for event in log:
        if everything or isinstance(event, CHANGES):
            entries.append(HistoryEntry(event.number, event.time, event.by, event.kind, _one_line(_what(event, setup))))
        setup = event.setup if isinstance(event, (Created, Changed)) else setup
    return entries


def changed_settings(before: Setup, after: Setup) -> dict[str, tuple[Any, Any]]:
    """The settings that differ: the old value and the new one, by name."""
    old, new = before.to_dict(), after.to_dict()
    return {name: (old[name], new[name]) for name in new if old[name] != new[name]}


def _what(event: Event, before: Setup | None) -> str:
    match event:
        case Created() if event.setup.ask == "lists":
            return f"{event.setup.metric}, scale {event.setup.scale}, lists of {event.setup.depth}"
        case Created():
            return f"{event.setup.metric}, scale {event.setup.scale}, {event.setup.stopping}"
        case Changed() if before is not None:
            changes = changed_settings(before, event.setup)
            return ", ".join(f"{name} {old} -> {new}" for name, (old, new) in changes.items())
        case RunsAdded():
            return f"{', '.join(event.systems)}; {event.pairs:,} new pairs"
        case QueriesChanged():
            return f"{len(event.texts):,} texts"
        case GoldChanged():
            what = {"grade": "pair", "comparison": "comparison"}.get(event.asks, "question")
            return counted(len(event.known), what)
        case GuidelineChanged():
            return f"version {event.version}: {event.text.strip()}"
        case Imported():
            n, what = (event.answers, "answers") if event.answers else (event.judgments, "judgments")
            return f"{event.source}: {n:,} {what}"
        case Labelled():
            return f"{event.source}: {', '.join(event.columns)}, {event.pairs:,} pairs"
        case Revoked():
            return event.assessor
        case SetAside() | Restored():
            return f"{event.assessor}: {event.reason}" if event.reason else event.assessor
        case Invited():
            return f"{event.assessor} as {event.role}"
        case PhaseChanged():
            return f"{event.phase}: {event.reason}" if event.reason else str(event.phase)
    own = vars(type(event)).get("__annotations__", {})  # what the kind of event adds comes first
    names = sorted(
        (field.name for field in fields(event) if field.name not in HIDDEN), key=lambda name: name not in own
    )
    rest = {name: getattr(event, name) for name in names}
    about = [event.query, event.doc] if isinstance(event, PairEvent) else []
    about = [event.query, *event.documents] if isinstance(event, QuestionEvent) else about
    return " ".join([*filter(None, about), *_described(rest)])


def _described(values: Mapping[str, Any]) -> list[str]:
    nothing = (None, "", 0, (), TaskPurpose.judgment)
    return [f"{name} {value}" for name, value in values.items() if isinstance(value, bool) or value not in nothing]


def _one_line(text: str) -> str:
    """Text on one short line, as a terminal shows it."""
    shown = printable(text)
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"
