"""NUTS with labels: its draws are what was sampled, and Laplace's method is near."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp, ndtr
from scipy.stats import norm

from probeval.arrays import Codes, Floats
from probeval.bayes import NutsDiagnostics
from probeval.data import Collection, Scale, read_campaign
from probeval.data.problem import Grades
from probeval.errors import ProbevalWarning
from probeval.relevance import HierarchicalPrior, RelevanceDistribution, SyntheticObserver, synthetic_campaign
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.inference.laplace import fit_laplace
from probeval.relevance.inference.posterior import Posterior
from probeval.relevance.models.hierarchical import Hierarchical
from probeval.relevance.normal import Normal
from probeval.relevance.nuts.directions import SampledPairs
from probeval.relevance.nuts.fit import fit_nuts
from probeval.relevance.nuts.label_gradient import JudgedLabels
from probeval.relevance.nuts.label_normals import LabelledQueries
from probeval.relevance.nuts.with_labels import LabelledPosterior, labelled_model
from probeval.relevance.observers.worth import hypotheses_of
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
OBSERVERS = {"a_1": SyntheticObserver(), "a_2": SyntheticObserver(slope=0.8), "b": SyntheticObserver(grades=3)}


def design_of(collection: Collection, *, depth: int, scale: Scale) -> ModelDesign:
    prior = HierarchicalPrior(
        terms=TERMS,
        coefficients=(Normal(0.7, 0.4), Normal(0.1, 0.15)),
        first_cut=Normal(-0.6, 1.0),
        gaps={},
        gap=Normal(1.5, 0.4),
        log_sds=LOG_SDS,
    )
    return Hierarchical(prior).design(collection.problem(depth=depth, scale=scale))


def some_judged(collection: Collection, design: ModelDesign, n: int) -> Codes:
    """Some of the graded pairs, at random."""
    codes = Grades.of(collection.judgments, design.pool, design.scale).codes
    keep = np.random.default_rng(0).permutation(np.flatnonzero(codes >= 0))[:n]
    out = np.full(len(codes), -1, dtype=np.int16)
    out[keep] = codes[keep]
    return out


@pytest.fixture(scope="module")
def campaign() -> Collection:
    """20 queries, 8 systems, labels by three observers of two families."""
    return synthetic_campaign(
        seed=11,
        systems=8,
        queries=20,
        depth=5,
        docs=10,
        groups=3,
        sds={"system": 1.0, "team": 1.0},
        observers=OBSERVERS,
    )


@pytest.fixture(scope="module")
def design(campaign) -> ModelDesign:
    return design_of(campaign, depth=5, scale=Scale.graded(2))


@pytest.fixture(scope="module")
def judged(campaign, design) -> Codes:
    return some_judged(campaign, design, 40)


def made_up(design: ModelDesign, judged: Codes, n: int) -> LabelledPosterior:
    """A fit whose chains are standard normals, with the campaign's parameters that follow from them."""
    rng, sampled = np.random.default_rng(0), SampledPairs.of(design, judged)
    fit = LabelledPosterior(sampled, {"log_sd": np.zeros((1, n, len(design.effects)))}, {})
    labels = fit.labels
    sizes = {**sampled.sizes, "worth": len(labels.worth.centre), "campaign": len(labels.mean_rows)}
    chains = {name: 0.5 * rng.standard_normal((1, n, size)) for name, size in sizes.items()}
    chains |= {"gaps": np.exp(chains["gaps"]), "log_sd": 0.3 * rng.standard_normal((1, n, len(design.effects)))}
    one = JudgedLabels(labels, sampled.pairs)
    chains["parameters"] = np.empty((1, n, len(labels.mean_rows)))
    for i in range(n):
        middle = np.array(-chains["gaps"][0, i].sum() / 2)
        normals = chains["campaign"][0, i], chains["relevance"][0, i]
        chains["parameters"][0, i] = one.value(*labels.setting(chains["worth"][0, i]), middle, *normals)[2]
    return LabelledPosterior(sampled, chains, {})


