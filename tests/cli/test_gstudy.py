"""``probeval gstudy`` and ``probeval dstudy`` as people call them."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from probeval.data import write_campaign
from probeval.relevance import synthetic_campaign

MATRIX = "topic,a,b,c,d\n" + "".join(
    f"{q},{','.join(f'{v:.4f}' for v in row)}\n"
    for q, row in enumerate(np.random.default_rng(3).random((12, 4)) / 2 + np.arange(4) / 8, start=1)
)


@pytest.fixture
def campaign(tmp_path):
    write_campaign(synthetic_campaign(seed=5, systems=5, queries=8, depth=6), tmp_path / "campaign")
    return tmp_path / "campaign"


def test_json_is_the_contract(probeval, put):
    said = probeval("gstudy", put("scores.csv", MATRIX), "--format", "json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert found["design"] == "s x q"
    assert set(found["components"]) == set(found["share"]) == {"system", "query", "residual"}
    assert sum(found["share"].values()) == pytest.approx(1)
    for name in ("erho2", "phi"):
        assert set(found[name]) == {"value", "lower", "upper"}
        assert isinstance(found["queries_for"][name], int)


def test_trec3_by_the_command_line(probeval, data):
    said = probeval("gstudy", data / "scores" / "adhoc3.csv.gz", "--drop", ".25", "--format", "json", "--quiet")
    found = json.loads(said.out)
    assert found["queries_for"] == {"erho2": 69, "phi": 259}
    assert found["queries_for_interval"] == {"erho2": [37, 114], "phi": [130, 487]}
    assert said.err == ""


def test_tables_say_what_intervals_are_for(probeval, put):
    said = probeval("gstudy", put("scores.csv", MATRIX))
    assert "residual" in said.out
    assert "queries for 0.95" in said.out
    assert "intervals (analytic) are for sampling" in said.err
    csv = probeval("gstudy", put("scores.csv", MATRIX), "--format", "csv", "--interval", "bootstrap")
    assert csv.out.startswith("component,variance,share,variance_lower")


def test_runs_judged_and_modelled(probeval, campaign, tmp_path):
    base = ("gstudy", campaign / "runs", "--qrels", campaign / "qrels.txt")
    said = probeval(*base, "--metric", "nDCG@5", "--metric", "P@5", "--format", "json")
    assert [r["metric"] for r in json.loads(said.out)["results"]] == ["nDCG@5", "P@5"]
    lines = (campaign / "qrels.txt").read_text().splitlines(keepends=True)
    few = tmp_path / "few.txt"
    few.write_text("".join(lines[::3]))
    args = ("--qrels", few, "--metric", "nDCG@5", "--draws", "60", "--format", "json")
    said = probeval("gstudy", campaign / "runs", *args, "--model", "uniform", "--plot", tmp_path / "shares.png")
    found = json.loads(said.out)
    assert (found["interval"], found["uncertainty"]) == ("draws", ["judging"])
    assert set(found["share_interval"]) == set(found["share"])
    assert (tmp_path / "shares-posterior.png").exists()
    blind = probeval("gstudy", campaign / "runs", *args)
    assert "are not judged: they count as 0." in blind.err


@pytest.mark.parametrize("verb", ["gstudy", "dstudy"])
def test_measures_keep_their_parameters(probeval, campaign, verb):
    given = (verb, campaign / "runs", "--qrels", campaign / "qrels.txt", "--metric", "RBP(p=0.9)@5")
    assert json.loads(probeval(*given, "--format", "json").out)["metric"] == "RBP(p=0.9)@5"
    assert probeval(*given).out.count(", RBP(p=0.9)@5") == 2
    several = probeval(*given, "--metric", "P@5", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(several.out)))
    assert {row["metric"] for row in rows} == {"RBP(p=0.9)@5", "P@5"}


def test_assessors_from_tables(probeval, put):
    rng = np.random.default_rng(1)
    rows = [
        f"{s},{q},{h},{0.1 * i + 0.05 * q + rng.random() / 4:.4f}\n"
        for i, s in enumerate("abcd") for q in range(6) for h in ("x", "y")
    ]  # fmt: skip
    path = put("scores.csv", "system,query,assessor,score\n" + "".join(rows))
    said = probeval(
        "dstudy", path, "--design", "s x (h:q)", "--queries", "6,50", "--assessors", "1,2", "--format", "json"
    )
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert [(p["query"], p["assessor"]) for p in found["points"]] == [(6, 1), (50, 1), (6, 2), (50, 2)]
    assert found["points"][2]["erho2"]["value"] > found["points"][0]["erho2"]["value"]
    wrong = probeval("gstudy", path)
    assert wrong.code == 1
    assert "Is 'assessor' another facet" in wrong.err


def test_dstudy_over_cutoffs_counts_judgments(probeval, campaign, tmp_path):
    said = probeval(
        "dstudy", campaign / "runs", "--qrels", campaign / "qrels.txt", "--metric", "P", "--cutoffs", "2,5",
        "--queries", "8", "--format", "json", "--plot", tmp_path / "curves.png",
    )  # fmt: skip
    assert said.code == 0, said.err
    two, five = json.loads(said.out)["results"]
    assert (two["metric"], five["metric"]) == ("P@2", "P@5")
    assert two["points"][0]["judgments"] < five["points"][0]["judgments"]
    assert (tmp_path / "curves.png").stat().st_size > 1000


def test_dstudy_targets_and_tables(probeval, put):
    said = probeval("dstudy", put("scores.csv", MATRIX), "--target", ".9", "--target", "tau=.9")
    assert said.code == 0, said.err
    assert said.out.count("erho2 ") >= 1
    assert "Queries needed" in said.out
    assert "tau " in said.out


def test_components_from_names(probeval, put):
    rows = "".join(f"{a}_{b},{','.join(f'{x:.3f}' for x in np.random.default_rng(i).random(4))}\n"
                   for i, (a, b) in enumerate((a, b) for a in ("porter", "none") for b in ("bm25", "lm")))  # fmt: skip
    said = probeval(
        "gstudy", put("scores.csv", "system,1,2,3,4\n" + rows), "--components", "stemmer_model", "--interval", "none",
        "--format", "json",
    )  # fmt: skip
    found = json.loads(said.out)
    assert found["design"] == "stemmer x model x q"
    assert "stemmer x model" in found["components"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--design", "s x z"), "needs queries"),
        (("--plot", "x.doc"), "the name of a picture must end in"),
        (("--interval", "posterior"), "does not go with"),
        (("--components", "a-b"), "does not fit"),
    ],
)
def test_gstudy_says_what_is_wrong(probeval, put, arguments, says):
    said = probeval("gstudy", put("scores.csv", MATRIX), *arguments)
    assert (said.code, said.out) == (1, "")
    assert says in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--queries", "a"), "--queries takes comma-separated positive integers"),
        (("--target", "high"), "--target takes a number"),
        (("--target", "teu=.9"), "Did you mean 'tau'"),
        (("--cutoffs", "5"), "needs a measure"),
        (("--assessors", "2"), "no assessor"),
    ],
)
def test_dstudy_says_what_is_wrong(probeval, put, arguments, says):
    said = probeval("dstudy", put("scores.csv", MATRIX), *arguments)
    assert (said.code, said.out) == (1, "")
    assert says in said.err


def test_runs_without_what_they_need(probeval, campaign):
    assert "--metric nDCG@10" in probeval("gstudy", campaign / "runs").err
    assert "--qrels FILE" in probeval("gstudy", campaign / "runs", "--metric", "P@5").err
