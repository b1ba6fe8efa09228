"""``probeval users``: a study of result lists with users, from the choice of lists to a mapping of one's own."""

from __future__ import annotations

import shlex
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from probeval.api.classical import required_judgments
from probeval.api.evidence import Order, Qrels, RunPaths, as_collection, as_scale
from probeval.api.settings import Gains, GradeScale, Level, Seed
from probeval.cli.assessor_texts import guideline_text
from probeval.cli.options import Format, Metric, OutputFormat, QueriesFile, Quiet
from probeval.cli.output import Talk, write_csv, write_data, write_json, write_table
from probeval.cli.serving import (
    AssessorFile,
    Certificate,
    Host,
    PageDocs,
    Port,
    PrivateKey,
    PublicHosts,
    announce,
    check_https,
    page_documents,
    roster_of,
)
from probeval.cli.stores import By, StorePlace
from probeval.data import read_texts
from probeval.data.files import write_bytes
from probeval.display import Shown
from probeval.errors import ProbevalError, StoreError
from probeval.records import About
from probeval.streams import Purpose, stream

if TYPE_CHECKING:
    from probeval.campaign import Study
    from probeval.satisfaction import ListAnswers

__all__ = ["users"]

users = typer.Typer(help="Ask users which of two lists is better: choose lists, serve the page, report the answers.")

StudyName = Annotated[str | None, About("The study, if the store has several.", metavar="NAME")]


class ShapeName(StrEnum):
    """Shapes of mappings; the names of :data:`probeval.satisfaction.SHAPES`."""

    cubic = "cubic"
    monotone = "monotone"


class AnswerFormat(StrEnum):
    """Formats of exported answers."""

    csv = "csv"
    jsonl = "jsonl"


