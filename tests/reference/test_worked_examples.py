"""Worked examples with known values.

Yang (2019): recomputed and found to agree to the digits printed there. Values that are not printed there are derived
from its tables by full enumeration, or by long summation (INSQ, INST).
"""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from probeval.data import Scale, as_judgments, as_runs
from probeval.metrics import AP, DCG, INSQ, INST, RBP, RR, F, Lists, P, R, SetF, bounds, measure, nDCG
from probeval.metrics.ties import expected, expected_sum_precision, extremes, variance
from probeval.studies import confusion, precision_recall, roc

NAN = float("nan")
# Table 2.3 (l.806-860): two runs on a four-grade scale and the topic's judged grades, of which the ideal list is made.
GOOD, BAD = [3, 2, 3, 1, 0, 0, 3, 1, 1, 0], [3, 3, 2, 0, 1, 0, 0, 0, 1, 0]
IDEAL = [3, 3, 3, 3, 2, 2, 1, 1, 1, 0]
FOUR = Scale.graded(3, gain="exp")


def graded(*rows: list[float], known=None) -> Lists:
    return Lists.of_grades(list(rows), FOUR, known=known)


def binary(*rows: list[float], known=None) -> Lists:
    return Lists.of_grades(list(rows), Scale.binary(), known=known)


# ---- single runs ----


def test_o1_binary_precision_and_average_precision():
    lists = binary([1, 1, 1, 1, 0, 0, 1, 1, 1, 0], [1, 1, 1, 0, 1, 0, 0, 0, 1, 0])
    sum_precision = 10 * (AP(norm="perfect") @ 10).scores(lists)[0]
    np.testing.assert_allclose(sum_precision, [6.242, 4.356], atol=5e-4)
    np.testing.assert_allclose((P @ 10).scores(lists)[0], [0.7, 0.5])
    rows = [(P @ k).scores(lists)[0] for k in range(1, 11)]
    np.testing.assert_allclose(
        rows,
        np.transpose(
            [
                [1, 1, 1, 1, 4 / 5, 4 / 6, 5 / 7, 6 / 8, 7 / 9, 0.7],
                [1, 1, 1, 3 / 4, 4 / 5, 4 / 6, 4 / 7, 4 / 8, 5 / 9, 0.5],
            ]
        ),
    )


def test_o2_discounted_gain_and_its_ideal():
    lists = graded(GOOD, BAD, IDEAL)
    raw = np.array([(DCG(norm="none") @ k).scores(lists)[0] / 7 for k in range(1, 11)]).T
    printed = [
        [1.00, 1.27, 1.77, 1.83, 1.83, 1.83, 2.17, 2.21, 2.25, 2.25],
        [1.00, 1.63, 1.85, 1.85, 1.90, 1.90, 1.90, 1.90, 1.94, 1.94],
        [1.00, 1.63, 2.13, 2.56, 2.73, 2.88, 2.93, 2.97, 3.02, 3.02],
    ]
    np.testing.assert_allclose(raw, printed, atol=0.005)
    of_ideal = [(nDCG @ k).scores(graded(GOOD, known=[IDEAL]))[0, 0] for k in range(1, 11)]
    np.testing.assert_allclose(of_ideal, [1.00, 0.78, 0.83, 0.72, 0.67, 0.64, 0.74, 0.74, 0.75, 0.75], atol=0.005)


def test_raw_dcg_with_the_original_discount():
    # Grades 3, 2, 3, 0, 1, 2 under Jarvelin and Kekalainen's discount.
    lists = Lists.of_grades([[3, 2, 3, 0, 1, 2]], Scale.graded(3))
    assert DCG(norm="none", discount="jk").scores(lists)[0, 0] == pytest.approx(8.097, abs=5e-4)


@pytest.mark.parametrize(
    ("p", "scores", "residual"), [(0.9, (0.29611, 0.24024), 0.349), (0.5, (0.74972, 0.80831), 0.001)]
)
def test_o3_rbp_with_residual(p, scores, residual):
    low, high = bounds(RBP(p=p), graded(GOOD, BAD))
    np.testing.assert_allclose(low[0], scores, atol=5e-6)
    np.testing.assert_allclose(RBP(p=p).scores(graded(GOOD, BAD))[0], scores, atol=5e-6)
    np.testing.assert_allclose((high - low)[0], residual, atol=5e-4)
    np.testing.assert_allclose((high - low)[0], p**10, atol=1e-12)


