"""``probeval agree``: how far two sources agree on documents and on systems."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from probeval.api.agree import AgreementInputs
from probeval.cli.commands import Output, verb
from probeval.cli.output import check_picture, write_pictures
from probeval.errors import ProbevalError
from probeval.records import About
from probeval.results import changed
from probeval.studies import SourceAgreement

__all__ = ["agree"]


@verb("Compare two qrels, label columns, score tables or rankings.")
def agree(
    given: AgreementInputs,
    output: Output,
    per_query: Annotated[bool, About("Add a row per query, of judgments or labels.")] = False,
    plot: Annotated[
        Path | None,
        About("Plot systems by both sources; FILE-p shows the p-values of their pairs.", metavar="FILE"),
    ] = None,
) -> SourceAgreement:
    """Compare two sources: the order in which they put documents or systems, and which differences are significant.

    Both are judgments, columns of labels (FILE:COLUMN), tables of scores, or rankings (a table with system and score,
    or a file with one system per line, the best first). With --runs and --metric, judgments and labels are compared on
    systems too. The first source is the reference.

    Example: probeval agree expert.qrels crowd.qrels --runs runs/ --metric nDCG@10
    """
    check_picture(plot)
    found = output.messages.warned(given.run)
    if per_query and found.documents is None:
        raise ProbevalError("--per-query is for judgments and labels, and these are scores of systems. Leave it out.")
    if plot is not None:
        from probeval.plots import plot_p_values, plot_two_scores

        if found.systems is None:
            raise ProbevalError("--plot shows systems. Add --runs and --metric.")
        pictures = {plot: plot_two_scores(found)}
        if found.systems.pairs:
            pairs = [(one.p_a, one.p_b) for one in found.systems.pairs]
            p_a, p_b = zip(*pairs, strict=True)
            pictures[plot.with_name(f"{plot.stem}-p{plot.suffix}")] = plot_p_values(
                p_a, p_b, names=(found.a, found.b), alpha=found.systems.alpha
            )
        write_pictures(pictures, output.messages)
    return changed(found, per_query=per_query)
