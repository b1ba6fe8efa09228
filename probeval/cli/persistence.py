"""``probeval persistence``: the rank-biased precision that is most like other measures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from probeval.api.persistence import PersistenceInputs
from probeval.cli.commands import Output, verb
from probeval.cli.output import check_picture, write_pictures
from probeval.records import About
from probeval.studies import PersistenceStudy

__all__ = ["persistence"]


@verb("Find the persistence at which RBP is most like other measures.")
def persistence(
    given: PersistenceInputs,
    output: Output,
    plot: Annotated[
        Path | None,
        About("Plot scores, residuals and tau by persistence; FILE-queries shows queries.", metavar="FILE"),
    ] = None,
) -> PersistenceStudy:
    """Find the persistence at which RBP orders systems most like each measure, on average and on each query.

    By judgments alone; unjudged documents count as not relevant, and the residual shows what they could add.

    Example: probeval persistence runs/ --qrels qrels.txt --metric AP --metric P@10 --plot persistence.png
    """
    check_picture(plot)
    found = output.messages.warned(given.run)
    if plot is not None:
        from probeval.plots import plot_persistence, plot_persistence_queries

        beside = plot.with_name(f"{plot.stem}-queries{plot.suffix}")
        write_pictures({plot: plot_persistence(found), beside: plot_persistence_queries(found)}, output.messages)
    return found
