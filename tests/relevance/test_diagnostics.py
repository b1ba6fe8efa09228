"""How good probabilities are: every number against a hand computation, and what chance gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from probeval.data import Scale
from probeval.errors import ModelError
from probeval.relevance import (
    OrdinalModel,
    SyntheticCampaign,
    TrainingData,
    cross_validate,
    diagnose,
    fit_card,
    likelihood_ratios,
    predict_data,
    proportional_odds,
    synthetic_campaign,
    training_data,
)
from probeval.relevance.effects.cutpoints import level_probabilities
from probeval.relevance.learning.diagnostics import calibration


def observed(x, level, n_levels, *, query=None, campaign=None) -> TrainingData:
    """Training data from bare columns; relevance is level over top level."""
    x, level, n_levels = np.asarray(x, float), np.asarray(level), np.asarray(n_levels)
    n = len(level)
    return TrainingData(
        terms=tuple(f"label[{i}]" for i in range(x.shape[1])),
        x=x,
        number=np.full(x.shape, np.inf),
        level=level,
        n_levels=n_levels,
        relevance=level / (n_levels - 1),
        campaign=np.zeros(n, dtype=np.int64) if campaign is None else np.asarray(campaign),
        query=np.arange(n) if query is None else np.asarray(query),
        campaigns=("one", "two"),
        values={int(k): np.arange(k) / (k - 1) for k in np.unique(n_levels)},
        dropped=0,
    )


TWO = observed(np.zeros((2, 1)), [2, 0], [3, 2])  # a pair on 0-2 judged 2, a pair on 0-1 judged 0
STATED = np.array([[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]])


def test_every_number_by_hand():
    found = diagnose(STATED, TWO)
    # Relevances: 0, 1/2, 1 and 0, 1. Means .65 and .4 against 1 and 0.
    error = (0.35**2 + 0.4**2) / 2
    assert found.n == 2
    assert found.squared_error == pytest.approx(error)
    assert found.rmse == pytest.approx(np.sqrt(error))
    assert found.r2 == pytest.approx(1 - error / 0.25)
    assert found.stated_variance == pytest.approx(((0.3 / 4 + 0.5 - 0.65**2) + 0.24) / 2)
    assert found.ratio == pytest.approx(found.stated_variance / error)
    assert found.log_score == pytest.approx((np.log(0.5) + np.log(0.6)) / 2)
    # P(>=1) = .8, P(>=2) = .5, both reached: (.2^2 + .5^2)/2. P(>=1) = .4, not reached: .4^2.
    assert found.ranked_probability_score == pytest.approx(((0.04 + 0.25) / 2 + 0.16) / 2)


def test_a_part_with_the_smaller_scale_alone():
    alone = diagnose(STATED[1:, :2], TWO.take(np.array([1])))
    assert alone.log_score == pytest.approx(np.log(0.6))
    assert np.isnan(alone.r2)


def test_calibration_by_hand():
    x = np.zeros((4, 1))
    data = observed(x, [0, 1, 1, 2], [2, 2, 2, 3])
    stated = np.array([[0.9, 0.1, 0], [0.88, 0.12, 0], [0.2, 0.8, 0], [0.15, 0.15, 0.7]])
    table = calibration(stated, data)
    # Level 1: .1 and .12 share a bin; .8 and .85 another; level 2 only the pair whose scale has it.
    assert table["level"].tolist() == [1, 1, 2]
    assert table["n"].tolist() == [2, 2, 1]
    np.testing.assert_allclose(table["stated"], [0.11, 0.825, 0.7])
    np.testing.assert_allclose(table["observed"], [0.5, 1.0, 1.0])


def drawn(n: int, seed: int, *, slope: float = 1.0, queries: int = 40) -> TrainingData:
    """Two terms, the first with an effect and the second with none, on scales of 2 and 4 levels."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    n_levels = np.where(np.arange(n) % 2, 4, 2)
    cuts = {2: [0.2], 4: [1.0, 0.0, -1.0]}
    reach = slope * x[:, 0] + rng.logistic(size=n)
    level = np.array([sum(r + c > 0 for c in cuts[k]) for r, k in zip(reach, n_levels, strict=True)])
    return observed(x, level, n_levels, query=rng.integers(queries, size=n), campaign=np.arange(n) % 2)


