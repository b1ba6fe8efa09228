"""The Typer application, and how it fails: one line on stderr, exit 1; usage, exit 2."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from probeval import __version__
from probeval.cli.campaign import campaign
from probeval.cli.compare import compare
from probeval.cli.demo import demo
from probeval.cli.doctor import doctor
from probeval.cli.dstudy import dstudy
from probeval.cli.evaluate import evaluate
from probeval.cli.features import features
from probeval.cli.fit import fit
from probeval.cli.gstudy import gstudy
from probeval.cli.judge import judge
from probeval.cli.models import models
from probeval.cli.next import next_pairs
from probeval.cli.plan import plan
from probeval.cli.report import report
from probeval.cli.simulate import simulate
from probeval.cli.validate import validate
from probeval.errors import ProbevalError

__all__ = ["app", "main"]

app = typer.Typer(
    name="probeval",
    help="Evaluate retrieval systems with few relevance judgments, or none, and say how sure the answer is.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"probeval {__version__}")
        raise typer.Exit


@app.callback()
def root(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Evaluate retrieval systems with few relevance judgments, or none, and say how sure the answer is."""


for verb in (compare, demo, doctor, dstudy, evaluate, features, fit, gstudy, judge, plan, report, simulate, validate):
    app.command()(verb)
app.command("next")(next_pairs)
app.add_typer(campaign, name="campaign")
app.add_typer(models, name="models")


def main() -> None:
    """Run the command line."""
    try:
        app()
    except ProbevalError as error:
        if "--debug" in sys.argv:
            raise
        typer.echo(f"Error: {error}", err=True)
        sys.exit(1)
    except BrokenPipeError:  # the reader of a pipe has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