def test_o4_expected_depth():
    for wanted, depth in {1: 2.5797, 2: 4.5412, 3: 6.5276, 5: 10.5166, 10: 20.5083}.items():
        assert 1 / INSQ(T=wanted).weights(Scale.binary(), 1)[0] == pytest.approx(depth, abs=5e-5)
    # INST, everything relevant: a first document that lacks a ten-millionth of the gain costs W(1) times that.
    lists = Lists.of_grades([[10**7 - 1]], Scale((0, 10**7 - 1, 10**7)))
    for wanted, depth in {1: 4 / 3, 2: 2.2857, 3: 3.2727}.items():
        missing = 1 - bounds(INST(T=wanted), lists)[1][0, 0]
        assert 1e-7 / missing == pytest.approx(depth, abs=5e-5)


@pytest.mark.parametrize(
    ("wanted", "scores", "residual"),
    [(1, (0.59642, 0.60982), 0.13475), (2, (0.43164, 0.41444), 0.26087), (3, (0.34431, 0.31458), 0.35568)],
)
def test_d4_insq(wanted, scores, residual):
    low, high = bounds(INSQ(T=wanted), graded(GOOD, BAD))
    np.testing.assert_allclose(low[0], scores, atol=5e-6)
    np.testing.assert_allclose((high - low)[0], residual, atol=5e-6)


@pytest.mark.parametrize(
    ("wanted", "nothing_more", "all_more"),
    [
        (1, (0.84293, 0.92432), (0.85335, 0.93520)),
        (2, (0.59583, 0.60649), (0.68307, 0.71015)),
        (3, (0.45665, 0.42632), (0.63099, 0.62052)),
    ],
)
def test_d5_inst(wanted, nothing_more, all_more):
    metric = INST(T=wanted)
    low, high = bounds(metric, graded(GOOD, BAD))
    np.testing.assert_allclose(metric.scores(graded(GOOD, BAD))[0], nothing_more, atol=5e-6)
    np.testing.assert_allclose(low[0], nothing_more, atol=5e-6)
    np.testing.assert_allclose(high[0], all_more, atol=5e-6)


# ---- ties: Table 3.1 ----

DOCS, GAINS = "DHACMSWBEJ", [0, 0, 1, 1, 0, 1, 1, 0, 0, 1]
SIMILARITY = [9.8, 9.3, 9.3, 9.3, 8.4, 8.4, 8.2, 8.0, 8.0, 8.0]
TIED = binary(GAINS)
START = np.array([[[0, 1, 1, 1, 4, 4, 6, 7, 7, 7]]])


def every_order() -> Lists:
    groups = [np.array(GAINS)[START[0, 0] == g] for g in np.unique(START)]
    rows = [np.concatenate(choice) for choice in product(*(list(permutations(g)) for g in groups))]
    return binary(*rows)


def test_o10_run_order_trec_evals_order_and_the_extremes():
    assert (P @ 5).scores(TIED)[0, 0] == pytest.approx(0.4)
    assert RR.scores(TIED)[0, 0] == pytest.approx(1 / 3)
    rbp = RBP(p=0.9)
    assert rbp.scores(TIED)[0, 0] == pytest.approx(0.305, abs=5e-4)
    runs = as_runs({"a": {"q": dict(zip(DOCS, SIMILARITY, strict=True))}})
    assert "".join(runs.pool.label(p)[1] for p in runs.pairs[0, 0]) == "DHCASMWJEB"
    np.testing.assert_array_equal(runs.tie_starts, START)
    judged = as_judgments({"q": dict(zip(DOCS, GAINS, strict=True))})
    assert measure(runs, judged, rbp).values[0, 0] == pytest.approx(0.320, abs=5e-4)
    low, high = extremes(rbp, TIED, START)
    assert low[0, 0] == pytest.approx(0.305, abs=5e-4)
    assert high[0, 0] == pytest.approx(0.338, abs=5e-4)
    assert expected(rbp, TIED, START)[0, 0] == pytest.approx(0.321, abs=5e-4)


def test_o10_expected_number_of_relevant_documents():
    found = [k * expected(P @ k, TIED, START)[0, 0] for k in range(1, 11)]
    np.testing.assert_allclose(found, [0, 2 / 3, 4 / 3, 2, 5 / 2, 3, 4, 13 / 3, 14 / 3, 5])


def test_d1_mean_and_variance_of_rbp():
    assert expected(RBP(p=0.9), TIED, START)[0, 0] == pytest.approx(0.3212798, abs=5e-8)
    assert variance(RBP(p=0.9), TIED, START)[0, 0] == pytest.approx(7.33186e-5, abs=5e-11)
    every = RBP(p=0.9).scores(every_order())[0]
    assert len(every) == 72
    assert len(np.unique(every.round(12))) == 18


