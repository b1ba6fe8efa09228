"""Options and arguments of campaigns and their stores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from probeval.cli.campaign_documents import EventDocument
from probeval.errors import StoreError
from probeval.records import About

if TYPE_CHECKING:
    from probeval.campaign import Campaign

__all__ = [
    "Ask",
    "AssessorName",
    "By",
    "DocId",
    "FollowUp",
    "GoldShare",
    "Grade",
    "GradeWords",
    "Lease",
    "Name",
    "Opinions",
    "Overlap",
    "QueryId",
    "Refresh",
    "RepeatShare",
    "Rule",
    "SkipReason",
    "StorePlace",
    "Token",
    "event_row",
    "opened_campaign",
]


ASKED = ("grades", "preferences", "magnitudes", "mixed")

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

GradeWords = Annotated[
    str | None,
    About("What each grade means, lowest first, separated by commas; or a file, one line per grade.", metavar="WORDS"),
]
Ask = Annotated[
    str,
    About(
        "What assessors are asked: grades of documents, preferences between two, magnitudes of two, or mixed.",
        choices=ASKED,
    ),
]
FollowUp = Annotated[
    bool,
    About(
        "Ask on the judging page, after a preference, which of the two documents are relevant.",
        option="--follow-up/--no-follow-up",
    ),
]
Overlap = Annotated[float, About("The share of pairs that several assessors judge.", least=0, most=1)]
Opinions = Annotated[int, About("The number of assessors for these pairs.", least=2)]
GoldShare = Annotated[float, About("The share of tasks with a known grade.", least=0, most=1)]
RepeatShare = Annotated[float, About("The share of tasks that come a second time.", least=0, most=1)]
Rule = Annotated[
    str,
    About("The grade of a pair that has several: unanimous, median, majority, min, max, latest.", metavar="RULE"),
]
Lease = Annotated[float, About("Minutes that an assessor may hold a pair.", least=0.1)]


def opened_campaign(store: str, name: str | None, *, read_only: bool = False) -> Campaign:
    """The campaign of a store."""
    from probeval.campaign import Campaign

    if "://" not in store and not Path(store).exists():
        raise StoreError(f"{store}: no such store. 'probeval campaign create' makes one.")

    return Campaign.open(store, name=name, read_only=read_only)


def event_row(event: Any) -> EventDocument:
    """An event as a row of output."""
    row: EventDocument = {
        "number": event.number,
        "event": event.kind,
        "query": event.query,
        "doc": event.left if hasattr(event, "left") else event.doc,
        "by": event.by,
    }
    other = event.right if hasattr(event, "right") else getattr(event, "other", "")
    if other:
        row["other"] = other
    if hasattr(event, "grade"):
        row["grade"] = event.grade
    if hasattr(event, "choice"):
        row["choice"] = event.choice
    return row
