"""Judgments in and out: qrels, tables, Quepid books, UMBRELA's answers, labels by machines."""

from __future__ import annotations

import json
from collections.abc import Collection as Names
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from probeval.campaign.events import Event, Imported, Judged, Labelled, encode
from probeval.campaign.parsing import as_name
from probeval.campaign.state import State
from probeval.data.collection import read_judgments
from probeval.data.evidence import LabelTable, read_labels
from probeval.data.exchange import read_quepid, read_umbrela
from probeval.data.files import stem, suffix
from probeval.data.judgments import NOT_JUDGED, Judgments, on_scale
from probeval.data.scale import Scale
from probeval.data.tables import NAMES, column, ids, read_table
from probeval.errors import DataError, did_you_mean

__all__ = [
    "EXPORTS",
    "IMPORTS",
    "Incoming",
    "cell_text",
    "export_text",
    "incoming_events",
    "read_incoming",
    "read_text_table",
    "read_texts",
]

TEXTS = ("text", "title", "contents", "segment", "passage", "description", "query_text")
NOTHING = Judgments.rows([], [], [])
IMPORTS = {
    "qrels": "TREC qrels or prels: judgments",
    "table": "CSV, TSV, JSONL or parquet with query, doc and grade: judgments",
    "quepid": "a Quepid book or case: judgments, or labels where a rater is a machine",
    "umbrela": "UMBRELA's answers as JSON lines: labels",
    "labels": "a table with query, doc and one column of numbers a machine: labels",
}
EXPORTS = {
    "qrels": "TREC qrels, one grade a pair; the second column says which were adjudicated",
    "csv": "one row a judgment: query, doc, grade, assessor, time, guideline, and whether it was adjudicated",
    "jsonl": "the same, one JSON object a line",
    "log": "every event, one JSON object a line",
}
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
        One of :data:`IMPORTS`; told from the file when not given.
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
    file_format = file_format or _form(path)
    if file_format not in IMPORTS:
        raise DataError(f"No format {file_format!r}: {', '.join(IMPORTS)}.{did_you_mean(file_format, IMPORTS)}")
    texts = {query: text for query, text in queries.items() if text} or None
    given, labels = NOTHING, None
    if file_format == "umbrela":
        labels = read_umbrela(path, queries=texts, docs=docs)
    elif file_format == "labels":
        labels = read_labels(path)
    else:
        given = read_quepid(path, queries=texts) if file_format == "quepid" else read_judgments(path, scale=scale)
        given = replace(
            given, assessors=tuple(who or assessor or stem(path).removesuffix(".txt") for who in given.assessors)
        )
        given, labels = _by_machines(given, machines, path)
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


def incoming_events(incoming: Incoming, by: str, now: float, *, source: str, part: str = "labels") -> list[Event]:
    """The events of an import: one for its source, one per judgment, one for the part of the store with its labels."""
    given, labels, events = incoming.judgments, incoming.labels, list[Event]()
    judged = [
        Judged(
            by=as_name(given.assessors[who] or by, "an assessor"),
            time=now,
            query=str(given.pool.queries[given.pool.query[pair]]),
            doc=str(given.pool.docs[given.pool.doc[pair]]),
            grade=float(grade),
            source=source,
            at=None if np.isnan(at) else float(at),
        )
        for pair, grade, who, at in zip(given.pair, given.grade, given.assessor, given.time, strict=True)
    ]
    if judged:
        events = [Imported(by=by, time=now, source=source, judgments=len(judged)), *judged]
    if labels is not None:
        columns, pairs = labels.sources, len(labels.pool)
        events.append(Labelled(by=by, time=now, source=source, part=part, columns=columns, pairs=pairs))
    return events


def _form(path: Path) -> str:
    """What a file looks like."""
    kind = suffix(path)
    if not kind:
        return "quepid" if path.name.removesuffix(".gz").endswith(".json") else "qrels"
    names = [str(name).strip().lower() for name in read_table(path).columns]
    if kind == ".jsonl" and {"judgment", "prediction"} <= set(names):
        return "umbrela"
    if set(names) & set(NAMES["grade"]):
        return "table"
    if kind == ".csv" and names[:2] == ["query", "docid"]:
        return "quepid"
    raise DataError(f"no column for the grade. Say what the file is: {', '.join(IMPORTS)}.", path=path)


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


def export_text(state: State, file_format: str, log: Sequence[Event] = ()) -> str:
    """The judgments of a campaign, or its whole log, as a file's text: one of :data:`EXPORTS`."""
    if file_format == "qrels":
        lines = [
            f"{row.query} {'adjudicated' if (row.query, row.doc) in state.adjudicated else 0} {row.doc} {row.grade:g}"
            for row in state.judgments.to_frame().sort_values(["query", "doc"]).itertuples(index=False)
        ]
        return "".join(f"{line}\n" for line in lines)
    if file_format == "log":
        return "".join(json.dumps(_event(event), ensure_ascii=False) + "\n" for event in log)
    rows = export_rows(state)
    if file_format == "jsonl":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    if file_format == "csv":
        return str(pd.DataFrame(rows, columns=list(COLUMNS)).to_csv(index=False, lineterminator="\n"))
    raise DataError(f"No format {file_format!r}: {', '.join(EXPORTS)}.{did_you_mean(file_format, EXPORTS)}")


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
