"""``probeval report``: one HTML file about an evaluation, a campaign or a simulation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pandas as pd
import typer

from probeval import api
from probeval.api.report import is_store
from probeval.cli.completion import complete_policy
from probeval.cli.options import (
    Depth,
    DocsFile,
    Format,
    Gain,
    Inference,
    InferenceName,
    Labels,
    Level,
    MagnitudesFile,
    MappingName,
    MetadataFile,
    ModelName,
    ObserversFile,
    Order,
    OrderName,
    OutputFormat,
    Outside,
    PoolPaths,
    PreferencesFile,
    Qrels,
    Quiet,
    Reference,
    Rope,
    ScaleName,
    Seed,
    Stop,
    TeamsFile,
)
from probeval.cli.output import Talk, command_line, write
from probeval.errors import ProbevalError

if TYPE_CHECKING:
    from probeval.reports import Page

__all__ = ["report"]

Source = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE...",
        help="Runs, with --metric; or the store of a campaign; or the output of probeval simulate --format json.",
    ),
]


def report(
    source: Source,
    metric: Annotated[
        str | None, typer.Option("--metric", metavar="METRIC", help="A measure such as nDCG@10, for runs.")
    ] = None,
    qrels: Qrels = None,
    metadata: MetadataFile = None,
    labels: Labels = None,
    observers: ObserversFile = None,
    preferences: PreferencesFile = None,
    magnitudes: MagnitudesFile = None,
    docs: DocsFile = None,
    pool: PoolPaths = None,
    teams: TeamsFile = None,
    outside: Outside = False,
    reference: Reference = None,
    model: ModelName = None,
    inference: Inference = InferenceName.laplace,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The output file.")] = Path(
        "probeval-report.html"
    ),
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="The title of the report.")] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="The campaign, if the store has several.")
    ] = None,
    mapping: MappingName = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="POLICY[:MODEL]",
            help="Simulate the campaign with this policy and report that; may be repeated.",
            autocompletion=complete_policy,
        ),
    ] = None,
    batch: Annotated[
        int, typer.Option("--batch", min=1, help="The number of judgments per batch, with --policy.")
    ] = 10,
    stop: Stop = "confidence=.95",
    rope: Rope = "0",
    level: Level = 0.95,
    draws: Annotated[
        int, typer.Option("--draws", min=2, help="The number of joint draws, if the method uses draws.")
    ] = 1000,
    scale: ScaleName = None,
    gain: Gain = None,
    depth: Depth = None,
    order: Order = OrderName.trec_eval,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Write a report as one self-contained HTML file: offline, light and dark, printable.

    Example: probeval report runs/ --qrels judged.txt --metric nDCG@10 -o report.html
    """
    talk = Talk(quiet=quiet)
    if metric is None and not _stands_alone(source):
        missing = [s for s in source if not (Path(s).exists() or set("*?[") & set(s))]
        if missing:
            raise ProbevalError(f"{missing[0]}: no such file. Check the spelling.")
        raise ProbevalError("Runs need a measure: --metric nDCG@10, for example.")
    if metric is not None and model == "none":
        raise ProbevalError("A report states uncertainty, which needs a model: uniform, hierarchical or a card.")
    if policy and qrels is None:
        raise ProbevalError("A simulation needs full judgments: give --qrels FILE.")
    if policy and (pool is not None or outside):
        raise ProbevalError("--pool and --outside are for an evaluation, not for a simulation with --policy.")
    if (preferences is not None or magnitudes is not None) and (policy or metric is None):
        raise ProbevalError(
            "--preferences and --magnitudes are for runs with --metric, not for a simulation or a store."
        )
    if teams is not None and (policy or metric is None):
        raise ProbevalError("--teams is for runs with --metric; a campaign and a simulation have their own teams.")
    how = {"batch": batch, "stop": stop} if policy else {"inference": inference.value, "expect": talk.expect}
    page = talk.warned(
        lambda: api.report(
            source,
            out,
            metric,
            title=title,
            name=name,
            policies=policy,
            mapping=mapping,
            level=level,
            rope=rope,
            command=command_line(),
            progress=lambda work: talk.track(work, "Reporting; the forecast takes longest"),
            say=talk,
            qrels=qrels,
            metadata=metadata,
            labels=labels,
            observers=observers,
            docs=docs,
            model=model,
            scale=scale,
            gain=gain,
            depth=depth,
            draws=draws,
            order=order.value,
            seed=seed,
            **how,
            **({} if preferences is None else {"preferences": preferences}),
            **({} if magnitudes is None else {"magnitudes": magnitudes}),
            **({} if reference is None else {"reference": reference}),
            **({} if pool is None else {"pool": pool}),
            **({} if teams is None else {"teams": teams}),
            **({"outside": True} if outside else {}),
        )
    )
    _write(page, out, output_format)
    talk(f"The report is in {out}: open it in a browser.")


def _stands_alone(source: list[str]) -> bool:
    """Whether the source needs no measure: a store, or the JSON of a simulation."""
    return len(source) == 1 and (source[0].endswith(".json") or is_store(source[0]))


def _write(page: Page, out: Path, output_format: OutputFormat) -> None:
    """Print the key figures and the paragraph for a paper."""
    figures = pd.DataFrame(page.figures, columns=["what", "value", "note"])
    document: dict[str, Any] = {
        "report": str(out),
        "kind": page.kind,
        "title": page.title,
        "lead": page.lead,
        "figures": [dict(zip(figures.columns, row, strict=True)) for row in page.figures],
        "sections": [section.title for section in page.sections],
        "paragraph": page["paper"].parts[0].text,  # type: ignore[union-attr]
    }
    write(figures, document, output_format, title=page.lead)
