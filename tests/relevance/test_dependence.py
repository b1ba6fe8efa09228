"""How the gains of pairs hang together, and models that follow a campaign."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from probeval.data import Judgments, Scale
from probeval.relevance import (
    FallbackModel,
    Hierarchical,
    HierarchicalPrior,
    RelevanceDistribution,
    Uniform,
    synthetic_campaign,
)
from probeval.relevance.dependence import Drawn, Linearised, Unrelated
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.inference.laplace import fit_laplace
from probeval.relevance.normal import Normal
from probeval.relevance.online import Prediction, follow

DEPTH = 5
PRIOR = HierarchicalPrior(
    terms=("log(fSYS)", "fTEAM"),
    coefficients=(Normal(0.7, 0.4), Normal(0.1, 0.3)),
    first_cut=Normal(-0.6, 0.6),
    gaps={},
    gap=Normal(1.2, 0.4),
    log_sds={
        "query": Normal(-0.1, 0.2),
        "slope": Normal(-1.0, 0.2),
        "interaction": Normal(-0.5, 0.2),
        "team": Normal(-0.7, 0.2),
        "system": Normal(-0.8, 0.2),
        "cutpoint_scale": Normal(-1.0, 0.2),
    },
)


def campaign(scale, judged=25):
    made = synthetic_campaign(seed=3, systems=6, queries=5, depth=DEPTH, docs=15, scale=scale)
    few = np.random.default_rng(4).permutation(len(made.judgments))[:judged]
    return replace(made, judgments=made.judgments.take(few))


def linearised(scale, draws=400):
    """The delta method around one setting of the variances, the fit, and the distribution drawn from it."""
    some = campaign(scale)
    problem = some.problem(depth=DEPTH, scale=scale)
    design = ModelDesign.of(PRIOR, problem)
    fit = fit_laplace(design, some.judgments.on(design.pool).codes(scale), points=1)
    relevance = Hierarchical(PRIOR, draws=draws).distribution(problem, fit, np.random.default_rng(5))
    return Linearised.of(fit, relevance, scale.gains), fit, relevance


@pytest.mark.parametrize("scale", [Scale.binary(), Scale.graded(3)], ids=str)
def test_its_three_questions_have_one_answer(scale):
    found, _, relevance = linearised(scale)
    n = len(relevance.pool)
    whole = found.times(np.eye(n))
    np.testing.assert_allclose(whole, whole.T, atol=1e-12)
    np.testing.assert_allclose(found.between(np.arange(n)), whole, atol=1e-12)
    np.testing.assert_allclose(found.variance, np.diag(whole), atol=1e-12)
    some = np.random.default_rng(0).permutation(n)[:17]  # in any order, of any queries
    np.testing.assert_allclose(found.between(some), whole[np.ix_(some, some)], atol=1e-12)
    columns = np.random.default_rng(1).normal(size=(n, 3))
    np.testing.assert_allclose(found.times(columns), whole @ columns, atol=1e-12)
    assert np.linalg.eigvalsh(whole).min() > -1e-12
    assert not whole[relevance.certain].any()  # what is judged depends on nothing


def test_it_is_the_posterior_of_the_predictor_times_the_slopes():
    scale, n = Scale.binary(), 20_000
    found, fit, _ = linearised(scale)
    eta, cuts = fit.draw(n, np.random.default_rng(6)).whole()
    predictor = np.cov((eta + cuts[:, 0]).T)
    expected = found.slope[:, None] * predictor * found.slope
    # A sample covariance misses by about sqrt((C_ij^2 + C_ii C_jj)/n), and there are 5,000 of them here.
    own = np.diag(expected)
    error = np.sqrt((expected**2 + np.outer(own, own)) / n)
    off = np.abs(found.between(np.arange(len(own))) - expected)
    assert (off <= 5 * error + 1e-12).all()
    assert found.slope.max() > 0.1


def test_it_is_what_many_draws_say():
    scale = Scale.graded(3)
    found, _, relevance = linearised(scale, draws=8000)
    drawn = Drawn.of(relevance, scale.gains)
    pairs = np.flatnonzero(~relevance.certain)
    a, b = (d.between(pairs)[np.triu_indices(len(pairs))] for d in (found, drawn))
    assert np.corrcoef(a, b)[0, 1] > 0.99
    assert a.sum() == pytest.approx(b.sum(), rel=0.1)  # first order: the bend of the curve is left out


def test_draws_by_hand():
    pool, scale = campaign(Scale.binary()).runs.top(1).pool, Scale.binary()
    p = np.random.default_rng(0).uniform(size=(7, len(pool)))
    drawn = Drawn.of(RelevanceDistribution.of(pool, scale, np.stack([1 - p, p], axis=-1)), scale.gains)
    expected = np.cov(p.T)
    np.testing.assert_allclose(drawn.variance, np.diag(expected))
    np.testing.assert_allclose(drawn.times(np.eye(len(pool))), expected, atol=1e-15)
    np.testing.assert_allclose(drawn.between(np.array([2, 0])), expected[np.ix_([2, 0], [2, 0])])


def test_nothing_unrelated_depends():
    none = Unrelated(3)
    assert none.variance.tolist() == [0, 0, 0]
    assert none.times(np.ones((3, 2))).tolist() == [[0, 0]] * 3
    assert none.between(np.array([1, 2])).tolist() == [[0, 0]] * 2


def test_a_belief_says_how_pairs_depend_by_where_it_comes_from():
    scale = Scale.graded(2)
    some = campaign(scale)
    rng = np.random.default_rng(0)
    by_laplace = follow(Hierarchical(PRIOR), some.problem(depth=DEPTH, scale=scale)).after(some.judgments, rng)
    assert isinstance(by_laplace.dependence(scale.gains), Linearised)
    assert isinstance(Prediction(by_laplace.relevance).dependence(scale.gains), Drawn)
    alone = follow(FallbackModel([Uniform()]), some.problem(depth=DEPTH, scale=scale)).after(None, rng)
    assert isinstance(alone.dependence(scale.gains), Unrelated)
    assert not alone.relevance.certain.any()


def test_following_is_predicting_and_a_start_changes_little():
    scale = Scale.graded(2)
    full = synthetic_campaign(seed=3, systems=6, queries=5, depth=DEPTH, docs=15, scale=scale)
    model = Hierarchical(PRIOR, draws=2000)
    online = follow(model, replace(full, judgments=None).problem(depth=DEPTH, scale=scale))
    first, more = (full.judgments.take(np.arange(n)) for n in (20, 30))
    before = online.after(first, np.random.default_rng(1))
    asked = model.predict(
        replace(full, judgments=first).problem(depth=DEPTH, scale=scale), rng=np.random.default_rng(1)
    )
    np.testing.assert_allclose(before.relevance.probability, asked.probability)
    cold, warm = (online.after(more, np.random.default_rng(2), last=last) for last in (None, before))
    assert warm.relevance.certain.sum() == 30
    a, b = (x.relevance.moments(scale.gains)[0].mean(axis=0) for x in (cold, warm))
    np.testing.assert_allclose(a, b, atol=0.05)
    assert np.abs(a - before.relevance.moments(scale.gains)[0].mean(axis=0)).max() > 0.05


def test_what_is_merely_known_teaches_nothing():
    scale = Scale.graded(2)
    some = campaign(scale, judged=10)
    online = follow(Hierarchical(PRIOR, draws=50), some.problem(depth=DEPTH, scale=scale))
    before = online.after(some.judgments, np.random.default_rng(0))
    pool = before.relevance.pool
    new = np.flatnonzero(~before.relevance.certain)[:4]
    pairs = np.concatenate([some.judgments.on(pool).pair, new])
    known = before.given(Judgments.coded(pool, pairs, np.full(len(pairs), 2.0)))
    assert known.relevance.certain.sum() == before.relevance.certain.sum() + 4
    np.testing.assert_array_equal(known.relevance.probability, before.relevance.probability)
    assert not known.dependence(scale.gains).variance[new].any()


def test_a_model_that_looks_at_judgments_is_designed_anew():
    prior = replace(PRIOR, terms=("log(fSYS)", "aSYS"))
    scale = Scale.graded(2)
    some = campaign(scale)
    assert follow(Hierarchical(prior), some.problem(depth=DEPTH, scale=scale)).design is None
    assert follow(Hierarchical(PRIOR), some.problem(depth=DEPTH, scale=scale)).design is not None


@pytest.mark.parametrize("scale", [Scale.binary(), Scale.graded(3)], ids=str)
def test_latent_relevance_and_gains_are_one_normal(scale):
    found, fit, relevance = linearised(scale)
    n, latent = len(relevance.pool), found.latent
    across = found.times_across(latent, np.eye(n))
    np.testing.assert_allclose(found.between_across(latent, np.arange(n)), across, atol=1e-12)
    np.testing.assert_allclose(latent.times_across(found, np.eye(n)), across.T, atol=1e-12)
    if len(scale) == 2:  # one cutpoint: a gain is its slope times the logit
        np.testing.assert_allclose(across, latent.between(np.arange(n)) * found.slope, atol=1e-12)
    whole = np.block([[found.between(np.arange(n)), across.T], [across, latent.between(np.arange(n))]])
    assert np.linalg.eigvalsh(whole).min() > -1e-10
    # The differences of two pairs, by many draws of the predictors.
    draws = 20_000
    eta, _ = fit.draw(draws, np.random.default_rng(8)).whole()
    apart, formula = eta - eta[:, [3]], latent.between(np.arange(n))
    formula = formula - formula[[3]] - formula[:, [3]] + formula[3, 3]
    error = np.sqrt((formula**2 + np.outer(np.diag(formula), np.diag(formula))) / draws)
    assert np.all(np.abs(np.cov(apart.T) - formula) <= 5 * error + 1e-9)
    spread = np.sqrt(np.diag(formula) / draws)
    np.testing.assert_array_less(np.abs(apart.mean(axis=0) - (found.centre - found.centre[3])), 5 * spread + 1e-9)
