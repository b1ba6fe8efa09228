"""``probeval plan`` as people call it."""

from __future__ import annotations

import json

import pytest

from probeval.data import write_campaign
from probeval.relevance import synthetic_campaign


@pytest.fixture
def campaign(tmp_path):
    write_campaign(synthetic_campaign(seed=5, systems=5, queries=8, depth=6), tmp_path / "campaign")
    return tmp_path / "campaign"


@pytest.mark.slow
def test_a_plan_without_judgments(probeval, campaign):
    said = probeval(
        "plan", campaign / "runs", "--metric", "DCG@2", "--scale", "graded:2", "--target", "confidence=.8,erho2=.1",
        "--queries", "4,8", "--price", ".5", "--format", "json",
    )  # fmt: skip
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert found["targets"] == {"confidence": 0.8, "erho2": 0.1}
    assert sorted(o["queries"] for o in found["options"]) == [4, 8]
    assert {"judgments", "lower", "upper", "cost", "hours", "erho2", "meets"} <= set(found["options"][0])
    first = found["options"][0]
    assert first["cost"] == pytest.approx(first["judgments"] * 0.5)
    assert found["curve"][0]["judged"] == 0
    assert "Cheapest" in said.err
    assert "Judge about 50 pairs at random (probeval next RUNS --policy random) and plan again with --qrels" in said.err


@pytest.mark.slow
def test_a_picture_and_a_table(probeval, campaign, tmp_path):
    said = probeval(
        "plan", campaign / "runs", "--metric", "DCG@2", "--scale", "graded:2", "--plot", tmp_path / "plan.png"
    )
    assert said.code == 0, said.err
    assert (tmp_path / "plan.png").stat().st_size > 1000
    header, row = (line.split() for line in said.out.splitlines()[1:3])
    shown = dict(zip(header, row, strict=True))
    assert all(shown[name].isdecimal() for name in ("judgments", "lower", "upper", "pool"))
    assert len(shown["a_query"].partition(".")[2]) == 1
    assert "a_query: per query; pool: pairs in the pool." in said.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", "trust=.9"], "No target 'trust'"),
        (["--target", ".95"], "write confidence=.95"),
        (["--queries", "many"], "--queries takes comma-separated positive integers"),
        (["--queries", "0"], "--queries takes comma-separated positive integers"),
        (["--model", "none"], "This task needs a relevance model"),
        (["--disagreement", "3"], "disagreement between 0 and 1"),
    ],
)
def test_bad_input_is_one_line(probeval, campaign, options, message):
    said = probeval("plan", campaign / "runs", "--metric", "DCG@6", "--scale", "graded:2", *options)
    assert said.code == 1
    assert message in said.err
    assert "Traceback" not in said.err
