"""Stores of campaigns on the command line: which one, whose step, opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from probeval.campaign import Campaign

__all__ = ["By", "Name", "StorePlace", "opened_campaign"]

StorePlace = Annotated[
    str, typer.Argument(metavar="STORE", help="An SQLite file, or a PostgreSQL URL (postgresql://user@host/base).")
]
Name = Annotated[
    str | None, typer.Option("--name", metavar="NAME", help="Which campaign, where the store holds several.")
]
By = Annotated[str, typer.Option("--by", metavar="NAME", help="Who does this, for the log.")]


def opened_campaign(store: str, name: str | None, *, read_only: bool = False) -> Campaign:
    """The campaign of a store."""
    from probeval.campaign import Campaign

    return Campaign.open(store, name=name, read_only=read_only)
