from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probeval.errors import SatisfactionError
from probeval.satisfaction import FAMILIES, fit_scores, goodness_of_fit, omega_squared

SCORES = np.random.default_rng(3).beta(2, 3, size=60)


@pytest.mark.parametrize("family", FAMILIES)
def test_points_and_cdf_are_two_routes_to_one_distribution(family):
    fit = fit_scores(SCORES, family)
    points = fit.points(20_000)
    for x in (0.1, 0.35, 0.6, 0.9):
        assert np.mean(points <= x) == pytest.approx(float(fit.cdf(x)), abs=2e-4)
    assert points.min() >= 0
    assert points.max() <= 1


@pytest.mark.parametrize("family", ["normal", "truncated", "beta"])
def test_against_scipy(family):
    from scipy import stats

    m, s = SCORES.mean(), SCORES.std(ddof=1)
    peers = {
        "normal": stats.norm(m, s),
        "truncated": stats.truncnorm((0 - m) / s, (1 - m) / s, m, s),
        "beta": stats.beta(m * (m * (1 - m) / s**2 - 1), (1 - m) * (m * (1 - m) / s**2 - 1)),
    }
    x = np.linspace(0.01, 0.99, 25)
    np.testing.assert_allclose(fit_scores(SCORES, family).cdf(x), peers[family].cdf(x), atol=1e-12)


def test_beta_by_moments_has_the_moments():
    points = fit_scores(SCORES, "beta").points(200_000)
    assert points.mean() == pytest.approx(SCORES.mean(), abs=1e-4)
    assert points.std() == pytest.approx(SCORES.std(ddof=1), abs=1e-3)


def test_beta_by_likelihood_where_moments_cannot():
    # The variance of zeros and ones is at its most: m (1 - m), and more with n - 1. As these are drawn in less and
    # less, the likeliest shapes go to 0 with (b/a)^2 going to 6/4.
    fit = fit_scores([0.0] * 6 + [1.0] * 4, "beta")
    a, b = fit.parameters
    assert (b / a) ** 2 == pytest.approx(1.5, abs=0.05)
    assert np.mean((fit.points() < 0.1) | (fit.points() > 0.9)) > 0.75


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_that_do_not_vary(family):
    assert fit_scores([0.4] * 5, family).points().tolist() == [0.4] * 5


def test_omega_is_worked_by_hand():
    # Unseen .2 and .6 have F = 1/2 and 1; the fit to .1 and .4 says 1/2 and 1: no distance.
    fit = fit_scores([0.1, 0.4])
    assert omega_squared(fit, [0.2, 0.6]) == 0
    # Unseen .05 and .2: F = 1/2, 1; the fit says 0, 1/2.
    assert omega_squared(fit, [0.2, 0.05]) == pytest.approx(0.5)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=3, max_size=30), st.sampled_from(sorted(FAMILIES)))
def test_every_fit_is_a_distribution_on_the_unit_interval(values, family):
    fit = fit_scores(values, family)
    x = np.linspace(-0.5, 1.5, 41)
    cdf = fit.cdf(x)
    assert np.all(np.diff(cdf) >= -1e-12)
    assert cdf.min() >= 0
    assert cdf.max() <= 1
    points = fit.points(50)
    assert np.all((points >= 0) & (points <= 1))


def test_the_right_family_predicts_best():
    scores = np.random.default_rng(5).beta(0.6, 1.5, size=(12, 100))
    table = goodness_of_fit(scores, n=30, rng=np.random.default_rng(1), trials=10)
    assert table.index[0] == "beta"
    assert set(table.index) == set(FAMILIES)


def test_bad_input_says_what_to_do():
    with pytest.raises(SatisfactionError, match="No family 'gamma': empirical, normal, truncated, beta"):
        fit_scores([0.1, 0.2], "gamma")
    with pytest.raises(SatisfactionError, match="at least two queries, got 1"):
        fit_scores([0.1])
    with pytest.raises(SatisfactionError, match=r"from 0 to 1 here, got 0.1 to 1.5"):
        fit_scores([0.1, 1.5])
    with pytest.raises(SatisfactionError, match="Of 4 queries 2 to 3 can be fitted, got n=4"):
        goodness_of_fit([0.1, 0.2, 0.3, 0.4], n=4, rng=np.random.default_rng(0))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_score_of_one_plus_rounding_is_one(family):
    above = np.nextafter(1.0, 2.0)
    fit = fit_scores([0.5, 0.8, above, -1e-17], family)
    assert fit.values.tolist() == [0.0, 0.5, 0.8, 1.0]
    with pytest.raises(SatisfactionError, match="Normalise"):
        fit_scores([0.5, 1.001], family)
