"""``probeval doctor``, and completion in the shell."""

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
