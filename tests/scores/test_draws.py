"""Joint draws: the same whatever the batches, common to all systems, bounded in memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from probeval.data import Scale
from probeval.errors import DataError, MetricError, ScoreError
from probeval.relevance import distribution
from probeval.scores import draws as module
from probeval.scores import evaluate


@pytest.mark.parametrize("posterior", [None, 7])
def test_batches_change_nothing(campaign, believe, monkeypatch, posterior):
    relevance = believe(campaign.runs, Scale.graded(2), 1, draws=posterior)
    whole = evaluate(campaign.runs, relevance, "nDCG@5", n=50, rng=np.random.default_rng(5))
    monkeypatch.setattr(module, "BATCH", 100)  # a few draws at a time
    monkeypatch.setattr(distribution, "BLOCK", 1000)  # and a few queries
    pieces = evaluate(campaign.runs, relevance, "nDCG@5", n=50, rng=np.random.default_rng(5))
    np.testing.assert_allclose(pieces.joint.draws, whole.joint.draws, atol=1e-15)
    for name in ("mean", "covariance", "between", "query_mean", "query_variance"):
        np.testing.assert_allclose(getattr(pieces.joint, name), getattr(whole.joint, name), atol=1e-14)


def test_what_is_kept_of_the_draws_is_right(campaign, believe):
    relevance = believe(campaign.runs, Scale.graded(2), 1)
    kept = evaluate(campaign.runs, relevance, "AP", n=40, rng=np.random.default_rng(5), per_query=True)
    every = kept.joint.query_draws
    joint = evaluate(campaign.runs, relevance, "AP", n=40, rng=np.random.default_rng(5)).joint
    np.testing.assert_allclose(joint.draws, every.mean(axis=2), atol=1e-15)
    np.testing.assert_allclose(joint.mean, every.mean(axis=(0, 2)), atol=1e-15)
    np.testing.assert_allclose(joint.covariance, np.cov(every.mean(axis=2).T), atol=1e-15)
    np.testing.assert_allclose(joint.query_mean, every.mean(axis=0), atol=1e-15)
    np.testing.assert_allclose(joint.query_variance, every.var(axis=0, ddof=1), atol=1e-15)
    between = np.mean([np.cov(one) for one in every], axis=0) / len(campaign.runs.queries)
    np.testing.assert_allclose(joint.between, between, atol=1e-15)


def test_same_seed_same_draws(campaign, believe):
    relevance = believe(campaign.runs, Scale.graded(2), 1)
    one, two, other = (
        evaluate(campaign.runs, relevance, "AP", n=20, rng=np.random.default_rng(seed)).joint.draws
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)
    unseeded = evaluate(campaign.runs, relevance, "AP", n=20).joint.draws
    np.testing.assert_array_equal(unseeded, evaluate(campaign.runs, relevance, "AP", n=20).joint.draws)


def test_memory_does_not_grow_with_the_number_of_draws(campaign, believe, monkeypatch):
    relevance = believe(campaign.runs, Scale.graded(2), 1)
    monkeypatch.setattr(module, "BATCH", 20_000)

    def peak(n: int) -> int:
        tracemalloc.start()
        evaluate(campaign.runs, relevance, "nDCG@5", n=n)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(10)
    few, many = peak(2_000), peak(20_000)
    kept = 18_000 * len(campaign.runs.systems) * 8  # the draws of mean scores themselves
    assert many - few < 6 * kept


def test_systems_see_the_same_draw(tiny, believe):
    # a and b share d1 and d2 and hold them at ranks 1 and 2: P@2 of both is the same in every draw on q1.
    runs, _ = tiny
    relevance = believe(runs, Scale.binary(), 1)
    rng = np.random.default_rng(5)
    every = evaluate(runs, relevance, "P@2", method="draws", n=30, rng=rng, per_query=True).joint.query_draws
    np.testing.assert_array_equal(every[:, 0, 0], every[:, 1, 0])
    assert every[:, 0, 0].std() > 0


def test_bad_questions(campaign, believe):
    relevance = believe(campaign.runs, Scale.graded(2), 1)
    with pytest.raises(ScoreError, match="At least two draws are needed, got 1"):
        evaluate(campaign.runs, relevance, "AP", n=1)
    with pytest.raises(ScoreError, match=r"No method 'drawz': .* Did you mean 'draws'"):
        evaluate(campaign.runs, relevance, "AP", method="drawz")
    with pytest.raises(MetricError, match="P needs a cutoff"):
        evaluate(campaign.runs, relevance, "P")
    with pytest.raises(MetricError, match="not a weighted sum of gains"):
        evaluate(campaign.runs, relevance, "AP", method="moments")
    with pytest.raises(DataError, match="all of their pairs"):
        evaluate(campaign.runs, believe(campaign.runs.top(2), Scale.graded(2), 1), "AP")


def test_a_cutoff_below_the_depth_of_the_pool_leaves_the_ideal_list_whole(campaign, believe):
    # The pool of depth 5 has more to offer than that of depth 2, so nDCG@2 is lower on it.
    deep = believe(campaign.runs, Scale.graded(2), 1)
    flat = type(deep).of(deep.pool, deep.scale, np.full((len(deep.pool), 3), 1 / 3))
    shallow_runs = campaign.runs.top(2)
    shallow = type(deep).of(shallow_runs.pool, deep.scale, np.full((len(shallow_runs.pool), 3), 1 / 3))
    assert np.all(
        evaluate(campaign.runs, flat, "nDCG@2", n=2000).mean
        < evaluate(shallow_runs, shallow, "nDCG@2", n=2000).mean - 0.05
    )
    # Shallow runs on the deep pool are moved onto it.
    moved = evaluate(shallow_runs, flat, "nDCG@2", n=200).mean
    np.testing.assert_array_equal(moved, evaluate(campaign.runs, flat, "nDCG@2", n=200).mean)
