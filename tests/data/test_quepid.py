"""Quepid: books out, ratings in, by payloads as Quepid writes them."""

from __future__ import annotations

import json

import pytest

from probeval.data import Judgments, OpenPair, Scale, WriteOptions, read_judgments, read_quepid
from probeval.data.quepid import quepid_book, quepid_tasks
from probeval.errors import DataError
from tests.data.payload_files import PAYLOADS, refusals

QUERIES = {"q1": "star wars", "q2": "=sum", "q3": "dogs"}
TEXTS = {"q1": "space films", "q2": "=sum"}


def test_a_quepid_case(put):
    path = put("case.csv", 'query,docid,rating\nstar wars,11,3\nstar wars,007,0\n" =sum",11,1\ndogs\n')
    frame = read_quepid(path, queries=QUERIES).to_frame()
    assert frame[["query", "doc", "grade"]].to_numpy().tolist() == [["q1", "11", 3], ["q1", "007", 0], ["q2", "11", 1]]


def test_a_quepid_book_keeps_its_raters(put):
    table = put("book.csv", "query,docid,Ann,bob@x.org\nstar wars,11,3,2\nstar wars,7,,1\n")
    pairs = [
        {
            "query_text": "star wars",
            "doc_id": 11,
            "judgements": [{"rating": 3.0, "user_email": "Ann"}, {"rating": 2.0, "user_email": "bob@x.org"}],
        },
        {
            "query_text": "star wars",
            "doc_id": "7",
            "judgements": [
                {"rating": None, "unrateable": True, "user_email": "Ann"},
                {"rating": 1.0, "user_email": "bob@x.org"},
            ],
        },
    ]
    book = put("book.json", json.dumps({"name": "b", "query_doc_pairs": pairs}))
    first, second = (read_quepid(p, queries=QUERIES) for p in (table, book))
    assert first.assessors == ("Ann", "bob@x.org")
    assert first.to_frame().drop(columns="time").equals(second.to_frame().drop(columns="time"))
    assert first.grades("min").tolist() == [2, 1]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("query,docid,rating\nstar wars,1,2\n", "is a text, not an id. Give queries={'q1': 'star wars'"),
        ("query,docid,rating\ndogs\n", "nothing in it is rated"),
        ("query,doc,rating\na,b,1\n", "expected the columns query, docid and rating"),
        ("query,docid,rating\na,b,1,2\n", "2: expected 3 cells, got 4"),
        ("query,docid,rating\na,b,good\n", "the rating in row 1 must be a number, got 'good'"),
        ('{"queries": []}', "expected a book with 'query_doc_pairs'"),
        ("{oops", "not JSON"),
    ],
)
def test_bad_quepid_files_are_refused_with_their_path(put, content, expected):
    path = put("case.csv", content)
    with pytest.raises(DataError) as caught:
        read_quepid(path)
    assert str(caught.value).startswith(str(path))
    assert expected in str(caught.value)


@pytest.mark.parametrize(("texts", "how"), [({"q9": "cats"}, "no id"), ({"a": "dogs", "b": "dogs"}, "several ids")])
def test_a_text_must_have_one_id(put, texts, how):
    path = put("case.csv", "query,docid,rating\ndogs,1,2\n")
    with pytest.raises(DataError, match=f"{how} in queries= for the text 'dogs'"):
        read_quepid(path, queries=texts)


def test_exports_of_a_book_as_json_and_as_csv_hold_the_same_judgments():
    book, table = (read_judgments(PAYLOADS / f"quepid_book.{end}", queries=TEXTS).to_frame() for end in ("json", "csv"))
    assert book.equals(table)
    assert book[["query", "doc", "grade", "assessor"]].to_numpy().tolist() == [
        ["q1", "007", 3, "ann@example.org"],
        ["q1", "007", 2, "bob@example.org"],
        ["q1", "7", 1, "bob@example.org"],
        ["q2", "11", 2, "AI judge"],
    ]


