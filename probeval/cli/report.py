"""``probeval report``: one HTML file about an evaluation, a campaign or a simulation."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pandas as pd
import typer

from probeval.cli.completion import complete_policy
from probeval.cli.options import (
    Depth,
    Format,
    Gain,
    GainName,
    Inference,
    InferenceName,
    Labels,
    Level,
    MappingName,
    MetadataFile,
    ModelName,
    Order,
    OrderName,
    OutputFormat,
    Qrels,
    Quiet,
    ScaleName,
    Seed,
    Stop,
)
from probeval.cli.output import Talk, write
from probeval.cli.sources import collect
from probeval.data import Collection, Scale
from probeval.errors import ProbevalError

if TYPE_CHECKING:
    from probeval.reports import Page
    from probeval.satisfaction import SatMapping

__all__ = ["report"]

URLS = ("postgresql://", "postgresql+", "postgres://", "sqlite:")
PASSWORD = re.compile(r"(?<=://)([^:/@\s]+):[^@\s]+@")  # of a store, which no report shows
SQLITE = b"SQLite format 3\x00"

Source = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE...",
        help="Runs, with --metric; or the store of a campaign; or what probeval simulate --format json wrote.",
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
    model: ModelName = None,
    inference: Inference = InferenceName.laplace,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="Where the report is written.")] = Path(
        "probeval-report.html"
    ),
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="What the report is called.")] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Which campaign, where the store holds several.")
    ] = None,
    mapping: MappingName = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="POLICY[:MODEL]",
            help="Judge the campaign again by this policy and report the simulation; may be repeated.",
            autocompletion=complete_policy,
        ),
    ] = None,
    batch: Annotated[
        int, typer.Option("--batch", min=1, help="How many judgments between two choices, with --policy.")
    ] = 10,
    stop: Stop = "confidence=.95",
    level: Level = 0.95,
    draws: Annotated[int, typer.Option("--draws", min=2, help="How many joint draws, where draws are made.")] = 1000,
    scale: ScaleName = None,
    gain: Gain = None,
    depth: Depth = None,
    order: Order = OrderName.trec_eval,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Write a report as one HTML file that needs nothing else: no network, light and dark, fit for print.

    Example: probeval report runs/ --qrels judged.txt --metric nDCG@10 -o report.html
    """
    from probeval.reports import read_simulation, report_simulation, write_report
    from probeval.satisfaction import load_mapping

    talk = Talk(quiet=quiet)
    command = PASSWORD.sub(r"\1:***@", f"probeval {shlex.join(sys.argv[1:])}")
    users = None if mapping is None else load_mapping(mapping)
    if len(source) == 1 and source[0].endswith(".json") and metric is None:
        kind, page = "simulation", report_simulation(read_simulation(source[0]), command=command)
    elif len(source) == 1 and _is_store(source[0]):
        kind, page = "campaign", _campaign(source[0], name, level, command, users, talk)
    else:
        if metric is None:
            missing = [s for s in source if not (Path(s).exists() or set("*?[") & set(s))]
            if missing:
                raise ProbevalError(f"{missing[0]}: no such file. Check the spelling.")
            raise ProbevalError("Runs need a measure: --metric nDCG@10, for example.")
        named = None if scale is None else Scale.parse(scale)
        collection = collect(
            source, qrels=qrels, metadata=metadata, labels=labels, scale=named, order=order.value, talk=talk
        )
        if policy:
            kind = "simulation"
            page = _simulation(
                collection, metric, policy, model, batch, stop, named, gain, depth, draws, seed, command, talk
            )
        else:
            kind = "evaluation"
            page = _evaluation(
                collection, metric, model, inference, level, draws, named, gain, depth, seed, command, users, talk
            )
    if title is not None:
        from dataclasses import replace

        page = replace(page, title=title)
    write_report(page, out)
    _say(page, kind, out, output_format)
    talk(f"The report is in {out}: open it in a browser.")


def _say(page: Page, kind: str, out: Path, output_format: OutputFormat) -> None:
    """The figures that one looks for first, and the paragraph for a paper."""
    figures = pd.DataFrame(page.figures, columns=["what", "value", "note"])
    document: dict[str, Any] = {
        "report": str(out),
        "kind": kind,
        "title": page.title,
        "lead": page.lead,
        "figures": [dict(zip(figures.columns, row, strict=True)) for row in page.figures],
        "sections": [section.title for section in page.sections],
        "paragraph": page["paper"].parts[0].text,  # type: ignore[union-attr]
    }
    write(figures, document, output_format, title=page.lead)


def _is_store(place: str) -> bool:
    if place.startswith(URLS):
        return True
    path = Path(place)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE


def _campaign(store: str, name: str | None, level: float, command: str, users: SatMapping | None, talk: Talk) -> Page:
    from probeval.campaign import Campaign
    from probeval.reports import report_campaign

    with Campaign.open(store, name=name, read_only=True) as opened:
        return talk.warned(
            lambda: report_campaign(opened, level=level, command=command, mapping=users, progress=_shown(talk))
        )


def _evaluation(
    collection: Collection,
    metric: str,
    model: str | None,
    inference: InferenceName,
    level: float,
    draws: int,
    named: Scale | None,
    gain: GainName | None,
    depth: int | None,
    seed: int,
    command: str,
    users: SatMapping | None,
    talk: Talk,
) -> Page:
    from dataclasses import replace

    from probeval.relevance import choose_model
    from probeval.reports import begin, report_evaluation

    if model == "none":
        raise ProbevalError("A report speaks of uncertainty, which needs a model: uniform, hierarchical or a card.")
    choice = choose_model(model, collection, scale=named, inference=inference.value)
    talk(f"Model {choice.name}: {choice.why} Scale {choice.scale} ({choice.scale_from}).")
    choice = choice if gain is None else replace(choice, scale=choice.scale.with_gain(gain.value))
    found = talk.warned(
        lambda: begin(collection, choice, metric, depth=depth, level=level, draws=draws, seed=seed, mapping=users)
    )
    seen = choice.fitted_on(collection)
    return talk.warned(
        lambda: report_evaluation(
            found, title=f"{collection.name}: {metric}", command=command, seen=seen, progress=_shown(talk)
        )
    )


def _shown(talk: Talk) -> Callable[[Sequence[Any]], Iterable[Any]]:
    return lambda work: talk.track(work, "Reporting; the forecast takes longest")


def _simulation(
    collection: Collection,
    metric: str,
    policies: Sequence[str],
    model: str | None,
    batch: int,
    stop: str,
    named: Scale | None,
    gain: GainName | None,
    depth: int | None,
    draws: int,
    seed: int,
    command: str,
    talk: Talk,
) -> Page:
    from probeval.reports import report_simulation
    from probeval.simulation import SimulationProtocol, simulate

    if collection.judgments is None:
        raise ProbevalError("A simulation needs full judgments to answer from: give --qrels FILE.")
    protocol = SimulationProtocol.of(
        metric, policies=policies, model=model, batch=batch, stop=stop, scale=named, gain=gain and gain.value,
        depth=depth, draws=draws, seed=seed,
    )  # fmt: skip
    result = simulate(collection, protocol, say=talk, progress=lambda work: talk.track(work, "Simulating"))
    return report_simulation(result, title=f"{collection.name}: {metric}, simulated", command=command, seed=seed)