def test_a_good_model_states_the_error_it_makes():
    data = drawn(6000, 1)
    held_out = cross_validate(OrdinalModel(data.terms), data)
    found = diagnose(held_out, data)
    # Squared errors have a standard deviation below 1/2 here: five standard errors of their mean.
    assert abs(found.stated_variance - found.squared_error) < 5 * 0.5 / np.sqrt(6000) / 2
    for row in calibration(held_out, data).itertuples():
        assert abs(row.stated - row.observed) < 5 * np.sqrt(0.25 / row.n)


def test_predictions_of_data_are_those_of_the_model():
    data = drawn(200, 2)
    model = OrdinalModel(data.terms).fit_data(data)
    found = predict_data(model, data)
    eta = model.linear_predictor(data.x, data.number)
    small = data.n_levels == 2
    np.testing.assert_allclose(found[small, :2], level_probabilities(model.cuts(2), eta[small]))
    np.testing.assert_array_equal(found[small, 2:], 0)
    np.testing.assert_allclose(found[~small], level_probabilities(model.cuts(4), eta[~small]))


# ---- what each term adds ----


def test_a_real_effect_has_a_large_likelihood_ratio():
    data = drawn(1500, 3)
    ratios = likelihood_ratios(OrdinalModel(data.terms), data)
    assert ratios["label[0]"] > 100
    assert 0 <= ratios["label[1]"] < stats.chi2(1).ppf(0.9999)


def test_by_chance_likelihood_ratios_are_chi_squared():
    n = 250
    ratios = [
        likelihood_ratios(OrdinalModel(("label[0]", "label[1]")), drawn(120, 1000 + i))["label[1]"] for i in range(n)
    ]
    assert min(ratios) > -1e-6
    assert stats.kstest(ratios, stats.chi2(1).cdf).pvalue > 0.001
    above = np.mean(np.array(ratios) > stats.chi2(1).ppf(0.95))
    assert abs(above - 0.05) < 5 * np.sqrt(0.05 * 0.95 / n)


def test_a_single_term_is_compared_with_none():
    data = drawn(500, 4)
    one = data.without(1)
    assert one.terms == data.terms[:1]
    assert likelihood_ratios(OrdinalModel(one.terms), one)["label[0]"] > 30


# ---- held out ----


class Spy(OrdinalModel):
    """A model that keeps what it was trained on."""

    trained: list[TrainingData] = []  # noqa: RUF012 (shared on purpose)

    def fit_data(self, data):
        self.trained.append(data)
        return super().fit_data(data)


@pytest.mark.parametrize("rng", [None, 5])
def test_by_query_never_trains_on_the_test_query(rng):
    data = drawn(400, 6, queries=13)
    Spy.trained.clear()
    draws = None if rng is None else np.random.default_rng(rng)
    held_out = cross_validate(Spy(data.terms), data, folds=5, rng=draws)
    assert len(Spy.trained) == 5
    seen = [set(part.query.tolist()) for part in Spy.trained]
    everything = set(data.query.tolist())
    left_out = [everything - part for part in seen]
    assert sorted(q for part in left_out for q in part) == sorted(everything)  # each once
    assert max(map(len, left_out)) - min(map(len, left_out)) <= 1
    for part, queries in zip(Spy.trained, left_out, strict=True):
        mine = np.isin(data.query, list(queries))
        np.testing.assert_allclose(
            held_out[mine], predict_data(OrdinalModel(data.terms).fit_data(part), data.take(mine))
        )


def test_by_campaign_leaves_one_out_at_a_time():
    data = drawn(400, 7)
    Spy.trained.clear()
    cross_validate(Spy(data.terms), data, by="campaign")
    assert [set(part.campaign.tolist()) for part in Spy.trained] == [{1}, {0}]
    # The campaigns have different scales: each is predicted with cutpoints of the other's span.
    assert [set(part.n_levels.tolist()) for part in Spy.trained] == [{4}, {2}]


