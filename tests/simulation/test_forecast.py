"""Forecasts: bookkeeping against conditioning by hand, and courses against what the model itself would see."""

from __future__ import annotations

import numpy as np
import pytest

from probeval.data import synthetic_campaign
from probeval.errors import SelectionError
from probeval.relevance import load_card
from probeval.selection import Judging
from probeval.simulation import Forecast, forecast
from probeval.simulation.forecast import _Course


@pytest.fixture(scope="module")
def stage():
    """A campaign with a fifth of its pairs judged."""
    campaign = synthetic_campaign(np.random.default_rng(3), systems=5, queries=8, depth=6)
    from dataclasses import replace

    known = campaign.judgments.on(campaign.runs.pool)
    some = known.take(np.arange(0, len(known), 5))
    judging = Judging(
        replace(campaign, judgments=some), load_card("text-hierarchical").model, "DCG@6", scale=known.scale()
    )
    return judging.begin()


def test_judging_takes_from_the_scores_what_conditioning_says(stage):
    knowledge = stage.knowledge
    n = len(knowledge.runs.pool)
    pairs = knowledge.dependence.between(np.arange(n)) + np.diag(knowledge.gain_moments[1])
    with_scores = pairs @ knowledge.weights
    scores = knowledge.weights.T @ with_scores
    course = _Course(stage, 0.0)
    np.testing.assert_allclose(course.scores, scores, atol=1e-12)
    chosen = np.concatenate([course.choose(4), [], []]).astype(int)
    course.judge(chosen[:2])
    course.judge(chosen[2:])
    inside = np.linalg.inv(pairs[np.ix_(chosen, chosen)])
    expected = scores - with_scores[chosen].T @ inside @ with_scores[chosen]
    np.testing.assert_allclose(course.scores, expected, atol=1e-9)
    left = np.diag(pairs - pairs[:, chosen] @ inside @ pairs[chosen])
    rest = np.setdiff1d(np.flatnonzero(stage.open), chosen)
    np.testing.assert_allclose(course.variance[rest], left[rest], atol=1e-9)


def test_with_everything_judged_all_is_certain(stage):
    ahead = forecast(stage, target=1.0, paths=20, batch=7)
    assert ahead.judged[-1] == ahead.pool
    assert ahead.confidence[:, -1].min() > 1 - 1e-6
    assert ahead.halfwidth[-1] < 1e-4
    assert np.all(np.diff(ahead.halfwidth) <= 1e-12)


def test_noise_leaves_something_open(stage):
    sure, noisy = (forecast(stage, target=1.0, paths=20, noise=noise) for noise in (0.0, 0.3))
    assert noisy.halfwidth[-1] > sure.halfwidth[-1] + 1e-3


def test_means_move_as_a_martingale(stage):
    # What is forecast of the mean confidence starts where the stage stands, and rises on average.
    ahead = forecast(stage, paths=300)
    mean = ahead.confidence.mean(axis=0)
    assert abs(mean[0] - stage.ranking.confidence) < 0.02
    assert np.all(np.diff(mean) > -0.01)


def test_passage_is_the_first_that_lasts():
    judged = np.arange(0, 60, 10)
    paths = np.array([[0.5, 0.96, 0.9, 0.96, 0.97, 0.98], [0.96, 0.96, 0.96, 0.5, 0.96, 0.9]])
    ahead = Forecast(judged, paths, np.linspace(0.2, 0.1, 6), 100)
    np.testing.assert_array_equal(ahead.passage(0.95, lasts=20), [30, 0])
    np.testing.assert_array_equal(ahead.passage(0.99, lasts=20), [100, 100])
    assert ahead.needed_halfwidth(0.15) == 30
    assert ahead.needed_halfwidth(0.05) == 100


def test_the_same_seed_gives_the_same_course(stage):
    one, two = (forecast(stage, paths=10, rng=np.random.default_rng(4)) for _ in range(2))
    np.testing.assert_array_equal(one.confidence, two.confidence)


def test_a_target_is_a_confidence(stage):
    with pytest.raises(SelectionError, match=r"between \.5 and 1"):
        forecast(stage, target=2)
