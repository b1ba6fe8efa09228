"""Prediction-powered estimates against other calculations, and the coverage of their intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from probeval.data import Judgments, Runs, Scale
from probeval.errors import ScoreError
from probeval.metrics import parse
from probeval.relevance import RelevanceDistribution, SyntheticCampaign
from probeval.scores import evaluate
from probeval.scores.ppi import prediction_powered

METRIC = parse("DCG@6")


def campaign(seed=3, noise=0.7, **sizes):
    """Runs, the grades of their pool, and noisy, too generous predictions of them as probabilities."""
    rng = np.random.default_rng(seed)
    made = SyntheticCampaign(**{"systems": 6, "queries": 12, "depth": 6, "docs": 20, **sizes}).draw(rng)
    runs, scale = made.runs, made.scale()
    grades = made.judgments.on(runs.pool).codes(scale)
    guess = np.clip(np.round(grades + rng.normal(0.3, noise, len(grades))), 0, len(scale) - 1).astype(int)
    return runs, scale, grades, np.eye(len(scale))[guess]


def judged(runs, scale, grades, chance, pairs):
    judgments = Judgments.coded(runs.pool, np.asarray(pairs), scale.values[grades[pairs]])
    return RelevanceDistribution.of(runs.pool, scale, chance, judgments=judgments)


def by_loops(runs, scale, grades, chance, pairs, tuning):
    """The estimates of every system, one list entry at a time."""
    weights, gains = METRIC.weights(scale, runs.depth), METRIC.gains(scale)
    out = []
    for system in range(len(runs.systems)):
        everything, few, total, seen = 0.0, 0.0, 0.0, 0.0
        for query in range(len(runs.queries)):
            for rank in range(runs.depth):
                pair = runs.pairs[system, query, rank]
                if pair < 0:
                    continue
                predicted = chance[pair] @ gains
                everything += weights[rank] * predicted
                total += weights[rank]
                if pair in pairs:
                    seen += weights[rank]
                    few += weights[rank] * (gains[grades[pair]] - tuning * predicted)
        out.append((tuning * everything + total * few / seen) / len(runs.queries))
    return out


@pytest.mark.parametrize("tuning", [0.0, 0.4, 1.0])
def test_estimates_by_loops(tuning):
    # With 0 the classical (Hájek) mean, with 1 plain PPI.
    runs, scale, grades, chance = campaign()
    pairs = np.random.default_rng(0).permutation(len(grades))[:80]
    found = prediction_powered(runs, judged(runs, scale, grades, chance, pairs), METRIC, tuning=tuning)
    np.testing.assert_allclose(found.mean, by_loops(runs, scale, grades, chance, set(pairs), tuning), atol=1e-12)
    np.testing.assert_allclose(found.query_mean.mean(axis=1), found.mean)


def test_one_system_of_equal_weights_is_the_mean_of_the_paper():
    # Angelopoulos, Duchi and Zrnic (2023): the n judged pairs and the N others are two samples, and
    # lambda = Cov(y, f) / ((1 + n/N) Var(f)). A pool that holds both gives the same estimate.
    rng = np.random.default_rng(5)
    pool, n = 200, 60
    runs = Runs.rows(["a"] * pool, ["q"] * pool, [f"d{i:03}" for i in range(pool)])
    truth = rng.integers(0, 2, pool)
    guess = np.where(rng.random(pool) < 0.8, truth, 1 - truth)
    pairs = rng.permutation(pool)[:n]
    others = np.setdiff1d(np.arange(pool), pairs)
    relevance = judged(runs, Scale.binary(), truth, np.eye(2)[guess], pairs)
    found = prediction_powered(runs, relevance, parse(f"P@{pool}"))
    y, f, rest = truth[pairs].astype(float), guess[pairs].astype(float), guess[others].astype(float)
    tuning = np.cov(y, f)[0, 1] / guess.var(ddof=1) / (1 + n / (pool - n))
    assert found.mean[0] == pytest.approx(y.mean() + tuning * (rest.mean() - f.mean()), abs=1e-12)
    # The variance is that of a simple random sample without replacement.
    error = y - tuning * (1 + n / (pool - n)) * f
    assert found.covariance[0, 0] == pytest.approx((1 - n / pool) * error.var(ddof=1) / n, rel=1e-9)


def test_everything_judged_is_exact():
    runs, scale, grades, chance = campaign()
    scores = evaluate(runs, judged(runs, scale, grades, chance, np.arange(len(grades))), METRIC, method="ppi")
    exact = evaluate(runs, judged(runs, scale, grades, chance, np.arange(len(grades))), METRIC)
    np.testing.assert_allclose(scores.mean, exact.mean, atol=1e-12)
    np.testing.assert_allclose(scores.joint.query_mean, exact.joint.query_mean, atol=1e-12)
    assert np.abs(scores.covariance).max() < 1e-20
    assert np.abs(scores.joint.query_variance).max() < 1e-20


def test_perfect_predictions_need_no_correction():
    runs, scale, grades, _ = campaign()
    pairs = np.random.default_rng(1).permutation(len(grades))[:90]
    scores = evaluate(runs, judged(runs, scale, grades, np.eye(len(scale))[grades], pairs), METRIC, method="ppi")
    truth = evaluate(runs, judged(runs, scale, grades, np.eye(len(scale))[grades], np.arange(len(grades))), METRIC)
    plain = prediction_powered(runs, judged(runs, scale, grades, np.eye(len(scale))[grades], pairs), METRIC, tuning=1)
    np.testing.assert_allclose(plain.mean, truth.mean, atol=1e-12)
    assert np.abs(plain.covariance).max() < 1e-20
    assert np.abs(scores.mean - truth.mean).max() < 0.05  # tuned by a covariance that is estimated


def test_predictions_that_say_nothing_leave_the_classical_mean():
    runs, scale, grades, _ = campaign()
    even = np.full((len(grades), len(scale)), 1 / len(scale))
    relevance = judged(runs, scale, grades, even, np.random.default_rng(1).permutation(len(grades))[:60])
    tuned, classical = (
        prediction_powered(runs, relevance, METRIC),
        prediction_powered(runs, relevance, METRIC, tuning=0),
    )
    np.testing.assert_allclose(tuned.mean, classical.mean)
    np.testing.assert_allclose(tuned.covariance, classical.covariance)


def test_without_judgments_predictions_stand_and_nothing_is_certain():
    runs, scale, _, chance = campaign()
    relevance = RelevanceDistribution.of(runs.pool, scale, chance)
    found, plain = (evaluate(runs, relevance, METRIC, method=m) for m in ("ppi", "moments"))
    np.testing.assert_allclose(found.mean, plain.mean)
    # Every gain at either end of the scale with probability 1/2.
    ends = np.zeros_like(chance)
    ends[:, [0, -1]] = 0.5
    widest = evaluate(runs, RelevanceDistribution.of(runs.pool, scale, ends), METRIC)
    np.testing.assert_allclose(found.covariance, widest.covariance, atol=1e-15)
    np.testing.assert_allclose(found.joint.query_variance, widest.joint.query_variance, atol=1e-15)


def test_differences_use_the_covariance_of_shared_documents():
    runs, scale, grades, chance = campaign()
    twice = replace(runs, systems=("a", "b"), pairs=runs.pairs[[0, 0]], scores=runs.scores[[0, 0]], teams=None)
    for n in (0, 40):
        relevance = judged(runs, scale, grades, chance, np.random.default_rng(2).permutation(len(grades))[:n])
        scores = evaluate(twice, relevance, METRIC, method="ppi")
        assert (scores["a"] - scores["b"]).variance() == pytest.approx(0, abs=1e-18)
        assert scores["a"].variance() > 0


def test_a_posterior_is_averaged():
    runs, scale, grades, chance = campaign()
    pairs = np.random.default_rng(2).permutation(len(grades))[:40]
    drawn = np.stack([chance, np.full_like(chance, 1 / len(scale))])
    one, two = (
        prediction_powered(runs, judged(runs, scale, grades, c, pairs), METRIC) for c in (drawn, drawn.mean(axis=0))
    )
    np.testing.assert_allclose(one.mean, two.mean)


@pytest.mark.parametrize("metric", ["nDCG@6", "AP@6", "RR@6", "ERR@6"])
def test_other_measures_are_refused(metric):
    runs, scale, _, chance = campaign()
    with pytest.raises(ScoreError, match=f"ppi is for weighted sums of gains, such as DCG@10.*; {metric} is none"):
        evaluate(runs, RelevanceDistribution.of(runs.pool, scale, chance), metric, method="ppi")


def coverage(tuning, share, samples=500, **sizes):
    """The share of 95% intervals with the true score and, for differences, with the true difference."""
    runs, scale, grades, chance = campaign(systems=8, queries=30, **sizes)
    true = evaluate(runs, judged(runs, scale, grades, chance, np.arange(len(grades))), METRIC).mean
    rng = np.random.default_rng(12)
    a, b = np.triu_indices(len(true), k=1)
    inside, apart, error = [], [], []
    for _ in range(samples):
        pairs = rng.permutation(len(grades))[: int(share * len(grades))]
        found = prediction_powered(runs, judged(runs, scale, grades, chance, pairs), METRIC, tuning=tuning)
        own = np.diag(found.covariance)
        inside.append(np.abs(found.mean - true) <= 1.96 * np.sqrt(own))
        sd = np.sqrt(np.maximum(own[a] + own[b] - 2 * found.covariance[a, b], 0))
        apart.append(np.abs(found.mean[a] - found.mean[b] - true[a] + true[b]) <= 1.96 * sd + 1e-12)
        error.append((found.mean - true) ** 2)
    return np.mean(inside), np.mean(apart), np.mean(error)


# Systems share documents: 500 samples count as no more than 500 intervals, with sd (.95 x .05 / 500)^.5 = .0097.
THREE_SD = 3 * np.sqrt(0.95 * 0.05 / 500)


@pytest.mark.validation
@pytest.mark.parametrize("tuning", [None, 0.0, 1.0])
def test_intervals_cover(tuning):
    inside, apart, _ = coverage(tuning, 0.3)
    assert inside == pytest.approx(0.95, abs=THREE_SD)
    assert apart == pytest.approx(0.95, abs=THREE_SD)


@pytest.mark.validation
def test_tuning_beats_both_ends_or_equals_the_better():
    tuned, classical, plain = (coverage(t, 0.3, noise=1.2)[2] for t in (None, 0.0, 1.0))
    assert tuned < 1.05 * min(classical, plain)
