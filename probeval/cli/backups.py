"""``probeval campaign backup``, ``restore`` and ``check``: copies of stores, and their integrity."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pandas as pd
import typer

from probeval.characters import printable
from probeval.cli.campaign_documents import CampaignCheckDocument, StoreCheckDocument
from probeval.cli.commands import Output
from probeval.cli.options import OutputFormat
from probeval.cli.output import echo, write
from probeval.cli.stores import StorePlace
from probeval.records import About
from probeval.schema import records

if TYPE_CHECKING:
    from probeval.campaign import StoreCheck

__all__ = ["backup", "check", "restore"]


def backup(
    store: StorePlace,
    file: Annotated[Path, About("The new file; one that exists is refused.", metavar="FILE", argument=True)],
    output: Output,
) -> None:
    """Copy a store, all of its campaigns, into an SQLite file, while people judge.

    Example: probeval campaign backup mine.db mine-2024-05-01.db
    """
    from probeval.campaign import copy_store

    _write(copy_store(store, file), output.output_format)
    output.messages.say(f"Checked. Restore it with probeval campaign restore {file} STORE")


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A backup.", exists=True, dir_okay=False)],
    store: Annotated[
        str,
        About("A new SQLite file, or the URL of a PostgreSQL database without any.", metavar="STORE", argument=True),
    ],
    output: Output,
) -> None:
    """Copy a backup into a new store: a new file, or a PostgreSQL database without campaigns.

    Example: probeval campaign restore mine-2024-05-01.db postgresql://me@host/judging
    """
    from probeval.campaign import copy_store

    _write(copy_store(file, store), output.output_format)
    output.messages.say("Checked. Links of assessors work in the new store too.")


def check(
    store: StorePlace,
    output: Output,
    migrate: Annotated[bool, About("Migrate a store of an earlier version first; otherwise only read.")] = False,
) -> None:
    """Check the integrity of a store: its file, every event of every log, every part. Exits with 1 if there is a fault.

    Example: probeval campaign check mine.db
    """
    from probeval.campaign import Store, check_store

    opened = Store(store, read_only=not migrate)
    try:
        found = check_store(opened)
    finally:
        opened.close()
    _write(found, output.output_format)
    for fault in found.faults:
        echo(printable(f"Fault: {fault}."), err=True)
    if found.faults:
        raise typer.Exit(1)
    output.messages.say("No faults.")


def _write(found: StoreCheck, output_format: OutputFormat) -> None:
    frame = pd.DataFrame([asdict(each) for each in found.campaigns])
    document: StoreCheckDocument = {
        "store": found.store,
        "campaigns": records(frame, CampaignCheckDocument),
        "faults": list(found.faults),
    }
    write(frame, document, output_format)
