"""``probeval gstudy``: the sources of variance in scores, and the reliability of mean scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from probeval.api.settings import Level
from probeval.api.studies import GStudyInputs
from probeval.cli.commands import Output, verb
from probeval.cli.options import OutputFormat
from probeval.cli.output import Messages, check_picture, write_csv, write_json, write_pictures, write_table
from probeval.cli.studies import StudyMetrics, study_each
from probeval.records import About

if TYPE_CHECKING:
    from probeval.reliability import GStudy
    from probeval.reliability.gstudy import GStudyDocument

__all__ = ["gstudy"]


@verb("Show the sources of variance in scores.")
def gstudy(
    given: GStudyInputs,
    output: Output,
    metric: StudyMetrics = None,
    target: Annotated[
        float, About("The target reliability, for the number of queries.", least=0.01, most=0.9999)
    ] = 0.95,
    level: Level = 0.95,
    plot: Annotated[
        Path | None,
        About("Plot the shares of variance; FILE-posterior shows the draws, if any.", metavar="FILE"),
    ] = None,
) -> None:
    """Show the shares of variance in scores due to systems, queries, assessors and the rest.

    Then the reliability of differences (erho2) and scores (phi), and the queries that a target needs.

    Example: probeval gstudy scores.csv --drop .25
    """
    check_picture(plot)
    studies = study_each(given, metric or [], GStudyInputs.run, output.messages)
    if plot is not None:
        _plot(studies, plot, level, output.messages)
    _write(studies, output.output_format, target, level, output.messages)


def _write(
    studies: dict[str | None, GStudy], output_format: OutputFormat, target: float, level: float, messages: Messages
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
        messages.say(f"{chr(10) * (i > 0)}{studied}")
        components, reliability = study.tables(target=target, level=level)
        write_table(components.frame, output_format, title=name)
        write_table(reliability.frame, output_format, title="\nReliability")
        for sentence in intervals:
            messages.say(sentence)


def _named(name: str | None, document: GStudyDocument) -> GStudyDocument:
    return document if name is None else {"metric": name, **document}


def _plot(studies: dict[str | None, GStudy], path: Path, level: float, messages: Messages) -> None:
    from probeval.plots import plot_components, plot_posterior

    first = next(iter(studies.values()))
    shown = {name or "scores": study for name, study in studies.items()}
    pictures = {path: plot_components(shown, level=level)}
    if first.draws is not None:
        pictures[path.with_name(f"{path.stem}-posterior{path.suffix}")] = plot_posterior(first, level=level)
    write_pictures(pictures, messages)
