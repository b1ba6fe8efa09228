"""Options and arguments of campaigns and their stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from probeval.records import About

if TYPE_CHECKING:
    from probeval.campaign import Campaign

__all__ = [
    "AssessorName",
    "By",
    "CampaignPlace",
    "Name",
    "OwnersPlace",
    "Refresh",
    "StorePlace",
    "Token",
]


StorePlace = Annotated[
    str, About("An SQLite file, or a PostgreSQL URL (postgresql://user@host/base).", metavar="STORE", argument=True)
]
Name = Annotated[str | None, About("The campaign, if the store has several.", metavar="NAME")]
AssessorName = Annotated[str, About("The name of the assessor.", metavar="NAME")]
By = Annotated[str, About("Your name, for the log.", metavar="NAME")]
Refresh = Annotated[bool, About("Run the model first if there are new judgments.", option="--refresh/--no-refresh")]
Token = Annotated[str | None, About("A name for this request: sent twice, it counts once.", metavar="TEXT")]


@dataclass(frozen=True, kw_only=True)
class CampaignPlace:
    """A campaign of a store."""

    store: StorePlace
    name: Name = None

    def open(self, *, read_only: bool = False) -> Campaign:
        """The campaign."""
        from probeval.campaign import Campaign

        return Campaign.open(self.store, name=self.name, read_only=read_only)


@dataclass(frozen=True, kw_only=True)
class OwnersPlace(CampaignPlace):
    """A campaign of a store, and who changes it."""

    by: By = "owner"
