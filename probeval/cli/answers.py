"""``probeval campaign answer`` and ``judge``: answers about two documents, and judging on the terminal."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from probeval.characters import printable
from probeval.cli.adjudicate import WIDTH
from probeval.cli.commands import Output, Printed
from probeval.cli.output import echo
from probeval.cli.stores import AssessorName, Place, RecordedEvent, Refresh, SkipReason, Token
from probeval.data import read_texts
from probeval.errors import CampaignError
from probeval.records import About

if TYPE_CHECKING:
    from probeval.campaign import Campaign, Task

__all__ = ["answer", "judge_here"]

KEYS = {"l": ("left", ""), "r": ("right", ""), "=": ("equal", ""), "b": ("equal", "neither")}
BESIDE = "s skip, u undo, q quit"
LONGEST = 1500  # characters of a document that the terminal shows


@dataclass(frozen=True, kw_only=True)
class AnswerInputs:
    """An answer about two documents."""

    query: Annotated[str, About("The id of the query.", metavar="QUERY", argument=True)]
    left: Annotated[str, About("The document on the left.", metavar="LEFT", argument=True)]
    right: Annotated[str, About("The document on the right.", metavar="RIGHT", argument=True)]
    assessor: AssessorName
    choice: Annotated[str, About("The better document: left, right or equal.", metavar="[CHOICE]", argument=True)] = ""
    relevant: Annotated[str, About("Which are relevant: both, chosen or neither.", metavar="WORD")] = ""
    numbers: Annotated[str | None, About("The numbers of both documents, such as 30,10.", metavar="L,R")] = None
    comment: Annotated[str, About("A remark on the answer.", metavar="TEXT")] = ""
    skip: Annotated[bool, About("Leave the question to others.")] = False
    reason: SkipReason = ""
    token: Token = None

    def record(self, opened: Campaign) -> Any:
        """Record it; the event."""
        question = (self.assessor, self.query, self.left, self.right)
        if self.skip:
            return opened.skip(*question, reason=self.reason, token=self.token)
        numbers = None if self.numbers is None else _numbers(self.numbers.split(","))
        return opened.answer(
            *question, self.choice, relevant=self.relevant, numbers=numbers, comment=self.comment, token=self.token
        )


def answer(place: Place, given: AnswerInputs, output: Printed) -> RecordedEvent:
    """Answer which of two documents is better, or give both a number; or skip the question.

    Example: probeval campaign answer mine.db q01 d0007 d0012 left --assessor ann
    """
    with place.open() as opened:
        return RecordedEvent.of(given.record(opened))


@dataclass(frozen=True)
class TerminalWork:
    """What an assessor did on the terminal: the numbers of grades, comparisons, skips and withdrawals."""

    assessor: str
    graded: int
    compared: int
    skipped: int
    withdrawn: int


def judge_here(
    place: Place,
    assessor: AssessorName,
    output: Output,
    docs: Annotated[Path | None, About("Document texts: a table of doc and text.", metavar="FILE")] = None,
    refresh: Refresh = True,
) -> TerminalWork:
    """Judge on the terminal, question after question: grades, or l, r, = and b (both bad) for two documents.

    Example: probeval campaign judge mine.db --assessor ann --docs documents.csv
    """
    messages = output.messages
    texts = {} if docs is None else read_texts(docs, "doc")
    with place.open() as opened:
        if refresh and opened.is_behind:
            messages.warned(opened.refresh)
        return _Terminal(opened, assessor, texts).run()


@dataclass
class _Terminal:
    """An assessor at the terminal; questions go to stderr, so that stdout has the result alone."""

    campaign: Campaign
    assessor: str
    texts: Mapping[str, str]
    done: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("graded", "compared", "skipped", "withdrawn"), 0)
    )

    def run(self) -> TerminalWork:
        """Ask until nothing is left, or the assessor quits."""
        while tasks := self.campaign.next(self.assessor):
            if not self.ask(tasks[0]):
                break
        else:
            echo("Nothing is left for you.", err=True)
        return TerminalWork(self.assessor, **self.done)

    def ask(self, task: Task) -> bool:
        """Ask one question, until it has an answer; false to quit."""
        echo(self.shown(task), err=True)
        since = time.monotonic()
        while True:
            try:
                echo(f"{_question(task, self.campaign)} ({BESIDE}): ", nl=False, err=True)
                typed = input().strip().lower()
            except EOFError:
                return False
            if typed == "q":
                return False
            try:
                self.take(task, typed, time.monotonic() - since)
                return True
            except CampaignError as error:
                echo(str(error), err=True)

    def take(self, task: Task, typed: str, seconds: float) -> None:
        """Take what was typed."""
        campaign, who = self.campaign, self.assessor
        if typed == "u":
            campaign.withdraw(who)
            what = "withdrawn"
        elif typed == "s":
            campaign.skip(who, task.query, task.doc, task.other)
            what = "skipped"
        elif task.asks == "grade":
            campaign.record(who, task.query, task.doc, _number(typed), seconds=seconds)
            what = "graded"
        elif task.asks == "magnitude":
            given = _numbers(typed.split())
            campaign.answer(who, task.query, task.doc, task.other, numbers=given, seconds=seconds)
            what = "compared"
        elif typed in KEYS:
            choice, relevant = KEYS[typed]
            campaign.answer(who, task.query, task.doc, task.other, choice, relevant=relevant, seconds=seconds)
            what = "compared"
        else:
            raise CampaignError(f"Expected one of the keys, got {typed!r}.")
        self.done[what] += 1

    def shown(self, task: Task) -> str:
        """A question in words: the query, and its documents."""
        lines = ["", printable(f"Query {task.query}: {task.text or 'no text'}")]
        docs = [("Left", task.doc), ("Right", task.other)] if task.other else [("Document", task.doc)]
        for place, doc in docs:
            text = self.texts.get(doc, "no text")
            shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
            lines += [printable(f"{place}: {doc}"), textwrap.indent(textwrap.fill(shown, WIDTH), "  ")]
        return "\n".join(lines)


def _question(task: Task, campaign: Campaign) -> str:
    if task.asks == "preference":
        return "Which is better? l left, r right, = equal, b both bad"
    if task.asks == "magnitude":
        return "A number for each, such as 30 10"
    scale, words = campaign.scale, campaign.setup.grade_words
    if words:
        return "Grade? " + ", ".join(f"{grade:g} {word}" for grade, word in zip(scale.grades, words, strict=True))
    return f"Grade? {scale.grades[0]:g} to {scale.grades[-1]:g}"


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise CampaignError(f"Expected a number or one of the keys, got {text!r}.") from None


def _numbers(texts: list[str]) -> tuple[float, float]:
    if len(texts) != 2:
        raise CampaignError(f"Give two numbers, one for each document; got {len(texts)}.")
    return _number(texts[0]), _number(texts[1])
