from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys

import pytest

from probeval.reports import results

COMMAND = [sys.executable, "-c", "from probeval.cli import main; main()", "demo"]


def content(folder) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The whole demo once, in a process of its own: where it was, and what it said."""
    here = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [*COMMAND, "--format", "json"],
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONHASHSEED": "1"},
    )
    assert done.returncode == 0, done.stderr
    return here, json.loads(done.stdout), done.stderr


@pytest.mark.slow
def test_the_whole_story(told):
    here, story, said = told
    marks = story["milestones"]
    assert [mark["judged"] for mark in marks] == [0, 10, 20, 30, 40, 50, 60]
    assert marks[-1]["confidence"] > marks[0]["confidence"] + 0.1
    assert marks[-1]["half_width"] < marks[0]["half_width"]
    assert marks[-1]["phi"] > marks[0]["phi"]
    assert story["before"]["judged"] == 0
    assert story["after"]["judged"] == 60
    assert -1 <= story["truth"]["tau"] <= 1
    report = (here / story["report"]).read_text(encoding="utf-8")
    assert "Demo: a synthetic campaign" in report
    assert len((here / "probeval-demo" / "judged.txt").read_text().splitlines()) == 60
    for word in (
        "synthetic",
        "Stop: budget 60 >= 60",
        story["report"],
        "probeval judge mine.db",
        f"{marks[-1]['expected_tau']:.3f} was expected",
    ):
        assert word in said


@pytest.mark.slow
def test_what_it_judged_can_be_used(told, probeval, monkeypatch):
    here, story, _ = told
    monkeypatch.chdir(here)
    arguments = ("probeval-demo/runs", "--qrels", "probeval-demo/judged.txt", "--metric", story["after"]["metric"])
    again = json.loads(probeval("evaluate", *arguments, "--scale", "graded:2", "--format", "json").out)
    assert again["judged"] == story["after"]["judged"]
    assert again["confidence"] == pytest.approx(story["after"]["confidence"], abs=0.005)  # the same draws


@pytest.mark.slow
def test_another_process_gives_the_same_bytes(told, probeval, tmp_path, monkeypatch):
    there, story, said = told
    monkeypatch.chdir(tmp_path)
    here = probeval("demo", "--format", "json")
    assert (here.code, json.loads(here.out), here.err) == (0, story, said)
    assert content(tmp_path) == content(there)


def test_the_campaign_alone(probeval, tmp_path):
    said = {}
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        said[name] = probeval("demo", "--folder", tmp_path / name, "--judgments", 0, "--seed", seed)
        assert said[name].code == 0
        assert "synthetic" in said[name].err
    assert content(tmp_path / "a") == content(tmp_path / "b") != content(tmp_path / "c")
    assert not (tmp_path / "a" / "report.html").exists()


@pytest.mark.slow
def test_tables_and_csv_show_the_milestones(probeval, tmp_path, monkeypatch):
    monkeypatch.setattr(results, "PATHS", 1)  # a report of less worth, sooner
    arguments = ("demo", "--folder", tmp_path / "demo", "--judgments", 4, "--quiet")
    table = probeval(*arguments)
    assert table.out.count("system-01") == 2  # nothing judged, and four pairs
    assert (table.code, table.err) == (0, "")
    rows = list(csv.DictReader(io.StringIO(probeval(*arguments, "--format", "csv").out)))
    assert [row["judged"] for row in rows] == ["0", "4"]
    for row in rows:
        assert f"{float(row['confidence']):.3f}" in table.out


@pytest.mark.slow
def test_a_reader_that_leaves_early_is_no_error(tmp_path):
    line = f"{sys.executable} -c 'from probeval.cli import main; main()' demo --judgments 2 --quiet --format json"
    done = subprocess.run(
        ["sh", "-c", f"{line} | head -n 1"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "{\n", "")
