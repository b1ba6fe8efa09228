"""``probeval models``: the built-in models."""

from __future__ import annotations

from typing import Annotated

import pandas as pd
import typer

from probeval.cli.documents import ModelDocument
from probeval.cli.options import Format, OutputFormat
from probeval.cli.output import echo, write, write_json
from probeval.records import About
from probeval.relevance import card_names, load_card

__all__ = ["models"]

models = typer.Typer(help="List the built-in models, or show one.", invoke_without_command=True)


@models.callback(invoke_without_command=True)
def list_models(context: typer.Context, output_format: Format = OutputFormat.table) -> None:
    """List the built-in models; ``probeval models show NAME`` shows one.

    Example: probeval models --format json
    """
    if context.invoked_subcommand is not None:
        return
    rows: list[ModelDocument] = [
        {
            "name": card.name,
            "kind": card.kind,
            "scale": card.scale,
            "depth": card.depth,
            "campaigns": len(card.fingerprints),
            "title": card.title,
        }
        for card in map(load_card, card_names())
    ]
    write(pd.DataFrame(rows), rows, output_format)


@models.command("show")
def show(
    name: Annotated[str, About("A built-in model, or the path of a card.", argument=True)],
    output_format: Format = OutputFormat.table,
) -> None:
    """Show a model: its features, parameters, training campaigns, performance and limits.

    Example: probeval models show text-jud
    """
    card = load_card(name)
    if output_format is OutputFormat.json:
        write_json(card.to_dict())
    elif output_format in (OutputFormat.table, OutputFormat.markdown):
        echo(card.summary(), nl=False)
    else:
        (view,) = card.tables()
        write(view.frame, None, output_format, title=view.title)