def test_drawn_logits_of_judged_pairs_are_the_sampled_ones(design, judged):
    fit = made_up(design, judged, 6)
    labels, sampled = fit.labels, fit.sampled
    eta, cuts = fit.draws_at(np.arange(6), np.random.default_rng(1)).whole()
    one, first = JudgedLabels(labels, sampled.pairs), cuts.mean(axis=2)
    for i in range(6):
        chains = {name: values[0, i] for name, values in fit.chains.items()}
        middle = np.array(-chains["gaps"].sum() / 2)
        setting = labels.setting(chains["worth"])
        _, logits, u = one.value(*setting, middle, chains["campaign"], chains["relevance"])
        coordinates = np.append(chains["z"] * np.exp(chains["log_sd"])[sampled.coordinate_effect], np.zeros(21))
        logits = logits + (sampled.weight * coordinates[sampled.place]).sum(axis=1)
        # The middle of cutpoints does not depend on their scale.
        middles = first[i, design.pool.query[sampled.pairs]]
        np.testing.assert_allclose(eta[i, sampled.pairs] + middles, logits + middle, atol=1e-9)
        np.testing.assert_allclose(u, chains["parameters"], atol=1e-12)


def test_blocks_of_any_size_give_the_same_draws(design, judged):
    fit = made_up(design, judged, 4)
    drawn = fit.draw(4, np.random.default_rng(1))
    whole = drawn.drawn(design.pool.whole)
    parts = [drawn.drawn(block) for block in design.pool.blocks(30)]
    np.testing.assert_allclose(np.concatenate([seen for _, seen in parts]), whole[1], atol=1e-9)
    for name, values in whole[0].items():
        np.testing.assert_array_equal(np.concatenate([local[name] for local, _ in parts]), values)


@pytest.mark.slow
def test_relevance_without_judgments_has_the_moments_that_labels_give(design):
    # At one setting of the worth and of the campaign's parameters: the mean and variance of x given labels.
    fit = made_up(design, np.full(len(design.pool), -1, dtype=np.int16), 1)
    labels, n = fit.labels, 4000
    seen = fit.draws_at(np.zeros(n, dtype=np.int64), np.random.default_rng(2)).drawn(design.pool.whole)[1]
    setting = labels.setting(fit.chains["worth"][0, 0])
    width = labels.grams.shape[2]
    place = np.where(np.arange(width) < design.pool.sizes[:, None], np.arange(width), -1)
    products = labels.products(setting, labels.targets(place))
    mixed, start = labels.mixing(setting, labels.spread(setting))
    mean = labels.relevance(products, start + mixed @ fit.chains["parameters"][0, 0], np.zeros(place.shape))
    sd = np.sqrt((products.root**2).sum(axis=2))[place >= 0]
    np.testing.assert_allclose((seen.mean(axis=1) - mean[place >= 0]) / sd, 0.0, atol=5 / np.sqrt(n))
    np.testing.assert_allclose(seen.std(axis=1) / sd, 1.0, atol=5 / np.sqrt(2 * n))


def test_the_model_has_the_log_density_of_its_parts(design, judged):
    sampled = SampledPairs.of(design, judged)
    model = labelled_model(sampled)
    names = [rv.name for rv in model.free_RVs]
    assert set(names) == {"log_sd", "worth", "gaps", "campaign", "relevance", "z", "cutpoint_scale"}
    (labels_part,) = model.replace_rvs_by_values([model["labels"]])
    density = model.compile_fn(labels_part, inputs=model.value_vars, mode="FAST_COMPILE", on_unused_input="ignore")
    point = model.initial_point()
    labels = made_up(design, judged, 1).labels
    products = labels.products(labels.setting(point["worth"]), JudgedLabels(labels, sampled.pairs).targets)
    gap = float(np.exp(point["gaps_interval__"]).item())
    expected = labels.campaign(labels.setting(point["worth"]), products, -gap / 2).log_marginal
    assert float(density(point)) == pytest.approx(expected, abs=1e-8)


def test_the_prior_of_the_worth_is_a_mixture_over_what_a_family_may_be(design, judged):
    model, labels, evidence = (
        labelled_model(SampledPairs.of(design, judged)),
        LabelledQueries.of(design),
        design.evidence,
    )
    (part,) = model.replace_rvs_by_values([model["worth_prior"]])
    density = model.compile_fn(part, inputs=model.value_vars, mode="FAST_COMPILE", on_unused_input="ignore")
    effects = {e.name: e for e in evidence.design.effects}

    def expected(w):
        theta = labels.worth.centre + labels.worth.root @ w
        shared = [effects[name].log_sd for name in labels.effects]
        out = sum(norm.logpdf(x, n.mean, n.sd) for x, n in zip(theta, shared, strict=False))
        parts = theta[len(shared) :].reshape(len(evidence.families), -1)
        for family, sign, mine in zip(evidence.families, labels.signs, parts, strict=True):
            cases = []
            for h, p in hypotheses_of(evidence.priors, family):
                if h.sign == sign:
                    own = [h.own(k, effects.get(k), evidence.priors.constants.log_favour) for k in labels.levels]
                    known = [h.prior.log_slope, *own, h.prior.popularity]
                    density = [norm.logpdf(x, n.mean, n.sd) for x, n in zip(mine, known, strict=True)]
                    cases.append(np.log(p) + sum(density))
            assert len(cases) > 1
            out += logsumexp(cases)
        return out

    rng, point = np.random.default_rng(0), model.initial_point()
    a, b = rng.standard_normal((2, len(labels.worth.centre)))
    found = float(density(point | {"worth": a})) - float(density(point | {"worth": b}))
    assert found == pytest.approx(expected(a) - expected(b), abs=1e-8)


