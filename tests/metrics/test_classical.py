"""Classical evaluation: which queries count, what a lacking query scores, bounds, tables and plain data."""

from __future__ import annotations

import json

import numpy as np
import pytest

from probeval.data import Judgments, Scale, as_judgments, as_runs
from probeval.errors import DataError, MetricError
from probeval.metrics import AP, Lists, P, bounds, measure, nDCG

RUNS = {
    "a": {"q1": {"x": 3, "y": 2, "z": 1}, "q2": {"x": 2, "y": 1}},
    "b": {"q1": {"z": 3, "u": 2, "v": 1}, "q9": {"x": 1}},
}
JUDGED = {"q1": {"x": 1, "y": 0, "z": 2, "w": 2}, "q2": {"x": 0, "y": 1}, "q5": {"x": 1}}


@pytest.fixture
def runs():
    return as_runs(RUNS)


@pytest.fixture
def judged():
    return as_judgments(JUDGED)


def test_queries_with_an_answer_and_a_judgment_count(runs, judged):
    found = measure(runs, judged, "P@2")
    # Nobody answers q5; nobody judged q9.
    assert list(found.queries) == ["q1", "q2"]
    assert found.systems == ("a", "b")
    # b retrieves z (relevant) and u (unjudged) for q1, and lacks q2.
    np.testing.assert_allclose(found.values, [[0.5, 0.5], [0.5, 0]])


@pytest.mark.parametrize(
    "metric", ["P@2", "AP", "nDCG@3", "RR", "R@2", "Bpref", "infAP", "SetF", "ERR@3", "INST", "RBP"]
)
def test_a_query_that_a_run_lacks_scores_0(runs, judged, metric):
    assert measure(runs, judged, metric).values[1, 1] == 0


def test_the_unjudged_widen_the_bounds(runs, judged):
    found = measure(runs, judged, P @ 3)
    np.testing.assert_allclose(found.values, [[2 / 3, 1 / 3], [1 / 3, 0]])
    np.testing.assert_allclose(found.lower, found.values)
    np.testing.assert_allclose(found.upper, [[2 / 3, 1 / 3], [1, 0]])
    np.testing.assert_allclose(found.judged, [1, 1 / 3])
    assert not found.complete
    # q1: x y z u v retrieved, q2: x y; u and v unjudged.
    assert (found.pool, found.judged_pairs) == (7, 5)


def test_an_unjudged_document_that_others_found_lowers_what_a_system_may_have(runs, judged):
    # For a, which retrieved nothing unjudged, u and v may be relevant and missed.
    found = measure(runs, judged, AP)
    row = found.values[0]
    assert row[0] == pytest.approx((1 + 2 / 3) / 3)
    assert found.lower[0, 0] == pytest.approx((1 + 2 / 3) / 5)
    assert found.upper[0, 0] == pytest.approx(row[0])
    assert found.lower[0, 1] == found.upper[0, 1] == row[1]  # nothing unjudged in q2
    ndcg = measure(runs, judged, nDCG)
    assert ndcg.lower[0, 0] < ndcg.values[0, 0] == pytest.approx(ndcg.upper[0, 0])


def test_documents_past_the_cutoff_are_outside(judged):
    # v is unjudged at rank 3: with the cutoff 2 nobody looks at it unless the depth says so.
    runs = as_runs({"a": {"q1": {"x": 3, "z": 2, "v": 1}}})
    at_cutoff, deeper = (measure(runs, judged, nDCG @ 2, depth=d) for d in (None, 3))
    assert at_cutoff.complete
    assert (at_cutoff.pool, deeper.pool) == (2, 3)
    np.testing.assert_allclose(at_cutoff.values, deeper.values)
    assert deeper.lower[0, 0] == pytest.approx(
        deeper.values[0, 0]
    )  # two documents of the top grade fill the ideal list
    assert measure(runs, judged, AP @ 2, depth=3).lower[0, 0] == pytest.approx(2 / 4)
    assert measure(runs, judged, AP @ 2).lower[0, 0] == pytest.approx(2 / 3)


def test_a_measure_without_exact_bounds_has_none_where_something_is_open(runs, judged):
    found = measure(runs, judged, "Bpref")
    assert np.isnan(found.lower[:, 0]).all()
    np.testing.assert_array_equal(found.lower[:, 1], found.values[:, 1])
    assert not found.complete


def test_a_table_by_falling_mean_in_which_ties_share_a_rank():
    runs = as_runs({s: {"q": {doc: 1.0}} for s, doc in {"c": "n", "a": "r", "b": "r", "d": "n"}.items()})
    table = measure(runs, as_judgments({"q": {"r": 1, "n": 0}}), "P@1").to_frame().set_index("system")
    assert list(table.index) == ["a", "b", "c", "d"]
    assert list(table["rank"]) == [1, 1, 3, 3]
    assert list(table["mean"]) == [1, 1, 0, 0]
    assert list(table.columns) == ["rank", "mean", "judged", "lower", "upper"]


