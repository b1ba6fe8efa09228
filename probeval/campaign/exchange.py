"""Judgments in and out: qrels, tables, Quepid books, UMBRELA's answers, labels by machines."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Collection as Names
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from probeval.campaign.events import Event, encode
from probeval.campaign.state import State
from probeval.data.evidence import LabelTable
from probeval.data.files import stem, suffix
from probeval.data.formats import FileFormat, ReadOptions, find_format, formats_of
from probeval.data.judgments import NOT_JUDGED, Judgments, on_scale
from probeval.data.scale import Scale
from probeval.data.tables import column, ids, read_table
from probeval.errors import DataError, did_you_mean

__all__ = [
    "ExportFormat",
    "Incoming",
    "cell_text",
    "export_format",
    "export_formats",
    "import_formats",
    "read_incoming",
    "read_text_table",
    "read_texts",
]

TEXTS = ("text", "title", "contents", "segment", "passage", "description", "query_text")
NOTHING = Judgments.rows([], [], [])
COLUMNS = ("query", "doc", "grade", "assessor", "time", "guideline", "source", "adjudicated", "overruled")


@dataclass(frozen=True)
class Incoming:
    """What a file holds for a campaign.

    Parameters
    ----------
    judgments
        By people, perhaps none.
    labels
        By machines, or None.
    left_out
        What is not taken, and why, in words.
    """

    judgments: Judgments
    labels: LabelTable | None = None
    left_out: tuple[str, ...] = ()


def read_incoming(
    path: Path,
    file_format: str | None = None,
    *,
    queries: Mapping[str, str],
    scale: Scale,
    assessor: str | None = None,
    machines: Names[str] = (),
    docs: Mapping[str, str] | None = None,
) -> Incoming:
    """Read a file of judgments or labels.

    Parameters
    ----------
    path
        The file.
    file_format
        The name of one of :func:`import_formats`; told from the file when not given.
    queries
        The campaign's queries: texts by id, empty where unknown. Quepid and UMBRELA name queries by their text.
    scale
        A grade that it lacks is refused.
    assessor
        Who judged, where the file does not say.
    machines
        Assessors that are machines: what they say are labels.
    docs
        Texts of documents by id, where UMBRELA's answers have no ids.
    """
    form = _import_format(path, file_format)
    texts = {query: text for query, text in queries.items() if text} or None
    found = form.read(path, ReadOptions(scale=scale, queries=texts, docs=docs))
    given, labels = NOTHING, None
    if isinstance(found, LabelTable):
        labels = found
    else:
        names = tuple(who or assessor or stem(path).removesuffix(".txt") for who in found.assessors)
        given, labels = _by_machines(replace(found, assessors=names), machines, path)
    said: list[str] = []
    given = _of_queries(given, queries, said)
    labels = None if labels is None else _labels_of_queries(labels, queries, said)
    if not len(given) and labels is None:
        raise DataError(f"nothing for this campaign in it: {'; '.join(said)}.", path=path)
    wrong = next((i for i in range(len(given)) if not on_scale(scale, given.grade[i])), None)
    if wrong is not None:
        query, doc = given.pool.label(int(given.pair[wrong]))
        what = f"grade {given.grade[wrong]:g} of query {query!r}, document {doc!r} is not on the scale {scale}."
        raise DataError(what, path=path)
    return Incoming(given, labels, tuple(said))


def import_formats() -> dict[str, FileFormat[Any]]:
    """The formats that a campaign can import, by name: those of judgments and of labels."""
    return formats_of(Judgments, LabelTable)


def _import_format(path: Path, name: str | None) -> FileFormat[Any]:
    """The format of this name, or the one that the file is in."""
    known = import_formats()
    if name is not None:
        if name not in known:
            raise DataError(f"No format {name!r}: {', '.join(known)}.{did_you_mean(name, known)}")
        return known[name]
    found = find_format(path, Judgments, LabelTable)
    if found is None:
        raise DataError(f"no column for the grade. Say what the file is: {', '.join(known)}.", path=path)
    return found


def _by_machines(given: Judgments, machines: Names[str], path: Path) -> tuple[Judgments, LabelTable | None]:
    """What people said, and what machines did, as labels."""
    missing = [name for name in machines if name not in given.assessors]
    if missing:
        raise DataError(f"nobody in it is called {missing[0]!r}.{did_you_mean(missing[0], given.assessors)}", path=path)
    if not machines:
        return given, None
    values = np.full((len(given.pool), len(machines)), np.nan)
    for at, name in enumerate(machines):
        said = given.assessor == given.assessors.index(name)
        values[given.pair[said], at] = given.grade[said]
    people = given.take(~np.isin(given.assessor, [given.assessors.index(name) for name in machines]))
    return people, LabelTable(given.pool, tuple(machines), values)


def _of_queries(given: Judgments, queries: Mapping[str, str], said: list[str]) -> Judgments:
    """Without what is not judged, and without queries that the campaign does not have."""
    known = np.array([query in queries for query in given.pool.queries], dtype=bool)
    stranger, unjudged = ~known[given.pool.query[given.pair]], given.grade == NOT_JUDGED
    for what, left in (("of other queries", stranger), ("drawn but not judged", unjudged & ~stranger)):
        if left.any():
            said.append(f"{int(left.sum()):,} judgments {what}")
    return given.take(~stranger & ~unjudged)


def _labels_of_queries(labels: LabelTable, queries: Mapping[str, str], said: list[str]) -> LabelTable | None:
    known = np.array([query in queries for query in labels.pool.queries], dtype=bool)[labels.pool.query]
    if known.all():
        return labels
    said.append(f"labels of {int((~known).sum()):,} pairs of other queries")
    return LabelTable(labels.pool.take(known), labels.sources, labels.values[known]) if known.any() else None


def read_texts(path: Path, name: str) -> dict[str, str]:
    """Texts by id: a table with a column for the ``query`` or ``doc`` and one for the text, or a TSV of id and text."""
    found, texts, _ = read_text_table(path, name)
    return dict(zip(found, texts, strict=True))


def read_text_table(path: Path, name: str, *, instead: Names[str] = ()) -> tuple[list[str], list[str], pd.DataFrame]:
    """Ids, texts and the table that they stand in; one of the columns ``instead`` may stand for a text."""
    table = read_table(path)
    found = column(table, name, path=path, required=False)
    if found is None and suffix(path) == ".tsv" and len(table.columns) == 2:  # no header: its first row is a row
        first = pd.DataFrame([list(table.columns)], columns=table.columns)
        table = pd.concat([first, table], ignore_index=True)
        return ids(table.iloc[:, 0], name, path=path), [cell_text(v) for v in table.iloc[:, 1]], table
    known = {str(c).strip().lower(): c for c in table.columns}
    text = next((known[each] for each in TEXTS if each in known), None)
    if found is None or (text is None and not set(instead) & known.keys()):
        raise DataError(f"expected a column for the {name} and one of {', '.join(TEXTS)}.", path=path)
    texts = [""] * len(table) if text is None else [cell_text(value) for value in table[text]]
    return ids(found, name, path=path), texts, table


def cell_text(value: object) -> str:
    """What stands in a cell, nothing where it is empty."""
    return "" if value is None or value != value else str(value)


@dataclass(frozen=True)
class ExportFormat:
    """How a campaign is written to a file.

    Parameters
    ----------
    name, summary
        What it is called, and what is in the file, in one line.
    file_name, media_type
        Of the file that a browser downloads.
    text
        From the state of a campaign and its log to the text of the file.
    needs_log
        Whether the log is read for it.
    """

    name: str
    summary: str
    file_name: str
    media_type: str
    text: Callable[[State, Sequence[Event]], str]
    needs_log: bool = False


def export_formats() -> dict[str, ExportFormat]:
    """The formats in which a campaign is exported, by name: its own, and every format of judgments with a writer.

    >>> list(export_formats())
    ['qrels', 'csv', 'jsonl', 'log']
    """
    own = {export.name: export for export in EXPORTS}
    others = {name: form for name, form in formats_of(Judgments).items() if form.write is not None and name not in own}
    return own | {name: _export_of(form) for name, form in others.items()}


def _export_of(form: FileFormat[Judgments]) -> ExportFormat:
    """One grade per pair in a registered format."""
    write, end = form.write, next(iter(form.suffixes), ".txt")
    assert write is not None
    return ExportFormat(
        form.name, form.summary, f"judgments{end}", "text/plain", lambda state, _: write(state.judgments)
    )


def export_format(name: str) -> ExportFormat:
    """The format of this name."""
    known = export_formats()
    if name not in known:
        raise DataError(f"No format {name!r}: {', '.join(known)}.{did_you_mean(name, known)}")
    return known[name]


def _qrels(state: State, _: Sequence[Event]) -> str:
    lines = [
        f"{row.query} {'adjudicated' if (row.query, row.doc) in state.adjudicated else 0} {row.doc} {row.grade:g}"
        for row in state.judgments.to_frame().sort_values(["query", "doc"]).itertuples(index=False)
    ]
    return "".join(f"{line}\n" for line in lines)


def _csv(state: State, _: Sequence[Event]) -> str:
    return str(pd.DataFrame(export_rows(state), columns=list(COLUMNS)).to_csv(index=False, lineterminator="\n"))


def _jsonl(state: State, _: Sequence[Event]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in export_rows(state))


def _log(_: State, log: Sequence[Event]) -> str:
    return "".join(json.dumps(_event(event), ensure_ascii=False) + "\n" for event in log)


EXPORTS = (
    ExportFormat(
        "qrels",
        "TREC qrels, one grade per pair; the second column says which were adjudicated",
        "qrels.txt",
        "text/plain",
        _qrels,
    ),
    ExportFormat(
        "csv",
        "one row per judgment: query, doc, grade, assessor, time, guideline, and whether it was adjudicated",
        "judgments.csv",
        "text/csv",
        _csv,
    ),
    ExportFormat("jsonl", "the same, one JSON object per line", "judgments.jsonl", "application/x-ndjson", _jsonl),
    ExportFormat(
        "log", "every event, one JSON object per line", "log.jsonl", "application/x-ndjson", _log, needs_log=True
    ),
)


def export_rows(state: State) -> list[dict[str, Any]]:
    """A row for each assessor's latest judgment of a pair; for an adjudicated pair the adjudicated grade alone.

    What it overruled stands beside it.
    """
    rows: list[tuple[Any, ...]] = []
    for pair in sorted(state.judged.keys() | state.adjudicated.keys()):
        said, settled = state.latest(pair), state.adjudicated.get(pair)
        if settled is not None:
            overruled = " ".join(f"{who}:{judgment.grade:g}" for who, judgment in sorted(said.items()))
            rows.append((*pair, settled.grade, settled.by, settled.time, None, "", True, overruled))
        else:
            rows += [(*pair, j.grade, who, j.when, j.guideline, j.source, False, "") for who, j in sorted(said.items())]
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows]


def _event(event: Event) -> dict[str, Any]:
    row = encode(event)
    rest: dict[str, Any] = json.loads(row["body"])
    return {name: row[name] for name in ("number", "time", "by", "kind")} | rest
