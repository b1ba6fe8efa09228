"""``rank_eval`` of OpenSearch and Elasticsearch: ratings out and in as requests, hits in as runs from responses."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from probeval.data.files import read_bytes
from probeval.data.judgments import NOT_JUDGED, Judgments
from probeval.data.payloads import member, parsed_json
from probeval.data.runs import Runs
from probeval.data.tables import ids, numbers
from probeval.data.tasks import WriteOptions
from probeval.errors import DataError, ProbevalWarning, did_you_mean

__all__ = ["rank_eval_request", "read_rank_eval_ratings", "read_rank_eval_runs"]

PathName = str | PathLike[str]
HOLE = "{{query_string}}"  # where a search has the text of the query
ANY_FIELD = {"query": {"multi_match": {"query": HOLE}}}
NDCG = {"dcg": {"k": 10, "normalize": True}}


def read_rank_eval_runs(*paths: PathName) -> Runs:
    """Read the hits in responses of ``rank_eval`` as runs: one file per system, which is named by the file.

    A list is in the order of the hits, rated or not. The ids of the requests are those of the queries. Requests that
    failed have no list, with a warning.

    Parameters
    ----------
    paths
        Responses, which have ``details``.
    """
    rows: list[tuple[str, str, str, int]] = []
    owner: dict[str, Path] = {}
    for path in map(Path, paths):
        (system,) = ids([Path(path.name.removesuffix(".gz")).stem], "system", path=path)
        if system in owner:
            raise DataError(
                f"{owner[system]} is named {system!r} too. Rename one: the name of the file is that of the system.",
                path=path,
            )
        owner[system] = path
        rows += [(system, *hit) for hit in _hits(path)]
    systems, queries, docs, ranks = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Runs.rows(systems, queries, docs, ranks=np.array(ranks, dtype=float))


def _hits(path: Path) -> Iterator[tuple[str, str, int]]:
    """Yield query, document and rank of the hits of a response."""
    response = parsed_json(path, read_bytes(path))
    if isinstance(response, dict) and isinstance(response.get("error"), (dict, str)):
        raise DataError("the engine answered with an error, not with details. Correct the request.", path=path)
    if isinstance(response, dict) and "requests" in response:
        raise DataError("this is a request. Runs are the responses of the engine, which have 'details'.", path=path)
    if isinstance(response, dict) and "details" not in response:
        response = response.get("rank_eval", response)  # as the documentation wraps it
    details = member(response, "details", dict, where="the response", path=path)
    failures = member(response, "failures", dict, where="the response", path=path, default={})
    if failures:
        names = ", ".join(map(repr, list(failures)[:3])) + (", .." if len(failures) > 3 else "")
        warnings.warn(f"{path}: {len(failures):,} requests failed and have no list: {names}.", ProbevalWarning, 2)
    if not any(isinstance(part, dict) and part.get("hits") for part in details.values()):
        raise DataError("no request in it has hits. Check the index and the searches of the request.", path=path)
    for query, part in details.items():
        where = f"the details of {query!r}"
        places: dict[Any, str] = {}
        for rank, entry in enumerate(member(part, "hits", list, where=where, path=path, default=[]), start=1):
            hit = member(entry, "hit", dict, where=f"hit {rank} in {where}", path=path)
            (doc,) = ids([member(hit, "_id", str, where=f"hit {rank} in {where}", path=path)], "doc", path=path)
            _check_index(hit, places, where, path)
            yield _query(query, path), doc, rank


def read_rank_eval_ratings(path: PathName) -> Judgments:
    """Read the ratings in a ``rank_eval`` request as judgments; the ids of the requests are those of the queries.

    Parameters
    ----------
    path
        The request, which has ``requests``, each with ``ratings``.
    """
    file = Path(path)
    body = parsed_json(file, read_bytes(file))
    rows: list[tuple[str, Any, Any]] = []
    for number, request in enumerate(member(body, "requests", list, where="the request", path=file), start=1):
        query = _query(member(request, "id", str, where=f"request {number}", path=file), file)
        places: dict[Any, str] = {}
        for rating in member(request, "ratings", list, where=f"request {number}", path=file, default=[]):
            where = f"a rating of {query!r}"
            member(rating, "_id", str, where=where, path=file)
            _check_index(rating, places, where, file)
            rows.append((query, rating["_id"], rating.get("rating")))
    if not rows:
        raise DataError("nothing in it is rated. Leave it out, and start with the runs alone.", path=file)
    queries, docs, grades = zip(*rows, strict=True)
    given = numbers(pd.Series(grades, dtype=object), "rating", path=file, finite=True)
    return Judgments.rows(queries, ids(docs, "doc", path=file), given)


def _query(name: str, path: Path) -> str:
    """The id of a request as that of a query."""
    if not name or name.split() != [name]:
        raise DataError(
            f"the id of a request must be text without white space, got {name!r}. Rename it: "
            f"{'_'.join(name.split()) or 'q1'!r}.",
            path=path,
        )
    return name


def _check_index(record: Mapping[str, Any], places: dict[Any, str], where: str, path: Path) -> None:
    """Raise an error if a document of this id was in another index."""
    doc, index = record.get("_id"), str(record.get("_index", ""))
    if places.setdefault(doc, index) != index:
        raise DataError(
            f"{where}: the document {doc!r} is in two indices, {places[doc]!r} and {index!r}. Evaluate one index at a "
            "time.",
            path=path,
        )


def rank_eval_request(judgments: Judgments, options: WriteOptions) -> str:
    """Judgments as the body of a ``rank_eval`` request, one rating per pair: the median over assessors.

    The search of a query is ``options.search`` with the text of the query in the place of ``{{query_string}}``. If it
    is a ``rank_eval`` request itself, its requests are kept and only their ratings are replaced. Queries of
    ``options.queries`` without judgments have no ratings yet.

    Examples
    --------
    >>> judged = Judgments.rows(["q1", "q1"], ["007", "7"], [2, 0])
    >>> body = json.loads(rank_eval_request(judged, WriteOptions(queries={"q1": "star wars"}, index="films")))
    >>> body["requests"][0]["request"]
    {'query': {'multi_match': {'query': 'star wars'}}}
    >>> body["requests"][0]["ratings"][0]
    {'_index': 'films', '_id': '007', 'rating': 2}
    """
    if not options.index:
        raise DataError("rank_eval needs the index of the documents, as hits name it: index='products' (--index).")
    ratings = _ratings(judgments, options.index)
    search: Mapping[str, Any] = ANY_FIELD if options.search is None else options.search
    if "requests" in search:
        body = {**search, "requests": _rated_again(search["requests"], ratings)}
    else:
        if HOLE not in json.dumps(search):
            raise DataError(f"the search must have {HOLE} in the place of the query's text.")
        queries = dict.fromkeys([*ratings, *(options.queries or {})])
        requests = [
            {"id": query, "request": _filled(search, options.query_text(query)), "ratings": ratings.get(query, [])}
            for query in queries
        ]
        body = {"requests": requests}
    metric = options.metric or body.get("metric") or NDCG
    return json.dumps({**body, "metric": metric}, indent=2, ensure_ascii=False) + "\n"


def _ratings(judgments: Judgments, index: str) -> dict[str, list[dict[str, Any]]]:
    """The ratings of each query, as the engine takes them."""
    found: dict[str, list[dict[str, Any]]] = {}
    for pair, grade in enumerate(judgments.grades()):
        query, doc = judgments.pool.label(pair)
        if np.isnan(grade) or grade == NOT_JUDGED:
            continue
        if grade != int(grade):
            raise DataError(
                f"query {query!r}, document {doc!r}: rank_eval takes whole numbers, got {grade:g}. Use a scale of "
                "whole grades."
            )
        rating = max(int(grade), 0)  # junk is judged, and not relevant
        found.setdefault(query, []).append({"_index": index, "_id": doc, "rating": rating})
    return found


def _rated_again(requests: Any, ratings: Mapping[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Requests with other ratings."""
    if not isinstance(requests, list) or not all(
        isinstance(r, dict) and isinstance(r.get("id"), str) for r in requests
    ):
        raise DataError("'requests' in the search must be an array of objects with an 'id'.")
    known = [request["id"] for request in requests]
    missing = next((query for query in ratings if query not in known), None)
    if missing is not None:
        raise DataError(
            f"no request for the judged query {missing!r} in the search.{did_you_mean(missing, known)} Add a request "
            "with this id."
        )
    return [{**request, "ratings": ratings.get(request["id"], [])} for request in requests]


def _filled(part: Any, text: str) -> Any:
    """A search with the text of a query in its place."""
    if isinstance(part, str):
        return part.replace(HOLE, text)
    if isinstance(part, Mapping):
        return {key: _filled(value, text) for key, value in part.items()}
    return [_filled(value, text) for value in part] if isinstance(part, list) else part
