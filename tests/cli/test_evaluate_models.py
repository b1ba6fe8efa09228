"""`probeval evaluate` with a model: no judgments, some, all."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from probeval.data import Collection, write_campaign, write_qrels
from probeval.metrics import measure
from probeval.relevance import synthetic_campaign

INDEPENDENT = ("--model", "independent")  # the best that takes pairs as independent


@pytest.fixture
def probeval(probeval):
    """The command line; a --model after INDEPENDENT replaces it."""

    def run(*arguments):
        given = list(arguments)
        if given.count("--model") > 1:
            at = given.index("--model")
            del given[at : at + 2]
        return probeval(*given)

    return run


SYSTEM = {"system", "rank", "mean", "sd", "lower", "upper", "p_best"}
RESULT = {"metric", "model", "target", "pool", "judged", "confidence", "systems", "pairs"}


@pytest.fixture(scope="module")
def campaign() -> Collection:
    return synthetic_campaign(seed=7, systems=5, queries=6, depth=8, docs=20, groups=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, campaign):
    """A campaign folder, with a third of the judgments in few.txt beside."""
    path = tmp_path_factory.mktemp("campaign")
    write_campaign(campaign, path)
    order = np.random.default_rng(1).permutation(len(campaign.judgments))
    write_qrels(path / "few.txt", campaign.judgments.take(order[: len(order) // 3]))
    return path


def result(said) -> dict:
    assert said.code == 0, said.err
    return json.loads(said.out)


def test_json_without_judgments(probeval, folder):
    found = result(probeval("evaluate", folder / "runs", *INDEPENDENT, "--metric", "nDCG@5", "--format", "json"))
    assert found.keys() >= RESULT
    assert "queries" not in found
    assert (found["metric"], found["model"], found["target"], found["judged"]) == (
        "nDCG@5",
        "text-jud",
        "collection",
        0,
    )
    assert len(found["systems"]) == 5
    assert len(found["pairs"]) == 10
    for row in found["systems"]:
        assert row.keys() >= SYSTEM
        assert row["lower"] < row["mean"] < row["upper"]
        assert row["sd"] > 0
    assert [row["rank"] for row in found["systems"]] == [1, 2, 3, 4, 5]
    means = [row["mean"] for row in found["systems"]]
    assert means == sorted(means, reverse=True)
    assert sum(row["p_best"] for row in found["systems"]) == pytest.approx(1)
    assert 0.5 < found["confidence"] < 1
    by_name = {row["system"]: row["mean"] for row in found["systems"]}
    for pair in found["pairs"]:
        assert pair.keys() == {"a", "b", "mean", "sd", "p_better"}
        assert pair["mean"] == pytest.approx(by_name[pair["a"]] - by_name[pair["b"]], abs=1e-12)
        assert (pair["p_better"] > 0.5) == (pair["mean"] > 0) or abs(pair["p_better"] - 0.5) < 0.05
    sure = [max(pair["p_better"], 1 - pair["p_better"]) for pair in found["pairs"]]
    assert found["confidence"] == pytest.approx(np.mean(sure), abs=0.02)  # but for ties in the draws


def test_more_judgments_more_certainty_and_all_of_them_the_classical_scores(probeval, folder, campaign):
    arguments = [
        "evaluate",
        folder / "runs",
        *INDEPENDENT,
        "--metric",
        "nDCG@5",
        "--scale",
        "graded:2",
        "--format",
        "json",
    ]
    none = result(probeval(*arguments, "--model", "text-out"))
    few = result(probeval(*arguments, "--model", "text-out", "--qrels", folder / "few.txt"))
    every = result(probeval(*arguments, "--qrels", folder / "qrels.txt"))
    assert 0 == none["judged"] < few["judged"] < every["judged"] == every["pool"]
    sd = [np.mean([row["sd"] for row in found["systems"]]) for found in (none, few, every)]
    assert sd[0] > sd[1] > sd[2] == 0
    assert every["confidence"] == 1
    classical = measure(campaign.runs, campaign.judgments, "nDCG@5").to_frame().set_index("system")
    for row in every["systems"]:
        assert row["mean"] == pytest.approx(classical.loc[row["system"], "mean"], abs=1e-12)
        assert row["lower"] == row["mean"] == row["upper"]
        assert row["rank"] == classical.loc[row["system"], "rank"]
    assert {pair["p_better"] for pair in every["pairs"]} <= {0, 1}


def test_several_metrics_and_per_query(probeval, folder):
    both = ["--metric", "DCG@5", "--metric", "AP"]
    found = result(probeval("evaluate", folder / "runs", *INDEPENDENT, *both, "--per-query", "--format", "json"))
    assert [one["metric"] for one in found["results"]] == ["DCG@5", "AP"]
    for one in found["results"]:
        assert one.keys() >= RESULT
        assert len(one["queries"]) == 5 * 6
        assert all(row.keys() == {"system", "query", "mean", "sd"} for row in one["queries"])
        for row in one["systems"]:
            mine = [q["mean"] for q in one["queries"] if q["system"] == row["system"]]
            assert np.mean(mine) == pytest.approx(row["mean"], abs=1e-12)
    assert [one["method"] for one in found["results"]] == ["moments", "draws"]
    alone = result(
        probeval("evaluate", folder / "runs", *INDEPENDENT, "--metric", "AP", "--per-query", "--format", "json")
    )
    assert alone == found["results"][1]


def test_csv_and_table(probeval, folder):
    said = probeval("evaluate", folder / "runs", *INDEPENDENT, "--metric", "DCG@5", "--metric", "RR", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(said.out)))
    assert [r["metric"] for r in rows] == ["DCG@5"] * 5 + ["RR"] * 5
    assert set(rows[0]) == {*SYSTEM, "group", "metric"}
    by_query = probeval(
        "evaluate", folder / "runs", *INDEPENDENT, "--metric", "DCG@5", "--per-query", "--format", "csv"
    )
    assert len(list(csv.DictReader(io.StringIO(by_query.out)))) == 30
    title, header, *lines = probeval("evaluate", folder / "runs", *INDEPENDENT, "--metric", "DCG@5").out.splitlines()
    assert title == "DCG@5; independent pairs: not calibrated"
    assert header.split() == ["system", "rank", "mean", "sd", "lower", "upper", "p_best", "group"]
    assert [line.split()[0] for line in lines] == [r["system"] for r in rows[:5]]


def test_the_model_and_why_are_said(probeval, folder):
    said = probeval("evaluate", folder / "runs", *INDEPENDENT, "--metric", "DCG@5")
    assert "Model text-jud: it suits any text campaign; no judgments yet, so it uses the runs alone." in said.err
    assert "Scale binary (assumed, as nothing says otherwise)." in said.err
    assert "0 of " in said.err
    assert "95% intervals for these queries; mean confidence " in said.err
    few = probeval(
        "evaluate", folder / "runs", *INDEPENDENT, "--qrels", folder / "few.txt", "--metric", "DCG@5", "--level", "0.8"
    )
    assert "the runs and the judgments so far" in few.err
    assert "Scale graded:2 (inferred from the judgments)." in few.err
    assert "80% intervals" in few.err
    quiet = probeval("evaluate", folder / "runs", *INDEPENDENT, "--metric", "DCG@5", "--quiet")
    assert (quiet.err, quiet.out) == ("", said.out)


@pytest.mark.parametrize(
    ("model", "named"),
    [("uniform", "uniform"), ("empirical", "empirical"), ("independent", "text-jud"), ("text-out", "text-out")],
)
def test_models_by_name(probeval, folder, model, named):
    said = probeval("evaluate", folder / "runs", *INDEPENDENT, "--metric", "P@5", "--model", model, "--format", "json")
    found = result(said)
    assert found["model"] == named
    assert f"Model {named}: " in said.err
    if model == "uniform":
        assert {row["mean"] for row in found["systems"]} == {0.5}
        assert all(row["sd"] == pytest.approx(np.sqrt(0.25 / 5 / 6)) for row in found["systems"])
        assert [row["rank"] for row in found["systems"]] == [1] * 5
    if model == "empirical":
        assert len({round(row["mean"], 12) for row in found["systems"]}) == 1
    if model in ("independent", "text-out"):
        assert len({round(row["mean"], 6) for row in found["systems"]}) == 5


def test_a_model_by_path(probeval, folder, tmp_path):
    fitted = probeval("fit", folder, "-o", tmp_path / "mine", "--terms", "log(fSYS)", "--depth", "5")
    assert fitted.code == 0, fitted.err
    arguments = [
        "evaluate",
        folder / "runs",
        *INDEPENDENT,
        "--metric",
        "DCG@5",
        "--scale",
        "graded:2",
        "--model",
        tmp_path / "mine",
    ]
    said = probeval(*arguments, "--format", "json")
    assert result(said)["model"] == "mine"
    assert "was fitted on" not in said.err
    # Judgments that it was fitted on are recognised, whatever their file is called.
    copy = tmp_path / "copy.txt"
    copy.write_bytes((folder / "qrels.txt").read_bytes())
    said = probeval(*arguments, "--qrels", copy)
    assert f"mine was fitted on these judgments ({folder.name}): its confidence is too high here." in said.err
    assert "was fitted on" not in probeval(*arguments, "--qrels", folder / "few.txt").err


def test_the_population_of_queries(probeval, folder):
    arguments = ["evaluate", folder / "runs", *INDEPENDENT, "--metric", "DCG@5", "--format", "json"]
    here, there = result(probeval(*arguments)), result(probeval(*arguments, "--target", "population"))
    assert (here["target"], there["target"]) == ("collection", "population")
    for a, b in zip(here["systems"], there["systems"], strict=True):
        assert (a["system"], a["mean"]) == (b["system"], b["mean"])
        assert b["sd_judging"] == pytest.approx(a["sd"], abs=1e-12)
        assert b["sd"] == pytest.approx(np.hypot(b["sd_judging"], b["sd_sampling"]), abs=1e-12)
        assert b["sd"] > a["sd"]
        assert "sd_sampling" not in a
    assert there["confidence"] < here["confidence"]
    said = probeval("evaluate", folder / "runs", *INDEPENDENT, "--metric", "DCG@5", "--target", "population")
    assert "intervals for the population of queries" in said.err
    assert "sd_judging" in said.out


def test_methods_and_families(probeval, folder):
    arguments = ["evaluate", folder / "runs", *INDEPENDENT, "--metric", "nDCG@5", "--format", "json"]
    draws, taylor = result(probeval(*arguments)), result(probeval(*arguments, "--method", "taylor"))
    assert (draws["method"], taylor["method"]) == ("draws", "taylor")
    assert np.mean([r["mean"] for r in taylor["systems"]]) > np.mean([r["mean"] for r in draws["systems"]]) + 0.02
    t = result(probeval(*arguments, "--family", "t"))
    normal = result(probeval(*arguments, "--family", "normal"))
    widths = [[r["upper"] - r["lower"] for r in found["systems"]] for found in (t, normal)]
    assert np.all(np.array(widths[0]) > np.array(widths[1]))
    linear = ["evaluate", folder / "runs", *INDEPENDENT, "--metric", "DCG@5", "--format", "json"]
    sampled = result(probeval(*linear, "--method", "draws", "--draws", "400"))
    assert sampled["method"] == "draws"
    shares = [row["p_best"] * 400 for row in sampled["systems"]]
    np.testing.assert_allclose(np.array(shares) * 60, np.round(np.array(shares) * 60), atol=1e-6)  # of 400 draws


def test_gain_and_depth(probeval, folder):
    arguments = [
        "evaluate",
        folder / "runs",
        *INDEPENDENT,
        "--metric",
        "DCG",
        "--scale",
        "graded:2",
        "--format",
        "json",
    ]
    linear, exp = (result(probeval(*arguments, "--gains", gain)) for gain in ("linear", "exp"))
    assert linear["systems"][0]["mean"] != exp["systems"][0]["mean"]
    assert result(probeval(*arguments, "--depth", "3"))["pool"] < linear["pool"]


def test_pictures(probeval, folder, tmp_path):
    said = probeval("evaluate", folder / "runs", *INDEPENDENT, "--metric", "DCG@5", "--plot", tmp_path / "F.png")
    assert said.code == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["F-pairs.png", "F.png"]
    for picture in tmp_path.iterdir():
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert picture.stat().st_size > 5000
    assert f"Pictures: {tmp_path / 'F.png'}, {tmp_path / 'F-pairs.png'}." in said.err
    assert said.out == probeval("evaluate", folder / "runs", *INDEPENDENT, "--metric", "DCG@5").out


@pytest.mark.slow
def test_same_seed_same_bytes(probeval, folder, tmp_path):
    arguments = [
        "evaluate",
        folder / "runs",
        *INDEPENDENT,
        "--metric",
        "nDCG@5",
        "--metric",
        "DCG@5",
        "--format",
        "json",
    ]
    first = probeval(*arguments, "--seed", "3", "--plot", tmp_path / "a.png")
    assert probeval(*arguments, "--seed", "3", "--plot", tmp_path / "b.png").out == first.out
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert probeval(*arguments, "--seed", "4").out != first.out
    command = [sys.executable, "-c", "from probeval.cli import main; main()", *map(str, arguments), "--seed", "3"]
    environment = {**os.environ, "PYTHONHASHSEED": "5"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.stdout == first.out


def test_queries_on_one_side_alone_are_said(probeval, folder, put):
    qrels = put(
        "q", "".join(f"{line}\n" for line in (folder / "qrels.txt").read_text().splitlines() if line[:2] != "q1")
    )
    qrels.write_text(qrels.read_text() + "zz 0 d 1\n")
    said = probeval(
        "evaluate", folder / "runs", *INDEPENDENT, "--qrels", qrels, "--metric", "DCG@5", "--format", "json"
    )
    assert "1 queries of the runs have no judgment: their scores rest on the model alone." in said.err
    assert "1 judged queries are answered by no run and are left out." in said.err
    found = result(said)
    assert found["judged"] < found["pool"]


def expect_refusal(said, *parts: object) -> None:
    assert said.code == 1
    assert said.out == ""
    assert said.err.count("Error: ") == 1
    assert said.err.splitlines()[-1].startswith("Error: ")
    assert "Traceback" not in said.err
    for part in parts:
        assert str(part) in said.err


def test_errors_are_one_line(probeval, folder, tmp_path, put):
    arguments = ["evaluate", folder / "runs", *INDEPENDENT, "--metric", "nDCG@5", "--quiet"]
    expect_refusal(probeval(*arguments, "--model", "text-owt"), "No model 'text-owt'. Did you mean 'text-out'?")
    expect_refusal(probeval(*arguments, "--model", put("card.json", "{}")), "not a model card: it names no schema.")
    expect_refusal(probeval(*arguments, "--method", "moments"), "nDCG@5 is not a weighted sum of gains")
    expect_refusal(probeval(*arguments, "--method", "exact", "--scale", "graded:2"), "has no exact form")
    marginal = [
        "evaluate",
        folder / "runs",
        *INDEPENDENT,
        "--metric",
        "AP",
        "--method",
        "exact",
        "--scale",
        "graded:2",
        "--quiet",
    ]
    expect_refusal(probeval(*marginal), "need method='draws'")
    expect_refusal(probeval("evaluate", folder / "runs", *INDEPENDENT, "--metric", "P", "--quiet"), "P needs a cutoff")
    linear = ["evaluate", folder / "runs", *INDEPENDENT, "--metric", "DCG@5", "--quiet"]
    expect_refusal(probeval(*linear, "--method", "taylor"), "Taylor route is for ratios")
    expect_refusal(probeval(*linear, "--family", "empirical"), "A family is")
    drawn = ["--method", "draws", "--family", "empirical", "--target", "population"]
    expect_refusal(probeval(*linear, *drawn), "Use family='normal' or 't', or target='collection'")
    expect_refusal(probeval(*linear, "--qrels", put("other", "x1 0 d1 1\n")), "no query in common", "'x1'")
    one = "".join(f"q1 Q0 d{i} {i} {9 - i} t\n" for i in range(1, 6))
    expect_refusal(
        probeval("evaluate", put("one", one), *INDEPENDENT, "--metric", "P@5", "--target", "population", "--quiet"),
        "One query",
    )
    for name in ("picture", "picture.doc"):
        expect_refusal(
            probeval(*linear, "--plot", tmp_path / name), "the name of a picture must end in .png, .svg, .pdf"
        )
    expect_refusal(
        probeval(*linear, "--plot", tmp_path / "no" / "folder.png"), "folder.png: cannot be written: No such file"
    )
    expect_refusal(probeval(*linear, "--model", "none"), "give --qrels FILE")
    classical = [*linear, "--model", "none", "--qrels", folder / "qrels.txt"]
    expect_refusal(probeval(*classical, "--plot", tmp_path / "x.png"), "--plot is for probabilities")


@pytest.mark.parametrize("arguments", [["--level", "1"], ["--target", "all"], ["--method", "guess"], ["--draws", "1"]])
def test_wrong_usage_is_exit_2(probeval, folder, arguments):
    said = probeval("evaluate", folder / "runs", *INDEPENDENT, "--metric", "AP", *arguments)
    assert said.code == 2
    assert said.out == ""
    assert arguments[0] in said.err


# ---- which model fits ----


def chosen(name, collection, scale=None):
    from probeval.data import Scale
    from probeval.relevance import choose_model

    choice = choose_model(name, collection, scale=None if scale is None else Scale.parse(scale))
    return choice.name, str(choice.scale), choice.scale_from


def test_without_a_name_the_best_model_is_taken_and_said(probeval, folder, campaign):
    from probeval.relevance import choose_model

    best = choose_model(None, replace(campaign, judgments=None))
    said = probeval("evaluate", folder / "runs", "--metric", "DCG@5", "--format", "json")
    assert result(said)["model"] == best.name
    assert f"Model {best.name}: {best.why} Scale {best.scale}" in said.err


def test_the_best_model_for_the_data(campaign):
    from probeval.data import Metadata
    from probeval.data.judgments import Judgments

    blind = replace(campaign, judgments=None)
    docs = campaign.runs.pool.docs
    music = Metadata(docs, {"artist": docs, "genre": docs})
    assert chosen("independent", blind) == ("text-jud", "binary", "assumed, as nothing says otherwise")
    assert chosen("independent", blind, "graded:3") == ("text-jud", "graded:3", "named")
    assert chosen("independent", campaign) == ("text-jud", "graded:2", "inferred from the judgments")
    assert chosen("independent", replace(blind, metadata=music)) == ("mirex-jud-fine", "fine", "that of mirex-jud-fine")
    assert chosen("independent", replace(blind, metadata=music), "fine") == ("mirex-jud-fine", "fine", "named")
    assert chosen("independent", replace(campaign, metadata=music))[:2] == ("mirex-out-broad", "graded:2")
    fine = Judgments.coded(campaign.runs.pool, np.arange(3), np.array([10.0, 95.0, 0.0]))
    assert chosen("independent", replace(blind, metadata=music, judgments=fine))[:2] == ("mirex-jud-fine", "fine")
    assert chosen("independent", replace(blind, metadata=music), "binary")[0] == "text-jud"
    assert chosen("uniform", blind) == ("uniform", "binary", "assumed, as nothing says otherwise")
    assert chosen("mirex-out-fine", blind) == ("mirex-out-fine", "fine", "that of mirex-out-fine")


def test_music_on_the_command_line(probeval, data):
    folder = data / "mirex2011"
    if not folder.is_dir():
        pytest.skip("mirex2011 is not in the data folder")
    arguments = [
        "evaluate",
        folder / "runs",
        *INDEPENDENT,
        "--metadata",
        folder / "metadata.tsv.gz",
        "--metric",
        "CG@5",
    ]
    found = result(probeval(*arguments, "--model", "mirex-out-fine", "--format", "json"))
    assert (found["pool"], found["judged"]) == (6322, 0)
    assert found["confidence"] == pytest.approx(0.93, abs=0.01)
    said = probeval(*arguments, "--qrels", folder / "qrels.txt.gz")
    assert "Model mirex-jud-fine: there are artists and genres, and grades are fine." in said.err
    assert "mirex-jud-fine was fitted on these judgments (mirex2011)" in said.err
    assert "6,322 of 6,322 pairs judged" in said.err
    assert "mean confidence 1.000" in said.err


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_every_format_says_what_is_judged(probeval, folder, form):
    said = probeval("evaluate", folder / "runs", *INDEPENDENT, "--metric", "P@5", "--metric", "RR", "--format", form)
    assert said.code == 0, said.err
    for metric in ("P@5", "RR"):
        assert f"{metric}: 0 of " in said.err
    assert said.err.count("mean confidence") == 2
    assert "pairs judged" not in said.out


def test_one_system_has_nothing_to_compare_with(probeval, folder):
    said = probeval("evaluate", folder / "runs" / "system-01.gz", *INDEPENDENT, "--metric", "P@5")
    assert "one system, and nothing to compare it with; independent pairs: not calibrated." in said.err
    assert "confidence" not in said.err


def test_systems_that_cannot_differ_are_named(probeval, put):
    lists = {"a": "d1 d2 d3", "b": "d2 d1 d3", "c": "d1 d3 d4", "d": "d1 d2 d4"}
    for name, docs in lists.items():
        put(f"runs/{name}", "".join(f"q Q0 {doc} {i} {9 - i} t\n" for i, doc in enumerate(docs.split())))
    runs = put("runs/e", "q Q0 d9 1 1 t\n").parent
    alike = "{}: identical lists for {}, so their scores are equal."
    said = probeval("evaluate", runs, "--model", "uniform", "--metric", "P@2", "--metric", "DCG@2")
    assert alike.format("a, b, d", "P@2") in said.err  # the order is nothing to precision
    assert alike.format("a, d", "DCG@2") in said.err
    assert said.err.count("identical lists") == 2


def test_a_rope_is_said_and_shown(probeval, folder):
    ask = ("evaluate", folder / "runs", "--metric", "DCG@5", "--scale", "graded:2", "--model", "uniform")
    said = probeval(*ask, "--rope", "users=.5", "--format", "json")
    document = result(said)
    assert "Half of the users notice a difference of 0.4 (DCGl@5/broad" in said.err
    assert document["rope"] == 0.4
    assert all(row["p_near_best"] >= row["p_best"] for row in document["systems"])
    assert all(pair["p_equal"] > 0.99 for pair in document["pairs"])
    expect_refusal(probeval(*ask[:-1], "none", "--rope", 0.1), "--rope is for probabilities")
    expect_refusal(probeval(*ask, "--metric", "P@5", "--rope", "users=.5"), "a difference of one measure")