# With sampling


def moments_of_scores(
    collection: Collection, posterior: Posterior, judged: Codes, n: int, depth: int
) -> tuple[Floats, Floats, Floats]:
    """Mean and sd of each system's DCG, and P(better) of each pair of systems, from draws taken 500 at a time."""
    design, rng = posterior.design, np.random.default_rng(3)
    means, covariances = [], []
    for _ in range(n // 500):
        relevance = RelevanceDistribution.of(design.pool, design.scale, posterior.draw(500, rng))
        scores = evaluate(collection.runs.top(depth), replace(relevance, judged=judged), f"DCG@{depth}")
        means.append(scores.mean)
        covariances.append(scores.covariance)
    mean, covariance = np.mean(means, axis=0), np.mean(covariances, axis=0)
    variance = np.diag(covariance)
    apart = np.sqrt(np.maximum(variance[:, None] + variance - 2 * covariance, 1e-12))
    return mean, np.sqrt(variance), ndtr((mean[:, None] - mean) / apart)


def expect_near(nuts: tuple[Floats, ...], laplace: tuple[Floats, ...], ess: float) -> None:
    """Laplace's method is within a tenth of a standard deviation, and three standard errors of the sampler."""
    (mean, sd, better), (own_mean, own_sd, own_better) = nuts, laplace
    error = 1 / np.sqrt(ess)
    np.testing.assert_allclose((own_mean - mean) / sd, 0.0, atol=0.1 + 3 * error)
    np.testing.assert_allclose(own_sd / sd, 1.0, atol=0.1 + 3 * error / np.sqrt(2))
    np.testing.assert_allclose(own_better, better, atol=0.03 + 3 * 0.4 * error)  # a normal's density is at most .4


def sampled_quietly(design: ModelDesign, judged: Codes, **options: float) -> tuple[LabelledPosterior, NutsDiagnostics]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbevalWarning)  # with few draws R-hat is checked by the test
        fit = fit_nuts(design, judged, rng=np.random.default_rng(1), **options)
        return fit, fit.diagnostics()


@pytest.mark.validation
def test_laplace_is_near_nuts_with_labels(campaign, design, judged):
    fit, found = sampled_quietly(design, judged, draws=300, tune=250, target_accept=0.8)
    assert found.rhat < 1.05
    assert found.ess > 150
    assert found.divergences < 0.005
    nuts = moments_of_scores(campaign, fit, judged, 1000, 5)
    laplace = moments_of_scores(campaign, fit_laplace(design, judged), judged, 1000, 5)
    expect_near(nuts, laplace, found.ess)
    # The families were generated with slopes of about log .4 labels per logit.
    assert all(-2.0 < slope.mean < -0.4 for slope in fit.log_slopes.values())


@pytest.mark.validation
def test_laplace_is_near_nuts_with_labels_on_a_real_campaign(data):
    # DL 2019 with one column of labels, a twentieth of the pool judged at random.
    if not (data / "trec-dl2019-passage").is_dir():
        pytest.skip("trec-dl2019-passage is not in the data folder")
    collection = read_campaign(data / "trec-dl2019-passage").judged_systems(10)
    collection = replace(collection, labels=collection.labels.take(["gpt4o_umbrela"]))
    design = design_of(collection, depth=10, scale=collection.judgments.scale())
    judged = some_judged(collection, design, round(0.05 * len(design.pool)))
    fit, found = sampled_quietly(design, judged, draws=400, tune=400)  # few: half a second per draw
    assert found.rhat < 1.05
    assert found.ess > 200
    assert found.divergences < 0.005
    nuts = moments_of_scores(collection, fit, judged, 1000, 10)
    laplace = moments_of_scores(collection, fit_laplace(design, judged), judged, 1000, 10)
    expect_near(nuts, laplace, found.ess)
