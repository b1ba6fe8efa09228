"""Data to stdout as a table, CSV or JSON; talk and progress to stderr."""

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
from probeval.display import text_table
from probeval.errors import ProbevalError, ProbevalWarning

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Talk", "check_picture", "write", "write_csv", "write_json", "write_pictures", "write_table"]

T = TypeVar("T")
PICTURES = (".png", ".svg", ".pdf")


class Talk:
    """What is said on stderr: nothing under ``--quiet``, a progress bar only on a terminal."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet

    def __call__(self, message: str) -> None:
        """Say it."""
        if not self.quiet:
            typer.echo(message, err=True)

    def progress(self, files: Sequence[Path]) -> Iterable[Path]:
        """The files, with a bar while they are read."""
        return self.track(files, "Reading runs")

    def track(self, work: Sequence[T], what: str) -> Iterable[T]:
        """The pieces of work, with a bar on a terminal while they are done."""
        if self.quiet or not sys.stderr.isatty():
            return iter(work)
        from rich.console import Console
        from rich.progress import track

        return track(work, description=what, console=Console(stderr=True), transient=True)

    def warned(self, work: Callable[[], T]) -> T:
        """The result of some work, with its warnings said on stderr."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ProbevalWarning)
            result = work()
        for warning in caught:
            self(str(warning.message))
        return result


def write_json(document: Any) -> None:
    """A JSON document on stdout; numbers that are not finite become null."""
    typer.echo(json.dumps(_finite(document), indent=2, ensure_ascii=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_csv(frame: pd.DataFrame, *, header: bool = True) -> None:
    """A table as CSV on stdout, numbers in full."""
    typer.echo(frame.to_csv(index=False, lineterminator="\n", header=header), nl=False)


def write_table(
    frame: pd.DataFrame, *, title: str | None = None, decimals: Mapping[str, int] = MappingProxyType({})
) -> None:
    """A table for people: text to the left, numbers to the right, ``-`` for what is not known.

    Numbers have four decimals, but for the columns of which ``decimals`` says otherwise.
    """
    text = text_table(frame, title=title, decimals=decimals)
    if text:
        typer.echo(text)


def write(frame: pd.DataFrame, document: Any, output_format: OutputFormat, *, title: str | None = None) -> None:
    """The same result in the form that was asked for."""
    if output_format is OutputFormat.json:
        write_json(document)
    elif output_format is OutputFormat.csv:
        write_csv(frame)
    else:
        write_table(frame, title=title)


def check_picture(path: Path | None) -> None:
    """Refuse the name of a picture that cannot be drawn, before any work is done for it."""
    if path is not None and path.suffix.lower() not in PICTURES:
        raise ProbevalError(f"{path}: a picture's name ends in {', '.join(PICTURES)}.")


def write_pictures(pictures: Mapping[Path, Axes], talk: Talk) -> None:
    """Write pictures, and say where they are."""
    from probeval.plots import save

    for path, axes in pictures.items():
        try:
            save(axes, path)
        except OSError as error:
            raise ProbevalError(f"{path}: cannot be written: {error.strerror or error}.") from None
    talk(f"Picture{'s' * (len(pictures) > 1)}: {', '.join(map(str, pictures))}.")
