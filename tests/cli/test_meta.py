"""``meta``: what it writes in each form, and how it fails."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest

import probeval as library
from probeval.api.meta import parse_levels
from probeval.errors import ProbevalError

QUICK = ("--splits", 5, "--samples", 50)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two campaigns on other scales."""
    root = tmp_path_factory.mktemp("meta")
    for name, scale in (("first", library.Scale.graded(2)), ("second", library.Scale.binary())):
        made = library.synthetic_campaign(seed=2, systems=5, queries=12, depth=5, scale=scale)
        library.write_campaign(replace(made, name=name), root / name)
    return [root / "first", root / "second"]


def test_one_folder_is_enough(probeval, folders):
    said = probeval("meta", folders[0], *QUICK, "--jobs", 1)
    assert said.code == 0, said.err
    titles = [line for line in said.out.splitlines() if line.startswith(("Measures", "Tests", "Discrim", "Conflicts"))]
    assert titles == [
        "Measures and scales, all tests together, at alpha 0.05",
        "Tests, all measures and scales together, at alpha 0.05",
        "Discrimination by alpha",
        "Conflicts by alpha (exact where they equal alpha)",
    ]
    assert [line.split()[1] for line in said.out.splitlines() if line.startswith("first  ")][:8] == [
        "CG@5", "DCG@5", "nDCG@5", "Q@5", "RBP(p=0.8)@5", "GAP@5", "ERR@5", "AP@5"
    ]  # fmt: skip
    assert "5 random halves of the queries" in said.err


@pytest.mark.slow
def test_json_is_that_of_the_library_with_any_number_of_processes(probeval, folders):
    how = ("--metric", "nDCG@5", "--scale", "graded:2", "--scale", "binary:2", "--test", "t", "--test", "permutation")
    alone, two = (
        probeval("meta", *folders[:1], *how, *QUICK, "--alpha", ".05,.1", "--format", "json", "--jobs", jobs)
        for jobs in (1, 2)
    )
    assert alone.code == 0, alone.err
    assert alone.out == two.out
    expected = library.meta_study(
        folders[0], ["nDCG@5"], scales=["graded:2", "binary:2"], tests=["t", "permutation"], alphas=[0.05, 0.1],
        splits=5, samples=50,
    )  # fmt: skip
    document = json.loads(alone.out)
    assert document["campaigns"][0]["measures"][1]["scale"] == "binary:2"
    assert document["alphas"] == [0.05, 0.1]
    discrimination = document["campaigns"][0]["measures"][0]["tests"][1]["rates"][0]["discrimination"]
    assert discrimination == expected["first"].measures[0].tests[1].discrimination[0]


def test_csv_has_every_campaign_measure_test_and_level(probeval, folders):
    said = probeval(
        "meta", *folders, *QUICK, "--metric", "P@5", "--metric", "AP@5", "--alpha", ".01-.1:.03", "--jobs", 1,
        "--format", "csv",
    )  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(said.out)))
    assert len(rows) == 2 * 2 * 5 * 4
    assert {(row["campaign"], row["metric"]) for row in rows} == {
        (campaign, metric) for campaign in ("first", "second") for metric in ("P@5", "AP@5")
    }
    assert sorted({row["alpha"] for row in rows}) == ["0.01", "0.04", "0.07", "0.1"]


def test_reliability_is_that_of_gstudy(probeval, folders):
    meta = probeval("meta", folders[0], *QUICK, "--metric", "DCG@5", "--level", ".9", "--jobs", 1, "--format", "json")
    qrels = next(folders[0].glob("qrels.txt*"))
    alone = probeval(
        "gstudy", folders[0] / "runs", "--qrels", qrels, "--metric", "DCG@5", "--level", ".9", "--format", "json"
    )
    (measure,) = json.loads(meta.out)["campaigns"][0]["measures"]
    study = json.loads(alone.out)
    assert (measure["erho2"], measure["phi"]) == (study["erho2"], study["phi"])


@pytest.mark.slow
def test_a_picture_and_a_page(probeval, folders, tmp_path):
    said = probeval(
        "meta", *folders, *QUICK, "--metric", "nDCG@5", "--test", "t", "--test", "sign", "--jobs", 1, "--format",
        "markdown", "--plot", tmp_path / "meta.svg", "--report", tmp_path / "meta.html",
    )  # fmt: skip
    assert said.code == 0, said.err
    assert "| campaign " in said.out
    assert "<svg" in (tmp_path / "meta.svg").read_text()
    page = (tmp_path / "meta.html").read_text()
    assert "Campaigns side by side" in page
    assert "probeval meta " in page
    assert f"The report is in {tmp_path / 'meta.html'}" in said.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--alpha", ".05-.01"), "--alpha takes numbers such as .01,.05 or a range such as .01-.1:.01, got '.05-.01'."),
        (("--alpha", "high"), "--alpha takes numbers such as .01,.05 or a range such as .01-.1:.01, got 'high'."),
        (("--alpha", ".1,.05"), "Levels of significance must be between 0 and 1, in ascending order; got 0.1, 0.05."),
        (("--metric", "NDGC@5"), "Did you mean 'nDCG@5'?"),
        (("--scale", "0-2"), "For 0 to 2: graded:2."),
        (("--plot", "meta.gif"), "the name of a picture must end in"),
    ],
)
def test_wrong_options_are_refused_in_one_line(probeval, folders, options, message):
    said = probeval("meta", folders[0], *QUICK, "--jobs", 1, *options)
    assert said.code == 1
    assert message in said.err
    assert len(said.err.splitlines()) == 1


def test_two_campaigns_of_one_name_are_refused(probeval, folders):
    said = probeval("meta", folders[0], folders[0])
    assert (said.code, said.out) == (1, "")
    assert "two campaigns have the name 'first'" in said.err


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        (".01,.05", [0.01, 0.05]),
        (".01-.05", [0.01, 0.02, 0.03, 0.04, 0.05]),
        (".001-.01:.003", [0.001, 0.004, 0.007, 0.01]),
    ],
)
def test_ranges_of_levels(text, levels):
    assert parse_levels("--alpha", text) == pytest.approx(levels)


@pytest.mark.parametrize("text", [".1-.2:0", "0-.1", ".01-.02-.03", "1e-9-.1"])
def test_ranges_that_are_none(text):
    with pytest.raises(ProbevalError, match="--alpha takes numbers such as"):
        parse_levels("--alpha", text)
