"""Relevant documents outside the pool: nothing without them, the learned numbers with them, and the same bytes."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import probeval
from probeval.data import Scale
from probeval.errors import ModelError, ScoreError
from probeval.metrics import measure
from probeval.relevance import FallbackModel, Uniform, distribution, synthetic_campaign
from probeval.relevance.learning.outside import fit_outside
from probeval.relevance.outside import OutsideModel, exact_counts, load_outside, outside_streams
from probeval.scores import draws as module
from probeval.scores import evaluate
from probeval.streams import query_streams

NONE = OutsideModel((-50.0, 0.0, 0.0, 0.0, 0.0, 0.0), 0.0, 2.0)


@pytest.fixture(scope="module")
def campaign():
    return synthetic_campaign(seed=3, systems=12, queries=8, depth=10)


@pytest.fixture(scope="module")
def two(campaign):
    """Two runs of the campaign, with all of its judgments."""
    return replace(campaign, runs=campaign.runs.select(campaign.runs.systems[:2]))


def believed(collection, model, *, scale=None):
    scale = scale or collection.scale()
    relevance = FallbackModel([Uniform()]).predict(collection.problem(depth=10, scale=scale))
    return relevance.with_outside(model.on(collection.runs.top(10), scale, np.random.default_rng(1)))


@pytest.mark.parametrize("metric", ["nDCG@10", "AP", "R@5", "DCG@10", "P@5"])
def test_without_documents_outside_nothing_changes(two, metric):
    blind = replace(two, judgments=None)
    relevance = FallbackModel([Uniform()]).predict(blind.problem(depth=10, scale=two.scale()))
    with_none = relevance.with_outside(NONE.on(two.runs, two.scale(), np.random.default_rng(1)))
    plain, none = (
        evaluate(two.runs, r, metric, method="draws", n=50, rng=np.random.default_rng(2))
        for r in (relevance, with_none)
    )
    assert plain.joint.draws.tobytes() == none.joint.draws.tobytes()


def test_where_the_pool_is_everything_the_score_is_that_of_all_judgments(campaign):
    evaluation = probeval.evaluate(campaign, "nDCG@10", outside=NONE, model="uniform")
    classical = measure(campaign.runs, campaign.judgments, "nDCG@10")
    np.testing.assert_allclose(evaluation.scores.mean, classical.values.mean(axis=1), atol=1e-12)


def test_known_documents_outside_count_as_before_and_more_lower_the_score(two):
    judged = believed(two, NONE)
    classical = measure(two.runs, two.judgments, "nDCG@10")
    assert judged.beyond.any()
    scores = evaluate(two.runs, judged, "nDCG@10", n=20)
    np.testing.assert_allclose(scores.mean, classical.values.mean(axis=1), atol=1e-12)
    more = evaluate(two.runs, believed(two, load_outside()), "nDCG@10", n=200)
    assert (more.mean < scores.mean).all()
    assert (more.standard_deviation > 0).all()
    assert scores.ideal.outside < 1e-9
    assert believed(replace(two, judgments=None), load_outside(), scale=two.scale()).typically_outside() > 1


def test_draws_have_the_mean_and_the_variance_of_the_model():
    runs = probeval.as_runs({"a": {"q": {"d1": 2.0, "d2": 1.0}}})
    model = OutsideModel((2.0, 0.5, 0.0, 0.0, 0.0, -0.5), 0.0, 4.0)
    outside = replace(model.on(runs, Scale.graded(2), np.random.default_rng(1)), mean=np.array([[1.0, 0.5]]))
    inside = np.tile([[2, 2, 1]], (20_000, 1, 1))
    drawn = exact_counts(outside.sample(inside, outside_streams(query_streams(1, slice(0, 1)))))[:, 0, 1:]
    general, own = np.log([1.05, 0.55]), np.log([1.5 / 1.5, 1.5 / 1.0])
    mean = np.exp(general + 2.0 + 0.5 * own - 0.5 * np.array([-0.25, 0.25]))
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=5 * np.sqrt(4 * mean.max() / 20_000))
    np.testing.assert_allclose(drawn.var(axis=0) / mean, 4.0, rtol=0.06)


def test_batches_change_nothing_and_the_same_seed_gives_the_same_bytes(two, monkeypatch):
    relevance = believed(replace(two, judgments=None), load_outside(), scale=two.scale())
    whole, again = (evaluate(two.runs, relevance, "AP", n=40, rng=np.random.default_rng(5)) for _ in range(2))
    assert whole.joint.draws.tobytes() == again.joint.draws.tobytes()
    monkeypatch.setattr(module, "BATCH", 300)
    monkeypatch.setattr(distribution, "BLOCK", 200)
    pieces = evaluate(two.runs, relevance, "AP", n=40, rng=np.random.default_rng(5))
    np.testing.assert_allclose(pieces.joint.draws, whole.joint.draws, atol=1e-15)


def test_the_mean_inside_follows_the_judgments(two):
    blind = believed(replace(two, judgments=None), load_outside(), scale=two.scale())
    judged = blind.given(two.judgments)
    codes = two.judgments.codes_on(two.runs.pool, two.scale())
    shares = np.bincount(codes, minlength=len(two.scale())) / len(two.runs.queries)
    np.testing.assert_allclose(judged.outside.mean[0], shares[1:], atol=1e-12)
    np.testing.assert_allclose(blind.mean_counts().sum(), len(two.runs.pool) / len(two.runs.queries), atol=1e-9)


def test_numbers_are_learned_back_from_campaigns():
    past = [synthetic_campaign(seed=i, systems=8, queries=6, depth=10) for i in range(3)]
    fitted = fit_outside(past)
    assert fitted == fit_outside(past)  # the same seed, the same model
    assert fitted.coefficients[1] > 0  # queries with more inside have more outside
    assert fitted.coefficients[2] < 0  # more runs leave fewer outside
    assert OutsideModel.from_dict(json.loads(json.dumps(fitted.to_dict()))) == fitted


def test_what_cannot_be_is_refused(two, campaign):
    with pytest.raises(ScoreError, match="method='draws', not 'exact'"):
        evaluate(two.runs, believed(two, load_outside()), "AP", method="exact")
    with pytest.raises(ModelError, match="at most 6 grades, not on fine"):
        load_outside().on(two.runs, Scale.parse("fine"), np.random.default_rng(1))
    with pytest.raises(ModelError, match="at least three"):
        fit_outside([campaign])
    with pytest.raises(ModelError, match="6 coefficients"):
        OutsideModel((1.0,), 1.0, 2.0)
