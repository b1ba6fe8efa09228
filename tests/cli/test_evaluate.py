"""Classical evaluation on the command line: `--model none`."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math

import pytest

from probeval.data import write_campaign

RUNS = {
    "good": "q1 Q0 d1 1 3 t\nq1 Q0 d2 2 2 t\nq1 Q0 d3 3 1 t\nq2 Q0 e1 1 2 t\nq2 Q0 e2 2 1 t\n",
    "poor": "q1 Q0 d3 1 3 t\nq1 Q0 d2 2 2 t\nq1 Q0 d1 3 1 t\n",
}
QRELS = "q1 0 d1 2\nq1 0 d2 0\nq1 0 d3 0\nq2 0 e1 1\n"
NONE = ("--model", "none")
SYSTEM = {"system", "rank", "mean", "sd", "lower", "upper", "p_best"}
RESULT = {"metric", "model", "target", "pool", "judged", "confidence", "systems", "pairs"}


@pytest.fixture
def files(put):
    for name, text in RUNS.items():
        put(f"runs/{name}", text)
    qrels = put("qrels.txt", QRELS)
    return qrels.parent / "runs", "--qrels", qrels, "--model", "none"


def test_json_of_one_metric(probeval, files):
    said = probeval("evaluate", *files, "--metric", "P@2", "--format", "json")
    assert said.code == 0
    result = json.loads(said.out)
    assert result.keys() >= RESULT
    assert "queries" not in result
    assert (result["metric"], result["model"], result["interval"]) == ("P@2", "none", "bounds")
    # Top 2 of both: d1 d2, e1 e2 and d3 d2: five pairs, four of them judged.
    assert (result["pool"], result["judged"]) == (5, 4)
    assert all(row.keys() >= SYSTEM for row in result["systems"])
    assert [(row["system"], row["rank"], row["sd"]) for row in result["systems"]] == [("good", 1, 0), ("poor", 2, 0)]
    # good: (1/2 + 1/2) / 2, with e2 at most (1/2 + 2/2) / 2. poor: no relevant document, and q2 is not answered.
    good, poor = result["systems"]
    assert (good["mean"], good["lower"], good["upper"], good["judged"]) == (0.5, 0.5, 0.75, 0.75)
    assert (poor["mean"], poor["lower"], poor["upper"], poor["judged"]) == (0, 0, 0, 1)
    assert (good["p_best"], poor["p_best"]) == (1, 0)
    assert result["pairs"] == [{"a": "good", "b": "poor", "mean": 0.5, "sd": 0, "p_better": 1}]


def test_json_of_several_metrics(probeval, files):
    said = probeval("evaluate", *files, "--metric", "P@2", "--metric", "nDCG@3", "--format", "json")
    results = json.loads(said.out)["results"]
    assert [r["metric"] for r in results] == ["P@2", "nDCG@3"]
    assert all(r.keys() >= RESULT for r in results)
    alone = probeval("evaluate", *files, "--metric", "nDCG@3", "--format", "json")
    assert json.loads(alone.out) == results[1]


def test_json_per_query(probeval, files):
    said = probeval("evaluate", *files, "--metric", "RR", "--per-query", "--format", "json")
    queries = json.loads(said.out)["queries"]
    assert {(r["system"], r["query"]): (r["mean"], r["sd"]) for r in queries} == {
        ("good", "q1"): (1, 0),
        ("good", "q2"): (1, 0),
        ("poor", "q1"): (1 / 3, 0),
        ("poor", "q2"): (0, 0),  # a query that a run lacks scores 0
    }


def test_csv(probeval, files):
    said = probeval("evaluate", *files, "--metric", "P@2", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(said.out)))
    assert [(r["system"], r["rank"], float(r["mean"]), float(r["upper"])) for r in rows] == [
        ("good", "1", 0.5, 0.75),
        ("poor", "2", 0, 0),
    ]


def test_csv_of_several_metrics_per_query(probeval, files):
    said = probeval("evaluate", *files, "--metric", "P@2", "--metric", "RR", "--per-query", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(said.out)))
    values = {(r["metric"], r["system"], r["query"]): float(r["value"]) for r in rows}
    assert len(rows) == len(values) == 8
    assert values["RR", "poor", "q1"] == pytest.approx(1 / 3, abs=1e-15)
    assert values["P@2", "good", "q1"] == 0.5


def test_table(probeval, files):
    said = probeval("evaluate", *files, "--metric", "P@2")
    title, header, *rows = said.out.splitlines()
    assert title == "P@2"
    assert header.split() == ["system", "rank", "mean", "judged", "lower", "upper"]
    assert [row.split() for row in rows] == [
        ["good", "1", "0.5000", "0.7500", "0.5000", "0.7500"],
        ["poor", "2", "0.0000", "1.0000", "0.0000", "0.0000"],
    ]


def test_talk_goes_to_stderr_and_quiet_silences_it(probeval, files):
    said = probeval("evaluate", *files, "--metric", "P@2")
    assert "2 systems, 2 queries, 4 judgments, scale graded:2 (inferred)." in said.err
    quiet = probeval("evaluate", *files, "--metric", "P@2", "--quiet")
    assert (quiet.code, quiet.err) == (0, "")
    assert quiet.out == said.out
    named = probeval("evaluate", *files, "--metric", "P@2", "--scale", "graded:2")
    assert "scale graded:2." in named.err


def test_no_progress_bar_in_a_pipe(probeval, files):
    said = probeval("evaluate", *files, "--metric", "P@2")
    assert "Reading" not in said.err + said.out
    assert "\r" not in said.err + said.out
    assert "\x1b" not in said.err + said.out


def test_queries_on_one_side_alone_are_said(probeval, put, files):
    qrels = put("more", QRELS.replace("q2", "q3") + "q4 0 x 1\n")
    said = probeval("evaluate", files[0], "--qrels", qrels, *NONE, "--metric", "RR", "--format", "json")
    assert "1 queries of the runs have no judgment and are left out." in said.err
    assert "2 judged queries are answered by no run and are left out." in said.err
    assert json.loads(said.out)["systems"][0]["mean"] == 1


def test_the_gain_changes_the_score(probeval, put):
    run = put("run", "q Q0 a 1 3 t\nq Q0 b 2 2 t\nq Q0 c 3 1 t\n")
    qrels = put("qrels", "q 0 a 1\nq 0 b 3\nq 0 c 0\n")
    scores = {}
    for gain in ("linear", "exp"):
        said = probeval(
            "evaluate", run, "--qrels", qrels, *NONE, "--metric", "nDCG", "--gains", gain, "--format", "json"
        )
        scores[gain] = json.loads(said.out)["systems"][0]["mean"]
    discount = 1 / math.log2(3)
    assert scores["linear"] == pytest.approx((1 + 3 * discount) / (3 + discount), abs=1e-12)
    assert scores["exp"] == pytest.approx((1 + 7 * discount) / (7 + discount), abs=1e-12)


@pytest.mark.parametrize(("order", "expected"), [("trec_eval", 1), ("score", 1 / 2), ("rank", 1 / 3), ("file", 1 / 4)])
def test_the_order_changes_the_score(probeval, put, order, expected):
    # c is relevant: first by document id among the tied, second by rank among them, third by rank, last in the file.
    run = put("run", "q Q0 x 1 1 t\nq Q0 b 2 2 t\nq Q0 a 4 2 t\nq Q0 c 3 2 t\n")
    qrels = put("qrels", "q 0 c 1\n")
    said = probeval("evaluate", run, "--qrels", qrels, *NONE, "--metric", "RR", "--order", order, "--format", "json")
    assert json.loads(said.out)["systems"][0]["mean"] == pytest.approx(expected)


def test_depth_cuts_the_lists(probeval, files):
    said = probeval("evaluate", *files, "--metric", "RR", "--depth", "2", "--format", "json")
    result = json.loads(said.out)
    assert {r["system"]: r["mean"] for r in result["systems"]} == {"good": 1, "poor": 0}
    assert result["pool"] == 5


def test_bounds_meet_when_all_is_judged(probeval, tmp_path, small):
    write_campaign(small, tmp_path)
    metrics = ["AP", "nDCG@5", "P@5", "RR", "RBP(p=0.8)@5", "ERR@5", "Rprec", "R@5"]
    asked = [part for metric in metrics for part in ("--metric", metric)]
    said = probeval("evaluate", tmp_path / "runs", "--qrels", tmp_path / "qrels.txt", *NONE, *asked, "--format", "json")
    results = json.loads(said.out)["results"]
    assert len(results) == len(metrics)
    for result in results:
        assert result["judged"] == result["pool"]
        for row in result["systems"]:
            assert row["lower"] == pytest.approx(row["mean"], abs=1e-12)
            assert row["upper"] == pytest.approx(row["mean"], abs=1e-12)


def test_a_campaign_folder_a_glob_and_gz_are_runs(probeval, put, files):
    expected = probeval("evaluate", *files, "--metric", "AP", "--format", "csv").out
    folder = files[0].parent
    assert probeval("evaluate", folder, *files[1:], "--metric", "AP", "--format", "csv").out == expected
    assert probeval("evaluate", folder / "runs" / "*", *files[1:], "--metric", "AP", "--format", "csv").out == expected
    squeezed = [put(f"gz/{name}.gz", gzip.compress(text.encode())) for name, text in RUNS.items()]
    assert probeval("evaluate", *squeezed, *files[1:], "--metric", "AP", "--format", "csv").out == expected


def test_tables_in(probeval, put, files):
    expected = probeval("evaluate", *files, "--metric", "AP", "--format", "csv").out
    rows = [(name, *line.split()) for name, text in RUNS.items() for line in text.splitlines()]
    runs = put("all.csv", "system,query,doc,score\n" + "".join(f"{s},{q},{d},{v}\n" for s, q, _, d, _, v, _ in rows))
    judged = [line.split() for line in QRELS.splitlines()]
    qrels = put("qrels.tsv", "query-id\tcorpus-id\tscore\n" + "".join(f"{q}\t{d}\t{g}\n" for q, _, d, g in judged))
    assert probeval("evaluate", runs, "--qrels", qrels, *NONE, "--metric", "AP", "--format", "csv").out == expected


def test_system_names_that_look_like_numbers_stay_text(probeval, put):
    for name in ("007", "1e5", "NaN"):
        put(f"runs/{name}", RUNS["good"])
    qrels = put("qrels", QRELS)
    said = probeval("evaluate", qrels.parent / "runs", "--qrels", qrels, *NONE, "--metric", "AP", "--format", "json")
    assert {r["system"] for r in json.loads(said.out)["systems"]} == {"007", "1e5", "NaN"}
    assert {r["rank"] for r in json.loads(said.out)["systems"]} == {1}  # ties share a rank


# README of the campaigns: systems judged at k = 10, the union of their top 10, and its unjudged pairs.
JUDGED = {
    "trec8-adhoc": (129, 108, 11_035, 31),
    "trec-dl2019-passage": (37, 37, 2_495, 1),
    "clef-ehealth2018-irtask1": (24, 22, 3_919, 4),
}


@pytest.mark.slow
@pytest.mark.parametrize("campaign", JUDGED)
def test_the_judged_systems_of_real_campaigns(probeval, data, campaign):
    of, kept, pool, unjudged = JUDGED[campaign]
    folder = data / campaign
    arguments = [folder / "runs", "--qrels", folder / "qrels.txt.gz", *NONE, "--metric", "P@10", "--format", "json"]
    said = probeval("evaluate", *arguments, "--systems", "judged")
    result = json.loads(said.out)
    assert f"{kept} of {of} systems have more than 0.99" in said.err
    assert len(result["systems"]) == kept
    assert (result["pool"], result["pool"] - result["judged"]) == (pool, unjudged)
    assert len(result["pairs"]) == kept * (kept - 1) // 2
    assert all(row["lower"] <= row["mean"] <= row["upper"] for row in result["systems"])


def test_version_and_help(probeval):
    import probeval as package

    assert probeval("--version").out == f"probeval {package.__version__}\n"
    said = probeval("evaluate", "--help")
    assert said.code == 0
    for option in (
        "--qrels",
        "--metric",
        "--model",
        "--scale",
        "--gains",
        "--depth",
        "--systems",
        "--per-query",
        "--format",
    ):
        assert option in said.out


FINE = "q1 0 d1 100\nq1 0 d2 51\nq1 0 d3 50\nq1 0 d4 25\n"
FINE_RUN = "".join(f"q1 Q0 d{i} {i} {9 - i} x\n" for i in range(1, 5))


@pytest.mark.parametrize(
    ("arguments", "metric", "scale", "mean"),
    [
        (["--scale", "fine:4"], "CG@4", "fine:4", (3 + 2 + 1 + 0) / 12),
        (["--scale", "fine:4", "--gains", "0,.25,.5,1"], "CG@4", "fine:4", (1 + 0.5 + 0.25 + 0) / 4),
        (["--scale", "binary:51"], "AP", "binary:51", 1.0),
        (["--scale", "fine:4"], "GAP(p=(0, 1, 0), norm='perfect')@4", "fine:4", 2 / 4),
        (["--scale", "fine:4"], "DCG(base=10, norm='none')@1", "fine:4", 3.0),
        (["--scale", "real"], "CG@4", "real", (100 + 51 + 50 + 25) / 400),
    ],
)
def test_scales_and_gains_of_every_kind(probeval, put, arguments, metric, scale, mean):
    given = [put("run", FINE_RUN), "--qrels", put("qrels", FINE), "--metric", metric, "--format", "json"]
    found = json.loads(probeval("evaluate", *given, *NONE, *arguments).out)
    assert found["scale"] == scale
    assert found["systems"][0]["mean"] == pytest.approx(mean)
    modelled = json.loads(probeval("evaluate", *given, *arguments, "--model", "uniform", "-q").out)
    assert modelled["systems"][0]["mean"] == pytest.approx(mean)  # everything is judged
