"""``probeval gstudy``: the sources of variance in scores, and the reliability of mean scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from probeval.api.studies import GStudyInputs
from probeval.cli.commands import Output, verb
from probeval.cli.output import Messages, check_picture, write_pictures
from probeval.cli.studies import StudyMetrics, study_each
from probeval.records import About

if TYPE_CHECKING:
    from probeval.reliability import GStudies, GStudy

__all__ = ["gstudy"]


@verb("Show the sources of variance in scores.")
def gstudy(
    given: GStudyInputs,
    output: Output,
    metric: StudyMetrics = None,
    plot: Annotated[
        Path | None,
        About("Plot the shares of variance; FILE-posterior shows the draws, if any.", metavar="FILE"),
    ] = None,
) -> GStudy | GStudies:
    """Show the shares of variance in scores due to systems, queries, assessors and the rest.

    Then the reliability of differences (erho2) and scores (phi), and the queries that a target needs.

    Example: probeval gstudy scores.csv --drop .25
    """
    from probeval.reliability import GStudies

    check_picture(plot)
    studies = study_each(given, metric or [], GStudyInputs.run, output.messages)
    if plot is not None:
        _plot(studies, plot, output.messages)
    return studies[0] if len(studies) == 1 else GStudies(studies)


def _plot(studies: tuple[GStudy, ...], path: Path, messages: Messages) -> None:
    from probeval.plots import plot_components, plot_posterior

    pictures = {path: plot_components({str(study.metric or "scores"): study for study in studies})}
    if studies[0].draws is not None:
        pictures[path.with_name(f"{path.stem}-posterior{path.suffix}")] = plot_posterior(studies[0])
    write_pictures(pictures, messages)
