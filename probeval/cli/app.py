"""The Typer application: its verbs in the order of their use, and how it fails.

An error of ours is one line on stderr and exit 1; wrong usage is exit 2.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

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
from probeval.cli.schema import schema
from probeval.cli.simulate import simulate
from probeval.cli.validate import validate
from probeval.errors import ProbevalError

__all__ = ["app", "main"]

UsageError: Any = typer.BadParameter.__base__  # of the click that this typer goes by

VERBS = {
    "demo": "Rank, judge and report a campaign that is made up.",
    "evaluate": "Rank systems, with few judgments or none.",
    "plan": "Say how many judgments a target takes.",
    "next": "Say which pairs to judge next.",
    "simulate": "Judge a finished campaign again, to try policies.",
    "campaign": "Judge by oneself or in a team, step by step.",
    "judge": "Serve the page to judge on.",
    "report": "Write a report as one HTML file.",
    "compare": "Test every pair of systems.",
    "gstudy": "Say what the variance of scores comes from.",
    "dstudy": "Say what more queries or assessors would bring.",
    "fit": "Learn a relevance model from past campaigns.",
    "models": "List the models that ship, or show one.",
    "features": "Write what models look at, of every pair.",
    "validate": "Hold what is said against campaigns left out.",
    "doctor": "Look at the installation.",
    "schema": "Print the JSON Schema of a verb's output.",
}
WRITES = ("-o", "--out", "--output")


class Verbs(TyperGroup):
    """The verbs in the order of their use, and a word of advice where one is called wrongly."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names."""
        return list(VERBS)

    def invoke(self, ctx: Any) -> Any:
        """Do what is asked."""
        try:
            return super().invoke(ctx)
        except UsageError as error:
            error.message += _model_runner(error)
            raise


def _model_runner(error: Any) -> str:
    """What to do about a wrong usage, where that can be told."""
    if error.message.startswith("No such command") and "Did you mean" not in error.message:
        return f" There are {', '.join(error.ctx.command.list_commands(error.ctx))}."
    if getattr(error, "option_name", "") in WRITES:
        return ". Data goes to stdout, and from there to a file: --format csv > FILE"
    missing = getattr(error, "param", None)
    return "For example: --metric nDCG@10" if missing is not None and "--metric" in missing.opts else ""


app = typer.Typer(
    name="probeval",
    cls=Verbs,
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


for verb in (
    compare,
    demo,
    doctor,
    dstudy,
    evaluate,
    features,
    fit,
    gstudy,
    judge,
    plan,
    report,
    schema,
    simulate,
    validate,
):
    app.command(short_help=VERBS[verb.__name__])(verb)
app.command("next", short_help=VERBS["next"])(next_pairs)
app.add_typer(campaign, name="campaign", short_help=VERBS["campaign"])
app.add_typer(models, name="models", short_help=VERBS["models"])


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
