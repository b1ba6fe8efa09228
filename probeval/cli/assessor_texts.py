"""``probeval campaign guideline`` and ``queries``: the texts that assessors see."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from probeval.cli.commands import Output
from probeval.cli.options import OutputFormat
from probeval.cli.output import echo
from probeval.cli.stores import OwnersPlace
from probeval.data import read_texts, read_topics
from probeval.data.files import read_bytes
from probeval.display import counted
from probeval.errors import ProbevalError, did_you_mean
from probeval.records import About
from probeval.results import Result, rows

__all__ = ["grade_words_of", "guideline", "guideline_text", "no_texts", "queries", "texts_known"]


@dataclass(frozen=True)
class Guideline:
    """The guideline for assessors."""

    version: Annotated[int, "Its version; 0 if there is none."]
    text: str


@dataclass(frozen=True)
class QueryGuideline:
    """The guideline of one query."""

    query: str
    version: int
    text: str


@dataclass(frozen=True, repr=False)
class QueryGuidelines(Result):
    """The guidelines of single queries."""

    guidelines: Annotated[tuple[QueryGuideline, ...], "One entry per query that has one."]

    def _headline(self) -> str:
        return f"{counted(len(self.guidelines), 'guideline')} of single queries"

    def sentences(self) -> tuple[str, ...]:
        """Whether there are none."""
        return () if self.guidelines else ("No guidelines of single queries.",)


def guideline(
    place: OwnersPlace,
    output: Output,
    file: Annotated[
        Path | None, About("The new guideline; without it, show the current one.", metavar="[FILE]", argument=True)
    ] = None,
    query: Annotated[str | None, About("The guideline is for this query alone.", metavar="ID")] = None,
    per_query: Annotated[bool, About("FILE is a table of query and text: a guideline for each query in it.")] = False,
) -> Guideline | QueryGuidelines | None:
    """Show or change the guideline, or those of single queries; judgments keep the version that they were made under.

    Example: probeval campaign guideline mine.db guideline.txt
    """
    if query is not None and per_query:
        raise ProbevalError("Give --query with a text file, or --per-query with a table; not both.")
    with place.open(read_only=file is None) as opened:
        if query is not None and query not in opened.queries:
            raise ProbevalError(f"No query {query!r} in this campaign.{did_you_mean(query, opened.queries)}")
        if file is not None and query is not None:
            opened.change_query_guidelines(place.by, {query: guideline_text(file)})
        elif file is not None and per_query:
            opened.change_query_guidelines(place.by, read_texts(file, "query"))
        elif file is not None:
            opened.change_guideline(place.by, guideline_text(file))
        state = opened.state
    if query is not None or per_query:
        asked, known = state.query_guidelines if query is None else [query], state.query_guidelines
        texts = {each: state.query_guideline(each) for each in asked}
        return QueryGuidelines(tuple(QueryGuideline(q, known[q].version, text) for q, text in texts.items() if text))
    current = state.guideline
    if current is None:
        output.messages.say(
            f"No guideline yet. Add one with probeval campaign guideline {shlex.quote(place.store)} FILE"
        )
    if output.output_format is OutputFormat.table:  # a text, not a table
        if current is not None:
            echo(f"Version {current.version}\n{current.text}".rstrip())
        return None
    return Guideline(0, "") if current is None else Guideline(current.version, current.text)


@dataclass(frozen=True)
class QueryText:
    """The text of a query."""

    query: str
    text: str


@dataclass(frozen=True, repr=False)
class QueryList(Result):
    """The texts of the queries."""

    queries: Annotated[tuple[QueryText, ...], "One entry per query."]

    def _headline(self) -> str:
        return f"{len(self.queries):,} queries"


def queries(
    place: OwnersPlace,
    output: Output,
    file: Annotated[
        Path | None,
        About(
            "Topics of TREC, a table of query and text, or irds:ID; without it, show the texts.",
            metavar="[FILE]",
            argument=True,
        ),
    ] = None,
) -> QueryList:
    """Show the query texts, or add and replace some; queries missing from the file keep their texts.

    Descriptions and narratives of topics become the guidelines of their queries.

    Example: probeval campaign queries mine.db queries.tsv
    """
    with place.open(read_only=file is None) as opened:
        if file is not None:
            given, notes = read_topics(file)
            opened.change_queries(place.by, given)
            if ours := {query: note for query, note in notes.items() if query in opened.queries}:
                opened.change_query_guidelines(place.by, ours)
        texts = opened.queries
    output.hints.append(texts_known(texts, place.store))
    return QueryList(rows(QueryText, query=texts, text=texts.values()))


def guideline_text(file: Path) -> str:
    """The guideline in a text file."""
    try:
        return read_bytes(file).decode()
    except UnicodeDecodeError:
        raise ProbevalError(f"{file}: expected UTF-8 text. Convert the file.") from None


def grade_words_of(text: str) -> tuple[str, ...]:
    """The words for each grade: separated by commas, or the lines of a file of this name."""
    if Path(text).is_file():
        return tuple(line.strip() for line in guideline_text(Path(text)).splitlines() if line.strip())
    return tuple(words.strip() for words in text.split(","))


def texts_known(texts: Mapping[str, str], store: str) -> str:
    """The number of queries with a text, or advice on adding texts."""
    known = sum(map(bool, texts.values()))
    return f"{known:,} of {len(texts):,} queries have a text." if known else no_texts(store)


def no_texts(store: str) -> str:
    """The message for a campaign without query texts."""
    command = f"probeval campaign queries {shlex.quote(store)} FILE"
    return f"No query texts: assessors will see ids only. Add them with {command}"
