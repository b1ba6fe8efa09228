"""``probeval agree``: every kind of source as a newcomer names it."""

from __future__ import annotations

import io
import json
import re

import pandas as pd
import pytest

QRELS = "q1 0 d1 1\nq1 0 d2 0\nq1 0 d3 0\nq2 0 d1 1\nq2 0 d2 0\n"
OTHER = "q1 0 d1 2\nq1 0 d2 0\nq1 0 d3 3\nq2 0 d1 1\nq2 0 d2 0\n"
LABELS = "query\tdoc\tann\tbob\nq1\td1\t1\t0\nq1\td2\t0\t1\nq2\td1\t1\t1\nq2\td2\t0\t0\n"
SCORES = "query,a,b,c\nq1,.5,.3,.1\nq2,.6,.4,.3\nq3,.4,.4,.2\n"


def value(said, figure, of="systems"):
    table = pd.read_csv(io.StringIO(said.out)).set_index(["of", "figure"])
    return table.loc[(of, figure), "value"]


def test_two_qrels_and_their_queries(probeval, put):
    said = probeval("agree", put("a", QRELS), put("b", OTHER), "--format", "csv")
    assert value(said, "confirmed", "documents") == 0.75  # 1 of 2 pairs of q1, the pair of q2
    assert said.err.startswith("5 documents on 2 queries have a grade by a and by b.")
    rows = pd.read_csv(
        io.StringIO(probeval("agree", put("a", QRELS), put("b", OTHER), "--per-query", "--format", "csv").out)
    )
    assert rows["confirmed"].tolist() == [0.5, 1]


def test_runs_by_two_qrels_with_pictures(probeval, put, tmp_path):
    runs = [put(f"runs/{name}", text) for name, text in (
        ("s", "q1 Q0 d1 1 3 s\nq1 Q0 d2 2 2 s\nq2 Q0 d1 1 1 s\n"), ("t", "q1 Q0 d3 1 3 t\nq2 Q0 d2 1 2 t\n"),
        ("u", "q1 Q0 d2 1 3 t\nq2 Q0 d2 1 2 t\n"),
    )]  # fmt: skip
    picture = tmp_path / "p.png"
    said = probeval(
        "agree", put("a", QRELS), put("b", OTHER), "--runs", runs[0].parent, "--metric", "RR", "--plot", picture,
        "--format", "json",
    )  # fmt: skip
    systems = json.loads(said.out)["systems"]
    assert (systems["systems"], systems["queries"], len(systems["pairs"])) == (3, 2, 3)
    assert picture.is_file()
    assert (tmp_path / "p-p.png").is_file()


def test_columns_tables_and_rankings(probeval, put):
    labels = put("labels.tsv", LABELS)
    said = probeval("agree", f"{labels}:ann", f"{labels}:bob", "--format", "csv")
    assert value(said, "tau", "documents") == 0
    assert value(said, "kappa", "documents") == 0
    scores = put("scores.csv", SCORES)
    ranking = put("best", "b\na\nc\n")
    said = probeval("agree", scores, ranking, "--format", "csv")
    assert value(said, "tau") == pytest.approx(1 / 3)
    table = put("mean.csv", "system,rank,mean\na,1,.5\nb,2,.4\nc,3,.2\n")
    assert value(probeval("agree", scores, table, "--format", "csv"), "tau") == 1
    assert value(probeval("agree", scores, scores, "--format", "csv"), "tp") > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["labels.tsv", "labels.tsv:ann"], "Name one, as .*labels.tsv:ann."),
        (["labels.tsv:eve", "labels.tsv:ann"], "no column of labels 'eve'"),
        (["a", "scores.csv"], "Two sources of one kind"),
        (["a", "b", "--metric", "AP"], "give both --runs and --metric"),
        (["scores.csv", "scores.csv", "--runs", "a", "--metric", "AP"], "Leave them out"),
        (["scores.csv", "scores.csv", "--per-query"], "--per-query is for judgments"),
        (["a", "b", "--plot", "x.png"], "Add --runs and --metric"),
        (["a", "nothing"], "nothing"),
    ],
)
def test_what_cannot_be_compared(probeval, put, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    for name, text in (("a", QRELS), ("b", OTHER), ("labels.tsv", LABELS), ("scores.csv", SCORES)):
        put(name, text)
    said = probeval("agree", *arguments)
    assert said.code == 1
    assert re.search(message, said.err)
    assert said.err.count("\n") == 1
