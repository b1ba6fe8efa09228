"""Files of other tools: Quepid, UMBRELA, RAGElo, OpenSearch, MTEB and BEIR."""

from __future__ import annotations

import contextlib
import csv
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from probeval.data.evidence import LabelTable
from probeval.data.files import PREDICTIONS, read_bytes
from probeval.data.judgments import Judgments
from probeval.data.pool import Pool
from probeval.data.runs import Runs
from probeval.data.tables import ids, numbers
from probeval.data.trec import read_qrels_rows
from probeval.errors import DataError, ProbevalWarning

__all__ = ["read_mteb", "read_opensearch", "read_quepid", "read_ragelo", "read_umbrela"]

PathName = str | PathLike[str]
SCORES = ("score", "overall", "relevance")  # where RAGElo's evaluators put the label in an answer of several parts
META = "mteb_model_meta"
NESTED = "{subset: {split: {query: {doc: score}}}}, or {query: {doc: score}}"


def read_quepid(path: PathName, *, queries: Mapping[str, str] | None = None) -> Judgments:
    """Read ratings exported from Quepid: a case (CSV), or a book with all raters (CSV or JSON).

    Quepid identifies a query by its text. Give ``queries``, a mapping from the ids of your queries to their texts;
    without it the text is the id, and must not contain white space. Unrated and unrateable documents are left out.

    Parameters
    ----------
    path
        A case: ``query,docid,rating``. A book: ``query,docid`` and one column per rater; or the JSON export, with
        ``query_doc_pairs``.
    queries
        Mapping from ids to texts.
    """
    file = Path(path)
    data = read_bytes(file)
    rated = _quepid_book(file, data) if data.lstrip()[:1] == b"{" else _quepid_csv(file, data)
    rows = [row for row in rated if row[2] not in ("", None)]
    if not rows:
        raise DataError("nothing in it is rated. Export ratings, not queries.", path=file)
    texts, docs, ratings, raters = zip(*rows, strict=True)
    return Judgments.rows(
        _query_ids(texts, queries, path=file),
        ids(docs, "doc", path=file),
        numbers(pd.Series(ratings, dtype=object), "rating", path=file),
        assessors=raters if any(raters) else None,
    )


def _quepid_csv(path: Path, data: bytes) -> Iterator[tuple[str, str, str, str]]:
    """Yield query text, document, rating and rater; a query without ratings has one row."""
    header, *rows = csv.reader(StringIO(_text(path, data)))
    if [name.strip().lower() for name in header[:2]] != ["query", "docid"] or len(header) < 3:
        raise DataError(
            f"expected the columns query, docid and rating (or one per rater), got {', '.join(header)}.", path=path
        )
    raters = [""] if header[2:] == ["rating"] else [name.strip() for name in header[2:]]
    for number, row in enumerate(rows, start=2):
        if len(row) > len(header):
            raise DataError(f"expected {len(header)} cells, got {len(row)}.", path=path, line=number)
        for rater, rating in zip(raters, row[2:], strict=False):
            yield row[0], row[1], rating, rater


def _quepid_book(path: Path, data: bytes) -> Iterator[tuple[str, str, Any, str]]:
    book = _json(path, data)
    if "query_doc_pairs" not in book:
        raise DataError("expected a book with 'query_doc_pairs'. Export the book, not the case.", path=path)
    for pair in book["query_doc_pairs"]:
        for judgment in pair.get("judgements", ()):
            rating = None if judgment.get("unrateable") or judgment.get("judge_later") else judgment.get("rating")
            yield pair["query_text"], str(pair["doc_id"]), rating, judgment.get("user_email") or ""


def read_umbrela(
    path: PathName, *, queries: Mapping[str, str] | None = None, docs: Mapping[str, str] | None = None
) -> LabelTable:
    """Read UMBRELA's labels: its modified qrels, or its judgments as JSON lines.

    The lines contain texts, not ids: give ``queries`` and ``docs``, mappings from ids to texts. Lines with a ``qid``
    and a ``docid`` need neither. Each model is a separate source (``umbrela`` for qrels, which name no model). If an
    answer could not be parsed (``result_status`` 0), the label is missing, not 0.

    These are evidence about relevance, never relevance itself: use them as labels in models.
    """
    file = Path(path)
    data = read_bytes(file)
    if data.lstrip()[:1] not in (b"{", b"["):
        qrels = read_qrels_rows(file)
        queried, listed = ([label.decode() for label in column] for column in (qrels.queries, qrels.docs))
        return _labels(file, queried, listed, ["umbrela"] * len(qrels.grades), qrels.grades.tolist())
    rows = _records(file, data)
    lacking = next((i for i, row in enumerate(rows) if "judgment" not in row), None)
    if lacking is not None:
        raise DataError(f"record {lacking + 1} has no 'judgment'. Give the output of UMBRELA's judges.", path=file)
    named = all("qid" in row and "docid" in row for row in rows)
    nameless = next((i for i, row in enumerate(rows) if not (named or {"query", "passage"} <= row.keys())), None)
    if nameless is not None:
        raise DataError(
            f"record {nameless + 1} has neither 'qid' and 'docid' nor 'query' and 'passage'. Give what UMBRELA's "
            "judges return, or name the format of the file: file_format='labels'.",
            path=file,
        )
    return _labels(
        file,
        [str(row["qid"]) for row in rows] if named else _query_ids([row["query"] for row in rows], queries, path=file),
        [str(row["docid"]) for row in rows]
        if named
        else _ids_of([row["passage"] for row in rows], docs or {}, "docs", path=file),
        [str(row.get("model", "umbrela")) for row in rows],
        [row["judgment"] if row.get("result_status", 1) else None for row in rows],
    )


