"""The events of a campaign. The log of these events is the campaign; everything else is computed from it.

.. code-block:: text

    Created           the campaign was created, with these settings
    Changed           settings changed
    GuidelineChanged  the assessors' guideline changed; versions count from 1
    QueriesChanged    query texts were added or replaced
    Leased            a pair was given to an assessor until a time
    Released          a lease ended early
    Judged            an assessor gave a pair a grade
    Withdrawn         a judgment was withdrawn; the assessor's previous one, if any, counts again
    Skipped           an assessor left a pair to others
    Flagged           an assessor reported a problem with a pair
    Commented         a comment on a pair
    Adjudicated       the grade of a pair was settled, overriding all judgments
    Imported          a file was imported; its judgments follow as separate events
    Labelled          machine labels were imported: evidence, never judgments
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

from probeval.campaign.setup import Setup
from probeval.display import Brief
from probeval.selection import Pick

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


@dataclass(frozen=True, kw_only=True, repr=False)
class Event(Brief):
    """An event of a campaign.

    Parameters
    ----------
    by
        The person who caused it.
    time
        The time, in seconds since 1970.
    number
        Its position in the log: 1, 2, 3, .. without gaps. 0 before it is in the log.
    token
        The sender's name for the request, so that a request sent twice counts once.
    """

    kind: ClassVar[str] = ""
    by: str
    time: float
    number: int = 0
    token: str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class PairEvent(Event):
    """An event about a pair."""

    query: str
    doc: str

    @property
    def pair(self) -> Pair:
        """The query and the document."""
        return self.query, self.doc


@dataclass(frozen=True, kw_only=True, repr=False)
class Created(Event):
    """The campaign was created."""

    kind = "created"
    setup: Setup


@dataclass(frozen=True, kw_only=True, repr=False)
class Changed(Event):
    """The settings changed to these."""

    kind = "changed"
    setup: Setup


@dataclass(frozen=True, kw_only=True, repr=False)
class GuidelineChanged(Event):
    """The guideline changed. Judgments keep the version that they were made under."""

    kind = "guideline"
    version: int
    text: str


@dataclass(frozen=True, kw_only=True, repr=False)
class QueriesChanged(Event):
    """Query texts were added or replaced, by id."""

    kind = "queries"
    texts: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, repr=False)
class Leased(PairEvent):
    """A pair was given to an assessor until a time.

    Parameters
    ----------
    until
        The time.
    pick
        The prediction of the pair when the model proposed it, and its probability if it was drawn at random; None if
        the model did not propose it, and in logs of earlier versions.
    """

    kind = "leased"
    until: float
    pick: Pick | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Released(PairEvent):
    """An assessor's lease of a pair ended early."""

    kind = "released"


@dataclass(frozen=True, kw_only=True, repr=False)
class Judged(PairEvent):
    """An assessor gave a pair a grade.

    Parameters
    ----------
    grade
        On the campaign's scale; below -1 is junk, as in TREC.
    guideline
        The version of the guideline that it was made under; 0 for none, or for an imported judgment.
    source
        The file that it was imported from; empty if it was made in this campaign.
    at
        The time at which it was made, if known and different from the time of the event.
    """

    kind = "judged"
    grade: float
    guideline: int = 0
    source: str = ""
    at: float | None = None

    @property
    def when(self) -> float:
        """The time at which it was made."""
        return self.time if self.at is None else self.at


@dataclass(frozen=True, kw_only=True, repr=False)
class Withdrawn(PairEvent):
    """A judgment, named by its number, was withdrawn."""

    kind = "withdrawn"
    judgment: int


@dataclass(frozen=True, kw_only=True, repr=False)
class Skipped(PairEvent):
    """An assessor left a pair to others."""

    kind = "skipped"
    reason: str = ""


@dataclass(frozen=True, kw_only=True, repr=False)
class Flagged(PairEvent):
    """An assessor reported a problem with a pair: no text, wrong language, a duplicate."""

    kind = "flagged"
    reason: str = ""


@dataclass(frozen=True, kw_only=True, repr=False)
class Commented(PairEvent):
    """A comment on a pair."""

    kind = "commented"
    text: str


@dataclass(frozen=True, kw_only=True, repr=False)
class Adjudicated(PairEvent):
    """The grade of a pair was settled; it overrides all judgments, earlier and later."""

    kind = "adjudicated"
    grade: float
    reason: str = ""


@dataclass(frozen=True, kw_only=True, repr=False)
class Imported(Event):
    """A file was imported; this number of judgments follows."""

    kind = "imported"
    source: str
    judgments: int


@dataclass(frozen=True, kw_only=True, repr=False)
class Labelled(Event):
    """Machine labels were imported; the table is a part of the store."""

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
    """An event as a row of the store: common fields in columns, the rest as JSON.

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

    >>> event = Leased(by="ann", time=5.0, number=3, query="q", doc="d", until=65.0)
    >>> decode(encode(event)) == event
    True
    """
    rest = json.loads(row["body"])
    if "setup" in rest:
        rest["setup"] = Setup.from_dict(rest["setup"])
    if rest.get("pick") is not None:
        rest["pick"] = Pick.from_dict(rest["pick"])
    if "columns" in rest:
        rest["columns"] = tuple(rest["columns"])
    return KINDS[row["kind"]](**{name: row[name] for name in HEAD}, **rest)
