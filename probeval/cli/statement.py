"""``probeval campaign statement``: what an organiser publishes for participants."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from probeval.api.settings import Level
from probeval.cli.commands import Output
from probeval.cli.stores import CampaignPlace
from probeval.records import About

if TYPE_CHECKING:
    from probeval.campaign import Statement

__all__ = ["statement"]


def statement(
    place: CampaignPlace,
    output: Output,
    out: Annotated[Path, About("The page.", option="-o, --out", metavar="FILE")] = Path("statement.html"),
    appeal: Annotated[str, About("How participants appeal; default: a general text.", metavar="TEXT")] = "",
    level: Level = 0.95,
) -> Statement:
    """Write a page for participants: the rule as registered, every change, the stop, what is decided, how to appeal.

    Example: probeval campaign statement mine.db --appeal "Write to judges@example.org by 30 June."
    """
    from probeval.reports import statement_page, write_report

    with place.open(read_only=True) as opened:
        found = output.messages.warned(lambda: opened.statement(appeal=appeal, level=level))
    write_report(statement_page(found), out)
    output.hints.append(f"The page is {out}. Publish it with the hash {found.head}")
    return found
