"""``probeval reuse``: later systems, evaluated with the judgments of a campaign."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from probeval.api.reuse import Reuse, ReuseInputs, ReuseStudyInputs, Together
from probeval.cli.commands import Output, verb
from probeval.cli.output import Messages
from probeval.data.files import write_bytes
from probeval.data.spreadsheets import csv_text
from probeval.errors import ProbevalError
from probeval.records import About, part
from probeval.simulation import ReuseStudy

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
) -> Reuse | ReuseStudy:
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
        return messages.warned(given.run)
    _note_neighbours(given.runs, later, messages)
    found = messages.warned(part(given, ReuseInputs, later=later, together=together).run)
    if pairs is not None:
        table = found.pairs()
        write_bytes(pairs, csv_text(table).encode())
        distinct = len(table[["query", "doc"]].drop_duplicates())
        messages.say(f"{distinct:,} pairs to judge, {len(table):,} rows by system: {pairs}.")
    return replace(found, notes=())  # they have been said


def _note_neighbours(runs: list[str], later: list[str], messages: Messages) -> None:
    """Warn of first systems beside later ones: ``--later new/*`` names the first file only, and RUNS get the rest."""
    folders = {Path(path).parent for path in later}
    beside = [path for path in runs if Path(path).is_file() and Path(path).parent in folders]
    if beside:
        messages.say(
            f"{beside[0]} counts as a first system: repeat --later for each later one, or name their directory."
        )
