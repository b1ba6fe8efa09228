"""Import and export: qrels, tables, files of other tools, machine labels, answers about two documents."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Collection as Names
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from probeval.arrays import objects
from probeval.campaign.candidates import Material
from probeval.campaign.events import Answered, Event, Imported, Labelled, Settled, TaskPurpose
from probeval.campaign.kinds import Compared, Judged, ListsCompared
from probeval.campaign.kinds.grade import GOLD
from probeval.campaign.kinds.lists import LISTS, ListMaterial
from probeval.campaign.log import encode
from probeval.campaign.parsing import as_name
from probeval.campaign.questions import COMPARISON, GRADE, KINDS, Kind
from probeval.campaign.state import State
from probeval.data.answers import NO_ANSWER, PairAnswers
from probeval.data.evidence import LabelTable
from probeval.data.files import stem
from probeval.data.formats import FileFormat, ReadOptions, find_format, formats_of
from probeval.data.irds import is_dataset
from probeval.data.judgments import NOT_JUDGED, Judgments, on_scale
from probeval.data.scale import Scale
from probeval.data.spreadsheets import csv_text
from probeval.data.tasks import WriteOptions
from probeval.data.trec import check_writable
from probeval.display import Record
from probeval.errors import CampaignError, DataError, did_you_mean
from probeval.satisfaction import ListAnswers

__all__ = [
    "ExportFormat",
    "Incoming",
    "export_format",
    "export_formats",
    "formats_for",
    "import_formats",
    "incoming_events",
    "list_answers",
    "read_incoming",
]

NOTHING = Judgments.rows([], [], [])
NUMBERS = ("left_number", "right_number", "seconds")
ANSWER_COLUMNS = (
    "query", "left", "right", "choice", "relevant", "left_number", "right_number", "assessor", "seconds", "time",
    "comment", "purpose",
)  # fmt: skip
COLUMNS = ("query", "doc", "grade", "assessor", "time", "guideline", "source", "adjudicated", "overruled", "purpose")


@dataclass(frozen=True, repr=False)
class Incoming(Record):
    """The content of a file for import.

    Parameters
    ----------
    judgments
        Judgments by people; may be empty.
    labels
        Labels by machines, or None.
    answers
        Answers about two documents, or None.
    left_out
        Descriptions of the rows that are left out, with the reason.
    """

    judgments: Judgments = NOTHING
    labels: LabelTable | None = None
    answers: PairAnswers | None = None
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
    """Read a file of judgments, labels or answers about two documents.

    Parameters
    ----------
    path
        The file.
    file_format
        The name of one of :func:`import_formats`; by default detected from the file.
    queries
        The campaign's queries: texts by id, empty if unknown. Quepid and UMBRELA identify queries by text.
    scale
        Grades outside this scale are refused.
    assessor
        The assessor, if the file does not name one.
    machines
        Assessors that are machines: their grades become labels.
    docs
        Document texts by id, for UMBRELA output without ids.
    """
    kind = _import_format(path, file_format)
    texts = {query: text for query, text in queries.items() if text} or None
    found = kind.read(path, ReadOptions(scale=scale, queries=texts, docs=docs))
    given, labels = NOTHING, None
    unnamed = str(path) if is_dataset(path) else stem(path).removesuffix(".txt")
    if isinstance(found, PairAnswers):
        return _incoming_answers(found, queries, assessor or unnamed, path)
    if isinstance(found, LabelTable):
        labels = found
    else:
        names = tuple(who or assessor or unnamed for who in found.assessors)
        given, labels = _by_machines(replace(found, assessors=names), machines, path)
    left_out: list[str] = []
    given = _of_queries(given, queries, left_out)
    labels = None if labels is None else _labels_of_queries(labels, queries, left_out)
    if not len(given) and labels is None:
        raise DataError(f"nothing in it belongs to this campaign: {'; '.join(left_out)}.", path=path)
    wrong = next((i for i in range(len(given)) if not on_scale(scale, given.grade[i])), None)
    if wrong is not None:
        query, doc = given.pool.label(int(given.pair[wrong]))
        what = f"grade {given.grade[wrong]:g} of query {query!r}, document {doc!r} is not on the scale {scale}."
        raise DataError(what, path=path)
    return Incoming(given, labels, left_out=tuple(left_out))


def _incoming_answers(found: PairAnswers, queries: Mapping[str, str], assessor: str, path: Path) -> Incoming:
    """The answers of the campaign's queries; an answer without a name is by ``assessor``."""
    known = np.array([query in queries for query in found.query], dtype=bool)
    left_out = (f"{int((~known).sum()):,} answers of other queries",) if not known.all() else ()
    answers = found.take(known)
    if not len(answers):
        raise DataError(f"nothing in it belongs to this campaign: {'; '.join(left_out) or 'no answers'}.", path=path)
    stated = [answers.choice != NO_ANSWER, answers.relevant != NO_ANSWER, ~np.isnan(answers.number[:, 0])]
    faults = (
        (~np.any(stated, axis=0), "has no choice, relevant or numbers. Give one, or leave it out."),
        ((answers.relevant == 1) & (np.abs(answers.choice) != 1), "calls the chosen one relevant, but chooses none."),
    )
    for wrong, what in faults:
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            docs = f"{answers.left[row]!r} and {answers.right[row]!r} of query {answers.query[row]!r}"
            raise DataError(f"the answer about {docs} {what}", path=path)
    names = objects([who or assessor for who in answers.assessor])
    return Incoming(answers=replace(answers, assessor=names), left_out=left_out)


