"""``probeval campaign gold``: pairs with known grades and orders, to check the work of assessors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from probeval.cli.options import Format, OutputFormat, Quiet
from probeval.cli.output import Talk, write, write_table
from probeval.cli.stores import By, Name, StorePlace, opened_campaign
from probeval.records import About

__all__ = ["gold"]


def gold(
    store: StorePlace,
    file: Annotated[
        Path | None,
        About(
            "Known grades (qrels, or query, doc and grade), or a table of query, better and worse.",
            metavar="[FILE]",
            argument=True,
        ),
    ] = None,
    by: By = "owner",
    name: Name = None,
    output_format: Format = OutputFormat.table,
    quiet: Quiet = False,
) -> None:
    """Show the gold pairs and comparisons and how assessors answered them, or replace them by those of a file.

    A table with the columns better and worse has comparisons; any other file has grades. Each replaces its own kind.

    Example: probeval campaign gold mine.db gold.txt
    """
    from probeval.campaign.gold import names_orders

    talk = Talk(quiet=quiet)
    with opened_campaign(store, name, read_only=file is None) as opened:
        if file is not None and names_orders(file):
            opened.change_gold_orders(by, file)
        elif file is not None:
            opened.change_gold(by, file)
        shown = opened.gold()
    for sentence in shown.sentences():
        talk.say(sentence)
    write(shown.to_frame(), shown.to_dict(), output_format)
    if shown.orders and output_format not in (OutputFormat.json, OutputFormat.csv):
        write_table(shown.orders_frame(), output_format, title="Gold comparisons")
