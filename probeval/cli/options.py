"""Options that several verbs share, each with one name, one meaning and one help text."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Depth", "Format", "Gain", "Metrics", "OutputFormat", "PerQuery", "Qrels", "Quiet", "RunPaths", "Seed"]


class OutputFormat(StrEnum):
    """How data are written to stdout."""

    table = "table"
    csv = "csv"
    json = "json"


class Systems(StrEnum):
    """Which systems take part."""

    all = "all"
    judged = "judged"


class GainName(StrEnum):
    """What a grade is worth."""

    linear = "linear"
    exp = "exp"


class OrderName(StrEnum):
    """How a run is ordered; the names of :data:`probeval.data.runs.ORDERS`."""

    trec_eval = "trec_eval"
    score = "score"
    rank = "rank"
    file = "file"


RunPaths = Annotated[
    list[str], typer.Argument(metavar="RUNS...", help="TREC run files (plain or gz), globs, or a directory.")
]
Qrels = Annotated[
    Path | None, typer.Option("--qrels", metavar="FILE", help="Judgments: TREC qrels or prels, or a table.")
]
Metrics = Annotated[
    list[str], typer.Option("--metric", metavar="METRIC", help="A measure such as nDCG@10; may be repeated.")
]
MetadataFile = Annotated[
    Path | None, typer.Option("--metadata", metavar="FILE", help="A table of documents and their groups.")
]
Labels = Annotated[
    Path | None,
    typer.Option("--labels", metavar="FILE", help="A table of labels by machines: query, doc, one column each."),
]
ScaleName = Annotated[
    str | None,
    typer.Option(
        "--scale", metavar="SCALE", help="binary, graded:M (grades 0..M) or fine (0..100); inferred when not given."
    ),
]
Gain = Annotated[GainName | None, typer.Option("--gain", help="What a grade is worth: itself, or 2^grade - 1.")]
Depth = Annotated[
    int | None,
    typer.Option("--depth", min=1, help="How many ranks to look at: the metric's cutoff, else the whole run."),
]
SystemChoice = Annotated[
    Systems,
    typer.Option("--systems", help="judged: only systems with more than .99 of their retrieved documents judged."),
]
Order = Annotated[OrderName, typer.Option("--order", help="How ties in a run are broken.")]
PerQuery = Annotated[bool, typer.Option("--per-query", help="Add the score of every system on every query.")]
Format = Annotated[OutputFormat, typer.Option("--format", help="How data are written to stdout.")]
Seed = Annotated[int, typer.Option("--seed", help="Same seed, same bytes.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Say nothing on stderr but errors.")]
