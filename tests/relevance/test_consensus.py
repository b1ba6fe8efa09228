"""Disagreements between limits, and grades of the consensus of several people."""

from dataclasses import replace

import numpy as np
import pytest

import probeval
from probeval.data import Judgments, Pool, Scale
from probeval.errors import ModelError
from probeval.relevance import RelevanceDistribution, synthetic_campaign

SCALE = Scale.graded(2)


@pytest.fixture(scope="module")
def votes():
    """Three people grade every pair of a campaign, each with slips."""
    campaign = synthetic_campaign(seed=5, systems=6, queries=12, depth=5)
    rng = np.random.default_rng(0)
    pool = campaign.runs.top(5).pool
    grades = campaign.judgments.on(pool).grades()
    rows = [
        (pair, float(np.clip(grades[pair] + rng.choice([-1, 0, 0, 0, 1]), 0, 2)), who)
        for who in ("ann", "bob", "eve")
        for pair in range(len(pool))
    ]
    pair, grade, who = zip(*rows, strict=True)
    judgments = Judgments.coded(pool, np.array(pair), np.array(grade), assessors=list(who))
    return replace(campaign, judgments=judgments), grades


def test_a_pair_whose_assessors_differ_lies_between_their_grades():
    pool = Pool.of(["q", "q"], ["d1", "d2"])
    judged = Judgments.rows(["q", "q"], ["d1", "d1"], [1, 2], assessors=["ann", "bob"])
    found = RelevanceDistribution.of(pool, SCALE, np.full((2, 3), 1 / 3), judgments=judged)
    np.testing.assert_allclose(found.probability, [[0, 0.5, 0.5], [1 / 3] * 3], atol=1e-9)
    assert not found.certain.any()
    mean, variance = found.moments(SCALE.gains)
    np.testing.assert_allclose((mean[0], variance[0]), (1.5, 0.25), atol=1e-9)


def test_adjudication_makes_it_certain_again():
    pool = Pool.of(["q"], ["d1"])
    judged = Judgments.rows(["q", "q"], ["d1", "d1"], [1, 2], assessors=["ann", "bob"])
    settled = Judgments.rows(["q"], ["d1"], [2], assessors=["eve"])
    found = RelevanceDistribution.of(pool, SCALE, np.full((1, 3), 1 / 3), judgments=judged).given(settled)
    assert found.certain.all()
    np.testing.assert_allclose(found.probability, [[1 / 3] * 3])  # the limits are gone


def test_an_evaluation_says_how_many_pairs_assessors_differ_on(votes):
    collection, _ = votes
    found = probeval.evaluate(collection, "DCG@5", model="hierarchical", scale="graded:2")
    n = int((collection.problem(depth=5, scale=SCALE).grades.high >= 0).sum())
    assert found.notes[-1].startswith(f"Assessors differ on {n} pairs")
    assert found.scores.judged == found.scores.pool - n


def test_the_consensus_is_closer_to_the_grades_than_no_vote(votes):
    collection, grades = votes
    given = {"model": "hierarchical", "scale": "graded:2", "draws": 400}
    found = probeval.evaluate(collection, "DCG@5", reference="consensus", **given)
    relevance = found.estimate.prediction.relevance
    before = probeval.evaluate(replace(collection, judgments=None), "DCG@5", **given).estimate.prediction.relevance
    after, prior = (np.mean((r.probability.mean(axis=0) @ np.arange(3) - grades) ** 2) for r in (relevance, before))
    assert after < 0.75 * prior
    assert not relevance.certain.any()


def test_under_each_draw_the_consensus_is_one_grade(votes):
    collection, _ = votes
    found = probeval.evaluate(collection, "DCG@5", model="hierarchical", scale="graded:2", reference="consensus")
    drawn = found.estimate.prediction.relevance.probability
    assert set(np.unique(drawn)) == {0.0, 1.0}
    np.testing.assert_allclose(drawn.sum(axis=-1), 1.0)
    shares = [np.mean(collection.judgments.grade == grade) for grade in range(3)]
    np.testing.assert_allclose(drawn.mean(axis=(0, 1)), shares, atol=0.03)


def test_the_consensus_needs_the_hierarchical_model(votes):
    with pytest.raises(ModelError, match="hierarchical"):
        probeval.evaluate(votes[0], "DCG@5", model="uniform", scale="graded:2", reference="consensus")