def test_the_frame_has_a_row_a_system_and_query(runs, judged):
    frame = measure(runs, judged, "P@3").to_frame(per_query=True)
    assert list(frame.columns) == ["system", "query", "value", "lower", "upper"]
    rows = [tuple(row) for row in frame.itertuples(index=False)]
    assert [row[:2] for row in rows] == [("a", "q1"), ("a", "q2"), ("b", "q1"), ("b", "q2")]
    assert rows[2][2:] == pytest.approx((1 / 3, 1 / 3, 1))


def test_plain_data_for_json(runs, judged):
    found = measure(runs, judged, "P@3")
    document = json.loads(json.dumps(found.to_dict()))
    assert document["metric"] == "P@3"
    assert (document["model"], document["interval"], document["target"]) == ("none", "bounds", "collection")
    assert (document["scale"], document["pool"], document["judged"]) == ("graded:2", 7, 5)
    assert document["confidence"] is None  # b may still draw level with a
    first, second = document["systems"]
    assert [first[k] for k in ("system", "rank", "mean", "sd", "lower", "upper")] == pytest.approx(
        ["a", 1, 0.5, 0, 0.5, 0.5]
    )
    assert (second["system"], second["rank"]) == ("b", 2)
    assert (second["lower"], second["upper"]) == pytest.approx((1 / 6, 1 / 2))
    # b can at best tie with a: never better, so a is best or shares the first place.
    assert [system["p_best"] for system in document["systems"]] == [None, 0]
    assert document["pairs"] == [{"a": "a", "b": "b", "mean": pytest.approx(1 / 3), "sd": 0.0, "p_better": None}]
    assert "queries" not in document
    queries = found.to_dict(per_query=True)["queries"]
    assert len(queries) == 4
    assert queries[0] == {"system": "a", "query": "q1", "mean": pytest.approx(2 / 3), "sd": 0.0}


def test_a_settled_comparison_has_a_probability():
    runs = as_runs({"good": {"q": {"r": 2, "n": 1}}, "bad": {"q": {"n": 2, "m": 1}}, "same": {"q": {"n": 2, "r": 1}}})
    document = measure(runs, as_judgments({"q": {"r": 1, "n": 0, "m": 0}}), "P@2").to_dict()
    assert document["confidence"] == 1
    better = {(pair["a"], pair["b"]): pair["p_better"] for pair in document["pairs"]}
    assert better == {("good", "bad"): 1, ("good", "same"): 0, ("bad", "same"): 0}
    # Two systems tie for the best: neither is better than all others.
    assert {s["system"]: s["p_best"] for s in document["systems"]} == {"good": 0, "same": 0, "bad": 0}
    alone = measure(runs.select(["good", "bad"]), as_judgments({"q": {"r": 1, "n": 0, "m": 0}}), "P@2").to_dict()
    assert {s["system"]: s["p_best"] for s in alone["systems"]} == {"good": 1, "bad": 0}


def test_the_rule_for_several_assessors_is_used(runs):
    judged = Judgments.rows(["q1"] * 3, ["x"] * 3, [0, 0, 2], assessors=["ann", "bob", "cy"])
    assert measure(runs, judged, "P@1").values[0, 0] == 0
    assert measure(runs, judged, "P@1", rule="max").values[0, 0] == 1


def test_the_scale_can_be_named(runs, judged):
    assert measure(runs, judged, "CG@1", scale=Scale.graded(4)).values[0, 0] == 1 / 4
    assert measure(runs, judged, "CG@1").values[0, 0] == 1 / 2  # inferred: 0, 1, 2
    assert measure(runs, judged, "CG@1", scale=Scale.graded(2, gain="exp")).values[0, 0] == pytest.approx(1 / 3)


def test_the_answer_is_what_the_parts_give(small):
    found = measure(small.runs, small.judgments, "nDCG@5")
    assert found.complete
    np.testing.assert_allclose(found.lower, found.values)
    assert found.pool == found.judged_pairs == len(small.runs.top(5).pool)
    with pytest.raises(ValueError, match="read-only"):
        found.values[0, 0] = 1


def test_refusals(runs, judged):
    with pytest.raises(MetricError, match="Did you mean 'nDCG@10'"):
        measure(runs, judged, "NDGC@10")
    with pytest.raises(MetricError, match="needs a cutoff"):
        measure(runs, judged, "P")
    with pytest.raises(DataError, match="no query in common"):
        measure(runs, as_judgments({"other": {"x": 1}}), "AP")


def test_bounds_take_the_number_outside_for_each_list():
    lists = Lists.of_grades([[1, 0], [1, 1]], Scale.binary())
    low, high = bounds(AP, lists, np.array([[0, 3]]))
    np.testing.assert_allclose(low, [[1, 2 / 5]])
    np.testing.assert_allclose(high, [[1, 1]])
