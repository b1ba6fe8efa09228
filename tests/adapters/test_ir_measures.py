"""Expected scores through ir_measures: as a provider, and as measures."""

from __future__ import annotations

import sys

import ir_measures
import numpy as np
import pandas as pd
import pytest
from ir_measures import AP, RR, Judged, P, R, nDCG

import probeval
from probeval.adapters.ir_measures import ExpectedScores
from probeval.errors import MetricError, ProbevalError
from probeval.metrics import parse


def _run(small, system: str) -> pd.DataFrame:
    frame = small.runs.select([system]).to_frame()
    return frame.rename(columns={"query": "query_id", "doc": "doc_id"})[["query_id", "doc_id", "score"]]


@pytest.fixture(scope="module")
def qrels(small) -> pd.DataFrame:
    frame = small.judgments.to_frame().rename(columns={"query": "query_id", "doc": "doc_id", "grade": "relevance"})
    return frame[["query_id", "doc_id", "relevance"]].astype({"relevance": int})


def test_with_all_documents_judged_they_are_the_scores(small, qrels):
    """Judged documents that the run did not retrieve count in the ideal list and in recall, as in trec_eval."""
    measures = [nDCG @ 5, nDCG, AP, P(rel=2) @ 5, RR, R @ 5]
    run = _run(small, small.runs.systems[0])
    expected = ExpectedScores(model="uniform").calc(measures, qrels, run)
    theirs = ir_measures.calc(measures, qrels, run)
    assert expected.aggregated == pytest.approx(theirs.aggregated)
    by_query = {(m.query_id, m.measure): m.value for m in theirs.per_query}
    assert {(m.query_id, m.measure): m.value for m in expected.per_query} == pytest.approx(by_query)


def test_holes_are_filled(small, qrels):
    few, run = qrels.iloc[::3], _run(small, small.runs.systems[0])
    expected = ExpectedScores(model="uniform", scale="graded:2")
    found = {m.query_id: m.value for m in expected.iter_calc([P @ 5], few, run)}
    grade = few.set_index(["query_id", "doc_id"])["relevance"].to_dict()
    for query, rows in run.groupby("query_id"):
        docs = rows.sort_values("score", ascending=False)["doc_id"].head(5)
        chance = [float(grade[query, doc] >= 1) if (query, doc) in grade else 2 / 3 for doc in docs]
        assert found[query] == pytest.approx(np.mean(chance))


def test_every_form_of_run_and_qrels(small, qrels):
    few, run = qrels.iloc[::3], _run(small, small.runs.systems[0])
    expected = ExpectedScores(model="uniform", scale="graded:2")
    by_frame = expected.calc_aggregate([P @ 5], few, run)
    tuples = [ir_measures.ScoredDoc(*row) for row in run.itertuples(index=False)]
    judged = [ir_measures.Qrel(*row) for row in few.itertuples(index=False)]
    nested, grades = ({}, {})
    for query, doc, score in run.itertuples(index=False):
        nested.setdefault(query, {})[doc] = score
    for query, doc, grade in few.itertuples(index=False):
        grades.setdefault(query, {})[doc] = grade
    assert expected.calc_aggregate([P @ 5], iter(judged), iter(tuples)) == by_frame
    assert expected.calc_aggregate([P @ 5], grades, nested) == by_frame


def test_the_pool_informs_every_run_and_is_evaluated_once(small, qrels, monkeypatch):
    few = qrels.iloc[::4]
    whole = probeval.evaluate(small.runs, "nDCG@5", qrels=few)
    calls = []
    monkeypatch.setattr(
        "probeval.adapters.ir_measures.evaluate", lambda *a, **o: calls.append(a) or probeval.evaluate(*a, **o)
    )
    expected = ExpectedScores(pool=small.runs)
    for system in small.runs.systems:
        found = expected.calc_aggregate([nDCG @ 5, P @ 5], few, _run(small, system))
        assert found[nDCG @ 5] == pytest.approx(whole.scores[system].mean())
        assert found[P @ 5] == pytest.approx(whole.by("P@5").scores[system].mean())
    assert len(calls) == 1
    fewer = few.iloc[1:]
    again = expected.calc_aggregate([nDCG @ 5], fewer, _run(small, small.runs.systems[0]))[nDCG @ 5]
    now = probeval.evaluate(small.runs, "nDCG@5", qrels=fewer).scores[small.runs.systems[0]].mean()
    assert again == pytest.approx(now)
    assert len(calls) == 2


