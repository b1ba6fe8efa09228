"""``convert`` and ``hand_out`` in Python: what they take, and the measures of ``rank_eval``."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import probeval
from probeval.api.convert import rank_eval_metric
from probeval.data import Scale
from probeval.errors import DataError, MetricError

JUDGED = probeval.Judgments.rows(["q1", "q1"], ["007", "7"], [2, 0], assessors=["ann", "bob"])
TEXTS = {"q1": "solar panels"}


def test_texts_come_from_a_file_a_frame_or_a_mapping(put):
    frame = pd.DataFrame({"query": ["q1"], "text": ["solar panels"]})
    given = [TEXTS, frame, put("texts.tsv", "query\ttext\nq1\tsolar panels\n")]
    books = [probeval.convert(JUDGED, "quepid", queries=texts) for texts in given]
    assert books[0] == books[1] == books[2]
    assert probeval.convert(put("book.json", books[0]), queries=TEXTS) == probeval.convert(JUDGED)
    with pytest.raises(
        DataError, match="texts are a path, a data frame, or a mapping from query ids to texts; got int"
    ):
        probeval.convert(JUDGED, "quepid", queries=7)


def test_a_search_comes_from_a_file_or_a_mapping(put):
    search = {"query": {"match": {"title": "{{query_string}}"}}}
    given = [search, put("search.json", json.dumps(search))]
    one, two = (probeval.convert(JUDGED, "rank-eval", queries=TEXTS, index="i", search=each) for each in given)
    assert one == two
    assert json.loads(one)["requests"][0]["request"]["query"]["match"]["title"] == "solar panels"
    with pytest.raises(DataError, match="a search is a JSON object, got list"):
        probeval.convert(JUDGED, "rank-eval", index="i", search=put("search.json", "[]"))


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("nDCG@10", {"dcg": {"k": 10, "normalize": True}}),
        ('DCG(norm="none")@3', {"dcg": {"k": 3, "normalize": False}}),
        ("P(rel=2)@5", {"precision": {"k": 5, "relevant_rating_threshold": 2}}),
        ("R@20", {"recall": {"k": 20, "relevant_rating_threshold": 1}}),
        ("RR@10", {"mean_reciprocal_rank": {"k": 10, "relevant_rating_threshold": 1}}),
        ("ERR@10", {"expected_reciprocal_rank": {"maximum_relevance": 3, "k": 10}}),
    ],
)
def test_measures_that_rank_eval_has(metric, expected):
    assert rank_eval_metric(metric, Scale.graded(3)) == expected


@pytest.mark.parametrize("metric", ['nDCG(gain="linear")@10', 'nDCG(discount="jk")@10', "DCG@10", "AP@10", "RBP@10"])
def test_measures_that_are_others_there_are_refused(metric):
    with pytest.raises(MetricError, match="rank_eval has no "):
        rank_eval_metric(metric, Scale.graded(3))


def test_pairs_are_handed_out(small, tmp_path):
    found = probeval.next_pairs(small.runs, "DCG@5", 3, model="uniform", scale="graded:2")
    files = found.hand_out("label-studio", tmp_path / "batch", queries={str(small.runs.queries[0]): "words"})
    assert [path.name for path in files] == ["tasks.json", "config.xml"]
    tasks = json.loads(files[0].read_text())
    assert [(task["data"]["query"], task["data"]["doc"]) for task in tasks] == found.pairs
    nearest = [task["predictions"][0]["result"][0]["value"]["choices"] for task in tasks]
    assert nearest == [[f"{grade:.0f}"] for grade in found.to_frame()["grade"]]
    with pytest.raises(DataError, match="No tool 'quepit': quepid, label-studio"):
        found.hand_out("quepit", tmp_path)
    none = probeval.next_pairs(small.runs, "DCG@5", 0, model="uniform", scale="graded:2")
    with pytest.raises(DataError, match="there is no pair to judge, and nothing to write for quepid"):
        none.hand_out("quepid", tmp_path)


def test_means_and_cut_grades_are_written():
    judged = probeval.Judgments.rows(["q1"] * 3, ["a", "a", "b"], [2, 1, 0], assessors=["ann", "bob", "ann"])
    assert probeval.convert(judged, rule="mean") == "q1 0 a 1.5\nq1 0 b 0\n"
    fine = probeval.Judgments.rows(["q1"] * 4, list("abcd"), [25, 26, 100, -2])
    assert probeval.convert(fine, scale="fine:4") == "q1 0 a 0\nq1 0 b 1\nq1 0 c 3\nq1 0 d -2\n"
    assert probeval.convert(fine, scale="binary:26") == "q1 0 a 0\nq1 0 b 1\nq1 0 c 1\nq1 0 d -2\n"


def test_a_dcg_of_another_base_is_refused():
    with pytest.raises(MetricError, match="rank_eval has no"):
        rank_eval_metric("nDCG(base=10)@5", Scale.graded(3))
