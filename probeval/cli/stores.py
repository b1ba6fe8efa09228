"""Options and arguments for stores of campaigns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from probeval.errors import StoreError

if TYPE_CHECKING:
    from probeval.campaign import Campaign

__all__ = ["By", "Name", "StorePlace", "opened_campaign"]

StorePlace = Annotated[
    str, typer.Argument(metavar="STORE", help="An SQLite file, or a PostgreSQL URL (postgresql://user@host/base).")
]
Name = Annotated[str | None, typer.Option("--name", metavar="NAME", help="The campaign, if the store has several.")]
By = Annotated[str, typer.Option("--by", metavar="NAME", help="Your name, for the log.")]


def opened_campaign(store: str, name: str | None, *, read_only: bool = False) -> Campaign:
    """The campaign of a store."""
    from probeval.campaign import Campaign

    if "://" not in store and not Path(store).exists():
        raise StoreError(f"{store}: no such store. 'probeval campaign create' makes one.")

    return Campaign.open(store, name=name, read_only=read_only)
