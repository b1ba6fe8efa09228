"""``probeval convert``: judgments from the file of one tool to that of another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from probeval import api
from probeval.api.inputs import as_scale
from probeval.cli.completion import complete_convert, complete_judgments, complete_metric
from probeval.cli.documents import ConvertDocument
from probeval.cli.options import Format, OutputFormat, QueriesFile, Quiet, ScaleName, Seed
from probeval.cli.output import Talk, write
from probeval.data import read_judgments, read_texts
from probeval.data.files import write_bytes
from probeval.data.judgments import RULES

__all__ = ["convert"]


def convert(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Judgments, in any format that --qrels reads.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The output file.")],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="The format to write: qrels, quepid (a book) or rank-eval (a request).",
            autocompletion=complete_convert,
        ),
    ] = "qrels",
    kind: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="FORMAT",
            help="The format of the file: qrels, table, quepid, label-studio or rank-eval; by default detected.",
            autocompletion=complete_judgments,
        ),
    ] = None,
    rule: Annotated[
        str | None,
        typer.Option("--rule", metavar="RULE", help=f"One grade per pair, as trec_eval needs it: {', '.join(RULES)}."),
    ] = None,
    queries: QueriesFile = None,
    docs: Annotated[
        Path | None, typer.Option("--docs", metavar="FILE", help="Document texts, for a book: a table of doc and text.")
    ] = None,
    scale: ScaleName = None,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="The name of the book.")] = "probeval",
    index: Annotated[
        str | None, typer.Option("--index", metavar="NAME", help="rank-eval: the index of the documents.")
    ] = None,
    search: Annotated[
        Path | None,
        typer.Option(
            "--search",
            metavar="FILE",
            help="rank-eval: a search as JSON with {{query_string}}, or a request whose ratings are replaced.",
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric",
            metavar="METRIC",
            help="rank-eval: the measure; default: that of --search, or nDCG@10.",
            autocompletion=complete_metric,
        ),
    ] = None,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Convert judgments from the format of one tool to that of another: TREC, Quepid, Label Studio, rank_eval.

    Example: probeval convert annotations.json -o qrels.txt
    """
    talk = Talk(quiet=quiet)
    texts = None if queries is None else read_texts(queries, "query")
    judgments = talk.warned(
        lambda: read_judgments(file, scale=as_scale(scale), file_format=kind, queries=texts),
    )
    text = api.convert(
        judgments,
        to,
        rule=rule,
        scale=scale,
        queries=texts,
        docs=docs,
        name=name,
        index=index,
        search=search,
        metric=metric,
    )
    write_bytes(out, text.encode())
    row: ConvertDocument = {
        "file": str(out),
        "format": to,
        "judgments": len(judgments),
        "assessors": len(judgments.assessors),
    }
    write(pd.DataFrame([row]), row, output_format)
