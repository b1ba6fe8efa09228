"""NUTS against what must come out: algebra without sampling, weighted draws of the prior, Laplace, its own checks."""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_ndtr

from probeval.arrays import Codes, Floats
from probeval.bayes import NutsDiagnostics, load
from probeval.data import Collection, Scale, read_campaign
from probeval.errors import ModelError, ProbevalWarning
from probeval.relevance import synthetic_campaign
from probeval.relevance.distribution import RelevanceDistribution
from probeval.relevance.effects.cutpoints import level_probabilities, log_probability
from probeval.relevance.effects.prior import HierarchicalPrior
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.inference.laplace import fit_laplace
from probeval.relevance.normal import Normal
from probeval.relevance.nuts.directions import SampledPairs
from probeval.relevance.nuts.fit import fit_nuts
from probeval.relevance.nuts.posterior import NutsDraws, NutsPosterior, pymc_model
from probeval.scores import evaluate

pytestmark = pytest.mark.bayes

TERMS = ("log(fSYS)", "fTEAM")
LOG_SDS = {
    "query": Normal(0.0, 0.3),
    "slope": Normal(-1.1, 0.3),
    "team": Normal(-0.3, 0.5),
    "system": Normal(-0.35, 0.35),
    "interaction": Normal(-0.4, 0.3),
    "cutpoint_scale": Normal(-1.0, 0.3),
}


def prior_of(collection: Collection, *, depth: int, scale: Scale, groups: bool = False) -> HierarchicalPrior:
    return HierarchicalPrior(
        terms=TERMS,
        coefficients=(Normal(0.7, 0.4), Normal(0.1, 0.15)),
        first_cut=Normal(-0.6, 1.0),
        gaps={},
        gap=Normal(1.5, 0.4),
        log_sds={**LOG_SDS, **({"group:source": Normal(-0.5, 0.3)} if groups else {})},
    )


def some_judged(collection: Collection, design: ModelDesign, keep: np.ndarray) -> Codes:
    codes = collection.judgments.on(design.pool).codes(design.scale)
    out = np.full(len(design.pool), -1, dtype=np.int16)
    out[keep] = codes[keep]
    return out


@pytest.fixture(scope="module")
def campaign() -> Collection:
    """5 systems in 2 teams, 4 queries, 5 ranks."""
    return synthetic_campaign(seed=3, systems=5, queries=4, depth=5, docs=10, groups=3)


@pytest.fixture(scope="module")
def prior(campaign) -> HierarchicalPrior:
    return prior_of(campaign, depth=5, scale=Scale.graded(2), groups=True)


@pytest.fixture(scope="module")
def design(campaign, prior) -> ModelDesign:
    return ModelDesign.of(prior, campaign.problem(depth=5, scale=Scale.graded(2)))


@pytest.fixture(scope="module")
def judged(campaign, design) -> Codes:
    """Two pairs of each of the first three queries, none of the last."""
    return some_judged(
        campaign, design, np.concatenate([np.flatnonzero(design.pool.query == q)[[0, 3]] for q in range(3)])
    )


def from_prior(layout: SampledPairs, shape: tuple[int, int], rng: np.random.Generator) -> NutsPosterior:
    """A fit whose chains are the prior's: what NUTS would give if the judgments said nothing."""
    scales = [effect.log_sd for effect in layout.design.effects]
    log_sd = rng.normal([p.mean for p in scales], [p.sd for p in scales], (*shape, len(scales)))
    first, *gaps = layout.design.cuts
    n = len(layout.queries)
    own = np.exp(log_sd[..., layout.design.position("query")]) / np.sqrt(n) if n else np.zeros(shape)
    query = rng.standard_normal((*shape, n))
    gap = rng.normal([g.mean for g in gaps], [g.sd for g in gaps], (*shape, len(gaps)))
    chains = {
        "log_sd": log_sd,
        "intercept": rng.normal(first.mean, np.hypot(first.sd, own)),
        "gaps": np.abs(gap),  # nearly never below 0
        "coefficients": rng.normal(
            [c.mean for c in layout.design.coefficients],
            [c.sd for c in layout.design.coefficients],
            (*shape, len(TERMS)),
        ),
        "z": rng.standard_normal((*shape, len(layout.coordinate_effect))),
        "difference": query - (query.mean(axis=-1, keepdims=True) if n else 0.0),
        "cutpoint_scale": rng.standard_normal((*shape, n)),
    }
    return NutsPosterior(layout, chains, {"diverging": np.zeros(shape, dtype=bool)})


