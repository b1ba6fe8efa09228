"""``probeval campaign export`` and ``import``: judgments, answers and labels as files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from probeval.cli.commands import Output
from probeval.cli.options import OutFile, Quiet
from probeval.cli.output import Messages, write_data
from probeval.cli.stores import CampaignPlace, OwnersPlace
from probeval.data import read_texts
from probeval.data.files import write_bytes
from probeval.records import About

__all__ = ["export", "import_file"]


def export(
    place: CampaignPlace,
    out: OutFile = None,
    export_format: Annotated[
        str | None,
        About(
            "qrels: one grade per pair; csv, jsonl: one row per judgment; answers, answers-jsonl: one row per answer "
            "about two documents; lists, lists-jsonl: about two lists; log: every event; quepid: a book. By default "
            "the first that has what was asked for.",
            metavar="FORMAT",
            option="--format",
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write the judgments or answers; settled ones replace the others and are marked.

    Example: probeval campaign export mine.db -o qrels.txt
    """
    with place.open(read_only=True) as opened:
        from probeval.campaign.exchange import export_format as named
        from probeval.campaign.exchange import formats_for

        setup = opened.setup
        chosen = formats_for(setup.kinds)[0] if export_format is None else named(export_format)
        text = opened.export(chosen.name)
        if out is None:
            write_data(text)
        else:
            write_bytes(out, text.encode())
            use = chosen.use.format(scale=setup.scale, file=out)
            Messages(quiet=quiet).say(f"{text.count(chr(10)):,} lines in {out}. {use}".rstrip())


@dataclass(frozen=True)
class ImportedFile:
    """What was imported from a file."""

    judgments: Annotated[int, "The number of judgments."]
    answers: Annotated[int, "The number of answers about two documents."]
    assessors: Annotated[str, "Their assessors."]
    labelled: Annotated[int, "The number of labelled pairs."]
    machines: Annotated[str, "The machines that labelled them."]


def import_file(
    place: OwnersPlace,
    file: Annotated[Path, About("Judgments, labels, answers, or irds:ID.", metavar="FILE", argument=True)],
    output: Output,
    import_format: Annotated[
        str | None,
        About(
            "The format: qrels, table, quepid, label-studio, rank-eval, umbrela, ragelo, opensearch, labels, "
            "answers or irds; by default detected.",
            metavar="FORMAT",
            option="--as",
        ),
    ] = None,
    assessor: Annotated[str | None, About("The assessor, if the file names none.", metavar="NAME")] = None,
    machine: Annotated[
        list[str] | None,
        About("An assessor that is a machine: its grades are labels.", metavar="NAME", kind=str, many=True),
    ] = None,
    docs: Annotated[
        Path | None,
        About("Document texts, for UMBRELA output without ids.", metavar="FILE"),
    ] = None,
) -> ImportedFile:
    """Import judgments (qrels, a table, a Quepid book, Label Studio annotations), answers or labels.

    A file is imported whole or not at all, and only once. Labels are evidence about relevance, never judgments.

    Example: probeval campaign import mine.db qrels.txt --assessor trec
    """
    messages = output.messages
    with place.open() as opened:
        incoming = messages.warned(
            lambda: opened.import_file(
                place.by,
                file,
                file_format=import_format,
                assessor=assessor,
                machines=machine or [],
                docs=None if docs is None else read_texts(docs, "doc"),
            )
        )
    for what in incoming.left_out:
        messages.say(f"Left out: {what}.")
    names = {incoming.judgments.assessors[i] for i in incoming.judgments.assessor}
    answers = incoming.answers
    return ImportedFile(
        judgments=len(incoming.judgments),
        answers=0 if answers is None else len(answers),
        assessors=", ".join(sorted(names if answers is None else set(answers.assessor))),
        labelled=0 if incoming.labels is None else len(incoming.labels.pool),
        machines="" if incoming.labels is None else ", ".join(incoming.labels.sources),
    )
