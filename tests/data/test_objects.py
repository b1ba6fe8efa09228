"""Runs and judgments that other packages hold in memory."""

from __future__ import annotations

import ir_measures
import numpy as np
import pandas as pd
import pytest

from probeval.data import as_judgments, as_runs
from probeval.errors import DataError

RUN = {"q1": {"007": 1.0, "NaN": 2.0}, "27003e": {"1e5": 0.5}}
ROWS = [["bm25", "27003e", "1e5", 1, 0.5], ["bm25", "q1", "NaN", 1, 2.0], ["bm25", "q1", "007", 2, 1.0]]
QRELS = {"q1": {"007": 1, "NaN": 0}, "27003e": {"1e5": -2}}
EVENTS = [["27003e", "1e5", -2], ["q1", "007", 1], ["q1", "NaN", 0]]


class Run:
    """What ranx's Run and Qrels look like from outside."""

    def __init__(self, content: dict, name: str | None = None) -> None:
        self.content, self.name = content, name

    def to_dict(self) -> dict:
        return self.content


def frame(content: dict, value: str) -> pd.DataFrame:
    rows = [(q, d, v) for q, docs in content.items() for d, v in docs.items()]
    return pd.DataFrame(rows, columns=["query_id", "doc_id", value])


def scored() -> list[ir_measures.ScoredDoc]:
    return [ir_measures.ScoredDoc(q, d, v) for q, docs in RUN.items() for d, v in docs.items()]


FORMS = {
    "dict": lambda: {"bm25": RUN},
    "frame": lambda: frame(RUN, "score").assign(run="bm25"),
    "frames": lambda: {"bm25": frame(RUN, "score")},
    "ir_measures": lambda: {"bm25": scored()},
    "ir_measures generator": lambda: {"bm25": iter(scored())},
    "tuples": lambda: {"bm25": [(q, d, v) for q, docs in RUN.items() for d, v in docs.items()]},
    "ranx": lambda: Run(RUN, "bm25"),
    "ranx list": lambda: [Run(RUN, "bm25")],
    "ranx by name": lambda: {"bm25": Run(RUN, "other")},
}


@pytest.mark.parametrize("form", FORMS)
def test_runs_in_memory(form):
    table = as_runs(FORMS[form]()).to_frame()
    assert table.sort_values(["query", "rank"]).values.tolist() == ROWS


JUDGED = {
    "dict": lambda: QRELS,
    "frame": lambda: frame(QRELS, "relevance"),
    "ir_measures": lambda: [ir_measures.Qrel(q, d, g) for q, docs in QRELS.items() for d, g in docs.items()],
    "ranx": lambda: Run(QRELS),
    "tuples": lambda: ((q, d, g) for q, docs in QRELS.items() for d, g in docs.items()),
}


@pytest.mark.parametrize("form", JUDGED)
def test_judgments_in_memory(form):
    table = as_judgments(JUDGED[form]()).to_frame()[["query", "doc", "grade"]]
    assert table.sort_values(["query", "doc"]).values.tolist() == EVENTS


def test_ranx_itself():
    ranx = pytest.importorskip("ranx", reason="ranx is not installed")
    runs = as_runs([ranx.Run(RUN, name="bm25"), ranx.Run({"q1": {"007": 3.0}}, name="dense")])
    assert runs.systems == ("bm25", "dense")
    assert runs.select(["bm25"]).to_frame().sort_values(["query", "rank"]).values.tolist() == ROWS
    judged = as_judgments(ranx.Qrels({"q1": {"007": 1, "NaN": 2}}))
    assert judged.grades().tolist() == [1, 2]


def test_ranx_runs_without_a_name_are_numbered():
    assert as_runs([Run(RUN), Run(RUN, "b")]).systems == ("run1", "b")


def test_ours_pass_through(small):
    assert as_runs(small.runs) is small.runs
    assert as_judgments(small.judgments) is small.judgments


def test_a_frame_may_have_ranks_or_order_alone():
    ranked = pd.DataFrame({"query": ["q", "q"], "doc": ["a", "b"], "rank": [2, 1]})
    assert as_runs({"s": ranked}).to_frame()["doc"].tolist() == ["b", "a"]
    assert as_runs({"s": ranked.drop(columns="rank")}).to_frame()["doc"].tolist() == ["a", "b"]
    assert np.isnan(as_runs({"s": ranked}).scores).all()


def test_numbers_of_any_library_are_scores():
    runs = as_runs({"s": {"q": {"a": np.float32(0.5), "b": np.int64(2), "c": 1, "d": "1.5"}}})
    assert runs.to_frame().set_index("doc")["score"].to_dict() == {"b": 2, "d": 1.5, "c": 1, "a": 0.5}


def test_whole_numbers_as_ids_are_their_digits():
    assert as_runs({"s": {1: {np.int64(7): 1.0}}}).pool.label(0) == ("1", "7")


BAD_RUNS = {
    "a run without its name": (RUN, "{system: {query: {doc: score}}}"),
    "scored documents without a name": (scored(), "a single run needs a name"),
    "a path": ("runs/bm25", "no such file or directory"),
    "an empty run": ({"a": {}, "b": RUN}, "run 'a' is empty"),
    "an empty frame": ({"a": frame({}, "score"), "b": frame(RUN, "score")}, "run 'a' is empty"),
    "two of one name": ([Run(RUN, "a"), Run(RUN, "a")], "two runs have one name"),
    "float ids": ({"a": {"q": {7.0: 1.0}}}, "the doc in row 1 must be a string, got 7.0"),
    "no id": ({"a": {"q": {None: 1.0}}}, "the doc in row 1 must be a string, got None"),
    "no score": ({"a": {"q": {"d": None}}}, "the score in row 1 must be a number, got None"),
    "nan": ({"a": {"q": {"d": float("nan")}}}, "the score in row 1 must be a number, got nan"),
    "white space": ({"a": {"q": {"d e": 1.0}}}, "the doc in row 1 must be text without white space"),
    "a document twice": ({"a": [("q", "d", 1), ("q", "d", 2)]}, "retrieves document 'd' twice"),
    "four cells": ({"a": [("q", "d", 1, 2)]}, "expected rows of query, doc and number"),
}


@pytest.mark.parametrize("case", BAD_RUNS)
def test_runs_that_cannot_be_are_refused(case):
    content, expected = BAD_RUNS[case]
    with pytest.raises(DataError) as caught:
        as_runs(content)
    assert expected in str(caught.value)


@pytest.mark.parametrize("content", ["qrels.txt", {"q": 1}, [("q", "d")], {"q": {"d": "high"}}])
def test_judgments_that_cannot_be_are_refused(content):
    with pytest.raises(DataError):
        as_judgments(content)
