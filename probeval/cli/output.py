"""Data on stdout as a table, CSV or JSON; messages and progress on stderr."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import pandas as pd
import typer

from probeval.cli.options import OutputFormat
from probeval.data.cells import csv_text
from probeval.display import text_table
from probeval.errors import ProbevalError, ProbevalWarning

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Talk", "check_picture", "write", "write_csv", "write_json", "write_pictures", "write_table"]

T = TypeVar("T")
PICTURES = (".png", ".svg", ".pdf")


class Talk:
    """Messages on stderr: none with ``--quiet``; a progress bar only on a terminal."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet

    def __call__(self, message: str) -> None:
        """Print a message."""
        if not self.quiet:
            typer.echo(message, err=True)

    def progress(self, files: Sequence[Path]) -> Iterable[Path]:
        """The files, with a progress bar."""
        return self.track(files, "Reading runs")

    def track(self, work: Sequence[T], what: str) -> Iterable[T]:
        """The items of work, with a progress bar on a terminal."""
        if self.quiet or not sys.stderr.isatty():
            return iter(work)
        from rich.console import Console
        from rich.progress import track

        return track(work, description=what, console=Console(stderr=True), transient=True)

    def warned(self, work: Callable[[], T]) -> T:
        """The result of some work; its warnings go to stderr."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ProbevalWarning)
            result = work()
        for warning in caught:
            self(str(warning.message))
        return result


def write_json(document: Any) -> None:
    """Write a JSON document to stdout; numbers that are not finite become null."""
    typer.echo(json.dumps(_finite(document), indent=2, ensure_ascii=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_csv(frame: pd.DataFrame, *, header: bool = True) -> None:
    """Write a table as CSV to stdout, numbers in full precision."""
    typer.echo(csv_text(frame, header=header), nl=False)


def write_table(
    frame: pd.DataFrame, *, title: str | None = None, decimals: Mapping[str, int] = MappingProxyType({})
) -> None:
    """Write a table for people: text on the left, numbers on the right, ``-`` for missing values.

    Numbers have four decimals, except in the columns of ``decimals``.
    """
    text = text_table(frame, title=title, decimals=decimals)
    if text:
        typer.echo(text)


def write(frame: pd.DataFrame, document: Any, output_format: OutputFormat, *, title: str | None = None) -> None:
    """Write a result in this format."""
    if output_format is OutputFormat.json:
        write_json(document)
    elif output_format is OutputFormat.csv:
        write_csv(frame)
    else:
        write_table(frame, title=title)


def check_picture(path: Path | None) -> None:
    """Refuse an unknown picture format before any work is done."""
    if path is not None and path.suffix.lower() not in PICTURES:
        raise ProbevalError(f"{path}: the name of a picture must end in {', '.join(PICTURES)}.")


def write_pictures(pictures: Mapping[Path, Axes], talk: Talk) -> None:
    """Write pictures, and print their paths."""
    from probeval.plots import save

    for path, axes in pictures.items():
        try:
            save(axes, path)
        except OSError as error:
            raise ProbevalError(f"{path}: cannot be written: {error.strerror or error}.") from None
    talk(f"Picture{'s' * (len(pictures) > 1)}: {', '.join(map(str, pictures))}.")
