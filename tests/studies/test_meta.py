"""Tests compared by their power, conflicts, exactness and self-agreement, against counts by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from probeval.errors import ReliabilityError
from probeval.metrics import measure
from probeval.relevance import synthetic_campaign
from probeval.reliability import OUTCOMES, TESTS, SplitHalf, compare, gstudy, split_half
from probeval.results import frame
from probeval.studies import MetaCollection, MetaStudy, PairTests, PStability, study_measure
from probeval.studies.meta import check_alphas

# Six comparisons of two splits with three pairs; the outcomes at .05 are success, lack of power, minor conflict, major
# conflict, lack of power (a tie on the second half) and not significant.
FIRST = [[0.01, 0.01, 0.01], [0.01, 0.01, 0.30]]
SECOND = [[0.01, 0.50, 0.50], [0.01, 0.50, 0.01]]
SIGN = [[[1, 1, 1], [1, 1, 1]], [[1, 1, -1], [-1, 0, 1]]]
HALVES = SplitHalf("t", np.array([FIRST, SECOND]), np.array(SIGN, dtype=float))


@pytest.fixture(scope="module")
def scores():
    campaign = synthetic_campaign(seed=5, systems=6, queries=24, depth=5)
    return measure(campaign.runs, campaign.judgments, "nDCG@5")


@pytest.fixture(scope="module")
def studied(scores):
    return study_measure(scores, alphas=(0.01, 0.05), splits=10, samples=200, seed=3, campaign="made")


def test_rates_by_hand():
    tested = PairTests.of(HALVES, np.array([0.001, 0.04, 0.2]), (0.005, 0.05))
    rates = tested.to_frame().set_index("alpha")
    assert rates["discrimination"].tolist() == pytest.approx([1 / 3, 2 / 3])
    assert rates.loc[0.05, ["nonsignificance", *OUTCOMES]].tolist() == pytest.approx([1 / 6, 0.2, 0.4, 0.2, 0.2])
    assert rates.loc[0.05, "conflict"] == pytest.approx(0.4)
    assert rates.loc[0.005, "nonsignificance"] == 1
    assert np.isnan(rates.loc[0.005, "conflict"])
    assert np.isnan(tested.exactness)


def test_exactness_is_the_relative_distance_of_conflicts():
    tested = PairTests.of(HALVES, np.zeros(3), (0.05, 0.2))
    assert tested.to_frame()["conflict"].tolist() == pytest.approx([0.4, 0.4])
    assert tested.exactness == pytest.approx(np.sqrt(((0.4 / 0.05 - 1) ** 2 + (0.4 / 0.2 - 1) ** 2) / 2))


def test_self_agreement_is_the_distance_of_the_two_p():
    tested = PairTests.of(HALVES, np.zeros(3), (0.05,))
    off = np.subtract(FIRST, SECOND).ravel()
    assert tested.p_rms == pytest.approx(np.sqrt(np.mean(off**2)))
    np.testing.assert_allclose(frame(tested.stability, PStability)["rms"], HALVES.stability()["rms"])
    assert frame(tested.stability, PStability)["pairs"].tolist() == HALVES.stability()["pairs"].tolist()


def test_pooling_is_counting_together():
    parts = [
        split_half(np.random.default_rng(i).normal([[0.0], [0.2], [0.6]], 0.5, size=(3, 20)), splits=7) for i in (1, 2)
    ]
    whole = SplitHalf("t", np.concatenate([h.p for h in parts], axis=2), np.concatenate([h.sign for h in parts], 2))
    p = np.array([0.001, 0.04, 0.2, 0.3, 0.02, 0.9])
    levels = (0.05, 0.1)
    pooled = PairTests.pool([PairTests.of(h, part, levels) for h, part in zip(parts, (p[:3], p[3:]), strict=True)])
    expected = PairTests.of(whole, p, levels)
    np.testing.assert_allclose(pooled.to_frame(), expected.to_frame())
    np.testing.assert_allclose(*(frame(one.stability, PStability) for one in (pooled, expected)))
    assert pooled.p_rms == pytest.approx(expected.p_rms)
    assert pooled.exactness == pytest.approx(expected.exactness)


def test_a_study_is_made_of_known_parts(scores, studied):
    assert [t.test for t in studied.tests] == list(TESTS)
    for tested in studied.tests[:3]:  # without resampling, the shares are those of the comparison of all pairs
        found = compare(scores, method=tested.test, correction="none")
        assert tested.discrimination[1] == found.discrimination
    study = gstudy(scores)
    assert (studied.erho2, studied.phi) == (study.coefficient("erho2"), study.coefficient("phi"))
    assert (studied.systems, studied.queries) == (6, 24)


def test_the_seed_and_the_campaign_decide(scores, studied):
    again = study_measure(scores, alphas=(0.01, 0.05), splits=10, samples=200, seed=3, campaign="made")
    other = study_measure(scores, alphas=(0.01, 0.05), splits=10, samples=200, seed=3, campaign="other")
    figures = [[t.significant.tolist() for t in found.tests] for found in (studied, again, other)]
    assert figures[0] == figures[1] != figures[2]


def test_exits_of_a_study(studied):
    study = MetaStudy(
        (MetaCollection("made", (studied,)),), alphas=(0.01, 0.05), level=0.95, splits=10, samples=200, seed=3
    )
    frame = study.to_frame()
    assert len(frame) == len(TESTS) * 2
    assert list(frame.columns[:5]) == ["campaign", "metric", "scale", "test", "alpha"]
    assert study.alpha == 0.05
    assert repr(study) == "<MetaStudy: 1 measure, 5 tests on made>"
    document = study.to_dict()
    (campaign,) = document["campaigns"]
    assert campaign["tests"][0]["rates"][1] == campaign["measures"][0]["tests"][0]["rates"][1]
    titles = [view.title for view in study.tables()]
    assert titles[0] == "Measures and scales, all tests together, at alpha 0.05"
    assert "preference_distance" not in study.tables()[0].frame.columns  # nothing is published for nDCG@5 on this scale
    assert "random halves" in study.summary()


def test_reliability_and_rates_stay_in_their_range(studied):
    for found in (studied.erho2, studied.phi):
        assert 0 <= found.lower <= found.value <= found.upper <= 1
    for tested in studied.tests:
        shares = tested.to_frame().drop(columns="alpha").to_numpy()
        assert ((shares >= 0) & (shares <= 1) | np.isnan(shares)).all()


def test_measures_keep_their_parameters():
    campaign = synthetic_campaign(seed=5, systems=4, queries=8, depth=5)
    found = study_measure(measure(campaign.runs, campaign.judgments, "RBP(p=0.9)@5"), tests=["t"], splits=2)
    study = MetaStudy((MetaCollection("made", (found,)),), alphas=found.tests[0].alphas, level=0.95, splits=2,
                      samples=9, seed=0)  # fmt: skip
    assert study.to_dict()["campaigns"][0]["measures"][0]["metric"] == "RBP(p=0.9)@5"
    for table in (study.to_frame(), study.tables()[0].frame):
        assert set(table["metric"]) == {"RBP(p=0.9)@5"}


def test_warnings_of_the_g_study_become_notes(scores):
    equal = np.random.default_rng(1).normal(size=scores.values.shape)
    equal -= equal.mean(axis=1, keepdims=True)  # less variance between systems than by chance: negative, hence 0
    found = study_measure(replace(scores, values=equal), tests=["t"], alphas=[0.05], splits=2)
    assert any("system" in note for note in found.notes)
    assert found.erho2.value == 0


@pytest.mark.parametrize("wrong", [[], [0.05, 0.01], [0.0, 0.1], [0.5, 1.0], [0.05, 0.05]])
def test_levels_rise_between_0_and_1(wrong):
    with pytest.raises(ReliabilityError, match="must be between 0 and 1, in ascending order; got"):
        check_alphas(wrong)


def test_a_small_campaign_is_refused():
    campaign = synthetic_campaign(seed=5, systems=3, queries=3, depth=3)
    with pytest.raises(ReliabilityError, match="at least 2 systems and 4 queries, got 3 and 3"):
        study_measure(measure(campaign.runs, campaign.judgments, "P@3"), campaign="small")
