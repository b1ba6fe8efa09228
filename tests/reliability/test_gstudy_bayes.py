"""The posterior of variance components: two models of one thing, and whether it covers what is true."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from probeval.errors import ProbevalWarning, ReliabilityError
from probeval.reliability import Design, Observed, bayesian, gstudy
from probeval.reliability.anova import MeanSquares
from probeval.reliability.bayesian import draw_effects, sample_components

pytestmark = pytest.mark.bayes

CROSSED = Design.parse("s x q")


def scores(rng: np.random.Generator, sds: tuple[float, float, float], n: int, n_s: int, n_q: int) -> np.ndarray:
    parts = ((n, n_s, 1), (n, 1, n_q), (n, n_s, n_q))
    return sum(sd * rng.standard_normal(shape) for sd, shape in zip(sds, parts, strict=True))


def variance_of(known: np.ndarray, variances) -> np.ndarray:
    """The covariance of the scores of s x q that are there, given the components."""
    s, q = np.nonzero(known)
    same_system, same_query = np.equal.outer(s, s), np.equal.outer(q, q)
    return variances[0] * same_system + variances[1] * same_query + variances[2] * np.eye(len(s))


def by_grid(values: np.ndarray, prior: float, size: int) -> np.ndarray:
    """Posterior means of the components on a grid of standard deviations: no sampler, mean squares or missing scores.

    From the density of a normal vector, the mean of all scores integrated out.
    """
    known = ~np.isnan(values)
    y, ones = values[known], np.ones(known.sum())
    axes = [(np.arange(size) + 0.5) / size * top for top in (0.6, 0.6, 0.3)]
    sd = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    log = -0.5 * (sd**2).sum(axis=1) / prior**2
    for i, variances in enumerate(sd**2):
        covariance = variance_of(known, variances)
        in_y, in_ones = np.linalg.solve(covariance, np.column_stack([y, ones])).T
        log[i] -= 0.5 * (np.linalg.slogdet(covariance)[1] + np.log(ones @ in_ones))
        log[i] -= 0.5 * (y @ in_y - (ones @ in_y) ** 2 / (ones @ in_ones))
    weight = np.exp(log - log.max())
    return weight @ sd**2 / weight.sum()


@pytest.mark.slow
@pytest.mark.parametrize("gaps", [(), ((1, 2), (3, 5), (3, 6))])
def test_study_by_bayes_is_the_posterior_on_a_grid(gaps):
    values = scores(np.random.default_rng(1), (0.15, 0.2, 0.1), 1, 5, 7)[0]
    for gap in gaps:
        values[gap] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbevalWarning)  # scores are missing
        study = gstudy(Observed.matrix(values), method="bayes")
    assert (study.interval, study.uncertainty) == ("posterior", ("sampling",))
    want = by_grid(values, 2 * float(np.nanstd(values)), 24)
    error = 5 * study.draws.std(axis=0) / np.sqrt(1000)  # an effective sample of at least this many
    assert (np.abs(study.draws.mean(axis=0) - want) < error).all()
    assert (study.draws > 0).all()
    assert list(study.components.values()) == pytest.approx(list(np.median(study.draws, axis=0)))
    found = study.coefficient("erho2")
    assert found.lower < found.value < found.upper
    # The sampler is part of the result: in JSON, in words, and in what goes to ArviZ.
    assert study.to_dict()["diagnostics"]["rhat"] < 1.01
    assert "R-hat 1.00" in study.sentences()[0]
    data = study.to_arviz()
    assert data["posterior"].attrs["inference_library"] == "probeval"
    assert data["posterior"].attrs["rhat"] == study.diagnostics.rhat
    np.testing.assert_allclose(data["posterior"]["component"].values.reshape(-1, 3), study.draws)
    assert dict(data["posterior"]["query_effect"].sizes) == {"chain": 2, "draw": 2000, "query": 7}
    assert data["log_likelihood"]["score"].sizes["cell"] == 35 - len(gaps)
    predicted = data["posterior_predictive"]["score"].values.reshape(4000, -1)
    np.testing.assert_allclose(predicted.mean(axis=0), data["observed_data"]["score"].values, atol=0.25)
    # Half-normal with the scale that is among the constants.
    scale = float(data["constant_data"]["prior_scale"].values[0])
    np.testing.assert_allclose((data["prior"]["sd"] ** 2).mean(), scale**2, rtol=0.1)


def test_effects_given_variances_are_those_of_a_normal_vector():
    """Matheron's rule against the conditional of a joint normal distribution, with a flat mean."""
    rng, variances = np.random.default_rng(2), np.array([0.3, 0.5, 0.2])
    values, n = scores(rng, tuple(np.sqrt(variances)), 1, 3, 4)[0], 40_000
    squares = MeanSquares(CROSSED, (3, 4), np.empty(0))
    mean, (system, query, residual) = draw_effects(
        squares, np.broadcast_to(values, (n, 3, 4)), np.broadcast_to(variances, (n, 3)), rng
    )
    np.testing.assert_allclose(mean[:, None, None] + system + query + residual, np.broadcast_to(values, (n, 3, 4)))
    covariance = variance_of(np.ones((3, 4), dtype=bool), variances)
    flat = covariance + 1e6  # a mean that hardly has a prior
    to_system = variances[0] * np.equal.outer(np.arange(3), np.repeat(np.arange(3), 4))
    to_query = variances[1] * np.equal.outer(np.arange(4), np.tile(np.arange(4), 3))
    to_all = np.concatenate([to_system, to_query])
    prior = np.diag(np.repeat(variances[:2], (3, 4)))
    want = to_all @ np.linalg.solve(flat, values.ravel())
    spread = prior - to_all @ np.linalg.solve(flat, to_all.T)
    found = np.concatenate([system[..., 0], query[:, 0]], axis=1)
    np.testing.assert_allclose(found.mean(axis=0), want, atol=5 * np.sqrt(0.5 / n))
    np.testing.assert_allclose(np.cov(found.T), spread, atol=5 * 0.5 * np.sqrt(2 / n))


