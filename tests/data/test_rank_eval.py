"""``rank_eval`` of OpenSearch and Elasticsearch: ratings out and in, hits in, as their documentation has them."""

from __future__ import annotations

import json

import pytest

from probeval.data import (
    Judgments,
    WriteOptions,
    rank_eval_request,
    read_judgments,
    read_rank_eval_ratings,
    read_rank_eval_runs,
    read_runs,
)
from probeval.errors import DataError, ProbevalWarning
from tests.data.payload_files import PAYLOADS, refusals

REQUEST, RESPONSE, WRAPPED = (PAYLOADS / f"rank_eval_{name}.json" for name in ("request", "response", "wrapped"))


def test_ratings_of_a_request_are_judgments():
    rows = read_judgments(REQUEST).to_frame()[["query", "doc", "grade"]].to_numpy().tolist()
    assert rows == [["space", "007", 3], ["space", "7", 0], ["heist", "40", 1]]


@pytest.mark.parametrize("response", [RESPONSE, WRAPPED], ids=lambda path: path.stem)
def test_hits_are_runs_in_the_order_of_the_engine(response):
    runs = read_runs(response)
    assert runs.systems == (response.stem,)
    docs = {
        query: [runs.pool.label(int(pair))[1] for pair in runs.pairs[0, i] if pair >= 0]
        for i, query in enumerate(runs.queries)
    }
    assert docs == {"space": ["7", "007", "1e5"], "heist": ["41"]}  # also where scores tie


def test_unrated_hits_are_the_pairs_without_a_judgment():
    runs, judged = read_runs(RESPONSE), read_judgments(REQUEST)
    pool = runs.pool
    graded = judged.on(pool).grades()
    unrated = {pool.label(i) for i in range(len(pool)) if graded[i] != graded[i]}
    details = json.loads(RESPONSE.read_text())["details"]
    assert unrated == {(query, doc["_id"]) for query, part in details.items() for doc in part["unrated_docs"]}


def test_several_responses_are_several_systems(put):
    one, two = (put(f"{name}.json", RESPONSE.read_text()) for name in ("bm25", "dense"))
    assert read_runs(one.parent).systems == ("bm25", "dense")
    with pytest.raises(DataError, match="is named 'bm25' too"):
        read_rank_eval_runs(one, put("more/bm25.json", RESPONSE.read_text()), two)


def test_failed_requests_are_reported(put):
    response = json.loads(RESPONSE.read_text()) | {"failures": {"third": {"error": {"type": "parse_exception"}}}}
    with pytest.warns(ProbevalWarning, match="1 requests failed and have no list: 'third'"):
        assert read_runs(put("a.json", json.dumps(response))).queries.tolist() == ["heist", "space"]


def test_judgments_are_a_request():
    judged = Judgments.rows(
        ["q1", "q1", "q1", "q1", "q2"],
        ["7", "7", "8", "9", "7"],
        [2, 0, -1, -2, 1],
        assessors=["a", "b", "a", "a", "a"],
    )
    search = {"size": 5, "query": {"bool": {"should": [{"match": {"title": "{{query_string}}"}}]}}}
    options = WriteOptions(queries={"q1": 'a "b"', "q3": "later"}, index="films", search=search)
    body = json.loads(rank_eval_request(judged, options))
    assert body["metric"] == {"dcg": {"k": 10, "normalize": True}}
    first, second, third = body["requests"]
    assert first["request"] == {"size": 5, "query": {"bool": {"should": [{"match": {"title": 'a "b"'}}]}}}
    assert first["ratings"] == [
        {"_index": "films", "_id": "7", "rating": 0},  # the (lower) median of 2 and 0
        {"_index": "films", "_id": "9", "rating": 0},  # junk; 8 was not judged
    ]
    assert second["request"]["query"]["bool"]["should"][0]["match"]["title"] == "q2"  # without a text, its id
    assert (third["id"], third["ratings"]) == ("q3", [])


