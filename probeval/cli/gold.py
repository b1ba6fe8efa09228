"""``probeval campaign gold``: pairs with known grades and orders, to check the work of assessors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from probeval.cli.commands import Output
from probeval.cli.stores import OwnersPlace
from probeval.records import About

if TYPE_CHECKING:
    from probeval.campaign import GoldList

__all__ = ["gold"]


def gold(
    place: OwnersPlace,
    output: Output,
    file: Annotated[
        Path | None,
        About(
            "Known grades (qrels, or query, doc and grade), or a table of query, better and worse.",
            metavar="[FILE]",
            argument=True,
        ),
    ] = None,
) -> GoldList:
    """Show the gold pairs and comparisons and how assessors answered them, or replace them by those of a file.

    A table with the columns better and worse has comparisons; any other file has grades. Each replaces its own kind.

    Example: probeval campaign gold mine.db gold.txt
    """
    from probeval.campaign.questions import kind_of_gold

    with place.open(read_only=file is None) as opened:
        if file is not None:
            opened.change_gold(place.by, file, kind=kind_of_gold(file).name)
        return opened.gold()