def log_sd_priors(design: ModelDesign, prior: HierarchicalPrior) -> list[Normal]:
    """The priors of the log standard deviations as they are written: systems and teams are wider among few."""
    wider = 0.5 * np.log(1 + 3 / len(design.coords["system"]))
    more = {"system": wider, "team": wider}
    return [Normal(prior.log_sds[k].mean + more.get(k, 0.0), prior.log_sds[k].sd) for k in design.names]


def prior_draws(
    design: ModelDesign, prior: HierarchicalPrior, n: int, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """The model as it is written, effect by effect: linear predictors, cutpoints, log standard deviations."""
    kinds = design.names
    every = np.arange(len(design.pool))
    log_sd = np.column_stack([rng.normal(p.mean, p.sd, n) for p in log_sd_priors(design, prior)])
    sds = dict(zip(kinds, np.exp(log_sd).T, strict=True))
    eta = rng.normal([c.mean for c in prior.coefficients], [c.sd for c in prior.coefficients], (n, 2)) @ design.terms.T
    for effect in design.of_campaign:
        columns = effect.columns.rows(every)
        eta += sds[effect.name][:, None] * (rng.standard_normal((n, columns.shape[1])) @ columns.T)
    for effect in design.of_query:
        kind, columns = effect.name, effect.columns.rows(every)
        for q in range(len(design.pool.queries)):
            mine = design.pool.query == q
            eta[:, mine] += sds[kind][:, None] * (rng.standard_normal((n, columns.shape[1])) @ columns[mine].T)
    first, *gaps = prior.cut_priors(design.n_levels)
    cuts = [rng.normal(first.mean, first.sd, n)]
    for gap in gaps:
        cuts.append(cuts[-1] - np.abs(rng.normal(gap.mean, gap.sd, n)))
    shared = np.column_stack(cuts)[:, None, :]
    factor = np.ones((n, len(design.pool.queries), 1))
    if gaps:
        factor = np.exp(sds["cutpoint_scale"][:, None, None] * rng.standard_normal(factor.shape))
    middle = shared.mean(axis=2, keepdims=True)
    return eta, middle + factor * (shared - middle), log_sd


# Without sampling


def test_every_kind_is_sampled_in_as_few_directions_as_the_judged_pairs_tell_apart(design, prior, judged):
    layout = SampledPairs.of(design, judged)
    count = {kind: int(np.sum(layout.coordinate_effect == i)) for i, kind in enumerate(layout.design.names)}
    every = np.arange(len(design.pool))
    for effect in design.of_campaign:
        assert count[effect.name] == np.linalg.matrix_rank(effect.columns.rows(every)[judged >= 0])
    for effect in design.of_query:
        kind, columns = effect.name, effect.columns.rows(every)
        blocks = [columns[(design.pool.query == q) & (judged >= 0)] for q in range(3)]
        assert count[kind] == (0 if kind == "query" else sum(np.linalg.matrix_rank(b) for b in blocks))
    assert layout.queries.tolist() == [0, 1, 2]


def test_drawn_predictors_of_judged_pairs_are_the_sampled_ones(design, prior, judged):
    # What the sampler saw of a judged pair, the intercept included, is what a draw says of it, first cutpoint included.
    layout = SampledPairs.of(design, judged)
    fit = from_prior(layout, (1, 40), np.random.default_rng(0))
    values = {name: v[0] for name, v in fit.chains.items()}
    sd = np.exp(values["log_sd"])
    coordinates = np.concatenate(
        [
            values["z"] * sd[:, layout.coordinate_effect],
            values["difference"] * sd[:, [layout.design.position("query")]],
            np.zeros((40, 1)),
        ],
        axis=1,
    )
    sampled = values["intercept"][:, None] + values["coefficients"] @ design.terms[layout.pairs].T
    sampled += (coordinates[:, layout.place] * layout.weight).sum(axis=-1)
    drawn = NutsDraws.of(fit, np.arange(40), np.random.default_rng(1))
    eta, cuts = drawn.whole()
    np.testing.assert_allclose(eta[:, layout.pairs] + drawn.first[:, None], sampled, atol=1e-12)
    factor = np.exp(values["cutpoint_scale"] * sd[:, [layout.design.names.index("cutpoint_scale")]])
    gaps = -np.diff(cuts[:, layout.queries], axis=2)
    np.testing.assert_allclose(gaps, factor[..., None] * values["gaps"][:, None], atol=1e-12)


@pytest.mark.parametrize("n_judged", [0, 1, 6])
def test_draws_of_the_prior_have_the_priors_moments(design, prior, judged, n_judged):
    keep = judged.copy()
    keep[np.flatnonzero(judged >= 0)[n_judged:]] = -1
    n = 20_000
    fit = from_prior(SampledPairs.of(design, keep), (2, n // 2), np.random.default_rng(n_judged))
    eta, cuts = fit.draw(n, np.random.default_rng(5)).whole()
    expected, expected_cuts, _ = prior_draws(design, prior, n, np.random.default_rng(6))
    both, both_expected = (
        np.concatenate([e, c.mean(axis=2), np.log(c[..., 0] - c[..., 1])], axis=1)
        for e, c in ((eta, cuts), (expected, expected_cuts))
    )
    sd = both_expected.std(axis=0)
    np.testing.assert_allclose(both.mean(axis=0), both_expected.mean(axis=0), atol=5 * sd.max() * np.sqrt(2 / n))
    # Standard errors of correlations of heavy-tailed sums: .01; 5 of them over 500 entries.
    np.testing.assert_allclose(
        np.cov(both.T) / np.outer(sd, sd), np.cov(both_expected.T) / np.outer(sd, sd), atol=5 * np.sqrt(4 / n)
    )


def test_log_likelihood_is_that_of_the_level_probabilities():
    rng = np.random.default_rng(0)
    eta, level = 2 * rng.standard_normal((30, 8)), rng.integers(4, size=8)
    cuts = -np.cumsum(rng.exponential(size=(30, 8, 3)), axis=2)
    p = level_probabilities(cuts, eta)
    np.testing.assert_allclose(log_probability(eta, cuts, level), np.log(p[:, np.arange(8), level]), atol=1e-10)
    # Far out, where probabilities round to 0 or 1, it still has the right slope: -800 logits cost 800.
    far = log_probability(np.array([[800.0]]), np.array([[[0.0, -1.0]]]), np.array([0]))
    assert far[0, 0] == pytest.approx(-800.0)


@pytest.mark.slow
def test_the_pymc_model_has_the_models_log_posterior(design, prior, judged):
    layout = SampledPairs.of(design, judged)
    model = pymc_model(layout)
    value = model.compile_logp(jacobian=False, mode="FAST_COMPILE")
    outputs = model.replace_rvs_by_values([model["gaps"], model["difference"]])
    constrained = model.compile_fn(outputs, inputs=model.value_vars, mode="FAST_COMPILE", on_unused_input="ignore")
    rng = np.random.default_rng(0)
    n_queries, n_gaps = len(layout.queries), len(layout.design.cuts) - 1
    differences = []
    kept = ("log_sd", "intercept", "coefficients", "z", "cutpoint_scale")
    for _ in range(4):
        point = {k: v + 0.5 * rng.standard_normal(np.shape(v)) for k, v in model.initial_point().items()}
        gaps, query = constrained(point)
        assert query.sum() == pytest.approx(0.0, abs=1e-9)
        sd = np.exp(point["log_sd"])
        scales = log_sd_priors(design, prior)
        expected = sum(-(((x - p.mean) / p.sd) ** 2) / 2 for x, p in zip(point["log_sd"], scales, strict=True))
        expected -= (
            sum(((x - p.mean) / p.sd) ** 2 for x, p in zip(point["coefficients"], prior.coefficients, strict=True)) / 2
        )
        expected -= (point["z"] @ point["z"] + query @ query + point["cutpoint_scale"] @ point["cutpoint_scale"]) / 2
        own = prior.first_cut.sd**2 + sd[layout.design.position("query")] ** 2 / n_queries
        expected -= (point["intercept"] - prior.first_cut.mean) ** 2 / own / 2 + np.log(own) / 2
        expected -= np.sum(((gaps - prior.gap.mean) / prior.gap.sd) ** 2) / 2
        expected -= n_gaps * log_ndtr(prior.gap.mean / prior.gap.sd)
        # The judged pairs, through a draw whose sum with the first cutpoint is what the sampler saw.
        chains = {name: np.asarray(point[name])[None, None] for name in kept}
        fit = NutsPosterior(layout, {**chains, "gaps": gaps[None, None], "difference": query[None, None]}, {})
        eta, cuts = NutsDraws.of(fit, np.zeros(1, dtype=np.int64), rng).whole()
        p = level_probabilities(cuts[:, design.pool.query], eta)[0, layout.pairs, layout.level]
        differences.append(float(value(point)) - expected - np.log(p).sum())
    np.testing.assert_allclose(differences, differences[0], atol=1e-8)  # constants of the densities are left out


def test_draws_use_every_draw_of_the_chains_before_any_twice(design, prior, judged):
    fit = from_prior(SampledPairs.of(design, judged), (2, 25), np.random.default_rng(0))
    gap = np.sort(fit.chains["gaps"][..., 0].ravel())
    fit.chains["cutpoint_scale"][:] = 0.0
    _, cuts = fit.draw(50, np.random.default_rng(1)).whole()
    np.testing.assert_allclose(np.sort(cuts[:, 0, 0] - cuts[:, 0, 1]), gap, atol=1e-12)
    _, cuts = fit.draw(120, np.random.default_rng(1)).whole()
    used = np.searchsorted(gap, cuts[:, 0, 0] - cuts[:, 0, 1] - 1e-9)
    assert set(np.bincount(used, minlength=50)) == {2, 3}
    eta, cuts = fit.draw(0, np.random.default_rng(1)).whole()
    assert (eta.shape, cuts.shape) == ((0, len(design.pool)), (0, 4, 2))


def test_diagnostics_find_chains_that_stuck_apart_or_diverged(design, prior, judged):
    fit = from_prior(SampledPairs.of(design, judged), (2, 1000), np.random.default_rng(0))
    found = fit.diagnostics()  # no warning, which would be an error here
    assert found.problems == ()
    assert found.ess > 1000
    moved = fit.chains["intercept"] + [[0.0], [1.0]]
    apart = replace(fit, chains={**fit.chains, "intercept": moved})
    with pytest.warns(ProbevalWarning, match=r"R-hat of 1\.\d+ \(more than 1\.01\), bulk ESS of \d"):
        assert apart.diagnostics().rhat > 1.05
    diverging = np.zeros((2, 1000), dtype=bool)
    diverging[0, :3] = True
    with pytest.warns(ProbevalWarning, match=r"0\.15% divergences"):
        assert replace(fit, statistics={"diverging": diverging}).diagnostics().divergences == 0.0015
    # No number is no proof.
    assert len(NutsDiagnostics(rhat=np.nan, ess=np.nan, divergences=0.0).problems) == 2


def test_arviz_data_have_the_groups_that_checks_need(design, prior, judged):
    fit = from_prior(SampledPairs.of(design, judged), (2, 500), np.random.default_rng(0))
    data = fit.to_arviz()
    level, cut = data["log_likelihood"]["level"], data["posterior"]["cutpoint"]
    assert level.shape == (2, 500, 6)
    assert bool((cut[..., 0] > cut[..., 1]).all())
    np.testing.assert_allclose(data["posterior"]["system_effect"].sum("system"), 0.0, atol=1e-12)
    shapes = {
        "query_effect": {"query": 4},
        "slope_effect": {"query": 4},
        "interaction_effect": {"query": 4, "system": 5},
        "group:source_effect": {"query": 4, "group:source": 3},
        "team_effect": {"team": 2},
        "system_effect": {"system": 5},
        "cutpoint_scale_effect": {"query": 4},
    }
    for name, sizes in shapes.items():  # every effect, with named dims
        assert dict(data["posterior"][name].sizes) == {"chain": 2, "draw": 500, **sizes}
    assert list(data["posterior"].coords["system"].values) == list(design.coords["system"])
    np.testing.assert_allclose(data["posterior"]["sd"].sel(effect="team"), np.exp(fit.chains["log_sd"][..., -3]))
    # Predictions follow the probabilities that the log-likelihood is of.
    observed = fit.sampled.level
    hit = (data["posterior_predictive"]["level"].values == observed).mean(axis=(0, 1))
    np.testing.assert_allclose(hit, np.exp(level.values).mean(axis=(0, 1)), atol=5 * np.sqrt(0.25 / 1000))
    np.testing.assert_array_equal(data["observed_data"]["level"].values, observed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # heavy tails: these chains are the prior's
        loo = load("arviz").loo(data, pointwise=True)
    elpd = loo.elpd_loo if hasattr(loo, "elpd_loo") else loo.elpd
    # [importance] 1 / mean(1 / p), of which ArviZ's is the smoothed form.
    assert elpd == pytest.approx(-np.log(np.exp(-level.values).mean(axis=(0, 1))).sum(), abs=0.8)


def test_impossible_requests_say_what_is_wrong(design, prior, judged):
    with pytest.raises(ModelError, match="at least a chain of 4 draws, got 2 of 1"):
        fit_nuts(design, judged, draws=1, rng=np.random.default_rng(0))


# With sampling


def weighted(values: Floats, weight: Floats) -> tuple[Floats, Floats]:
    mean = weight @ values
    return mean, np.sqrt(weight @ (values - mean) ** 2)


@pytest.mark.parametrize(
    ("case", "n", "draws"),
    [
        pytest.param("three queries", 300_000, 3000, marks=pytest.mark.validation),
        pytest.param("one query", 300_000, 3000, marks=pytest.mark.validation),
        pytest.param("none, binary", 10_000, 1000, marks=pytest.mark.slow),
    ],
)
def test_nuts_agrees_with_weighted_draws_of_the_prior(campaign, prior, design, judged, case, n, draws, capfd, caplog):
    # An oracle of another kind: the model drawn as it is written, each draw weighted by its likelihood.
    if case == "one query":
        judged = np.where(design.pool.query == 0, judged, np.int16(-1))
    elif case == "none, binary":
        design = ModelDesign.of(prior, replace(campaign, judgments=None).problem(depth=5, scale=Scale.binary()))
        judged = np.full(len(design.pool), -1, dtype=np.int16)
    eta, cuts, log_sd = prior_draws(design, prior, n, np.random.default_rng(1))
    seen = np.flatnonzero(judged >= 0)
    log_weight = log_probability(
        eta[:, seen], cuts[:, design.pool.query[seen]], design.scale.level_of(judged)[seen].astype(np.int64)
    ).sum(axis=1)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    effective = 1 / (weight @ weight)
    assert effective > 5_000  # of the oracle
    with caplog.at_level(logging.INFO):
        fit = fit_nuts(design, judged, draws=draws, tune=draws // 3, rng=np.random.default_rng(2))
    assert capfd.readouterr() == ("", "")
    assert not caplog.records
    ess = fit.diagnostics().ess
    assert ess > draws / 2
    ours, our_cuts = fit.draw(2 * draws, np.random.default_rng(3)).whole()
    pairs_of_cuts = (our_cuts.reshape(2 * draws, -1), cuts.reshape(n, -1))
    for drawn, expected in ((ours, eta), pairs_of_cuts, (fit.chains["log_sd"].reshape(2 * draws, -1), log_sd)):
        mean, sd = weighted(expected, weight)
        # Standard errors, of which 5, of a mean and of a standard deviation, in standard deviations.
        error = np.sqrt(1 / ess + 1 / effective)
        np.testing.assert_allclose((drawn.mean(axis=0) - mean) / sd, 0.0, atol=5 * error)
        np.testing.assert_allclose(drawn.std(axis=0) / sd, 1.0, atol=5 * error)  # tails are heavier than a normal's


@pytest.fixture(scope="module")
def deep_learning(data) -> tuple[Collection, ModelDesign, Codes]:
    """DL 2019, all 37 systems at depth 10, a tenth of the pool judged at random."""
    if not (data / "trec-dl2019-passage").is_dir():
        pytest.skip("trec-dl2019-passage is not in the data folder")
    collection = read_campaign(data / "trec-dl2019-passage").judged_systems(10)
    scale = collection.judgments.scale()
    prior = prior_of(collection, depth=10, scale=scale)
    design = ModelDesign.of(prior, collection.problem(depth=10, scale=scale))
    graded = np.flatnonzero(collection.judgments.on(design.pool).codes(scale) >= 0)
    keep = np.random.default_rng(0).permutation(graded)[: round(0.1 * len(design.pool))]
    return collection, design, some_judged(collection, design, keep)


def score_moments(
    collection: Collection, design: ModelDesign, judged: Codes, draw: Callable[[int], tuple[Floats, Floats]], n: int
) -> tuple[Floats, Floats]:
    """Mean and sd of each system's DCG@10, over draws taken 500 at a time."""
    means, variances = [], []
    for _ in range(n // 500):
        eta, cuts = draw(500)
        p = level_probabilities(cuts[:, design.pool.query], eta)
        relevance = replace(RelevanceDistribution.of(design.pool, design.scale, p), judged=judged)
        scores = evaluate(collection.runs.top(10), relevance, "DCG@10")
        means.append(scores.mean)
        variances.append(np.diag(scores.covariance))
    return np.mean(means, axis=0), np.sqrt(np.mean(variances, axis=0) + np.var(means, axis=0))


@pytest.mark.validation
def test_nuts_is_sound_and_quick_on_a_real_campaign(deep_learning):
    _, design, judged = deep_learning
    start = time.perf_counter()
    fit = fit_nuts(design, judged, rng=np.random.default_rng(1))  # as it comes
    seconds = time.perf_counter() - start
    found = fit.diagnostics()
    assert found.rhat < 1.01
    assert found.ess > 400
    assert found.divergences < 0.001
    if (os.cpu_count() or 1) >= 2:
        assert seconds < 300


@pytest.mark.validation
def test_laplace_is_near_nuts_on_a_real_campaign(deep_learning):
    collection, design, judged = deep_learning
    nuts = fit_nuts(design, judged, draws=5000, rng=np.random.default_rng(1))
    assert nuts.diagnostics().ess >= 2000
    drawn = nuts.draw(10_000, np.random.default_rng(2)).whole()
    parts = iter(np.split(np.arange(10_000), 20))

    def next_part(n: int) -> tuple[Floats, Floats]:
        rows = next(parts)
        return drawn[0][rows], drawn[1][rows]

    mean, sd = score_moments(collection, design, judged, next_part, 10_000)
    laplace, rng = fit_laplace(design, judged), np.random.default_rng(3)
    own_mean, own_sd = score_moments(collection, design, judged, lambda n: laplace.draw(n, rng).whole(), 10_000)
    assert np.sqrt(np.mean((own_mean - mean) ** 2)) <= 0.02 * mean.std()
    np.testing.assert_allclose(own_sd / sd, 1.0, atol=0.1)
