"""``probeval campaign gold``: pairs with known grades, to check the work of assessors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from probeval.cli.options import Format, OutputFormat, Quiet, Seed
from probeval.cli.output import Talk, write
from probeval.cli.stores import By, Name, StorePlace, opened_campaign

__all__ = ["gold"]


def gold(
    store: StorePlace,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="Known grades: qrels, or a table of query, doc and grade."),
    ] = None,
    by: By = "owner",
    name: Name = None,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Show the gold pairs and how assessors answered them, or replace them by those of a file.

    Example: probeval campaign gold mine.db gold.txt
    """
    talk = Talk(quiet=quiet)
    with opened_campaign(store, name, read_only=file is None) as opened:
        if file is not None:
            opened.change_gold(by, file)
        shown = opened.gold()
    for sentence in shown.sentences():
        talk(sentence)
    write(shown.to_frame(), shown.to_dict(), output_format)
