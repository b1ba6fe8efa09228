"""A point by hand, its null by brute force, and what perfect and overconfident models look like."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kstest, norm, spearmanr, ttest_rel

from probeval.arrays import objects
from probeval.errors import ScoreError
from probeval.metrics import parse
from probeval.results import plain
from probeval.scores import Joint, Scores
from probeval.simulation import BINS, measure_point


def stated(mean, covariance, *, draws=None, family=None, n_queries=5) -> Scores:
    """Scores that say just this."""
    mean, covariance = np.asarray(mean, dtype=float), np.asarray(covariance, dtype=float)
    empty = np.zeros((len(mean), n_queries))
    return Scores(
        metric=parse("DCG@10"),
        systems=tuple(f"s{i}" for i in range(len(mean))),
        queries=objects([f"q{i}" for i in range(n_queries)]),
        joint=Joint(mean, covariance, np.zeros_like(covariance), empty, empty, draws),
        method="moments" if draws is None else "draws",
        target="collection",
        family=family or ("normal" if draws is None else "empirical"),
        pool=200,
        judged=50,
    )


# Three independent systems a tenth apart; every difference has the standard deviation .1, so pairs are 1, 2 and 1 of
# these apart.
THREE = stated([0.5, 0.4, 0.3], np.eye(3) * 0.005)
NULL = np.array([[0.5, 0.4, 0.3]])
ONE, TWO = norm.cdf(1), norm.cdf(2)


def point(truth, *, scores=THREE, draws=NULL, **more):
    return measure_point(scores, np.asarray(truth, dtype=float), draws=draws, **more)


def test_the_order_by_hand():
    found = point([0.5, 0.3, 0.4])  # the last two have changed places
    assert (found.judged, found.fraction) == (50, 0.25)
    assert found.confidence == pytest.approx((2 * ONE + TWO) / 3)
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.tau == pytest.approx(1 / 3)
    assert found.rho == pytest.approx(0.5)  # 1 - 6 x 2 / (3 x 8)
    assert found.mae == pytest.approx(0.2 / 3)
    # Differences stated .1 .2 .1, true .2 .1 -.1.
    assert found.rmse_difference == pytest.approx(np.sqrt((0.01 + 0.01 + 0.04) / 3))


def test_calibration_by_hand():
    found = point([0.5, 0.3, 0.4])
    assert found.bins.pairs == (0, 0, 0, 2, 0, 1, 0)
    np.testing.assert_allclose(found.bins.stated, (0, 0, 0, 2 * ONE, 0, TWO, 0))
    assert found.bins.right == (0, 0, 0, 1, 0, 1, 0)
    error = (abs(1 - 2 * ONE) + (1 - TWO)) / 3
    assert found.calibration_error == pytest.approx(error)
    assert found.bins.error == pytest.approx(error)
    assert [row["low"] for row in found.bins.to_frame().to_dict("records")] == list(BINS[:-1])
    # A draw in the stated order has the error e0; the reversed one has every pair wrong.
    e0 = (2 * (1 - ONE) + (1 - TWO)) / 3
    e3 = (2 * ONE + TWO) / 3
    null = np.array([[0.5, 0.4, 0.3], [0.3, 0.4, 0.5], [0.6, 0.4, 0.3]])
    found = point([0.5, 0.3, 0.4], draws=null)
    assert found.calibration_excess == pytest.approx(error - (2 * e0 + e3) / 3)
    assert found.calibration_p == pytest.approx((1 + 1) / (1 + 3))
    assert point([0.5, 0.4, 0.3], draws=null).calibration_p == 1.0  # a draw that does the same counts


def test_ties_count_half_on_one_side_and_whole_on_both():
    found = point([0.5, 0.4, 0.4 + 1e-13])
    assert found.accuracy == pytest.approx(2.5 / 3)
    assert found.tau == pytest.approx(2 / 3)  # tau-a: a tie counts nothing
    assert found.bins.pairs == (0, 0, 0, 1, 0, 1, 0)  # the true tie is left out
    assert found.calibration_error == pytest.approx(((1 - ONE) + (1 - TWO)) / 2)
    tied = stated([0.5, 0.4, 0.4], np.diag([0.005, 0.005, 0.005]))
    assert point([0.5, 0.4, 0.4], scores=tied).accuracy == 1.0
    half = point([0.5, 0.4, 0.3], scores=tied)
    assert half.accuracy == pytest.approx(2.5 / 3)
    assert half.bins.pairs[0] == 1  # no direction: stated with .5 ..
    assert half.bins.right[0] == 0.5  # .. and half right


def test_all_tied():
    found = point([0.4, 0.4, 0.4])
    assert found.accuracy == 0.5
    assert np.isnan([found.rho, found.calibration_error, found.calibration_excess, found.calibration_p]).all()


def test_one_system():
    found = point([0.4], scores=stated([0.5], [[0.01]]), draws=np.array([[0.5], [0.4]]))
    assert found.confidence == 1.0
    assert np.isnan([found.accuracy, found.tau, found.rmse_difference, found.calibration_p]).all()
    assert found.level_z == pytest.approx(1.0)
    assert found.centred_coverage == 1.0  # less its own mean it is 0, for sure


def test_intervals_by_hand():
    truth = [0.5, 0.3, 0.4]  # errors 0, .1, -.1
    # Half-widths: z x .0707 for scores, z x sqrt(.005 x 2/3) = z x .0577 for centred ones.
    assert (point(truth).coverage, point(truth).centred_coverage) == (1.0, 1.0)
    assert point(truth, level=0.84).coverage == pytest.approx(1 / 3)  # z 1.405: .0994
    assert point(truth, level=0.85).coverage == 1.0  # z 1.440: .1018
    assert point(truth, level=0.91).centred_coverage == pytest.approx(1 / 3)  # z 1.695: .0979
    assert point(truth, level=0.92).centred_coverage == 1.0  # z 1.751: .1011


def test_the_level_is_apart_from_the_order():
    level, found = point([0.3, 0.2, 0.1]), point([0.5, 0.4, 0.3])
    assert level.level_z == pytest.approx(0.2 / np.sqrt(0.005 / 3))  # too high by .2
    assert (level.coverage, found.coverage) == (0.0, 1.0)
    assert level.centred_coverage == found.centred_coverage == 1.0
    assert (level.accuracy, level.calibration_error) == (found.accuracy, pytest.approx(found.calibration_error))
    assert found.level_z == 0.0


def test_what_is_known_for_sure_and_wrong():
    sure = stated([0.5, 0.4], np.zeros((2, 2)))
    assert point([0.5, 0.4], scores=sure, draws=np.array([[0.5, 0.4]])).level_z == 0.0
    assert point([0.4, 0.4], scores=sure, draws=np.array([[0.5, 0.4]])).level_z == np.inf
    assert point([0.7, 0.4], scores=sure, draws=np.array([[0.5, 0.4]])).level_z == -np.inf


def test_a_common_error_is_wide_for_scores_and_narrow_for_their_order():
    # All scores move together by sd .1, each by itself by .001.
    together = stated([0.5, 0.4, 0.3], np.full((3, 3), 0.01) + np.eye(3) * 1e-6)
    found = point([0.62, 0.52, 0.415], scores=together)
    assert found.coverage == 1.0
    assert found.centred_coverage == 0.0  # off by -.005, -.005, .01: sd .0008
    assert found.level_z == pytest.approx(-0.355 / 3 / np.sqrt(0.01 + 1e-6 / 3))


def test_draws_are_taken_as_they_are():
    rng = np.random.default_rng(3)
    draws = rng.gamma(2.0, size=(400, 4)) * 0.1 + [0.3, 0.2, 0.2, 0.0]
    scores = stated(draws.mean(axis=0), np.cov(draws.T), draws=draws)
    truth = np.quantile(draws, 0.974, axis=0)
    found = point(truth, scores=scores, draws=draws)
    assert found.coverage == 1.0
    assert point(np.quantile(draws, 0.98, axis=0), scores=scores, draws=draws).coverage == 0.0
    better = (draws[:, :, None] > draws[:, None, :]).mean(axis=0)
    upper = np.triu_indices(4, k=1)
    assert found.confidence == pytest.approx(np.maximum(better, better.T)[upper].mean())
    centred = draws - draws.mean(axis=1, keepdims=True)
    low, high = np.quantile(centred, [0.025, 0.975], axis=0)
    mine = truth - truth.mean()
    assert found.centred_coverage == np.mean((mine >= low) & (mine <= high))
    inside = ((centred >= low) & (centred <= high)).mean(axis=1)
    assert found.centred_coverage_null05 == pytest.approx(np.quantile(inside, 0.05))


@pytest.mark.parametrize("seed", range(3))
def test_the_null_is_each_draw_taken_as_the_truth(seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(6, 6)) * 0.05
    scores = stated(rng.normal(size=6) * 0.1, root @ root.T)
    draws = scores.sample(40, rng)
    draws[::7, 1] = draws[::7, 0]  # ties among the draws too
    truth = scores.sample(1, rng)[0]
    each = np.array([measure_point(scores, d, draws=draws).calibration_error for d in draws])
    found = measure_point(scores, truth, draws=draws)
    assert found.calibration_excess == pytest.approx(found.calibration_error - each.mean(), abs=1e-12)
    assert found.calibration_p == pytest.approx((1 + np.sum(each >= found.calibration_error - 1e-12)) / 41)
    right = np.array([np.sum(measure_point(scores, d, draws=draws).bins.right) for d in draws])
    pairs = np.array([np.sum(measure_point(scores, d, draws=draws).bins.pairs) for d in draws])  # without true ties
    assert found.accuracy_p == pytest.approx((1 + np.sum(right / pairs <= found.accuracy + 1e-12)) / 41)
    covered = [measure_point(scores, d, draws=draws).centred_coverage for d in draws]
    assert found.centred_coverage_null05 == pytest.approx(np.quantile(covered, 0.05))


def test_significance_and_correlation_against_scipy():
    rng = np.random.default_rng(5)
    by_query = rng.normal(size=(7, 12)) * 0.2 + rng.normal(size=(7, 1)) * 0.15 + rng.normal(size=12) * 0.3
    by_query[3] = by_query[2]  # a true tie
    by_query[5] = by_query[4] + 0.01  # small, but the same on every query
    scores = stated(by_query.mean(axis=1) + rng.normal(size=7) * 0.3, np.eye(7) * 0.01)
    truth = by_query.mean(axis=1)
    found = measure_point(scores, truth, draws=scores.sample(10, rng), query_truth=by_query)
    total, forgiven = 0.0, 0
    for i in range(7):
        for j in range(i):
            right = np.sign(scores.mean[i] - scores.mean[j]) == np.sign(round(truth[i] - truth[j], 12))
            with np.errstate(all="ignore"):
                p = 0.0 if {i, j} == {4, 5} else 1.0 if {i, j} == {2, 3} else ttest_rel(by_query[i], by_query[j]).pvalue
            forgiven += not right and p >= 0.05
            total += right or p >= 0.05
    assert found.accuracy_significant == pytest.approx(total / 21)
    assert forgiven > 0
    assert found.accuracy < found.accuracy_significant < 1
    assert found.rho == pytest.approx(spearmanr(scores.mean, np.round(truth, 12)).statistic)
    assert np.isnan(measure_point(scores, truth, draws=scores.sample(10, rng)).accuracy_significant)
    one = measure_point(scores, truth, draws=scores.sample(10, rng), query_truth=by_query[:, :1])
    assert one.accuracy_significant == 1.0  # nothing is significant on one query


def test_tau_of_the_top_is_over_the_truly_best_systems_and_all_that_tie_with_the_last():
    truth = np.arange(20.0, 0.0, -1.0)
    swapped = truth.copy()
    swapped[[18, 19]] = swapped[[19, 18]]  # the two worst
    assert point(truth, scores=stated(swapped, np.eye(20)), draws=truth[None]).tau_top15 == 1.0
    swapped = truth.copy()
    swapped[[0, 1]] = swapped[[1, 0]]  # the two best: one of 105 pairs is wrong
    found = point(truth, scores=stated(swapped, np.eye(20)), draws=truth[None])
    assert found.tau_top15 == pytest.approx(1 - 2 / 105)
    assert found.tau == pytest.approx(1 - 2 / 190)
    tied = truth.copy()
    tied[15:18] = tied[14]  # four systems share the 15th place: 18 systems, six tied pairs of 153
    assert point(tied, scores=stated(truth, np.eye(20)), draws=truth[None]).tau_top15 == pytest.approx(1 - 6 / 153)
    few = point([0.5, 0.3, 0.4])
    assert few.tau_top15 == few.tau


def test_rho_is_on_the_lattice_of_the_published_table():
    # Urbano (2013), Table 8.1, 2007 (12 systems): rho .930 and .944, that is 1 - 20/286 and 1 - 16/286.
    mean = np.arange(12.0)
    swapped = mean.copy()
    swapped[[0, 2]], swapped[[5, 6]] = swapped[[2, 0]], swapped[[6, 5]]  # sum of squared rank differences 8 + 2
    found = point(swapped, scores=stated(mean, np.eye(12)), draws=mean[None])
    assert found.rho == pytest.approx(1 - 10 / 286)


def test_the_plain_data_have_the_fields_of_the_contract():
    assert list(plain(point([0.5, 0.3, 0.4]))) == [
        "judged", "fraction", "confidence", "accuracy", "accuracy_p", "accuracy_significant", "tau",
        "tau_top15", "tau_ap", "rho", "rmse_difference", "mae", "sd", "calibration_error", "calibration_excess",
        "calibration_p", "coverage", "centred_coverage", "level_z", "centred_coverage_null05",
    ]  # fmt: skip


def test_shapes_are_checked():
    with pytest.raises(ScoreError, match=r"3 systems need as many true and drawn scores, got shapes \(2,\) and"):
        point([0.5, 0.4])
    with pytest.raises(ScoreError, match="3 systems"):
        point([0.5, 0.4, 0.3], draws=np.zeros((4, 2)))


# ---- a perfect model, and one that is too sure ----

REPLICATIONS = 300


@pytest.fixture(scope="module")
def worlds():
    """Truths drawn from stated joint normals of eight systems that overlap; with a third of the spread; with a rope."""
    rng = np.random.default_rng(11)
    perfect, sure, roped = [], [], []
    for _ in range(REPLICATIONS):
        root = rng.normal(size=(8, 4)) * 0.03
        covariance = root @ root.T + np.eye(8) * 0.001
        scores = stated(0.5 + rng.normal(size=8) * 0.03, covariance)
        truth = scores.sample(1, rng)[0]
        draws = scores.sample(200, rng)
        perfect.append(measure_point(scores, truth, draws=draws))
        roped.append(measure_point(scores, truth, draws=draws, rope=0.03))
        narrow = stated(scores.mean, covariance / 9)
        sure.append(measure_point(narrow, truth, draws=narrow.sample(200, rng)))
    return perfect, sure, roped


def test_a_perfect_model_has_uniform_p_and_no_excess(worlds):
    perfect, *_ = worlds
    p = np.array([w.calibration_p for w in perfect])
    assert kstest(p, "uniform").pvalue > 0.05
    excess = np.array([w.calibration_excess for w in perfect])
    assert abs(excess.mean()) < 3 * excess.std() / np.sqrt(REPLICATIONS)
    low = np.mean([w.accuracy_p < 0.05 for w in perfect])  # below .05 at most once in twenty: accuracy has steps
    assert low < 0.05 + 3 * np.sqrt(0.05 / REPLICATIONS)
    assert np.mean([w.calibration_error for w in perfect]) > 0.05  # and yet the error itself is far from 0


def test_a_perfect_model_covers(worlds):
    perfect, *_ = worlds
    for name in ("coverage", "centred_coverage"):
        share = np.array([getattr(w, name) for w in perfect])
        assert abs(share.mean() - 0.95) < 3 * share.std() / np.sqrt(REPLICATIONS)
    z = np.array([w.level_z for w in perfect])
    assert kstest(z, "norm").pvalue > 0.05
    # Below its own 5% point about once in twenty times, at most: coverage moves in steps of 1/8.
    below = np.mean([w.centred_coverage < w.centred_coverage_null05 for w in perfect])
    assert below < 0.05 + 3 * np.sqrt(0.05 / REPLICATIONS)


def test_an_overconfident_model_is_found_out(worlds):
    perfect, sure, _ = worlds
    p = np.array([w.calibration_p for w in sure])
    assert np.mean(p < 0.05) > 0.35  # a perfect model: .05, standard error .013
    assert np.mean([w.accuracy_p < 0.05 for w in sure]) > 0.35
    excess = np.array([w.calibration_excess for w in sure])
    assert excess.mean() > 0.08
    assert excess.mean() > 10 * excess.std() / np.sqrt(REPLICATIONS)
    assert np.mean([w.centred_coverage for w in sure]) < 0.7
    assert np.mean([abs(w.level_z) > 2.6 for w in sure]) > 0.2
    low = np.mean([w.centred_coverage < w.centred_coverage_null05 for w in sure])
    assert low > 0.5
    assert np.mean([w.accuracy for w in sure]) == np.mean([w.accuracy for w in perfect])  # the order is the same


def test_a_timid_model_is_found_out_too():
    rng = np.random.default_rng(2)
    low = []
    for _ in range(60):
        scores = stated(0.5 + rng.normal(size=8) * 0.1, np.eye(8) * 0.001)
        truth = scores.sample(1, rng)[0]
        wide = stated(scores.mean, np.eye(8) * 0.05)
        low.append(measure_point(wide, truth, draws=wide.sample(200, rng)))
    assert np.mean([w.calibration_p < 0.05 for w in low]) > 0.3  # a perfect model: .05, standard error .03
    assert np.mean([w.calibration_excess for w in low]) > 0.03
    assert {w.coverage for w in low} == {1.0}


def test_the_t_family_is_wider():
    few = stated([0.5, 0.4, 0.3], np.eye(3) * 0.005, family="t", n_queries=3)
    truth = [0.5, 0.3, 0.4]
    assert point(truth, level=0.84).coverage == pytest.approx(1 / 3)
    assert point(truth, scores=few, level=0.84).coverage == 1.0  # t with 2 degrees of freedom: 2.19 x .0707
    assert point(truth, scores=few, level=0.84).centred_coverage == 1.0
    assert point(truth, scores=replace(few, family="normal"), level=0.84).centred_coverage == pytest.approx(1 / 3)


def test_ties_within_the_rope_are_verdicts_too():
    # Differences of .02, .2 and .18 with a standard deviation of .01: the rope holds the first.
    close = stated([0.5, 0.48, 0.3], np.eye(3) * 0.00005)
    found = point([0.48, 0.5, 0.3], scores=close, rope=0.06)
    assert found.confidence > 0.999
    assert found.accuracy == 1.0  # the direction of the first two is not what is said of them
    assert sum(found.bins.pairs) == sum(found.bins.right) == 3
    assert point([0.5, 0.43, 0.3], scores=close, rope=0.06).accuracy == pytest.approx(2 / 3)  # .07 is no tie
    assert point([0.5, 0.5, 0.3], scores=close, rope=0.06).accuracy == 1.0
    assert point([0.48, 0.5, 0.3], scores=close).accuracy == pytest.approx(2 / 3)


def test_a_perfect_model_is_calibrated_with_a_rope(worlds):
    *_, roped = worlds
    assert kstest([w.calibration_p for w in roped], "uniform").pvalue > 0.05
    gap = np.array([w.accuracy - w.confidence for w in roped])
    assert abs(gap.mean()) < 3 * gap.std() / np.sqrt(REPLICATIONS)
