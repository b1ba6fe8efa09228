"""Rank correlations: against scipy, by brute force, and in their corners."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from probeval.errors import ReliabilityError
from probeval.reliability.correlation import (
    agreements,
    ap_correlation,
    kendall,
    rank,
    rank_biased_overlap,
    spearman,
)

tied = st.lists(st.integers(0, 5), min_size=3, max_size=12)


@given(st.data())
def test_tau_b_and_rho_are_scipys(data):
    x = data.draw(tied)
    y = data.draw(st.lists(st.integers(0, 5), min_size=len(x), max_size=len(x)))
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert np.isnan(kendall(x, y))
        assert np.isnan(spearman(x, y))
        return
    assert kendall(x, y) == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)


@given(tied)
def test_ranks_are_scipys(x):
    np.testing.assert_array_equal(rank(x, ties="mean", descending=False), stats.rankdata(x))
    np.testing.assert_array_equal(rank(x), stats.rankdata(-np.array(x), method="min"))


def test_ranks_go_along_the_last_axis():
    np.testing.assert_array_equal(rank([[1, 2], [4, 3]]), [[2, 1], [1, 2]])


def test_tau_a_counts_a_tie_as_half_right():
    assert kendall([3, 2, 1], [1, 1, 0], variant="a") == pytest.approx(2 / 3)
    assert kendall([1, 1, 1], [3, 2, 1], variant="a") == 0


@given(st.permutations(range(8)), st.permutations(range(8)))
def test_without_ties_tau_is_twice_agreement_less_one(x, y):
    agree, disagree, unknown = agreements(x, y)
    assert unknown == 0
    assert kendall(x, y) == pytest.approx(2 * agree - 1)
    assert kendall(x, y, variant="a") == pytest.approx(agree - disagree)


def plain_ap(x, y):
    order = np.argsort(-np.asarray(y), kind="stable")
    x = np.asarray(x)[order]
    return 2 / (len(x) - 1) * sum((x[:i] > x[i]).sum() / i for i in range(1, len(x))) - 1


@given(st.permutations(range(7)), st.permutations(range(7)))
def test_ap_correlation_without_ties_is_yilmazs(x, y):
    assert ap_correlation(x, y, variant="a") == pytest.approx(plain_ap(x, y))
    assert ap_correlation(x, y) == pytest.approx((plain_ap(x, y) + plain_ap(y, x)) / 2)


@given(st.permutations(range(5)), st.lists(st.integers(0, 2), min_size=5, max_size=5))
def test_ap_correlation_a_is_the_mean_over_orders_of_ties(x, y):
    orders = [p for p in permutations(range(5)) if all(y[p[i]] >= y[p[i + 1]] for i in range(4))]
    every = [plain_ap(x, -np.argsort(order)) for order in orders]
    assert ap_correlation(x, y, variant="a") == pytest.approx(np.mean(every))


def test_ap_correlation_cares_for_the_top():
    truth = list(range(10, 0, -1))
    top, bottom = truth.copy(), truth.copy()
    top[0], top[1] = top[1], top[0]
    bottom[-1], bottom[-2] = bottom[-2], bottom[-1]
    assert kendall(truth, top) == kendall(truth, bottom)
    assert ap_correlation(truth, top, variant="a") < ap_correlation(truth, bottom, variant="a")


def test_correlations_of_nothing():
    for found in (kendall([1], [1]), kendall([1], [1], variant="a"), spearman([1], [2]), ap_correlation([1], [1])):
        assert np.isnan(found)
    assert np.isnan(ap_correlation([1], [1], variant="a"))
    assert np.isnan(ap_correlation([1, 2], [1, 1]))
    assert np.isnan(agreements([1], [1])).all()


def overlap(x, y, p, depth):
    """The plain sum to some depth."""
    shared = [len(set(x[:d]) & set(y[:d])) / d for d in range(1, depth + 1)]
    return (1 - p) * sum(a * p**i for i, a in enumerate(shared))


@given(
    st.permutations(range(9)),
    st.permutations(range(9)),
    st.integers(1, 9),
    st.integers(1, 9),
    st.sampled_from([0.5, 0.8]),
)
def test_overlap_of_seen_tops_bounds_that_of_any_lists(x, y, k, n, p):
    found = rank_biased_overlap(x[:k], y[:n], p=p)
    rest = [*range(100, 200)]
    # All the rest in common: each list goes on with what it lacks of the other, then with the same.
    best = [[*a, *(v for v in b if v not in a), *rest] for a, b in ((x[:k], y[:n]), (y[:n], x[:k]))]
    worst = [[*x[:k], *range(200, 300)], [*y[:n], *range(300, 400)]]
    assert overlap(*worst, p, 90) >= found.least - 1e-6
    assert overlap(*best, p, 90) <= found.least + found.residual + 1e-6
    assert found.least - 1e-9 <= found.extrapolated <= found.least + found.residual + 1e-9
    if k == n:
        assert overlap(*worst, p, 90) == pytest.approx(found.least, abs=1e-6)
        assert overlap(*best, p, 90) == pytest.approx(found.least + found.residual, abs=1e-6)


def test_overlap_of_the_same_and_of_strangers():
    same = rank_biased_overlap("abcdef", "abcdef")
    assert same.extrapolated == pytest.approx(1)
    assert same.least + same.residual == pytest.approx(1)
    apart = rank_biased_overlap("abc", "xyz")
    assert (apart.least, apart.extrapolated) == (0, 0)


def test_overlap_does_not_care_which_list_is_first():
    assert rank_biased_overlap("abcde", "bax") == rank_biased_overlap("bax", "abcde")


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: kendall([1, 2], [1, 2, 3]), "two numbers for each system"),
        (lambda: kendall([1, np.nan], [1, 2]), "none missing"),
        (lambda: kendall([1, 2], [1, 2], variant="c"), "'a' or 'b'"),
        (lambda: rank_biased_overlap("aa", "ab"), "nothing twice"),
        (lambda: rank_biased_overlap("", "ab"), "something in them"),
        (lambda: rank_biased_overlap("a", "a", p=1), "between 0 and 1"),
    ],
)
def test_what_is_refused(call, match):
    with pytest.raises(ReliabilityError, match=match):
        call()
