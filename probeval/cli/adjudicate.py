"""``probeval campaign adjudicate``: the pairs and comparisons on which assessors differ, and their final answers."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pandas as pd

from probeval.characters import printable
from probeval.cli.commands import Output
from probeval.cli.options import OutputFormat
from probeval.cli.output import echo
from probeval.cli.stores import DocId, Grade, OwnersPlace, QueryId, RecordedEvent, Token
from probeval.data import read_texts
from probeval.display import Table
from probeval.errors import ProbevalError
from probeval.records import About
from probeval.results import Result, frame

if TYPE_CHECKING:
    from probeval.campaign import Campaign

__all__ = ["adjudicate"]

WIDTH = 100


@dataclass(frozen=True, kw_only=True)
class AdjudicationInputs:
    """The final grade of a pair, or the better of two documents."""

    query: QueryId = None
    doc: DocId = None
    grade: Grade = None
    other: Annotated[str | None, About("Settle which is better: DOC (left), or this (right).", metavar="DOC")] = None
    choice: Annotated[str | None, About("The better one: left, right or equal.", metavar="CHOICE")] = None
    reason: Annotated[str, About("The reason.", metavar="TEXT")] = ""
    token: Token = None

    def record(self, opened: Campaign, by: str) -> Any:
        """Record it; the event."""
        query, doc, reason, token = self.query, self.doc, self.reason, self.token
        compared = self.other is not None or self.choice is not None
        if query is not None and doc is not None:
            if self.grade is not None and not compared:
                return opened.adjudicate(by, query, doc, self.grade, reason=reason, token=token)
            if self.grade is None and self.other is not None and self.choice is not None:
                return opened.adjudicate_comparison(by, query, doc, self.other, self.choice, reason=reason, token=token)
        raise ProbevalError(
            "Give QUERY, DOC and GRADE; QUERY and DOC with --other and --choice; or none to list the disagreements."
        )


@dataclass(frozen=True)
class Disagreement:
    """A pair whose assessors disagree."""

    query: str
    doc: str
    grades: Annotated[str, "The grades of each assessor."]
    comments: Annotated[str, "The comments of each assessor."]
    query_text: Annotated[str, "The text of the query; empty if unknown."]
    guideline: Annotated[str, "The guideline of the query; empty if it has none."]
    text: Annotated[str, "The text of the document; empty if unknown."]

    def __str__(self) -> str:
        parts = [
            printable(f"Query {self.query}: {self.query_text or 'no text'}"),
            *([printable(f"Guideline: {self.guideline}")] if self.guideline else []),
            printable(f"Document {self.doc}:"),
            textwrap.indent(_filled(self.text or "no text in this file"), "  "),
            printable(f"Grades: {self.grades}."),
            *([printable(f"Comments: {self.comments}")] if self.comments else []),
        ]
        return "\n".join(parts) + "\n"


@dataclass(frozen=True)
class ContestedComparison:
    """A comparison whose assessors prefer different documents."""

    query: str
    left: str
    right: str
    answers: Annotated[str, "The answer of each assessor."]


@dataclass(frozen=True, repr=False)
class Disagreements(Result):
    """The pairs and the comparisons on which assessors differ and that are undecided."""

    disagreements: Annotated[tuple[Disagreement, ...], "One entry per pair."]
    comparisons: Annotated[tuple[ContestedComparison, ...], "One entry per comparison."]
    with_texts: bool  # whether the rows show the texts of the documents

    def to_frame(self) -> pd.DataFrame:
        """One row per pair."""
        texts = ["query_text", "guideline", "text"] if self.with_texts else []
        return frame(self.disagreements, Disagreement)[["query", "doc", "grades", "comments", *texts]]

    def _headline(self) -> str:
        return f"{len(self.disagreements):,} pairs and {len(self.comparisons):,} comparisons in dispute"

    def tables(self) -> tuple[Table, ...]:
        """One row per pair, and one per comparison, if any."""
        pairs = Table(self.to_frame(), "Pairs in dispute")
        compared = Table(frame(self.comparisons, ContestedComparison), "Comparisons in dispute")
        return tuple(table for table in (pairs, compared) if len(table.frame))

    def sentences(self) -> tuple[str, ...]:
        """Whether there are none."""
        return () if self.disagreements or self.comparisons else ("No disagreements to settle.",)


def adjudicate(
    place: OwnersPlace,
    given: AdjudicationInputs,
    output: Output,
    docs: Annotated[
        Path | None, About("A table of doc and text: the list shows the documents too.", metavar="FILE")
    ] = None,
) -> RecordedEvent | Disagreements | None:
    """Settle the grade of a pair, or which of two documents is better; without QUERY list the disagreements.

    Example: probeval campaign adjudicate mine.db q01 d0007 1 --by eve
    """
    with place.open(read_only=given.query is None) as opened:
        if given.query is not None:
            return RecordedEvent.of(given.record(opened, place.by))
        texts = {} if docs is None else read_texts(docs, "doc")
        found = Disagreements(_disagreements(opened, texts), _contested(opened), docs is not None)
    if docs is None or output.output_format is not OutputFormat.table or not found.disagreements:
        return found
    for each in found.disagreements:  # texts are too long for a table
        echo(str(each))
    return None


def _disagreements(opened: Campaign, documents: Mapping[str, str]) -> tuple[Disagreement, ...]:
    state, found = opened.state, []
    for query, doc in state.disagreements:
        grades = (f"{who} {judgment.grade:g}" for who, judgment in sorted(state.latest((query, doc)).items()))
        comments = (f"{comment.by}: {comment.text}" for comment in state.comments.get((query, doc), ()))
        found.append(
            Disagreement(
                query=query,
                doc=doc,
                grades=", ".join(grades),
                comments="; ".join(comments),
                query_text=state.texts.get(query, ""),
                guideline=state.query_guideline(query),
                text=documents.get(doc, ""),
            )
        )
    return tuple(found)


def _contested(opened: Campaign) -> tuple[ContestedComparison, ...]:
    state, found = opened.state, []
    for question in state.contested:
        query, left, right = question
        latest = {answer.by: getattr(answer, "better", "") or "equal" for answer in state.given(question)}
        answers = ", ".join(f"{who} {better}" for who, better in sorted(latest.items()))
        found.append(ContestedComparison(query, left, right, answers))
    return tuple(found)


def _filled(text: str) -> str:
    return "\n".join(textwrap.fill(line, WIDTH, break_on_hyphens=False) for line in text.splitlines())
