"""What happens at the edges: one system, one query, empty lists, queries without answers, ties, certainty."""

from __future__ import annotations

import numpy as np
import pytest

from probeval.data import Judgments, Pool, Runs, Scale
from probeval.errors import ScoreError
from probeval.metrics import REGISTRY, Metric
from probeval.relevance import RelevanceDistribution
from probeval.scores import evaluate

EVERY = [str(Metric(name).completed(3)) for name in sorted(REGISTRY) if name != "PSat"]  # some users like any list
ROUTES = [("P@3", None), ("DCG", None), ("nDCG@3", None), ("AP", "draws"), ("AP", "exact"), ("ERR", "exact"),
          ("nDCG", "taylor"), ("RR", "draws")]  # fmt: skip
routes = pytest.mark.parametrize(("name", "method"), ROUTES)


def lists(*systems, queries=("q1", "q2")) -> Runs:
    """Runs from each system's docs by query, on a pool with all of these queries, answered or not."""
    rows = [(q, d) for system in systems for q, docs in system.items() for d in docs]
    ids = sorted({d for _, d in rows})
    at = [queries.index(q) for q, _ in rows], [ids.index(d) for _, d in rows]
    pool, _ = Pool.coded(list(queries), ids, *map(np.array, at))
    depth = max(len(docs) for system in systems for docs in system.values())
    pairs = np.full((len(systems), len(queries), depth), -1)
    for s, system in enumerate(systems):
        for q, docs in system.items():
            pairs[s, queries.index(q), : len(docs)] = pool.locate([q] * len(docs), docs)
    return Runs(tuple("abcdef"[: len(systems)]), pool, pairs, np.where(pairs < 0, np.nan, 0.0))


def even(runs: Runs, p: float = 0.5, judgments: Judgments | None = None) -> RelevanceDistribution:
    probability = np.tile([1 - p, p], (len(runs.pool), 1))
    return RelevanceDistribution.of(runs.pool, Scale.binary(), probability, judgments=judgments)


@routes
def test_one_system(name, method):
    runs = lists({"q1": ["d1", "d2"], "q2": ["d1"]})
    ranking = evaluate(runs, even(runs), name, method=method, n=100).ranking()
    row = ranking.to_dict()["systems"]
    assert [(r["rank"], r["p_best"], r["group"]) for r in row] == [(1, 1.0, 1)]
    assert (ranking.confidence, ranking.to_dict()["pairs"]) == (1.0, [])


@routes
def test_one_query(name, method):
    runs = lists({"q1": ["d1", "d2"]}, {"q1": ["d3", "d1"]}, queries=("q1",))
    scores = evaluate(runs, even(runs), name, method=method, n=100)
    np.testing.assert_allclose(scores.mean, scores.joint.query_mean[:, 0], atol=1e-15)
    np.testing.assert_allclose(np.diag(scores.covariance), scores.joint.query_variance[:, 0], atol=1e-15)
    assert np.isnan(scores.joint.between).all()
    assert np.isnan(scores.compare("a", "b").effect_size)
    with pytest.raises(ScoreError, match="One query says nothing of the population"):
        scores.with_target("population")


@pytest.mark.parametrize("name", EVERY)
def test_an_empty_list_and_an_empty_system_score_nothing_for_certain(name):
    runs = lists({"q1": ["d1", "d2"], "q2": ["d3"]}, {"q1": ["d2"]}, {})
    scores = evaluate(runs, even(runs), name, n=200)
    assert scores.joint.query_mean[1, 1] == 0
    assert scores.joint.query_variance[1, 1] == 0
    assert (scores.mean[2], scores.covariance[2, 2]) == (0, 0)
    assert np.all(scores.covariance[2] == 0)
    assert scores["c"].interval() == (0, 0)
    if not name.startswith(("Judged", "PSucc")):  # 1 whatever the grades; 0 for lists as short as these
        assert scores.mean[0] > scores.mean[1] * 0.9 > 0


@pytest.mark.parametrize("name", EVERY)
def test_a_query_with_nothing_retrieved_scores_nothing(name):
    runs = lists({"q1": ["d1", "d2"]}, {"q1": ["d2", "d3"]})
    assert runs.pool.sizes.tolist() == [3, 0]
    alone = lists({"q1": ["d1", "d2"]}, {"q1": ["d2", "d3"]}, queries=("q1",))
    both, one = (evaluate(r, even(r), name, n=200, rng=np.random.default_rng(1)) for r in (runs, alone))
    assert np.all(both.joint.query_mean[:, 1] == 0)
    assert np.all(both.joint.query_variance[:, 1] == 0)
    # The queries are as many as the runs have: the mean is over both.
    np.testing.assert_allclose(both.mean, one.mean / 2, atol=1e-15)
    np.testing.assert_allclose(both.covariance, one.covariance / 4, atol=1e-15)


