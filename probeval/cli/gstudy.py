"""``probeval gstudy``: the sources of variance in scores, and the reliability of mean scores."""

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

if TYPE_CHECKING:
    from probeval.reliability import GStudy
    from probeval.reliability.gstudy import GStudyDocument

__all__ = ["gstudy"]


def gstudy(
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
    target: Annotated[
        float, typer.Option("--target", min=0.01, max=0.9999, help="The target reliability, for the number of queries.")
    ] = 0.95,
    level: Level = 0.95,
    draws: JointDraws = 1000,
    scale: GradeScale = None,
    gain: Gains = None,
    depth: Depth = None,
    order: Order = "trec_eval",
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            help="Plot the shares of variance; FILE-posterior shows the draws, if any.",
        ),
    ] = None,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Show the shares of variance in scores due to systems, queries, assessors and the rest.

    Then the reliability of differences (erho2) and scores (phi), and the queries that a target needs.

    Example: probeval gstudy scores.csv --drop .25
    """
    talk = Talk(quiet=quiet)
    check_picture(plot)
    sources = study_sources(
        source, metric or [], qrels=qrels, metadata=metadata, labels=labels, observers=observers, scale=scale,
        order=order, model=model, talk=talk,
    )  # fmt: skip
    studies = {
        name: talk.warned(
            lambda name=name, given=given: api.gstudy(  # type: ignore[misc]
                given, name, method=method.value, interval=interval and interval.value, drop=drop, draws=draws,
                seed=seed, model=model, design=design, components=components, scale=scale, gain=gain,
                depth=depth, reporter=talk,
            )
        )
        for name, given in sources
    }  # fmt: skip
    if plot is not None:
        _plot(studies, plot, level, talk)
    _write(studies, output_format, target, level, talk)


def _write(
    studies: dict[str | None, GStudy], output_format: OutputFormat, target: float, level: float, talk: Talk
) -> None:
    if output_format is OutputFormat.json:
        documents = [_named(name, study.to_dict(target=target, level=level)) for name, study in studies.items()]
        write_json(documents[0] if len(documents) == 1 else {"results": documents})
        return
    for i, (name, study) in enumerate(studies.items()):
        table = study.to_frame(level=level)
        if output_format is OutputFormat.csv:
            write_csv(table if len(studies) == 1 else table.assign(metric=name), header=i == 0)
            continue
        studied, *intervals = study.sentences(level=level)
        talk.say(f"{chr(10) * (i > 0)}{studied}")
        components, reliability = study.views(target=target, level=level)
        write_table(components.frame, output_format, title=name)
        write_table(reliability.frame, output_format, title="\nReliability")
        for sentence in intervals:
            talk.say(sentence)


def _named(name: str | None, document: GStudyDocument) -> GStudyDocument:
    return document if name is None else {"metric": name, **document}


def _plot(studies: dict[str | None, GStudy], path: Path, level: float, talk: Talk) -> None:
    from probeval.plots import plot_components, plot_posterior

    first = next(iter(studies.values()))
    shown = {name or "scores": study for name, study in studies.items()}
    pictures = {path: plot_components(shown, level=level)}
    if first.draws is not None:
        pictures[path.with_name(f"{path.stem}-posterior{path.suffix}")] = plot_posterior(first, level=level)
    write_pictures(pictures, talk)
