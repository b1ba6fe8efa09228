from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from probeval.cli.demo import WIDTH

# The demo with a short forecast in its report: of less worth, sooner.
SOON = {"PATHS": 1, "AHEAD": 20}
COMMAND = f"from probeval.reports import results; vars(results).update({SOON}); from probeval.cli import main; main()"


def content(folder) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The whole demo once, in a process of its own: where it was, its results, and what it said."""
    here = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "demo", "--format", "json"],
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONHASHSEED": "1"},
    )
    assert done.returncode == 0, done.stderr
    return here, json.loads(done.stdout), done.stderr


@pytest.mark.slow
def test_with_nothing_judged_the_ranking_tells_something(told):
    _, story, _ = told
    assert story["before"]["judged"] == 0
    assert story["truth"]["tau_before"] >= 0.6
    assert story["truth"]["tau_before"] > story["truth"]["tau_runs"]  # what the labels add
    assert story["before"]["expected_tau"] == pytest.approx(story["truth"]["tau_before"], abs=0.15)


@pytest.mark.slow
def test_judging_narrows_and_is_calibrated(told):
    here, story, said = told
    marks, truth = story["milestones"], story["truth"]
    assert [mark["judged"] for mark in marks] == [0, 20, 40, 60]
    assert marks[-1]["confidence"] > marks[0]["confidence"]
    assert marks[-1]["half_width"] < marks[0]["half_width"] / 2
    assert truth["tau"] > truth["tau_before"]
    assert truth["right"] >= 0.95 * truth["decided"] > 30
    assert len((here / "probeval-demo" / "judged.txt").read_text().splitlines()) == 60
    assert "budget 60 >= 60" in said
    assert "\n2. Judge a few pairs.\n" in said  # bold on a terminal only


@pytest.mark.slow
def test_the_worth_of_the_labels_is_found(told):
    _, story, said = told
    (labeller,) = story["trust"]["observers"]
    assert not labeller["known"]
    assert labeller["slope_lower"] < story["truth"]["slope"] < labeller["slope_upper"]
    assert labeller["p_noise"] < 0.01
    assert said.count("inside the interval") == 2  # of the slope, and of the correlation with the grades


@pytest.mark.slow
def test_the_decision_is_right(told):
    _, story, said = told
    decision, truth = story["decision"], story["truth"]
    assert decision["verdict"] == truth["verdict"] == "better"
    assert decision["lower"] < truth["difference"] < decision["upper"]
    assert decision["p_better_unlabelled"] <= decision["p_better"]
    assert f"By all judgments it is {truth['difference']:+.4f}: the decision is right." in said


@pytest.mark.slow
def test_what_it_writes_and_what_to_do_next(told):
    here, story, said = told
    report = (here / story["report"]).read_text(encoding="utf-8")
    for title in ("Demo: a synthetic campaign", "The sources of labels", "A decision between two systems"):
        assert title in report
    assert story["report"] in said
    assert "probeval judge mine.db" in said
    assert max(map(len, said.splitlines())) <= WIDTH


@pytest.mark.slow
def test_what_it_judged_can_be_used(told, probeval, monkeypatch):
    here, story, _ = told
    monkeypatch.chdir(here)
    files = ("--qrels", "probeval-demo/judged.txt", "--labels", "probeval-demo/labels.tsv")
    arguments = ("probeval-demo/runs", *files, "--metric", story["after"]["metric"], "--scale", "graded:2")
    again = json.loads(probeval("evaluate", *arguments, "--format", "json").out)
    assert again["judged"] == story["after"]["judged"]
    assert again["confidence"] == pytest.approx(story["after"]["confidence"], abs=0.005)  # the same draws


def test_the_campaign_alone(probeval, tmp_path):
    said = {}
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        said[name] = probeval("demo", "--folder", tmp_path / name, "--judgments", 0, "--seed", seed)
        assert said[name].code == 0
        assert "synthetic" in said[name].err
    assert content(tmp_path / "a") == content(tmp_path / "b") != content(tmp_path / "c")
    assert not (tmp_path / "a" / "report.html").exists()


@pytest.mark.slow
def test_a_reader_that_leaves_early_is_no_error(tmp_path):
    line = f"{sys.executable} -c 'from probeval.cli import main; main()' schema demo"
    done = subprocess.run(
        ["sh", "-c", f"{line} | head -n 1"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "{\n", "")