def test_a_run_outside_the_pool(small, qrels):
    first, *others = small.runs.systems
    few = qrels.iloc[::4]
    expected = ExpectedScores(pool=small.runs.select(others))
    found = expected.calc_aggregate([nDCG @ 5], few, _run(small, first))[nDCG @ 5]
    mine, pool = probeval.as_runs({first: _run(small, first)}), small.runs.select(others)
    assert found == pytest.approx(probeval.evaluate(mine, "nDCG@5", qrels=few, pool=pool).scores[first].mean())
    shallow = _run(small, others[0]).groupby("query_id").head(4)  # another list than that of the pool
    cut, whole = (expected.calc_aggregate([R @ 8], few, run)[R @ 8] for run in (shallow, _run(small, others[0])))
    assert cut < whole


def test_measures_work_in_every_function(small, qrels):
    few, run = qrels.iloc[::3], _run(small, small.runs.systems[0])
    expected = ExpectedScores(model="uniform", scale="graded:2")
    measure = expected.measure(nDCG) @ 5
    assert (str(measure), measure) == ("E(nDCG@5)", expected.measure(nDCG @ 5))
    assert str(ExpectedScores(name="LLM").measure(P(rel=2) @ 5)) == "LLM(P(rel=2)@5)"
    both = ir_measures.calc_aggregate([nDCG @ 5, measure], few, run)
    assert both[measure] == expected.calc_aggregate([nDCG @ 5], few, run)[nDCG @ 5]
    assert both[measure] != both[nDCG @ 5]
    assert measure.calc_aggregate(few, run) == both[measure]


def test_queries_are_those_of_the_qrels(small, qrels):
    run, queries = _run(small, small.runs.systems[0]), [str(q) for q in small.runs.queries]
    few = qrels[qrels["query_id"].isin(queries[:2])]
    more = pd.concat([few, pd.DataFrame({"query_id": ["new"], "doc_id": ["d1"], "relevance": [1]})])
    found = {m.query_id: m.value for m in ExpectedScores(model="uniform").iter_calc([P @ 5], more, run)}
    assert (found.keys(), found["new"]) == ({*queries[:2], "new"}, 0)
    none = qrels.iloc[:0]
    blind = {m.query_id for m in ExpectedScores(model="uniform", scale="binary").iter_calc([P @ 5], none, run)}
    assert blind == set(queries)
    assert list(ExpectedScores().iter_calc([P @ 5], few, run.iloc[:0])) == [
        ir_measures.Metric(query, P @ 5, 0.0) for query in sorted(queries[:2])
    ]


def test_measures_without_an_expected_value(small, qrels):
    expected = ExpectedScores(model="uniform")
    assert expected.supports(nDCG @ 5)
    assert not any(expected.supports(measure) for measure in (Judged @ 5, ir_measures.Compat, P(judged_only=True) @ 5))
    with pytest.raises(MetricError, match="Judged@5 is a figure of the judgments"):
        expected.calc_aggregate([Judged @ 5], qrels, _run(small, small.runs.systems[0]))
    with pytest.raises(MetricError, match=r"ir_measures' E\(P@5\) is not a measure of probeval"):
        probeval.evaluate(small.runs, expected.measure(P @ 5))
    assert expected.measure(P @ 5) != parse("P@5")


def test_without_ir_measures(monkeypatch):
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    monkeypatch.delitem(sys.modules, "probeval.adapters.ir_measures")
    with pytest.raises(ProbevalError, match=r"needs ir_measures: pip install 'probeval\[tools\]'"):
        __import__("probeval.adapters.ir_measures")
