"""The five tests against scipy, and where there is nothing to test."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from probeval.errors import ReliabilityError
from probeval.reliability.paired import (
    TESTS,
    bootstrap_test,
    differences,
    pair_index,
    permutation_test,
    run_test,
    sign_test,
    t_test,
    wilcoxon_test,
)

RNG = np.random.default_rng(20)
SCORES = RNG.beta(2, 3, size=(7, 40))
GAP = differences(SCORES, *pair_index(7))


def each(function):
    return np.array([function(d) for d in GAP])


def test_pairs_come_once_first_before_second():
    a, b = pair_index(5)
    assert len(a) == 10
    assert (a < b).all()


def test_t_is_scipys():
    t, p = t_test(GAP)
    want = each(lambda d: tuple(stats.ttest_1samp(d, 0)))
    np.testing.assert_allclose(t, want[:, 0], rtol=1e-12)
    np.testing.assert_allclose(p, want[:, 1], rtol=1e-12)


def test_t_of_draws_is_t_of_each_draw():
    drawn = RNG.normal(size=(3, 4, 9))
    t, p = t_test(drawn)
    np.testing.assert_array_equal(t[1], t_test(drawn[1])[0])
    assert p.shape == (3, 4)


def test_wilcoxon_is_scipys_exactly():
    want = each(lambda d: stats.wilcoxon(d, method="exact").pvalue)
    np.testing.assert_allclose(wilcoxon_test(GAP)[1], want, rtol=1e-12)


@pytest.mark.parametrize("n", [12, 60])
def test_wilcoxon_with_ties_and_zeros_is_scipys(n):
    gap = np.round(RNG.normal(0.3, 1, size=(30, n)), 1)
    z, p = wilcoxon_test(gap)
    want = [stats.wilcoxon(d, method="asymptotic", correction=True) for d in gap]
    np.testing.assert_allclose(p, [w.pvalue for w in want], rtol=1e-12)
    np.testing.assert_allclose(np.abs(z), np.abs([w.zstatistic for w in want]), rtol=1e-12, atol=1e-12)


def test_wilcoxon_of_many_queries_is_normal():
    gap = RNG.normal(0.1, 1, size=(5, 51))
    want = [stats.wilcoxon(d, method="asymptotic", correction=True).pvalue for d in gap]
    np.testing.assert_allclose(wilcoxon_test(gap)[1], want, rtol=1e-12)


def test_sign_is_scipys():
    gap = np.where(np.abs(GAP) < 0.02, 0.0, GAP)
    k, p = sign_test(gap)
    want = [stats.binomtest(int((d > 0).sum()), int((d != 0).sum())).pvalue for d in gap]
    np.testing.assert_allclose(p, want, rtol=1e-12)
    np.testing.assert_array_equal(k, (gap > 0).sum(axis=1))


def test_permutation_is_the_exact_one_within_monte_carlo_error():
    gap = GAP[:, :10]
    flips = np.array(np.meshgrid(*[[-1, 1]] * 10)).reshape(10, -1).T
    exact = (np.abs(flips @ gap.T) >= np.abs(gap.sum(axis=1)) - 1e-12).mean(axis=0)
    n = 40_000
    _, p = permutation_test(gap, samples=n, rng=np.random.default_rng(1))
    np.testing.assert_array_less(np.abs(p - exact), 4.5 * np.sqrt(exact * (1 - exact) / n) + 2 / n)


def test_bootstrap_is_a_plain_loop_within_monte_carlo_error():
    rng, n = np.random.default_rng(2), 5000
    d = GAP[3]
    means = np.array([rng.choice(d, len(d)).mean() for _ in range(n)])
    plain = (np.abs(means - d.mean()) >= abs(d.mean())).mean()
    _, p = bootstrap_test(GAP, samples=n, rng=np.random.default_rng(3))
    assert abs(p[3] - plain) < 4.5 * np.sqrt(2 * plain * (1 - plain) / n)


@pytest.mark.parametrize("test", TESTS)
def test_the_sign_of_a_difference_does_not_matter_to_p(test):
    p, mirrored = (run_test(test, g, samples=500, rng=np.random.default_rng(4))[1] for g in (GAP, -GAP))
    np.testing.assert_allclose(p, mirrored)


@pytest.mark.parametrize("test", TESTS)
def test_one_system_against_its_copy(test):
    _, p = run_test(test, np.zeros((2, 8)), samples=200)
    np.testing.assert_array_equal(p, 1.0)


@pytest.mark.parametrize("test", ["t", "wilcoxon", "sign", "permutation"])
def test_a_missing_score_leaves_its_query_out(test):
    gap = GAP[:, :12].copy()
    gap[:, [2, 7]] = np.nan
    p, without = (
        run_test(test, g, samples=20_000, rng=np.random.default_rng(5))[1]
        for g in (gap, np.delete(GAP[:, :12], [2, 7], 1))
    )
    np.testing.assert_allclose(p, without, atol=1e-12 if test in ("t", "wilcoxon", "sign") else 0.02)


def test_the_bootstrap_with_missing_scores_is_near_that_without():
    # A resample of all queries holds fewer or more of those that a pair shares: another sample size.
    gap = np.concatenate([GAP, np.full((len(GAP), 5), np.nan)], axis=1)
    p, without = (bootstrap_test(g, samples=20_000, rng=np.random.default_rng(6))[1] for g in (gap, GAP))
    np.testing.assert_allclose(p, without, atol=0.03)


def test_one_query_allows_no_t_and_nothing_significant():
    gap = np.array([[0.3]])
    assert np.isnan(t_test(gap)[1][0])
    for test in ("wilcoxon", "sign", "permutation", "bootstrap"):
        assert run_test(test, gap, samples=50)[1][0] <= 1


def test_a_constant_difference_is_certain():
    t, p = t_test(np.full((1, 5), -0.2))
    assert t[0] == -np.inf
    assert p[0] == 0


def test_no_score_at_all_in_common():
    gap = np.full((1, 4), np.nan)
    for test in TESTS:
        p = run_test(test, gap, samples=50)[1][0]
        assert np.isnan(p) or p == 1


def test_differences_below_a_tie_are_none():
    gap = differences(np.array([[0.1 + 0.2, 0.5], [0.3, 0.4]]), *pair_index(2))
    assert gap[0, 0] == 0


def test_seeds_decide():
    first, again = (permutation_test(GAP, samples=100, rng=np.random.default_rng(7))[1] for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_what_is_refused():
    with pytest.raises(ReliabilityError, match="Did you mean 'wilcoxon'"):
        run_test("wilcox", GAP)
    with pytest.raises(ReliabilityError, match="at least one sample"):
        permutation_test(GAP, samples=0, rng=RNG)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=30))
def test_p_is_a_probability(values):
    gap = differences(np.array([values, [0.0] * len(values)]), *pair_index(2))
    for test in TESTS:
        p = run_test(test, gap, samples=20)[1]
        assert (p >= 0).all()
        assert (p <= 1).all()


@pytest.mark.validation
def test_all_pairs_of_129_systems_by_permutation():
    scores = np.random.default_rng(8).beta(1, 3, size=(129, 50))
    start = time.perf_counter()
    _, p = permutation_test(differences(scores, *pair_index(129)), samples=100_000, rng=np.random.default_rng(9))
    assert time.perf_counter() - start < 60
    # Of 8,256 pairs with nothing between them one in twenty is significant; pairs share systems, so the rate wanders.
    assert 0.01 < (p < 0.05).mean() < 0.12