def test_d2_reciprocal_rank_and_average_precision():
    assert expected(RR, TIED, START)[0, 0] == pytest.approx(4 / 9)
    np.testing.assert_allclose(np.ravel(extremes(RR, TIED, START)), [1 / 3, 1 / 2])
    # The printed formula for the expected AP (Eq 3.2) gives .4887: it drops that the document itself is relevant.
    assert expected(AP, TIED, START)[0, 0] == pytest.approx(0.536323, abs=5e-7)
    np.testing.assert_allclose(np.ravel(extremes(AP, TIED, START)), [0.480952, 0.592619], atol=5e-7)
    assert AP.scores(every_order())[0].std() == pytest.approx(0.030746, abs=5e-7)
    running = [5 * expected(AP @ k, TIED, START)[0, 0] for k in range(1, 11)]
    exact = [0, 1 / 3, 2 / 3, 1, 13 / 10, 31 / 20, 297 / 140, 1957 / 840, 19013 / 7560, 20273 / 7560]
    np.testing.assert_allclose(running, exact)


def test_d3_ndcg_and_probabilistic_relevance():
    low, high = extremes(nDCG @ 10, TIED, START)
    found = [low[0, 0], expected(nDCG @ 10, TIED, START)[0, 0], high[0, 0]]
    np.testing.assert_allclose(found, [0.647552, 0.694528, 0.734818], atol=5e-7)
    p = (np.arange(10) + 1.0) / 12
    assert expected_sum_precision(p[None, None], START)[0, 0] == pytest.approx(2.0134388, abs=5e-8)


# ---- unjudged documents ----


def test_o13_bounds_of_average_precision():
    known = [[1, 1]]
    assert AP.scores(binary([1, 0, NAN, 1, NAN], known=known))[0, 0] == pytest.approx(0.75)
    worlds = {(1, 0): 0.81, (0, 1): 0.70, (1, 1): 0.80}
    for (third, fifth), score in worlds.items():
        assert AP.scores(binary([1, 0, third, 1, fifth]))[0, 0] == pytest.approx(score, abs=0.005)
    low, high = bounds(AP, binary([1, 0, NAN, 1, NAN], known=known))
    assert low[0, 0] == pytest.approx(0.7)
    assert high[0, 0] == pytest.approx(0.8056, abs=5e-5)


# ---- counts, by hand ----


def test_f_beta_and_confusion_counts():
    # Ten judged documents, five of them relevant; the list holds 1 0 1 ? 1 0.
    lists = binary([1, 0, 1, NAN, 1, 0], known=[[1, 1, 1, 1, 1, 0, 0, 0, 0, 0]])
    counts = confusion(lists, depth=4)
    assert [int(n[0, 0]) for n in (counts.true_positives, counts.false_positives)] == [2, 1]
    assert [int(n[0, 0]) for n in (counts.false_negatives, counts.true_negatives, counts.unjudged)] == [3, 4, 1]
    # P@4 = 2/4, R@4 = 2/5: F1 = 2 * .5 * .4 / .9 = 4/9, F2 = 5 * .2 / (4 * .5 + .4) = 5/12, F.5 = 1.25 * .2 / .525.
    assert (R @ 4).scores(lists)[0, 0] == pytest.approx(2 / 5)
    assert (F @ 4).scores(lists)[0, 0] == pytest.approx(4 / 9)
    assert (F(beta=2) @ 4).scores(lists)[0, 0] == pytest.approx(5 / 12)
    assert (F(beta=0.5) @ 4).scores(lists)[0, 0] == pytest.approx(0.25 / 0.525)
    assert SetF.scores(lists)[0, 0] == pytest.approx(6 / 11)  # P = 3/6, R = 3/5
    precision, recall = precision_recall(lists)
    np.testing.assert_allclose(precision[0, 0], [1, 1 / 2, 2 / 3, 2 / 4, 3 / 5, 3 / 6])
    np.testing.assert_allclose(recall[0, 0], [1 / 5, 1 / 5, 2 / 5, 2 / 5, 3 / 5, 3 / 5])
    false, true = roc(lists)
    np.testing.assert_allclose(false[0, 0], [0, 0, 1 / 5, 1 / 5, 1 / 5, 1 / 5, 2 / 5])
    np.testing.assert_allclose(true[0, 0], [0, 1 / 5, 1 / 5, 2 / 5, 2 / 5, 3 / 5, 3 / 5])