def incoming_events(incoming: Incoming, by: str, now: float, *, source: str, part: str = "labels") -> list[Event]:
    """The events of an import: one for its source, one per judgment or answer, one for the part with its labels."""
    given, labels, events = incoming.judgments, incoming.labels, list[Event]()
    judged = [
        Judged(
            by=as_name(given.assessors[who] or by, "an assessor"),
            time=now,
            query=str(given.pool.queries[given.pool.query[pair]]),
            documents=(str(given.pool.docs[given.pool.doc[pair]]),),
            grade=float(grade),
            source=source,
            at=None if np.isnan(at) else float(at),
        )
        for pair, grade, who, at in zip(given.pair, given.grade, given.assessor, given.time, strict=True)
    ]
    if judged:
        events = [Imported(by=by, time=now, source=source, judgments=len(judged)), *judged]
    if incoming.answers is not None:
        compared = [_compared(row, by, now, source) for row in incoming.answers.to_frame().to_dict("records")]
        events += [Imported(by=by, time=now, source=source, judgments=0, answers=len(compared)), *compared]
    if labels is not None:
        columns, pairs = labels.sources, len(labels.pool)
        events.append(Labelled(by=by, time=now, source=source, part=part, columns=columns, pairs=pairs))
    return events


def _compared(row: Mapping[Any, Any], by: str, now: float, source: str) -> Compared:
    """An answer of a file as an event."""
    number = {name: None if np.isnan(row[name]) else float(row[name]) for name in NUMBERS}
    return Compared(
        by=as_name(row["assessor"] or by, "an assessor"),
        time=now,
        query=row["query"],
        documents=(row["left"], row["right"]),
        choice=row["choice"],
        relevant=row["relevant"],
        left_number=number["left_number"],
        right_number=number["right_number"],
        seconds=number["seconds"],
        source=source,
    )


def import_formats() -> dict[str, FileFormat[Any]]:
    """The formats that a campaign can import, by name: those of judgments, labels and answers."""
    return formats_of(Judgments, LabelTable, PairAnswers)