def read_ragelo(path: PathName) -> LabelTable:
    """Read labels by RAGElo's retrieval evaluators: a CSV file of evaluations, or the JSON lines of an experiment.

    A CSV file has the columns ``qid`` (or ``query_id``), ``did``, ``raw_answer`` and ``answer``. JSON lines have an
    object with these keys, by itself or under ``retrieval``; lines on answers and tournaments are passed over, with a
    warning. An answer is a number, or an object with a number at ``score``, ``overall`` or ``relevance``. If the
    evaluation failed, the label is missing, not 0. Each evaluator is a separate source (``ragelo`` without a name).
    """
    file = Path(path)
    data = read_bytes(file)
    if data.lstrip()[:1] in (b"{", b"["):
        records = [record.get("retrieval", record) for record in _records(file, data)]
    else:
        records = list(csv.DictReader(StringIO(_text(file, data))))
    rows = [record for record in records if isinstance(record, dict) and "did" in record]
    lacking = next(
        (i for i, row in enumerate(rows) if not ({"qid", "query_id"} & row.keys() and "answer" in row)), None
    )
    if lacking is not None or not rows:
        what = "no record has a 'did'" if lacking is None else f"record {lacking + 1} lacks a 'qid' or an 'answer'"
        raise DataError(f"{what}. Give the output of one of RAGElo's retrieval evaluators.", path=file)
    if len(rows) < len(records):
        warnings.warn(
            f"{file}: {len(records) - len(rows):,} records on no document are not labels.", ProbevalWarning, 2
        )
    return _labels(
        file,
        [str(row.get("qid", row.get("query_id"))) for row in rows],
        [str(row["did"]) for row in rows],
        [str(row.get("evaluator_name") or "ragelo") for row in rows],
        [None if row.get("exception") else _score(row["answer"]) for row in rows],
    )


def _score(answer: Any) -> Any:
    """The number in an answer of RAGElo's: the answer itself, or a part of it."""
    if isinstance(answer, str) and answer.lstrip().startswith("{"):
        with contextlib.suppress(ValueError):
            answer = json.loads(answer)
    if isinstance(answer, dict):
        return next((answer[key] for key in SCORES if key in answer), json.dumps(answer))
    return answer


def read_opensearch(path: PathName, *, queries: Mapping[str, str] | None = None) -> LabelTable:
    """Read a judgment list of OpenSearch's Search Relevance Workbench: ``judgmentRatings`` as JSON.

    The file is the list itself, the object that holds it (as it is imported), or the answer of the server to a request
    for one or more lists. A list is a source, named after the list (``opensearch`` if it has no name). OpenSearch
    identifies queries by their text: give ``queries``, as in :func:`read_quepid`.
    """
    file = Path(path)
    content = _json(file, read_bytes(file))
    if isinstance(content, dict) and isinstance(content.get("hits"), dict):
        lists = [hit.get("_source", {}) for hit in content["hits"].get("hits", ())]
    else:
        lists = [content if isinstance(content, dict) else {"judgmentRatings": content}]
    try:
        rows = [
            (str(entry["query"]), str(rating["docId"]), str(judged.get("name") or "opensearch"), rating["rating"])
            for judged in lists
            for entry in judged["judgmentRatings"]
            for rating in entry["ratings"]
        ]
    except (KeyError, TypeError, AttributeError):
        raise DataError(
            "expected 'judgmentRatings', a list of {'query': .., 'ratings': [{'docId': .., 'rating': ..}, ..]}. Export "
            "a judgment list with its ratings.",
            path=file,
        ) from None
    if not rows:
        raise DataError("nothing in it is rated. Export a judgment list with its ratings.", path=file)
    texts, docs, sources, ratings = (list(part) for part in zip(*rows, strict=True))
    return _labels(file, _query_ids(texts, queries, path=file), docs, sources, ratings)


def _labels(path: Path, queries: list[str], docs: list[str], sources: list[str], labels: list[Any]) -> LabelTable:
    pool = Pool.of(ids(queries, "query", path=path), ids(docs, "doc", path=path))
    names = tuple(dict.fromkeys(sources))
    values = np.full((len(pool), len(names)), np.nan)
    at = pool.locate(queries, docs), np.array([names.index(source) for source in sources])
    if len(np.unique(np.ravel_multi_index(at, values.shape))) != len(queries):
        raise DataError("two rows label one pair. Keep one.", path=path)
    values[at] = numbers(pd.Series(labels, dtype=object), "label", path=path, missing=True, finite=True)
    return LabelTable(pool, names, values)


