"""Published values of tests, correlations and agreement.

Yang (2019), chapters 2, 4 and 5: recomputed and found to agree to the digits printed there; its misprints are left out.
ircor: the test values of Urbano's R package. The figures of MIREX 2011 are from Urbano's thesis (2013), section 5.6.
"""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from probeval.data import read_campaign
from probeval.metrics import measure
from probeval.reliability import (
    TESTS,
    TwoWay,
    agreements,
    ap_correlation,
    compare,
    compare_counts,
    difference_bounds,
    kendall,
    krippendorff_alpha,
    minimum_difference,
    pair_labels,
    rank_biased_overlap,
    rules,
    spearman,
    split_half,
    straddling,
    t_test,
    two_way,
)
from probeval.reliability.correlation import rank

M0, M1, M2 = [9, 8, 7, 6, 5], [8.5, 9.3, 8, 7.5, 7], [9.7, 8.1, 5.5, 6, 6.9]
M3, M4 = [8.3, 7.8, 6.5, 6.5, 5], [9.1, 8.2, 7.4, 6.5, 6.5]


def ordered(scores):
    return [f"s{i}" for i in np.argsort(-np.array(scores))]


def test_o5_correlations_without_ties():
    assert kendall(M0, M1) == pytest.approx(0.8)
    assert spearman(M0, M1) == pytest.approx(0.9)
    assert spearman(M0, M2) == pytest.approx(0.6)
    assert rank_biased_overlap(ordered(M0), ordered(M1), p=0.8).extrapolated == pytest.approx(0.8, abs=5e-4)
    # Printed as .8 and .846 : three of ten pairs are discordant, and the printed terms sum to .932.
    assert kendall(M0, M2) == pytest.approx(0.4)
    assert rank_biased_overlap(ordered(M0), ordered(M2), p=0.8).extrapolated == pytest.approx(0.932, abs=5e-4)


def test_o6_correlations_with_ties():
    np.testing.assert_array_equal(rank(M3), [1, 2, 3, 3, 5])
    np.testing.assert_array_equal(rank(M4), [1, 2, 3, 4, 4])
    assert kendall(M1, M4) == pytest.approx(0.738, abs=5e-4)
    assert kendall(M3, M4) == pytest.approx(0.889, abs=5e-4)
    assert spearman(M3, M4) == pytest.approx(0.921, abs=5e-4)  # printed .925 by the shortcut that ties spoil


BINARY, GRADED = [1] * 6 + [0] * 4, [5, 5, 4, 3, 3, 3, 2, 2, 1, 0]


@pytest.mark.parametrize(
    ("other", "tau", "rho"),
    [
        (GRADED, 0.775, 0.869),
        ([2**g for g in GRADED], 0.775, 0.869),
        ([5, 5, 5, 3, 3, 3, 2, 2, 1, 0], 0.795, 0.877),
        ([5, 5, 4, 3, 3, 3, 3, 3, 1, 0], 0.630, 0.685),
        ([5, 5, 5, 3, 3, 3, 3, 3, 1, 1], 0.660, 0.694),
        ([4] * 6 + [1] * 4, 1.0, 1.0),
        ([1] * 9 + [0], 0.408, 0.408),
    ],
)
def test_o7_merging_grades_changes_correlations(other, tau, rho):
    assert kendall(BINARY, other) == pytest.approx(tau, abs=5e-4)
    assert spearman(BINARY, other) == pytest.approx(rho, abs=5e-4)


def test_o8_alpha_of_graded_judgments():
    # Units RRH, NNN, HRH, RHR with N, R, H as 0, 1, 2; the ordinal value is derived, not printed.
    said = np.transpose([[1, 1, 2], [0, 0, 0], [2, 1, 2], [1, 2, 1]])
    assert krippendorff_alpha(said) == pytest.approx(0.298, abs=5e-4)
    assert krippendorff_alpha(said, level="ordinal") == pytest.approx(0.558, abs=5e-4)


def test_o9_alpha_of_scores_and_of_preferences():
    scores = [[0.5, 0.1, 0.7, 0.5], [0.4, 0.2, 0.5, 0.7], [0.9, 0.5, 0.9, 0.7]]
    assert krippendorff_alpha(scores) == pytest.approx(-0.080, abs=5e-4)
    labels = pair_labels(scores)
    assert (labels == 0).mean() == pytest.approx(2 / 18)
    assert krippendorff_alpha(labels) == pytest.approx(0.353, abs=5e-4)
    assert krippendorff_alpha(pair_labels(scores, ties=False)) == pytest.approx(0.5)


