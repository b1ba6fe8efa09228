"""The mix of machine labels and judgments that a target takes."""

from __future__ import annotations

import numpy as np
import pytest

import probeval
from probeval.errors import SelectionError
from probeval.relevance import load_card
from probeval.selection import AnswerPrices, Judging
from probeval.simulation import Mix, Prices, forecast_mix


@pytest.fixture(scope="module")
def campaign() -> probeval.Collection:
    prior = load_card("text-hierarchical").model.prior
    return probeval.synthetic_campaign(seed=3, systems=4, queries=8, depth=5, prior=prior)


@pytest.mark.slow
def test_a_plan_has_the_mix_of_labels_and_judgments(campaign):
    judging = Judging.of(campaign, load_card("text-hierarchical").model, "DCG@5", explore=0.0)
    state = judging.state(campaign.judgments.take(np.arange(0, len(campaign.judgments), 9)))
    prices = AnswerPrices(0.25, {"new": 0.001})
    mix = forecast_mix(state, prices, target=0.85, alone=40.0, paths=2, rng=np.random.default_rng(1))
    assert 0 < mix.lower < mix.cost < mix.upper <= 0.25 * state.open.sum() + 0.001 * len(judging.pool)
    assert 0 <= mix.judgments <= state.open.sum()
    assert mix.labels > 0
    assert mix.alone_cost == pytest.approx(10)
    again = forecast_mix(state, prices, target=0.85, alone=40.0, paths=2, rng=np.random.default_rng(1))
    assert again.to_dict() == mix.to_dict()


def test_the_cheaper_way_comes_first_in_the_sentence():
    mix = Mix("gpt", 2400.0, 140.0, 38.6, 30.0, 50.0, 1245.0, 311.25)
    assert mix.sentences() == (
        "Cheapest mix: 2,400 labels by gpt and 140 judgments, 38.60 (30.00 to 50.00); judgments alone 1,245, 311.25.",
    )
    dear = Mix("gpt", 2400.0, 140.0, 400.0, 300.0, 500.0, 1245.0, 311.25)
    assert dear.sentences()[0].startswith("Judgments alone are expected to cost less than the mix: 2,400 labels")
    assert not Mix("gpt", 0.0, 140.0, 38.6, 30.0, 50.0, 1245.0, 311.25).is_cheaper


@pytest.mark.parametrize("settings", [{}, {"prices": Prices(label=0.1), "target": "confidence=.9,halfwidth=.1"}])
def test_a_mix_needs_a_price_of_labels_and_a_confidence(campaign, settings):
    with pytest.raises(SelectionError, match=r"--label-price.*confidence="):
        probeval.plan(campaign.runs, "DCG@5", labeller="new", scale="graded:2", **settings)
