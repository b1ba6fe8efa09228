"""Two systems against each other, and all of them in order."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from probeval.data import Pool, Runs, Scale
from probeval.errors import ScoreError
from probeval.metrics import parse
from probeval.relevance import RelevanceDistribution
from probeval.scores import Joint, Ranking, Scores, evaluate

MEAN = np.array([0.5, 0.6, 0.4])
SD = 0.05


def normal(mean=MEAN, covariance=None, *, target="collection", family="normal", draws=None, queries=4) -> Scores:
    """Scores of systems a, b, c with these moments, each independent with the same spread if nothing is said."""
    n = len(mean)
    covariance = np.eye(n) * SD**2 if covariance is None else np.asarray(covariance, dtype=float)
    by_query = np.repeat(np.asarray(mean, dtype=float)[:, None], queries, axis=1)
    joint = Joint(np.asarray(mean, dtype=float), covariance, np.eye(n) * 0.01, by_query, by_query * 0, draws)
    names = tuple("abcdefgh"[:n])
    ids = np.array([f"q{i}" for i in range(queries)], dtype=object)
    return Scores(parse("DCG@5"), names, ids, joint, "moments", target, family, 10, 0)


def drawn(*rows) -> Scores:
    """Scores with these draws."""
    draws = np.array(rows, dtype=float)
    return normal(draws.mean(axis=0), np.cov(draws.T), family="empirical", draws=draws)


def test_three_probabilities_of_a_normal_difference():
    compared = normal().compare("a", "b")
    d = stats.norm(-0.1, SD * np.sqrt(2))
    assert compared.p_worse == pytest.approx(d.cdf(0), abs=1e-9)
    assert compared.p_better == pytest.approx(d.sf(0), abs=1e-9)
    assert compared.p_equal == pytest.approx(0, abs=1e-9)
    assert compared.confidence == pytest.approx(d.cdf(0), abs=1e-9)
    roped = normal().compare("a", "b", rope=0.05)
    assert roped.p_worse == pytest.approx(d.cdf(-0.05), abs=1e-9)
    assert roped.p_better == pytest.approx(d.sf(0.05), abs=1e-9)
    assert roped.p_equal == pytest.approx(d.cdf(0.05) - d.cdf(-0.05), abs=1e-9)
    assert "a - b: -0.1000" in str(roped)


def test_t_has_heavier_tails():
    compared = normal(family="t").compare("a", "b")
    assert compared.p_better == pytest.approx(stats.t(3).sf(0.1 / (SD * np.sqrt(2))), abs=1e-9)
    ranking = normal(family="t").ranking()
    assert ranking.p_better[0, 1] == pytest.approx(compared.p_better, abs=1e-9)


def test_three_probabilities_of_draws():
    scores = drawn([0.5, 0.4], [0.5, 0.5], [0.2, 0.5], [0.9, 0.1])
    compared = scores.compare("a", "b")
    assert (compared.p_better, compared.p_equal, compared.p_worse) == (0.5, 0.25, 0.25)
    assert compared.confidence == 0.75  # the tie stands on the likelier side
    roped = scores.compare("a", "b", rope=0.1)
    assert (roped.p_better, roped.p_equal, roped.p_worse) == (0.25, 0.5, 0.25)  # a gap of the rope's size is none


def test_a_certain_difference_and_a_certain_tie():
    certain = normal([0.5, 0.6, 0.6], np.zeros((3, 3)))
    assert certain.compare("b", "a").p_better == 1
    tie = certain.compare("b", "c")
    assert (tie.p_better, tie.p_equal, tie.p_worse, tie.confidence) == (0, 1, 0, 1)
    inside = normal([0.5, 0.5 + 5e-13], np.zeros((2, 2))).compare("b", "a")
    assert inside.p_equal == 1  # less than 1e-12 is a tie


def test_effect_size():
    # The spread of the difference between queries: sqrt(2 * .01 * 4).
    assert normal().compare("b", "a").effect_size == pytest.approx(0.1 / np.sqrt(2 * 0.01 * 4))
    one = normal().ranking().scores
    assert np.isnan(one.compare("a", "a").effect_size)


def test_ranking_of_normal_scores():
    scores = normal()
    ranking = scores.ranking(rng=np.random.default_rng(1), n=40_000)
    assert ranking.order == ["b", "a", "c"]
    z1, z2 = 0.1 / (SD * np.sqrt(2)), 0.2 / (SD * np.sqrt(2))
    near, far = stats.norm.cdf([z1, z2])
    assert ranking.p_better[1, 0] == pytest.approx(near, abs=1e-12)
    assert ranking.p_better[0, 1] == pytest.approx(1 - near, abs=1e-12)
    assert ranking.pair_confidence[2, 1] == pytest.approx(far, abs=1e-12)
    assert ranking.confidence == pytest.approx((2 * near + far) / 3, abs=1e-12)
    # Expected tau: the mean over pairs of 2 P - 1, by counting: 5 standard errors.
    assert ranking.expected_tau == pytest.approx(2 * ranking.confidence - 1, abs=5 * 0.5 / 200)
    assert ranking.tau_draws.shape == (40_000,)
    assert set(np.round(ranking.tau_draws * 3).astype(int)) <= {-3, -1, 1, 3}
    # P(best) of b: 1 minus those of the others, from independent normals by quadrature.
    grid = np.linspace(0.1, 1.1, 4001)
    best = np.trapezoid(
        stats.norm.pdf(grid, 0.6, SD) * stats.norm.cdf(grid, 0.5, SD) * stats.norm.cdf(grid, 0.4, SD), grid
    )
    assert ranking.p_best[1] == pytest.approx(best, abs=5 * 0.5 / 200)
    np.testing.assert_allclose(ranking.p_rank.sum(axis=0), 1, atol=1e-12)
    np.testing.assert_allclose(ranking.p_rank.sum(axis=1), 1, atol=1e-12)


def test_ranks_are_counted_and_ties_share_them():
    scores = drawn([3, 2, 1], [2, 2, 1], [1, 1, 1], [0, 1, 1])
    ranking = scores.ranking()
    np.testing.assert_allclose(
        ranking.p_rank,
        np.array([
            [1 + 1 / 2 + 1 / 3 + 0, 0 + 1 / 2 + 1 / 3 + 0, 0 + 0 + 1 / 3 + 1],
            [0 + 1 / 2 + 1 / 3 + 1 / 2, 1 + 1 / 2 + 1 / 3 + 1 / 2, 0 + 0 + 1 / 3 + 0],
            [0 + 0 + 1 / 3 + 1 / 2, 0 + 0 + 1 / 3 + 1 / 2, 1 + 1 + 1 / 3 + 0],
        ]) / 4,
        atol=1e-15,
    )  # fmt: skip
    np.testing.assert_allclose(ranking.p_better, [[0, 0.25, 0.5], [0.25, 0, 0.5], [0.25, 0, 0]], atol=1e-15)
    # a - b: better 1/4, worse 1/4, tied 1/2; a - c: 1/2 and 1/4; b - c: 1/2 and never worse.
    np.testing.assert_allclose(ranking.pair_confidence[np.triu_indices(3, 1)], [0.75, 0.75, 1.0], atol=1e-15)
    # Means 1.5, 1.5, 1: a and b are tied in the order, so tau counts the other two pairs over three.
    np.testing.assert_allclose(ranking.tau_draws, [2 / 3, 2 / 3, 0, -1 / 3], atol=1e-15)


def test_identical_systems_share_everything():
    # Rounding makes the covariance of identical systems not quite singular: their draws must agree all the same.
    rng = np.random.default_rng(5)
    root = rng.normal(size=(4, 4)) * 0.03
    root = np.vstack([root, root[1], root[1]])
    covariance = root @ root.T
    mean = np.array([0.5, 0.55, 0.5, 0.45, 0.55, 0.55])
    ranking = normal(mean, covariance).ranking(rng=rng, n=3000)
    assert ranking.p_best[1] == ranking.p_best[4] == ranking.p_best[5] > 0.1
    assert ranking.pair_confidence[1, 4] == 1
    assert ranking.p_better[1, 4] == ranking.p_better[4, 1] == 0
    table = ranking.to_frame()
    assert table["rank"].tolist() == [1, 1, 1, 4, 4, 6]
    assert list(table["system"][:3]) == ["b", "e", "f"] == ranking.order[:3]


def test_groups_start_where_the_leader_is_surely_better():
    # Each next one is .06 lower: from the leader, sd of a difference .0707: .06 is .85 sigma, .12 is 1.7, .18 is 2.5.
    ranking = normal(0.8 - 0.06 * np.arange(7)).ranking()
    assert ranking.groups(level=0.95).tolist() == [1, 1, 2, 2, 3, 3, 4]
    assert ranking.groups(level=0.97).tolist() == [1, 1, 1, 2, 2, 2, 3]
    assert ranking.groups(level=0.999).tolist() == [1, 1, 1, 1, 2, 2, 2]
    assert ranking.groups(level=0.8).tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_the_population_is_less_sure():
    near, far = normal().ranking(), normal(target="population").ranking()
    assert far.confidence < near.confidence - 0.1
    assert far.p_better[1, 0] == pytest.approx(stats.norm.cdf(0.1 / np.sqrt(2 * (SD**2 + 0.01))), abs=1e-12)
    both = normal(draws=np.tile(MEAN, (50, 1)), family="normal", target="population", covariance=np.zeros((3, 3)))
    ranking = both.ranking(rng=np.random.default_rng(1), n=20_000)
    assert ranking.p_better[1, 0] == pytest.approx(stats.norm.cdf(0.1 / np.sqrt(0.02)), abs=1e-12)
    assert np.all(ranking.p_best > 0)


def test_document_is_json_and_agrees_with_the_table():
    ranking = normal().ranking()
    document = json.loads(json.dumps(ranking.at(0.9).to_dict()))
    assert [row["system"] for row in document["systems"]] == ["b", "a", "c"]
    assert document["systems"][0].keys() >= {"system", "rank", "mean", "sd", "lower", "upper", "p_best", "group"}
    assert "sd_sampling" not in document["systems"][0]
    assert len(document["pairs"]) == 3
    first = document["pairs"][0]
    assert (first["a"], first["b"]) == ("a", "b")
    assert first["mean"] == pytest.approx(-0.1)
    assert first["sd"] == pytest.approx(SD * np.sqrt(2))
    assert len(normal().to_dict(per_query=True)["queries"]) == 12
    of_all = normal(target="population").ranking().to_dict()
    row = of_all["systems"][0]
    assert (row["sd_judging"], row["sd_sampling"]) == pytest.approx((SD, 0.1))
    assert row["sd"] == pytest.approx(np.hypot(SD, 0.1))
    assert "queries" not in of_all


def test_normal_and_empirical_confidence_agree_on_a_large_campaign(small):
    rng = np.random.default_rng(2)
    p = rng.random(len(small.runs.pool))
    relevance = RelevanceDistribution.of(small.runs.pool, Scale.binary(), np.stack([1 - p, p], axis=1))
    by_moments = evaluate(small.runs, relevance, "DCG@8").ranking()
    by_draws = evaluate(small.runs, relevance, "DCG@8", method="draws", n=20_000).ranking()
    # Forty pairs a difference are near enough to normal.
    np.testing.assert_allclose(by_draws.p_better, by_moments.p_better, atol=0.03)
    np.testing.assert_allclose(by_draws.p_rank, by_moments.p_rank, atol=0.04)
    assert by_draws.confidence == pytest.approx(by_moments.confidence, abs=0.01)


def test_one_system_has_its_rank_for_certain():
    ranking = normal([0.5]).ranking()
    assert isinstance(ranking, Ranking)
    assert (ranking.confidence, ranking.expected_tau) == (1, 1)
    assert ranking.p_rank.tolist() == [[1.0]]
    assert ranking.to_dict()["pairs"] == []
    assert ranking.groups().tolist() == [1]


def test_shared_documents_cancel_in_a_difference():
    pool = Pool.of(["q"] * 3, ["d1", "d2", "d3"])
    runs = Runs(("a", "b"), pool, np.array([[[0, 1]], [[0, 2]]]), np.zeros((2, 1, 2)))
    p = np.array([0.5, 0.9, 0.2])
    scores = evaluate(runs, RelevanceDistribution.of(pool, Scale.binary(), np.stack([1 - p, p], axis=1)), "P@2")
    # d1 stands first in both: only d2 and d3 count.
    assert (scores["a"] - scores["b"]).variance() == pytest.approx((0.09 + 0.16) / 4, abs=1e-15)
    assert scores["a"].variance() == pytest.approx((0.25 + 0.09) / 4, abs=1e-15)


def test_a_pair_is_sure_of_its_direction_or_of_a_tie():
    scores = normal([0.5, 0.51, 0.4])
    ranking = scores.ranking(rope=0.15)
    d = stats.norm(-0.01, SD * np.sqrt(2))
    tie = d.cdf(0.15) - d.cdf(-0.15)
    assert ranking.p_better[0, 1] == pytest.approx(d.sf(0.15), abs=1e-9)
    assert ranking.p_equal[0, 1] == ranking.p_equal[1, 0] == pytest.approx(tie, abs=1e-9)
    assert ranking.direction_confidence[0, 1] == pytest.approx(d.cdf(0), abs=1e-9)
    assert ranking.tied[0, 1]
    assert ranking.pair_confidence[0, 1] == pytest.approx(tie, abs=1e-9)
    for a, b in (("a", "b"), ("a", "c"), ("b", "c")):  # two routes to one number
        i, j = "abc".index(a), "abc".index(b)
        one = scores.compare(a, b, rope=0.15)
        assert ranking.pair_confidence[i, j] == pytest.approx(one.confidence, abs=1e-9)
        assert (ranking.p_better[i, j], ranking.p_equal[i, j]) == pytest.approx((one.p_better, one.p_equal), abs=1e-9)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=5), st.floats(0.001, 0.2), st.floats(0, 0.3), st.floats(0, 0.3))
def test_a_wider_rope_never_makes_a_pair_less_sure(mean, sd, rope, more):
    scores = normal(mean, np.eye(len(mean)) * sd**2)
    none, narrow, wide = (scores.ranking(rope=r) for r in (0, rope, rope + more))
    assert np.all(none.pair_confidence <= narrow.pair_confidence + 1e-12)
    assert np.all(narrow.pair_confidence <= wide.pair_confidence + 1e-12)
    assert np.all(narrow.p_near_best <= wide.p_near_best)
    np.testing.assert_array_equal(none.pair_confidence, none.direction_confidence)


def test_a_rope_of_draws_counts_them():
    ranking = drawn([0.5, 0.4], [0.5, 0.5], [0.2, 0.5], [0.9, 0.1]).ranking(rope=0.1)
    assert (ranking.p_better[0, 1], ranking.p_equal[0, 1], ranking.p_better[1, 0]) == (0.25, 0.5, 0.25)
    assert not ranking.tied[0, 1]  # P(a is not worse) is .75
    assert ranking.pair_confidence[0, 1] == 0.75
    assert ranking.p_near_best.tolist() == [0.75, 0.75]


def test_the_best_up_to_the_rope():
    twins = [[SD**2, SD**2, 0], [SD**2, SD**2, 0], [0, 0, SD**2]]
    same = normal([0.6, 0.6, 0.2], twins).ranking()
    assert same.p_best[:2] == pytest.approx([0.5, 0.5], abs=1e-3)
    assert same.p_near_best[:2] == pytest.approx([1, 1], abs=1e-3)  # a tie for the best is no doubt
    assert same.tied_with_best() == ["b"]
    assert same.sentences()[1:] == ("Tied with a: b.",)
    close = normal([0.6, 0.599, 0.2], np.eye(3) * 0.002**2).ranking(rope=0.02)
    assert close.p_near_best == pytest.approx([1, 1, 0])
    assert close.sentences()[1:] == ("Differences up to 0.02 count as ties.", "Tied with a: b.")
    assert close.groups().tolist() == [1, 1, 2]
    assert close.to_frame()["p_near_best"].tolist() == pytest.approx([1, 1, 0])


def test_the_document_has_the_rope_if_there_is_one():
    plain, roped = normal().ranking().to_dict(), normal().ranking(rope=0.05).to_dict()
    assert "rope" not in plain
    assert plain["pairs"][0].keys() == {"a", "b", "mean", "sd", "p_better"}
    assert roped["rope"] == 0.05
    first = roped["pairs"][0]
    assert first["p_better"] + first["p_equal"] < 1
    assert "p_near_best" in roped["systems"][0]


@pytest.mark.parametrize("rope", [-0.1, np.nan, np.inf])
def test_a_rope_is_a_number_from_0(rope):
    with pytest.raises(ScoreError, match="largest difference that does not matter"):
        normal().ranking(rope=rope)
