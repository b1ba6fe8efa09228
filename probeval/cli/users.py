"""``probeval users``: a study of result lists with users, from the choice of lists to a mapping of one's own."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from probeval.api.classical import required_judgments
from probeval.api.evidence import JudgedRuns, as_scale
from probeval.api.settings import Grading, Level, QueryTexts, Seed
from probeval.cli.assessor_texts import guideline_text
from probeval.cli.commands import Output
from probeval.cli.options import Metric, OutFile, Quiet
from probeval.cli.output import Messages, write_data
from probeval.cli.serving import PageAddress, PageInputs, announce
from probeval.cli.stores import By, StorePlace, check_exists
from probeval.data import read_texts
from probeval.data.files import write_bytes
from probeval.errors import ProbevalError
from probeval.records import About
from probeval.reporting import Reporter
from probeval.streams import Purpose, stream

if TYPE_CHECKING:
    from probeval.campaign import Study
    from probeval.satisfaction import ListAnswers, ListQuestions
    from probeval.studies import UserStudy

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


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class UserStudyInputs(Grading, JudgedRuns):
    """The lists of a new study with users, and what users are told."""

    metric: Metric
    pairs: Annotated[int, About("The number of pairs of lists.", least=1)] = 100
    traps: Annotated[
        int | None, About("The number of trap questions; default: one for 5 pairs, from 4 to 20.", least=0)
    ] = None
    most: Annotated[int | None, About("The most questions that one user answers; default: all.", least=1)] = None
    queries: QueryTexts = None
    guideline: Annotated[Path | None, About("Instructions for users: a text file.", metavar="FILE")] = None
    depth: Annotated[int | None, About("The length of the lists; default: the metric's cutoff.", least=1)] = None
    name: Annotated[str, About("The name of the study.", metavar="NAME")] = "study"
    seed: Seed = 0

    def choose(self, reporter: Reporter) -> ListQuestions:
        """The pairs of lists."""
        from probeval.satisfaction import choose_lists

        scale = as_scale(self.scale)
        collection = self.collection(scale=scale, reporter=reporter)
        judgments = required_judgments(collection)
        grades = judgments.scale(scale)
        return choose_lists(
            collection.runs,
            judgments,
            self.metric,
            pairs=self.pairs,
            traps=self.traps,
            depth=self.depth,
            scale=grades if self.gain is None else grades.with_gain(self.gain),
            rng=stream(self.seed, Purpose.LISTS),
        )


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


@dataclass(frozen=True, kw_only=True)
class AnswerTable:
    """A table of users' answers about two lists, and its columns."""

    answers: Annotated[Path | None, About("A table of answers, such as an exported study.", metavar="FILE")] = None
    score_a: Annotated[str, About("The score of the first list in --answers.", metavar="COLUMN")] = "score_a"
    score_b: Annotated[str, About("The score of the second list in --answers.", metavar="COLUMN")] = "score_b"
    answer: Annotated[str, About("The answer in --answers.", metavar="COLUMN")] = "answer"
    words: Annotated[
        str | None,
        About("The words for the four answers in --answers, separated by commas.", metavar="A,B,GOOD,BAD"),
    ] = None
    docs_a: Annotated[
        str, About("The documents of the first list; # is the rank, one column each: d#a.", metavar="COLUMN")
    ] = "docs_a"
    docs_b: Annotated[str, About("The documents of the second list, likewise.", metavar="COLUMN")] = "docs_b"

    def read(self, path: Path) -> ListAnswers:
        """The answers of a table."""
        from probeval.satisfaction import read_list_answers

        return read_list_answers(
            path,
            a=self.score_a,
            b=self.score_b,
            answer=self.answer,
            words=_words(self.words),
            docs_a=self.docs_a,
            docs_b=self.docs_b,
        )


@users.command()
def report(
    table: AnswerTable,
    output: Output,
    store: Annotated[
        str | None, About("The store of the study; or give --answers FILE.", metavar="[STORE]", argument=True)
    ] = None,
    shape: Annotated[ShapeName, About("The mapping: the cubic as published, or one that never falls.")] = (
        ShapeName.cubic
    ),
    least_right: Annotated[float, About("The share of traps that a user must answer right.", least=0, most=1)] = 0.7,
    leave_out: Annotated[bool, About("Leave out users who answer fewer traps right.")] = False,
    save: Annotated[
        Path | None, About("Write the mapping (.json) for --mapping of other verbs.", metavar="FILE")
    ] = None,
    level: Level = 0.95,
    name: StudyName = None,
) -> UserStudy:
    """Report a study: satisfied users by score, what users notice, side and endpoint bias, traps by user.

    Example: probeval users report study.db --save users.json
    """
    from probeval.metrics.users_file import is_users_file
    from probeval.studies import UserStudy

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
    found = UserStudy(given, mapping_shape=shape.value, least_right=least_right, leave_out=leave_out, level=level)
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
