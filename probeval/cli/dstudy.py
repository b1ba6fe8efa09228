"""``probeval dstudy``: the reliability of collections of other sizes, and the size that a target needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from probeval import api
from probeval.api.evidence import Groups, Labels, Observers, Order, Qrels
from probeval.api.settings import Depth, Gains, GradeScale, Level, Seed
from probeval.cli.options import Format, OutputFormat, Quiet
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
from probeval.records import parse_counts

if TYPE_CHECKING:
    from probeval.reliability import DStudy
    from probeval.reliability.dstudy import DStudyDocument

__all__ = ["dstudy"]


def dstudy(
    source: Sources,
    metric: StudyMetrics = None,
    qrels: Qrels = None,
    metadata: Groups = None,
    labels: Labels = None,
    observers: Observers = None,
    model: StudyModel = "none",
    design: DesignText = "s x q",
    components: Components = None,
    method: StudyMethodOption = StudyMethod.anova,
    interval: Interval = None,
    drop: Drop = 0.0,
    queries: Annotated[
        str | None, typer.Option("--queries", metavar="N,N,..", help="Numbers of queries to consider.")
    ] = None,
    assessors: Annotated[
        str | None, typer.Option("--assessors", metavar="N,N,..", help="Numbers of assessors to consider.")
    ] = None,
    cutoffs: Annotated[str | None, typer.Option("--cutoffs", metavar="K,K,..", help="Cutoffs of each measure.")] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            metavar="[NAME=]X",
            help="The target: .95, or a value of erho2, phi, tau, tau_ap or power, such as tau=.9.",
        ),
    ] = None,
    level: Level = 0.95,
    draws: JointDraws = 1000,
    scale: GradeScale = None,
    gain: Gains = None,
    depth: Depth = None,
    order: Order = "trec_eval",
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Plot reliability against the number of queries.")
    ] = None,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Predict reliability with other numbers of queries, assessors and ranks, and the queries that a target needs.

    tau, tau_ap and power are rough estimates, from their relation to reliability on past TREC collections.

    Example: probeval dstudy scores.csv --queries 50,100,200 --target .95 --target tau=.9
    """
    talk = Talk(quiet=quiet)
    check_picture(plot)
    metrics = list(metric or [])
    if cutoffs is not None:
        if not metrics:
            raise ProbevalError("--cutoffs needs a measure: --metric nDCG, for example.")
        metrics = [str(parse(text) @ k) for text in metrics for k in parse_counts("--cutoffs", cutoffs) or ()]
    wanted = [pair for text in target or ["erho2=.95", "phi=.95"] for pair in _target(text)]
    sources = study_sources(
        source, metrics, qrels=qrels, metadata=metadata, labels=labels, observers=observers, scale=scale,
        order=order, model=model, talk=talk,
    )  # fmt: skip
    studies = {
        name: talk.warned(
            lambda name=name, given=given: api.dstudy(  # type: ignore[misc]
                given, name, queries=parse_counts("--queries", queries),
                assessors=parse_counts("--assessors", assessors), targets=wanted, level=level, method=method.value,
                interval=interval and interval.value, drop=drop, draws=draws, seed=seed, model=model, design=design,
                components=components, scale=scale, gain=gain, depth=depth, reporter=talk,
            )
        )
        for name, given in sources
    }  # fmt: skip
    if plot is not None:
        _plot(studies, plot, talk)
    _write(studies, output_format, talk)


def _target(text: str) -> list[tuple[str, float]]:
    """Targets from text: ``.95`` is for both coefficients, ``tau=.9`` for one figure."""
    name, _, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        raise ProbevalError(f"--target takes a number or NAME=NUMBER, got {text!r}.") from None
    return [(name.strip(), value)] if name else [("erho2", value), ("phi", value)]


def _write(studies: dict[str | None, DStudy], output_format: OutputFormat, talk: Talk) -> None:
    if output_format is OutputFormat.json:
        documents = [_named(name, study.to_dict()) for name, study in studies.items()]
        write_json(documents[0] if len(documents) == 1 else {"results": documents})
        return
    for i, (name, study) in enumerate(studies.items()):
        if output_format is OutputFormat.csv:
            table = study.to_frame()
            write_csv(table if len(studies) == 1 else table.assign(metric=name), header=i == 0)
            continue
        sizes, needed = study.views()
        write_table(sizes.frame, output_format, title=_title(name, i))
        write_table(needed.frame, output_format, title="\nQueries needed")
    if output_format is not OutputFormat.csv:
        for study in list(studies.values())[:1]:
            for sentence in study.sentences():
                talk.say(sentence)


def _named(name: str | None, document: DStudyDocument) -> DStudyDocument:
    return document if name is None else {"metric": name, **document}


def _title(name: str | None, i: int) -> str | None:
    return None if name is None else "\n" * (i > 0) + name


def _plot(studies: dict[str | None, DStudy], path: Path, talk: Talk) -> None:
    from probeval.plots import plot_dstudy

    write_pictures({path: plot_dstudy({name or "scores": study for name, study in studies.items()})}, talk)
