"""``probeval aggregate``: one grade or gain per pair, from many votes or answers."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from probeval.api.aggregate import AggregationInputs
from probeval.cli.commands import Output, verb
from probeval.cli.output import Messages
from probeval.data.spreadsheets import csv_text
from probeval.errors import ProbevalError
from probeval.records import About, parse_shares
from probeval.reporting import SILENT

if TYPE_CHECKING:
    from probeval.preferences import DocumentScores
    from probeval.relevance.aggregation import Aggregation

__all__ = ["aggregate"]

QRELS = (".qrels", ".txt")


class AggregationMethod(StrEnum):
    """Methods: of votes (:data:`probeval.relevance.aggregation.METHODS`) and of answers (:data:`SCORING`)."""

    model = "model"
    majority = "majority"
    median = "median"
    dawid_skene = "dawid-skene"
    mean = "mean"
    win_shares = "win-shares"
    relevance_shares = "relevance-shares"
    ratios = "ratios"
    magnitudes = "magnitudes"


OF_VOTES = tuple(AggregationMethod(name) for name in ("model", "majority", "median", "dawid-skene"))


@verb("Aggregate crowd votes into grades.")
def aggregate(
    given: AggregationInputs,
    output: Output,
    method: Annotated[
        list[AggregationMethod] | None,
        About(
            "The method. For votes model (the default), majority, median, dawid-skene or mean; for answers about "
            "two documents win-shares, relevance-shares or ratios, combined if repeated; for numbers magnitudes, mean.",
            kind=AggregationMethod,
            many=True,
        ),
    ] = None,
    grades_by_shares: Annotated[
        list[float] | None,
        About(
            "Turn scores into grades 0, 1, .., each with this share of a query's documents.",
            metavar="S,S,..",
            kind=str,
            parse=parse_shares,
        ),
    ] = None,
    bias: Annotated[float, About("Of win-shares: the weight left to the other document.", least=0, most=0.5)] = 0.0,
    shift: Annotated[float, About("Of ratios and combinations: the number added to scores.", least=0)] = 1.0,
    out: Annotated[
        Path | None,
        About(
            "Write the grades or scores to a file: qrels if it ends in .qrels or .txt, or CSV.",
            metavar="FILE",
            option="-o, --out",
        ),
    ] = None,
    workers: Annotated[Path | None, About("Write the workers to a CSV file.", metavar="FILE")] = None,
) -> Aggregation | DocumentScores | None:
    """Aggregate crowd votes or answers about pairs: P of each grade of every pair, or a real-valued score.

    Example: probeval aggregate votes.tsv --gold expert.qrels --workers workers.csv
    """
    messages, methods = output.messages, method or [AggregationMethod.model]
    found: Aggregation | DocumentScores
    if all(name in OF_VOTES for name in methods):
        if len(methods) > 1:
            raise ProbevalError(f"{' and '.join(methods)} cannot be combined: give --method once.")
        if grades_by_shares is not None:
            raise ProbevalError(f"--grades-by-shares turns scores into grades, and {methods[0]} gives grades already.")
        found = replace(given, method=methods[0].value, reporter=SILENT).run()  # its remarks are in sentences()
        if workers is not None:
            _write_file(workers, csv_text(found.workers()), messages)
    else:
        found = _scores(given, methods, workers, bias=bias, shift=shift, shares=grades_by_shares)
    if out is None:
        return found
    for sentence in found.sentences():
        messages.say(sentence)
    _write_file(out, _text(found, out), messages)
    return None


def _scores(
    given: AggregationInputs, methods: list[AggregationMethod], workers: Path | None, **options: Any
) -> DocumentScores:
    """Score documents by methods of answers; what is for votes alone is refused."""
    from probeval.preferences import score_documents

    for_votes = {"--gold": given.gold, "--reference": given.reference, "--scale": given.scale, "--workers": workers}
    mixed = [name for name in methods if name in OF_VOTES]
    if mixed:
        raise ProbevalError(f"{mixed[0]} is for votes, and cannot be combined with others: give --method once.")
    wrong = next((option for option, value in for_votes.items() if value is not None), None)
    if wrong is not None:
        raise ProbevalError(f"{wrong} is for votes by {', '.join(OF_VOTES)}, not for {' and '.join(methods)}.")
    return score_documents(given.votes, [name.value for name in methods], **options)


def _text(found: Aggregation | DocumentScores, path: Path) -> str:
    """The grades or scores as the name of the file asks: qrels or CSV."""
    from probeval.data.trec import qrels_text

    if path.name.removesuffix(".gz").lower().endswith(QRELS):
        return qrels_text(found.to_judgments(), path=path)
    return csv_text(found.to_frame())


def _write_file(path: Path, text: str, messages: Messages) -> None:
    from probeval.data.files import write_bytes

    write_bytes(path, text.encode())
    messages.say(f"Written: {path}.")