def test_a_cutoff_beyond_the_list_divides_by_the_cutoff():
    runs = lists({"q1": ["d1", "d2"], "q2": ["d3", "d4"]})
    scores = evaluate(runs, even(runs), "P@10")
    assert scores.mean[0] == pytest.approx(0.1, abs=1e-15)  # two of ten, half of them relevant
    assert scores.covariance[0, 0] == pytest.approx(2 * 2 * 0.25 / 100 / 4, abs=1e-15)
    drawn = evaluate(runs, even(runs), "P@10", method="draws", n=4000)
    assert drawn.mean[0] == pytest.approx(0.1, abs=5 * np.sqrt(scores.covariance[0, 0] / 4000))
    # Where the divisor is the number relevant, ranks past the end change nothing.
    for name in ("AP", "RR", "nDCG"):
        near, far = (evaluate(runs, even(runs), f"{name}@{k}", n=100).joint.draws for k in (2, 10))
        np.testing.assert_array_equal(near, far)


@routes
def test_all_grades_equal_and_known(name, method):
    runs = lists(
        {"q1": ["d1", "d2"], "q2": ["d1"]}, {"q1": ["d3", "d1"], "q2": ["d2"]}, {"q1": ["d2", "d4"], "q2": ["d3"]}
    )
    judged = Judgments.coded(runs.pool, np.arange(len(runs.pool)), np.zeros(len(runs.pool)))
    scores = evaluate(runs, even(runs, judgments=judged), name, method=method)
    assert np.all(scores.mean == 0)
    ranking = scores.ranking()
    assert ranking.confidence == 1  # they are tied, and that is certain
    assert ranking.to_frame()["rank"].tolist() == [1, 1, 1]
    np.testing.assert_allclose(ranking.p_best, 1 / 3, atol=1e-12)
    assert np.all(ranking.p_better == 0)
    assert ranking.groups().tolist() == [1, 1, 1]
    compared = scores.compare("a", "b")
    assert (compared.p_equal, compared.confidence) == (1, 1)
    assert ranking.expected_tau == 0  # a tie agrees with no order


@pytest.mark.parametrize("p", [0.0, 1.0])
@routes
def test_all_grades_equal_because_the_model_says_so(name, method, p):
    runs = lists({"q1": ["d1", "d2"], "q2": ["d1", "d4"]}, {"q1": ["d3", "d1"], "q2": ["d2", "d3"]})
    scores = evaluate(runs, even(runs, p), name, method=method, n=50)
    np.testing.assert_allclose(scores.covariance, 0, atol=1e-30)
    assert scores.ranking().confidence == 1
    assert scores.judged == 0  # certain is not judged


@routes
def test_two_identical_systems(name, method):
    same = {"q1": ["d1", "d2"], "q2": ["d3", "d1"]}
    runs = lists(same, {"q1": ["d4", "d2"], "q2": ["d2", "d1"]}, same)
    scores = evaluate(runs, even(runs, 0.3), name, method=method, n=500)
    difference = scores["a"] - scores["c"]
    assert difference.mean() == pytest.approx(0, abs=1e-15)
    assert difference.variance() == 0
    tie = scores.compare("a", "c")
    assert (tie.p_better, tie.p_equal, tie.p_worse, tie.confidence) == (0, 1, 0, 1)
    ranking = scores.ranking(rng=np.random.default_rng(1))
    table = ranking.to_frame().set_index("system")
    assert table.loc["a", "rank"] == table.loc["c", "rank"]
    assert table.loc["a", "group"] == table.loc["c", "group"]
    assert ranking.p_best[0] == pytest.approx(ranking.p_best[2], abs=1e-12)
    assert ranking.pair_confidence[0, 2] == 1
    assert 0.5 <= ranking.pair_confidence[0, 1] < 1
    np.testing.assert_allclose(ranking.p_rank[0], ranking.p_rank[2], atol=1e-12)


def test_nothing_judged_and_half_judged_count_as_such():
    runs = lists({"q1": ["d1", "d2"], "q2": ["d3"]})
    assert evaluate(runs, even(runs), "P@2").judged == 0
    some = Judgments.rows(["q1", "q1"], ["d1", "elsewhere"], [1, 1])
    scores = evaluate(runs, even(runs, judgments=some), "P@2")
    assert (scores.judged, scores.pool) == (1, 3)
    assert scores.mean[0] == pytest.approx((0.75 + 0.25) / 2, abs=1e-15)
    assert scores.joint.query_variance[0].tolist() == pytest.approx([0.25 / 4, 0.25 / 4])
