"""All pairs of systems compared, and two sets of decisions against each other."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from probeval.errors import ProbevalWarning, ReliabilityError
from probeval.metrics import measure
from probeval.reliability.multiple import tukey_hsd
from probeval.reliability.observed import Observed
from probeval.reliability.significance import COMPARISONS, compare
from probeval.reliability.twoway import TwoWay, compare_counts, signed, straddling, two_way

RNG = np.random.default_rng(23)
SCORES = np.clip(RNG.normal([[0.3], [0.5], [0.32], [0.7]], 0.15, size=(4, 20)), 0, 1)
NAMES = ["low", "middle", "copy", "high"]


def test_the_better_looking_system_comes_first():
    found = compare(SCORES, systems=NAMES)
    assert found.systems[0] == "high"
    assert (found.difference.value >= 0).all()
    table = found.to_frame()
    assert list(table["a"][:3]) == ["high"] * 3
    p = stats.ttest_rel(SCORES[3], SCORES[0]).pvalue
    row = table[(table["a"] == "high") & (table["b"] == "low")].iloc[0]
    assert row["p"] == pytest.approx(p)
    assert row["adjusted"] >= row["p"]


@pytest.mark.parametrize("method", COMPARISONS)
def test_every_method_tells_the_best_from_the_worst(method):
    found = compare(SCORES, systems=NAMES, method=method, samples=999)
    assert found.to_frame().iloc[2][["a", "b"]].tolist() in (["high", "low"], ["high", "copy"])
    assert found.decision[2] == 1
    assert 0 < found.discrimination <= 1


def test_too_few_samples_for_the_correction_are_said():
    with pytest.warns(ProbevalWarning, match="nothing can be significant"):
        compare(SCORES, method="permutation", samples=99)
    assert compare(SCORES, method="permutation", samples=99, correction="bh").decision.any()


def test_tukey_is_corrected_already():
    found = compare(SCORES, method="tukey")
    assert found.correction == "none"
    # Its statistic and its intervals are Tukey's own: wider than those of one t test each, and in step with p.
    together = tukey_hsd(np.asarray(SCORES)[[int(s[1:]) - 1 for s in found.systems]])
    np.testing.assert_allclose(found.statistic, together.statistic)
    np.testing.assert_allclose(found.difference.half_width, together.half)
    assert ((np.abs(found.difference.value) > found.difference.half_width) == (found.adjusted < 0.05)).all()
    assert "simultaneous" in found.sentences()[-1]
    with pytest.raises(ReliabilityError, match="takes no correction"):
        compare(SCORES, method="tukey", correction="holm")


def test_the_report_has_value_half_width_and_p():
    assert compare([[0.9, 0.7, 0.8, 0.6], [0.5, 0.6, 0.6, 0.4]]).report() == ["0.2250 +- 0.2002 (p = 0.037)"]
    assert compare(SCORES).report()[2].endswith("(p < 0.001)")


def test_a_rope_makes_systems_equal_that_a_test_cannot_tell_apart():
    base = RNG.uniform(0.2, 0.8, size=60)
    scores = [base, base + RNG.normal(0, 0.01, size=60), base - 0.3]
    without, found = compare(scores), compare(scores, rope=0.02)
    assert without.verdicts() == ["undecided", "better", "better"]
    assert found.verdicts() == ["equal", "better", "better"]
    assert "p_tost" in found.to_frame()
    assert "p_tost" not in without.to_frame()


def test_matrix_of_pairs():
    found = compare(SCORES)
    table = found.matrix(found.difference.value, flip=-1.0)
    np.testing.assert_allclose(table, -table.T)
    mean = found.mean.value
    np.testing.assert_allclose(table[0, 1], mean[0] - mean[1])
    assert np.isnan(np.diag(table)).all()


def test_a_copy_is_never_told_apart():
    found = compare(np.vstack([SCORES, SCORES[[0]]]), method="permutation", samples=999)
    same = np.flatnonzero(found.difference.value == 0)
    assert len(same) == 1
    assert found.p[same[0]] == 1
    assert found.decision[same[0]] == 0


def test_one_system_has_no_pairs():
    found = compare(SCORES[:1], systems=["alone"])
    assert len(found.to_frame()) == 0
    assert found.friedman is None
    assert np.isnan(found.discrimination)
    assert found.systems_frame().set_index("system")["mean"]["alone"] == pytest.approx(SCORES[0].mean())
    assert json.loads(json.dumps(found.to_dict()))["pairs"] == []


def test_one_query_decides_nothing():
    found = compare(SCORES[:, :1])
    assert np.isnan(found.p).all()
    assert (found.decision == 0).all()
    assert found.friedman is None
    assert set(found.verdicts()) == {"undecided"}


def test_constant_scores_decide_nothing():
    found = compare(np.full((3, 5), 0.4))
    assert (found.p == 1).all()
    assert set(found.verdicts()) == {"undecided"}


def test_missing_scores_leave_their_queries_out_of_their_pairs():
    gaps = SCORES.copy()
    gaps[0, :5] = np.nan
    found = compare(gaps, systems=NAMES)
    row = found.to_frame().set_index(["a", "b"]).loc[("high", "low")]
    assert row["queries"] == 15
    assert row["p"] == pytest.approx(stats.ttest_rel(SCORES[3, 5:], SCORES[0, 5:]).pvalue)
    assert found.friedman.queries == 15


def test_scores_come_from_what_holds_them(small):
    measured = measure(small.runs, small.judgments, "nDCG@5")
    found = compare(measured)
    np.testing.assert_allclose(sorted(found.mean.value), sorted(measured.values.mean(axis=1)))
    again = compare(Observed.matrix(measured.values, measured.systems))
    assert again.systems == found.systems


@pytest.mark.parametrize(
    ("values", "options", "match"),
    [
        ([0.1, 0.2], {}, "by system and query"),
        (np.empty((0, 3)), {}, "by system and query"),
        (SCORES, {"systems": ["a"]}, "as many names"),
        (SCORES, {"method": "tukei"}, "Did you mean 'tukey'"),
        (SCORES, {"rope": -1}, "at least 0"),
        (SCORES, {"level": 2}, "between 0 and 1"),
        ([[0.1, np.inf], [0, 1]], {}, "finite"),
        ([[0.1, 0.2], [np.nan, np.nan]], {"systems": ["a", "b"]}, "b has no score"),
        (Observed.matrix(RNG.random((3, 2, 4))), {}, "one score for each"),
    ],
)
def test_what_is_refused(values, options, match):
    with pytest.raises(ReliabilityError, match=match):
        compare(values, **options)


# ---- decisions against decisions ----


def test_two_ways():
    found, reference = np.array([1, 1, 1, 0, 0, -1]), np.array([1, 0, -1, 1, 0, -1])
    table = two_way(found, reference)
    assert table == TwoWay(tp=2, fp=2, fn=1, tn=1)
    assert table.pairs == 6
    assert (table.precision, table.recall) == (0.5, 2 / 3)
    assert table.f == pytest.approx(2 * 0.5 * (2 / 3) / (0.5 + 2 / 3))
    assert np.isnan(TwoWay(0, 0, 0, 0).f)
    with pytest.raises(ReliabilityError, match="same pairs"):
        two_way(found, reference[:2])


def test_a_p_that_is_not_known_decides_nothing():
    np.testing.assert_array_equal(signed(np.array([0.1, np.nan]), np.array([np.nan, 0.01])), [0, 0])


def test_straddling():
    p = np.array([[0.01, 0.2, 0.03], [0.2, 0.3, 0.04]])
    np.testing.assert_array_equal(straddling(p), [True, False, False])


def test_counts_are_compared_by_chi_squared():
    table = [[3650, 7503 - 3650], [3226, 7503 - 3226]]
    want = stats.chi2_contingency(table, correction=False)
    assert compare_counts(3650, 3226, n=7503) == (pytest.approx(want.statistic), pytest.approx(want.pvalue))
    assert compare_counts(0, 0, n=5) == (0.0, 1.0)
    with pytest.raises(ReliabilityError, match="between 0 and"):
        compare_counts(6, 1, n=5)