def test_o14_tau_of_p_values_against_pool_depth():
    counts = Counter(round(kendall(range(5), p) * 10) for p in permutations(range(5)))
    assert [counts[k] for k in range(-10, 11, 2)] == [1, 4, 9, 15, 20, 22, 20, 15, 9, 4, 1]
    depth = [5, 10, 15, 20, 25]
    assert kendall(depth, [0.0836, 0.0128, 0.0076, 0.0070, 0.0067]) == pytest.approx(-1)
    assert kendall(depth, [0.0044, 0.0080, 0.0071, 0.0083, 0.0095]) == pytest.approx(0.8)
    p = np.array([[0.0836, 0.0128, 0.0076, 0.0070, 0.0067], [0.0044, 0.0080, 0.0071, 0.0083, 0.0095]]).T
    np.testing.assert_array_equal(straddling(p), [True, False])


# Table 4.6: TP, FP, FN, TN at five pool depths; Table 4.5: discrimination in per cent, the last that of the reference.
TREC7 = {
    "AP": (
        [(1355, 60, 164, 501), (1416, 58, 103, 503), (1452, 40, 67, 521), (1484, 39, 35, 522), (1494, 30, 25, 531)],
        [68.0, 70.9, 71.7, 73.2, 73.3, 73.0],
        [89.2, 92.3, 94.9, 96.4, 97.4],
    ),
    "NDCG": (
        [(1428, 52, 133, 467), (1488, 40, 73, 479), (1510, 32, 51, 487), (1522, 25, 39, 494), (1534, 21, 27, 498)],
        [71.2, 73.5, 74.1, 74.4, 74.8, 75.0],
        [91.1, 94.6, 96.0, 96.9, 97.7],
    ),
    "RBP": (
        [(1320, 103, 125, 532), (1371, 78, 74, 557), (1395, 73, 50, 562), (1416, 53, 29, 582), (1425, 39, 20, 596)],
        [68.4, 69.7, 70.6, 70.6, 70.4, 69.5],
        [89.0, 92.7, 94.1, 96.1, 97.2],
    ),
}


@pytest.mark.parametrize("measure_name", TREC7)
def test_o15_discrimination_and_concordance(measure_name):
    counts, printed, concordance = TREC7[measure_name]
    tables = [TwoWay(*c) for c in counts]
    assert {t.pairs for t in tables} == {2080}
    np.testing.assert_allclose([100 * t.discrimination for t in tables], printed[:-1], atol=0.051)
    np.testing.assert_allclose([100 * (t.tp + t.fn) / t.pairs for t in tables], [printed[-1]] * 5, atol=0.051)
    np.testing.assert_allclose([100 * t.concordance for t in tables], concordance, atol=0.051)


def test_o20_crowd_judgments_against_experts():
    rows = {
        "Sormunen": (2734, 490, 492, 3787), "Q1Q2Q3": (2770, 842, 456, 3435), "Q1Q3": (2782, 845, 444, 3432),
        "Q2Q3": (2764, 833, 462, 3444), "Q1Q2": (2752, 862, 474, 3415), "Q1": (2744, 906, 482, 3371),
        "Q2": (2735, 826, 491, 3451), "Q3": (2763, 824, 463, 3453), "Random": (206, 245, 3020, 4032),
    }  # fmt: skip
    tables = {name: TwoWay(*row) for name, row in rows.items()}
    assert {(t.pairs, t.tp + t.fn) for t in tables.values()} == {(7503, 3226)}
    assert tables["Sormunen"].concordance == pytest.approx(0.869, abs=5e-4)
    assert tables["Q1"].tp + tables["Q1"].fp == 3650
    assert tables["Random"].discrimination == pytest.approx(0.060, abs=5e-4)
    assert compare_counts(3650, 3226, n=7503)[1] == pytest.approx(4e-12, rel=0.2)


def test_table_5_10_paired_t():
    q1 = [33.87, 40.55, 41.82, 38.76, 46.88, 44.96, 39.44, 37.15, 32.28]
    q2 = [38.00, 52.87, 40.33, 37.83, 47.77, 46.36, 44.42, 35.66, 37.89]
    assert t_test(np.subtract(q1, q2)[None])[1][0] == pytest.approx(0.0959, abs=5e-5)


def test_table_5_8_agreement_and_tau_are_two_ways_to_say_it():
    x, y = np.random.default_rng(1).permutation(129), np.arange(129)
    assert kendall(x, y) == pytest.approx(2 * agreements(x, y)[0] - 1)


