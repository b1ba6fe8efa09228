"""Experiments of PyTerrier with expected scores; data-frame transformers alone, so no Java."""

from __future__ import annotations

import sys

import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import AP, Judged, P, nDCG

import probeval
from probeval.adapters.ir_measures import ExpectedScores
from probeval.adapters.pyterrier import experiment
from probeval.data import as_runs
from probeval.errors import DataError, MetricError, ProbevalError

NAMES = ["BM25", "BM25 + RM3", "dense"]


@pytest.fixture(scope="module")
def topics(small) -> pd.DataFrame:
    queries = [str(query) for query in small.runs.queries]
    return pd.DataFrame({"qid": queries, "query": [f"about {query}" for query in queries]})


@pytest.fixture(scope="module")
def qrels(small) -> pd.DataFrame:
    frame = small.judgments.to_frame().iloc[::3].rename(columns={"query": "qid", "doc": "docno", "grade": "label"})
    return frame[["qid", "docno", "label"]].astype({"label": int}).reset_index(drop=True)


@pytest.fixture(scope="module")
def results(small) -> list[pd.DataFrame]:
    """Results as PyTerrier's retrievers give them: with an internal docid, and ranks from 0."""
    frames = [small.runs.select([system]).to_frame() for system in small.runs.systems[: len(NAMES)]]
    return [
        frame.assign(rank=frame["rank"] - 1, docid=range(len(frame)))
        .rename(columns={"query": "qid", "doc": "docno"})[["qid", "docid", "docno", "rank", "score"]]
        for frame in frames
    ]  # fmt: skip


@pytest.fixture(scope="module")
def systems(results) -> list[pt.Transformer]:
    return [pt.Transformer.from_df(frame) for frame in results]


def _runs(results) -> dict[str, pd.DataFrame]:
    return dict(zip(("BM25", "BM25_+_RM3", "dense"), results, strict=True))


def test_its_columns_and_ours(systems, topics, qrels, results):
    metrics = [nDCG @ 5, "map", Judged @ 5]
    done = experiment(systems, topics, qrels, metrics, names=NAMES, baseline=0)
    table = done.to_frame()
    theirs = pt.Experiment(systems, topics, qrels, metrics, names=NAMES, baseline=0)
    ours = [f"{m} {what}" for m in ("nDCG@5", "map") for what in ("expected", "lower", "upper", "P(better)")]
    added = [f"{m} {what}" for m in ("nDCG@5", "map", "Judged@5") for what in ("+", "-", "p-value")]
    assert list(table.columns) == ["name", "nDCG@5", "map", "Judged@5", *added, *ours]
    pd.testing.assert_frame_equal(table[theirs.columns], theirs)
    direct = probeval.evaluate(_runs(results), "nDCG@5", qrels=qrels)
    for i, system in enumerate(_runs(results)):
        row, score = table.iloc[i], direct.scores[system]
        assert row["nDCG@5 expected"] == pytest.approx(score.mean())
        assert (row["nDCG@5 lower"], row["nDCG@5 upper"]) == pytest.approx(score.interval(0.95))
        assert row["nDCG@5 lower"] < row["nDCG@5 expected"] < row["nDCG@5 upper"]
        if i:
            assert row["nDCG@5 P(better)"] == pytest.approx(direct.compare(system, "BM25").p_better)
    assert table["nDCG@5 P(better)"].isna().tolist() == [True, False, False]
    assert table["map expected"].tolist() == pytest.approx([direct.by(AP).scores[s].mean() for s in _runs(results)])


def test_more_can_be_asked_of_it(systems, topics, qrels):
    done = experiment(systems, topics, qrels, [nDCG @ 5, P @ 5], names=NAMES, baseline="dense")
    assert done.baseline == "dense"
    assert repr(done).startswith("<Experiment: nDCG@5, P@5 of 3 systems on 5 queries, ")
    assert len(done.next(4).pairs) == 4
    assert done.next(2, metric="P@5").state.judging.metric == probeval.metrics.parse("P@5")
    with pytest.raises(MetricError, match=r"no expected scores by 'AP': nDCG@5, P@5\."):
        done.next(metric="AP")
    document = done.to_dict()
    assert (document["baseline"], document["level"]) == ("dense", 0.95)
    assert document["systems"][2]["nDCG@5 P(better)"] is None
    assert document["systems"][0]["name"] == "BM25"
    head = done.summary().splitlines()
    assert head[:2] == [
        "nDCG@5",
        "name        nDCG@5  +  -  p-value  expected   lower   upper  P(better)",
    ]
    assert max(map(len, head[:5])) <= 100
    assert "pairs judged" in done.summary()
    assert done._repr_html_().count("<svg") == 6


