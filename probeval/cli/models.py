"""``probeval models``: the built-in models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from probeval.cli.commands import Printed
from probeval.records import About
from probeval.relevance import Card, card_names, load_card

__all__ = ["models"]

models = typer.Typer(help="List the built-in models, or show one.", invoke_without_command=True)


@dataclass(frozen=True)
class BuiltInModel:
    """A built-in model."""

    name: str
    kind: str
    scale: str
    depth: int
    campaigns: Annotated[int, "The number of campaigns that it was fitted on."]
    title: str


@models.callback(invoke_without_command=True)
def list_models(context: typer.Context, output: Printed) -> tuple[BuiltInModel, ...] | None:
    """List the built-in models; ``probeval models show NAME`` shows one.

    Example: probeval models --format json
    """
    if context.invoked_subcommand is not None:
        return None
    return tuple(
        BuiltInModel(card.name, card.kind, card.scale, card.depth, len(card.fingerprints), card.title)
        for card in map(load_card, card_names())
    )


@models.command("show")
def show(
    name: Annotated[str, About("A built-in model, or the path of a card.", argument=True)], output: Printed
) -> Card:
    """Show a model: its features, parameters, training campaigns, performance and limits.

    Example: probeval models show text-jud
    """
    return load_card(name)
