"""The Typer application: its verbs in the order of use, and its errors.

An error of probeval is one line on stderr and exit code 1; wrong usage is exit code 2. The verdicts of
``probeval gate`` have exit codes of their own.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from probeval import __version__, cli
from probeval.characters import printable
from probeval.cli.assessors import assessors
from probeval.cli.campaign import campaign
from probeval.cli.changes import runs
from probeval.cli.commands import VERBS, command
from probeval.cli.models import models
from probeval.cli.output import echo
from probeval.cli.users import users
from probeval.errors import ProbevalError
from probeval.extensions import import_file

__all__ = ["app", "main"]

UsageError: Any = typer.BadParameter.__base__  # of the click that this typer uses

ORDER = (
    "demo",
    "evaluate",
    "plan",
    "next",
    "label",
    "simulate",
    "campaign",
    "judge",
    "users",
    "aggregate",
    "convert",
    "report",
    "reuse",
    "gate",
    "compare",
    "agree",
    "curves",
    "persistence",
    "gstudy",
    "dstudy",
    "meta",
    "pool",
    "fit",
    "models",
    "features",
    "predict",
    "validate",
    "evidence",
    "doctor",
    "cite",
    "skill",
    "schema",
)  # of use; verbs that are not named come last
GROUPS = {
    "campaign": (campaign, "Judge alone or in a team, step by step."),
    "models": (models, "List the built-in models, or show one."),
    "users": (users, "Ask users which of two lists is better."),
}
WRITES = ("-o", "--out", "--output")


class Verb(TyperCommand):
    """A verb, whose options of one value are given once."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; an option of one value that is repeated is wrong usage."""
        _refuse_repeats(self, ctx, args)
        return super().parse_args(ctx, args)


class VerbGroup(TyperGroup):
    """A group of verbs, whose own options of one value are given once."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments before the verb; an option of one value that is repeated is wrong usage."""
        _refuse_repeats(self, ctx, args)
        return super().parse_args(ctx, args)


def _refuse_repeats(command: Any, ctx: Any, args: list[str]) -> None:
    """End with a usage error if an option that takes one value is given several times."""
    if ctx.resilient_parsing:  # completion in a shell
        return
    _, _, given = command.make_parser(ctx).parse_args(args=list(args))
    for param, n in Counter(given).items():
        if n > 1 and param.param_type_name == "option" and not (param.is_flag or param.multiple or param.count):
            ctx.fail(f"{max(param.opts, key=len)} takes one value and is given {n} times. Give it once.")


class Verbs(VerbGroup):
    """The verbs in the order of use, with advice on wrong usage. Each takes ``--import``, as the application does."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        (option,) = (param for param in self.params if "--import" in param.opts)
        _share(option, self.commands.values())

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the verbs, in order."""
        names = [*VERBS, *GROUPS]
        return [*ORDER, *sorted(set(names) - set(ORDER))]

    def invoke(self, ctx: Any) -> Any:
        """Run the verb; add advice to a usage error."""
        try:
            return super().invoke(ctx)
        except UsageError as error:
            error.message = printable(error.message + _advice(error), lines=True)
            raise


def _share(option: Any, commands: Iterable[Any]) -> None:
    """Give an option to commands and their subcommands."""
    for one in commands:
        one.params.append(option)
        _share(option, getattr(one, "commands", {}).values())


def _advice(error: Any) -> str:
    """Advice on a usage error, or an empty text."""
    if error.message.startswith("No such command") and "Did you mean" not in error.message:
        return f" Commands: {', '.join(error.ctx.command.list_commands(error.ctx))}."
    if getattr(error, "option_name", "") in WRITES:
        return ". Data goes to stdout; redirect it to a file: --format csv > FILE"
    wrong = getattr(error.__cause__, "errors", None)  # of the value, if that is what is wrong
    if wrong is not None:
        got = repr(wrong()[0]["input"])
        return "" if got in error.message else f", got {got}."
    missing = getattr(error, "param", None)
    return "For example: --metric nDCG@10" if missing is not None and "--metric" in missing.opts else ""


app = typer.Typer(
    name="probeval",
    cls=Verbs,
    help="Evaluate retrieval systems with few relevance judgments, or none, and quantify the uncertainty.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(show: bool) -> None:
    if show:
        echo(f"probeval {__version__}")
        raise typer.Exit


def _import(files: list[Path] | None) -> None:
    for file in files or ():
        import_file(file)


@app.callback()
def root(
    imports: Annotated[
        list[Path] | None,
        typer.Option(
            "--import",
            metavar="FILE",
            callback=_import,
            is_eager=True,
            expose_value=False,
            help="A Python file with measures, policies, models, rules or questions of your own; may be repeated.",
        ),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Evaluate retrieval systems with few relevance judgments, or none, and quantify the uncertainty."""


for module in iter_modules(cli.__path__):
    import_module(f"{cli.__name__}.{module.name}")  # each registers its verb
for name, (summary, function) in VERBS.items():
    app.command(name, short_help=summary)(function)
campaign.add_typer(runs, name="runs", cls=VerbGroup)
campaign.add_typer(assessors, name="assessors", cls=VerbGroup)
for name, (together, summary) in GROUPS.items():
    app.add_typer(together, name=name, short_help=summary, cls=VerbGroup)
for group in (app, campaign, runs, assessors, models, users):
    for registered in group.registered_commands:
        assert registered.callback is not None
        registered.cls, registered.callback = Verb, command(registered.callback)
    entry = group.registered_callback
    if entry is not None and entry.callback is not None and group is not app:
        entry.callback = command(entry.callback)


def main() -> None:
    """Run the command line."""
    try:
        app()
    except ProbevalError as error:
        if "--debug" in sys.argv:
            raise
        echo(f"Error: {error}", err=True)
        sys.exit(1)
    except BrokenPipeError:  # the reader closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
