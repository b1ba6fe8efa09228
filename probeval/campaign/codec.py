"""Events as rows of a store, and back; those of earlier versions in their form."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from functools import cache
from typing import Any

import msgspec

from probeval.campaign.events import (
    Changed,
    Commented,
    Created,
    Event,
    Flagged,
    GuidelineChanged,
    Imported,
    Invited,
    Labelled,
    Leased,
    PhaseChanged,
    QueriesChanged,
    QueryGuidelinesChanged,
    Released,
    Revoked,
    RunsAdded,
    SignedIn,
    SignedOut,
    Skipped,
    TopicsAssigned,
    Withdrawn,
)
from probeval.campaign.questions import COMPARISON, GRADE, KINDS, Kind
from probeval.data.scale import Scale

__all__ = ["decode", "encode", "event_classes"]

HEAD = ("number", "time", "by", "token")
EVENTS: tuple[type[Event], ...] = (
    Created, Changed, GuidelineChanged, QueryGuidelinesChanged, QueriesChanged, TopicsAssigned, Leased, Released,
    Withdrawn, Skipped, Flagged, Commented, Imported, Labelled, RunsAdded, PhaseChanged, Invited, Revoked, SignedIn,
    SignedOut,
)  # fmt: skip


def event_classes() -> dict[str, type[Event]]:
    """The events that a log may have, by their kind: the general ones, and those of each kind of question."""
    return _event_classes(tuple(KINDS.values()))


@cache
def _event_classes(kinds: tuple[Kind, ...]) -> dict[str, type[Event]]:
    own = (event for kind in kinds for event in (kind.answered, kind.settled, kind.gold) if event is not None)
    return {event.kind: event for event in (*EVENTS, *own)}


def encode(event: Event) -> dict[str, Any]:
    """An event as a row of the store: common fields in columns, the rest as JSON.

    >>> from probeval.campaign import Judged
    >>> row = encode(Judged(by="ann", time=5.0, number=3, query="q", documents=("d",), grade=2.0, guideline=1))
    >>> row["kind"], row["body"]
    ('judged', '{"query":"q","documents":["d"],"guideline":1,"grade":2.0}')
    """
    values = ((field, getattr(event, field.name)) for field in fields(event) if field.name not in HEAD)
    rest = {field.name: _plain(value) for field, value in values if value != field.default}
    head = {name: getattr(event, name) for name in HEAD}
    return head | {"kind": event.kind, "body": json.dumps(rest, separators=(",", ":"))}


def _plain(value: Any) -> Any:
    return asdict(value) if hasattr(value, "__dataclass_fields__") else value


def decode(row: Mapping[str, Any]) -> Event:
    """The event in a row of the store.

    >>> from probeval.campaign import Leased
    >>> event = Leased(by="ann", time=5.0, number=3, query="q", documents=("d",), until=65.0)
    >>> decode(encode(event)) == event
    True
    """
    body, kind = json.loads(row["body"]), row["kind"]
    if kind in EARLIER:
        kind, body = EARLIER[kind](kind, body)
    event, given = event_classes()[kind], {name: row[name] for name in HEAD} | body
    unknown = given.keys() - event.__dataclass_fields__.keys()
    if unknown:
        raise TypeError(f"unknown field {min(unknown)}")
    return msgspec.convert(given, event)


# Events of schemas 1 and 2


Body = dict[str, Any]


def _documents(kind: str, body: Body) -> tuple[str, Body]:
    """One document, or two: ``doc`` and ``other``, or ``left`` and ``right``."""
    if "documents" in body:
        return kind, body
    pair = [body.pop(name) for name in ("doc", "other", "left", "right") if name in body]
    body["documents"] = [doc for doc in pair if doc]
    return kind, body


def _task(kind: str, body: Body) -> tuple[str, Body]:
    """A question that an assessor got."""
    kind, body = _documents(kind, body)
    return kind, {"asks": COMPARISON if len(body["documents"]) > 1 else GRADE, **body}


def _lists(kind: str, body: Body) -> tuple[str, Body]:
    """A question about two lists, by its number."""
    if "question" in body:
        number, swapped = body.pop("question"), body.pop("swapped", False)
        letters = "ba" if swapped else "ab"
        body |= {"query": "", "documents": [f"{number}{letter}" for letter in letters]}
    return kind, body


def _lists_withdrawn(kind: str, body: Body) -> tuple[str, Body]:
    number = body.pop("answer")
    return Withdrawn.kind, {**_lists(kind, body)[1], "asks": "lists", "judgment": number}


def _study(kind: str, body: Body) -> tuple[str, Body]:
    """A study with users, which is a campaign that asks about lists."""
    given = body["study"]
    scale = asdict(Scale.parse(given.pop("scale")))
    return Created.kind, {"setup": {**given, "scale": scale, "model": "none", "ask": "lists"}}


EARLIER: dict[str, Callable[[str, Body], tuple[str, Body]]] = {
    "judged": _documents,
    "compared": _documents,
    "adjudicated": _documents,
    "comparison adjudicated": _documents,
    "leased": _task,
    "released": _task,
    "withdrawn": _task,
    "skipped": _task,
    "lists compared": _lists,
    "lists withdrawn": _lists_withdrawn,
    "study created": _study,
}
