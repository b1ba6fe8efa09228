"""A test held against itself on the other half of the queries."""

from __future__ import annotations

import numpy as np
import pytest

from probeval.errors import ReliabilityError
from probeval.reliability.paired import TESTS, differences, pair_index, run_test
from probeval.reliability.resampling import RESAMPLED
from probeval.reliability.splithalf import SplitHalf, split_half, split_halves

SCORES = np.random.default_rng(24).normal([[0.0], [0.0], [0.3], [1.0]], 0.4, size=(4, 40))


def test_every_outcome_has_its_name():
    p = np.array([[[0.01, 0.01, 0.01, 0.01, 0.01, 0.30]], [[0.01, 0.50, 0.50, 0.01, 0.50, 0.01]]])
    sign = np.array([[[1, 1, 1, 1, 1, 1]], [[1, 1, -1, -1, 0, 1]]], dtype=float)
    rates = SplitHalf("t", p, sign).rates()
    assert rates == pytest.approx(
        {
            "nonsignificance": 1 / 6,
            "success": 0.2,
            "lack_of_power": 0.4,
            "minor_conflict": 0.2,
            "major_conflict": 0.2,
            "conflict": 0.4,
        }
    )


@pytest.mark.parametrize("test", TESTS)
def test_outcomes_sum_to_one(test):
    rates = split_half(SCORES, test=test, splits=10, samples=99).rates()
    names = ("success", "lack_of_power", "minor_conflict", "major_conflict")
    assert sum(rates[name] for name in names) == pytest.approx(1)
    assert rates["success"] > 0.5


def test_where_nothing_differs_the_level_is_kept():
    scores = np.random.default_rng(25).normal(size=(10, 60))
    found = split_half(scores, splits=100)
    assert found.rates()["nonsignificance"] > 0.85
    assert np.isnan(found.rates(alpha=1e-12)["success"])


def test_stability_is_the_distance_of_the_two_p():
    found = split_half(SCORES, splits=20)
    table = found.stability()
    assert table["pairs"].sum() == (found.p[0] <= 0.5).sum()
    first, second = found.p
    last = (first > 0.1) & (first <= 0.5)
    assert table["rms"].iloc[-1] == pytest.approx(np.sqrt(((first - second)[last] ** 2).mean()))


def test_halves_do_not_overlap():
    # One query decides everything: only one half can find it.
    scores = np.vstack([np.zeros(8), np.eye(1, 8)[0]])
    found = split_half(scores, test="sign", splits=5)
    assert ((found.sign != 0).sum(axis=0) == 1).all()


def test_what_is_refused():
    with pytest.raises(ReliabilityError, match="two queries or more"):
        split_half(SCORES[:, :3])
    with pytest.raises(ReliabilityError, match="At least one split"):
        split_half(SCORES, splits=0)


def test_tests_share_their_halves():
    t, sign = split_halves(SCORES, tests=("t", "sign"), splits=10, rng=np.random.default_rng(3))
    alone = split_half(SCORES, test="sign", splits=10, rng=np.random.default_rng(3))
    np.testing.assert_array_equal(sign.p, alone.p)
    np.testing.assert_array_equal(t.sign, sign.sign)


@pytest.mark.parametrize("test", TESTS)
def test_p_of_a_half_is_that_of_the_test_on_it(test, monkeypatch):
    """Also where splits are taken in several blocks."""
    monkeypatch.setattr("probeval.reliability.splithalf.AT_ONCE", 500)
    found = split_half(SCORES, test=test, splits=5, samples=4000, rng=np.random.default_rng(6))
    rng = np.random.default_rng(6)
    gap = differences(SCORES, *pair_index(len(SCORES)))
    for i in range(5):
        order = rng.permutation(SCORES.shape[1])
        for side, queries in enumerate((order[:20], order[20:])):
            expected = run_test(test, gap[:, queries], samples=4000, rng=np.random.default_rng(7))[1]
            np.testing.assert_allclose(found.p[side, i], expected, atol=0.04 if test in RESAMPLED else 1e-12)


def test_gaps_leave_queries_out():
    scores = SCORES.copy()
    scores[0, :3] = np.nan
    for test in ("t", "bootstrap", "permutation"):
        found = split_half(scores, test=test, splits=4, samples=99)
        assert not np.isnan(found.p).any()


def test_an_unknown_test_is_refused():
    with pytest.raises(ReliabilityError, match="No test 'wilcox'"):
        split_half(SCORES, test="wilcox")
