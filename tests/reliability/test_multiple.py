"""Corrections against statsmodels, Tukey and Friedman against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from probeval.errors import ReliabilityError
from probeval.reliability.effect_sizes import mean_effect
from probeval.reliability.multiple import (
    adjust,
    friedman,
    randomised_tukey,
    studentised_range,
    tukey_hsd,
)

RNG = np.random.default_rng(21)
SCORES = RNG.normal([[0.3], [0.3], [0.5], [0.9]], 0.4, size=(4, 25))


@pytest.mark.parametrize(("ours", "theirs"), [("holm", "holm"), ("bh", "fdr_bh")])
def test_corrections_are_statsmodels(ours, theirs):
    from statsmodels.stats.multitest import multipletests

    p = RNG.beta(0.5, 2, size=60).round(3)
    np.testing.assert_allclose(adjust(p, ours), multipletests(p, method=theirs)[1], rtol=1e-12)


def test_a_missing_p_stays_out():
    p = np.array([0.01, np.nan, 0.04])
    np.testing.assert_allclose(adjust(p, "holm"), [0.02, np.nan, 0.04])
    np.testing.assert_array_equal(adjust(p, "none"), p)


def test_unknown_correction():
    with pytest.raises(ReliabilityError, match="Did you mean 'holm'"):
        adjust(np.array([0.1]), "holms")


@pytest.mark.parametrize(("groups", "freedom"), [(2, 3), (3, 12), (10, 40), (129, 6272)])
def test_studentised_range_is_scipys(groups, freedom):
    q = np.array([0.1, 1.5, 3.0, 4.5, 6.0, 9.0])
    np.testing.assert_allclose(
        studentised_range(q, groups, freedom), stats.studentized_range.sf(q, groups, freedom), atol=2e-8
    )


def test_range_of_two_means_is_a_t_test():
    q = np.array([0.5, 2.0, 4.0])
    np.testing.assert_allclose(studentised_range(q, 2, 9), 2 * stats.t.sf(q / np.sqrt(2), 9), atol=1e-10)


def test_tukey_of_two_systems_is_the_paired_t():
    want = stats.ttest_rel(SCORES[0], SCORES[2]).pvalue
    found = tukey_hsd(SCORES[[0, 2]])
    np.testing.assert_allclose(found.p, [want], atol=1e-10)
    # And its interval that of the paired t.
    interval = stats.ttest_rel(SCORES[0], SCORES[2]).confidence_interval()
    np.testing.assert_allclose(found.difference + np.array([-1, 1]) * found.half, interval, rtol=1e-6)


def test_tukey_by_hand():
    n_s, n_q = SCORES.shape
    mean = SCORES.mean(axis=1)
    off = SCORES - mean[:, None] - SCORES.mean(axis=0) + SCORES.mean()
    error = np.sqrt((off**2).sum() / ((n_s - 1) * (n_q - 1)) / n_q)
    want = [
        stats.studentized_range.sf(abs(mean[i] - mean[j]) / error, n_s, (n_s - 1) * (n_q - 1))
        for i in range(n_s)
        for j in range(i + 1, n_s)
    ]
    found = tukey_hsd(SCORES, level=0.9)
    np.testing.assert_allclose(found.p, want, atol=1e-8)
    quantile = stats.studentized_range.ppf(0.9, n_s, (n_s - 1) * (n_q - 1))
    assert found.half == pytest.approx(quantile * error, rel=1e-6)
    np.testing.assert_allclose(found.statistic * error, np.abs(found.difference))
    # The interval has 0 outside where p is small.
    assert ((np.abs(found.difference) > found.half) == (found.p < 0.1)).all()


def test_randomised_tukey_is_near_tukey_where_systems_do_not_differ_and_scores_are_normal():
    scores = np.random.default_rng(5).normal(size=(4, 60))
    found, normal = randomised_tukey(scores, samples=4000, rng=np.random.default_rng(1)), tukey_hsd(scores)
    assert np.abs(found.p - normal.p).max() < 0.05
    assert found.half == pytest.approx(normal.half, rel=0.05)


def test_randomised_tukey_keeps_its_level():
    # Without any difference, at most one campaign in twenty has a significant pair.
    rng = np.random.default_rng(2)
    found = [randomised_tukey(rng.beta(0.5, 2, size=(5, 12)), samples=199, rng=rng).p.min() <= 0.05 for _ in range(200)]
    assert np.mean(found) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


def test_friedman_is_scipys():
    tied = SCORES.round(1)
    for scores in (SCORES, tied):
        found = friedman(scores)
        want = stats.friedmanchisquare(*scores)
        assert found.statistic == pytest.approx(want.statistic, rel=1e-12)
        assert found.p == pytest.approx(want.pvalue, rel=1e-12)


def test_critical_difference_of_mean_ranks():
    # Demsar (2006), Table 5: q at .05 is 2.569 for four classifiers, 14 data sets: CD = 2.569 sqrt(4 x 5 / (6 x 14)).
    found = friedman(RNG.normal(size=(4, 14)))
    assert found.critical_difference() == pytest.approx(2.569 * np.sqrt(20 / 84), abs=5e-4)
    assert found.ranks.sum() == pytest.approx(10)


def test_queries_that_some_system_lacks_are_left_out():
    gaps = SCORES.copy()
    gaps[1, 3] = gaps[2, 8] = np.nan
    complete = np.delete(SCORES, [3, 8], axis=1)
    np.testing.assert_array_equal(tukey_hsd(gaps).p, tukey_hsd(complete).p)
    assert tukey_hsd(gaps).queries == complete.shape[1]
    assert friedman(gaps).statistic == friedman(complete).statistic
    with pytest.raises(ReliabilityError, match="two queries that every system has"):
        friedman(np.where(np.eye(4, 25) > 0, SCORES, np.nan))


def test_constant_scores():
    same = np.full((3, 6), 0.4)
    np.testing.assert_array_equal(tukey_hsd(same).p, 1.0)
    np.testing.assert_array_equal(randomised_tukey(same, samples=20, rng=RNG).p, 1.0)
    assert (friedman(same).statistic, friedman(same).p) == (0.0, 1.0)
    apart = same + np.array([[0.0], [0.1], [0.1]])
    np.testing.assert_array_equal(tukey_hsd(apart).p, [0.0, 0.0, 1.0])


def test_the_least_significant_difference_of_permutations_is_the_end_of_their_intervals():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(5, 20)) + np.linspace(0, 1, 5)[:, None]
    found = randomised_tukey(scores, level=0.9, samples=199, rng=rng)
    assert ((np.abs(found.difference) > found.half) == (found.p < 0.1)).all()
    assert 0 < (found.p < 0.1).sum() < len(found.p)
    assert np.isinf(randomised_tukey(scores, level=0.99, samples=20, rng=rng).half)


def test_simultaneous_intervals_hold_together_at_their_level():
    rng, sets = np.random.default_rng(7), 250
    together, one_by_one = 0, 0
    truth = np.linspace(0, 1, 5)
    a, b = np.triu_indices(5, 1)
    for _ in range(sets):
        scores = truth[:, None] + rng.normal(size=12) + rng.normal(size=(5, 12))
        off = np.abs(scores.mean(axis=1)[a] - scores.mean(axis=1)[b] - (truth[a] - truth[b]))
        together += bool((off <= tukey_hsd(scores).half).all())
        one_by_one += bool((off <= mean_effect(scores[a] - scores[b]).half_width).all())
    error = 4 * np.sqrt(0.95 * 0.05 / sets)
    assert together / sets == pytest.approx(0.95, abs=error)
    assert one_by_one / sets < 0.85  # intervals of one paired t test each
