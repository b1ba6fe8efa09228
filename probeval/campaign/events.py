"""What can happen in a campaign. The log of these events is the campaign; all else is computed from it.

.. code-block:: text

    Created           the campaign began, with these settings
    Changed           settings changed
    GuidelineChanged  what assessors are told changed; versions count from 1
    QueriesChanged    texts of queries came, or changed
    Leased            a pair is somebody's to judge, until a time
    Released          it is no longer
    Judged            an assessor gave a pair a grade
    Withdrawn         a judgment was taken back; the one before it, if any, stands again
    Skipped           an assessor does not want to judge a pair
    Flagged           something is wrong with a pair
    Commented         a remark on a pair
    Adjudicated       somebody settled the grade of a pair, whatever assessors said
    Imported          a file was read; its judgments follow as events of their own
    Labelled          labels by machines came in: evidence, never judgments
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

from probeval.campaign.setup import Setup

__all__ = [
    "KINDS",
    "Adjudicated",
    "Changed",
    "Commented",
    "Created",
    "Event",
    "Flagged",
    "GuidelineChanged",
    "Imported",
    "Judged",
    "Labelled",
    "Leased",
    "Pair",
    "PairEvent",
    "QueriesChanged",
    "Released",
    "Skipped",
    "Withdrawn",
    "decode",
    "encode",
]

Pair = tuple[str, str]  # a query and a document, by their ids
HEAD = ("number", "time", "by", "token")


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened.

    Parameters
    ----------
    by
        Who did it.
    time
        When, in seconds since 1970.
    number
        Its place in the log: 1, 2, 3, .. without a gap. 0 before it is in the log.
    token
        What the sender called this event, so that one sent twice counts once.
    """

    kind: ClassVar[str] = ""
    by: str
    time: float
    number: int = 0
    token: str | None = None


@dataclass(frozen=True, kw_only=True)
class PairEvent(Event):
    """Something that happened to a pair."""

    query: str
    doc: str

    @property
    def pair(self) -> Pair:
        """The query and the document."""
        return self.query, self.doc


@dataclass(frozen=True, kw_only=True)
class Created(Event):
    """The campaign began."""

    kind = "created"
    setup: Setup


@dataclass(frozen=True, kw_only=True)
class Changed(Event):
    """Settings changed; these hold from now on."""

    kind = "changed"
    setup: Setup


@dataclass(frozen=True, kw_only=True)
class GuidelineChanged(Event):
    """What assessors are told changed. Judgments keep the version that they were made under."""

    kind = "guideline"
    version: int
    text: str


@dataclass(frozen=True, kw_only=True)
class QueriesChanged(Event):
    """Texts of queries came, by id; a text that was there before is replaced."""

    kind = "queries"
    texts: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Leased(PairEvent):
    """A pair is somebody's to judge, until a time."""

    kind = "leased"
    until: float


@dataclass(frozen=True, kw_only=True)
class Released(PairEvent):
    """A pair is no longer somebody's to judge."""

    kind = "released"


@dataclass(frozen=True, kw_only=True)
class Judged(PairEvent):
    """An assessor gave a pair a grade.

    Parameters
    ----------
    grade
        On the campaign's scale; below -1 is junk, as in TREC.
    guideline
        The version of the guideline that it was made under; 0 where there was none, or not ours.
    source
        The file that it came from; empty where it was made here.
    at
        When it was made, where that is known and not the time of the event.
    """

    kind = "judged"
    grade: float
    guideline: int = 0
    source: str = ""
    at: float | None = None

    @property
    def when(self) -> float:
        """When it was made."""
        return self.time if self.at is None else self.at


@dataclass(frozen=True, kw_only=True)
class Withdrawn(PairEvent):
    """A judgment of a pair, by its number, was taken back."""

    kind = "withdrawn"
    judgment: int


@dataclass(frozen=True, kw_only=True)
class Skipped(PairEvent):
    """An assessor does not want to judge a pair; others may."""

    kind = "skipped"
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Flagged(PairEvent):
    """Something is wrong with a pair: no text, wrong language, a duplicate."""

    kind = "flagged"
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Commented(PairEvent):
    """A remark on a pair."""

    kind = "commented"
    text: str


@dataclass(frozen=True, kw_only=True)
class Adjudicated(PairEvent):
    """Somebody settled the grade of a pair, whatever assessors said or will say."""

    kind = "adjudicated"
    grade: float
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Imported(Event):
    """A file was read; so many judgments of it follow."""

    kind = "imported"
    source: str
    judgments: int


@dataclass(frozen=True, kw_only=True)
class Labelled(Event):
    """Labels by machines came in; the table is a part of the store."""

    kind = "labelled"
    source: str
    part: str
    columns: tuple[str, ...]
    pairs: int


KINDS: dict[str, type[Event]] = {
    event.kind: event
    for event in (
        Created, Changed, GuidelineChanged, QueriesChanged, Leased, Released, Judged, Withdrawn, Skipped, Flagged,
        Commented, Adjudicated, Imported, Labelled,
    )
}  # fmt: skip


def encode(event: Event) -> dict[str, Any]:
    """A row of the store: the head of the event in columns, the rest as JSON.

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
    """The event of a row.

    >>> event = Leased(by="ann", time=5.0, number=3, query="q", doc="d", until=65.0)
    >>> decode(encode(event)) == event
    True
    """
    rest = json.loads(row["body"])
    if "setup" in rest:
        rest["setup"] = Setup.from_dict(rest["setup"])
    if "columns" in rest:
        rest["columns"] = tuple(rest["columns"])
    return KINDS[row["kind"]](**{name: row[name] for name in HEAD}, **rest)
