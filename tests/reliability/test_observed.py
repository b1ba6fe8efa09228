"""Scores as studies take them: from tables of every form, judged or uncertain."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from probeval.data import as_judgments, as_runs
from probeval.errors import DataError, ReliabilityError, ScoreError
from probeval.metrics import measure
from probeval.relevance import FallbackModel, Uniform
from probeval.reliability import Design, Observed, observe, observe_assessors, read_scores
from probeval.scores import evaluate

SCORES = np.array([[0.1, 0.4, 0.3], [0.3, 0.5, 0.7]])


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n.1,.3\n.4,.5\n.3,.7\n",
        "topic,a,b\n1,.1,.3\n2,.4,.5\n3,.3,.7\n",
        "system,1,2,3\na,.1,.4,.3\nb,.3,.5,.7\n",
        "system,query,value\n" + "".join(f"{s},{q + 1},{SCORES[i, q]}\n" for i, s in enumerate("ab") for q in range(3)),
    ],
    ids=["no queries", "queries first", "systems first", "long"],
)
def test_tables_of_every_form(put, text):
    found = read_scores(put("scores.csv", text))
    assert found.labels["system"] == ("a", "b")
    assert found.labels["query"] == ("1", "2", "3")
    np.testing.assert_array_equal(found.values[0], SCORES)


def test_an_empty_cell_is_missing_and_text_is_refused(put):
    assert read_scores(put("gap.csv", "a,b\n.1,.3\n,.5\n")).missing == 1
    with pytest.raises(DataError, match=r"words.csv: the score of 'b' in row 2 must be a number, got 'x'"):
        read_scores(put("words.csv", "a,b\n.1,.3\n.2,x\n"))
    with pytest.raises(DataError, match="has no scores"):
        read_scores(put("none.csv", "topic\n1\n"))
    with pytest.raises(DataError, match="query '1' stands twice"):
        read_scores(put("twice.csv", "topic,a\n1,.2\n1,.3\n"))


def test_nested_assessors_are_numbered_within_queries(put):
    rows = [("a", "q1", "x", 0.1), ("b", "q1", "x", 0.2), ("a", "q1", "y", 0.3), ("b", "q1", "y", 0.4)]
    rows += [("a", "q2", "z", 0.5), ("b", "q2", "z", 0.6)]
    text = "system,query,assessor,score\n" + "".join(",".join(map(str, r)) + "\n" for r in rows)
    nested = read_scores(put("scores.csv", text), "s x (h:q)")
    assert nested.sizes == {"system": 2, "query": 2, "assessor": 2}
    assert nested.missing == 2
    assert nested.values[0, :, 1, 0].tolist() == [0.5, 0.6]
    crossed = read_scores(put("scores.csv", text), "s x q x h")
    assert crossed.sizes["assessor"] == 3
    with pytest.raises(DataError, match=r"several scores for system 'a', query 'q1'. Is 'assessor' another facet"):
        read_scores(put("scores.csv", text))
    with pytest.raises(DataError, match="no column 'stemmer'"):
        read_scores(put("scores.csv", text), "stemmer x q")


def test_worst_systems_dropped_and_ties_kept():
    scores = np.array([[1.0, 1], [2, 2], [2, 2], [3, 3], [4, 4], [5, 5], [6, 6], [7, 7], [8, 8], [9, 9]])
    observed = Observed.matrix(scores)
    assert len(observed.drop(0.2).labels["system"]) == 9  # the second and third are tied at the border
    assert len(observed.drop(0.3).labels["system"]) == 7
    with pytest.raises(ReliabilityError, match="below 1"):
        observed.drop(1.0)


def test_names_of_systems_split_into_parts():
    names = [
        f"{stop}_{stem}_{model}" for stop in ("x",) for stem in ("porter", "none") for model in ("bm25", "lm", "dfr")
    ]
    values = np.arange(12.0).reshape(6, 2)
    grid = Observed.matrix(values, names).split_systems("stop_stemmer_model")
    assert grid.design == Design.parse("stemmer x model x q")  # what never varies is no facet
    assert grid.values[0, 1, 2].tolist() == [10, 11]
    with pytest.raises(ReliabilityError, match="does not fit"):
        Observed.matrix(values, names).split_systems("a-b-c")
    with pytest.raises(ReliabilityError, match="does not fit"):
        Observed.matrix(values, names).split_systems("name")
    with pytest.raises(ReliabilityError, match="parts of systems"):
        grid.drop(0.25)


def test_judged_scores_frames_and_arrays():
    runs = as_runs({"a": {"q1": {"d1": 2, "d2": 1}, "q2": {"d1": 1}}, "b": {"q1": {"d2": 1}, "q2": {"d3": 1}}})
    judgments = as_judgments({"q1": {"d1": 0, "d2": 1}, "q2": {"d1": 1, "d3": 0}})
    measured = measure(runs, judgments, "P@1")
    np.testing.assert_array_equal(observe(measured).values[0], measured.values)
    frame = pd.DataFrame(SCORES.T, columns=["a", "b"])
    np.testing.assert_array_equal(observe(frame).values[0], SCORES)
    np.testing.assert_array_equal(observe(SCORES.T).values[0], SCORES)
    with pytest.raises(ReliabilityError, match="shape"):
        Observed.matrix(np.zeros(3))
    with pytest.raises(ReliabilityError, match="'a' stands twice"):
        Observed.matrix(SCORES, ["a", "a"])


def test_uncertain_scores_keep_their_draws_by_query(small):
    relevance = FallbackModel([Uniform()]).predict(
        type(small)("", small.runs).problem(depth=5, scale=small.judgments.scale())
    )
    scores = evaluate(small.runs.top(5), relevance, "nDCG@5", per_query=True, n=50)
    found = observe(scores)
    assert found.values.shape == (50, 6, 5)
    np.testing.assert_allclose(found.values.mean(axis=2), scores.joint.draws)
    np.testing.assert_allclose(found.values.mean(axis=0), scores.joint.query_mean)
    with pytest.raises(ReliabilityError, match="per_query=True"):
        observe(evaluate(small.runs.top(5), relevance, "nDCG@5", n=50))
    with pytest.raises(ScoreError, match="method='draws'"):
        evaluate(small.runs.top(5), relevance, "P@5", per_query=True)


def test_scores_by_each_assessor():
    runs = as_runs({"a": {"q1": {"d1": 2}, "q2": {"d1": 1}}, "b": {"q1": {"d2": 1}, "q2": {"d3": 1}}})
    rows = [("q1", "d1", 1, "x"), ("q1", "d2", 0, "x"), ("q1", "d1", 0, "y"), ("q1", "d2", 1, "y"),
            ("q2", "d1", 1, "z"), ("q2", "d3", 1, "z")]  # fmt: skip
    judgments = as_judgments(pd.DataFrame(rows, columns=["query", "doc", "grade", "assessor"]))
    found = observe_assessors(runs, judgments, "P@1", Design.parse("s x (h:q)"))
    assert found.sizes == {"system": 2, "query": 2, "assessor": 2}
    assert found.values[0, :, 0].tolist() == [[1, 0], [0, 1]]
    assert found.values[0, :, 1, 0].tolist() == [1, 1]
