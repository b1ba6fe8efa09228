"""``probeval aggregate``: one grade per pair, with its probability, from many votes."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from probeval import api
from probeval.cli.options import Format, Level, OutputFormat, Quiet, ScaleName, Seed
from probeval.cli.output import Talk, write_csv, write_json, write_table
from probeval.data.cells import csv_text

if TYPE_CHECKING:
    from probeval.relevance.aggregation import Aggregation

__all__ = ["aggregate"]

QRELS = (".qrels", ".txt")


class AggregationMethod(StrEnum):
    """Methods of aggregation; the names of :data:`probeval.relevance.aggregation.METHODS`."""

    model = "model"
    majority = "majority"
    median = "median"
    dawid_skene = "dawid-skene"


def aggregate(
    votes: Annotated[
        Path,
        typer.Argument(metavar="VOTES", help="A table of query, document, worker and label: TSV, CSV, JSONL, parquet."),
    ],
    gold: Annotated[
        Path | None,
        typer.Option("--gold", metavar="FILE", help="An expert's grades of some pairs; default: the column gold."),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            "--reference",
            metavar="NAME",
            help="Whose grade is wanted: gold, consensus or an assessor; default: gold if there is any.",
        ),
    ] = None,
    method: Annotated[
        AggregationMethod, typer.Option("--method", help="The method of aggregation.")
    ] = AggregationMethod.model,
    scale: ScaleName = None,
    level: Level = 0.9,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="FILE",
            help="Write the grades to a file: qrels if it ends in .qrels or .txt, or CSV.",
        ),
    ] = None,
    workers: Annotated[
        Path | None, typer.Option("--workers", metavar="FILE", help="Write the workers to a CSV file.")
    ] = None,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Aggregate crowd votes: the probability of each grade of every pair, and the quality of every worker.

    Example: probeval aggregate votes.tsv --gold expert.qrels --workers workers.csv
    """
    talk = Talk(quiet=quiet)
    found = api.aggregate(
        votes, gold, scale=scale, reference=reference, method=method.value, level=level, say=talk
    )  # fmt: skip
    talk(f"{found!r}"[1:-1] + ".")
    if workers is not None:
        _write_file(workers, csv_text(found.workers()), talk)
    if out is not None:
        _write_file(out, _text(found, out), talk)
    elif output_format is OutputFormat.json:
        write_json(found.to_dict())
    elif output_format is OutputFormat.csv:
        write_csv(found.to_frame())
    else:
        write_table(found.to_frame(), decimals={"gold": 0})


def _text(found: Aggregation, path: Path) -> str:
    """The grades as the name of the file asks: qrels or CSV."""
    from probeval.data.trec import qrels_text

    if path.name.removesuffix(".gz").lower().endswith(QRELS):
        return qrels_text(found.to_judgments(), path=path)
    return csv_text(found.to_frame())


def _write_file(path: Path, text: str, talk: Talk) -> None:
    from probeval.data.files import write_bytes

    write_bytes(path, text.encode())
    talk(f"Written: {path}.")