def test_pairs_to_judge_are_a_book():
    pairs = [OpenPair("q1", "007", 1.5), OpenPair("q2", "11")]
    options = WriteOptions(queries=TEXTS, docs={"007": 'a "film"'}, scale=Scale.graded(3), name="Films")
    book = json.loads(quepid_tasks(pairs, options)["book.json"])
    assert (book["name"], book["scale"]) == ("Films", "0,1,2,3")
    first, second = book["query_doc_pairs"]
    assert json.loads(first.pop("document_fields")) == {"text": 'a "film"'}
    assert first == {"query_text": "space films", "doc_id": "007", "position": 1, "judgements": []}
    assert (second["position"], second["document_fields"]) == (2, "{}")


def test_a_book_of_judgments_comes_back():
    judged = read_quepid(PAYLOADS / "quepid_book.json", queries=TEXTS)
    again = json.loads(quepid_book(judged, WriteOptions(queries=TEXTS)))
    theirs = json.loads((PAYLOADS / "quepid_book.json").read_text())
    for mine, pair in zip(again["query_doc_pairs"], theirs["query_doc_pairs"], strict=True):
        rated = [j["rating"] for j in pair["judgements"] if j["rating"] is not None]
        assert (mine["query_text"], mine["doc_id"]) == (pair["query_text"], pair["doc_id"])
        assert [j["rating"] for j in mine["judgements"]] == rated
        assert all(mine.keys() <= pair.keys() for pair in theirs["query_doc_pairs"])


def test_junk_is_rated_zero_and_what_was_not_judged_is_not_rated():
    book = json.loads(quepid_book(Judgments.rows(["q", "q", "q"], ["a", "b", "c"], [-2, -1, 1]), WriteOptions()))
    assert [(p["doc_id"], p["judgements"][0]["rating"]) for p in book["query_doc_pairs"]] == [("a", 0), ("c", 1)]
    assert book["query_doc_pairs"][0]["judgements"][0]["user_email"] is None


def test_two_queries_of_one_text_cannot_go_to_quepid():
    with pytest.raises(DataError, match="the queries 'q1' and 'q9' have the same text, 'dogs', and Quepid tells"):
        quepid_tasks([OpenPair("q1", "a"), OpenPair("q9", "a")], WriteOptions(queries={"q1": "dogs", "q9": "dogs "}))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"query_doc_pairs": 7}, "the book: 'query_doc_pairs' must be an array, got 7"),
        ({"query_doc_pairs": [7]}, "query_doc_pair 1 must be an object, got 7"),
        ({"query_doc_pairs": [{"doc_id": "1"}]}, "query_doc_pair 1: 'query_text' must be a text, got nothing"),
        (
            {"query_doc_pairs": [{"query_text": "a", "doc_id": None, "judgements": [{"rating": 1}]}]},
            "the doc in row 1 must be a string, got None",
        ),
        (
            {"query_doc_pairs": [{"query_text": "a", "doc_id": "b", "judgements": [{"rating": "high"}]}]},
            "the rating in row 1 must be a number, got 'high'",
        ),
    ],
)
def test_bad_books_are_refused_with_their_path(put, content, expected):
    path = put("book.json", json.dumps(content))
    with pytest.raises(DataError) as caught:
        read_quepid(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert expected in str(caught.value)


def test_a_spoiled_book_is_read_or_refused_in_one_line(tmp_path):
    keys = {
        "query_doc_pairs",
        "query_text",
        "doc_id",
        "judgements",
        "rating",
        "unrateable",
        "judge_later",
        "user_email",
    }
    said = refusals(
        lambda path: read_quepid(path, queries=TEXTS), PAYLOADS / "quepid_book.json", tmp_path / "book.json", keys=keys
    )
    assert len(said) > 20
    assert all("\n" not in error and str(tmp_path) in error for error in said)
