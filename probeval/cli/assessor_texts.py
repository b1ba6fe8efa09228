"""``probeval campaign guideline`` and ``queries``: the texts that assessors see."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from probeval.cli.documents import GuidelineDocument, QueriesDocument, QueryText
from probeval.cli.options import Format, OutputFormat, Quiet, Seed
from probeval.cli.output import Talk, write
from probeval.cli.stores import By, Name, StorePlace, opened_campaign
from probeval.data import read_texts
from probeval.data.files import read_bytes
from probeval.errors import ProbevalError

__all__ = ["guideline", "guideline_text", "no_texts", "queries", "texts_known"]


def guideline(
    store: StorePlace,
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="The new guideline; without it, show the current one.")
    ] = None,
    by: By = "owner",
    name: Name = None,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Show or change the guideline; judgments keep the version that they were made under.

    Example: probeval campaign guideline mine.db guideline.txt
    """
    with opened_campaign(store, name, read_only=file is None) as opened:
        if file is not None:
            opened.change_guideline(by, guideline_text(file))
        current = opened.state.guideline
    if current is None:
        Talk(quiet=quiet)(f"No guideline yet. Add one with probeval campaign guideline {shlex.quote(store)} FILE")
    row: GuidelineDocument = {
        "version": 0 if current is None else current.version,
        "text": "" if current is None else current.text,
    }
    if output_format is not OutputFormat.table:
        write(pd.DataFrame([row]), row, output_format)
    elif current is not None:
        typer.echo(f"Version {current.version}\n{current.text}".rstrip())


def queries(
    store: StorePlace,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="A table of query and text, or irds:ID; without it, show the texts."),
    ] = None,
    by: By = "owner",
    name: Name = None,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Show the query texts, or add and replace some; queries missing from the file keep their texts.

    Example: probeval campaign queries mine.db queries.tsv
    """
    talk = Talk(quiet=quiet)
    with opened_campaign(store, name, read_only=file is None) as opened:
        if file is not None:
            opened.change_queries(by, read_texts(file, "query"))
        texts = opened.queries
    talk(texts_known(texts, store))
    rows: list[QueryText] = [{"query": query, "text": text} for query, text in texts.items()]
    document: QueriesDocument = {"queries": rows}
    write(pd.DataFrame(rows, columns=["query", "text"]), document, output_format)


def guideline_text(file: Path) -> str:
    """The guideline in a text file."""
    try:
        return read_bytes(file).decode()
    except UnicodeDecodeError:
        raise ProbevalError(f"{file}: expected UTF-8 text. Convert the file.") from None


def texts_known(texts: Mapping[str, str], store: str) -> str:
    """The number of queries with a text, or advice on adding texts."""
    known = sum(map(bool, texts.values()))
    return f"{known:,} of {len(texts):,} queries have a text." if known else no_texts(store)


def no_texts(store: str) -> str:
    """The message for a campaign without query texts."""
    command = f"probeval campaign queries {shlex.quote(store)} FILE"
    return f"No query texts: assessors will see ids only. Add them with {command}"
