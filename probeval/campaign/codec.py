"""Events as rows of a store, and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import Any

from probeval.campaign.events import KINDS, Event, Phase, Role, TaskPurpose
from probeval.campaign.setup import Setup
from probeval.campaign.study_events import STUDY_KINDS, StudySetup
from probeval.selection import Pick

__all__ = ["decode", "encode", "is_known"]

HEAD = ("number", "time", "by", "token")
ALL_KINDS = {**KINDS, **STUDY_KINDS}


def is_known(kind: str) -> bool:
    """Whether this version has events of a kind."""
    return kind in ALL_KINDS


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
    event = ALL_KINDS[row["kind"]](**{name: row[name] for name in HEAD}, **rest)
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
}
TYPES: dict[str, type | tuple[type, ...]] = {
    "str": str,
    "str | None": (str, type(None)),
    "int": int,
    "bool": bool,
    "float": (float, int),
    "float | None": (float, int, type(None)),
}
