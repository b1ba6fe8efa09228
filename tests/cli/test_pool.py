"""More runs for the pool, and documents outside it, on the command line."""

from __future__ import annotations

import json

import pytest

from probeval.data import write_campaign
from probeval.relevance import synthetic_campaign


@pytest.fixture
def files(tmp_path):
    campaign = synthetic_campaign(seed=3, systems=5, queries=6, depth=5)
    write_campaign(campaign, tmp_path / "c")
    runs = [tmp_path / "c" / "runs" / f"{s}.gz" for s in campaign.runs.systems[:2]]
    return campaign, tmp_path / "c", [*runs, "--metric", "nDCG@5", "--scale", "graded:2"]


@pytest.mark.parametrize("verb", ["evaluate", "next"])
def test_runs_widen_the_pool(probeval, files, verb):
    campaign, folder, asked = files
    said = probeval(verb, *asked, "--pool", folder / "runs", "--outside", "--model", "uniform")
    assert said.code == 0, said.err
    assert f"Ideal: {len(campaign.runs.pool)} pairs of the pool, " in said.err
    assert "more relevant documents per query, estimated." in said.err


def test_json_has_the_ideal(probeval, files):
    campaign, folder, asked = files
    said = probeval("evaluate", *asked, "--pool", folder / "runs", "--model", "uniform", "--format", "json")
    ideal = json.loads(said.out)["ideal"]
    assert ideal["pairs"] == len(campaign.runs.pool) > ideal["retrieved"]
    assert ideal["outside"] is None


def test_without_a_model_there_is_no_pool(probeval, files):
    _, folder, asked = files
    said = probeval("evaluate", *asked, "--model", "none", "--outside", "--qrels", folder / "qrels.txt")
    assert said.code == 1
    assert "--outside is for a model; with --model none only judged pairs count." in said.err
    said = probeval("report", *asked, "--policy", "random", "--qrels", folder / "qrels.txt", "--outside")
    assert said.code == 1
    assert "--outside is for an evaluation, not for a simulation with --policy." in said.err
