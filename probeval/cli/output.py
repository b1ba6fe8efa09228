"""Data on stdout as a table, CSV, JSON, Markdown or LaTeX; messages and progress on stderr."""

from __future__ import annotations

import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import pandas as pd
import typer

from probeval.characters import json_safe, printable
from probeval.cli.options import OutputFormat
from probeval.data.spreadsheets import csv_text
from probeval.display import dated
from probeval.errors import ProbevalError, ProbevalWarning, did_you_mean
from probeval.reporting import Reporter, TimeEstimate
from probeval.results import Result, frame, json_text
from probeval.text_tables import latex_table, markdown_table, text_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.progress import Progress as RichProgress


__all__ = [
    "Messages",
    "check_picture",
    "check_tool",
    "command_line",
    "echo",
    "write",
    "write_csv",
    "write_data",
    "write_json",
    "write_page",
    "write_pictures",
    "write_result",
    "write_table",
]

T = TypeVar("T")
PICTURES = (".png", ".svg", ".pdf")
LONG = 10.0  # seconds from which work is announced
PASSWORD = re.compile(r"(?<=://)([^:/@\s]+):[^@\s]+@")  # in the URL of a store; no report shows it
TABLES = {OutputFormat.table: text_table, OutputFormat.markdown: markdown_table, OutputFormat.latex: latex_table}


def echo(text: str, *, err: bool = False, nl: bool = True, bold: bool = False) -> None:
    """Print lines for people: what a name or a comment holds cannot move the cursor or change what stands before.

    Bold text is bold on a terminal, and plain elsewhere.
    """
    shown = printable(text, lines=True)
    typer.echo(typer.style(shown, bold=True) if bold else shown, err=err, nl=nl)


def write_data(text: str) -> None:
    """Print the content of a file: as it is to a pipe or a file, as :func:`echo` to a terminal."""
    shown = printable(text, lines=True) if sys.stdout.isatty() else text
    typer.echo(shown, nl=False, color=True)  # without color=True, click takes escapes out of what goes to a file


