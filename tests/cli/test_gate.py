"""``probeval gate``: exit codes, files, and the GitHub Action that calls it."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import typer
import yaml

from probeval.cli.app import app
from probeval.data import write_campaign
from probeval.data.trec import write_qrels
from probeval.relevance import synthetic_campaign

ROOT = Path(__file__).parents[2]
ACTION = ROOT / ".github" / "actions" / "gate"


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Runs, complete judgments and some; by P@5 the second system is worse than the first."""
    folder = tmp_path_factory.mktemp("gate")
    campaign = synthetic_campaign(seed=1, systems=2, queries=12, depth=5)
    write_campaign(campaign, folder)
    assert campaign.judgments is not None
    write_qrels(folder / "all.txt", campaign.judgments)
    write_qrels(folder / "some.txt", campaign.judgments.take(np.arange(20)))
    return folder


def runs(place: Path) -> list[Path]:
    return sorted((place / "runs").iterdir(), reverse=True)


def test_exit_codes(probeval, place):
    first, second = runs(place)
    judged = ("--metric", "P@5", "--qrels", place / "all.txt")
    codes = {
        "better": probeval("gate", second, first, *judged).code,
        "worse": probeval("gate", first, second, *judged).code,
        "tied": probeval("gate", first, first, *judged).code,
        "not worse": probeval("gate", first, first, *judged, "--not-worse").code,
        "undecided": probeval("gate", first, second, "--metric", "P@5", "--qrels", place / "some.txt").code,
        "error": probeval("gate", first, "none.txt", *judged).code,
        "usage": probeval("gate", first, *judged).code,
        "level": probeval("gate", first, second, *judged, "--level", 0.5).code,
    }
    assert codes == {
        "better": 0, "worse": 4, "tied": 3, "not worse": 0, "undecided": 3, "error": 1, "usage": 2, "level": 2
    }  # fmt: skip


def test_files(probeval, place, tmp_path):
    files = {name: tmp_path / name for name in ("pairs.tsv", "summary.md", "junit.xml")}
    options = ("--pairs", files["pairs.tsv"], "--markdown", files["summary.md"], "--junit", files["junit.xml"])
    some = ("--metric", "P@5", "--qrels", place / "some.txt", "--model", "uniform", *options)
    result = probeval("gate", *runs(place), *some, "-n", 3, "--format", "json")
    document = json.loads(result.out)
    assert (result.code, document["verdict"], document["exit_code"]) == (3, "undecided", 3)
    assert document["forecast"]["judgments"] >= 1
    columns = files["pairs.tsv"].read_text().splitlines()[0].split("\t")
    assert columns == ["query", "doc", "grade", "sd", "systems", "best_rank", "probability"]
    assert len(files["pairs.tsv"].read_text().splitlines()) == 4
    assert document["reason"] in files["summary.md"].read_text()
    assert ElementTree.parse(files["junit.xml"]).getroot().attrib["skipped"] == "1"
    assert "pairs.tsv: the first 3 pairs to judge." in result.err

    decided = probeval("gate", *runs(place), "--metric", "P@5", "--qrels", place / "all.txt", *options, "-q")
    assert (decided.code, decided.err) == (4, "")
    assert len(files["pairs.tsv"].read_text().splitlines()) == 1
    assert ElementTree.parse(files["junit.xml"]).getroot().attrib["failures"] == "1"


def test_weights_and_segments(probeval, place, tmp_path):
    queries = [f"q{i:02}" for i in range(1, 13)]
    (tmp_path / "weights.csv").write_text("query,weight\n" + "".join(f"{q},{i}\n" for i, q in enumerate(queries)))
    (tmp_path / "segments.csv").write_text(
        "query,segment\n" + "".join(f"{q},s{i % 2}\n" for i, q in enumerate(queries))
    )
    found = probeval(
        "gate", *runs(place), "--metric", "P@5", "--metric", "RR@5", "--qrels", place / "all.txt", "--query-weights",
        tmp_path / "weights.csv", "--segments", tmp_path / "segments.csv",
    )  # fmt: skip
    title, *lines = found.out.splitlines()
    assert title == "system-02 against system-01: worse"
    rows = [line.split()[:2] for line in lines]
    assert rows == [["metric", "segment"], ["P@5", "all"], ["RR@5", "all"], *([m, s] for m in ("P@5", "RR@5") for s in ("s0", "s1"))]  # fmt: skip # noqa: E501
    (tmp_path / "weights.csv").write_text("query,weight\nq01,1\n")
    wrong = probeval("gate", *runs(place), "--metric", "P@5", "--query-weights", tmp_path / "weights.csv")
    assert wrong.code == 1
    assert "11 of 12 queries have no weight: 'q02', 'q03', 'q04' and others." in wrong.err


def test_a_number_without_a_file(probeval, place):
    wrong = probeval("gate", *runs(place), "--metric", "P@5", "-n", 3)
    assert (wrong.code, wrong.err) == (1, "Error: -n is the number of pairs in a file: give --pairs FILE too.\n")


def action() -> dict:
    return yaml.safe_load((ACTION / "action.yml").read_text(encoding="utf-8"))


def gate_options() -> set[str]:
    return {option for param in typer.main.get_command(app).commands["gate"].params for option in param.opts}


