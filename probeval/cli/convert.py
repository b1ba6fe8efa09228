"""``probeval convert``: judgments from the file of one tool to that of another; campaigns as partitions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from probeval.api.convert import Conversion, check_written
from probeval.api.partition import NumberOfPartitions, Partitioning
from probeval.cli.commands import Output, spelled, verb
from probeval.cli.completion import complete_convert
from probeval.data.files import write_bytes
from probeval.errors import DataError
from probeval.records import About, inputs, is_given

__all__ = ["convert"]

PARTITIONS = "partitions"  # a folder, where the other formats are the text of a file


@dataclass(frozen=True)
class ConvertedJudgments:
    """The file or folder that is written, its format, and how many judgments and assessors it has."""

    file: str
    format: str
    judgments: int
    assessors: int


@verb("Convert judgments for another tool, or runs to partitions.")
def convert(
    files: Annotated[
        list[str],
        About(
            "Judgments, in any format that --qrels reads; partitions: TREC run files, globs, or a directory.",
            metavar="FILES...",
            argument=True,
            kind=str,
            many=True,
        ),
    ],
    out: Annotated[Path, About("The output file; partitions: the output folder.", metavar="FILE", option="-o, --out")],
    to: Annotated[
        str,
        About(
            "The format to write: qrels, quepid (a book), rank-eval (a request) or partitions (parquet).",
            metavar="FORMAT",
        ),
    ] = "qrels",
    n: NumberOfPartitions = None,
    *,
    of_judgments: Conversion,
    of_partitions: Partitioning,
    output: Output,
) -> ConvertedJudgments:
    """Convert judgments from one tool to another: TREC, Quepid, Label Studio, rank_eval.

    With --to partitions: a whole campaign as parquet files, for one that is larger than memory or for several machines.

    Example: probeval convert annotations.json -o qrels.txt
    """
    messages = output.messages
    check_written(to, complete_convert())
    _refuse(of_judgments if to == PARTITIONS else of_partitions, to)
    if to == PARTITIONS:
        made = messages.warned(lambda: of_partitions.write(files, out, n))
        messages.say(f"{len(made)} partitions, {made.n_queries:,} queries, {made.n_pairs:,} pairs.")
        judged, assessors = sum(part.judgments for part in made.parts), len(made.assessors or ())
    else:
        if n is not None:
            raise DataError(f"--partitions does not go with --to {to}. Leave it out.")
        if len(files) > 1:
            raise DataError(f"expected one file of judgments, got {len(files)}. Convert one at a time.")
        judgments = messages.warned(lambda: of_judgments.read(files[0]))
        write_bytes(out, of_judgments.text(judgments, to).encode())
        judged, assessors = len(judgments), len(judgments.assessors)
    return ConvertedJudgments(str(out), to, judged, assessors)


def _refuse(other: Conversion | Partitioning, to: str) -> None:
    """Raise an error if an option is given that is of other formats alone."""
    kind: type = type(other)
    for one in inputs(kind):
        if one.name != "reporter" and is_given(other, one.name):
            raise DataError(f"{spelled(one)[-1]} does not go with --to {to}. Leave it out.")
