"""``probeval compare`` as people use it."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from scipy import stats

from probeval.data import Collection, LabelTable, write_campaign
from probeval.data.judgments import Judgments
from probeval.relevance import synthetic_campaign

SCORES = np.random.default_rng(5).uniform(0.1, 0.5, size=(3, 12)) + np.array([[0.0], [0.02], [0.3]])


@pytest.fixture
def table(put):
    rows = ["query,low,middle,high", *(",".join([f"q{i}", *map(str, row)]) for i, row in enumerate(SCORES.T))]
    return put("scores.csv", "\n".join(rows) + "\n")


@pytest.fixture
def campaign(tmp_path):
    made = synthetic_campaign(seed=3, systems=5, queries=12, depth=8)
    write_campaign(made, tmp_path / "made")
    return tmp_path / "made"


@pytest.fixture
def partly(tmp_path):
    made = synthetic_campaign(seed=3, systems=5, queries=12, depth=8)
    keep = np.random.default_rng(4).random(len(made.judgments.pair)) < 0.8
    some: Judgments = made.judgments.take(keep)
    write_campaign(Collection(made.name, made.runs, some), tmp_path / "partly")
    return tmp_path / "partly"


def test_a_table_of_scores(probeval, table):
    said = probeval("compare", table, "--format", "json")
    assert said.code == 0
    document = json.loads(said.out)
    assert (document["method"], document["correction"]) == ("t", "holm")
    assert document["systems"][0]["system"] == "high"
    pair = next(p for p in document["pairs"] if (p["a"], p["b"]) == ("high", "low"))
    assert pair["p"] == pytest.approx(stats.ttest_rel(SCORES[2], SCORES[0]).pvalue)
    assert pair["report"].startswith(f"{pair['difference']:.4f} +- ")
    assert pair["verdict"] == "better"
    assert document["friedman"]["p"] < 0.05


def test_people_read_value_half_width_and_p(probeval, table):
    said = probeval("compare", table)
    assert "+-" in said.out
    assert "(p < 0.001)" in said.out
    assert "Student's paired t; Holm" in said.err
    assert "pairs differ significantly (alpha 0.05)" in said.err
    assert "population of queries" in said.err
    assert probeval("compare", table, "--quiet").err == ""


def test_csv_has_numbers_in_full(probeval, table):
    rows = list(csv.DictReader(io.StringIO(probeval("compare", table, "--format", "csv", "--rope", ".05").out)))
    assert len(rows) == 3
    assert {"a", "b", "difference", "lower", "upper", "p", "adjusted", "d", "won", "p_tost", "verdict"} <= set(rows[0])


@pytest.mark.parametrize("method", ["t", "wilcoxon", "sign", "bootstrap", "permutation", "tukey", "randomised-tukey"])
def test_every_method(probeval, table, method):
    said = probeval("compare", table, "--method", method, "--samples", "500", "--format", "json")
    assert json.loads(said.out)["method"] == method
    assert said.out == probeval("compare", table, "--method", method, "--samples", "500", "--format", "json").out


def test_pairs_with_one_system(probeval, table):
    pairs = json.loads(probeval("compare", table, "--against", "low", "--format", "json").out)["pairs"]
    assert [{p["a"], p["b"]} for p in pairs] == [{"high", "low"}, {"middle", "low"}]
    said = probeval("compare", table, "--against", "lov")
    assert said.code == 1
    assert "Did you mean 'low'?" in said.err


def test_runs_and_judgments(probeval, campaign):
    said = probeval(
        "compare", campaign / "runs", "--qrels", campaign / "qrels.txt", "--metric", "nDCG@5", "--format", "json"
    )
    document = json.loads(said.out)
    assert document["metric"] == "nDCG@5"
    assert len(document["pairs"]) == 10
    assert "when_judged" not in document["pairs"][0]


@pytest.mark.parametrize("metric", ["CG@5", "nDCG@5"])
def test_judgments_that_miss_some(probeval, partly, metric):
    files = (partly / "runs", "--qrels", partly / "qrels.txt", "--metric", metric, "--format", "json")
    said = probeval("compare", *files, "--method", "t")
    assert "are not judged: they count as 0." in said.err
    assert {p["when_judged"] for p in json.loads(said.out)["pairs"]} <= {"yes", "no", "undecided"}
    assert probeval("compare", *files, "--model", "none").out == said.out
    both = probeval("compare", *files, "--method", "t", "--model", "uniform", "--draws", "50")
    assert all(0 <= p["p_significant"] <= 1 for p in json.loads(both.out)["pairs"])


@pytest.fixture
def two(tmp_path):
    """Two runs, twelve judgments, and labels that follow the grades."""
    made = synthetic_campaign(seed=3, systems=2, queries=8, depth=5, sds={"system": 1.0})
    grades = made.judgments.grades()
    noise = np.random.default_rng(5).integers(-1, 2, len(grades))
    values = np.clip(grades + noise, 0, 2)[:, None]
    labels = LabelTable(made.judgments.pool, ("my_llm",), values)
    some = made.judgments.take(np.arange(0, len(grades), len(grades) // 12))
    write_campaign(Collection(made.name, made.runs, some, labels=labels), tmp_path / "two")
    return tmp_path / "two"


def test_two_systems_with_few_judgments_and_labels(probeval, two):
    files = (two / "runs", "--qrels", two / "qrels.txt", "--labels", two / "labels.tsv", "--metric", "nDCG@5")
    document = json.loads(probeval("compare", *files, "--rope", ".02", "--format", "json").out)
    assert (document["method"], document["model"], document["rope"]) == ("model", "text-hierarchical", 0.02)
    (pair,) = document["pairs"]
    assert pair["p_better"] + pair["p_equal"] + pair["p_worse"] == pytest.approx(1)
    assert pair["p_better_new"] + pair["p_equal_new"] + pair["p_worse_new"] == pytest.approx(1)
    assert pair["upper_new"] - pair["lower_new"] > pair["upper"] - pair["lower"]
    (source,) = document["labels"]["sources"]
    assert (source["source"], source["known"], source["labelled"]) == ("my_llm", "no", 1.0)
    bare = json.loads(probeval("compare", *files[:3], *files[5:], "--rope", ".02", "--format", "json").out)
    assert "labels" not in bare
    assert bare["pairs"][0]["a"] in (pair["a"], pair["b"])
    sign = 1 if bare["pairs"][0]["a"] == pair["a"] else -1
    assert pair["difference_unlabelled"] == pytest.approx(sign * bare["pairs"][0]["difference"])


def test_two_systems_for_people(probeval, two):
    files = (two / "runs", "--qrels", two / "qrels.txt", "--labels", two / "labels.tsv", "--metric", "nDCG@5")
    said = probeval("compare", *files, "--level", ".999")
    assert "pairs judged; the model text-hierarchical predicts the others." in said.err
    assert "Labels: my_llm (new to the model) labels 100% of the pool; " in said.err
    assert "of these pairs are judged, too few to tell how it agrees with people; slope" in said.err
    assert "It is undecided which of the two is better on these queries" in said.err
    assert "On new queries of the same kind" in said.err
    assert "Without labels the difference would be" in said.err
    assert "probeval next gives them with --goal pair:system-0" in said.err
    for row in ("these", "new", "these, without labels", "Judge next"):
        assert any(line.startswith(row) for line in said.out.splitlines())
    sure = probeval("compare", *files, "--level", ".5")
    assert "is better than" in sure.err
    assert "Judge next" not in sure.out


def test_no_judgments_at_all(probeval, two, tmp_path):
    said = probeval("compare", two / "runs", "--metric", "nDCG@5", "--format", "csv", "--plot", tmp_path / "two.png")
    (row,) = csv.DictReader(io.StringIO(said.out))
    assert 0.5 <= float(row["p_better"]) < 0.95
    assert row["verdict"] == "undecided"
    assert (tmp_path / "two.png").exists()


def test_a_rope_of_users(probeval, campaign, table):
    files = (campaign / "runs", "--qrels", campaign / "qrels.txt", "--metric", "CG@5")
    words = "Half of the users notice a difference of 0.5 (CGl@5/broad; Urbano 2013, music similarity, 4,115 answers)."
    roped, plain = (probeval("compare", *files, *more) for more in (("--rope", "users=.5"), ()))
    assert roped.err.count(words) == plain.err.count(words) == 1
    assert "0 of 10 pairs differ by as much on average." in roped.err
    assert f"{words} 0 of 10 pairs" in plain.err
    document = json.loads(probeval("compare", *files, "--rope", "users=.5", "--format", "json").out)
    assert (document["rope"], document["noticeable"]) == (0.5, 0.5)
    assert {p["verdict"] for p in document["pairs"]} == {"equal"}


def test_users_are_borrowed_for_a_table_of_scores(probeval, table):
    borrowed = probeval("compare", table, "--rope", "users=.5", "--mapping", "CGl@5/fine", "--format", "json")
    assert json.loads(borrowed.out)["rope"] == json.loads(borrowed.out)["noticeable"] == 0.3
    refused = probeval("compare", table, "--rope", "users=.5")
    assert refused.code == 1
    assert "Borrow some with --mapping" in refused.err
    assert "noticeable" not in json.loads(probeval("compare", table, "--format", "json").out)


def test_pictures(probeval, table, tmp_path):
    said = probeval("compare", table, "--plot", tmp_path / "all.png")
    assert said.code == 0
    for name in ("all.png", "all-ranks.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    assert probeval("compare", table, "--plot", tmp_path / "all.txt").code == 1


@pytest.mark.bayes
@pytest.mark.slow
def test_bayes(probeval, table, tmp_path):
    said = probeval("compare", table, "--bayes", "--draws", 200, "--rope", ".01", "--plot", tmp_path / "b.png")
    assert said.code == 0
    assert "R-hat" in said.err
    assert "p_better" in said.out
    assert (tmp_path / "b.png").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--bayes", "--method", "t"), "leave out --method, --correction, --alternative, --target and --noninferior"),
        (("--method", "tukey", "--correction", "holm"), "takes no correction"),
        (("--model", "uniform"), "not to a table of scores"),
        (("--target-accept", ".9"), "for the sampler of --bayes"),
        (("--bayes", "--target-accept", "1"), "between 0 and 1, such as .95; got 1"),
    ],
)
def test_what_does_not_go_together(probeval, table, arguments, message):
    said = probeval("compare", table, *arguments)
    assert (said.code, said.out) == (1, "")
    assert message in said.err
    assert said.err.count("\n") == 1


def test_runs_need_a_measure_and_tests_need_judgments(probeval, campaign):
    for arguments, message in (
        ((), "Runs need --metric METRIC (nDCG@10); a single table"),
        (("--qrels", campaign / "qrels.txt"), "Runs need --metric METRIC (nDCG@10); a single table"),
        (("--metric", "AP", "--method", "t"), "Tests need judgments: give --qrels FILE."),
    ):
        said = probeval("compare", campaign / "runs", *arguments)
        assert said.code == 1
        assert message in said.err


def test_queries_without_judgments_are_left_out_aloud(probeval, campaign):
    lines = (campaign / "qrels.txt").read_text().splitlines(keepends=True)
    kept = sorted({line.split()[0] for line in lines})[:3]
    (campaign / "few.txt").write_text("".join(line for line in lines if line.split()[0] in kept))
    said = probeval(
        "compare", campaign / "runs", "--qrels", campaign / "few.txt", "--metric", "nDCG@5", "--format", "json"
    )
    assert "9 queries of the runs have no judgment and are left out." in said.err
    rows = json.loads(said.out)["systems"]
    assert all(0 <= row["lower"] <= row["mean"] <= row["upper"] <= 1 for row in rows)
    assert any(row["upper"] == 1 or row["lower"] == 0 for row in rows)  # three queries: t reaches far
    assert probeval("compare", campaign / "none.csv").code == 1
    assert probeval("compare", "--method", "z").code == 2


def test_one_system_alone(probeval, put):
    said = probeval("compare", put("one.csv", "query,only\nq1,0.5\nq2,0.7\n"), "--format", "json")
    assert said.code == 0
    assert json.loads(said.out)["pairs"] == []
    assert probeval("compare", put("one.csv", "query,only\nq1,0.5\nq2,0.7\n")).code == 0


def test_what_users_notice(probeval, tmp_path):
    import json

    import numpy as np

    from probeval.data import write_campaign
    from probeval.relevance import synthetic_campaign

    write_campaign(synthetic_campaign(seed=2, systems=3, queries=12, depth=5), tmp_path / "c")
    asked = ("compare", tmp_path / "c" / "runs", "--qrels", tmp_path / "c" / "qrels.txt", "--format", "json")
    mapped = json.loads(probeval(*asked, "--metric", "DCG@5").out)["pairs"]
    assert all(0 <= row["p_sat"] <= 1 and 0 <= row["noticed"] <= 1 for row in mapped)
    # Satisfaction rises with the score, here and there by a crooked cubic: the best pair agrees in sign.
    first = max(mapped, key=lambda row: abs(row["sat"]))
    assert np.sign(first["sat"]) == np.sign(first["p_sat"] - 0.5)
    for row in mapped:
        assert row["sat_lower"] < row["sat"] < row["sat_upper"]
        assert row["success_lower"] <= row["success"] <= row["success_upper"]
    shown = probeval(*asked[:-2], "--metric", "DCG@5").out
    assert f"{first['sat']:+.3f} [{first['sat_lower']:+.3f}, {first['sat_upper']:+.3f}]" in shown
    assert f"{first['success']:+.3f} [{first['success_lower']:+.3f}, {first['success_upper']:+.3f}]" in shown
    assert "sat" not in json.loads(probeval(*asked, "--metric", "nDCG@10").out)["pairs"][0]
    borrowed = json.loads(probeval(*asked, "--metric", "nDCG@10", "--mapping", "DCGl@5/broad").out)["pairs"]
    assert "sat" in borrowed[0]
    refused = probeval(*asked, "--metric", "DCG@5", "--mapping", "DCGl@5/brood")
    assert refused.code == 1
    assert "No published mapping" in refused.err


def test_one_new_query(probeval, put):
    rows = "\n".join(f"q{i},{i / 100},{1 - i / 200}" for i in range(101))
    table = put("scores.csv", f"query,low,high\n{rows}\n")
    said = json.loads(probeval("compare", table, "--new-query", "--level", ".9", "--format", "json").out)
    high, low = said["new_query"]
    assert [high["system"], low["system"]] == ["high", "low"]
    # The scores of low are spread evenly over [0, 1]: the quantiles are the limits.
    assert [low[k] for k in ("mean", "lower", "upper", "above", "below")] == pytest.approx([0.5, 0.05, 0.95, 0.1, 0.9])
    shown = probeval("compare", table, "--new-query", "--level", ".9")
    assert "One new query" in shown.out
    assert "90% of new queries reach the value of the column above" in shown.err
    assert "new_query" not in json.loads(probeval("compare", table, "--format", "json").out)
    wide = put("wide.csv", "query,a,b\nq1,3,1\nq2,5,2\nq3,4,9\n")  # no limits: the scores themselves
    assert json.loads(probeval("compare", wide, "--new-query", "--format", "json").out)["new_query"][0]["upper"] < 5


def test_baselines_and_targets(probeval, put):
    rows = "\n".join(f"q{i},{0.5 + i / 100},{0.45 + i / 101},{0.3 + i / 90}" for i in range(20))
    table = put("scores.csv", f"query,new,old,poor\n{rows}\n")
    found = json.loads(
        probeval("compare", table, "--against", "old", "--alternative", "greater", "--noninferior", ".05",
                 "--target", ".5", "--format", "json").out
    )  # fmt: skip
    assert (found["alternative"], found["target"], found["margin"]) == ("greater", 0.5, 0.05)
    assert [row["verdict_target"] for row in found["systems"]] == ["above", "above", "undecided"]
    pairs = {(row["a"], row["b"]): row for row in found["pairs"]}
    assert set(pairs) == {("new", "old"), ("old", "poor")}
    assert pairs["new", "old"]["verdict"] == "better"
    assert pairs["old", "poor"]["p"] > 0.99  # poor is not better than old
    assert [pairs[p]["noninferior"] for p in pairs] == ["yes", "undecided"]
    for arguments, message in (
        (("--noninferior", ".05"), "Non-inferiority is relative to a baseline"),
        (("--alternative", "less"), "against a baseline or a target"),
        (("--bayes", "--target", ".5"), "replaces tests"),
    ):
        said = probeval("compare", table, *arguments)
        assert said.code == 1
        assert message in said.err