@users.command()
def create(
    store: StorePlace,
    runs: RunPaths,
    metric: Metric,
    qrels: Qrels = None,
    pairs: Annotated[int, About("The number of pairs of lists.", least=1)] = 100,
    traps: Annotated[
        int | None,
        About("The number of trap questions; default: one for 5 pairs, from 4 to 20.", least=0),
    ] = None,
    most: Annotated[int | None, About("The most questions that one user answers; default: all.", least=1)] = None,
    queries: QueriesFile = None,
    guideline: Annotated[Path | None, About("Instructions for users: a text file.", metavar="FILE")] = None,
    scale: GradeScale = None,
    gain: Gains = None,
    depth: Annotated[int | None, About("The length of the lists; default: the metric's cutoff.", least=1)] = None,
    order: Order = "trec_eval",
    name: Annotated[str, About("The name of the study.", metavar="NAME")] = "study",
    by: By = "owner",
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Create a study: pairs of lists from judged runs, whose differences in score cover 0 to 1, and traps.

    Example: probeval users create study.db runs/ --qrels qrels.txt --metric nDCG@5 --pairs 100
    """
    from probeval.campaign import Study
    from probeval.satisfaction import choose_lists

    if qrels is None:
        raise ProbevalError("Lists are chosen by their scores: give --qrels FILE.")
    talk = Talk(quiet=quiet)
    collection = talk.warned(
        lambda: as_collection(runs, qrels=qrels, scale=as_scale(scale), order=order, reporter=talk)
    )
    judgments = required_judgments(collection)
    grades = judgments.scale(as_scale(scale))
    chosen = choose_lists(
        collection.runs,
        judgments,
        metric,
        pairs=pairs,
        traps=traps,
        depth=depth,
        scale=grades if gain is None else grades.with_gain(gain),
        rng=stream(seed, Purpose.LISTS),
    )
    texts = None if queries is None else read_texts(queries, "query")
    instructions = "" if guideline is None else guideline_text(guideline)
    Study.create(store, chosen, name=name, queries=texts, guideline=instructions, most=most, seed=seed, by=by).close()
    _write(chosen, output_format)
    for sentence in chosen.sentences():
        talk.say(sentence)
    if texts is None:
        talk.say("No query texts: users will see ids only. Add them with --queries FILE")
    talk.say(f"Next: probeval users serve {shlex.quote(store)} --docs FILE")


@users.command()
def serve(
    store: StorePlace,
    docs: PageDocs = None,
    host: Host = "127.0.0.1",
    port: Port = 8517,
    assessor_file: AssessorFile = None,
    assessor: Annotated[
        str | None,
        About("Answer alone under this name, on this machine only.", metavar="NAME"),
    ] = None,
    public_host: PublicHosts = None,
    certificate: Certificate = None,
    key: PrivateKey = None,
    name: StudyName = None,
    output_format: Format = OutputFormat.table,
    quiet: Quiet = False,
) -> None:
    """Serve the page of a study until Ctrl+C: for one person on this machine, or for users with links.

    Example: probeval users serve study.db --docs documents.jsonl
    """
    try:
        from probeval.web import serve_study
    except ImportError as error:
        raise ProbevalError(f"The page needs {error.name}: pip install 'probeval[web]'.") from None

    talk = Talk(quiet=quiet)
    check_https(certificate, key)
    with _opened(store, name) as study:
        roster = roster_of(study, assessor=assessor, assessor_file=assessor_file, host=host, talk=talk)
        documents = page_documents(docs, lambda: study.docs, "the lists", talk=talk)
        sign_in = "Users sign in with their links" if roster.alone is None else None

        def ready(address: str) -> None:
            hints = []
            if documents is None:
                hints.append("No document texts: users will see ids only. Add them with --docs FILE")
            announce(address, study.setup.name, output_format=output_format, talk=talk, hints=hints, sign_in=sign_in)

        serve_study(
            study,
            roster=roster,
            documents=documents,
            host=host,
            port=port,
            names=public_host or (),
            certificate=certificate,
            key=key,
            ready=ready,
            tell=talk.say,
        )


@users.command()
def report(
    store: Annotated[
        str | None, About("The store of the study; or give --answers FILE.", metavar="[STORE]", argument=True)
    ] = None,
    answers: Annotated[Path | None, About("A table of answers, such as an exported study.", metavar="FILE")] = None,
    score_a: Annotated[str, About("The score of the first list in --answers.", metavar="COLUMN")] = "score_a",
    score_b: Annotated[str, About("The score of the second list in --answers.", metavar="COLUMN")] = "score_b",
    answer: Annotated[str, About("The answer in --answers.", metavar="COLUMN")] = "answer",
    words: Annotated[
        str | None,
        About("The words for the four answers in --answers, separated by commas.", metavar="A,B,GOOD,BAD"),
    ] = None,
    docs_a: Annotated[
        str,
        About("The documents of the first list; # is the rank, one column each: d#a.", metavar="COLUMN"),
    ] = "docs_a",
    docs_b: Annotated[str, About("The documents of the second list, likewise.", metavar="COLUMN")] = "docs_b",
    shape: Annotated[
        ShapeName, About("The mapping: the cubic as published, or one that never falls.")
    ] = ShapeName.cubic,
    least_right: Annotated[
        float,
        About("The share of traps that a user must answer right.", least=0, most=1),
    ] = 0.7,
    leave_out: Annotated[bool, About("Leave out users who answer fewer traps right.")] = False,
    save: Annotated[
        Path | None,
        About("Write the mapping (.json) for --mapping of other verbs.", metavar="FILE"),
    ] = None,
    level: Level = 0.95,
    name: StudyName = None,
    output_format: Format = OutputFormat.table,
    quiet: Quiet = False,
) -> None:
    """Report a study: satisfied users by score, what users notice, side and endpoint bias, traps by user.

    Example: probeval users report study.db --save users.json
    """
    from probeval.metrics.users_file import is_users_file
    from probeval.satisfaction import UserStudy, read_list_answers

    if (store is None) == (answers is None):
        raise ProbevalError("Give the store of a study, or --answers FILE; one of the two.")
    if save is not None and not is_users_file(save):
        raise ProbevalError(f"--save writes a file whose name ends in .json, got {save}.")
    if store is not None:
        with _opened(store, name, read_only=True) as study:
            given = study.answers()
    elif answers is not None:
        given = read_list_answers(
            answers, a=score_a, b=score_b, answer=answer, words=_words(words), docs_a=docs_a, docs_b=docs_b
        )
    _check_any(given)
    found = UserStudy(given, mapping_shape=shape.value, least_right=least_right, leave_out=leave_out, level=level)
    talk = Talk(quiet=quiet)
    _write(found, output_format)
    for sentence in found.sentences():
        talk.say(sentence)
    if save is not None:
        found.save(save)
        talk.say(f"Saved. Use it with --mapping {shlex.quote(str(save))}")


@users.command()
def export(
    store: StorePlace,
    out: Annotated[
        Path | None, About("The output file; stdout by default.", metavar="FILE", option="-o, --out")
    ] = None,
    answer_format: Annotated[AnswerFormat, About("The format of the file.", option="--format")] = AnswerFormat.csv,
    name: StudyName = None,
    quiet: Quiet = False,
) -> None:
    """Write all answers, traps among them, one row each.

    Example: probeval users export study.db -o answers.csv
    """
    with _opened(store, name, read_only=True) as study:
        given = study.answers()
    _check_any(given)
    text = given.export(answer_format.value)
    if out is None:
        write_data(text)
    else:
        write_bytes(out, text.encode())
        Talk(quiet=quiet).say(
            f"{len(given):,} answers in {out}. Report them with probeval users report --answers {out}"
        )


def _write(found: Shown, output_format: OutputFormat) -> None:
    """Write the tables of a result, or its plain data."""
    if output_format is OutputFormat.json:
        write_json(found.to_dict())
    elif output_format is OutputFormat.csv:
        write_csv(found.to_frame())
    else:
        for i, view in enumerate(found.views()):
            write_table(view.frame, output_format, title="\n" * (i > 0) + (view.title or ""), decimals=view.decimals)


def _opened(store: str, name: str | None, *, read_only: bool = False) -> Study:
    """The study of a store."""
    from probeval.campaign import Study

    if "://" not in store and not Path(store).exists():
        raise StoreError(f"{store}: no such store. 'probeval users create' makes one.")
    return Study.open(store, name=name, read_only=read_only)


def _check_any(given: ListAnswers) -> None:
    if not len(given):
        raise ProbevalError("No answers yet: users answer on the page of 'probeval users serve'.")


def _words(text: str | None) -> dict[str, str] | None:
    """The words of a table for the four answers."""
    if text is None:
        return None
    from probeval.satisfaction import ANSWERS

    words = [word.strip() for word in text.split(",")]
    if len(set(words)) != len(ANSWERS) or "" in words:
        raise ProbevalError(
            f"--words takes the {len(ANSWERS)} words for: the first list is better, the second is, both are good, both "
            f"are bad; separated by commas. Got {text!r}."
        )
    return dict(zip(words, ANSWERS, strict=True))
