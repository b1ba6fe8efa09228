"""``probeval campaign backup``, ``restore`` and ``check``: copies of stores, and their integrity."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from probeval.cli.commands import Output
from probeval.cli.stores import StorePlace
from probeval.records import About

if TYPE_CHECKING:
    from probeval.campaign import StoreCheck

__all__ = ["backup", "check", "restore"]


def backup(
    store: StorePlace,
    file: Annotated[Path, About("The new file; one that exists is refused.", metavar="FILE", argument=True)],
    output: Output,
) -> StoreCheck:
    """Copy a store, all of its campaigns, into an SQLite file, while people judge.

    Example: probeval campaign backup mine.db mine-2024-05-01.db
    """
    from probeval.campaign import copy_store

    output.hints.append(f"Restore it with probeval campaign restore {file} STORE")
    return copy_store(store, file)


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A backup.", exists=True, dir_okay=False)],
    store: Annotated[
        str,
        About("A new SQLite file, or the URL of a PostgreSQL database without any.", metavar="STORE", argument=True),
    ],
    output: Output,
) -> StoreCheck:
    """Copy a backup into a new store: a new file, or a PostgreSQL database without campaigns.

    Example: probeval campaign restore mine-2024-05-01.db postgresql://me@host/judging
    """
    from probeval.campaign import copy_store

    output.hints.append("Links of assessors work in the new store too.")
    return copy_store(file, store)


def check(
    store: StorePlace,
    output: Output,
    migrate: Annotated[bool, About("Migrate a store of an earlier version first; otherwise only read.")] = False,
) -> StoreCheck:
    """Check the integrity of a store: its file, every event of every log, every part. Exits with 1 if there is a fault.

    Example: probeval campaign check mine.db
    """
    from probeval.campaign import Store, check_store

    opened = Store(store, read_only=not migrate)
    try:
        return check_store(opened)
    finally:
        opened.close()