def test_other_methods_have_no_posterior():
    study = gstudy(Observed.matrix(scores(np.random.default_rng(1), (0.15, 0.2, 0.1), 1, 6, 10)[0]))
    assert "diagnostics" not in study.to_dict()
    with pytest.raises(ReliabilityError, match="method='bayes'"):
        study.to_arviz()


@pytest.mark.validation
def test_gaps_and_uncertain_scores_by_bayes():
    rng = np.random.default_rng(2)
    values = scores(rng, (0.0, 0.2, 0.1), 1, 5, 8)[0]
    study = gstudy(Observed.matrix(values), method="bayes")
    assert min(study.components.values()) > 0
    gaps = values.copy()
    gaps[1, 2] = gaps[3, 5] = np.nan
    with pytest.warns(ProbevalWarning, match="2 of 40 scores are missing"):
        missing = gstudy(Observed.matrix(gaps), method="bayes")
    assert missing.components["query"] == pytest.approx(study.components["query"], rel=0.5)
    drawn = values + 0.1 * rng.standard_normal((50, *values.shape))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbevalWarning)  # 150 R-hats: the largest may pass 1.01 by chance
        wide = gstudy(Observed.matrix(drawn), method="bayes")
    assert wide.uncertainty == ("judging", "sampling")
    assert wide.components["residual"] > study.components["residual"]


def test_uncertain_scores_with_gaps_are_refused():
    values = np.random.default_rng(3).random((5, 4, 6))
    values[:, 1, 2] = np.nan
    with pytest.raises(ReliabilityError, match="without gaps"), pytest.warns(ProbevalWarning, match="missing"):
        gstudy(Observed.matrix(values), method="bayes")


@pytest.mark.validation
@pytest.mark.parametrize(
    ("n_s", "n_q", "sds"), [(6, 12, (0.05, 0.17, 0.1)), (10, 20, (0.05, 0.17, 0.1)), (5, 8, (0.2, 0.1, 0.1))]
)
def test_posterior_covers_simulated_truth_at_its_rate(n_s, n_q, sds, monkeypatch):
    # 200 replications, 90% intervals, all sampled in one model: between 84% and 96% hold each component.
    rng = np.random.default_rng(17)
    values = scores(rng, sds, 200, n_s, n_q)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbevalWarning)  # 600 R-hats: the largest may pass 1.01 by chance
        monkeypatch.setattr(bayesian, "JOINT", 200)
        found = sample_components(Observed.matrix(values), rng=rng).chains["sd"] ** 2
    low, high = np.quantile(found, [0.05, 0.95], axis=(0, 1))
    inside = ((low <= np.square(sds)) & (np.square(sds) <= high)).mean(axis=0)
    assert ((inside >= 0.84) & (inside <= 0.96)).all(), inside
