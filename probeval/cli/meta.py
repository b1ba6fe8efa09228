"""``probeval meta``: measures, scales and tests compared on collections."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from probeval.api.meta import MetaStudyInputs
from probeval.cli.commands import Output, verb
from probeval.cli.options import ReportFile
from probeval.cli.output import check_picture, write_page, write_pictures
from probeval.records import About

if TYPE_CHECKING:
    from probeval.studies import MetaStudy

__all__ = ["meta"]


@verb("Compare measures, scales and tests on campaigns.")
def meta(
    given: MetaStudyInputs,
    output: Output,
    plot: Annotated[Path | None, About("Plot tests by alpha, and the reliability of measures.", metavar="FILE")] = None,
    report: ReportFile = None,
) -> MetaStudy:
    """Compare measures, scales and significance tests on finished campaigns.

    For each measure and scale: how many pairs of systems tests tell apart, how often a result on half of the queries
    is contradicted by the other half, the reliability of differences (erho2) and of scores (phi), and the distance to
    users where it is published. For each test: the same shares, its exactness (conflicts beside alpha) and
    its agreement with itself.

    Example: probeval meta campaigns/* --metric nDCG@10 --metric AP@10 --test t --test wilcoxon --report meta.html
    """
    messages = output.messages
    check_picture(plot)
    found = messages.warned(given.run)
    if plot is not None:
        from probeval.plots import plot_meta

        write_pictures({plot: plot_meta(found)}, messages)
    if report is not None:
        write_page(found, report, messages)
    return found
