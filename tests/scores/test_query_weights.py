"""Weights of queries: against replicated queries, against enumeration, between the two routes, and weights of 0."""

from __future__ import annotations

import numpy as np
import pytest

from probeval.data import Judgments, Runs, Scale
from probeval.errors import ScoreError
from probeval.metrics import parse
from probeval.relevance import RelevanceDistribution
from probeval.scores import evaluate
from probeval.scores.scores import expected_between

WEIGHTS = np.array([3.0, 1.0, 2.0, 1.0])
N = 20_000


def some_runs(*, copies: tuple[int, ...] = (1, 1, 1, 1)) -> Runs:
    """Two systems on four queries of four documents; a query of n copies is there n times."""
    rng = np.random.default_rng(4)
    rows = []
    for query, n in enumerate(copies):
        for system in "ab":
            docs = rng.permutation(4)[:3]
            for copy in range(n):
                rows += [(system, f"q{query}.{copy}", f"d{doc}", 3.0 - rank) for rank, doc in enumerate(docs)]
    return Runs.rows(*(list(column) for column in zip(*rows, strict=True)))


def all_judged(runs: Runs) -> Judgments:
    queries, docs = zip(*(runs.pool.label(p) for p in range(len(runs.pool))), strict=True)
    grades = [grade_of(query, doc) for query, doc in zip(queries, docs, strict=True)]
    return Judgments.rows(list(queries), list(docs), grades)


def grade_of(query: str, doc: str) -> int:
    return (7 * int(query[1]) + 5 * int(doc[1:])) % 3


@pytest.mark.parametrize("name", ["DCG@3", "nDCG@3", "AP"])
def test_integer_weights_are_copies_of_queries(believe, name):
    means = []
    for runs, weights in ((some_runs(), WEIGHTS), (some_runs(copies=(3, 1, 2, 1)), None)):
        relevance = believe(runs, Scale.graded(2), 1, judgments=all_judged(runs))
        means.append(evaluate(runs, relevance, name, query_weights=weights, n=10).mean)
    np.testing.assert_allclose(*means)


@pytest.mark.parametrize("name", ["P@2", "nDCG@3"])
def test_against_enumeration(believe, worlds, name):
    runs = some_runs()
    judged = all_judged(runs)
    relevance = believe(runs, Scale.graded(2), 1, judgments=judged.take(np.arange(len(judged)) % 2 == 0))
    chance, scores = worlds(runs, relevance, parse(name))
    share = WEIGHTS / WEIGHTS.sum()
    means = scores @ share  # (world, system)
    mean = chance @ means
    off = means - mean
    found = evaluate(runs, relevance, name, query_weights=10 * WEIGHTS, n=N, target="population", family="normal")
    sd = np.sqrt(chance @ off**2)
    room = 1e-12 if found.method == "moments" else 5 * sd.max() / np.sqrt(N)
    np.testing.assert_allclose(found.mean, mean, atol=room)
    np.testing.assert_allclose(found.joint.covariance, (off * chance[:, None]).T @ off, atol=room)
    apart = scores - means[:, :, None]
    squares = np.einsum("w,wsq,wtq,q->st", chance, apart, apart, share**2)
    second, third = (share**2).sum(), (share**3).sum()
    np.testing.assert_allclose(found.joint.between, squares * second / (second * (1 + second) - 2 * third), atol=room)


@pytest.mark.parametrize("draws", [None, 50])
def test_the_two_routes_agree(believe, draws):
    runs = some_runs()
    relevance = believe(runs, Scale.graded(2), 2, draws=draws)
    exact, drawn = (
        evaluate(runs, relevance, "DCG@3", method=method, query_weights=WEIGHTS, n=N).joint
        for method in ("moments", "draws")
    )
    variance = np.diag(exact.covariance)
    assert np.all(np.abs(drawn.mean - exact.mean) <= 5 * np.sqrt(variance / N))
    # With a posterior, moments divide by one draw of the parameters less.
    np.testing.assert_allclose(drawn.covariance, exact.covariance, rtol=0.08, atol=variance.max() * 0.05)
    np.testing.assert_allclose(drawn.between, exact.between, rtol=0.08, atol=np.abs(exact.between).max() * 0.05)


@pytest.mark.parametrize("method", ["moments", "draws"])
def test_equal_weights_are_none(believe, method):
    runs = some_runs()
    relevance = believe(runs, Scale.graded(2), 3, draws=20)
    plain, equal = (
        evaluate(runs, relevance, "DCG@3", method=method, query_weights=weights).joint
        for weights in (None, np.full(4, 0.25))
    )
    for name in ("mean", "covariance", "between"):
        assert (getattr(plain, name) == getattr(equal, name)).all()


def test_a_query_of_weight_0_plays_no_part(believe):
    runs = some_runs()
    whole = believe(runs, Scale.graded(2), 3, draws=20)
    kept = runs.pool.query < 3
    fewer = Runs.rows(*(list(c) for c in zip(*(
        (row.system, row.query, row.doc, row.score) for row in runs.to_frame().itertuples() if row.query != "q3.0"
    ), strict=True)))  # fmt: skip
    part = RelevanceDistribution.of(fewer.pool, whole.scale, whole.probability[:, kept])
    some = evaluate(runs, whole, "DCG@3", query_weights=np.array([1.0, 1.0, 1.0, 0.0]))
    left = evaluate(fewer, part, "DCG@3")
    assert some.n_effective == pytest.approx(3)
    for name in ("mean", "covariance", "between"):
        np.testing.assert_allclose(getattr(some.joint, name), getattr(left.joint, name))
    assert (some["a"] - some["b"]).cdf(0.0) == pytest.approx((left["a"] - left["b"]).cdf(0.0))


def test_the_covariance_over_samples_of_queries_is_unbiased():
    rng = np.random.default_rng(1)
    weights = rng.gamma(1.0, size=12)
    weights /= weights.mean()
    scores = rng.normal(size=(4000, 1, 12))
    means = (scores * weights).mean(axis=2)
    stated = []
    for score, mean in zip(scores, means, strict=True):
        weighted = score * weights
        squared = (weighted * weights).mean(axis=1)
        of_squares = weighted @ weighted.T
        stated.append(expected_between(of_squares, np.outer(squared, mean), np.outer(mean, mean), weights)[0, 0])
    assert np.mean(stated) == pytest.approx((weights**2).sum() / 144, rel=0.03)  # the variance of a score is 1


def test_wrong_weights_and_methods(believe):
    runs = some_runs()
    relevance = believe(runs, Scale.graded(2), 3)
    for weights in (np.ones(3), np.array([1.0, -1, 1, 1]), np.zeros(4), np.array([1.0, np.nan, 1, 1])):
        with pytest.raises(ScoreError, match="4 queries need as many weights from 0"):
            evaluate(runs, relevance, "DCG@3", query_weights=weights)
    with pytest.raises(ScoreError, match="with the methods moments and draws, not with ppi"):
        evaluate(runs, relevance, "DCG@3", method="ppi", query_weights=WEIGHTS)
    with pytest.raises(ScoreError, match="One query says nothing"):
        evaluate(runs, relevance, "DCG@3", query_weights=np.array([1.0, 0, 0, 0]), target="population")
