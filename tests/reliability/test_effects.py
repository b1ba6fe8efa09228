"""Effect sizes and power: against scipy and statsmodels, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import ttost_paired

from probeval.errors import ReliabilityError
from probeval.reliability.effect_sizes import equivalence_test, mean_effect, standardised_effect, superiority
from probeval.reliability.power import minimum_difference, power_of, queries_needed

RNG = np.random.default_rng(22)
GAP = RNG.normal([[0.0], [0.2], [-0.5]], 0.4, size=(3, 20))


def test_mean_with_its_t_interval():
    found = mean_effect(GAP, level=0.9)
    for i, d in enumerate(GAP):
        low, high = stats.ttest_1samp(d, 0).confidence_interval(0.9)
        assert (found.lower[i], found.upper[i]) == (pytest.approx(low), pytest.approx(high))
    np.testing.assert_allclose(found.half_width, found.value - found.lower)


def test_the_half_width_is_the_least_significant_difference():
    d = GAP[1]
    half = mean_effect(d[None]).half_width[0]
    for factor, significant in ((1.001, True), (0.999, False)):
        assert (stats.ttest_1samp(d - d.mean() + half * factor, 0).pvalue < 0.05) == significant


def test_standardised_interval_holds_as_often_as_it_says():
    rng = np.random.default_rng(3)
    found = standardised_effect(rng.normal(0.5, 1, size=(2000, 15)), level=0.9)
    held = ((found.lower < 0.5) & (found.upper > 0.5)).mean()
    assert abs(held - 0.9) < 3.5 * np.sqrt(0.09 / 2000)
    assert found.value[0] < found.upper[0]


def test_superiority_is_wilsons():
    gap = np.array([[0.1, 0.2, -0.1, 0.3, 0.0, 0.0]])
    found = superiority(gap)
    assert found.value[0] == pytest.approx(4 / 6)
    low, high = proportion_confint(4, 6, method="wilson")
    assert (found.lower[0], found.upper[0]) == (pytest.approx(low), pytest.approx(high))


def test_equivalence_is_two_one_sided_tests():
    p = equivalence_test(GAP, rope=0.3)
    want = [ttost_paired(d, np.zeros(20), -0.3, 0.3)[0] for d in GAP]
    np.testing.assert_allclose(p, want, rtol=1e-10)
    with pytest.raises(ReliabilityError, match="rope above 0"):
        equivalence_test(GAP, rope=0.0)


def test_effects_without_spread_and_without_enough_queries():
    constant, single = np.full((1, 5), 0.2), np.array([[0.3]])
    assert (mean_effect(constant).lower[0], mean_effect(constant).upper[0]) == (pytest.approx(0.2), pytest.approx(0.2))
    assert np.isnan(standardised_effect(constant).value[0])
    assert equivalence_test(constant, rope=0.3)[0] == 0
    assert mean_effect(single).value[0] == 0.3
    assert np.isnan(mean_effect(single).lower[0])
    assert np.isnan(equivalence_test(single, rope=1.0)[0])
    assert superiority(single).value[0] == 1
    with pytest.raises(ReliabilityError, match="between 0 and 1"):
        mean_effect(GAP, level=1.0)


def test_the_threshold_of_rule_four():
    # Urbano and Schedl (2012): sd .248, 100 queries, alpha .05, power .85, one tail.
    assert minimum_difference(sd=0.248, n=100, alpha=0.05, power=0.85, tails=1) == pytest.approx(0.067, abs=5e-4)


@pytest.mark.parametrize("tails", [1, 2])
def test_the_power_of_large_differences_is_one(tails):
    power = power_of(np.linspace(0.01, 3, 2000), sd=0.248, n=100, tails=tails)
    assert (np.diff(power) > -1e-9).all()  # not NaN anywhere
    assert power[-1] == 1


@pytest.mark.parametrize(("tails", "alternative"), [(1, "larger"), (2, "two-sided")])
def test_power_is_statsmodels(tails, alternative):
    want = TTestPower().power(0.3, 40, 0.05, alternative=alternative)
    assert float(power_of(0.06, sd=0.2, n=40, tails=tails)) == pytest.approx(want, abs=1e-9)


def test_power_is_how_often_a_difference_is_found():
    rng = np.random.default_rng(4)
    p = stats.ttest_1samp(rng.normal(0.1, 0.25, size=(4000, 30)), 0, axis=1).pvalue
    want = float(power_of(0.1, sd=0.25, n=30))
    assert abs((p < 0.05).mean() - want) < 3.5 * np.sqrt(want * (1 - want) / 4000)


def test_power_inverts():
    least = minimum_difference(sd=0.2, n=50, power=0.8)
    assert float(power_of(least, sd=0.2, n=50)) == pytest.approx(0.8, abs=1e-9)
    n = queries_needed(0.05, sd=0.2, power=0.8)
    assert float(power_of(0.05, sd=0.2, n=n)) >= 0.8 > float(power_of(0.05, sd=0.2, n=n - 1))
    assert queries_needed(0.0, sd=0.2) == np.inf
    assert queries_needed(10.0, sd=0.001) == 2


@pytest.mark.parametrize(
    ("what", "match"),
    [
        ({"sd": 0.0, "n": 10}, "standard deviation above 0"),
        ({"sd": 0.1, "n": 1}, "two queries"),
        ({"sd": 0.1, "n": 10, "tails": 3}, "one tail or two"),
        ({"sd": 0.1, "n": 10, "power": 0.01}, "between alpha"),
        ({"sd": 0.1, "n": 10, "alpha": 1.5, "power": 1.6}, "between"),
    ],
)
def test_power_refuses(what, match):
    with pytest.raises(ReliabilityError, match=match):
        minimum_difference(**what)
