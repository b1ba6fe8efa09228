"""Both posteriors as ArviZ data, and the check of Laplace's method, against what they must be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from probeval.bayes import load
from probeval.data import Scale
from probeval.relevance import synthetic_campaign
from probeval.relevance.effects.cutpoints import log_probability
from probeval.relevance.effects.prior import HierarchicalPrior
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.inference.importance import ImportanceCheck, judged_predictors, log_weights, pareto_k
from probeval.relevance.inference.laplace import fit_laplace, prior_draws
from probeval.relevance.normal import Normal

pytestmark = pytest.mark.bayes


@pytest.fixture(scope="module")
def design():
    campaign = synthetic_campaign(seed=3, systems=5, queries=4, depth=5, docs=10, groups=3)
    prior = HierarchicalPrior(
        terms=("log(fSYS)", "fTEAM"),
        coefficients=(Normal(0.7, 0.4), Normal(0.1, 0.15)),
        first_cut=Normal(-0.6, 1.0),
        gaps={},
        gap=Normal(1.5, 0.4),
        log_sds={
            "query": Normal(0.0, 0.3),
            "slope": Normal(-1.1, 0.3),
            "team": Normal(-0.3, 0.5),
            "system": Normal(-0.35, 0.35),
            "interaction": Normal(-0.4, 0.3),
            "cutpoint_scale": Normal(-1.0, 0.3),
        },
    )
    return ModelDesign.of(prior, replace(campaign, judgments=None).problem(depth=5, scale=Scale.graded(2)))


@pytest.fixture(scope="module")
def judged(design):
    """Two pairs of each of the first three queries, none of the last."""
    codes = np.full(len(design.pool), -1, dtype=np.int16)
    codes[np.concatenate([np.flatnonzero(design.pool.query == q)[[0, 3]] for q in range(3)])] = [2, 0, 1, 1, 0, 2]
    return codes


@pytest.fixture(scope="module")
def posterior(design, judged):
    return fit_laplace(design, judged)


@pytest.mark.slow
def test_weighted_draws_of_laplace_are_the_posterior(design, judged, posterior):
    """Two ways to the exact posterior: draws of the prior by their likelihood, draws of Laplace by their weights."""
    pairs, level = posterior.judged
    assert (judged[pairs] == level).all()
    rng, moments = np.random.default_rng(1), []
    prior = fit_laplace(design, np.full(len(design.pool), -1, dtype=np.int16), points=500).draw(60_000, rng)
    laplace = posterior.draw(20_000, rng)
    for draws in (prior, laplace):
        eta, cuts = judged_predictors(draws, pairs)
        log_weight = log_probability(eta, cuts, level).sum(axis=1) if draws is prior else log_weights(posterior, draws)
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        values = np.concatenate([eta + cuts[..., 0], draws.log_sd], axis=1)
        mean = weight @ values
        sd = np.sqrt(weight @ (values - mean) ** 2)
        moments.append((mean, sd, 1 / (weight @ weight)))
    (want, sd, n), (found, found_sd, own) = moments
    assert min(n, own) > 1000
    error = 5 * np.sqrt(1 / n + 1 / own)
    np.testing.assert_allclose((found - want)[: len(pairs)] / sd[: len(pairs)], 0.0, atol=error)
    np.testing.assert_allclose(found_sd[: len(pairs)] / sd[: len(pairs)], 1.0, atol=error)


def test_without_judgments_all_weights_are_equal(design):
    none = fit_laplace(design, np.full(len(design.pool), -1, dtype=np.int16))
    weights = log_weights(none, none.draw(100, np.random.default_rng(0)))
    kept = weights[np.isfinite(weights)]  # a normal draw of a gap can be negative
    np.testing.assert_allclose(kept, kept[0], atol=1e-9)
    assert len(kept) > 95


@pytest.mark.parametrize("shape", [-0.2, 0.3, 0.7, 1.2])
def test_pareto_k_is_the_shape_of_the_tail_and_that_of_arviz(shape):
    weights = stats.genpareto.rvs(shape, size=20_000, random_state=1)
    found = pareto_k(np.log(weights))
    assert found == pytest.approx(shape, abs=5 * (1 + abs(shape)) / np.sqrt(3 * np.sqrt(20_000)))
    az, xr = load("arviz"), load("xarray")
    if hasattr(az, "psislw"):
        theirs = float(az.psislw(np.log(weights))[1])
    else:
        log_likelihood = xr.DataArray(-np.log(weights)[None], dims=("chain", "draw"))  # of what is left out
        theirs = float(log_likelihood.azstats.psislw()[1])
    assert found == pytest.approx(theirs, abs=0.02)


def test_equal_weights_and_few_draws():
    assert ImportanceCheck.of(np.zeros(100)).problems == ()
    assert ImportanceCheck.of(np.zeros(100)).ess == pytest.approx(100)
    assert np.isnan(pareto_k(np.zeros(10)))


def test_laplace_goes_to_arviz_whole(design, judged, posterior):
    data = posterior.to_arviz()
    pairs, level = posterior.judged
    assert dict(data["posterior"]["interaction_effect"].sizes) == {"chain": 1, "draw": 1000, "query": 4, "system": 5}
    np.testing.assert_array_equal(data["observed_data"]["level"].values, level)
    np.testing.assert_array_equal(data["constant_data"]["query_index"].values, design.pool.query[pairs])
    assert data["posterior"].attrs["pareto_k"] == pytest.approx(posterior.diagnostics().pareto_k, abs=0.5)
    assert data["posterior"].attrs["inference"] == "laplace"
    # Predictions of both groups follow the level probabilities.
    hit = (data["posterior_predictive"]["level"].values == level).mean(axis=(0, 1))
    error = 5 * np.sqrt(0.25 / 1000)
    np.testing.assert_allclose(hit, np.exp(data["log_likelihood"]["level"].values).mean(axis=(0, 1)), atol=error)
    eta, cuts = judged_predictors(prior_draws(design, np.random.default_rng(9)), pairs)
    expected = np.exp(log_probability(eta, cuts, level)).mean(axis=0)
    hit = (data["prior_predictive"]["level"].values == level).mean(axis=(0, 1))
    np.testing.assert_allclose(hit, expected, atol=error * 1.5)
    # The prior's standard deviations are those of the card: log-normal.
    logs = np.log(data["prior"]["sd"].values[0])
    assert logs.mean(axis=0) == pytest.approx([e.log_sd.mean for e in design.effects], abs=0.05)
    assert logs.std(axis=0) == pytest.approx([e.log_sd.sd for e in design.effects], rel=0.1)
    log_weight = data["sample_stats"]["log_weight"].values[0]
    assert pareto_k(log_weight) == pytest.approx(posterior.diagnostics().pareto_k, abs=0.5)


def test_the_summary_has_the_intervals_and_the_check(posterior):
    said = posterior.summary()
    assert "95% posterior intervals" in said
    assert f"Pareto k {posterior.diagnostics().pareto_k:.2f}" in said
    first = posterior.tables()[0].frame.iloc[0]
    log = posterior.log_sds["query"]
    np.testing.assert_allclose(stats.lognorm.cdf(first["upper"], log.sd, scale=np.exp(log.mean)), 0.975)


def test_weights_that_are_equal_but_for_rounding_have_no_tail():
    """Nothing is judged: the normal is the prior."""
    log_weight = np.random.default_rng(0).normal(0, 1e-15, 1000)
    check = ImportanceCheck.of(log_weight)
    assert check.pareto_k == float("-inf")
    assert not check.problems
    assert str(check) == "all importance weights are equal"
