"""``probeval campaign adjudicate``: the questions on which assessors differ, and their final answers."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pandas as pd

from probeval.characters import printable
from probeval.cli.answers import WIDTH, QuestionWords, RecordedEvent, in_words, question_of, typed
from probeval.cli.commands import Output
from probeval.cli.options import OutputFormat
from probeval.cli.output import echo
from probeval.cli.stores import OwnersPlace, Token
from probeval.data import read_texts
from probeval.display import Table
from probeval.records import About
from probeval.results import Result, frame

if TYPE_CHECKING:
    from probeval.campaign import Campaign

__all__ = ["adjudicate"]


@dataclass(frozen=True)
class Disagreement:
    """A question whose assessors disagree."""

    query: str
    documents: Annotated[tuple[str, ...], "The documents: the places in the answers are in this order."]
    asks: Annotated[str, "The question: the grade of a document, a preference between two, or another kind."]
    answers: Annotated[str, "The answer of each assessor."]
    comments: Annotated[str, "The comments of each assessor."]
    query_text: Annotated[str, "The text of the query; empty if unknown."]
    guideline: Annotated[str, "The guideline of the query; empty if it has none."]
    texts: Annotated[tuple[str, ...], "The text of each document; empty if unknown."]

    def __str__(self) -> str:
        parts = [printable(f"Query {self.query}: {self.query_text or 'no text'}")]
        parts += [printable(f"Guideline: {self.guideline}")] if self.guideline else []
        for doc, text in zip(self.documents, self.texts, strict=True):
            parts += [printable(f"Document {doc}:"), textwrap.indent(_filled(text or "no text in this file"), "  ")]
        parts.append(printable(f"Answers: {self.answers}."))
        parts += [printable(f"Comments: {self.comments}")] if self.comments else []
        return "\n".join(parts) + "\n"


@dataclass(frozen=True, repr=False)
class Disagreements(Result):
    """The questions on which assessors differ and that are undecided."""

    disagreements: Annotated[tuple[Disagreement, ...], "One entry per question."]
    with_texts: bool  # whether the rows show the texts of the documents

    def to_frame(self) -> pd.DataFrame:
        """One row per question."""
        texts = ["query_text", "guideline", "texts"] if self.with_texts else []
        return frame(self.disagreements, Disagreement)[["query", "documents", "asks", "answers", "comments", *texts]]

    def _headline(self) -> str:
        return f"{len(self.disagreements):,} questions in dispute"

    def tables(self) -> tuple[Table, ...]:
        """One row per question, if any."""
        return (Table(self.to_frame(), self._headline()),) if self.disagreements else ()

    def sentences(self) -> tuple[str, ...]:
        """Whether there are none."""
        return () if self.disagreements else ("No disagreements to settle.",)


def adjudicate(
    place: OwnersPlace,
    output: Output,
    words: QuestionWords = (),
    reason: Annotated[str, About("The reason.", metavar="TEXT")] = "",
    token: Token = None,
    docs: Annotated[
        Path | None, About("A table of doc and text: the list shows the documents too.", metavar="FILE")
    ] = None,
) -> RecordedEvent | Disagreements | None:
    """Settle the answer to a question; without QUERY list the disagreements.

    Example: probeval campaign adjudicate mine.db q01 d0007 1 --by eve
    """
    with place.open(read_only=not words) as opened:
        if words:
            question, answer = question_of(opened, words)
            given, shown = typed(question, answer), question.documents
            return RecordedEvent.of(opened.settle(place.by, question, shown=shown, reason=reason, token=token, **given))
        texts = {} if docs is None else read_texts(docs, "doc")
        found = Disagreements(_disagreements(opened, texts), docs is not None)
    if docs is None or output.output_format is not OutputFormat.table or not found.disagreements:
        return found
    for each in found.disagreements:  # texts are too long for a table
        echo(str(each))
    return None


def _disagreements(opened: Campaign, documents: Mapping[str, str]) -> tuple[Disagreement, ...]:
    state, found = opened.state, []
    for question in state.disagreements:
        latest = [answer for _, answer in sorted(state.latest(question).items())]
        remarks = [(answer.by, answer.comment) for answer in latest if answer.comment]
        remarks += [(comment.by, comment.text) for pair in question.pairs for comment in state.comments.get(pair, ())]
        found.append(
            Disagreement(
                query=question.query,
                documents=question.documents,
                asks=latest[0].asked.asks.get(state.settings.ask) or question.kind,
                answers=", ".join(f"{answer.by} {in_words(answer, question.documents[0])}" for answer in latest),
                comments="; ".join(f"{by}: {text}" for by, text in remarks),
                query_text=state.texts.get(question.query, ""),
                guideline=state.query_guideline(question.query),
                texts=tuple(documents.get(doc, "") for doc in question.documents),
            )
        )
    return tuple(found)


def _filled(text: str) -> str:
    return "\n".join(textwrap.fill(line, WIDTH, break_on_hyphens=False) for line in text.splitlines())
