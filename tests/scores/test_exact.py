"""Exact routes against brute force on small pools, and against draws on larger ones."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from probeval.data import Scale
from probeval.errors import MetricError, ScoreError
from probeval.metrics import parse
from probeval.relevance.distribution import ProbabilityTable
from probeval.scores import evaluate
from probeval.scores import exact as exact_module
from probeval.scores.exact import enumerate_scores, poisson_binomial

SMALL = ["AP", "AP@2", "AP@9", 'AP(norm="min")@2', 'AP(norm="perfect")@2', "RR", "RR@2", "ERR", "ERR@2",
         'ERR(norm="perfect")@2', "P@2", "nDCG@2", "R@2", "Bpref", "Rprec", "INST", 'RBP(norm="ideal")']  # fmt: skip
CLOSED = ["AP", "AP@3", "AP(rel=2)@9", 'AP(norm="min")@3', 'AP(norm="perfect")', "AP(rel=0)", "AP(rel=5)", "RR",
          "RR(rel=2)@3", "ERR", "ERR@3", 'ERR(gain="linear", max=4)', 'ERR(norm="perfect")@3']  # fmt: skip
N = 20_000


@pytest.fixture
def only_closed(monkeypatch):
    """No pool is small enough to list its gradings."""
    monkeypatch.setattr(exact_module, "LIMIT", 0.5)


@pytest.mark.parametrize("name", SMALL)
def test_enumeration_is_the_whole_joint_distribution(tiny, believe, worlds, name):
    runs, judgments = tiny
    relevance = believe(runs, Scale.binary(), 5, judgments=judgments)
    chance, score = worlds(runs, relevance, parse(name))  # the queries together; enumeration takes them one by one
    assert chance.sum() == pytest.approx(1, abs=1e-12)
    means = score.mean(axis=2)
    centre = chance @ means
    scores = evaluate(runs, relevance, name, method="exact")
    np.testing.assert_allclose(scores.mean, centre, atol=1e-13)
    joint = ((means - centre) * chance[:, None]).T @ (means - centre)
    np.testing.assert_allclose(scores.covariance, joint, atol=1e-13)
    by_query = np.einsum("w,wsq->sq", chance, score)
    np.testing.assert_allclose(scores.joint.query_mean, by_query, atol=1e-13)
    spread = np.einsum("w,wsq->sq", chance, (score - by_query) ** 2)
    np.testing.assert_allclose(scores.joint.query_variance, spread, atol=1e-13)
    between = sum(p * np.atleast_2d(np.cov(world)) for p, world in zip(chance, score, strict=True)) / len(runs.queries)
    np.testing.assert_allclose(scores.joint.between, between, atol=1e-13)


@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms_against_enumeration(part_judged, believe, only_closed, name):
    runs = part_judged.runs.top(3)
    relevance = believe(runs, Scale.graded(2), 6, judgments=part_judged.judgments)
    closed = evaluate(runs, relevance, name, method="exact")
    listed = enumerate_scores(runs, relevance, parse(name))
    np.testing.assert_allclose(closed.joint.query_mean, listed.query_mean, atol=1e-12)
    np.testing.assert_allclose(closed.joint.query_variance, listed.query_variance, atol=1e-12)
    np.testing.assert_allclose(np.diag(closed.covariance), np.diag(listed.covariance), atol=1e-12)
    np.testing.assert_allclose(np.diag(closed.joint.between), np.diag(listed.between), atol=1e-12)


@pytest.mark.parametrize("draws", [None, 200])
@pytest.mark.parametrize("name", ["AP", "AP@4", 'AP(norm="min")@4', "RR", "ERR", "ERR@3"])
def test_closed_forms_against_draws_on_a_larger_pool(small, believe, only_closed, name, draws):
    order = np.random.default_rng(1).permutation(len(small.judgments))
    judged = small.judgments.take(order[:20])
    relevance = believe(small.runs, Scale.graded(2), 7, draws=draws, judgments=judged)
    closed = evaluate(small.runs, relevance, name, method="exact")
    drawn = evaluate(small.runs, relevance, name, method="draws", n=N, rng=np.random.default_rng(3))
    variance = np.diag(closed.covariance)
    assert np.all(np.abs(drawn.mean - closed.mean) <= 5 * np.sqrt(variance / N))
    # Five standard errors of a variance, sqrt(2/N), and the spare degree of freedom of 200 posterior draws.
    np.testing.assert_allclose(np.diag(drawn.covariance), variance, rtol=0.06)
    assert np.all(
        np.abs(drawn.joint.query_mean - closed.joint.query_mean) <= 6 * np.sqrt(closed.joint.query_variance / N) + 1e-12
    )


def test_enumerated_covariances_against_draws(part_judged, believe):
    runs = part_judged.runs.top(3)
    relevance = believe(runs, Scale.binary(), 8)
    listed = enumerate_scores(runs, relevance, parse("nDCG@3"))
    drawn = evaluate(runs, relevance, "nDCG@3", n=N, rng=np.random.default_rng(4))
    variance = np.diag(listed.covariance)
    error = np.sqrt((np.outer(variance, variance) + listed.covariance**2) / N)
    assert np.all(np.abs(drawn.covariance - listed.covariance) <= 5 * error)
    np.testing.assert_allclose(drawn.joint.between, listed.between, rtol=0.1, atol=2e-4)


def test_enumeration_in_pieces_is_the_same(tiny, believe, monkeypatch):
    runs, _ = tiny
    relevance = believe(runs, Scale.graded(2), 9)
    whole = enumerate_scores(runs, relevance, parse("AP"))
    monkeypatch.setattr(exact_module, "BATCH", 50)  # a few gradings at a time
    pieces = enumerate_scores(runs, relevance, parse("AP"))
    np.testing.assert_allclose(pieces.covariance, whole.covariance, atol=1e-15)
    np.testing.assert_allclose(pieces.mean, whole.mean, atol=1e-15)


def test_queries_with_nothing_open_are_certain(tiny, believe):
    from probeval.data import Judgments

    runs, _ = tiny
    judged = Judgments.rows(["q2"] * 3, ["e1", "e2", "e3"], [1, 0, 1])
    joint = enumerate_scores(runs, believe(runs, Scale.binary(), 1, judgments=judged), parse("AP"))
    assert np.all(joint.query_variance[:, 1] == 0)
    assert np.all(joint.query_variance[:, 0] > 0)
    assert joint.query_mean[0, 1] == pytest.approx(0.5)  # e1 at the first of two ranks, e3 missed


def test_the_number_of_relevant_documents():
    rng = np.random.default_rng(1)
    p = rng.random((3, 5))
    found = poisson_binomial(p)
    expected = np.zeros((3, 6))
    for world in product([0, 1], repeat=5):
        expected[:, sum(world)] += np.prod(np.where(world, p, 1 - p), axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-15)
    # P@5 of these five is that number over 5: its moments are those of the linear route.
    np.testing.assert_allclose(found @ np.arange(6) / 5, p.mean(axis=1), atol=1e-15)


def test_marginal_routes_say_that_they_are(campaign, believe, only_closed):
    scores = evaluate(campaign.runs, believe(campaign.runs, Scale.graded(2), 1), "AP", method="exact")
    a, b = (scores[s] for s in scores.systems[:2])
    assert a.variance() > 0
    low, high = a.interval()
    assert low < a.mean() < high
    assert scores.with_target("population")["system-01"].variance() > a.variance()
    with pytest.raises(ScoreError, match="marginal: differences need method='draws'"):
        (a - b).variance()
    with pytest.raises(ScoreError, match="need method='draws'"):
        scores.ranking()
    with pytest.raises(ScoreError, match="marginal"):
        scores.difference_moments()


def test_no_exact_form_on_a_large_pool(small, believe):
    with pytest.raises(MetricError, match=r"nDCG@8 has no exact form on a pool of this size. Use method='draws'"):
        evaluate(small.runs, believe(small.runs, Scale.graded(2), 1), "nDCG@8", method="exact")


def test_very_many_open_pairs_do_not_overflow(believe):
    from probeval.data import Runs

    n = 2000
    runs = Runs.rows(["a"] * n, ["q"] * n, [f"d{i:04d}" for i in range(n)])
    relevance = believe(runs, Scale.binary(), 1)
    scores = evaluate(runs, relevance, "RR", method="exact")
    p = relevance.probability[:, 1]
    none_above = np.cumprod(np.append(1, 1 - p[:-1]))
    assert scores.mean[0] == pytest.approx(float((p * none_above / np.arange(1, n + 1)).sum()), abs=1e-12)


def test_linear_measures_take_the_route_of_moments(part_judged, believe):
    relevance = believe(part_judged.runs, Scale.graded(2), 1, draws=5)
    by_moments, by_exact = (evaluate(part_judged.runs, relevance, "P@3", method=m) for m in ("moments", "exact"))
    np.testing.assert_array_equal(by_moments.covariance, by_exact.covariance)


def test_the_posterior_part_of_a_closed_form(tiny, believe, only_closed):
    # Given the parameters queries are independent; over them they hang together.
    runs, _ = tiny
    relevance = believe(runs, Scale.binary(), 2, draws=7)
    scores = evaluate(runs, relevance, "RR", method="exact")
    parts = [
        enumerate_scores(runs, replace(relevance, source=ProbabilityTable(p)), parse("RR"))
        for p in relevance.probability
    ]
    expected = np.mean([np.diag(p.covariance) for p in parts], axis=0) + np.var([p.mean for p in parts], axis=0, ddof=1)
    np.testing.assert_allclose(np.diag(scores.covariance), expected, atol=1e-14)