def _import_format(path: Path, name: str | None) -> FileFormat[Any]:
    """The format of this name, or the one that the file is in."""
    known = import_formats()
    if name is not None:
        if name not in known:
            raise DataError(f"Unknown format {name!r}: expected {', '.join(known)}.{did_you_mean(name, known)}")
        return known[name]
    found = find_format(path, Judgments, LabelTable, PairAnswers)
    if found is None:
        raise DataError(f"no column for the grade. Name the format of the file: {', '.join(known)}.", path=path)
    return found


def _by_machines(given: Judgments, machines: Names[str], path: Path) -> tuple[Judgments, LabelTable | None]:
    """The judgments by people, and the grades by machines as labels."""
    missing = [name for name in machines if name not in given.assessors]
    if missing:
        raise DataError(f"no assessor {missing[0]!r} in it.{did_you_mean(missing[0], given.assessors)}", path=path)
    if not machines:
        return given, None
    values = np.full((len(given.pool), len(machines)), np.nan)
    for at, name in enumerate(machines):
        own = given.assessor == given.assessors.index(name)
        values[given.pair[own], at] = given.grade[own]
    people = given.take(~np.isin(given.assessor, [given.assessors.index(name) for name in machines]))
    return people, LabelTable(given.pool, tuple(machines), values)


def _of_queries(given: Judgments, queries: Mapping[str, str], left_out: list[str]) -> Judgments:
    """The judgments of the campaign's queries, without rows marked as not judged; adds to ``left_out``."""
    known = np.array([query in queries for query in given.pool.queries], dtype=bool)
    stranger, unjudged = ~known[given.pool.query[given.pair]], given.grade == NOT_JUDGED
    for what, rows in (("of other queries", stranger), ("drawn but not judged", unjudged & ~stranger)):
        if rows.any():
            left_out.append(f"{int(rows.sum()):,} judgments {what}")
    return given.take(~stranger & ~unjudged)


def _labels_of_queries(labels: LabelTable, queries: Mapping[str, str], left_out: list[str]) -> LabelTable | None:
    known = np.array([query in queries for query in labels.pool.queries], dtype=bool)[labels.pool.query]
    if known.all():
        return labels
    left_out.append(f"labels of {int((~known).sum()):,} pairs of other queries")
    return labels.rearranged(labels.pool.take(known), np.flatnonzero(known)) if known.any() else None


@dataclass(frozen=True, repr=False)
class ExportFormat(Record):
    """An export format of campaigns.

    Parameters
    ----------
    name, summary
        Its name, and a one-line description of the file.
    file_name, media_type
        Of the file that a browser downloads.
    text
        From the state of a campaign, its log and what it asks about to the text of the file.
    needs_log
        Whether the log is read for it.
    asks
        The kind of question whose answers it has; empty for all.
    use
        What to do with the file, for people, with ``{file}`` and the ``{scale}`` of its grades.
    """

    name: str
    summary: str
    file_name: str
    media_type: str
    text: Callable[[State, Sequence[Event], Material], str]
    needs_log: bool = False
    asks: str = GRADE
    use: str = "Read them elsewhere with --scale {scale}."


def export_formats() -> dict[str, ExportFormat]:
    """The formats in which a campaign is exported, by name: its own, and every format of judgments with a writer.

    Formats that need more than a campaign has, such as the index of ``rank-eval``, are not among them.

    >>> list(export_formats())
    ['qrels', 'csv', 'jsonl', 'answers', 'answers-jsonl', 'lists', 'lists-jsonl', 'log', 'quepid']
    """
    own = {export.name: export for export in EXPORTS}
    asked = {export.asks for export in EXPORTS}
    own |= {kind.name: _export_of_kind(kind) for kind in KINDS.values() if kind.name not in asked}
    written = {name: f for name, f in formats_of(Judgments).items() if f.write is not None and not f.needs}
    others = {name: f for name, f in written.items() if name not in own}
    return own | {name: _export_of(f) for name, f in others.items()}


