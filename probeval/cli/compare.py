"""``probeval compare``: which of two systems is better, by a model or by tests, for every pair."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from probeval.api.compare import ComparisonInputs
from probeval.api.comparisons import Comparisons, ModelComparisons, PairwiseComparisons
from probeval.api.studies import is_score_table
from probeval.cli.commands import Output, verb
from probeval.cli.output import Messages, check_picture, write_pictures
from probeval.data.files import is_partitioned
from probeval.errors import ProbevalError
from probeval.records import About

__all__ = ["compare"]


@verb("Test every pair of systems.")
def compare(
    given: ComparisonInputs,
    output: Output,
    plot: Annotated[
        Path | None, About("Plot all pairs; FILE-ranks shows the critical differences.", metavar="FILE")
    ] = None,
) -> Comparisons:
    """Compare every pair of systems: which is better, by how much, and how sure that is.

    With unjudged documents, a relevance model gives the probability that a system is better, on these queries and on
    new ones, what labels contributed, and the pairs to judge next if it is undecided. With complete judgments or a
    table of scores, or with --method: tests, corrected for multiple comparisons, with effect sizes; unjudged documents
    count as not relevant. A campaign in partitions is compared by a model.

    Example: probeval compare new.txt old.txt --qrels qrels.txt --labels labels.tsv --metric nDCG@10 --rope .01
    """
    check_picture(plot)
    if given.target_accept is not None and not given.bayes:
        raise ProbevalError("--target-accept is for the sampler of --bayes. Leave it out, or add --bayes.")
    if given.metric is None and is_score_table(given.runs):
        if given.model is not None or given.qrels is not None:
            raise ProbevalError("--qrels and --model apply to runs with --metric, not to a table of scores.")
    elif given.metric is None:
        raise ProbevalError("Runs need --metric METRIC (nDCG@10); a single table (.csv) is read as scores.")
    elif given.qrels is None and given.by_tests and not any(map(is_partitioned, given.runs)):
        raise ProbevalError(
            "Tests need judgments: give --qrels FILE. Without any, leave out --method, --correction, --alternative, "
            "--target, --noninferior, --bayes and --model none: a relevance model gives the probability that each "
            "system is better."
        )
    found = output.messages.warned(given.run)
    if plot is not None:
        _plot(found, plot, output.messages)
    return replace(found, notes_said=True)


def _plot(found: Comparisons, path: Path, messages: Messages) -> None:
    from probeval.plots import plot_critical, plot_pairs, plot_tests

    if isinstance(found, ModelComparisons):
        write_pictures({path: plot_pairs(found.ranking)}, messages)
        return
    pictures = {path: plot_tests(found)}
    if isinstance(found, PairwiseComparisons) and found.friedman is not None:
        pictures[path.with_name(f"{path.stem}-ranks{path.suffix}")] = plot_critical(found)
    write_pictures(pictures, messages)
