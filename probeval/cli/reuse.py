"""``probeval reuse``: later systems, evaluated with the judgments of a campaign."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from probeval.api.reuse import ReuseInputs, ReuseStudyInputs, Together
from probeval.cli.commands import Output, verb
from probeval.cli.options import OutputFormat
from probeval.cli.output import Messages, write_csv, write_json, write_table
from probeval.data.files import write_bytes
from probeval.data.spreadsheets import csv_text
from probeval.errors import ProbevalError
from probeval.records import About, part
from probeval.results import Result

__all__ = ["reuse"]


@verb("Evaluate later systems with the judgments of a campaign.")
def reuse(
    given: ReuseStudyInputs,
    output: Output,
    later: Annotated[
        Any,
        About("Runs of later systems: a file, a glob or a directory.", metavar="RUNS", kind=str, many=True),
    ] = None,
    together: Together = False,
    pairs: Annotated[
        Path | None, About("Write the pairs that each later system needs, as CSV.", metavar="FILE")
    ] = None,
) -> None:
    """Evaluate later systems with the judgments of a campaign in which they had no part.

    Without --later: how well the judgments serve later systems, by leaving each team out in turn.

    Example: probeval reuse runs/ --qrels qrels.txt --metric DCG@10 --later new.run
    """
    messages = output.messages
    if given.qrels is None:
        raise ProbevalError("Reuse is of judgments: give --qrels FILE.")
    if given.model == "none" and pairs is not None:
        raise ProbevalError("--pairs are chosen by a model: name one, not none.")
    if later is None:
        if together or pairs is not None:
            raise ProbevalError("--together and --pairs are for later systems: give --later RUNS.")
        study = messages.warned(given.run)
        _write(study, study.sentences(), output.output_format, messages)
        return
    _note_neighbours(given.runs, later, messages)
    found = messages.warned(part(given, ReuseInputs, later=later, together=together).run)
    _write(found, found.findings(), output.output_format, messages)
    if pairs is not None:
        table = found.pairs()
        write_bytes(pairs, csv_text(table).encode())
        distinct = len(table[["query", "doc"]].drop_duplicates())
        messages.say(f"{distinct:,} pairs to judge, {len(table):,} rows by system: {pairs}.")


def _note_neighbours(runs: list[str], later: list[str], messages: Messages) -> None:
    """Warn of first systems beside later ones: ``--later new/*`` names the first file only, and RUNS get the rest."""
    folders = {Path(path).parent for path in later}
    beside = [path for path in runs if Path(path).is_file() and Path(path).parent in folders]
    if beside:
        messages.say(
            f"{beside[0]} counts as a first system: repeat --later for each later one, or name their directory."
        )


def _write(found: Result, sentences: Sequence[str], output_format: OutputFormat, messages: Messages) -> None:
    """Write a result: data on stdout, sentences on stderr."""
    if output_format is OutputFormat.json:
        write_json(found.to_dict())
    elif output_format is OutputFormat.csv:
        write_csv(found.to_frame())
    else:
        for i, view in enumerate(found.tables()):
            write_table(
                view.frame, output_format, title="\n" * (i > 0) + (view.title or "") or None, decimals=view.decimals
            )
    for sentence in sentences:
        messages.say(sentence)
