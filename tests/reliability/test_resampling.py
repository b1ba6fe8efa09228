"""Resampling by the sums of systems against the tests of differences of pairs."""

from __future__ import annotations

import numpy as np
import pytest

from probeval.errors import ReliabilityError
from probeval.reliability.paired import bootstrap_test, differences, pair_index, permutation_test
from probeval.reliability.resampling import RESAMPLED, Resamples

TESTS = {"bootstrap": bootstrap_test, "permutation": permutation_test}
SCORES = np.round(np.random.default_rng(3).beta(1, 2, size=(7, 24)), 1)  # with ties


@pytest.mark.parametrize("test", RESAMPLED)
def test_p_is_that_of_the_differences(test):
    """Two ways and two sets of 40,000 resamples: each p has a standard error of at most .0025."""
    gap = differences(SCORES, *pair_index(len(SCORES)))
    expected = TESTS[test](gap, samples=40_000, rng=np.random.default_rng(4))[1]
    found = Resamples.draw(test, 24, samples=40_000, rng=np.random.default_rng(5)).p(SCORES)
    np.testing.assert_allclose(found, expected, atol=0.015)


def test_p_by_hand():
    """Every set of swaps of three queries: of eight sums of differences 1, 2 and 3, two are as far from 0 as 6."""
    swaps = np.array(np.meshgrid(*[[1.0, -1.0]] * 3)).reshape(3, 8)
    scores = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
    assert Resamples("permutation", swaps).p(scores).tolist() == [3 / 9]
    # Shifted to no difference, the sums of these two resamples of the same are -3 and 3 from it: none reaches 6.
    drawn = np.array([[3.0, 0.0], [0.0, 0.0], [0.0, 3.0]])
    assert Resamples("bootstrap", drawn).p(scores).tolist() == [1 / 3]


def test_systems_without_a_difference_have_p_1():
    same = np.vstack([SCORES[0], SCORES[0], SCORES[1]])
    for test in RESAMPLED:
        p = Resamples.draw(test, 24, samples=99, rng=np.random.default_rng(1)).p(same)
        assert p[0] == 1
        assert p[1] == p[2]


@pytest.mark.parametrize("at_once", [1, 50, 10_000])
def test_blocks_do_not_change_the_result(at_once, monkeypatch):
    resamples = Resamples.draw("bootstrap", 24, samples=101, rng=np.random.default_rng(1))
    whole = resamples.p(SCORES)
    monkeypatch.setattr("probeval.reliability.resampling.AT_ONCE", at_once)
    np.testing.assert_array_equal(resamples.p(SCORES), whole)


def test_a_sample_is_needed():
    with pytest.raises(ReliabilityError, match="at least one sample, got 0"):
        Resamples.draw("bootstrap", 24, samples=0, rng=np.random.default_rng(1))
