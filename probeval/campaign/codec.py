"""Events as rows of a store, and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import Any

from probeval.campaign.comparison_events import Compared, ComparisonAdjudicated, GoldOrdersChanged
from probeval.campaign.events import (
    Adjudicated,
    Changed,
    Commented,
    Created,
    Event,
    Flagged,
    GoldChanged,
    GuidelineChanged,
    Imported,
    Invited,
    Judged,
    Labelled,
    Leased,
    Phase,
    PhaseChanged,
    QueriesChanged,
    QueryGuidelinesChanged,
    Released,
    Revoked,
    Role,
    RunsAdded,
    SignedIn,
    SignedOut,
    Skipped,
    TaskPurpose,
    TopicsAssigned,
    Withdrawn,
)
from probeval.campaign.setup import Setup
from probeval.campaign.study_events import STUDY_EVENTS, StudySetup
from probeval.selection import Pick

__all__ = ["KINDS", "decode", "encode"]

HEAD = ("number", "time", "by", "token")
CAMPAIGN_EVENTS: tuple[type[Event], ...] = (
    Created, Changed, GuidelineChanged, QueryGuidelinesChanged, QueriesChanged, GoldChanged, GoldOrdersChanged,
    TopicsAssigned, Leased, Released, Judged, Compared, Withdrawn, Skipped, Flagged, Commented, Adjudicated,
    ComparisonAdjudicated, Imported, Labelled, RunsAdded, PhaseChanged, Invited, Revoked, SignedIn, SignedOut,
)  # fmt: skip
KINDS = {event.kind: event for event in (*CAMPAIGN_EVENTS, *STUDY_EVENTS)}


def encode(event: Event) -> dict[str, Any]:
    """An event as a row of the store: common fields in columns, the rest as JSON.

    >>> from probeval.campaign.events import Judged
    >>> row = encode(Judged(by="ann", time=5.0, number=3, query="q", doc="d", grade=2.0, guideline=1))
    >>> row["kind"], row["body"]
    ('judged', '{"query":"q","doc":"d","grade":2.0,"guideline":1}')
    """
    default = {field.name: field.default for field in fields(event)}
    rest = {name: value for name, value in asdict(event).items() if name not in HEAD and value != default[name]}
    if "setup" in rest:
        rest["setup"] = event.setup.to_dict()  # type: ignore[attr-defined]
    head = {name: getattr(event, name) for name in HEAD}
    return head | {"kind": event.kind, "body": json.dumps(rest, separators=(",", ":"))}


def decode(row: Mapping[str, Any]) -> Event:
    """The event in a row of the store.

    >>> from probeval.campaign.events import Leased
    >>> event = Leased(by="ann", time=5.0, number=3, query="q", doc="d", until=65.0)
    >>> decode(encode(event)) == event
    True
    """
    rest = json.loads(row["body"])
    for name, convert in CONVERTED.items():
        if rest.get(name) is not None:
            rest[name] = convert(rest[name])
    event = KINDS[row["kind"]](**{name: row[name] for name in HEAD}, **rest)
    for field in fields(event):
        wanted, value = TYPES.get(str(field.type)), getattr(event, field.name)
        if wanted is not None and (not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool)):
            raise TypeError(f"{field.name} must be {field.type}, got {value!r}")
    return event


CONVERTED: dict[str, Callable[[Any], Any]] = {
    "setup": Setup.from_dict,
    "pick": Pick.from_dict,
    "columns": tuple,
    "systems": tuple,
    "phase": Phase,
    "purpose": TaskPurpose,
    "role": Role,
    "study": StudySetup.from_dict,
    "orders": lambda orders: {query: tuple(map(tuple, pairs)) for query, pairs in orders.items()},
}
TYPES: dict[str, type | tuple[type, ...]] = {
    "str": str,
    "str | None": (str, type(None)),
    "int": int,
    "bool": bool,
    "float": (float, int),
    "float | None": (float, int, type(None)),
}
