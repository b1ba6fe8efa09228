"""`--inference nuts`: the second inference by the same door, and its warnings."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest

from probeval.data import write_campaign, write_qrels
from probeval.relevance import synthetic_campaign
from probeval.relevance.nuts import fit as nuts

pytestmark = pytest.mark.bayes


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A campaign folder, with a third of the judgments in few.txt beside."""
    campaign = synthetic_campaign(seed=7, systems=5, queries=6, depth=8, docs=20, groups=3)
    path = tmp_path_factory.mktemp("campaign")
    write_campaign(campaign, path)
    order = np.random.default_rng(1).permutation(len(campaign.judgments))
    write_qrels(path / "few.txt", campaign.judgments.take(order[: len(order) // 3]))
    return path


def test_only_a_hierarchical_model_is_sampled(probeval, folder):
    said = probeval("evaluate", folder / "runs", "--metric", "DCG@5", "--model", "uniform", "--inference", "nuts")
    assert said.code == 1
    assert "Only a hierarchical model has a posterior to sample, and 'uniform' is none." in said.err


@pytest.fixture
def hasty(monkeypatch):
    """A sampler that stops long before it has mixed."""
    monkeypatch.setattr(nuts, "fit_nuts", partial(nuts.fit_nuts, draws=30, tune=30))


@pytest.mark.slow
def test_nuts_by_its_door_and_its_warnings_reach_the_user(probeval, folder, hasty):
    few = ("--qrels", folder / "few.txt", "--metric", "DCG@5", "--format", "json")
    sampled = probeval("evaluate", folder / "runs", *few, "--inference", "nuts")
    assert "NUTS did not sample well" in sampled.err
    by_nuts, by_laplace = (json.loads(said.out) for said in (sampled, probeval("evaluate", folder / "runs", *few)))
    # The sampler is part of the result, and of what people read.
    checked = by_nuts.pop("diagnostics")
    assert checked.keys() == {"rhat", "ess", "divergences"}
    assert f"sampled by NUTS: R-hat {checked['rhat']:.3f}" in sampled.err
    assert by_nuts.keys() == by_laplace.keys()
    means = [{row["system"]: row["mean"] for row in found["systems"]} for found in (by_nuts, by_laplace)]
    assert means[0] != means[1]
    for system, mean in means[0].items():
        assert mean == pytest.approx(means[1][system], abs=0.1)


@pytest.mark.slow
def test_a_report_by_nuts(probeval, folder, hasty, tmp_path):
    out = tmp_path / "report.html"
    few = ("--qrels", folder / "few.txt", "--metric", "DCG@5", "--draws", "50", "-o", out)
    said = probeval("report", folder / "runs", *few, "--inference", "nuts")
    assert said.code == 0, said.err
    assert said.err.count("NUTS did not sample well") == 1  # sampled once: forecasts and milestones are refits
    assert out.stat().st_size > 10_000
