"""``pool``: campaigns with fewer judgments, what is written and said, and how it fails."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from probeval.data import write_campaign
from probeval.relevance import synthetic_campaign


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> list[Path]:
    place = tmp_path_factory.mktemp("pools")
    for seed, name in enumerate(("first", "second")):
        write_campaign(synthetic_campaign(seed=seed, systems=5, queries=8, depth=10), place / name)
    return [place / "first", place / "second"]


def test_a_plain_command_cuts_to_several_depths(probeval, folders):
    said = probeval("pool", folders[0])
    assert said.code == 0, said.err
    for text in ("Tests of all pairs of systems", "RBP(p=0.98)", "depth 1", "depth 10", "largest_residual"):
        assert text in said.out
    assert "unjudged documents are not relevant" in said.err
    assert "first: the reference is" in said.err


def test_rows_as_csv_and_json(probeval, folders):
    options = ("--metric", "AP", "--depth", "2,5,10", "--share", ".5", "--leave-team-out", "--condensed", "--quiet")
    said = probeval("pool", *folders, *options, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(said.out)))
    assert {row["campaign"] for row in rows} == {"first", "second"}
    assert {row["kind"] for row in rows} == {"depth", "share", "team"}
    assert {row["unjudged_as"] for row in rows} == {"not relevant", "left out"}
    document = json.loads(probeval("pool", *folders, *options, "--format", "json").out)
    same = [str(row["tp"]) for part in document["campaigns"] for row in part["rows"]]
    assert same == [row["tp"] for row in rows]
    for part in document["campaigns"]:
        for row in part["rows"]:
            assert row["tp"] + row["fp"] + row["fn"] + row["tn"] == row["pairs"]
            assert row["discrimination"] == pytest.approx((row["tp"] + row["fp"]) / row["pairs"])
            assert row["concordance"] == pytest.approx((row["tp"] + row["tn"]) / row["pairs"])


def test_remarks_are_said_once(probeval, tmp_path):
    write_campaign(synthetic_campaign(seed=3, systems=4, queries=6, depth=5), tmp_path / "holes")
    qrels = tmp_path / "holes" / "qrels.txt"
    qrels.write_text("".join(qrels.read_text().splitlines(keepends=True)[::2]))
    said = probeval("pool", tmp_path / "holes", "--metric", "RBP(p=0.9)", "--depth", "2,5")
    assert said.code == 0, said.err
    assert said.err.count("fewer than two systems are judged") == 1
    assert "RBP(p=0.9)" in said.out


@pytest.mark.slow
def test_a_report_and_pictures(probeval, folders, tmp_path):
    picture, page = tmp_path / "pools.svg", tmp_path / "pools.html"
    said = probeval("pool", *folders, "--metric", "AP", "--plot", picture, "--report", page, "--test", "sign")
    assert said.code == 0, said.err
    assert picture.is_file()
    assert (tmp_path / "pools-trends.svg").is_file()
    assert (tmp_path / "pools-multiplicity.svg").is_file()
    assert "sign at 0.05" in page.read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--depth", "5,x"), "--depth takes comma-separated positive integers"),
        (("--share", "2"), "between 0 and 1, got 2."),
        (("--metric", "nDGC"), "Did you mean"),
        (("--plot", "x.txt"), "the name of a picture must end in"),
    ],
)
def test_bad_input_gets_one_line(probeval, folders, options, message):
    said = probeval("pool", folders[0], *options)
    assert said.code == 1
    assert message in said.err
    assert len(said.err.strip().splitlines()) == 1


def test_folders_that_are_no_campaigns_are_named(probeval, folders, tmp_path):
    (tmp_path / "parts" / "runs").mkdir(parents=True)
    (tmp_path / "parts" / "partitions.json").write_text("{}")
    said = probeval("pool", folders[0], tmp_path / "missing")
    assert (said.code, said.err) == (
        1,
        f"Error: {tmp_path / 'missing'}: no such folder. Expected a campaign folder, with its runs in 'runs/'.\n",
    )
    for command in (("pool",), ("evaluate", "--model", "none", "--metric", "P@5"), ("features", "--depth", "5")):
        said = probeval(command[0], tmp_path / "parts", *command[1:])
        assert said.code == 1
        assert "parts: this is a campaign in partitions: only evaluate, compare and next take one" in said.err


def test_a_wrong_value_is_shown(probeval, folders):
    said = probeval("pool", folders[0], "--alpha", "2")
    assert said.code == 2
    last = said.err.splitlines()[-1]
    assert "'--alpha'" in last
    assert "0.9999" in last
    assert "2" in last.rpartition("0.9999")[2] or ": 2" in last  # in the words of this version of typer
