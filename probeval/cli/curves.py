"""``probeval curves``: precision-recall and ROC curves, and the counts behind them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from probeval.api.evidence import JudgedRuns, as_scale
from probeval.api.settings import Depth, GradeScale
from probeval.cli.commands import Output, verb
from probeval.cli.output import check_picture, write_pictures
from probeval.errors import ProbevalError
from probeval.records import About
from probeval.studies import Curves, measure_curves
from probeval.studies.curves import CURVES

__all__ = ["curves"]


@verb("Show precision-recall and ROC curves.")
def curves(
    given: JudgedRuns,
    output: Output,
    show: Annotated[
        str, About("The table: precision at eleven levels of recall, the points of ROC, or counts.", choices=CURVES)
    ] = CURVES[0],
    rel: Annotated[float, About("The lowest grade that counts as relevant.", metavar="GRADE")] = 1.0,
    scale: GradeScale = None,
    depth: Depth = None,
    plot: Annotated[
        Path | None,
        About("Plot the curve to a file: .png, .svg or .pdf. Not for counts.", metavar="FILE"),
    ] = None,
) -> Curves:
    """Show precision-recall and ROC curves of systems, and how many documents they got right, by judgments alone.

    Example: probeval curves runs/ --qrels qrels.txt --show roc --plot roc.png
    """
    messages = output.messages
    check_picture(plot)
    if given.qrels is None:
        raise ProbevalError("Curves need judgments: give --qrels FILE.")
    if plot is not None and show == "counts":
        raise ProbevalError("Counts have no curve to plot: use --show precision-recall or --show roc.")
    named = as_scale(scale)
    collection = messages.warned(lambda: given.collection(scale=named, reporter=messages))
    assert collection.judgments is not None
    found = measure_curves(collection.runs, collection.judgments, scale=named, rel=rel, depth=depth)
    if plot is not None:
        from probeval.plots import plot_precision_recall, plot_roc

        draw = plot_roc if show == "roc" else plot_precision_recall
        write_pictures({plot: draw(found)}, messages)
    return replace(found, show=show)
