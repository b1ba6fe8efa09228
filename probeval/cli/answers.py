"""``probeval campaign record`` and ``judge``: answers to questions of any kind, typed as words."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from probeval.characters import printable
from probeval.cli.commands import Output, Printed
from probeval.cli.output import echo
from probeval.cli.stores import AssessorName, CampaignPlace, Refresh, Token
from probeval.data import read_texts
from probeval.errors import CampaignError, ProbevalError
from probeval.records import About
from probeval.results import UNSET, UnsetType

if TYPE_CHECKING:
    from probeval.campaign import Campaign, Question, Task

__all__ = ["WIDTH", "QuestionWords", "RecordedEvent", "in_words", "judge_here", "question_of", "record", "typed"]

WIDTH = 100
BESIDE = "s skip, u undo, q quit"
LONGEST = 1500  # characters of a document that the terminal shows

QuestionWords = Annotated[
    Sequence[str],
    About(
        "The query, the document (or two, as they were shown), and the answer: a grade; left, right or equal; or two "
        "numbers.",
        metavar="QUERY DOC ANSWER",
        argument=True,
        kind=str,
        many=True,
    ),
]


@dataclass(frozen=True)
class RecordedEvent:
    """A recorded event of the log."""

    number: int
    event: Annotated[str, "Its kind."]
    query: str
    documents: Annotated[tuple[str, ...], "The documents, as they were shown."]
    by: str
    answer: Annotated[str | UnsetType, "The answer in words."] = UNSET

    @classmethod
    def of(cls, event: Any) -> RecordedEvent:
        """The row of an event."""
        from probeval.campaign import Answered, Settled

        is_answer = isinstance(event, (Answered, Settled))
        return cls(
            number=event.number,
            event=event.kind,
            query=event.query,
            documents=event.documents if hasattr(event, "documents") else (event.doc,),
            by=event.by,
            answer=in_words(event) if is_answer else UNSET,
        )


def in_words(answer: Any, first: str | None = None) -> str:
    """An answer in words; ``first`` is the document in the first place."""
    return ", ".join(filter(None, (answer.asked.words(answer, first)[0], answer.asked.more_words(answer))))


def question_of(opened: Campaign, words: Sequence[str], *, answered: bool = True) -> tuple[Question, list[str]]:
    """The question in these words, and the words of its answer.

    Kinds that the campaign asks come before others, and of these those with more documents.
    """
    from probeval.campaign import KINDS, Question

    query, *rest = words or ("",)
    kinds = [*sorted(opened.setup.kinds, key=lambda kind: -len(kind.places)), *KINDS.values()]
    for kind in kinds:
        docs, answer = rest[: len(kind.places)], rest[len(kind.places) :]
        if len(docs) == len(kind.places) and (0 < len(answer) <= len(kind.fields) if answered else not answer):
            return Question(query, tuple(docs), kind.name), answer
    raise ProbevalError("Give QUERY, DOC (or two) and ANSWER; or QUERY and DOC with --skip, --flag or --comment.")


@dataclass(frozen=True, kw_only=True)
class AnswerInputs:
    """What an assessor does with a question."""

    assessor: AssessorName
    words: QuestionWords = ()
    withdraw: Annotated[int | None, About("Withdraw this answer (0: the latest).", metavar="NUMBER")] = None
    skip: Annotated[bool, About("Leave the question to others.")] = False
    reason: Annotated[str, About("The reason for skipping it.", metavar="TEXT")] = ""
    flag: Annotated[str | None, About("Report a problem with the document.", metavar="TEXT")] = None
    comment: Annotated[
        str | None, About("A remark on the answer; without one, a comment on the document.", metavar="TEXT")
    ] = None
    token: Token = None

    def take(self, opened: Campaign) -> list[Any]:
        """Take these steps; their events."""
        who, token = self.assessor, self.token
        if self.withdraw is not None:
            return [opened.withdraw(who, self.withdraw or None, token=token)]
        remarks = self.flag is not None or self.comment is not None
        answered = not (self.skip or (remarks and len(self.words) == 2))  # of a query and a document alone
        question, answer = question_of(opened, self.words, answered=answered)
        query, doc, *others = question.names
        if others and (self.flag is not None or (self.comment is not None and not answered)):
            raise ProbevalError("A flag, and a comment without an answer, is about one document. Give QUERY and DOC.")
        done: list[Any] = []
        if self.comment is not None and not answered:
            done.append(opened.comment(who, query, doc, self.comment))
        if self.flag is not None:
            done.append(opened.flag(who, query, doc, reason=self.flag))
        if answered:
            values = typed(question, answer)
            remark, shown = self.comment or "", question.documents
            done.append(opened.answer(who, question, shown=shown, comment=remark, token=token, **values))
        elif self.skip:
            done.append(opened.skip(who, question, reason=self.reason, token=token))
        return done


def typed(question: Question, words: Sequence[str]) -> dict[str, Any]:
    """The values of an answer to a question."""
    from probeval.campaign import KINDS

    return KINDS[question.kind].typed(words)


def record(place: CampaignPlace, given: AnswerInputs, output: Printed) -> RecordedEvent | tuple[RecordedEvent, ...]:
    """Record an answer: a grade, the better of two documents, or two numbers; or skip, flag, comment, withdraw.

    Example: probeval campaign record mine.db q01 d0007 2 --assessor ann
    """
    with place.open() as opened:
        found = tuple(map(RecordedEvent.of, given.take(opened)))
    return found[0] if len(found) == 1 else found


@dataclass(frozen=True)
class TerminalWork:
    """What an assessor did on the terminal: the numbers of answers, skips and withdrawals."""

    assessor: str
    answered: int
    skipped: int
    withdrawn: int


def judge_here(
    place: CampaignPlace,
    assessor: AssessorName,
    output: Output,
    docs: Annotated[Path | None, About("Document texts: a table of doc and text.", metavar="FILE")] = None,
    refresh: Refresh = True,
) -> TerminalWork:
    """Answer on the terminal, question after question: grades, or l, r, = and b (both bad) for two documents.

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
    done: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("answered", "skipped", "withdrawn"), 0))

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
        from probeval.campaign import KINDS

        echo(self.shown(task), err=True)
        prompt, since = KINDS[task.question.kind].prompt(self.campaign.setup), time.monotonic()
        while True:
            try:
                echo(f"{prompt} ({BESIDE}): ", nl=False, err=True)
                given = input().strip()
            except EOFError:
                return False
            if given.lower() == "q":
                return False
            try:
                self.take(task, given, time.monotonic() - since)
                return True
            except CampaignError as error:
                echo(str(error), err=True)

    def take(self, task: Task, given: str, seconds: float) -> None:
        """Take what was typed."""
        campaign, who, question = self.campaign, self.assessor, task.question
        if given.lower() == "u":
            campaign.withdraw(who)
            what = "withdrawn"
        elif given.lower() == "s":
            campaign.skip(who, question)
            what = "skipped"
        else:
            values = typed(question, given.split())
            campaign.answer(who, question, shown=task.documents, seconds=seconds, **values)
            what = "answered"
        self.done[what] += 1

    def shown(self, task: Task) -> str:
        """A question in words: the query, and its documents."""
        from probeval.campaign import KINDS

        lines = ["", printable(f"Query {task.query}: {task.text or 'no text'}")]
        places = KINDS[task.question.kind].places if len(task.documents) > 1 else ("document",)
        for place, name in zip(places, task.documents, strict=True):
            lines.append(printable(f"{place.capitalize()}: {name}"))
            for doc in self.campaign.material.documents(name):
                text = self.texts.get(doc, "no text")
                text = text if doc == name else f"{doc}: {text}"  # of a list
                shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
                lines.append(textwrap.indent(textwrap.fill(shown, WIDTH), "  "))
        return "\n".join(lines)
