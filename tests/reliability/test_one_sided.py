"""One-tailed tests, means against a target, and non-inferiority, against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from probeval.errors import ReliabilityError
from probeval.reliability import (
    ALTERNATIVES,
    adjust,
    compare,
    compare_with_target,
    noninferiority_test,
    run_test,
)

RNG = np.random.default_rng(5)
SCORES = np.clip(RNG.normal([[0.5], [0.45], [0.4]], 0.15, size=(3, 40)), 0, 1)
GAP = SCORES[:2] - SCORES[2]


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_one_tailed_tests_are_those_of_scipy(alternative: str) -> None:
    expected = {
        "t": [stats.ttest_1samp(d, 0, alternative=alternative).pvalue for d in GAP],
        "wilcoxon": [stats.wilcoxon(d, alternative=alternative, mode="exact").pvalue for d in GAP],
        "sign": [stats.binomtest(int((d > 0).sum()), len(d), alternative=alternative).pvalue for d in GAP],
    }
    for test, p in expected.items():
        np.testing.assert_allclose(run_test(test, GAP, alternative=alternative)[1], p, rtol=1e-9)
    rounded = np.round(GAP, 1)  # with ties and zeros: the normal approximation
    p = [
        stats.wilcoxon(d, alternative=alternative, mode="approx", correction=True, zero_method="wilcox").pvalue
        for d in rounded
    ]
    np.testing.assert_allclose(run_test("wilcoxon", rounded, alternative=alternative)[1], p, rtol=1e-9)


@pytest.mark.parametrize("test", ["bootstrap", "permutation"])
def test_resampled_tails_are_near_those_of_t(test: str) -> None:
    rng = np.random.default_rng(1)
    for alternative in ALTERNATIVES:
        p = run_test(test, GAP[1:] - 0.02, alternative=alternative, samples=5000, rng=rng)[1]
        t = run_test("t", GAP[1:] - 0.02, alternative=alternative)[1]
        assert p == pytest.approx(t, abs=0.03)  # four sd of 5,000 samples, and the skew of forty queries


@pytest.mark.parametrize("test", ["t", "wilcoxon", "sign", "bootstrap", "permutation"])
def test_without_any_difference_nothing_is_shown(test: str) -> None:
    for alternative in ALTERNATIVES:
        assert run_test(test, np.zeros((1, 9)), alternative=alternative, samples=99)[1].tolist() == [1.0]


def test_against_a_baseline_every_system_is_tested_in_the_stated_direction() -> None:
    found = compare(SCORES, systems=["a", "b", "c"], alternative="greater", against="b")
    p = {(row.a, row.b): row.p for row in found.to_frame().itertuples()}
    a, b, c = SCORES
    assert p["a", "b"] == pytest.approx(stats.ttest_rel(a, b, alternative="greater").pvalue)
    assert p["b", "c"] == pytest.approx(stats.ttest_rel(c, b, alternative="greater").pvalue)  # c stands second
    assert np.isnan(p["a", "c"])
    known = np.array([p["a", "b"], p["b", "c"]])
    assert found.adjusted[~np.isnan(found.p)] == pytest.approx(adjust(known, "holm"))  # of two tests, not of three
    assert "greater than the baseline" in found.sentences()[0]


def test_means_against_a_target() -> None:
    found = compare_with_target(SCORES, 0.42, systems=["a", "b", "c"], alternative="greater", correction="none")
    p = [stats.ttest_1samp(SCORES[i], 0.42, alternative="greater").pvalue for i in (0, 1, 2)]
    assert found.to_frame().set_index("system").loc[["a", "b", "c"], "p"].tolist() == pytest.approx(p)
    assert compare_with_target(SCORES, 0.3, alternative="greater").verdicts == ["above"] * 3
    below = compare_with_target(SCORES, 0.9)
    assert below.verdicts == ["below"] * 3
    assert "0 above, 3 below, 0 undecided" in below.sentences()[1]


def test_noninferiority_is_a_one_tailed_test_against_a_share_of_the_baseline() -> None:
    loss = SCORES * 0.995
    _, p = noninferiority_test(loss, SCORES, margin=0.01)
    expected = [stats.ttest_rel(x, 0.99 * y, alternative="greater").pvalue for x, y in zip(loss, SCORES, strict=True)]
    np.testing.assert_allclose(p, expected, rtol=1e-8)
    assert (p < 0.001).all()
    assert (noninferiority_test(loss, SCORES, margin=0.001)[1] > 0.999).all()


def test_bad_input_is_refused() -> None:
    with pytest.raises(ReliabilityError, match=r"No alternative 'bigger': two-sided, greater, less"):
        run_test("t", GAP, alternative="bigger")
    with pytest.raises(ReliabilityError, match="One-tailed tests are against a baseline"):
        compare(SCORES, alternative="greater")
    with pytest.raises(ReliabilityError, match="tukey is two-sided"):
        compare(SCORES, method="tukey", alternative="less", against="s1")
    with pytest.raises(ReliabilityError, match="A margin is a share"):
        noninferiority_test(SCORES, SCORES, margin=1.0)
    with pytest.raises(ReliabilityError, match="A target is a score"):
        compare_with_target(SCORES, float("nan"))
