"""Quepid: pairs to judge out as a book, ratings of cases and books in, judgments out as a book with ratings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from probeval.data.files import read_bytes
from probeval.data.judgments import NOT_JUDGED, Judgments
from probeval.data.payloads import csv_rows, member, parsed_json, query_ids
from probeval.data.tables import ids, numbers
from probeval.data.tasks import OpenPair, WriteOptions, query_texts
from probeval.errors import DataError

__all__ = ["quepid_book", "quepid_tasks", "read_quepid"]


def read_quepid(path: str | PathLike[str], *, queries: Mapping[str, str] | None = None) -> Judgments:
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
    rated = _rated_pairs(file, data) if data.lstrip()[:1] == b"{" else _rated_rows(file, data)
    rows = [row for row in rated if row[2] not in ("", None)]
    if not rows:
        raise DataError("nothing in it is rated. Export ratings, not queries.", path=file)
    texts, docs, ratings, raters = zip(*rows, strict=True)
    return Judgments.rows(
        query_ids(texts, queries, path=file),
        ids(docs, "doc", path=file),
        numbers(pd.Series(ratings, dtype=object), "rating", path=file, finite=True),
        assessors=raters if any(raters) else None,
    )


def _rated_rows(path: Path, data: bytes) -> Iterator[tuple[str, str, str, str]]:
    """Yield query text, document, rating and rater; a query without ratings has one row."""
    header, *rows = csv_rows(path, data)
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


def _rated_pairs(path: Path, data: bytes) -> Iterator[tuple[str, Any, Any, str]]:
    """Yield query text, document, rating and rater of a book as JSON; a rater is a user or an AI judge."""
    book = parsed_json(path, data)
    if "query_doc_pairs" not in book:
        raise DataError(
            "expected a book with 'query_doc_pairs' (Quepid), an array of annotated tasks (Label Studio) or a request "
            "with ratings (rank_eval).",
            path=path,
        )
    pairs = member(book, "query_doc_pairs", list, where="the book", path=path)
    for number, pair in enumerate(pairs, start=1):
        where = f"query_doc_pair {number}"
        text = member(pair, "query_text", str, where=where, path=path)
        for judgment in member(pair, "judgements", list, where=where, path=path, default=[]):
            who = member(judgment, "user_email", str, where=f"a judgement of {where}", path=path, default="")
            who = who or member(judgment, "judge_name", str, where=f"a judgement of {where}", path=path, default="")
            rated = not (judgment.get("unrateable") or judgment.get("judge_later"))
            yield text, pair.get("doc_id"), judgment.get("rating") if rated else None, who


def quepid_tasks(pairs: Sequence[OpenPair], options: WriteOptions) -> dict[str, str]:
    """Pairs to judge as a book that Quepid imports; the position of a pair is its place in the batch.

    Examples
    --------
    >>> pairs = [OpenPair("q1", "007"), OpenPair("q1", "7")]
    >>> book = json.loads(quepid_tasks(pairs, WriteOptions(queries={"q1": "star wars"}))["book.json"])
    >>> [(pair["query_text"], pair["doc_id"], pair["position"]) for pair in book["query_doc_pairs"]]
    [('star wars', '007', 1), ('star wars', '7', 2)]
    """
    texts = query_texts((pair.query for pair in pairs), options, "Quepid")
    rows = [_pair(texts[pair.query], pair.doc, place, [], options) for place, pair in enumerate(pairs, start=1)]
    return {"book.json": _book(rows, options)}


def quepid_book(judgments: Judgments, options: WriteOptions) -> str:
    """Judgments as a book that Quepid imports, the latest of each assessor; an assessor is a user's e-mail address.

    Examples
    --------
    >>> judged = Judgments.rows(["q1", "q1"], ["007", "007"], [2, 1], assessors=["ann@x.org", "bob@x.org"])
    >>> book = json.loads(quepid_book(judged, WriteOptions(queries={"q1": "star wars"})))
    >>> [(j["user_email"], j["rating"]) for j in book["query_doc_pairs"][0]["judgements"]]
    [('ann@x.org', 2.0), ('bob@x.org', 1.0)]
    """
    table = judgments.to_frame().drop_duplicates(["query", "doc", "assessor"], keep="last")
    table = table[table["grade"] != NOT_JUDGED]
    texts = query_texts(table["query"], options, "Quepid")
    ratings: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for query, doc, grade, who in zip(*(table[name] for name in ("query", "doc", "grade", "assessor")), strict=True):
        ratings.setdefault((query, doc), []).append(
            {
                "rating": max(float(grade), 0.0),  # junk is judged, and not relevant
                "unrateable": False,
                "judge_later": False,
                "user_email": who or None,
                "explanation": None,
            }
        )
    rows = [
        _pair(texts[query], doc, place, given, options)
        for place, ((query, doc), given) in enumerate(ratings.items(), start=1)
    ]
    return _book(rows, options)


def _pair(text: str, doc: str, place: int, ratings: list[dict[str, Any]], options: WriteOptions) -> dict[str, Any]:
    shown = {"text": options.docs[doc]} if options.docs and doc in options.docs else {}
    return {
        "query_text": text,
        "doc_id": doc,
        "position": place,
        "document_fields": json.dumps(shown, ensure_ascii=False),  # Quepid keeps the fields as JSON in a text
        "judgements": ratings,
    }


def _book(pairs: list[dict[str, Any]], options: WriteOptions) -> str:
    scale = {} if options.scale is None else {"scale": ",".join(f"{grade:g}" for grade in options.scale.grades)}
    return json.dumps({"name": options.name, **scale, "query_doc_pairs": pairs}, indent=2, ensure_ascii=False) + "\n"
