"""Runs and labels of other tools: UMBRELA, RAGElo, OpenSearch, MTEB and BEIR."""

from __future__ import annotations

import contextlib
import json
import warnings
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from probeval.data.evidence import LabelTable
from probeval.data.files import PREDICTIONS, read_bytes
from probeval.data.limits import check_array
from probeval.data.payloads import csv_rows, ids_of_texts, json_records, parsed_json, query_ids
from probeval.data.pool import Pool
from probeval.data.runs import Runs
from probeval.data.tables import ids, numbers
from probeval.data.trec import read_qrels
from probeval.errors import DataError, ProbevalWarning

__all__ = ["read_mteb", "read_opensearch", "read_ragelo", "read_umbrela"]

PathName = str | PathLike[str]
SCORES = ("score", "overall", "relevance")  # where RAGElo's evaluators put the label in an answer of several parts
META = "mteb_model_meta"
NESTED = "{subset: {split: {query: {doc: score}}}}, or {query: {doc: score}}"


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
        table = read_qrels(file).to_frame()
        queried, listed, grades = (table[name].tolist() for name in ("query", "doc", "grade"))
        return _labels(file, queried, listed, ["umbrela"] * len(table), grades)
    rows = json_records(file, data)
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
        [str(row["qid"]) for row in rows] if named else query_ids([row["query"] for row in rows], queries, path=file),
        [str(row["docid"]) for row in rows]
        if named
        else ids_of_texts([str(row["passage"]) for row in rows], docs or {}, "docs", path=file),
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
        records = [record.get("retrieval", record) for record in json_records(file, data)]
    else:
        names, *cells = csv_rows(file, data)
        records = [dict(zip(names, row, strict=False)) for row in cells if row]
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
    identifies queries by their text: give ``queries``, as in :func:`probeval.data.read_quepid`.
    """
    file = Path(path)
    content = parsed_json(file, read_bytes(file))
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
    return _labels(file, query_ids(texts, queries, path=file), docs, sources, ratings)


def _labels(path: Path, queries: list[str], docs: list[str], sources: list[str], labels: list[Any]) -> LabelTable:
    pool = Pool.of(ids(queries, "query", path=path), ids(docs, "doc", path=path))
    names = tuple(dict.fromkeys(sources))
    check_array((len(pool), len(names)), len(labels), path=path)
    values = np.full((len(pool), len(names)), np.nan)
    place = {name: at for at, name in enumerate(names)}
    at = pool.locate(queries, docs), np.array([place[source] for source in sources])
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
        results = parsed_json(file, read_bytes(file))
        if not isinstance(results, dict):
            raise DataError(f"expected {NESTED}.", path=file)
        about = results.pop(META, {})
        if not isinstance(about, dict):
            raise DataError(f"{META!r} must be an object with the name of the model, got {about!r:.60}.", path=file)
        system = str(about.get("model_name") or file.resolve().parent.name).replace("/", "__")
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
