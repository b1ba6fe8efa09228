"""Forecasts: trajectories on truths drawn from the model, and what is read off them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from probeval.errors import SelectionError
from probeval.relevance import load_card, synthetic_campaign
from probeval.selection import Judging
from probeval.simulation import Forecast, forecast


@pytest.fixture(scope="module")
def state():
    """A campaign with a fifth of its pairs judged."""
    campaign = synthetic_campaign(seed=3, systems=5, queries=8, depth=6)
    known = campaign.judgments.on(campaign.runs.pool)
    some = known.take(np.arange(0, len(known), 5))
    judging = Judging.of(
        replace(campaign, judgments=some), load_card("text-hierarchical").model, "DCG@6", scale=known.scale()
    )
    return judging.begin()


@pytest.mark.slow
def test_a_course_starts_here_and_ends_where_all_is_judged(state):
    ahead = forecast(state, target=1.0, paths=3)
    assert ahead.judged[0] == state.scores.judged
    assert ahead.judged[-1] == ahead.pool
    np.testing.assert_allclose(ahead.confidence[:, 0], state.ranking.confidence)
    np.testing.assert_allclose(ahead.confidence[:, -1], 1.0)
    np.testing.assert_allclose(ahead.halfwidth[:, -1], 0.0, atol=1e-12)
    assert len(np.unique(ahead.confidence[:, 1])) == 3  # each path has its own truth


def test_a_course_ends_when_confidence_has_held(state):
    ahead = forecast(state, target=0.6, lasts=15, paths=2)
    assert ahead.judged[-1] < ahead.pool
    assert np.all(ahead.confidence[:, -1] >= 0.6)


def test_it_looks_no_further_than_asked(state):
    assert forecast(state, target=1.0, most=20, paths=1).judged[-1] == state.scores.judged + 20


@pytest.mark.slow
def test_noise_leaves_something_open(state):
    sure, noisy = (forecast(state, target=1.0, paths=2, noise=noise) for noise in (0.0, 0.3))
    assert noisy.halfwidth[:, -1].min() > sure.halfwidth[:, -1].max() + 1e-3
    assert noisy.confidence[:, -1].max() < 1
    np.testing.assert_allclose(noisy.confidence[:, 0], sure.confidence[:, 0])  # what is judged is judged


def test_passage_is_the_first_that_lasts_between_two_steps():
    judged = np.arange(0, 60, 10)
    paths = np.array([[0.5, 0.96, 0.9, 0.96, 0.97, 0.98], [0.96, 0.96, 0.96, 0.5, 0.96, 0.9]])
    width = np.array([np.linspace(0.2, 0.1, 6)] * 2)
    ahead = Forecast(judged, paths, width, 100)
    np.testing.assert_allclose(ahead.passage(0.95, lasts=20), [20 + 10 * 5 / 6, 0])
    np.testing.assert_array_equal(ahead.passage(0.99, lasts=20), [100, 100])
    narrow = ahead.needed_halfwidth(0.15)
    assert narrow["judgments"] == pytest.approx(25)
    assert narrow["lower"] < 25 < narrow["upper"]


def test_the_interval_is_a_predictive_of_the_logarithm():
    judged = np.array([10, 20, 50, 100])
    # Passages at 20 and 50: ahead of the start by 10 and 40, whose geometric mean is 20.
    paths = np.array([[0.9, 0.95, 1.0, 1.0], [0.5, 0.6, 0.95, 1.0]])
    needed = Forecast(judged, paths, 1 - paths, 1000).needed(0.95, level=0.5, lasts=0)
    assert needed["judgments"] == pytest.approx(10 + 20)
    # The t quantile at .75 with one degree of freedom is 1, the sd of the logarithms log(4) / sqrt(2).
    # Two trajectories say that with a variance half as large again; doubt of .2 comes on top.
    reach = np.exp(np.sqrt(1.5 * np.log(4) ** 2 / 2 + 0.2**2))
    assert needed["lower"] == pytest.approx(10 + 20 / reach)
    assert needed["upper"] == pytest.approx(10 + 20 * reach)


def test_what_is_reached_needs_nothing():
    ahead = Forecast(np.array([30]), np.array([[0.99]]), np.array([[0.01]]), 100)
    assert ahead.needed(0.95) == {"judgments": 30.0, "lower": 30.0, "upper": 30.0}


@pytest.mark.slow
def test_the_same_seed_gives_the_same_course_whoever_shares_the_work(state):
    again = {"paths": 2, "target": 0.8, "most": 40}
    one, two, shared = (forecast(state, rng=np.random.default_rng(4), n_jobs=n, **again) for n in (1, 1, 2))
    np.testing.assert_array_equal(one.confidence, two.confidence)
    np.testing.assert_array_equal(one.confidence, shared.confidence)


@pytest.mark.parametrize(("options", "message"), [({"target": 2}, r"between \.5 and 1"), ({"paths": 0}, "one path")])
def test_what_cannot_be_forecast(state, options, message):
    with pytest.raises(SelectionError, match=message):
        forecast(state, **options)
