"""Files of other tools, written here as those tools write them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from probeval.data import (
    read_labels,
    read_mteb,
    read_opensearch,
    read_ragelo,
    read_runs,
    read_umbrela,
)
from probeval.errors import DataError, ProbevalWarning

QUERIES = {"q1": "star wars", "q2": "=sum", "q3": "dogs"}


def test_umbrela_qrels_are_labels(put):
    labels = read_umbrela(put("dl19_gpt-4o.txt", "q1 0 d1 3\nq1 0 d2 0\n"))
    assert labels.sources == ("umbrela",)
    assert labels.values.ravel().tolist() == [3, 0]


def test_umbrela_lines_by_text_or_by_id(put):
    row = {"model": "gpt-4o", "query": "dogs", "passage": "a text on dogs", "judgment": 3, "result_status": 1}
    rows = [row, {**row, "model": "llama", "judgment": 1}, {**row, "passage": "another", "result_status": 0}]
    lines = "\n".join(map(json.dumps, rows)) + "\n"
    by_text = read_umbrela(
        put("a.jsonl", lines), queries=QUERIES, docs={"d1": "a text on dogs", "d2": "another", "d3": "unused"}
    )
    where = [{"qid": "q3", "docid": "d1"}, {"qid": "q3", "docid": "d1"}, {"qid": "q3", "docid": "d2"}]
    by_id = read_umbrela(put("b.json", json.dumps([r | w for r, w in zip(rows, where, strict=True)])))
    for labels in (by_text, by_id):
        assert labels.sources == ("gpt-4o", "llama")
        assert [labels.pool.label(i) for i in range(2)] == [("q3", "d1"), ("q3", "d2")]
        np.testing.assert_array_equal(labels.values, [[3, 1], [np.nan, np.nan]])  # what was not parsed is missing


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('{"query": "dogs", "passage": "x"}\n', "record 1 has no 'judgment'"),
        ('{"query": "dogs", "passage": "x", "judgment": 1}\n', "no id in docs= for the text 'x'"),
        ('{"qid": "1", "docid": "2", "judgment": 1}\n' * 2, "two rows label one pair"),
        ('{"qid": "1", "docid": "2", "judgment": "high"}\n', "the label in row 1 must be a number, got 'high'"),
        ("[1, 2]", "expected JSON objects"),
    ],
)
def test_bad_umbrela_files_are_refused_with_their_path(put, content, expected):
    path = put("labels.jsonl", content)
    with pytest.raises(DataError) as caught:
        read_umbrela(path)
    assert str(caught.value).startswith(str(path))
    assert expected in str(caught.value)


def test_umbrela_lines_as_its_judges_write_them(put):
    # the keys of castorini/umbrela: model, query, passage, prompt, prediction, judgment, result_status
    row = {"model": "gpt-4o", "query": "dogs", "passage": "on dogs", "prompt": "..", "prediction": "##final score: 2"}
    path = put("judged.jsonl", json.dumps({**row, "judgment": 2, "result_status": 1}) + "\n")
    labels = read_labels(path, queries=QUERIES, docs={"007": "on dogs"})
    assert labels.to_frame().to_numpy().tolist() == [["q3", "007", 2.0]]


def ragelo(did, answer, **parts):
    return {"qid": "q1", "did": did, "agent": None, "raw_answer": "..", "answer": answer, "exception": None, **parts}


def test_ragelo_evaluations_as_csv(put):
    path = put("evaluations.csv", 'qid,did,raw_answer,answer\n1,007,"""O"": 1}",1\n1,7,"a, b",0\n2,7,oops,\n')
    labels = read_labels(path)
    assert labels.sources == ("ragelo",)
    assert [labels.pool.label(i) for i in range(3)] == [("1", "007"), ("1", "7"), ("2", "7")]
    np.testing.assert_array_equal(labels.values[:, 0], [1, 0, np.nan])
    older = put("older.csv", "query_id,did,raw_answer,answer\n1,007,..,2\n")
    assert read_labels(older).values.tolist() == [[2]]


