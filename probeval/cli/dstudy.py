"""``probeval dstudy``: how reliable a collection of another size would be, and how big one must be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pandas as pd
import typer

from probeval import api
from probeval.cli.options import (
    Depth,
    Format,
    Gain,
    Labels,
    Level,
    MetadataFile,
    Order,
    OrderName,
    OutputFormat,
    Qrels,
    Quiet,
    ScaleName,
    Seed,
    parse_counts,
)
from probeval.cli.output import Talk, check_picture, write_csv, write_json, write_pictures, write_table
from probeval.cli.studies import (
    Components,
    DesignText,
    Drop,
    Interval,
    JointDraws,
    Sources,
    StudyMethod,
    StudyMethodOption,
    StudyMetrics,
    StudyModel,
    study_sources,
)
from probeval.errors import ProbevalError
from probeval.metrics import parse

if TYPE_CHECKING:
    from probeval.reliability import DStudy

__all__ = ["dstudy"]

SHOWN = ("query", "assessor", "judgments", "erho2", "erho2_lower", "erho2_upper", "phi", "phi_lower", "phi_upper",
         "tau", "tau_ap", "power")  # fmt: skip


def dstudy(
    source: Sources,
    metric: StudyMetrics = None,
    qrels: Qrels = None,
    metadata: MetadataFile = None,
    labels: Labels = None,
    model: StudyModel = "none",
    design: DesignText = "s x q",
    components: Components = None,
    method: StudyMethodOption = StudyMethod.anova,
    interval: Interval = None,
    drop: Drop = 0.0,
    queries: Annotated[
        str | None, typer.Option("--queries", metavar="N,N,..", help="Numbers of queries to look at.")
    ] = None,
    assessors: Annotated[
        str | None, typer.Option("--assessors", metavar="N,N,..", help="Numbers of assessors to look at.")
    ] = None,
    cutoffs: Annotated[
        str | None, typer.Option("--cutoffs", metavar="K,K,..", help="Cutoffs to give each measure in turn.")
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            metavar="[NAME=]X",
            help="What to reach: .95, or one of erho2, phi, tau, tau_ap, power as tau=.9.",
        ),
    ] = None,
    level: Level = 0.95,
    draws: JointDraws = 1000,
    scale: ScaleName = None,
    gain: Gain = None,
    depth: Depth = None,
    order: Order = OrderName.trec_eval,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw reliability against the number of queries.")
    ] = None,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Say how reliable other numbers of queries, assessors and ranks would be, and how many queries a target takes.

    tau, tau_ap and power are what such reliability went with on past TREC collections: a rough guide.

    Example: probeval dstudy scores.csv --queries 50,100,200 --target .95 --target tau=.9
    """
    talk = Talk(quiet=quiet)
    check_picture(plot)
    metrics = list(metric or [])
    if cutoffs is not None:
        if not metrics:
            raise ProbevalError("--cutoffs needs a measure to cut: --metric nDCG, for example.")
        metrics = [str(parse(text) @ k) for text in metrics for k in parse_counts("--cutoffs", cutoffs) or ()]
    wanted = [pair for text in target or ["erho2=.95", "phi=.95"] for pair in _target(text)]
    sources = study_sources(
        source, metrics, qrels=qrels, metadata=metadata, labels=labels, scale=scale, order=order.value, model=model,
        talk=talk,
    )  # fmt: skip
    studies = {
        name: talk.warned(
            lambda name=name, given=given: api.dstudy(  # type: ignore[misc]
                given, name, queries=parse_counts("--queries", queries),
                assessors=parse_counts("--assessors", assessors), targets=wanted, level=level, method=method.value,
                interval=interval and interval.value, drop=drop, draws=draws, seed=seed, model=model, design=design,
                components=components, scale=scale, gain=gain and gain.value, depth=depth, say=talk,
            )
        )
        for name, given in sources
    }  # fmt: skip
    if plot is not None:
        _plot(studies, plot, talk)
    _write(studies, output_format, talk)


def _target(text: str) -> list[tuple[str, float]]:
    """``.95`` is meant for both coefficients, ``tau=.9`` for one figure."""
    name, _, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        raise ProbevalError(f"--target takes a number or NAME=NUMBER, got {text!r}.") from None
    return [(name.strip(), value)] if name else [("erho2", value), ("phi", value)]


def _write(studies: dict[str | None, DStudy], output_format: OutputFormat, talk: Talk) -> None:
    if output_format is OutputFormat.json:
        documents = [{**({} if name is None else {"metric": name}), **s.to_dict()} for name, s in studies.items()]
        write_json(documents[0] if len(documents) == 1 else {"results": documents})
        return
    for i, (name, study) in enumerate(studies.items()):
        table = study.to_frame()
        if output_format is OutputFormat.csv:
            write_csv(table if len(studies) == 1 else table.assign(metric=name), header=i == 0)
            continue
        write_table(_tidy(table[[c for c in SHOWN if c in table.columns]]), title=_title(name, i))
        write_table(_tidy(study.targets_frame()), title="\nQueries needed")
    if output_format is OutputFormat.table and studies:
        first = next(iter(studies.values()))
        if first.study.uncertainty:
            kind = f"{first.level:.0%} intervals ({first.study.interval})"
            talk(f"{kind} are for {' and '.join(first.study.uncertainty)}.")


def _title(name: str | None, i: int) -> str | None:
    return None if name is None else "\n" * (i > 0) + name


def _tidy(table: pd.DataFrame) -> pd.DataFrame:
    """Numbers of things as such, ``-`` for what is not known."""
    whole = [c for c in ("query", "assessor", "judgments", "queries", "lower", "upper") if c in table.columns]
    shown = {c: ["-" if np.isnan(v) else f"{v:.0f}" if np.isfinite(v) else "never" for v in table[c]] for c in whole}
    return table.assign(**shown)


def _plot(studies: dict[str | None, DStudy], path: Path, talk: Talk) -> None:
    from probeval.plots import plot_dstudy

    write_pictures({path: plot_dstudy({name or "scores": study for name, study in studies.items()})}, talk)