def _export_of(file_format: FileFormat[Judgments]) -> ExportFormat:
    """One grade per pair in a registered format."""
    write, end = file_format.write, next(iter(file_format.suffixes), ".txt")
    assert write is not None

    def text(state: State, *_: object) -> str:
        setup = state.settings
        return write(state.judgments, WriteOptions(queries=state.texts, scale=setup.scale, name=setup.name))

    return ExportFormat(file_format.name, file_format.summary, f"judgments{end}", "text/plain", text)


def _export_of_kind(kind: Kind) -> ExportFormat:
    """The answers to questions of a kind that is not of this package: what all answers have, and the kind's values."""
    values = [
        field.name for field in fields(kind.answered) if field.name not in {each.name for each in fields(Answered)}
    ]
    shown = [f"document_{at}" for at, _ in enumerate(kind.places, start=1)]

    def text(state: State, *_: object) -> str:
        asked = (each for question, given in state.answers.items() if question.kind == kind.name for each in given)
        settled = [event for event in state.settled.values() if event.asks == kind.name]
        rows = [
            {"query": event.query, **dict(zip(shown, event.documents, strict=True)), "assessor": event.by}
            | {name: getattr(event, name, None) for name in (*values, "time", "seconds", "comment", "purpose")}
            | {"settled": isinstance(event, Settled)}
            for event in sorted((*asked, *settled), key=lambda event: event.number)
        ]
        names = ("query", *shown, "assessor", *values, "time", "seconds", "comment", "purpose", "settled")
        return csv_text(pd.DataFrame(rows, columns=list(names)))

    summary = f"one row per answer to questions of the kind {kind.name}, settled ones too"
    return ExportFormat(kind.name, summary, f"{kind.name}.csv", "text/csv", text, asks=kind.name)


def export_format(name: str) -> ExportFormat:
    """The format of this name."""
    known = export_formats()
    if name not in known:
        raise DataError(f"Unknown format {name!r}: expected {', '.join(known)}.{did_you_mean(name, known)}")
    return known[name]


def formats_for(kinds: Sequence[Kind]) -> list[ExportFormat]:
    """The formats that have answers to these kinds of questions."""
    asked = {"", *(kind.name for kind in kinds)}
    return [export for export in export_formats().values() if export.asks in asked]


def list_answers(state: State, material: Material) -> ListAnswers:
    """All answers about lists, in the order in which they were given."""
    if not isinstance(material, ListMaterial):
        setup = state.settings
        raise CampaignError(
            f"{setup.name!r} asks for {setup.ask}, not about lists. Create a study with users: probeval users create"
        )
    given = [cast("ListsCompared", event) for event in state.counted_answers if event.asks == LISTS]
    return material.answers(given, state.settings)


def _qrels(state: State, *_: object) -> str:
    table = state.judgments.to_frame().sort_values(["query", "doc"])
    check_writable(None, queries=table["query"], docs=table["doc"])
    by_people = {pair for pair, event in state.adjudicated.items() if not event.is_gold}
    lines = [
        f"{row.query} {'adjudicated' if (row.query, row.doc) in by_people else 0} {row.doc} {row.grade:g}"
        for row in table.itertuples(index=False)
    ]
    return "".join(f"{line}\n" for line in lines)


def _csv(state: State, *_: object) -> str:
    return csv_text(pd.DataFrame(export_rows(state), columns=list(COLUMNS)))


def _jsonl(state: State, *_: object) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in export_rows(state))


def _log(_: State, log: Sequence[Event], __: Material) -> str:
    return "".join(json.dumps(_event(event), ensure_ascii=False) + "\n" for event in log)


