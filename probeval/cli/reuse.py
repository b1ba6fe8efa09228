"""``probeval reuse``: later systems, evaluated with the judgments of a campaign."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from probeval import api
from probeval.cli.options import (
    DocsFile,
    Format,
    Gain,
    Labels,
    Level,
    MetadataFile,
    Metric,
    ModelName,
    ObserversFile,
    Order,
    OrderName,
    OutputFormat,
    Qrels,
    Quiet,
    RunPaths,
    ScaleName,
    Seed,
)
from probeval.cli.output import Talk, write_csv, write_json, write_table
from probeval.data.files import write_bytes
from probeval.data.spreadsheets import csv_text
from probeval.display import Shown
from probeval.errors import ProbevalError

__all__ = ["reuse"]


def reuse(
    runs: RunPaths,
    metric: Metric,
    later: Annotated[
        list[str] | None,
        typer.Option(
            "--later", metavar="RUNS", help="Runs of later systems: a file, a glob or a directory; may be repeated."
        ),
    ] = None,
    qrels: Qrels = None,
    together: Annotated[
        bool, typer.Option("--together", help="The later systems arrived as a group: all join the campaign at once.")
    ] = False,
    pairs: Annotated[
        Path | None,
        typer.Option("--pairs", metavar="FILE", help="Write the pairs that each later system needs, as CSV."),
    ] = None,
    metadata: MetadataFile = None,
    labels: Labels = None,
    observers: ObserversFile = None,
    docs: DocsFile = None,
    model: ModelName = None,
    scale: ScaleName = None,
    gain: Gain = None,
    depth: Annotated[
        int | None,
        typer.Option(
            "--depth", min=1, help="The depth of the pool that systems contributed to; default: the measure's cutoff."
        ),
    ] = None,
    level: Level = 0.95,
    order: Order = OrderName.trec_eval,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Evaluate later systems with the judgments of a campaign in which they had no part.

    Without --later: how well the judgments serve later systems, by leaving each team out in turn.

    Example: probeval reuse runs/ --qrels qrels.txt --metric DCG@10 --later new.run
    """
    talk = Talk(quiet=quiet)
    if qrels is None:
        raise ProbevalError("Reuse is of judgments: give --qrels FILE.")
    if model == "none" and pairs is not None:
        raise ProbevalError("--pairs are chosen by a model: name one, not none.")
    options: dict[str, Any] = {
        "qrels": qrels,
        "metadata": metadata,
        "labels": labels,
        "observers": observers,
        "docs": docs,
        "model": model,
        "scale": scale,
        "gain": gain,
        "depth": depth,
        "level": level,
        "order": order.value,
        "seed": seed,
        "progress": talk.progress,
        "say": talk,
    }
    if later is None:
        if together or pairs is not None:
            raise ProbevalError("--together and --pairs are for later systems: give --later RUNS.")
        study = talk.warned(
            lambda: api.reuse_study(runs, metric, track=lambda work: talk.track(work, "Leaving teams out"), **options)
        )
        _write(study, study.sentences(), output_format, talk)
        return
    _note_neighbours(runs, later, talk)
    found = talk.warned(
        lambda: api.reuse(
            runs,
            later,
            metric,
            together=together,
            track=lambda work: talk.track(work, "Later systems"),
            **options,
        )
    )
    _write(found, found.findings(), output_format, talk)
    if pairs is not None:
        table = found.pairs()
        write_bytes(pairs, csv_text(table).encode())
        distinct = len(table[["query", "doc"]].drop_duplicates())
        talk(f"{distinct:,} pairs to judge, {len(table):,} rows by system: {pairs}.")


def _note_neighbours(runs: list[str], later: list[str], talk: Talk) -> None:
    """Warn of first systems beside later ones: ``--later new/*`` names the first file only, and RUNS get the rest."""
    folders = {Path(path).parent for path in later}
    beside = [path for path in runs if Path(path).is_file() and Path(path).parent in folders]
    if beside:
        talk(f"{beside[0]} counts as a first system: repeat --later for each later one, or name their directory.")


def _write(found: Shown, sentences: Sequence[str], output_format: OutputFormat, talk: Talk) -> None:
    """Write a result: data on stdout, sentences on stderr."""
    if output_format is OutputFormat.json:
        write_json(found.to_dict())
    elif output_format is OutputFormat.csv:
        write_csv(found.to_frame())
    else:
        for i, view in enumerate(found.views()):
            write_table(
                view.frame, output_format, title="\n" * (i > 0) + (view.title or "") or None, decimals=view.decimals
            )
    for sentence in sentences:
        talk(sentence)
