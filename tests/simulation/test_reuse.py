"""Teams left out in turn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from probeval.data import Collection, Scale, as_judgments, as_runs
from probeval.errors import DataError
from probeval.metrics import measure, parse
from probeval.relevance import FallbackModel, Uniform, synthetic_campaign
from probeval.results import frame
from probeval.selection import Judging, fairness
from probeval.simulation import leave_teams_out
from probeval.simulation.reuse import LeftOutSystem

UNIFORM = FallbackModel([Uniform()])


@pytest.fixture(scope="module")
def small() -> Collection:
    """Team x has d2 alone, and team y d3 alone; everything is judged."""
    runs = as_runs(
        {
            "x1": {"q": {"d1": 3.0, "d2": 2.0}},
            "x2": {"q": {"d2": 3.0, "d1": 2.0}},
            "y": {"q": {"d1": 3.0, "d3": 2.0}},
        }
    ).with_teams({"x1": "x", "x2": "x", "y": "y"})
    return Collection("small", runs, as_judgments({"q": {"d1": 0, "d2": 1, "d3": 0}}))


def study(collection, metric="P@2", *, depth=2, model=None):
    measured = parse(metric)
    state = None
    if model is not None:
        state = Judging.of(collection, model, measured, scale=Scale.binary(), depth=measured.cutoff or depth).begin()
    return leave_teams_out(collection, measured, scale=Scale.binary(), depth=depth, state=state)


def test_the_classical_route_by_hand(small):
    found = study(small)
    x, y = found.to_dict()["teams"]
    assert (x["team"], x["systems"], x["pairs"], x["judged"]) == ("x", 2, 1, 0.5)
    assert (x["change"], x["largest_change"]) == (-0.5, -0.5)  # d2, the only relevant document, is not judged
    assert x["accuracy"] == 0.5  # better before, tied after
    assert x["tau"] == 0
    assert (y["pairs"], y["change"], y["accuracy"], y["tau"]) == (1, 0, 1, pytest.approx(2 / 3))  # x1 and x2 are tied
    rows = frame(found.systems, LeftOutSystem).set_index("system")
    assert rows["rank"].to_dict() == {"x1": 1, "x2": 1, "y": 3}
    assert rows["left_out_rank"].to_dict() == {"x1": 1, "x2": 1, "y": 3}
    whole = found.to_dict()["routes"][0]
    assert whole["accuracy"] == pytest.approx((0.5 + 0.5 + 1) / 3)
    assert whole["change"] == pytest.approx(1 / 3)
    assert "2 of 3 judged pairs were contributed by one team alone, to depth 2." in found.sentences()[0]
    assert np.isnan(whole["coverage"])


def test_the_model_stands_beside_it(small):
    found = study(small, model=UNIFORM)
    model = [team for team in found.to_dict()["teams"] if team["route"] == "model"]
    assert [row["change"] for row in model] == [-0.25, 0.25]  # the document left out is a coin
    assert [row["coverage"] for row in model] == [1, 1]
    assert [route.route for route in found.routes] == ["classical", "model"]
    assert len(found.tables()) == 3
    # The same as fairness, which leaves out the same pairs.
    fair = fairness(Judging.of(small, UNIFORM, "P@2", scale=Scale.binary(), depth=2).begin().estimate).to_frame()
    assert (fair["left_out"] - fair["score"]).tolist() == [row["change"] for row in model]


def test_a_deeper_pool_has_fewer_documents_of_one_team(small):
    runs = as_runs({"x1": {"q": {"d1": 3.0, "d2": 2.0}}, "y": {"q": {"d1": 3.0, "d3": 2.0, "d2": 1.0}}})
    collection = replace(small, runs=runs)
    assert study(collection, depth=2).to_frame()["pairs"].tolist() == [1, 1]
    assert study(collection, depth=3).to_frame()["pairs"].tolist() == [0, 1]


def test_full_scores_are_the_classical_ones():
    campaign = synthetic_campaign(seed=3, systems=6, queries=5, depth=5)
    found = leave_teams_out(campaign, parse("nDCG@5"), scale=campaign.scale(), depth=5)
    rows = frame(found.systems, LeftOutSystem).set_index("system")["score"]
    full = measure(campaign.runs, campaign.judgments, "nDCG@5").values.mean(axis=1)
    assert rows[list(campaign.runs.systems)].tolist() == pytest.approx(full.tolist())
    assert found.to_dict()["teams"][0]["route"] == "classical"


def test_one_team_has_none_to_be_compared_with(small):
    alone = replace(small, runs=replace(small.runs, teams=("x", "x", "x")))
    with pytest.raises(DataError, match="All systems are of one team, 'x'"):
        study(alone)
    with pytest.raises(DataError, match="Without judgments"):
        study(replace(small, judgments=None))