def read_mteb(
    *paths: PathName,
    task: str | None = None,
    subset: str | None = None,
    split: str | None = None,
    order: str = "trec_eval",
) -> Runs:
    """Read runs from predictions of MTEB or BEIR: folders or files, one model each.

    A folder is searched recursively for ``*_predictions.json``. A file nests subset, split, query, document and score,
    or only the last three (BEIR and older MTEB). The system is the model named in the file, else its folder.

    Parameters
    ----------
    paths
        Files, or folders such as MTEB's ``prediction_folder``.
    task
        The task, needed if folders contain several.
    subset, split
        The subset and split, needed if a file contains several.
    order
        How a list is ordered, one of :data:`probeval.data.runs.ORDERS`.
    """
    files = [file for path in paths for file in _predictions(Path(path), task)]
    if not files:
        raise DataError("no predictions were named. Give MTEB's prediction folder, or files.")
    rows: list[tuple[str, str, str, float]] = []
    owner: dict[str, Path] = {}
    for file in files:
        results = _json(file, read_bytes(file))
        if not isinstance(results, dict):
            raise DataError(f"expected {NESTED}.", path=file)
        system = str(results.pop(META, {}).get("model_name") or file.resolve().parent.name).replace("/", "__")
        if system in owner:
            raise DataError(
                f"the model {system!r} is in {owner[system]} already. Name the files of one task.", path=file
            )
        owner[system] = file
        if not _flat(results):
            results = _pick(_pick(results, subset, "subset", path=file), split, "split", path=file)
        if not _flat(results):
            raise DataError(f"expected {NESTED}.", path=file)
        rows += [(system, query, doc, score) for query, docs in results.items() for doc, score in docs.items()]
    systems, queries, docs, scores = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Runs.rows(
        ids(systems, "system"),
        ids(queries, "query"),
        ids(docs, "doc"),
        numbers(pd.Series(scores, dtype=object), "score"),
        order=order,
    )


def _predictions(path: Path, task: str | None) -> list[Path]:
    if path.is_file():
        return [path]
    pattern = f"{'*' if task is None else task}{PREDICTIONS}"
    files = sorted(path.rglob(pattern))
    if not files:
        raise DataError(f"no file {pattern} here or below.", path=path)
    tasks = sorted({file.name.removesuffix(PREDICTIONS) for file in files})
    if len(tasks) > 1:
        raise DataError(f"predictions for several tasks ({', '.join(tasks)}). Name one: task={tasks[0]!r}.", path=path)
    return files


def _flat(results: Mapping[str, Any]) -> bool:
    """Whether the nesting is {query: {doc: score}}."""
    return all(
        isinstance(docs, Mapping) and not any(isinstance(value, Mapping) for value in docs.values())
        for docs in results.values()
    )


def _pick(results: Mapping[str, Any], name: str | None, what: str, *, path: Path) -> dict[str, Any]:
    """Return the part with this name, or the only one."""
    key = next(iter(results)) if name is None and len(results) == 1 else name
    part = None if key is None else results.get(key)
    if not isinstance(part, dict):
        raise DataError(f"expected one {what} or the name of one ({what}=): it has {', '.join(results)}.", path=path)
    return part


def _query_ids(texts: Sequence[str], queries: Mapping[str, str] | None, *, path: Path) -> list[str]:
    # Quepid prepends a space to texts that a spreadsheet would read as formulas.
    texts = [str(text).strip() for text in texts]
    if queries is not None:
        return _ids_of(texts, queries, "queries", path=path)
    spaced = next((text for text in texts if len(text.split()) != 1), None)
    if spaced is not None:
        raise DataError(f"the query {spaced!r} is a text, not an id. Give queries={{'q1': {spaced!r}, ..}}.", path=path)
    return texts


def _ids_of(texts: Sequence[str], known: Mapping[str, str], what: str, *, path: Path) -> list[str]:
    """Return the ids of texts."""
    by_text: dict[str, list[str]] = {}
    for key, text in known.items():
        by_text.setdefault(text.strip(), []).append(key)
    for text in texts:
        if len(by_text.get(text.strip(), ())) != 1:
            count = "no id" if text.strip() not in by_text else "several ids"
            raise DataError(f"{count} in {what}= for the text {text[:60]!r}; one is needed.", path=path)
    return [by_text[text.strip()][0] for text in texts]


def _records(path: Path, data: bytes) -> list[dict[str, Any]]:
    """Return JSON objects from JSON lines or one array."""
    if data.lstrip()[:1] == b"[":
        rows = _json(path, data)
    else:
        rows = [_json(path, line.encode()) for line in _text(path, data).splitlines() if line.strip()]
    if not all(isinstance(row, dict) for row in rows):
        raise DataError("expected JSON objects, one per line or in one array.", path=path)
    return list(rows)


def _json(path: Path, data: bytes) -> Any:
    try:
        return json.loads(data)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"not JSON: {error}.", path=path) from None


def _text(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8: {error.reason} at byte {error.start}.", path=path) from None