def test_more_folds_than_queries_are_queries():
    data = drawn(60, 8, queries=3)
    Spy.trained.clear()
    cross_validate(Spy(data.terms), data, folds=10)
    assert len(Spy.trained) == 3


@pytest.mark.parametrize(("by", "said"), [("query", "by query needs at least two"), ("campaign", "by campaign needs")])
def test_one_is_too_few_to_hold_out(by, said):
    data = replace(drawn(60, 9), query=np.zeros(60, dtype=np.int64), campaign=np.zeros(60, dtype=np.int64))
    with pytest.raises(ModelError, match=said):
        cross_validate(OrdinalModel(data.terms), data, by=by)


def test_held_out_by_what():
    with pytest.raises(ModelError, match="by 'query' or by 'campaign', got 'doc'"):
        cross_validate(OrdinalModel(("label[0]",)), drawn(60, 9), by="doc")


# ---- proportional odds ----


def test_a_term_that_turns_round_is_found():
    rng = np.random.default_rng(10)
    x = rng.normal(size=(3000, 2))
    first = rng.random(3000) < 1 / (1 + np.exp(-(1 + x[:, 0] + x[:, 1])))
    second = rng.random(3000) < 1 / (1 + np.exp(-(x[:, 0] - 2 * x[:, 1])))
    level = np.where(first, np.where(second, 2, 1), 0)  # x1 helps to reach 1 and keeps from 2
    data = observed(x, level, np.full(3000, 3))
    found = proportional_odds(OrdinalModel(data.terms), data)
    assert [str(f) for f in found] == [
        "label[1] helps at one cutpoint and hurts at another. Proportional odds do not hold for it: drop it."
    ]


def test_terms_that_do_not_turn_are_not_named():
    data = drawn(3000, 11)
    assert proportional_odds(OrdinalModel(data.terms), data) == []


# ---- a whole card ----


def test_a_card_from_two_campaigns():
    draw = np.random.default_rng(12)
    first = replace(SyntheticCampaign(systems=5, queries=10, depth=8, docs=20).draw(draw), name="first")
    second = replace(
        SyntheticCampaign(systems=5, queries=8, depth=8, docs=20, scale=Scale.binary()).draw(draw), name="second"
    )
    card = fit_card([first, second], name="mine", title="Mine.", terms=[("fSYS", "aDOC"), ("fSYS",)], depth=8)
    assert [m.kind for m in card.models] == ["ordinal", "ordinal", "empirical"]
    assert (card.scale, card.depth) == ("any", 8)
    assert card.fingerprints == {"first": first.judgments.fingerprint(), "second": second.judgments.fingerprint()}
    data = training_data([first, second], ("fSYS",), depth=8)
    model = OrdinalModel(("fSYS",), balanced=True)
    evaluation = card.evaluation["fSYS"]
    for by in ("query", "campaign"):
        held_out = cross_validate(model, data, by=by)
        mine = data.campaign == 1
        for rows, where in ((mine, "second"), (np.full(len(data), True), "all")):
            expected = diagnose(held_out[rows], data.take(rows))
            found = evaluation[f"held out by {by}"][where]
            assert found["log_score"] == pytest.approx(expected.log_score)
            assert found["ratio"] == pytest.approx(expected.ratio)
    assert evaluation["likelihood ratio chi-squared"] == pytest.approx(likelihood_ratios(model, data))
    assert card.training["campaigns"] == {c.name: len(c.runs.top(8).pool) for c in (first, second)}


def test_campaigns_of_one_name_or_none_judged():
    campaign = synthetic_campaign(seed=1, systems=4, queries=4, depth=5)
    for several in ([campaign, campaign], [replace(campaign, judgments=None)]):
        with pytest.raises(ModelError, match="judgments and a name of its own"):
            fit_card(several, name="n", title="t", terms=[("fSYS",)], depth=5)
