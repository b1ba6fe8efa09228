"""The posterior of variance components: two models of one thing, and whether it covers what is true."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from probeval.errors import ProbevalWarning, ReliabilityError
from probeval.reliability import Design, Observed, gstudy
from probeval.reliability.anova import mean_squares
from probeval.reliability.bayesian import posterior_balanced, posterior_gaps

pytestmark = pytest.mark.bayes

CROSSED = Design.parse("s x q")


def scores(rng: np.random.Generator, sds: tuple[float, float, float], n: int, n_s: int, n_q: int) -> np.ndarray:
    parts = ((n, n_s, 1), (n, 1, n_q), (n, n_s, n_q))
    return sum(sd * rng.standard_normal(shape) for sd, shape in zip(sds, parts, strict=True))


def by_grid(squares, prior: float, size: int = 81) -> np.ndarray:
    """Posterior means of the components on a grid of standard deviations: no sampler in it."""
    axes = [np.linspace(1e-3, 1.0, size) * top for top in (0.5, 0.6, 0.3)]
    sd = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    expected = sd**2 @ squares.weights.T
    log = -0.5 * (squares.degrees * (np.log(expected) + squares.values[0] / expected)).sum(axis=-1)
    log -= 0.5 * (sd**2).sum(axis=-1) / prior**2
    weight = np.exp(log - log.max())
    return (weight[..., None] * sd**2).sum(axis=(0, 1, 2)) / weight.sum()


@pytest.mark.slow
def test_study_by_bayes_is_the_posterior_on_a_grid():
    values = scores(np.random.default_rng(1), (0.15, 0.2, 0.1), 1, 6, 10)
    study = gstudy(Observed.matrix(values[0]), method="bayes")
    assert (study.interval, study.uncertainty) == ("posterior", ("sampling",))
    want = by_grid(mean_squares(CROSSED, values), 2 * float(values.std()))
    error = 5 * study.draws.std(axis=0) / np.sqrt(1000)  # an effective sample of at least this many
    assert (np.abs(study.draws.mean(axis=0) - want) < error).all()
    assert (study.draws > 0).all()
    assert list(study.components.values()) == pytest.approx(list(np.median(study.draws, axis=0)))
    found = study.coefficient("erho2")
    assert found.lower < found.value < found.upper


@pytest.mark.validation
def test_effects_integrated_out_or_sampled_are_one_posterior():
    rng = np.random.default_rng(1)
    values = scores(rng, (0.15, 0.2, 0.1), 1, 6, 10)
    found = posterior_balanced(mean_squares(CROSSED, values), np.array([0.5]), rng=rng)[:, 0]
    other = posterior_gaps(Observed.matrix(values[0]), 0.5, rng=rng)
    error = 5 * np.hypot(found.std(axis=0) / np.sqrt(1000), other.std(axis=0) / np.sqrt(400))
    assert (np.abs(found.mean(axis=0) - other.mean(axis=0)) < error).all()


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
def test_posterior_covers_simulated_truth_at_its_rate(n_s, n_q, sds):
    # 200 replications, 90% intervals, all sampled in one model: between 84% and 96% hold each component.
    rng = np.random.default_rng(17)
    values = scores(rng, sds, 200, n_s, n_q)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbevalWarning)  # 600 R-hats: the largest may pass 1.01 by chance
        found = posterior_balanced(mean_squares(CROSSED, values), 2 * values.reshape(200, -1).std(axis=1), rng=rng)
    low, high = np.quantile(found, [0.05, 0.95], axis=0)
    inside = ((low <= np.square(sds)) & (np.square(sds) <= high)).mean(axis=0)
    assert ((inside >= 0.84) & (inside <= 0.96)).all(), inside