def test_ragelo_evaluations_of_an_experiment(put):
    older = [
        {"retrieval": ragelo("a", {"overall": 2.0, "intent_match": 1.0})},
        {"retrieval": ragelo("b", '{"score": 1, "reasoning": "it fits"}')},
        {"answer": {"qid": "q1", "agent": "bm25", "raw_answer": "..", "answer": 2}},
        {"elo_tournament": {"agents": ["a"], "scores": {"a": 1000}}},
    ]
    path = put("older_results.jsonl", "".join(json.dumps(row) + "\n" for row in older))
    with pytest.warns(ProbevalWarning, match="2 records on no document are not labels"):
        assert read_labels(path).values.tolist() == [[2], [1]]
    newer = [
        ragelo("a", {"answer_format": "retrieval_relevance", "reasoning": "..", "score": 2}, evaluator_name="reasoner"),
        ragelo("b", None, exception="timeout", evaluator_name="reasoner"),
        ragelo("a", {"overall": 1}, evaluator_name="RDNAM"),
    ]
    labels = read_labels(put("newer_results.jsonl", "".join(json.dumps(row) + "\n" for row in newer)))
    assert labels.sources == ("reasoner", "RDNAM")
    np.testing.assert_array_equal(labels.values, [[2, 1], [np.nan, np.nan]])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('{"retrieval": {"did": "a", "answer": 1}}\n', "record 1 lacks a 'qid' or an 'answer'"),
        ('{"qid": "1", "did": "a"}\n', "record 1 lacks a 'qid' or an 'answer'"),
        (json.dumps(ragelo("a", "Very relevant: it fits")), "the label in row 1 must be a number, got 'Very relevant"),
        (json.dumps(ragelo("a", {"winner": "A"})), 'the label in row 1 must be a number, got \'{"winner": "A"}\''),
        (json.dumps(ragelo("a", "so " * 50)), f"got '{('so ' * 50)[:60]}..'"),
        ((json.dumps(ragelo("a", 1)) + "\n") * 2, "two rows label one pair"),
        ("qid,doc,answer\n1,a,1\n", "no record has a 'did'"),
    ],
)
def test_bad_ragelo_files_are_refused_with_their_path(put, content, expected):
    path = put("results.jsonl", content)
    with pytest.raises(DataError) as caught:
        read_ragelo(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert expected in str(caught.value)


RATED = [
    {"query": "star wars", "ratings": [{"docId": "007", "rating": "3.000"}, {"docId": 7, "rating": 0.5}]},
    {"query": "dogs", "ratings": [{"docId": "7", "rating": "1.0"}], "failures": [{"docId": "8"}]},
    {"query": "=sum", "ratings": []},
]


@pytest.mark.parametrize("name", [None, "LLM judgments"])
def test_judgment_lists_of_opensearch(put, name):
    imported = {"name": name, "type": "LLM_JUDGMENT", "judgmentRatings": RATED}
    answer = {"took": 1, "hits": {"hits": [{"_id": "x", "_source": imported}]}}
    for content in (RATED, imported, answer):
        labels = read_labels(put("ratings.json", json.dumps(content)), queries=QUERIES)
        assert labels.sources == ("opensearch" if name is None or content is RATED else name,)
        assert labels.to_frame().to_numpy().tolist() == [["q1", "007", 3], ["q1", "7", 0.5], ["q3", "7", 1]]


def test_several_judgment_lists_are_several_sources(put):
    lists = [{"name": name, "judgmentRatings": RATED[:1]} for name in ("one", "two")]
    content = json.dumps({"hits": {"hits": [{"_source": each} for each in lists]}})
    assert read_opensearch(put("ratings.json", content), queries=QUERIES).sources == ("one", "two")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([{"query": "dogs"}], "expected 'judgmentRatings', a list of"),
        ({"name": "x"}, "expected 'judgmentRatings'"),
        ([1], "expected 'judgmentRatings'"),
        ({"hits": {"hits": []}}, "nothing in it is rated"),
        (RATED[2:], "nothing in it is rated"),
        (RATED[:1], "is a text, not an id. Give queries={'q1': 'star wars'"),
        ([RATED[1], RATED[1]], "two rows label one pair"),
        ([{"query": "dogs", "ratings": [{"docId": "1", "rating": "inf"}]}], "must be a finite number, got 'inf'"),
    ],
)
def test_bad_judgment_lists_are_refused_with_their_path(put, content, expected):
    path = put("ratings.json", json.dumps(content))
    with pytest.raises(DataError) as caught:
        read_opensearch(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert expected in str(caught.value)


LISTS = {"q1": {"007": 0.9, "7": 0.5}, "q2": {"1e5": 1}}


def predictions(put, folder, model, *, task="SciFact", lists=LISTS, **others):
    meta = {} if model is None else {"mteb_model_meta": {"model_name": model, "revision": "main"}}
    return put(f"{folder}/{task}_predictions.json", json.dumps({**meta, "default": {"test": lists, **others}}))


def test_mteb_folders_in_both_layouts(put, tmp_path):
    predictions(put, "all/a", "org/small", dev=LISTS)
    predictions(put, "all/b", "org/large", dev=LISTS)
    predictions(put, "all/b", "org/large", task="NFCorpus")
    put("all/c/SciFact_predictions.json", json.dumps(LISTS))  # as older versions and BEIR write it
    runs = read_mteb(tmp_path / "all", task="SciFact", split="test")
    assert runs.systems == ("org__small", "org__large", "c")
    assert runs.to_frame().query("system == 'c'")["doc"].tolist() == ["007", "7", "1e5"]


def test_read_runs_takes_prediction_files(put, tmp_path):
    predictions(put, "a", "small")
    predictions(put, "b", None)
    runs = read_runs(str(tmp_path / "*" / "SciFact_predictions.json"))
    assert runs.systems == read_runs(tmp_path).systems == ("small", "b")
    assert runs.depth == 2


@pytest.mark.parametrize(
    ("others", "asked", "expected"),
    [
        ({"dev": LISTS}, {}, "expected one split or the name of one (split=): it has test, dev"),
        ({}, {"split": "tset"}, "expected one split"),
        ({}, {"subset": "en"}, "expected one subset or the name of one (subset=): it has default"),
        ({}, {"task": "Nothing"}, "no file Nothing_predictions.json here or below"),
    ],
)
def test_what_mteb_files_lack_is_said(put, tmp_path, others, asked, expected):
    predictions(put, "a", "small", **others)
    with pytest.raises(DataError) as caught:
        read_mteb(tmp_path, **asked)
    assert str(caught.value).startswith(str(tmp_path))
    assert expected in str(caught.value)


def test_several_tasks_or_two_of_one_model_are_refused(put, tmp_path):
    predictions(put, "a", "small")
    predictions(put, "b", "small")
    for read in (read_mteb, read_runs):
        with pytest.raises(DataError, match=r"the model 'small' is in .* already. Name the files of one task"):
            read(tmp_path)
    predictions(put, "b", "small", task="NFCorpus")
    with pytest.raises(DataError, match=r"several tasks \(NFCorpus, SciFact\)"):
        read_mteb(tmp_path)
