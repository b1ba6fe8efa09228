"""Ordinal models: training data, the fit's odd cases, prediction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from probeval.arrays import objects
from probeval.data import Collection, Judgments, Metadata, Scale
from probeval.errors import FeatureError, ModelError
from probeval.features import compute_features
from probeval.relevance import (
    FittedOrdinal,
    OrdinalModel,
    SyntheticCampaign,
    likelihood_ratios,
    proportional_odds,
    training_data,
)
from probeval.relevance.models.checkpoints import judging_checkpoints
from probeval.relevance.models.cumulative import Observations, fit_cumulative
from probeval.relevance.models.ordinal import shrunk

TERMS = ("log(fSYS)", "aDOC", "fSYS:bRANK")
OUTPUTS = ("log(fSYS)", "fSYS:bRANK")


@pytest.fixture(scope="module")
def campaigns() -> list[Collection]:
    """Two campaigns of different scales."""
    draw = np.random.default_rng(17)
    graded = SyntheticCampaign(systems=6, queries=12, depth=8, docs=25).draw(draw)
    binary = SyntheticCampaign(systems=5, queries=9, depth=8, docs=25, scale=Scale.binary()).draw(draw)
    return [replace(graded, name="graded"), replace(binary, name="binary")]


# ---- training data ----


def test_training_data_are_the_judged_pairs(campaigns):
    graded, binary = campaigns
    some = replace(graded, judgments=graded.judgments.take(np.arange(len(graded.judgments)) % 3 > 0))
    data = training_data([some, binary], TERMS, depth=5, shares=None)
    pool = some.runs.top(5).pool
    grade = some.judgments.on(pool).grades()
    n = int((~np.isnan(grade)).sum())
    assert (data.campaign == 0).sum() == n
    assert (data.campaign == 1).sum() == len(binary.runs.top(5).pool)
    np.testing.assert_array_equal(data.level[:n], grade[~np.isnan(grade)])
    np.testing.assert_array_equal(data.relevance[:n], grade[~np.isnan(grade)] / 2)
    assert set(data.n_levels[:n]) == {3}
    assert set(data.n_levels[n:]) == {2}
    assert data.query[:n].max() < data.query[n:].min()  # no query is shared
    table = compute_features(some.problem(depth=5), ["fSYS", "aDOC", "bRANK"])
    np.testing.assert_allclose(data.x[:n], table.design(TERMS)[~np.isnan(grade)])
    assert data.campaigns == ("graded", "binary")


def test_each_campaign_has_the_depth_of_its_lists(campaigns):
    cut = replace(campaigns[0], runs=campaigns[0].runs.top(5))
    data = training_data([cut, campaigns[1]], ("log(fSYS)",), depth=8)
    assert np.bincount(data.campaign).tolist() == [len(cut.runs.pool), len(campaigns[1].runs.top(8).pool)]


def test_features_from_judgments_are_computed_at_checkpoints(campaigns):
    graded = campaigns[0]
    data = training_data([graded], TERMS, depth=8)
    runs = graded.runs.top(8)
    codes = graded.problem(depth=8).grades.codes
    start = 0
    for judged, rows in judging_checkpoints(runs, codes >= 0, name="graded"):
        at = np.flatnonzero(rows)
        part = slice(start, start + len(at))
        every = graded.judgments.on(runs.pool)
        some = replace(graded, judgments=every.take(judged[every.pair]))
        table = compute_features(some.problem(depth=8, scale=graded.judgments.scale()), ["fSYS", "aDOC", "bRANK"])
        np.testing.assert_allclose(data.x[part], table.design(TERMS)[at])
        same_query = runs.pool.query[at][:, None] == runs.pool.query[judged]
        np.testing.assert_array_equal(data.number[part, 1], same_query.sum(axis=1))
        assert np.isinf(data.number[part, [0]]).all()
        np.testing.assert_array_equal(data.level[part], codes[at])
        start += len(at)
    assert start == len(data)
    assert data.dropped == 0
    assert np.isnan(data.x[:, 1]).any()  # nothing judged in the query: not missing, as it is shrunk


def test_pairs_without_a_term_are_counted(campaigns):
    graded = campaigns[0]
    known = graded.metadata
    source = np.where(np.arange(len(known.docs)) % 4 == 0, "", known.groups["source"])
    holes = replace(graded, metadata=Metadata(known.docs, {"source": objects(source)}))
    data = training_data([holes], ("f[source]",), depth=8)
    assert data.dropped > 0
    assert data.dropped + len(data) == len(graded.runs.top(8).pool)


def test_nothing_to_learn_from(campaigns):
    with pytest.raises(ModelError, match="No campaign"):
        training_data([], TERMS, depth=5)
    with pytest.raises(ModelError, match="graded: there are no judgments"):
        training_data([replace(campaigns[0], judgments=None)], TERMS, depth=5)
    empty = replace(campaigns[0], judgments=Judgments.none(campaigns[0].runs.pool))
    with pytest.raises(ModelError, match="No judged pair has all of"):
        OrdinalModel(TERMS).fit([empty], depth=5)
    with pytest.raises(FeatureError, match="Did you mean 'fSYS'"):
        OrdinalModel(("fSIS",)).fit(campaigns, depth=5)


def test_levels_that_mean_different_things_are_not_mixed(campaigns):
    pool = campaigns[0].runs.pool
    fine, odd = (
        replace(campaigns[0], judgments=Judgments.coded(pool, np.arange(len(pool)), np.arange(len(pool)) % top))
        for top in (101, 10)  # Fine is modelled in ten levels; 0 to 9 are ten levels of their own
    )
    with pytest.raises(ModelError, match="Two scales have 10 levels"):
        training_data([fine, odd], ("fSYS",), depth=5)


# ---- the fit ----


def test_standardised_inside_the_same_model_outside(campaigns):
    data = training_data(campaigns, OUTPUTS, depth=8)
    fitted = OrdinalModel(OUTPUTS).fit_data(data)
    raw = fit_cumulative(Observations(data.x, data.level, data.n_levels, np.ones(len(data))))
    assert fitted.log_likelihood == pytest.approx(raw.log_likelihood, abs=1e-7)
    np.testing.assert_allclose(np.array(fitted.coefficients) / fitted.spread, raw.beta, rtol=1e-5)
    for n, cuts in raw.cuts.items():
        for x, number in zip(data.x[:4], data.number[:4], strict=True):
            eta = fitted.linear_predictor(x, number)
            np.testing.assert_allclose(fitted.cuts(n) + eta, cuts + x @ raw.beta, atol=1e-6)


def test_balanced_campaigns_count_alike(campaigns):
    data = training_data(campaigns, OUTPUTS, depth=8)
    count = np.bincount(data.campaign)
    weight = (len(data) / 2 / count)[data.campaign]
    x = (data.x - data.x.mean(axis=0)) / data.x.std(axis=0)
    expected = fit_cumulative(Observations(x, data.level, data.n_levels, weight))
    found = OrdinalModel(OUTPUTS, balanced=True).fit_data(data)
    np.testing.assert_allclose(found.coefficients, expected.beta, atol=1e-9)
    assert not np.allclose(found.coefficients, OrdinalModel(OUTPUTS).fit_data(data).coefficients, atol=1e-4)


def test_a_constant_term_is_said_and_gets_nothing(campaigns):
    fitted = OrdinalModel(("OV", "log(fSYS)")).fit(campaigns[:1], depth=8)
    assert fitted.notes == ("OV is the same for every pair: its coefficient is 0.",)
    assert fitted.coefficients[0] == 0
    alone = OrdinalModel(("log(fSYS)",)).fit(campaigns[:1], depth=8)
    assert fitted.coefficients[1] == pytest.approx(alone.coefficients[0], abs=1e-9)
    assert np.shape(fitted.covariance) == (4, 4)
    assert fitted.covariance[2] == (0, 0, 0, 0)


def test_a_separating_term_is_said_and_fitted_with_a_ridge(campaigns):
    data = training_data(campaigns[:1], ("fSYS",), depth=8)
    telling = replace(data, x=data.level[:, None].astype(float))
    fitted = OrdinalModel(("fSYS",)).fit_data(telling)
    assert fitted.notes == ("The terms separate the levels: fitted with a ridge of 1.",)
    assert 1 < fitted.coefficients[0] < 100
    twice = {"x": np.repeat(data.x, 2, axis=1), "number": np.repeat(data.number, 2, axis=1)}
    with pytest.raises(ModelError, match="say the same"):
        OrdinalModel(("fSYS", "fSYS@100")).fit_data(replace(data, **twice))


def test_a_level_never_seen_is_said(campaigns):
    graded = campaigns[0]
    few = replace(graded, judgments=graded.judgments.take(graded.judgments.grade != 1))
    fitted = OrdinalModel(("log(fSYS)",)).fit([few], depth=8)
    assert fitted.notes == ("Level 1 of 3 was never seen: its cutpoint rests on half a judgment.",)
    assert fitted.cutpoints[3][0] > fitted.cutpoints[3][1]


def test_a_single_query_is_said(campaigns):
    graded = campaigns[0]
    first = graded.judgments.pool.query[graded.judgments.pair] == 0
    fitted = OrdinalModel(("log(fSYS)",)).fit([replace(graded, judgments=graded.judgments.take(first))], depth=8)
    assert fitted.notes == ("All pairs are of one query: what the model says of other queries is a guess.",)


def test_a_check_names_terms_that_may_be_nothing(campaigns):
    data = training_data(campaigns, ("log(fSYS)", "bRANK"), depth=8)
    noise = replace(data, x=np.column_stack([data.x[:, 0], np.random.default_rng(8).normal(size=len(data))]))
    found = [str(f) for f in OrdinalModel(data.terms).fit_data(noise).check()]
    assert len(found) == 1
    assert found[0].startswith("bRANK: ")
    assert found[0].endswith("may be nothing. Drop it, or fit on more campaigns.")


# ---- prediction ----


@pytest.fixture
def known() -> FittedOrdinal:
    return FittedOrdinal(("fSYS", "aDOC"), (0.5, 0.0), (2.0, 1.0), (1.0, -3.0), {3: (1.0, -1.0), 4: (2.0, 0.0, -2.0)})


def test_a_prediction_by_hand(known, small):
    table = compute_features(small.problem(depth=8), ["fSYS", "aDOC"])
    eta = (table["fSYS"] - 0.5) / 2 - 3 * table["aDOC"]
    reach = expit(np.stack([eta + 1, eta - 1], axis=1))
    found = known.probabilities(small.problem(depth=8, scale=Scale.graded(2)))
    np.testing.assert_allclose(found[:, 2], reach[:, 1], atol=1e-12)
    np.testing.assert_allclose(found[:, 0], 1 - reach[:, 0], atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)


def test_a_scale_never_seen_cuts_the_same_span(known):
    np.testing.assert_allclose(known.cuts(4), [2, 0, -2])
    np.testing.assert_allclose(known.cuts(2), [1])  # the first cutpoint of the nearest scale
    np.testing.assert_allclose(known.cuts(6), [2, 1, 0, -1, -2])
    only_binary = FittedOrdinal(("fSYS",), (0.0,), (1.0,), (1.0,), {2: (0.5,)})
    np.testing.assert_allclose(only_binary.cuts(3), [0.5, -0.5])


def test_what_it_lacks_leaves_it_silent(known, small):
    silent = known.probabilities(replace(small, judgments=None).problem(depth=8, scale=Scale.graded(2)))
    assert silent.shape == (len(small.runs.pool), 3)
    assert np.isnan(silent).all()
    grouped = replace(known, terms=("fSYS", "f[artist]"))
    assert np.isnan(grouped.probabilities(small.problem(depth=8, scale=Scale.graded(2)))).all()
    labelled = replace(known, terms=("fSYS", "label[m]"))
    assert np.isnan(labelled.probabilities(small.problem(depth=8, scale=Scale.graded(2)))).all()


def test_shrunk_means_are_never_missing(known, small):
    model = replace(known, centre=(0.5, 0.3), shrinkage=(0.0, 4.0))
    scale = Scale.graded(2)
    blind = replace(small, judgments=None)
    table = compute_features(small.problem(depth=8), ["fSYS", "aDOC"])
    # With nothing judged, the mean is its centre; with n documents, (n m + 4 * 0.3) / (n + 4).
    eta = (table["fSYS"] - 0.5) / 2
    found = model.probabilities(blind.problem(depth=8, scale=scale))
    np.testing.assert_allclose(found[:, 2], expit(eta - 1), atol=1e-12)
    n = table.numbers["aDOC"]
    eta = (table["fSYS"] - 0.5) / 2 - 3 * ((n * table["aDOC"] + 4 * 0.3) / (n + 4) - 0.3)
    found = model.probabilities(small.problem(depth=8, scale=scale))
    np.testing.assert_allclose(found[:, 2], expit(eta - 1), atol=1e-12)


def test_shrinkage_of_unknown_groups_and_of_none():
    x, number = np.array([0.8, np.nan, np.nan, 0.8, np.nan]), np.array([4.0, 0.0, np.nan, np.inf, 0.0])
    found = shrunk(x, number, np.full(5, 0.2), np.array([4.0, 4.0, 4.0, 4.0, 0.0]))
    np.testing.assert_allclose(found, [0.5, 0.2, np.nan, 0.8, np.nan])


def test_a_base_keeps_the_ratios_of_its_coefficients(campaigns):
    base = FittedOrdinal(("log(fSYS)", "bRANK", "OV"), (0.0,) * 3, (1.0, 2.0, 1.0), (3.0, -0.5, 7.0), {3: (1.0, -1.0)})
    terms = ("log(fSYS)", "aDOC", "bRANK", "OV")
    data = training_data(campaigns[:1], terms, depth=8)
    fitted = OrdinalModel(terms, base=base).fit_data(data)
    raw = np.array(fitted.coefficients) / fitted.spread
    np.testing.assert_allclose(raw[[0, 2, 3]] / raw[0], [1, -0.25 / 3, 7 / 3])
    assert not fitted.notes  # OV is constant here, but not in the next campaign: its coefficient is kept
    # The same fit by hand: the base's predictor as one column.
    free = OrdinalModel(terms).standardise(data)
    x = (data.x[:, 0] * 3 - data.x[:, 2] * 0.25, free.columns[:, 1])
    direct = fit_cumulative(Observations(np.stack(x, axis=1), data.level, data.n_levels, np.ones(len(data))))
    assert fitted.log_likelihood == pytest.approx(direct.log_likelihood)
    assert raw[0] == pytest.approx(3 * direct.beta[0], rel=1e-6)
    error = np.sqrt(np.diag(fitted.covariance))[2:]
    np.testing.assert_allclose(error[[0, 2]] / np.abs(np.array(fitted.coefficients)[[0, 2]]), error[3] / abs(raw[3]))
    assert list(likelihood_ratios(OrdinalModel(terms, base=base), data)) == ["aDOC"]
    assert isinstance(proportional_odds(OrdinalModel(terms, base=base), data), list)
    with pytest.raises(ModelError, match="The base has terms that the model lacks: OV"):
        OrdinalModel(("log(fSYS)", "bRANK"), base=base)


def test_the_logarithm_of_nothing_leaves_it_silent(small):
    # In a pool to depth 8, some documents are in nobody's top 1.
    model = FittedOrdinal(("log(fSYS@1)",), (0.0,), (1.0,), (1.0,), {3: (1.0, -1.0)})
    found = model.probabilities(small.problem(depth=8, scale=Scale.graded(2)))
    top = compute_features(small.problem(depth=8), ["fSYS@1"])["fSYS@1"]
    assert 0 < (top == 0).sum() < len(top)
    np.testing.assert_array_equal(np.isnan(found).any(axis=1), top == 0)
