"""``probeval users``: a study of result lists with users, from the choice of lists to a mapping of one's own."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from probeval.api.list_studies import AnswerAnalysis, AnswerTable, UserStudyInputs
from probeval.cli.assessor_texts import guideline_text
from probeval.cli.commands import Output
from probeval.cli.options import OutFile, Quiet
from probeval.cli.output import Messages, write_data
from probeval.cli.serving import PageAddress, PageInputs, announce
from probeval.cli.stores import By, StorePlace, check_exists
from probeval.data import read_texts
from probeval.data.files import write_bytes
from probeval.errors import ProbevalError
from probeval.records import About

if TYPE_CHECKING:
    from probeval.campaign import Study
    from probeval.satisfaction import ListAnswers, ListQuestions
    from probeval.studies import UserStudy

__all__ = ["users"]

users = typer.Typer(help="Ask users which of two lists is better: choose lists, serve the page, report the answers.")

StudyName = Annotated[str | None, About("The study, if the store has several.", metavar="NAME")]


class AnswerFormat(StrEnum):
    """Formats of exported answers."""

    csv = "csv"
    jsonl = "jsonl"


@dataclass(frozen=True, kw_only=True)
class StudyPlace:
    """A study of a store."""

    store: StorePlace
    name: StudyName = None

    def open(self, *, read_only: bool = False) -> Study:
        """The study."""
        from probeval.campaign import Study

        check_exists(self.store, "probeval users create")
        return Study.open(self.store, name=self.name, read_only=read_only)


@users.command()
def create(store: StorePlace, given: UserStudyInputs, output: Output, by: By = "owner") -> ListQuestions:
    """Create a study: pairs of lists from judged runs, whose differences in score cover 0 to 1, and traps.

    Example: probeval users create study.db runs/ --qrels qrels.txt --metric nDCG@5 --pairs 100
    """
    from probeval.campaign import Study

    if given.qrels is None:
        raise ProbevalError("Lists are chosen by their scores: give --qrels FILE.")
    messages = output.messages
    chosen = messages.warned(lambda: given.choose(messages))
    texts = None if given.queries is None else read_texts(given.queries, "query")
    Study.create(
        store,
        chosen,
        name=given.name,
        queries=texts,
        guideline="" if given.guideline is None else guideline_text(given.guideline),
        most=given.most,
        seed=given.seed,
        by=by,
    ).close()
    if texts is None:
        output.hints.append("No query texts: users will see ids only. Add them with --queries FILE")
    output.hints.append(f"Next: probeval users serve {shlex.quote(store)} --docs FILE")
    return chosen


@users.command()
def serve(place: StudyPlace, page: PageInputs, output: Output) -> PageAddress | None:
    """Serve the page of a study until Ctrl+C: for one person on this machine, or for users with links.

    Example: probeval users serve study.db --docs documents.jsonl
    """
    try:
        from probeval.web import serve_study
    except ImportError as error:
        raise ProbevalError(f"The page needs {error.name}: pip install 'probeval[web]'.") from None

    messages, address = output.messages, page.address
    with place.open() as study:
        roster = page.roster(study, messages=messages)
        documents = page.documents(lambda: study.docs, "the lists", messages=messages)
        sign_in = "Users sign in with their links" if roster.alone is None else None

        def ready(url: str) -> None:
            hints = []
            if documents is None:
                hints.append("No document texts: users will see ids only. Add them with --docs FILE")
            announce(url, study.setup.name, output=output, hints=hints, sign_in=sign_in)

        serve_study(study, roster=roster, documents=documents, ready=ready, tell=messages.say, **address)
    return None  # the address was printed when the page was ready


@users.command()
def report(
    table: AnswerTable,
    analysis: AnswerAnalysis,
    output: Output,
    store: Annotated[
        str | None, About("The store of the study; or give --answers FILE.", metavar="[STORE]", argument=True)
    ] = None,
    save: Annotated[
        Path | None, About("Write the mapping (.json) for --mapping of other verbs.", metavar="FILE")
    ] = None,
    name: StudyName = None,
) -> UserStudy:
    """Report a study: satisfied users by score, what users notice, side and endpoint bias, traps by user.

    Example: probeval users report study.db --save users.json
    """
    from probeval.metrics.users_file import is_users_file

    if (store is None) == (table.answers is None):
        raise ProbevalError("Give the store of a study, or --answers FILE; one of the two.")
    if save is not None and not is_users_file(save):
        raise ProbevalError(f"--save writes a file whose name ends in .json, got {save}.")
    if store is not None:
        with StudyPlace(store=store, name=name).open(read_only=True) as study:
            given = study.answers()
    elif table.answers is not None:
        given = table.read(table.answers)
    _check_any(given)
    found = analysis.of(given)
    if save is not None:
        found.save(save)
        output.messages.say(f"Saved. Use it with --mapping {shlex.quote(str(save))}")
    return found


@users.command()
def export(
    place: StudyPlace,
    out: OutFile = None,
    answer_format: Annotated[AnswerFormat, About("The format of the file.", option="--format")] = AnswerFormat.csv,
    quiet: Quiet = False,
) -> None:
    """Write all answers, traps among them, one row each.

    Example: probeval users export study.db -o answers.csv
    """
    with place.open(read_only=True) as study:
        given = study.answers()
    _check_any(given)
    text = given.export(answer_format.value)
    if out is None:
        write_data(text)
    else:
        write_bytes(out, text.encode())
        Messages(quiet=quiet).say(
            f"{len(given):,} answers in {out}. Report them with probeval users report --answers {out}"
        )


def _check_any(given: ListAnswers) -> None:
    if not len(given):
        raise ProbevalError("No answers yet: users answer on the page of 'probeval users serve'.")
