"""``probeval gate``: may a new system replace a baseline? The answer is an exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from probeval import api
from probeval.api import Gate
from probeval.cli.options import (
    Depth,
    DocsFile,
    Format,
    Gain,
    Labels,
    MappingName,
    MetadataFile,
    Metrics,
    ModelName,
    ObserversFile,
    Order,
    OrderName,
    OutputFormat,
    Outside,
    PoolPaths,
    Qrels,
    Quiet,
    Reference,
    Rope,
    ScaleName,
    Seed,
    Target,
    TargetName,
)
from probeval.cli.output import Talk, write_csv, write_json, write_table
from probeval.data.files import write_bytes
from probeval.data.spreadsheets import csv_text
from probeval.errors import ProbevalError

__all__ = ["gate"]

MOST_PAIRS = 200  # in a file of pairs whose number was not given


def gate(
    new: Annotated[str, typer.Argument(metavar="NEW", help="The run of the new system.")],
    baseline: Annotated[str, typer.Argument(metavar="BASELINE", help="The run of the baseline.")],
    metric: Metrics,
    qrels: Qrels = None,
    labels: Labels = None,
    observers: ObserversFile = None,
    metadata: MetadataFile = None,
    docs: DocsFile = None,
    pool: PoolPaths = None,
    outside: Outside = False,
    reference: Reference = None,
    level: Annotated[
        float, typer.Option("--level", min=0.51, max=0.9999, help="The probability that a verdict needs.")
    ] = 0.95,
    rope: Rope = "0",
    mapping: MappingName = None,
    not_worse: Annotated[
        bool, typer.Option("--not-worse", help="Pass a system that is not worse by more than the rope.")
    ] = False,
    target: Target = TargetName.collection,
    query_weights: Annotated[
        Path | None,
        typer.Option("--query-weights", metavar="FILE", help="A table of queries and weights, such as their traffic."),
    ] = None,
    segments: Annotated[
        Path | None,
        typer.Option("--segments", metavar="FILE", help="A table of queries and segments; each gets a verdict."),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--pairs", metavar="FILE", help="Write the pairs to judge if undecided, and how many it may take."
        ),
    ] = None,
    n: Annotated[
        int | None,
        typer.Option("-n", "--number", min=0, help="The number of pairs in --pairs; default: as many as are likely."),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option("--markdown", metavar="FILE", help="Write a summary for a comment on a pull request."),
    ] = None,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML.")] = None,
    model: ModelName = None,
    scale: ScaleName = None,
    gain: Gain = None,
    depth: Depth = None,
    order: Order = OrderName.trec_eval,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Decide whether a new system is better than a baseline, with few judgments or none; the exit code is the verdict.

    Exit codes: 0 better (with --not-worse: not worse), 3 undecided or tied, 4 worse; 1 is an error, 2 wrong usage. With
    several measures all must pass.

    Example: probeval gate new.txt baseline.txt --qrels judged.txt --metric nDCG@10
    """
    talk = Talk(quiet=quiet)
    if n is not None and pairs is None:
        raise ProbevalError("-n is the number of pairs in a file: give --pairs FILE too.")
    found = talk.warned(
        lambda: api.gate(
            new,
            baseline,
            metric,
            qrels=qrels,
            labels=labels,
            observers=observers,
            metadata=metadata,
            docs=docs,
            pool=pool,
            outside=outside,
            reference=reference,
            level=level,
            rope=rope,
            mapping=mapping,
            not_worse=not_worse,
            target=target.value,
            query_weights=query_weights,
            segments=segments,
            forecast=pairs is not None,
            model=model,
            scale=scale,
            gain=gain,
            depth=depth,
            order=order.value,
            seed=seed,
            progress=talk.progress,
            say=talk,
        )
    )
    if output_format is OutputFormat.json:
        write_json(found.to_dict())
    elif output_format is OutputFormat.csv:
        write_csv(found.to_frame())
    else:
        for view in found.views():
            write_table(view.frame, output_format)
    for sentence in found.sentences():
        talk(sentence)
    if pairs is not None:
        _write_pairs(found, pairs, n, talk)
    if markdown is not None:
        write_bytes(markdown, found.markdown().encode())
    if junit is not None:
        write_bytes(junit, found.junit().encode())
    raise typer.Exit(found.exit_code)


def _write_pairs(found: Gate, path: Path, n: int | None, talk: Talk) -> None:
    """Write the pairs to judge, none unless undecided."""
    likely = 0 if found.ahead is None else min(found.ahead["judgments"], MOST_PAIRS)
    table = found.pairs(likely if n is None else n)
    tabbed = path.name.removesuffix(".gz").endswith(".tsv")
    write_bytes(path, csv_text(table, separator="\t" if tabbed else ",").encode())
    if len(table):
        talk(f"{path}: the first {len(table):,} pairs to judge.")
