"""Moments of linear measures against enumeration and against draws, with and without a posterior; Taylor's bias."""

from __future__ import annotations

import numpy as np
import pytest

from probeval.data import Scale
from probeval.errors import ScoreError
from probeval.metrics import REGISTRY, Metric, parse
from probeval.relevance.distribution import ProbabilityTable
from probeval.scores import evaluate

LINEAR = [str(metric) for name in sorted(REGISTRY) if (metric := Metric(name).completed(4)).is_linear]
LINEAR += [
    "CG@3", "DCG@4", 'DCG(norm="none", discount="jk")@4', 'DCG(gain="exp")@9', "RBP(p=0.5)@3", 'RBP(norm="perfect")@4',
    "INSQ(T=3)", "P(rel=2)@5", "RBP(rel=2)", 'CG(norm="none")', "SDCG@2",
]  # fmt: skip
N = 20_000
SIGMAS = 5


def within_monte_carlo_error(exact, drawn, n: int = N) -> None:
    """Means, variances and covariances of n draws are within some standard errors of the exact ones."""
    variance = np.diag(exact.covariance)
    assert np.all(np.abs(drawn.mean - exact.mean) <= SIGMAS * np.sqrt(variance / n) + 1e-12)
    # The standard error of a covariance of near-normal variables.
    error = np.sqrt((np.outer(variance, variance) + exact.covariance**2) / n)
    assert np.all(np.abs(drawn.covariance - exact.covariance) <= SIGMAS * error + 1e-15)


def test_linear_measures_are_all_here():
    assert {parse(name).name for name in LINEAR} == {"CG", "DCG", "INSQ", "P", "RBP", "SDCG"}


@pytest.mark.parametrize("name", LINEAR)
def test_against_draws(part_judged, believe, name):
    runs = part_judged.runs
    relevance = believe(runs, Scale.graded(2), 1, judgments=part_judged.judgments)
    assert 0 < relevance.certain.sum() < len(runs.pool)
    exact = evaluate(runs, relevance, name)
    assert exact.method == "moments"
    drawn = evaluate(runs, relevance, name, method="draws", n=N, rng=np.random.default_rng(1))
    within_monte_carlo_error(exact, drawn)
    np.testing.assert_allclose(drawn.joint.between, exact.joint.between, rtol=0.1, atol=1e-4)
    spread = np.sqrt(exact.joint.query_variance / N)
    assert np.all(np.abs(drawn.joint.query_mean - exact.joint.query_mean) <= SIGMAS * spread + 1e-12)
    np.testing.assert_allclose(drawn.joint.query_variance, exact.joint.query_variance, rtol=0.15, atol=1e-12)


@pytest.mark.parametrize("name", ["DCG@4", "P(rel=2)@5", "RBP"])
def test_total_covariance_against_draws(part_judged, believe, name):
    runs = part_judged.runs
    relevance = believe(runs, Scale.graded(2), 2, draws=400, judgments=part_judged.judgments)
    exact = evaluate(runs, relevance, name)
    drawn = evaluate(runs, relevance, name, method="draws", n=N, rng=np.random.default_rng(2))
    within_monte_carlo_error(exact, drawn)
    np.testing.assert_allclose(drawn.joint.between, exact.joint.between, rtol=0.1, atol=1e-4)
    # Taken as independent with the same marginals, the pairs would look far surer.
    from dataclasses import replace

    apart = evaluate(runs, replace(relevance, source=ProbabilityTable(relevance.probability.mean(axis=0))), name)
    np.testing.assert_allclose(apart.mean, exact.mean, atol=1e-12)
    assert np.all(np.diag(apart.covariance) < 0.7 * np.diag(exact.covariance))


def test_total_covariance_is_its_two_terms(tiny, believe, worlds):
    runs, judgments = tiny
    relevance = believe(runs, Scale.binary(), 3, draws=6, judgments=judgments)
    from dataclasses import replace

    metric = parse("DCG@3")
    means, inside = [], []
    for probability in relevance.probability:
        chance, score = worlds(runs, replace(relevance, source=ProbabilityTable(probability)), metric)
        mean = score.mean(axis=2)
        centre = chance @ mean
        means.append(centre)
        inside.append(((mean - centre) * chance[:, None]).T @ (mean - centre))
    scores = evaluate(runs, relevance, metric)
    np.testing.assert_allclose(scores.mean, np.mean(means, axis=0), atol=1e-14)
    np.testing.assert_allclose(scores.covariance, np.mean(inside, axis=0) + np.cov(np.array(means).T), atol=1e-14)


def test_taylor_sorts_expectations_and_so_comes_out_too_high(campaign, believe):
    # Equal beliefs: every expected list is ideal, so the Taylor score is 1 wherever k documents are retrieved.
    runs = campaign.runs
    relevance = believe(runs, Scale.binary(), 4)
    even = type(relevance).of(runs.pool, relevance.scale, np.full((len(runs.pool), 2), 0.5))
    taylor = evaluate(runs, even, "nDCG@5", method="taylor")
    drawn = evaluate(runs, even, "nDCG@5", n=4000)
    np.testing.assert_allclose(taylor.mean, 1.0, atol=1e-12)
    assert np.all(drawn.mean < 0.75)
    biased = evaluate(runs, relevance, "nDCG@5", method="taylor")
    assert np.all(biased.mean > evaluate(runs, relevance, "nDCG@5", n=4000).mean + 0.05)


def test_taylor_by_hand():
    # One list a b with P(relevant) .9, .3. X = A + B/log2(3), Y the same sorted by expectation: the same here.
    from probeval.data import Pool, Runs
    from probeval.relevance import RelevanceDistribution

    pool = Pool.of(["q", "q"], ["a", "b"])
    runs = Runs(("s",), pool, np.array([[[1, 0]]]), np.zeros((1, 1, 2)))
    p = np.array([0.9, 0.3])
    relevance = RelevanceDistribution.of(pool, Scale.binary(), np.stack([1 - p, p], axis=1))
    scores = evaluate(runs, relevance, "nDCG@2", method="taylor")
    w = 1 / np.log2(3)
    x, y = 0.3 + 0.9 * w, 0.9 + 0.3 * w
    var_x, var_y = 0.21 + 0.09 * w**2, 0.09 + 0.21 * w**2
    assert scores.mean[0] == pytest.approx(x / y, abs=1e-14)
    # Urbano (2013), Eq 8.6, without the covariance of numerator and denominator.
    assert scores.covariance[0, 0] == pytest.approx(var_x / y**2 + x**2 * var_y / y**4, abs=1e-14)


@pytest.mark.parametrize("name", ["DCG@5", "AP", "RR", 'RBP(norm="perfect")'])
def test_taylor_is_for_ratios_to_the_ideal_list(campaign, believe, name):
    with pytest.raises(ScoreError, match="Taylor route is for ratios"):
        evaluate(campaign.runs, believe(campaign.runs, Scale.graded(2), 1), name, method="taylor")
