"""Data to stdout as a table, CSV or JSON; talk and progress to stderr."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import typer

from probeval.cli.options import OutputFormat

__all__ = ["Talk", "write_csv", "write_json", "write_table"]


class Talk:
    """What is said on stderr: nothing under ``--quiet``, a progress bar only on a terminal."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet

    def __call__(self, message: str) -> None:
        """Say it."""
        if not self.quiet:
            typer.echo(message, err=True)

    def progress(self, files: Sequence[Path]) -> Iterator[Path]:
        """The files, with a bar while they are read."""
        if self.quiet or not sys.stderr.isatty():
            yield from files
            return
        from rich.console import Console
        from rich.progress import track

        yield from track(files, description="Reading runs", console=Console(stderr=True), transient=True)


def write_json(document: Any) -> None:
    """A JSON document on stdout; numbers that are not finite become null."""
    typer.echo(json.dumps(_finite(document), indent=2, ensure_ascii=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_csv(frame: pd.DataFrame) -> None:
    """A table as CSV on stdout, numbers in full."""
    typer.echo(frame.to_csv(index=False, lineterminator="\n"), nl=False)


def write_table(frame: pd.DataFrame, *, title: str | None = None) -> None:
    """A table for people: text to the left, numbers to the right with four decimals, ``-`` for what is not known."""
    if title:
        typer.echo(title)
    columns = [_column(str(name), frame[name]) for name in frame.columns]
    for row in zip(*columns, strict=True):
        typer.echo("  ".join(row).rstrip())


def _column(name: str, values: pd.Series) -> Iterable[str]:
    text = [_cell(v) for v in values]
    width = max(map(len, [name, *text]))
    left = all(isinstance(v, str) for v in values)
    return [cell.ljust(width) if left else cell.rjust(width) for cell in (name, *text)]


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.4f}"
    return str(value)


def write(frame: pd.DataFrame, document: Any, form: OutputFormat, *, title: str | None = None) -> None:
    """The same result in the form that was asked for."""
    if form is OutputFormat.json:
        write_json(document)
    elif form is OutputFormat.csv:
        write_csv(frame)
    else:
        write_table(frame, title=title)