# Urbano and Marrero, "The Treatment of Ties in AP Correlation" (2017): the test values of their package ircor.
IRCOR = [
    (
        [0.897, 0.372, 0.908, 0.898, 0.661, 0.062, 0.177, 0.384, 0.498, 0.992],
        [0.82, 0.406, 0.817, 0.953, 0.673, 0.073, 0.364, 0.547, 0.589, 0.988],
        {"tau": 0.9111, "tau_b": 0.9398, "ap": 0.8519, "ap_a": 0.7454, "symmetric": 0.8333, "ap_b": 0.7321},
    ),
    (
        [0.266, 0.573, 0.202, 0.945, 0.629, 0.206, 0.687, 0.77, 0.718, 0.38],
        [0.263, 0.843, 0.728, 0.928, 0.08, 0.114, 0.467, 0.641, 0.973, 0.644],
        {"tau": 0.2889, "tau_b": 0.3765, "ap": 0.2504, "ap_a": 0.2692, "symmetric": 0.2880, "ap_b": 0.297},
    ),
    (
        [0.185, 0.573, 0.944, 0.129, 0.468, 0.553, 0.761, 0.405, 0.976, 0.445],
        [0.845, 0.272, 0.275, 0.924, 0.605, 0.334, 0.162, 0.872, 0.018, 0.25],
        {"tau": -0.6889, "tau_b": -0.6510, "ap": -0.6971, "ap_a": -0.5558, "symmetric": -0.668, "ap_b": -0.7047},
    ),
]


@pytest.mark.parametrize(("x", "y", "value"), IRCOR)
def test_ircor(x, y, value):
    x_tied, y_tied = np.round(x, 1), np.round(y, 1)
    found = {
        "tau": kendall(x, y),
        "tau_b": kendall(x_tied, y_tied),
        "ap": ap_correlation(x, y, variant="a"),
        "ap_a": ap_correlation(x, y_tied, variant="a"),
        "symmetric": ap_correlation(x, y),
        "ap_b": ap_correlation(x_tied, y_tied),
    }
    assert found == pytest.approx(value, abs=5e-5)
    assert ap_correlation(y_tied, x_tied) == pytest.approx(value["ap_b"], abs=5e-5)


def test_threshold_of_rule_four():
    # Urbano and Schedl (2012): sd .248, 100 queries, alpha .05, power .85, one tail.
    assert round(minimum_difference(sd=0.248, n=100, tails=1), 3) == 0.067


# ---- MIREX 2011 ----


@pytest.fixture(scope="module")
def mirex(data):
    campaign = read_campaign(data / "mirex2011")
    return campaign, measure(campaign.runs, campaign.judgments, "CG@5")


def test_reported_effects(mirex):
    found = compare(mirex[1])
    system = found.systems_frame().set_index("system").loc["4954a8"]
    np.testing.assert_allclose(system[["mean", "lower", "upper"]].astype(float), [0.422, 0.376, 0.468], atol=5e-4)
    pair = found.to_frame().set_index(["a", "b"]).loc[("2d3c5b", "3fd025")]
    np.testing.assert_allclose(
        pair[["difference", "lower", "upper"]].astype(float), [0.082, 0.051, 0.112], atol=5.01e-4
    )
    half = (pair["upper"] - pair["lower"]) / 2
    assert half == pytest.approx(0.031, abs=5e-4)


def test_rules_with_judgments_missing(mirex):
    # With more judged the rules say more, and what rules 1 and 2 say is right.
    campaign, measured = mirex
    scale = campaign.judgments.scale()
    runs = campaign.runs.top(5)
    full = campaign.judgments.codes_on(runs.pool, scale)
    reference = compare(measured, correction="none")
    runs = runs.select(reference.systems)
    order = np.random.default_rng(1).permutation(len(full))
    truth = reference.decision
    spoken = []
    for share in (0.7, 0.9, 0.98):
        known = full.copy()
        known[order[int(share * len(full)) :]] = -1
        decided = rules(*difference_bounds(runs, known, measured.metric, scale))
        told = np.isin(decided.rule, (1, 2))
        assert (decided.sign[told] == truth[told]).all()
        spoken.append((decided.rule > 0).mean())
    assert spoken[0] < spoken[1] < spoken[2]
    assert spoken[2] > 0.6
    table = two_way(decided.sign, truth)
    assert table.precision == 1
    assert table.recall > 0.7


@pytest.mark.slow
def test_split_halves(mirex):
    # Thesis, section 5.4, over four editions and fourteen measures: about 67% of pairs significant at .05, almost 90%
    # of these again significant on the other half, and conflicts in slightly over 1%.
    for test in TESTS:
        rates = split_half(mirex[1].values, test=test, splits=20, samples=500, rng=np.random.default_rng(2)).rates()
        assert 0.15 < rates["nonsignificance"] < 0.45
        assert rates["success"] > 0.8
        assert rates["conflict"] < 0.03
