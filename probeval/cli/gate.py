"""``probeval gate``: may a new system replace a baseline? The answer is an exit code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from probeval.api import Gate
from probeval.api.gate import GateInputs
from probeval.cli.commands import Output, verb
from probeval.cli.options import OutputFormat
from probeval.cli.output import Messages, write_csv, write_json, write_table
from probeval.data.files import write_bytes
from probeval.data.spreadsheets import csv_text
from probeval.errors import ProbevalError
from probeval.records import About

__all__ = ["gate"]

MOST_PAIRS = 200  # in a file of pairs whose number was not given


@dataclass(frozen=True, kw_only=True)
class GateOutput(Output):
    """The files of a gate."""

    pairs: Annotated[
        Path | None, About("Write the pairs to judge if undecided, and how many it may take.", metavar="FILE")
    ] = None
    n: Annotated[
        int | None,
        About("The number of pairs in --pairs; default: as many as are likely.", option="-n, --number", least=0),
    ] = None
    markdown: Annotated[Path | None, About("Write a summary for a comment on a pull request.", metavar="FILE")] = None
    junit: Annotated[Path | None, About("Write JUnit XML.", metavar="FILE")] = None


@verb("Decide whether a new system may replace a baseline.")
def gate(given: GateInputs, show: GateOutput) -> None:
    """Decide whether a new system is better than a baseline, with few judgments or none; the exit code is the verdict.

    Exit codes: 0 better (with --not-worse: not worse), 3 undecided or tied, 4 worse; 1 is an error, 2 wrong usage. With
    several measures all must pass.

    Example: probeval gate new.txt baseline.txt --qrels judged.txt --metric nDCG@10
    """
    messages = show.messages
    if show.n is not None and show.pairs is None:
        raise ProbevalError("-n is the number of pairs in a file: give --pairs FILE too.")
    found = messages.warned(replace(given, forecast=show.pairs is not None).run)
    if show.output_format is OutputFormat.json:
        write_json(found.to_dict())
    elif show.output_format is OutputFormat.csv:
        write_csv(found.to_frame())
    else:
        for view in found.tables():
            write_table(view.frame, show.output_format)
    for sentence in found.sentences():
        messages.say(sentence)
    if show.pairs is not None:
        _write_pairs(found, show.pairs, show.n, messages)
    if show.markdown is not None:
        write_bytes(show.markdown, found.markdown().encode())
    if show.junit is not None:
        write_bytes(show.junit, found.junit().encode())
    raise typer.Exit(found.exit_code)


def _write_pairs(found: Gate, path: Path, n: int | None, messages: Messages) -> None:
    """Write the pairs to judge, none unless undecided."""
    likely = 0 if found.ahead is None else min(found.ahead["judgments"], MOST_PAIRS)
    table = found.pairs(likely if n is None else n)
    tabbed = path.name.removesuffix(".gz").endswith(".tsv")
    write_bytes(path, csv_text(table, separator="\t" if tabbed else ",").encode())
    if len(table):
        messages.say(f"{path}: the first {len(table):,} pairs to judge.")
