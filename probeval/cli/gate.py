"""``probeval gate``: may a new system replace a baseline? The answer is an exit code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from probeval.api.gate import Gate, GateInputs
from probeval.cli.commands import Output, verb
from probeval.cli.output import Messages
from probeval.data.files import write_bytes
from probeval.data.spreadsheets import csv_text
from probeval.errors import ProbevalError
from probeval.records import About
from probeval.relevance.observers.agreement import ENOUGH
from probeval.results import UNSET

__all__ = ["gate"]

MAX_PAIRS = 200  # in a file of pairs whose number was not given
BATCH = 20  # judgments, after which others are worth more than those planned before


@dataclass(frozen=True, kw_only=True)
class GateOutput(Output):
    """The files of a gate."""

    pairs: Annotated[
        Path | None,
        About(
            "Write the pairs to judge if undecided, and how many it may take. Judge 20, then ask again.", metavar="FILE"
        ),
    ] = None
    n: Annotated[
        int | None,
        About("The number of pairs in --pairs; default: as many as are likely.", option="-n, --number", least=0),
    ] = None
    markdown: Annotated[Path | None, About("Write a summary for a comment on a pull request.", metavar="FILE")] = None
    junit: Annotated[Path | None, About("Write JUnit XML.", metavar="FILE")] = None


@verb("Decide whether a new system may replace a baseline.")
def gate(given: GateInputs, output: GateOutput) -> Gate:
    """Decide whether a new system is better than a baseline, with few judgments or none; the exit code is the verdict.

    Exit codes: 0 better (with --not-worse: not worse), 3 undecided or tied, or labels refused (--trust), 4 worse; 1 is
    an error, 2 wrong usage. With several measures all must pass.

    Example: probeval gate new.txt baseline.txt --qrels judged.txt --metric nDCG@10
    """
    if output.n is not None and output.pairs is None:
        raise ProbevalError("-n is the number of pairs in a file: give --pairs FILE too.")
    found = output.messages.warned(replace(given, forecast=output.pairs is not None).run)
    if output.pairs is not None:
        _write_pairs(found, output.pairs, output.n, output.messages)
    if output.markdown is not None:
        write_bytes(output.markdown, found.markdown().encode())
    if output.junit is not None:
        write_bytes(output.junit, found.junit().encode())
    return found


def _write_pairs(found: Gate, path: Path, n: int | None, messages: Messages) -> None:
    """Write the pairs to judge, none unless undecided."""
    likely = ENOUGH if found.refused else 0
    likely = likely if found.forecast is UNSET else min(found.forecast.judgments, MAX_PAIRS)
    table = found.pairs(likely if n is None else n)
    tabbed = path.name.removesuffix(".gz").endswith(".tsv")
    write_bytes(path, csv_text(table, separator="\t" if tabbed else ",").encode())
    if len(table):
        again = f" It is best to judge {BATCH}, then ask again." if len(table) > BATCH else ""
        messages.say(f"{path}: the first {len(table):,} pairs to judge.{again}")
