"""``probeval convert``: judgments from the file of one tool to that of another; campaigns as partitions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import pandas as pd

from probeval import api
from probeval.api.evidence import Labels, Observers, Order, Qrels, Teams, as_scale
from probeval.api.settings import GradeScale
from probeval.cli.completion import complete_convert
from probeval.cli.documents import ConvertDocument
from probeval.cli.options import Format, OutputFormat, QueriesFile, Quiet
from probeval.cli.output import Talk, write
from probeval.data import read_judgments, read_texts
from probeval.data.files import write_bytes
from probeval.data.judgments import RULES
from probeval.errors import DataError, did_you_mean
from probeval.records import About

__all__ = ["convert"]

PARTITIONS = "partitions"  # a folder, where the other formats are the text of a file


def convert(
    files: Annotated[
        list[str],
        About(
            "Judgments, in any format that --qrels reads; partitions: TREC run files, globs, or a directory.",
            metavar="FILES...",
            argument=True,
            kind=str,
            many=True,
        ),
    ],
    out: Annotated[Path, About("The output file; partitions: the output folder.", metavar="FILE", option="-o, --out")],
    to: Annotated[
        str,
        About(
            "The format to write: qrels, quepid (a book), rank-eval (a request) or partitions (parquet).",
            metavar="FORMAT",
        ),
    ] = "qrels",
    file_format: Annotated[
        str | None,
        About(
            "The format of the file: qrels, table, quepid, label-studio or rank-eval; by default detected.",
            metavar="FORMAT",
            option="--as",
        ),
    ] = None,
    rule: Annotated[
        str | None,
        About(f"One grade per pair, as trec_eval needs it: {', '.join(RULES)}.", metavar="RULE"),
    ] = None,
    queries: QueriesFile = None,
    docs: Annotated[Path | None, About("Document texts, for a book: a table of doc and text.", metavar="FILE")] = None,
    scale: GradeScale = None,
    name: Annotated[str, About("The name of the book.", metavar="NAME")] = "probeval",
    index: Annotated[str | None, About("rank-eval: the index of the documents.", metavar="NAME")] = None,
    search: Annotated[
        Path | None,
        About(
            "rank-eval: a search as JSON with {{query_string}}, or a request whose ratings are replaced.",
            metavar="FILE",
        ),
    ] = None,
    metric: Annotated[
        str | None,
        About("rank-eval: the measure; default: that of --search, or nDCG@10.", metavar="METRIC"),
    ] = None,
    n_partitions: Annotated[
        int | None,
        About(
            "partitions: how many; default: one per 500,000 retrieved documents.",
            metavar="N",
            option="--partitions",
            least=1,
        ),
    ] = None,
    qrels: Qrels = None,
    labels: Labels = None,
    observers: Observers = None,
    teams: Teams = None,
    order: Order = "trec_eval",
    depth: Annotated[int | None, About("partitions: the number of ranks; default: the whole run.", least=1)] = None,
    output_format: Format = OutputFormat.table,
    quiet: Quiet = False,
) -> None:
    """Convert judgments from one tool to another: TREC, Quepid, Label Studio, rank_eval.

    With --to partitions: a whole campaign as parquet files, for one that is larger than memory or for several machines.

    Example: probeval convert annotations.json -o qrels.txt
    """
    talk = Talk(quiet=quiet)
    of_judgments = {
        "--as": file_format, "--rule": rule, "--queries": queries, "--docs": docs, "--scale": scale, "--index": index,
        "--search": search, "--metric": metric,
    }  # fmt: skip
    of_partitions = {
        "--partitions": n_partitions, "--qrels": qrels, "--labels": labels, "--observers": observers, "--teams": teams,
        "--depth": depth,
    }  # fmt: skip
    _check(to, of_judgments if to == PARTITIONS else of_partitions)
    if to == PARTITIONS:
        written = talk.warned(
            lambda: api.partition(
                files,
                out,
                n_partitions,
                qrels=qrels,
                labels=labels,
                observers=observers,
                teams=teams,
                order=order,
                depth=depth,
                reporter=talk,
            )
        )
        talk.say(f"{len(written)} partitions, {written.n_queries:,} queries, {written.n_pairs:,} pairs.")
        _show(out, to, sum(part.judgments for part in written.parts), len(written.assessors or ()), output_format)
        return
    if len(files) > 1:
        raise DataError(f"expected one file of judgments, got {len(files)}. Convert one at a time.")
    file = Path(files[0])
    texts = None if queries is None else read_texts(queries, "query")
    judgments = talk.warned(
        lambda: read_judgments(file, scale=as_scale(scale), file_format=file_format, queries=texts),
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
    _show(out, to, len(judgments), len(judgments.assessors), output_format)


def _check(to: str, others: Mapping[str, Any]) -> None:
    """Raise an error for an unknown format, and for an option that is of other formats alone."""
    known = complete_convert()
    if to not in known:
        raise DataError(f"No format {to!r} to write: {', '.join(known)}.{did_you_mean(to, known)}")
    given = next((option for option, value in others.items() if value is not None), None)
    if given is not None:
        raise DataError(f"{given} does not go with --to {to}. Leave it out.")


def _show(out: Path, to: str, judgments: int, assessors: int, output_format: OutputFormat) -> None:
    row: ConvertDocument = {"file": str(out), "format": to, "judgments": judgments, "assessors": assessors}
    write(pd.DataFrame([row]), row, output_format)
