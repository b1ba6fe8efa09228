"""Clusters of queries: the cluster-robust covariance, and its coverage."""

from __future__ import annotations

import numpy as np
import pytest

from probeval import compare, dstudy, evaluate, gstudy, synthetic_campaign
from probeval.data import Collection, Judgments, as_clusters, as_runs
from probeval.errors import DataError, ReliabilityError
from probeval.reliability import Design, Observed
from probeval.scores.scores import Joint, between_queries, clustered_between


def joint(values: np.ndarray) -> Joint:
    """The joint distribution of known scores, shape (system, query)."""
    zero = np.zeros((len(values), len(values)))
    between = between_queries(values, zero, zero)
    return Joint(values.mean(axis=1), zero, between, values, np.zeros(values.shape))


def test_every_query_in_a_cluster_of_its_own():
    values = np.random.default_rng(1).random((3, 12))
    found = clustered_between(joint(values), np.arange(12), np.ones(12))
    np.testing.assert_allclose(found, joint(values).between, atol=1e-14)


def test_equal_clusters_are_their_means():
    values = np.random.default_rng(2).random((2, 12))
    clusters = np.repeat(np.arange(4), 3)
    means = values.reshape(2, 4, 3).mean(axis=2)
    np.testing.assert_allclose(clustered_between(joint(values), clusters, np.ones(12)), np.cov(means) / 4, atol=1e-14)


def test_against_the_plain_sum_with_weights():
    rng = np.random.default_rng(3)
    values, clusters = rng.random((2, 10)), np.array([0, 0, 1, 1, 1, 2, 3, 3, 4, 4])
    weights = np.array([1, 2, 1, 0, 1, 3, 1, 1, 0, 0.0])
    weights *= 10 / weights.sum()
    mean = values @ weights / 10
    sums = np.array([((values - mean[:, None]) * weights)[:, clusters == g].sum(axis=1) for g in range(4)])
    w = np.array([weights[clusters == g].sum() for g in range(4)])
    w *= 4 / w.sum()
    second, third = (w**2).mean(), (w**3).mean()
    c = 4 * second / (4 * second + second**2 - 2 * third)
    zero = np.zeros((2, 2))
    none = Joint(mean, zero, np.zeros((2, 2)), values, np.zeros(values.shape))
    plain = (values - mean[:, None]) * weights
    known = Joint(mean, zero, plain @ plain.T / 100 * _unbiased(weights), values, none.query_variance)
    np.testing.assert_allclose(clustered_between(known, clusters, weights), c * sums.T @ sums / 100, atol=1e-14)


def _unbiased(weights: np.ndarray) -> float:
    n, w = len(weights), weights / weights.mean()
    second, third = (w**2).mean(), (w**3).mean()
    return n * second / (n * second + second**2 - 2 * third)


def test_one_cluster_says_nothing_of_others():
    assert np.isnan(
        clustered_between(joint(np.random.default_rng(0).random((2, 5))), np.zeros(5, int), np.ones(5))
    ).all()


def test_coverage_of_the_mean_of_a_population_of_clusters():
    """95% intervals hold the mean with clusters, and do not without them."""
    rng, held, ignoring, trials, g = np.random.default_rng(5), 0, 0, 400, 15
    for _ in range(trials):
        values = np.repeat(rng.normal(size=g), 4)[None] + 0.5 * rng.normal(size=(1, 4 * g))
        known, clusters = joint(values), np.repeat(np.arange(g), 4)
        sd = float(np.sqrt(clustered_between(known, clusters, np.ones(4 * g))[0, 0]))
        held += abs(values.mean()) <= 2.145 * sd  # t with 14 degrees of freedom
        ignoring += abs(values.mean()) <= 2.001 * float(np.sqrt(known.between[0, 0]))
    assert abs(held / trials - 0.95) < 3 * np.sqrt(0.95 * 0.05 / trials)
    assert ignoring / trials < 0.8


def test_scores_count_clusters():
    runs = as_runs({name: {q: {"d": 1.0, "e": v} for q in ("q1", "q2", "q3")} for name, v in (("a", 2.0), ("b", 0.5))})
    judged = Judgments.rows(["q1", "q2", "q3"], ["d"] * 3, [1, 0, 1])
    collection = Collection("", runs, judgments=judged)
    scores = evaluate(collection, "P@1", model="uniform", scale="binary").scores
    grouped = scores.with_clusters(np.array([0, 0, 1]))
    assert (scores.n_effective, grouped.n_effective) == (3, pytest.approx(9 / 5))
    assert grouped["a"].variance() == scores["a"].variance()  # on these queries


def test_a_query_without_a_row_is_a_cluster_of_its_own(tmp_path):
    assert as_clusters({"q1": "u", "q3": "u"}, ["q1", "q2", "q3"]).tolist() == [0, 1, 0]
    assert as_clusters({"q1": "q2"}, ["q1", "q2"]).tolist() == [0, 1]  # a cluster may be called like a query
    (tmp_path / "c.csv").write_text("query,cluster\nq1,a\nq1,b\n")
    with pytest.raises(DataError, match="'q1' has several clusters"):
        as_clusters(tmp_path / "c.csv", ["q1"])
    with pytest.raises(DataError, match="no query in common"):
        as_clusters({"q9": "u"}, ["q1"])


def test_tests_and_studies_take_means_of_clusters():
    scores = Observed.matrix(np.random.default_rng(1).random((2, 6)), ["a", "b"], list("uvwxyz"))
    clusters = dict(zip("uvwxyz", "112233", strict=True))
    assert scores.clustered(clusters).sizes == {"system": 2, "query": 3}
    labels = {"system": ("a", "b"), "assessor": ("1", "2"), "query": ("u", "v")}
    nested = Observed(Design.parse("s x (h:q)"), labels, np.zeros((1, 2, 2, 2)))
    with pytest.raises(ReliabilityError, match="crossed"):
        nested.clustered(clusters)


def test_comparisons_and_studies_of_clusters():
    campaign = synthetic_campaign(seed=1, systems=3, queries=20, depth=5)
    clusters = {str(q): f"user-{i // 4}" for i, q in enumerate(campaign.runs.queries)}
    tested = compare(campaign, "DCG@5", clusters=clusters)
    assert {pair["queries"] for pair in tested.to_dict()["pairs"]} == {5}
    assert any("count as one" in note for note in tested.notes)
    few = campaign.judgments.take(np.arange(40))
    (alone, grouped) = (compare(campaign.runs, "DCG@5", qrels=few, clusters=c).to_frame() for c in (None, clusters))
    assert grouped["lower"].tolist() == alone["lower"].tolist()  # on these queries
    assert grouped["lower_new"].tolist() != alone["lower_new"].tolist()
    single, means = (gstudy(campaign, "DCG@5", clusters=c) for c in (None, clusters))
    assert means.components["residual"] < single.components["residual"]  # a mean of four queries varies less
    (point,) = dstudy(campaign, "DCG@5", clusters=clusters, queries=[10]).points
    assert point.erho2.value == pytest.approx(means.coefficient("erho2", query=10).value)