def test_nothing_judged(systems, topics):
    done = experiment(dict(zip(NAMES, systems, strict=True)), topics, None, [P @ 5], baseline="BM25", scale="graded:2")
    assert list(done.to_frame().columns) == ["name", "P@5 expected", "P@5 lower", "P@5 upper", "P@5 P(better)"]


def test_labels_inform_it(systems, topics, qrels, small):
    truth = small.judgments.to_frame()[["query", "doc", "grade"]].rename(columns={"grade": "llm"})
    plain = experiment(systems, topics, qrels, [P @ 5], names=NAMES)
    told = experiment(systems, topics, qrels, [P @ 5], names=NAMES, labels=truth)
    width = [float((t["P@5 upper"] - t["P@5 lower"]).mean()) for t in (told.to_frame(), plain.to_frame())]
    assert width[0] < width[1]
    assert "llm" in told.evaluations["P@5"].labels.to_frame()["source"].tolist()


def test_measures_inside_an_experiment_of_pyterrier(systems, results, topics, qrels):
    expected = ExpectedScores(pool=_runs(results))
    table = pt.Experiment(systems, topics, qrels, [nDCG @ 5, expected.measure(nDCG @ 5)], names=NAMES, baseline=0)
    ours = experiment(systems, topics, qrels, [nDCG @ 5], names=NAMES).to_frame()
    assert table["E(nDCG@5)"].tolist() == pytest.approx(ours["nDCG@5 expected"].tolist())
    assert "E(nDCG@5) p-value" in table


def test_a_result_frame_is_read_by_qid_and_docno(results, topics):
    """A frame has the text of the query in 'query', and numbers of the index in 'docid'."""
    frame = results[0].merge(topics)
    assert as_runs({"a": frame}).to_frame().equals(as_runs({"a": results[0][["qid", "docno", "score"]]}).to_frame())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"metrics": [Judged @ 5]}, r"None of Judged@5 has an expected value\. Give one that has, such as nDCG@10\."),
        ({"metrics": ["mrt"]}, "mrt is not a measure of results: take it from pt.Experiment"),
        ({"metrics": ["nDCG@5"]}, r"A measure in PyTerrier is one of ir_measures, .* got 'nDCG@5'\."),
        ({"metrics": []}, "no measure was named"),
        ({"names": ["a", "b"]}, "3 systems need as many names, got 2"),
        ({"names": ["a b", "a_b", "c"]}, "two systems have one name: a b, a_b, c"),
        ({"baseline": 3}, r"the baseline must be a position up to 2 or one of BM25, BM25 \+ RM3, dense; got 3\."),
        ({"baseline": "bm"}, "got 'bm'"),
        ({"topics": pd.DataFrame({"q": ["1"]})}, "topics must have the columns qid, query, as in PyTerrier; got q"),
        ({"qrels": pd.DataFrame({"qid": ["1"]})}, "qrels must have the columns qid, docno, label"),
        ({"systems": []}, "no systems were named"),
    ],
)
def test_bad_input_is_one_line(systems, topics, qrels, change, says):
    given = {"systems": systems, "topics": topics, "qrels": qrels, "metrics": [nDCG @ 5], "names": NAMES} | change
    if not given["systems"]:
        given["names"] = []
    with pytest.raises((DataError, MetricError), match=says):
        experiment(**given)


def test_a_system_without_results(systems, results, topics, qrels):
    with pytest.raises(DataError, match="the system 'run2' has no results for these topics"):
        experiment([results[0], results[1].iloc[:0]], topics, qrels, [nDCG @ 5])


def test_without_pyterrier(monkeypatch, topics, qrels):
    monkeypatch.setitem(sys.modules, "pyterrier", None)
    with pytest.raises(ProbevalError, match=r"needs PyTerrier: pip install 'probeval\[tools\]'"):
        experiment([], topics, qrels, [nDCG @ 5])
