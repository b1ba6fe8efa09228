from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys

import pytest


def content(folder) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_same_seed_same_bytes_on_disk_and_on_stdout(probeval, tmp_path, monkeypatch):
    said = {}
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        said[name] = probeval("demo", "--seed", seed)
        assert said[name].code == 0
    assert said["a"] == said["b"]
    assert content(tmp_path / "a") == content(tmp_path / "b")
    assert said["a"].out != said["c"].out
    assert content(tmp_path / "a") != content(tmp_path / "c")


def test_again_in_the_same_folder(probeval, tmp_path):
    first = probeval("demo", "--folder", tmp_path / "demo")
    before = content(tmp_path / "demo")
    assert probeval("demo", "--folder", tmp_path / "demo") == first
    assert content(tmp_path / "demo") == before


def test_it_says_that_it_is_synthetic_and_how_to_go_on(probeval, tmp_path):
    said = probeval("demo", "--folder", tmp_path / "demo")
    assert "synthetic" in said.err
    assert "probeval evaluate" in said.err
    assert probeval("demo", "--folder", tmp_path / "demo", "--quiet").err == ""


def test_what_it_wrote_can_be_evaluated(probeval, tmp_path):
    folder = tmp_path / "demo"
    demo = json.loads(probeval("demo", "--folder", folder, "--format", "json").out)
    arguments = [
        "--qrels",
        folder / "qrels.txt",
        "--metric",
        demo["full"]["metric"],
        "--model",
        "none",
        "--format",
        "json",
    ]
    again = json.loads(probeval("evaluate", folder / "runs", *arguments).out)
    assert again["systems"] == demo["full"]["systems"]
    assert demo["full"]["judged"] == demo["full"]["pool"]
    assert demo["partial"]["judged"] < demo["partial"]["pool"]
    assert all(row["lower"] <= row["upper"] for row in demo["partial"]["systems"])
    assert any(row["lower"] < row["upper"] for row in demo["partial"]["systems"])


def test_csv(probeval, tmp_path):
    said = probeval("demo", "--folder", tmp_path / "demo", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(said.out)))
    assert {row["judgments"] for row in rows} == {"full", "partial"}
    assert len(rows) == 2 * len({row["system"] for row in rows})


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_a_fresh_process_gives_the_same_bytes(probeval, tmp_path, hash_seed):
    here = probeval("demo", "--folder", tmp_path / "demo", "--quiet")
    before = content(tmp_path / "demo")
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from probeval.cli import main; main()",
            "demo",
            "--folder",
            tmp_path / "demo",
            "--quiet",
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, here.out, "")
    assert content(tmp_path / "demo") == before


def test_a_reader_that_leaves_early_is_no_error(tmp_path):
    command = f"{sys.executable} -c 'from probeval.cli import main; main()' demo --folder {tmp_path / 'demo'} --quiet"
    done = subprocess.run(
        ["sh", "-c", f"{command} --format json | head -n 1"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "{\n", "")