class Messages(Reporter):
    """Messages on stderr: none with ``--quiet``; progress and estimates of time only on a terminal."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.said: set[str] = set()  # so that a result does not repeat a remark
        self._spinner: RichProgress | None = None
        self._beside: Callable[[str], None] | None = None

    def say(self, text: str, *, bold: bool = False) -> None:
        """Print a message."""
        self.said.add(text)
        if self.quiet:
            return
        if self._spinner is None:
            echo(text, err=True, bold=bold)
        else:
            self._spinner.console.print(printable(text, lines=True), markup=False, highlight=False, soft_wrap=True)

    @property
    def on_terminal(self) -> bool:
        """Whether to show progress."""
        return not self.quiet and sys.stderr.isatty()

    def expect(self, estimate: TimeEstimate) -> None:
        """Print an estimate, and show the time elapsed until the end of :meth:`warned`, on a terminal."""
        if not self.on_terminal or self._spinner is not None:
            return
        if estimate.seconds >= LONG:
            self.say(str(estimate))
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        self._spinner = Progress(*columns, console=Console(stderr=True), transient=True)
        self._spinner.add_task("Evaluating", total=None)
        self._spinner.start()

    def _stop(self) -> None:
        if self._spinner is not None:
            self._spinner.stop()
            self._spinner = None

    def track(self, work: Sequence[T], title: str) -> Iterable[T]:
        """The items of work, with a progress bar on a terminal."""
        self._stop()
        return self._shown(work, title) if self.on_terminal else iter(work)

    def _shown(self, work: Sequence[T], title: str) -> Iterable[T]:
        """The items of work, with a progress bar."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"),
            TimeRemainingColumn(elapsed_when_finished=True), TextColumn("{task.fields[beside]}", markup=False),
        )  # fmt: skip
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(title, total=len(work), beside="")
            self._beside = lambda text: bar.update(task, beside=text)
            for item in work:
                yield item
                bar.advance(task)
        self._beside = None

    def beside(self, text: str) -> None:
        """Show a text beside the progress bar, on a terminal."""
        if self._beside is not None:
            self._beside(text)

    def warned(self, work: Callable[[], T]) -> T:
        """The result of some work; its warnings go to stderr."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ProbevalWarning)
            try:
                result = work()
            finally:
                self._stop()
        for warning in caught:
            self.say(str(warning.message))
        return result


def write_json(document: Any) -> None:
    """Write a JSON document to stdout; numbers that are not finite become null."""
    typer.echo(json_safe(json_text(document)))


def write_csv(frame: pd.DataFrame, *, header: bool = True) -> None:
    """Write a table as CSV to stdout, numbers in full precision; no cell of it is a formula to a spreadsheet."""
    write_data(csv_text(frame, header=header))


def write_table(
    frame: pd.DataFrame,
    output_format: OutputFormat,
    *,
    title: str | None = None,
    decimals: Mapping[str, int] = MappingProxyType({}),
) -> None:
    """Write a table for people: text on the left, numbers on the right, ``-`` for missing values.

    Numbers have four decimals, except in the columns of ``decimals``. A title may begin with an empty line, which
    Markdown and LaTeX have after every table.
    """
    plain = output_format is OutputFormat.table
    text = TABLES[output_format](frame, title=title if plain or title is None else title.strip(), decimals=decimals)
    if text:
        echo(text if plain else f"{text}\n")


def write(frame: pd.DataFrame, document: Any, output_format: OutputFormat, *, title: str | None = None) -> None:
    """Write a result in this format."""
    if output_format is OutputFormat.json:
        write_json(document)
    elif output_format is OutputFormat.csv:
        write_csv(frame)
    else:
        write_table(frame, output_format, title=title)


def write_result(result: Any, output_format: OutputFormat, kind: type | None = None) -> None:
    """Write what a verb returns: a result, a record or a tuple of records.

    A result has rows for CSV, and tables that people read; a record is a row, and a tuple of records a table. ``kind``
    is the class of the records, which names the columns where there are none.
    """
    if output_format is OutputFormat.json:
        write_json(result.to_dict() if isinstance(result, Result) else result)
    elif not isinstance(result, Result):
        several = result if isinstance(result, tuple) else (result,)
        kind = type(several[0]) if several else kind
        table = pd.DataFrame() if kind is None else frame(several, kind)
        if output_format is OutputFormat.csv:
            write_csv(table)
        else:
            write_table(table if kind is None else dated(table, kind), output_format)
    elif output_format is OutputFormat.csv:
        write_csv(result.to_frame())
    else:
        for i, view in enumerate(result.tables()):
            title = "\n" * (i > 0) + (view.title or "")
            write_table(view.frame, output_format, title=title or None, decimals=view.decimals)


def command_line() -> str:
    """The command that is running, for a report; passwords in the URLs of stores are left out."""
    return PASSWORD.sub(r"\1:***@", f"probeval {shlex.join(sys.argv[1:])}")


def write_page(result: Result, path: Path, messages: Messages) -> None:
    """Write the report of a result as one HTML file, and print its path."""
    from probeval.api import report

    report(result, path, command=command_line())
    messages.say(f"The report is in {path}: open it in a browser.")


def check_picture(path: Path | None) -> None:
    """Refuse an unknown picture format before any work is done."""
    if path is not None and path.suffix.lower() not in PICTURES:
        raise ProbevalError(f"{path}: the name of a picture must end in {', '.join(PICTURES)}.")


def check_tool(tool: str | None, out: Path | None) -> Path | None:
    """The folder for the files of a tool; refuses an unknown tool, or one without a folder, before any work is done."""
    from probeval.data import task_formats

    known = task_formats()
    if tool is not None and tool not in known:
        raise ProbevalError(f"--for {tool}: expected {' or '.join(known)}.{did_you_mean(tool, known)}")
    if (tool is None) != (out is None):
        raise ProbevalError("--for TOOL and --out FOLDER go together: name both, or neither.")
    if out is not None and out.exists() and not out.is_dir():
        raise ProbevalError(f"{out}: expected a folder for the files of {tool}, got a file.")
    return out


def write_pictures(pictures: Mapping[Path, Axes], messages: Messages) -> None:
    """Write pictures, and print their paths."""
    from probeval.plots import save

    for path, axes in pictures.items():
        try:
            save(axes, path)
        except OSError as error:
            raise ProbevalError(f"{path}: cannot be written: {error.strerror or error}.") from None
    messages.say(f"Picture{'s' * (len(pictures) > 1)}: {', '.join(map(str, pictures))}.")
