"""``validate``: what it writes in each form, what it says, and how it fails."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from probeval.data import Scale, read_campaign, write_campaign
from probeval.relevance import synthetic_campaign
from probeval.simulation import MARKS, validate


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> list[Path]:
    """Three small campaigns, the second one binary, and one that is judged only in part."""
    root = tmp_path_factory.mktemp("campaigns")
    made = (
        ("first", Scale.graded(2)),
        ("second", Scale.binary()),
        ("third", Scale.graded(2)),
        ("partly", Scale.binary()),
    )
    for i, (name, scale) in enumerate(made):
        campaign = synthetic_campaign(seed=i, systems=5, queries=6, depth=8, docs=20, groups=3, scale=scale)
        if name == "partly":
            judged = campaign.judgments
            campaign = replace(campaign, judgments=judged.take(np.arange(0, len(judged), 2)))
        write_campaign(replace(campaign, name=name), root / name)
    return [root / name for name, _ in made]


QUICK = ("--model", "independent", "--depth", 5, "--seeds", 1, "--checkpoints", "0,.2", "--draws", 20, "--jobs", 1)


def test_json_is_that_of_the_library(probeval, folders):
    said = probeval("validate", *folders, *QUICK, "--format", "json")
    assert said.code == 0, said.err
    document = json.loads(said.out)
    expected = validate(
        [read_campaign(f) for f in folders], models=["independent"], depth=5, checkpoints=[0, 0.2], seeds=1, draws=20
    )
    assert document == json.loads(json.dumps(expected.to_dict()))
    assert {c["campaign"] for c in document["campaigns"]} == {"first", "second", "third"}
    assert said.err.splitlines()[0].startswith("first: 5 of 5 systems are judged to depth 5; 6 queries, ")
    assert "partly: no system is judged to depth 5; used for training only.\n" in said.err


def test_same_seed_same_bytes(probeval, folders):
    one, two, other = (
        probeval("validate", *folders[:3], *QUICK, "--format", "json", "--quiet", "--seed", s) for s in (3, 3, 4)
    )
    assert one.err == ""
    assert one.out == two.out
    assert one.out != other.out


def test_csv_has_a_row_a_campaign_model_metric_and_checkpoint(probeval, folders):
    metrics = ("--metric", "P@5", "--metric", "AP@5")
    said = probeval("validate", *folders[:2], *QUICK, *metrics, "--model", "uniform", "--format", "csv", "--quiet")
    rows = list(csv.DictReader(io.StringIO(said.out)))
    assert [(r["campaign"], r["model"], r["metric"], float(r["checkpoint"])) for r in rows] == [
        (c, m, p, f)
        for c in ("first", "second")
        for m in ("independent", "uniform")
        for p in ("P@5", "AP@5")
        for f in (0, 0.2)
    ]
    assert {float(r["confidence"]) for r in rows if r["model"] == "uniform" and r["metric"] == "P@5"} >= {0.5}


def test_the_table_ends_with_the_marks(probeval, folders):
    said = probeval("validate", *folders[:2], *QUICK, "--quiet")
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0] == "Means over 1 order of judging"
    assert lines[1].split()[:4] == ["campaign", "model", "metric", "checkpoint"]
    at = lines.index("Criteria")
    assert lines[at + 1].split() == ["model", "figure", "value", "mark", "holds"]
    assert len(lines) == at + 2 + len(MARKS)
    assert "Reliability: stated confidence and accuracy of pairs of systems" in lines


def test_pictures(probeval, folders, tmp_path):
    said = probeval("validate", *folders[:2], *QUICK, "--plot", tmp_path / "r.png", "--format", "csv")
    assert said.code == 0
    for name in ("r.png", "r-checkpoints.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    assert said.err.splitlines()[-1] == f"Pictures: {tmp_path / 'r.png'}, {tmp_path / 'r-checkpoints.png'}."


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--plot", "r.txt"), "r.txt: the name of a picture must end in .png, .svg, .pdf."),
        (("--checkpoints", "0,few"), "--checkpoints takes comma-separated numbers, got '0,few'."),
        (("--checkpoints", ".2,.1"), "Checkpoints are rising shares of the pool, from 0 to 1; got [0.2, 0.1]."),
        (
            ("--model", "hierarchic"),
            "No model 'hierarchic'. Did you mean 'hierarchical'? 'probeval models' lists those that ship; --import "
            "FILE adds your own.",
        ),
        (("--metric", "NDGC@5"), "Unknown metric 'NDGC@5'. Did you mean 'nDCG@5'?"),
    ],
)
def test_errors_are_one_line(probeval, folders, more, message):
    usual = [x for pair in zip(QUICK[::2], QUICK[1::2], strict=True) if pair[0] != "--checkpoints" for x in pair]
    said = probeval("validate", *folders[:2], *usual, *more, "--quiet")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("Error: ")
    assert said.err.endswith(f"{message}\n")
    assert said.err.count("\n") == 1


def test_one_campaign_is_not_enough(probeval, folders):
    said = probeval("validate", folders[0], *QUICK, "--quiet")
    assert said.code == 1
    assert said.err == "Error: first: there is no other campaign to fit on. Name at least two.\n"


def test_a_card_just_fitted_is_checked_on_another_campaign(probeval, folders, tmp_path):
    card = tmp_path / "mine"
    fitted = probeval("fit", folders[0], folders[1], "--out", card, "--depth", 5, "--quiet")
    assert fitted.code == 0, fitted.err
    said = probeval("validate", folders[2], *QUICK[2:], "--model", card, "--format", "json")
    assert said.code == 0, said.err
    (held, _) = json.loads(said.out)["campaigns"]
    (run,) = held["policies"]
    assert (held["campaign"], run["model"]) == ("third", "mine")
    assert "fitted" not in said.err
    seen = probeval("validate", folders[0], *QUICK[2:], "--model", card, "--format", "json")
    assert "mine was fitted on the judgments of first: its confidence is too high there.\n" in seen.err
    twice = probeval("validate", folders[2], *QUICK[2:], "--model", card, "--model", card / "card.json")
    assert twice.err == "Error: Two models are named mine. Give one of them another name.\n"


def test_a_campaign_is_needed(probeval):
    assert probeval("validate").code == 2