def run_action(place: Path, own: Path, **given: str) -> tuple[int, dict[str, str], str]:
    """Run the gate's step as GitHub does: its code, its outputs and the summary of the job."""
    described = action()
    inputs = {name: str(one.get("default", "")) for name, one in described["inputs"].items()} | {
        name.replace("_", "-"): value for name, value in given.items()
    }
    step = next(step for step in described["runs"]["steps"] if step.get("id") == "gate")

    def filled(text: str) -> str:
        return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda m: inputs[m[1]], text)

    commands = own / "bin"
    commands.mkdir()
    (commands / "probeval").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m probeval "$@"\n')
    (commands / "probeval").chmod(0o755)
    outputs, summary = own / "outputs", own / "summary"
    outputs.touch()
    environment = os.environ | {
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "GITHUB_OUTPUT": str(outputs),
        "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_ACTION_PATH": str(ACTION),
        **{name: filled(value) for name, value in step["env"].items()},
    }
    assert step["shell"] == "bash"
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=place, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = dict(line.split("=", 1) for line in outputs.read_text().splitlines())
    return done.returncode, lines, (summary.read_text() if summary.exists() else "") + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("qrels", "more", "code", "verdict"),
    [
        ("all.txt", {}, 4, "worse"),
        ("all.txt", {"not_worse": "true", "rope": "1"}, 0, "not worse"),
        (
            "some.txt",
            {"metric": "P@5\nCG@5", "allow_undecided": "true", "arguments": "--model\nuniform"},
            0,
            "undecided",
        ),
    ],
)
def test_the_action_ends_as_the_gate_does(place, tmp_path, qrels, more, code, verdict):
    first, second = (str(path.relative_to(place)) for path in runs(place))
    given = {"new": first, "baseline": second, "metric": "P@5", "qrels": qrels, "folder": str(tmp_path / "out"), **more}
    ended, outputs, summary = run_action(place, tmp_path, **given)
    assert (ended, outputs.get("verdict")) == (code, verdict), summary
    assert outputs["exit-code"] == str(EXITS[verdict])
    assert f": {verdict}\n" in summary
    for name in ("summary", "junit", "pairs", "json"):
        assert Path(outputs[name]).is_file()


EXITS = {"worse": 4, "not worse": 0, "undecided": 3}


@pytest.mark.slow
def test_the_action_fails_on_an_error(place, tmp_path):
    ended, outputs, summary = run_action(place, tmp_path, new="none", baseline="none", metric="P@5")
    assert (ended, outputs) == (1, {})
    assert "Error: none" in summary


@pytest.mark.slow
def test_a_run_whose_name_begins_with_a_dash_is_a_file_to_the_action(place, tmp_path):
    first, second = runs(place)
    (place / "--help").write_bytes(first.read_bytes())
    given = {
        "baseline": str(second.relative_to(place)),
        "metric": "P@5",
        "qrels": "all.txt",
        "folder": str(tmp_path / "out"),
    }
    ended, outputs, summary = run_action(place, tmp_path, new="--help", **given)
    assert (ended, outputs.get("verdict")) == (4, "worse"), summary


def test_the_action_is_whole():
    described = action()
    steps = described["runs"]["steps"]
    assert described["runs"]["using"] == "composite"
    install = next(step for step in steps if "pip install" in step.get("run", ""))
    path = re.search(r'"\$GITHUB_ACTION_PATH/([./]+)"', install["run"])
    assert path is not None
    assert (ACTION / path[1]).resolve() == ROOT
    gate = next(step for step in steps if step.get("id") == "gate")
    assert "${{" not in gate["run"]  # inputs come as variables, never as code
    used = re.findall(r"inputs\.([\w-]+)", json.dumps(steps))
    assert set(used) == set(described["inputs"])
    assert set(re.findall(r"steps\.gate\.outputs\.([\w-]+)", json.dumps(described["outputs"]))) == set(
        described["outputs"]
    )
    assert set(re.findall(r"--[a-z-]+", gate["run"])) <= gate_options()


def test_the_page_uses_what_there_is():
    page = (ROOT / "docs" / "how-to" / "ci.md").read_text(encoding="utf-8")
    github, gitlab = (yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", page, re.M | re.S))
    described = action()
    step = next(step for step in github["jobs"]["gate"]["steps"] if step.get("id") == "gate")
    assert set(step["with"]) <= set(described["inputs"])
    assert {name for name, one in described["inputs"].items() if one.get("required")} <= set(step["with"])
    assert set(re.findall(r"steps\.gate\.outputs\.([\w-]+)", page)) <= set(described["outputs"])
    assert all(f"`{name}`" in page for name in (*described["inputs"], *described["outputs"]))
    command = next(line for line in gitlab["gate"]["script"] if line.startswith("probeval gate"))
    assert set(re.findall(r"--[a-z-]+", command)) <= gate_options()
    assert gitlab["gate"]["allow_failure"]["exit_codes"] == EXITS["undecided"]


def test_a_wider_pool_is_for_the_ideal_list_alone(probeval, place, tmp_path):
    first, second = runs(place)
    wider = tmp_path / "wider.txt"
    lines = gzip.decompress(first.read_bytes()).decode().splitlines()
    wider.write_text("".join(re.sub(r" d(\d+) ", r" e\1 ", line) + "\n" for line in lines))
    ask = ("gate", first, second, "--metric", "nDCG@5", "--qrels", place / "some.txt", "--format", "json")
    plain, wide = (probeval(*ask, *more) for more in ((), ("--pool", wider)))
    assert "pairs of these 2 runs" in plain.err
    alone, pooled = (json.loads(said.out)["checks"][0] for said in (plain, wide))
    assert (alone["pool"], alone["judged"]) == (pooled["pool"], pooled["judged"])
    assert pooled["new"] < alone["new"]  # the ideal list is longer
    compared = probeval("compare", first, second, *ask[3:], "--pool", wider)
    assert compared.code == 0, compared.err
    assert json.loads(compared.out)["systems"][0]["mean"] == max(pooled["new"], pooled["baseline"])
    refused = probeval("compare", first, second, *ask[3:7], "--pool", wider, "--method", "t")
    assert (refused.code, "Leave out one." in refused.err) == (1, True)
