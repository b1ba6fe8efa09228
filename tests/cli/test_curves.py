"""``probeval curves``: tables, pictures and refusals."""

from __future__ import annotations

import io
import json

import pandas as pd
import pytest

RUN = "q1 Q0 d1 1 4 x\nq1 Q0 d2 2 3 x\nq1 Q0 d3 3 2 x\nq1 Q0 d9 4 1 x\n"
QRELS = "q1 0 d1 2\nq1 0 d2 0\nq1 0 d3 1\nq1 0 d4 0\n"


@pytest.fixture
def given(put):
    return [put("bm25", RUN), "--qrels", put("qrels", QRELS)]


def test_the_three_tables(probeval, given):
    precision = pd.read_csv(io.StringIO(probeval("curves", *given, "--format", "csv").out))
    assert precision["precision"].round(4).tolist() == [1] * 6 + [0.6667] * 5
    roc = pd.read_csv(io.StringIO(probeval("curves", *given, "--show", "roc", "--format", "csv").out))
    assert roc["true_positive_rate"].tolist() == [0, 0.5, 0.5, 1, 1]
    assert roc["false_positive_rate"].tolist() == [0, 0, 0.5, 0.5, 0.5]
    counts = pd.read_csv(io.StringIO(probeval("curves", *given, "--show", "counts", "--rel", 2, "--format", "csv").out))
    assert counts.iloc[0].to_dict() == {
        "system": "bm25", "true_positives": 1, "false_positives": 2, "false_negatives": 0, "true_negatives": 1,
        "unjudged": 1, "precision": pytest.approx(1 / 3), "recall": 1, "specificity": pytest.approx(1 / 3),
        "accuracy": 0.5, "area": 1,
    }  # fmt: skip


def test_people_see_one_row_per_system(probeval, given):
    said = probeval("curves", *given)
    assert said.out.splitlines()[0] == "Precision at levels of recall"
    assert said.out.splitlines()[2].split() == ["bm25", *["1.0000"] * 6, *["0.6667"] * 5]
    assert said.err == "Curves: 1 system on 1 query, relevant from grade 1 on, scale graded:2.\n"


def test_a_picture_and_json(probeval, given, tmp_path):
    said = probeval("curves", *given, "--show", "roc", "--plot", tmp_path / "roc.svg", "--format", "json", "-q")
    assert (tmp_path / "roc.svg").read_text().startswith("<?xml")
    assert json.loads(said.out)["systems"][0]["area"] == pytest.approx(0.75)


def test_refusals(probeval, given, tmp_path):
    for arguments, why in [
        (given[:1], "Curves need judgments"),
        ([*given, "--show", "counts", "--plot", tmp_path / "x.png"], "Counts have no curve to plot"),
        ([*given, "--plot", tmp_path / "x.doc"], "the name of a picture must end in"),
    ]:
        said = probeval("curves", *arguments)
        assert (said.code, why in said.err) == (1, True)
