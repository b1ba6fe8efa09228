"""``probeval aggregate``: what it prints and writes."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from probeval import aggregate, read_judgments


@pytest.fixture
def votes(put):
    """Votes of six workers on 60 pairs under the column names of a real collection, and two broken links."""
    rng = np.random.default_rng(3)
    relevance = rng.normal(size=60)
    lines = ["topicID\tworkerID\tdocID\tgold\tlabel"]
    for d, theta in enumerate(relevance):
        for w in range(6):
            label = int((rng.random() < expit(np.array([1, -1]) + 2 * theta)).sum())
            lines.append(f"{d % 3}\tw{w}\td{d:02}\t{int(theta > 0) + int(theta > 1) if d < 20 else -1}\t{label}")
    lines += ["0\tw0\tbroken\t-1\t-2", "0\tw1\tbroken\t-2\t-2"]
    return put("votes.txt", "\n".join(lines) + "\n")


def test_a_table_of_grades_and_remarks_on_stderr(probeval, votes):
    said = probeval("aggregate", votes)
    assert said.code == 0
    pairs, workers = (part.splitlines() for part in said.out.split("\n\n"))
    assert pairs[0] == "Pairs"
    assert pairs[1].split() == ["query", "doc", "grade", "p0", "p1", "p2", "votes", "gold"]
    assert len(pairs) == 63
    assert workers[0] == "Workers"
    assert {line.split()[0] for line in workers[2:]} == {f"w{i}" for i in range(6)}
    assert said.err.count("2 labels below 0 are no grades; they are not votes.") == 1
    assert "reference gold" in said.err


def test_csv_and_json_are_the_result_in_python(probeval, votes):
    expected = aggregate(votes)
    table = pd.read_csv(io.StringIO(probeval("aggregate", votes, "--format", "csv").out))
    np.testing.assert_allclose(table[["p0", "p1", "p2"]], expected.probability)
    document = json.loads(probeval("aggregate", votes, "--format", "json", "--quiet").out)
    assert [row["grade"] for row in document["pairs"]] == expected.to_frame()["grade"].tolist()
    assert len(document["workers"]) == 6
    assert document["no_grade"] == 2
    assert document["pairs"][-1]["gold"] is None


def test_files_of_grades_and_workers(probeval, votes, tmp_path):
    qrels, table, workers = tmp_path / "x.qrels", tmp_path / "x.csv", tmp_path / "w.csv"
    said = probeval("aggregate", votes, "-o", qrels, "--workers", workers)
    assert (said.code, said.out) == (0, "")
    assert len(read_judgments(qrels)) == 60  # without the pair of broken links
    assert probeval("aggregate", votes, "-o", table).code == 0
    assert len(pd.read_csv(table)) == 61
    assert {"slope", "slope_lower", "shift", "p_careless", "gold_agreement"} <= set(pd.read_csv(workers).columns)


@pytest.mark.parametrize("method", ["majority", "median", "dawid-skene"])
def test_other_methods(probeval, votes, method, tmp_path):
    said = probeval("aggregate", votes, "--method", method, "--workers", tmp_path / "w.csv")
    assert said.code == 0
    assert list(pd.read_csv(tmp_path / "w.csv").columns) == ["worker", "votes", "agreement", "gold_agreement"]


def test_gold_reference_and_scale(probeval, votes, put):
    gold = put("gold.qrels", "0 0 d00 2\n")
    said = probeval("aggregate", votes, "--gold", gold, "--format", "csv")
    assert pd.read_csv(io.StringIO(said.out))["gold"].notna().sum() == 1
    assert "reference consensus" in probeval("aggregate", votes, "--reference", "consensus").err
    assert "reference w2" in probeval("aggregate", votes, "--reference", "w2").err
    wrong = probeval("aggregate", votes, "--scale", "binary")
    assert wrong.code == 1
    assert "not on the scale binary" in wrong.err
    assert "Did you mean 'w1'" in probeval("aggregate", votes, "--reference", "w11").err


ANSWERS = "query,left,right,choice,left_number,right_number\nq1,d1,d2,left,8,3\nq1,d2,d3,right,3,3\nq1,d1,d3,left,9,2\n"


def test_answers_about_pairs_become_gains_that_measures_take(probeval, put, tmp_path):
    gains = tmp_path / "gains.qrels"
    said = probeval("aggregate", put("answers.csv", ANSWERS), "--method", "win-shares", "-o", gains)
    assert said.code == 0
    assert gains.read_text() == "q1 0 d1 1\nq1 0 d3 0.5\nq1 0 d2 0\n"
    run = put("run", "q1 Q0 d3 1 3 x\nq1 Q0 d1 2 2 x\nq1 Q0 d2 3 1 x\n")
    said = probeval("evaluate", run, "--qrels", gains, "--model", "none", "--metric", "CG@2", "--format", "json")
    found = json.loads(said.out)
    assert found["scale"] == "real"
    assert found["systems"][0]["mean"] == pytest.approx((0.5 + 1) / 2)


def test_methods_of_answers_on_the_command_line(probeval, put):
    answers = put("answers.csv", ANSWERS)
    both = ["--method", "win-shares", "--method", "ratios"]
    found = json.loads(probeval("aggregate", answers, *both, "--grades-by-shares", ".6,.4", "--format", "json").out)
    assert found["methods"] == ["win-shares", "ratios"]
    assert [(row["doc"], row["grade"]) for row in found["pairs"]] == [("d1", 1), ("d3", 0), ("d2", 0)]
    for arguments, why in [
        (["--method", "ratios", "--gold", answers], "--gold is for votes"),
        (["--method", "model", "--method", "ratios"], "model is for votes, and cannot be combined"),
        (["--method", "model", "--method", "median"], "model and median cannot be combined"),
        (["--grades-by-shares", ".5,.5"], "model gives grades already"),
        (["--method", "ratios", "--grades-by-shares", "a"], "--grades-by-shares takes comma-separated numbers"),
    ]:
        said = probeval("aggregate", answers, *arguments)
        assert (said.code, why in said.err) == (1, True)
