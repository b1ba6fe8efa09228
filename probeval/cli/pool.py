"""``probeval pool``: what collections would have told with fewer judgments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from probeval.api.pools import PoolStudyInputs
from probeval.cli.commands import Output, verb
from probeval.cli.options import ReportFile
from probeval.cli.output import Messages, check_picture, write_page, write_pictures
from probeval.records import About

if TYPE_CHECKING:
    from probeval.studies.pools import PoolStudy

__all__ = ["pool"]


@verb("Compare pools: the same campaigns with fewer judgments.")
def pool(
    given: PoolStudyInputs,
    output: Output,
    plot: Annotated[
        Path | None,
        About("Plot decisions by cut; FILE-trends and FILE-multiplicity show p-values and relevance.", metavar="FILE"),
    ] = None,
    report: ReportFile = None,
) -> PoolStudy:
    """Cut the judgments of finished campaigns, and compare tests and scores with those by the whole pool.

    The judgments that stay are those of a shallower pool (--depth), a random share (--share), or all but those that one
    team alone contributed (--leave-team-out); by default, those of several depths. A system is deeply judged if the top
    ranks of all its lists are judged. The RBP residual beside every test is what unjudged documents could add to a
    score.

    Example: probeval pool trec8 clef2018 --depth 1,2,5,10 --metric AP --report pools.html
    """
    messages = output.messages
    check_picture(plot)
    result = messages.warned(given.run)
    if plot is not None:
        _plot(result, plot, messages)
    if report is not None:
        write_page(result, report, messages)
    return result


def _plot(result: PoolStudy, path: Path, messages: Messages) -> None:
    from probeval.plots import plot_multiplicity, plot_pools, plot_trends

    beside = {name: path.with_name(f"{path.stem}-{name}{path.suffix}") for name in ("trends", "multiplicity")}
    pictures = {path: plot_pools(result), beside["multiplicity"]: plot_multiplicity(result)}
    if any(part.bars for part in result.campaigns):
        pictures[beside["trends"]] = plot_trends(result)
    write_pictures(pictures, messages)
