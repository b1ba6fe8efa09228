"""Decisions and scores by fewer judgments, against published values and plain calculations."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import kendalltau, ttest_rel

from probeval import synthetic_campaign
from probeval.data import Scale
from probeval.errors import ReliabilityError
from probeval.metrics import Lists, parse
from probeval.reliability import p_trend
from probeval.studies.pools import PoolOptions, choose_pool, compare_pools, depth_cuts, team_cuts
from probeval.studies.pools.outcomes import decision_outcome, movement, residuals

# Yang (2019), Table 4.6: TP, FP, FN, TN of 2,080 pairs of TREC-7, and the discrimination ratios of Table 4.5.
TABLE_4_6 = {
    ("AP", 5): ((1355, 60, 164, 501), 68.0, 73.0),
    ("AP", 10): ((1416, 58, 103, 503), 70.9, 73.0),
    ("AP", 15): ((1452, 40, 67, 521), 71.7, 73.0),
    ("AP", 20): ((1484, 39, 35, 522), 73.2, 73.0),
    ("AP", 25): ((1494, 30, 25, 531), 73.3, 73.0),
    ("nDCG", 5): ((1428, 52, 133, 467), 71.2, 75.0),
    ("nDCG", 10): ((1488, 40, 73, 479), 73.5, 75.0),
    ("nDCG", 15): ((1510, 32, 51, 487), 74.1, 75.0),
    ("nDCG", 20): ((1522, 25, 39, 494), 74.4, 75.0),
    ("nDCG", 25): ((1534, 21, 27, 498), 74.8, 75.0),
    ("RBP", 5): ((1320, 103, 125, 532), 68.4, 69.5),
    ("RBP", 10): ((1371, 78, 74, 557), 69.7, 69.5),
    ("RBP", 15): ((1395, 73, 50, 562), 70.6, 69.5),
    ("RBP", 20): ((1416, 53, 29, 582), 70.6, 69.5),
    ("RBP", 25): ((1425, 39, 20, 596), 70.4, 69.5),
}
# Table 5.13: decisions by other judgments, of 7,503 pairs.
TABLE_5_13 = {
    "Sormunen": (2734, 490, 492, 3787),
    "Q1Q2Q3": (2770, 842, 456, 3435),
    "Q1": (2744, 906, 482, 3371),
    "Q2": (2735, 826, 491, 3451),
    "Q3": (2763, 824, 463, 3453),
    "Random": (206, 245, 3020, 4032),
}


def decisions(tp: int, fp: int, fn: int, tn: int) -> tuple[np.ndarray, np.ndarray]:
    """Decisions with these counts."""
    found = np.repeat([1, 1, 0, 0], [tp, fp, fn, tn])
    return found, np.repeat([1, 0, 1, 0], [tp, fp, fn, tn])


@pytest.mark.parametrize("key", TABLE_4_6, ids=lambda key: f"{key[0]}-{key[1]}")
def test_discrimination_and_concordance_of_table_4_6(key):
    counts, printed, reference = TABLE_4_6[key]
    row = decision_outcome(*decisions(*counts))
    assert (row.tp, row.fp, row.fn, row.tn) == counts
    assert row.pairs == 2080
    assert 100 * row.discrimination == pytest.approx(printed, abs=0.051)
    assert row.concordance == (counts[0] + counts[3]) / 2080
    assert 100 * (counts[0] + counts[2]) / 2080 == pytest.approx(reference, abs=0.051)


@pytest.mark.parametrize("name", TABLE_5_13)
def test_decisions_of_table_5_13(name):
    row = decision_outcome(*decisions(*TABLE_5_13[name]))
    assert row.pairs == 7503
    assert row.tp + row.fn == 3226
    assert row.significant == row.tp + row.fp


def test_figures_of_table_5_13():
    sormunen, q1, random = (decision_outcome(*decisions(*TABLE_5_13[n])) for n in ("Sormunen", "Q1", "Random"))
    assert 100 * sormunen.concordance == pytest.approx(86.9, abs=0.05)
    assert q1.significant == 3650
    assert f"{q1.p_counts:.0e}" == "4e-12"
    assert 100 * random.discrimination == pytest.approx(6.0, abs=0.05)
    assert 100 * random.concordance == pytest.approx(56.5, abs=0.05)


def test_a_pair_with_opposite_winners_is_a_false_positive():
    row = decision_outcome(np.array([1, -1, 0]), np.array([-1, -1, 0]))
    assert (row.tp, row.fp, row.fn, row.tn, row.opposite) == (1, 1, 0, 1, 1)


def test_trends_over_all_orders_of_five_p_values():
    """Section 4.7: of 120 orders one has tau 1, four .8, nine .6, fifteen .4, twenty .2, and 22 have 0."""
    orders = np.array(list(permutations([0.01, 0.02, 0.03, 0.04, 0.05]))).T
    tau = p_trend([5, 10, 15, 20, 25], orders)
    values, counts = np.unique(np.round(tau, 9), return_counts=True)
    np.testing.assert_allclose(values, np.arange(-5, 6) / 5, atol=1e-9)
    assert counts.tolist() == [1, 4, 9, 15, 20, 22, 20, 15, 9, 4, 1]
    with pytest.raises(ReliabilityError, match="two conditions or more"):
        p_trend([5], orders[:1])


def test_the_residual_is_the_weight_of_unjudged_ranks_and_of_those_past_the_end():
    lists = Lists.of_grades([[1, float("nan"), 0, float("nan")]], Scale.binary())
    expected = 0.1 * (0.9 + 0.9**3) + 0.9**4
    assert residuals(lists, 0.9)[0, 0] == pytest.approx(expected)
    judged = Lists.of_grades([[1] * 50], Scale.binary())
    assert residuals(judged, 0.98)[0, 0] == pytest.approx(0.98**50)  # .36 in section 4.10


def test_scores_rise_and_fall_as_in_table_4_7():
    row = movement(np.array([[0.2, 0.5], [0.3, 0.3]]), np.array([[0.4, 0.5], [0.2, 0.1]]))
    assert (row.rises, row.stays, row.falls) == (0.25, 0.25, 0.5)
    assert row.change == pytest.approx(0.025)
    assert abs(row.largest_change) == pytest.approx(0.2)


@pytest.fixture(scope="module")
def pool():
    return choose_pool(synthetic_campaign(seed=4, systems=8, queries=15, depth=20))


def test_rows_against_a_plain_calculation(pool):
    metric, cuts = parse("AP"), depth_cuts(pool, [2, 5, 10])
    found = compare_pools(pool, cuts, metric, PoolOptions(alpha=0.1))
    reference = metric.scores(pool.lists(pool.judged))
    p = {}
    for cut, row in zip(cuts, found.rows, strict=True):
        values = metric.scores(pool.lists(cut.kept))
        pairs = [(i, j) for i in range(8) for j in range(i + 1, 8)]
        tested = [ttest_rel(values[i], values[j]).pvalue for i, j in pairs]
        truth = [ttest_rel(reference[i], reference[j]).pvalue for i, j in pairs]
        p[cut.value] = np.array(tested)
        assert row.decisions.discrimination == pytest.approx(np.mean(np.array(tested) < 0.1))
        same = [(a < 0.1) == (b < 0.1) for a, b in zip(tested, truth, strict=True)]
        assert row.decisions.concordance == pytest.approx(np.mean(same) - row.decisions.opposite / len(pairs))
        assert row.unjudged_as == "not relevant"
    below = np.stack([p[depth] for depth in (2.0, 5.0, 10.0)])
    trend = found.trends[0]
    assert trend.straddling == pytest.approx(np.mean((below.min(axis=0) < 0.1) & (below.max(axis=0) > 0.1)))
    assert trend.falling == pytest.approx(np.mean((np.diff(below, axis=0) < 0).all(axis=0)))
    assert sum(bar.significant + bar.straddling + bar.undecided for bar in found.bars) == 28


def test_the_trend_of_scores_with_the_residual(pool):
    metric, cuts = parse("nDCG"), depth_cuts(pool, [2, 5])
    reference = metric.scores(pool.lists(pool.judged))
    gaps, left = [], []
    for cut in cuts[:-1]:
        lists = pool.lists(cut.kept)
        gaps.append((metric.scores(lists) - reference).ravel())
        left.append(residuals(lists, 0.98).ravel())
    expected = kendalltau(np.concatenate(left), np.concatenate(gaps)).statistic
    assert compare_pools(pool, cuts, metric).trends[0].tau_difference == pytest.approx(expected, abs=1e-5)  # ties


def test_rbp_never_falls_with_more_judgments(pool):
    for row in compare_pools(pool, depth_cuts(pool, [1, 5, 10]), parse("RBP(p=0.98)")).rows:
        assert row.scores.falls == 0
        assert row.scores.change <= 0


def test_the_reference_agrees_with_itself_and_has_the_least_residual(pool):
    rows = compare_pools(pool, depth_cuts(pool, [5, 10]), parse("AP")).rows
    last = rows[-1]
    assert (last.decisions.concordance, last.tau, last.scores.stays, last.decisions.p_counts) == (1, 1, 1, 1)
    residual = [row.residual for row in rows]
    assert residual == sorted(residual, reverse=True)
    assert all(row.residual <= row.largest_residual + 1e-12 for row in rows)


def test_condensed_lists_have_no_unjudged_documents(pool):
    metric, cuts = parse("P@5"), depth_cuts(pool, [2])
    rows = compare_pools(pool, cuts, metric, PoolOptions(condensed=True)).rows
    whole, condensed = ([row for row in rows if row.lists == form] for form in ("whole", "condensed"))
    assert condensed[0].unjudged_as == "left out"
    assert condensed[0].scores.change > whole[0].scores.change  # judged documents move up
    expected = metric.scores(pool.lists(cuts[0].kept).condensed()) - metric.scores(pool.lists(pool.judged))
    assert condensed[0].scores.change == pytest.approx(expected.mean())


def test_a_team_left_out_is_compared_with_the_others(pool):
    cuts = team_cuts(pool)
    rows = compare_pools(pool, cuts, parse("AP")).rows
    for cut, row in zip(cuts, rows, strict=True):
        mine = int(cut.systems.sum())
        assert row.decisions.pairs == mine * (8 - mine)


def test_several_tests_and_pairs_across_teams(pool):
    rows = compare_pools(pool, depth_cuts(pool, [5]), parse("AP"), PoolOptions(tests=("t", "sign"))).rows
    assert [row.test for row in rows] == ["t", "t", "sign", "sign"]
    across = compare_pools(pool, depth_cuts(pool, [5]), parse("AP"), PoolOptions(across_teams=True)).rows
    teams = pool.teams
    assert across[0].decisions.pairs == sum(teams[i] != teams[j] for i in range(8) for j in range(i + 1, 8))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tests": ("T",)}, "No test 'T'"),
        ({"alpha": 0.0}, "between 0 and 1, got 0"),
        ({"persistence": 1.0}, "between 0 and 1, got 1"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(ReliabilityError, match=message):
        PoolOptions(**options)