EXPORTS = (
    ExportFormat(
        "qrels",
        "TREC qrels, one grade per pair; the second column marks adjudicated ones",
        "qrels.txt",
        "text/plain",
        _qrels,
    ),
    ExportFormat(
        "csv",
        "one row per judgment: query, doc, grade, assessor, time, guideline, purpose, and whether it was adjudicated",
        "judgments.csv",
        "text/csv",
        _csv,
    ),
    ExportFormat("jsonl", "the same, one JSON object per line", "judgments.jsonl", "application/x-ndjson", _jsonl),
    ExportFormat(
        "answers",
        "one row per answer about two documents, in the columns of read_answers, with time, comment and purpose",
        "answers.csv",
        "text/csv",
        lambda state, *_: csv_text(pd.DataFrame(answer_rows(state), columns=list(ANSWER_COLUMNS))),
        asks=COMPARISON,
        use="Read them elsewhere with --preferences {file}.",
    ),
    ExportFormat(
        "answers-jsonl",
        "the same, one JSON object per line",
        "answers.jsonl",
        "application/x-ndjson",
        lambda state, *_: "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in answer_rows(state)),
        asks=COMPARISON,
        use="Read them elsewhere with --preferences {file}.",
    ),
    ExportFormat(
        "lists",
        "one row per answer about two lists, traps among them, with the scores of the lists",
        "lists.csv",
        "text/csv",
        lambda state, _, material: list_answers(state, material).export("csv"),
        asks=LISTS,
        use="Report them with probeval users report --answers {file}.",
    ),
    ExportFormat(
        "lists-jsonl",
        "the same, one JSON object per line",
        "lists.jsonl",
        "application/x-ndjson",
        lambda state, _, material: list_answers(state, material).export("jsonl"),
        asks=LISTS,
        use="Report them with probeval users report --answers {file}.",
    ),
    ExportFormat(
        "log",
        "every event, one JSON object per line",
        "log.jsonl",
        "application/x-ndjson",
        _log,
        needs_log=True,
        asks="",
        use="",
    ),
)


def export_rows(state: State) -> list[dict[str, Any]]:
    """One row per pair and assessor, with their latest judgment.

    A settled pair has one row with the settled grade, and the overruled judgments in a column of their own. It was
    adjudicated, or its grade is known: then its source is gold.
    Answers to gold and repeated pairs, and those that are set aside, follow. Their purpose marks them: they are not
    judgments of the campaign.
    """
    rows: list[tuple[Any, ...]] = []
    for pair in sorted(state.graded):
        latest = {judgment.by: judgment for judgment in state.judged.get(pair, ())}
        settled = state.adjudicated.get(pair)
        if settled is not None:
            overruled = " ".join(f"{who}:{judgment.grade:g}" for who, judgment in sorted(latest.items()))
            how = (GOLD, False) if settled.is_gold else ("", True)
            rows.append((*pair, settled.grade, settled.by, settled.time, None, *how, overruled, TaskPurpose.judgment))
        else:
            rows += [_row(j) for _, j in sorted(latest.items())]
    for question in sorted(question for question in state.answers if question.kind == GRADE):
        aside = {who: answer for who, answer in state.made(question).items() if not answer.counts}
        others = [*sorted(state.checks(question).items()), *sorted(aside.items())]
        rows += [_row(cast("Judged", answer)) for _, answer in others]
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows]


def answer_rows(state: State) -> list[dict[str, Any]]:
    """One row per answer about two documents that counts, in the order of their events.

    Answers to gold and repeated questions, and those that are set aside, follow. Their purpose marks them: they are not
    evidence.
    """
    asked = [given for question, given in state.answers.items() if question.kind == COMPARISON]
    checks = sorted((answer for given in asked for answer in given if not answer.counts), key=lambda a: a.number)
    rows = []
    for answer in (*state.compared, *checks):
        row = {name: getattr(answer, name, None) for name in ANSWER_COLUMNS}
        rows.append(row | {"assessor": answer.by, "purpose": getattr(answer, "purpose", TaskPurpose.judgment)})
    return rows


def _row(j: Judged) -> tuple[Any, ...]:
    return j.query, j.doc, j.grade, j.by, j.when, j.guideline, j.source, False, "", j.purpose


def _event(event: Event) -> dict[str, Any]:
    row = encode(event)
    rest: dict[str, Any] = json.loads(row["body"])
    return {name: row[name] for name in ("number", "time", "by", "kind")} | rest
