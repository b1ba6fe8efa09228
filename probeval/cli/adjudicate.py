"""``probeval campaign adjudicate``: the pairs and comparisons on which assessors differ, and their final answers."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pandas as pd

from probeval.characters import printable
from probeval.cli.campaign_documents import ContestedDocument, DisagreementDocument, DisagreementsDocument
from probeval.cli.commands import Output
from probeval.cli.options import OutputFormat
from probeval.cli.output import echo, write, write_table
from probeval.cli.stores import DocId, Grade, OwnersPlace, QueryId, Token, event_row
from probeval.data import read_texts
from probeval.errors import ProbevalError
from probeval.records import About

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


def adjudicate(
    place: OwnersPlace,
    given: AdjudicationInputs,
    output: Output,
    docs: Annotated[
        Path | None, About("A table of doc and text: the list shows the documents too.", metavar="FILE")
    ] = None,
) -> None:
    """Settle the grade of a pair, or which of two documents is better; without QUERY list the disagreements.

    Example: probeval campaign adjudicate mine.db q01 d0007 1 --by eve
    """
    with place.open(read_only=given.query is None) as opened:
        if given.query is None:
            _list(opened, docs, output)
            return
        row = event_row(given.record(opened, place.by))
        write(pd.DataFrame([row]), row, output.output_format)


def _list(opened: Campaign, docs: Path | None, output: Output) -> None:
    """Write the disagreements, with the texts of documents if there are any."""
    output_format = output.output_format
    rows = _disagreements(opened, {} if docs is None else read_texts(docs, "doc"))
    if not rows and not opened.state.contested:
        output.messages.say("No open disagreements.")
    if docs is not None and output_format is OutputFormat.table:
        for each in rows:
            echo(_case(each))
        return
    contested = _contested(opened)
    waiting: DisagreementsDocument = {"disagreements": rows, "comparisons": contested}
    texts = [] if docs is None else ["query_text", "guideline", "text"]
    columns = ["query", "doc", "grades", "comments", *texts]
    write(pd.DataFrame(rows, columns=columns), waiting, output_format)
    if contested and output_format not in (OutputFormat.json, OutputFormat.csv):
        write_table(pd.DataFrame(contested), output_format, title="Comparisons in dispute")


def _contested(opened: Campaign) -> list[ContestedDocument]:
    state, rows = opened.state, list[ContestedDocument]()
    for question in state.contested:
        query, left, right = question
        latest = {answer.by: getattr(answer, "better", "") or "equal" for answer in state.given(question)}
        answers = ", ".join(f"{who} {better}" for who, better in sorted(latest.items()))
        rows.append({"query": query, "left": left, "right": right, "answers": answers})
    return rows


def _disagreements(opened: Campaign, documents: dict[str, str]) -> list[DisagreementDocument]:
    state = opened.state
    rows: list[DisagreementDocument] = []
    for pair in state.disagreements:
        grades = ", ".join(f"{who} {judgment.grade:g}" for who, judgment in sorted(state.latest(pair).items()))
        comments = "; ".join(f"{comment.by}: {comment.text}" for comment in state.comments.get(pair, ()))
        rows.append(
            {
                "query": pair[0],
                "doc": pair[1],
                "grades": grades,
                "comments": comments,
                "query_text": state.texts.get(pair[0], ""),
                "guideline": state.query_guideline(pair[0]),
                "text": documents.get(pair[1], ""),
            }
        )
    return rows


def _case(row: DisagreementDocument) -> str:
    """A pair in words: the query and its guideline, the document, the grades, the comments."""
    parts = [
        printable(f"Query {row['query']}: {row['query_text'] or 'no text'}"),
        *([printable(f"Guideline: {row['guideline']}")] if row["guideline"] else []),
        printable(f"Document {row['doc']}:"),
        textwrap.indent(_filled(row["text"] or "no text in this file"), "  "),
        printable(f"Grades: {row['grades']}."),
        *([printable(f"Comments: {row['comments']}")] if row["comments"] else []),
    ]
    return "\n".join(parts) + "\n"


def _filled(text: str) -> str:
    return "\n".join(textwrap.fill(line, WIDTH, break_on_hyphens=False) for line in text.splitlines())
