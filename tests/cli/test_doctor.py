"""``probeval doctor`` of files and of the installation, and completion in the shell."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from importlib import metadata

import pytest

from probeval.cli import doctor as module
from probeval.cli.doctor import EXTRAS
from probeval.relevance import card_names


def without(monkeypatch, *names, old=()):
    """Some packages not installed, others in a version from long ago."""
    real = metadata.version

    def version(name):
        if name in names:
            raise metadata.PackageNotFoundError(name)
        return "0.0.1" if name in old else real(name)

    monkeypatch.setattr(metadata, "version", version)


def test_all_is_well(probeval):
    said = probeval("doctor")
    assert said.code == 0
    assert "Everything required is installed" in said.err
    rows = {line.split()[0] for line in said.out.splitlines()}
    assert {"probeval", "python", "numpy", "pymc", "typer", "models", "satisfaction"} <= rows
    assert {f"[{extra}]" for extra in EXTRAS} <= rows
    assert f"{len(card_names())} cards" in said.out
    assert "41 mappings" in said.out


def test_only_the_versions_for_this_python_are_looked_at(probeval):
    checks = json.loads(probeval("doctor", "--format", "json", "--quiet").out)["checks"]
    names = [check["what"] for check in checks]
    assert names.count("pymc") == 1  # two lines in the requirements, one for each line of Python
    assert "ruff" not in names  # a tool of developers


def test_what_is_missing_is_said_with_how_to_get_it(probeval, monkeypatch):
    without(monkeypatch, "joblib", old=["rich"])
    said = probeval("doctor", "--format", "json")
    document = json.loads(said.out)
    assert said.code == 1
    assert not document["ok"]
    assert "Missing: joblib, rich." in said.err
    checks = {check["what"]: check for check in document["checks"]}
    assert checks["joblib"]["found"] == "-"
    assert checks["joblib"]["note"].startswith("pip install 'joblib>=")
    assert checks["rich"]["found"] == "0.0.1"
    assert checks["rich"]["status"] == "missing"


def test_an_extra_is_optional(probeval, monkeypatch):
    without(monkeypatch, "pyarrow")
    said = probeval("doctor", "--format", "csv", "--quiet")
    rows = {row["what"]: row for row in csv.DictReader(io.StringIO(said.out))}
    assert said.code == 0
    assert not said.err
    assert rows["[parquet]"]["status"] == "optional"
    assert rows["[parquet]"]["note"].endswith("pip install 'probeval[parquet]'")


def test_a_wheel_without_models_is_found_out(probeval, monkeypatch):
    monkeypatch.setattr(module, "card_names", list)
    said = probeval("doctor")
    assert said.code == 1
    assert "Missing: models." in said.err
    assert "pip install --force-reinstall probeval" in said.out


@pytest.fixture
def files(tmp_path):
    """Two runs, labels with a failed reply and queries in capitals, and judgments."""
    runs = tmp_path / "runs"
    runs.mkdir()
    for name, docs in (("new", "ab"), ("old", "bc")):
        rows = [f"q{q} Q0 {doc} 1 {9 - i} {name}\n" for q in range(4) for i, doc in enumerate(docs)]
        (runs / f"{name}.txt").write_text("".join(rows))
    rows = [f"{'Q' if q == 0 else 'q'}{q},{doc},{-1 if q == 1 else 2}\n" for q in range(4) for doc in "abc"]
    (tmp_path / "labels.csv").write_text("query,doc,llm\n" + "".join(rows))
    (tmp_path / "qrels.txt").write_text("q0 0 a 1\nq0 0 b 0\n")
    return tmp_path


def test_files_are_examined(probeval, files):
    given = (files / "runs", files / "labels.csv", files / "qrels.txt")
    said = probeval("doctor", *given, "--format", "json")
    found = json.loads(said.out)
    assert said.code == 0
    assert [(f["taken_for"], f["queries"], f["rows"]) for f in found["files"]] == [
        ("runs", 4, 8), ("runs", 4, 8), ("labels", 4, 12), ("judgments", 1, 2)
    ]  # fmt: skip
    assert found["files"][2]["found"] == "llm: values -1, 2."
    assert found["files"][3]["in_runs"] == "1 of 1 queries; 2 of the 12 pairs to rank 10"
    assert [line.split(": ", 1)[1][:40] for line in found["suspicious"]] == [
        "Labels by llm: 3 of 12 are -1, the other", "1 of 4 queries of the labels is not in t"
    ]  # fmt: skip
    assert found["possible"] == [
        "Rank 2 systems by 75% of the documents to rank 10 judged, a relevance model and the labels by llm."
    ]
    assert found["next"].split()[:2] == ["probeval", "compare"]
    assert all(line in said.err for line in (*found["suspicious"], found["next"]))
    done = probeval(*found["next"].split()[1:], "--format", "json")  # the command that it says runs, and says the same
    assert done.code == 0
    assert "3 of 12 are -1" in done.err


def test_a_file_that_cannot_be_read_says_why(probeval, files):
    (files / "odd.txt").write_text("q1 d1 3\n")
    said = probeval("doctor", files / "runs", files / "odd.txt")
    assert said.code == 1
    assert "odd.txt: 3 columns. A run has 6" in said.err
    assert "Next:" not in said.err
    alone = json.loads(probeval("doctor", files / "labels.csv", "--format", "json", "-q").out)
    assert alone["missing"] == ["runs, one file per system: judgments and labels are of their documents."]


@pytest.mark.slow
@pytest.mark.parametrize(("typed", "offered"), [("probeval doc", "doctor"), ("probeval evaluate --met", "--metric")])
def test_the_shell_completes(typed, offered):
    asked = {"_PROBEVAL_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from probeval.cli import main; sys.argv[0] = 'probeval'; main()"],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        check=False,
    )
    assert offered in done.stdout.split()


def test_a_script_for_the_shell_is_shown(probeval, monkeypatch):
    monkeypatch.setattr("shellingham.detect_shell", lambda *_: ("bash", "bash"))  # whatever shell runs the tests
    said = probeval("--show-completion", "bash")
    assert said.code == 0
    assert "complete_bash" in said.out