def test_the_ratings_of_a_request_can_be_replaced():
    body = json.loads(REQUEST.read_text())
    judged = read_judgments(REQUEST)
    assert json.loads(rank_eval_request(judged, WriteOptions(index="films", search=body))) == body
    other = json.loads(
        rank_eval_request(Judgments.rows(["heist"], ["41"], [2]), WriteOptions(index="films", search=body))
    )
    assert [r["ratings"] for r in other["requests"]] == [[], [{"_index": "films", "_id": "41", "rating": 2}]]
    assert [r["request"] for r in other["requests"]] == [r["request"] for r in body["requests"]]


@pytest.mark.parametrize(
    ("options", "grade", "expected"),
    [
        ({}, 1, "rank_eval needs the index of the documents"),
        ({"index": "i"}, 0.5, "query 'q1', document 'd': rank_eval takes whole numbers, got 0.5"),
        ({"index": "i", "search": {"query": {"match_all": {}}}}, 1, "the search must have {{query_string}}"),
        ({"index": "i", "search": {"requests": [{"id": "q2"}]}}, 1, "no request for the judged query 'q1'"),
        ({"index": "i", "search": {"requests": [7]}}, 1, "must be an array of objects with an 'id'"),
    ],
)
def test_what_a_request_needs(options, grade, expected):
    with pytest.raises(DataError) as caught:
        rank_eval_request(Judgments.rows(["q1"], ["d"], [grade]), WriteOptions(**options))
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"requests": [{"id": "JFK query", "ratings": []}]}, "got 'JFK query'. Rename it: 'JFK_query'"),
        ({"requests": [{"id": "q", "ratings": []}]}, "nothing in it is rated"),
        (
            {"requests": [{"id": "q", "ratings": [{"_id": 7, "rating": 1}]}]},
            "a rating of 'q': '_id' must be a text, got 7",
        ),
        ({"requests": [{"id": "q", "ratings": [{"_id": "7"}]}]}, "the rating in row 1 must be a number, got None"),
        (
            {"requests": [{"id": "q", "ratings": [{"_index": i, "_id": "7", "rating": 1} for i in "ab"]}]},
            "the document '7' is in two indices, 'a' and 'b'",
        ),
        ({"requests": {}}, "the request: 'requests' must be an array, got {}"),
    ],
)
def test_bad_requests_are_refused_with_their_path(put, content, expected):
    path = put("a.json", json.dumps(content))
    with pytest.raises(DataError) as caught:
        read_judgments(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"error": {"type": "x"}, "status": 400, "details": {}}, "the engine answered with an error"),
        ({"details": {"q": {"hits": []}}}, "no request in it has hits"),
        ({"requests": []}, "this is a request. Runs are the responses of the engine"),
        (
            {"details": {"q": {"hits": [{"_id": "7"}]}}},
            "hit 1 in the details of 'q': 'hit' must be an object, got nothing",
        ),
        ({"details": {"a b": {"hits": [{"hit": {"_id": "7"}}]}}}, "must be text without white space, got 'a b'"),
    ],
)
def test_bad_responses_are_refused_with_their_path(put, content, expected):
    path = put("a.json", json.dumps(content))
    with pytest.raises(DataError) as caught:
        read_runs(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("read", "source"),
    [(read_rank_eval_ratings, REQUEST), (read_rank_eval_runs, RESPONSE)],
    ids=["request", "response"],
)
@pytest.mark.filterwarnings("ignore::probeval.errors.ProbevalWarning")
def test_a_spoiled_payload_is_read_or_refused_in_one_line(read, source, tmp_path):
    keys = {"requests", "id", "ratings", "_index", "_id", "rating", "details", "space", "hits", "hit", "failures"}
    said = refusals(read, source, tmp_path / "a.json", keys=keys)
    assert len(said) > 20
    assert all("\n" not in error and str(tmp_path) in error for error in said)
