"""Options and arguments of campaigns and their stores."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from probeval.errors import StoreError
from probeval.records import About
from probeval.results import UNSET, UnsetType

if TYPE_CHECKING:
    from probeval.campaign import Campaign

__all__ = [
    "AssessorName",
    "By",
    "DocId",
    "Grade",
    "Name",
    "OwnersPlace",
    "Place",
    "QueryId",
    "RecordedEvent",
    "Refresh",
    "SkipReason",
    "StorePlace",
    "Token",
    "check_exists",
]


StorePlace = Annotated[
    str, About("An SQLite file, or a PostgreSQL URL (postgresql://user@host/base).", metavar="STORE", argument=True)
]
Name = Annotated[str | None, About("The campaign, if the store has several.", metavar="NAME")]
AssessorName = Annotated[str, About("The name of the assessor.", metavar="NAME")]
By = Annotated[str, About("Your name, for the log.", metavar="NAME")]
QueryId = Annotated[str | None, About("The id of the query.", metavar="[QUERY]", argument=True)]
DocId = Annotated[str | None, About("The id of the document.", metavar="[DOC]", argument=True)]
Grade = Annotated[float | None, About("A grade of the campaign's scale.", metavar="[GRADE]", argument=True)]
Refresh = Annotated[bool, About("Run the model first if there are new judgments.", option="--refresh/--no-refresh")]
SkipReason = Annotated[str, About("The reason for skipping it.", metavar="TEXT")]
Token = Annotated[str | None, About("A name for this request: sent twice, it counts once.", metavar="TEXT")]


@dataclass(frozen=True, kw_only=True)
class Place:
    """A campaign of a store."""

    store: StorePlace
    name: Name = None

    def open(self, *, read_only: bool = False) -> Campaign:
        """The campaign."""
        from probeval.campaign import Campaign

        check_exists(self.store, "probeval campaign create")
        return Campaign.open(self.store, name=self.name, read_only=read_only)


@dataclass(frozen=True, kw_only=True)
class OwnersPlace(Place):
    """A campaign of a store, and who changes it."""

    by: By = "owner"


def check_exists(store: str, creator: str) -> None:
    """Raise an error unless the file of a store exists."""
    if "://" not in store and not Path(store).exists():
        raise StoreError(f"{store}: no such store. '{creator}' makes one.")


@dataclass(frozen=True)
class RecordedEvent:
    """A recorded event of the log."""

    number: int
    event: Annotated[str, "Its kind."]
    query: str
    doc: Annotated[str, "The document; of two, the one on the left."]
    by: str
    other: Annotated[str | UnsetType, "The document on the right."] = UNSET
    grade: Annotated[float | UnsetType, "The grade of the document."] = UNSET
    choice: Annotated[
        str | UnsetType, "The better of two documents: left, right, equal, or empty with numbers alone."
    ] = UNSET

    @classmethod
    def of(cls, event: Any) -> RecordedEvent:
        """The row of an event."""
        return cls(
            number=event.number,
            event=event.kind,
            query=event.query,
            doc=event.left if hasattr(event, "left") else event.doc,
            by=event.by,
            other=(event.right if hasattr(event, "right") else getattr(event, "other", "")) or UNSET,
            grade=getattr(event, "grade", UNSET),
            choice=getattr(event, "choice", UNSET),
        )
