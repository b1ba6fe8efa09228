"""The hierarchical model: its design, its Laplace inference against explicit effects, its predictions, its edges."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from probeval.data import Judgments, Scale, as_runs
from probeval.errors import ModelError
from probeval.relevance import Hierarchical, HierarchicalPrior, synthetic_campaign
from probeval.relevance.effects.cutpoints import cutpoints, level_probabilities
from probeval.relevance.inference import newton
from probeval.relevance.inference.blocks import JudgedPairs
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.inference.laplace import fit_laplace, influence
from probeval.relevance.inference.newton import find_mode
from probeval.relevance.inference.sampling import LaplaceDraws
from probeval.relevance.learning.campaign import CampaignEstimate, ModelSpec, estimate_campaign
from probeval.relevance.learning.prior import _next, pooled_prior
from probeval.relevance.normal import Normal
from probeval.scores import evaluate

GRADED = Scale.graded(2)
KINDS = ("query", "slope", "interaction", "team", "system", "cutpoint_scale")
PRIOR = HierarchicalPrior(
    terms=("log(fSYS)", "fTEAM"),
    coefficients=(Normal(0.7, 0.4), Normal(0.1, 0.3)),
    first_cut=Normal(-0.6, 1.0),
    gaps={},
    gap=Normal(1.2, 0.4),
    log_sds=dict(
        zip(
            KINDS,
            (*(Normal(m, 0.4) for m in (-0.1, -1.0, -0.5, -0.7, -0.8)), Normal(-1.0, 0.3)),
            strict=True,
        )
    ),
)


def campaign(seed=0, *, systems=6, queries=7, depth=5):
    return synthetic_campaign(seed=seed, systems=systems, queries=queries, depth=depth)


def few(collection, n, seed=0):
    order = np.random.default_rng(seed).permutation(len(collection.judgments))[:n]
    return replace(collection, judgments=collection.judgments.take(order))


def problem_of(n=30, *, scale=GRADED, prior=PRIOR):
    collection = few(campaign(), n)
    design = ModelDesign.of(prior, collection.problem(depth=5, scale=scale))
    return JudgedPairs(design, collection.judgments.on(design.pool).codes(scale))


class Explicit:
    """The same posterior with every coefficient written out, for the tests only.

    Parameters: the campaign's, the cutpoint scales of the judged queries, then the coefficients of every query.
    """

    def __init__(self, problem, log_sd):
        self.problem = problem
        design = problem.design
        sds = dict(zip(design.names, np.exp(log_sd), strict=True))
        every = np.arange(len(design.pool))
        blocks, precision = [], []
        for effect in design.of_query:
            for query in range(len(design.pool.queries)):
                blocks.append((design.pool.query == query)[:, None] * effect.columns.rows(every))
                precision += [sds[effect.name] ** -2] * effect.columns.n_columns
        prior = problem.given(log_sd)
        scales = np.full(len(problem.at_scale), sds["cutpoint_scale"] ** -2)
        self.n_campaign, self.n_cuts = problem.layout.size, len(design.cuts)
        self.scales = slice(self.n_campaign, self.n_campaign + len(scales))
        self.mean = np.concatenate([prior.mean, np.zeros(len(scales) + len(precision))])
        self.precision = np.concatenate([np.diag(prior.precision), scales, precision])
        self.columns = np.concatenate([design.campaign_rows(every), *blocks], axis=1)

    def linear(self, theta):
        """The coefficients of the columns."""
        return np.concatenate([theta[..., self.n_cuts : self.n_campaign], theta[..., self.scales.stop :]], axis=-1)

    def value(self, theta):
        gaps = theta[1 : self.n_cuts]
        if np.any(gaps <= 0):
            return np.inf
        problem = self.problem
        cuts = cutpoints(theta[:1], gaps[None], theta[None, self.scales])[0, problem.place]
        eta = self.columns[problem.pairs] @ self.linear(theta)
        p = level_probabilities(cuts, eta)[np.arange(len(eta)), problem.level]
        return -np.log(p).sum() + (self.precision * (theta - self.mean) ** 2).sum() / 2

    def hessian(self, theta, step=1e-4):
        n = len(theta)
        out = np.empty((n, n))
        for i in range(n):
            plus, minus = theta.copy(), theta.copy()
            plus[i] += step
            minus[i] -= step
            out[i] = (self.gradient(plus) - self.gradient(minus)) / (2 * step)
        return (out + out.T) / 2

    def gradient(self, theta, step=1e-5):
        out = np.empty(len(theta))
        for i in range(len(theta)):
            plus, minus = theta.copy(), theta.copy()
            plus[i] += step
            minus[i] -= step
            out[i] = (self.value(plus) - self.value(minus)) / (2 * step)
        return out


@pytest.fixture(scope="module")
def solved():
    collection = few(campaign(systems=3, queries=3, depth=3), 10)
    design = ModelDesign.of(PRIOR, collection.problem(depth=3, scale=GRADED))
    problem = JudgedPairs(design, collection.judgments.on(design.pool).codes(GRADED))
    log_sd = prior_means(problem)
    explicit = Explicit(problem, log_sd)
    best = minimize(explicit.value, explicit.mean, method="BFGS", options={"gtol": 1e-7, "maxiter": 2000}).x
    return problem, log_sd, explicit, best


def prior_means(problem):
    return np.array([effect.log_sd.mean for effect in problem.design.effects])


def centre(problem, mode):
    """The predictors of the judged pairs at a mode."""
    return problem.rows @ mode.campaign[problem.layout.columns] + mode.local[problem.at_pair]


def test_the_plain_mode_is_that_of_the_explicit_effects(solved, monkeypatch):
    monkeypatch.setattr(newton, "TOLERANCE", 1e-9)
    problem, log_sd, explicit, best = solved
    mode = find_mode(problem, log_sd, averaged=False)
    np.testing.assert_allclose(mode.campaign, best[: explicit.n_campaign], atol=2e-4)
    np.testing.assert_allclose(mode.local[problem.at_scale], best[explicit.scales], atol=2e-4)
    np.testing.assert_allclose(
        centre(problem, mode), explicit.columns[problem.pairs] @ explicit.linear(best), atol=5e-4
    )
    # The weights that go along are K^-1 x.
    np.testing.assert_allclose(problem.times(problem.given(log_sd).local, mode.weight), mode.local, atol=1e-8)


def test_the_evidence_is_laplaces_over_the_explicit_effects(solved):
    problem, log_sd, explicit, best = solved
    _, log_det = np.linalg.slogdet(explicit.hessian(best))
    by_hand = -explicit.value(best) - log_det / 2 + np.log(explicit.precision).sum() / 2
    # What gaps and cutpoint scales do to the curvature together is left out.
    assert find_mode(problem, log_sd, averaged=False).log_evidence == pytest.approx(by_hand, abs=0.03)


def test_draws_have_the_explicit_posteriors_moments(solved):
    problem, log_sd, explicit, best = solved
    covariance = explicit.linear(explicit.linear(np.linalg.inv(explicit.hessian(best))).T)
    mode = find_mode(problem, log_sd, averaged=False)
    drawn = LaplaceDraws.of([problem], [mode], np.ones(1), 20_000, np.random.default_rng(3))
    eta, cuts = drawn.whole()
    expected = explicit.columns @ covariance @ explicit.columns.T
    np.testing.assert_allclose(eta.mean(axis=0), explicit.columns @ explicit.linear(best), atol=0.06)
    np.testing.assert_allclose(np.cov(eta.T), expected, atol=0.12 * expected.max())
    np.testing.assert_allclose(drawn.campaign()["first_cut"].mean(), best[0], atol=0.05)
    apart = cuts[..., 0] - cuts[..., 1]
    assert (apart > 0).all()
    unscaled = drawn.campaign()["gaps"][0]
    log_scale = np.log(apart / unscaled[:, None])[:, problem.queries]
    of_scales = np.linalg.inv(explicit.hessian(best))[explicit.scales, explicit.scales]
    np.testing.assert_allclose(log_scale.mean(axis=0), best[explicit.scales], atol=0.05)
    np.testing.assert_allclose(np.cov(log_scale.T), of_scales, atol=0.01)


def test_blocks_of_any_size_give_the_same_draws():
    collection = few(campaign(), 30)
    posterior = Hierarchical(PRIOR).infer(collection.problem(depth=5, scale=GRADED))
    eta, cuts = posterior.draw(50, np.random.default_rng(1)).whole()
    drawn = posterior.draw(50, np.random.default_rng(1))
    parts = [drawn.block(block) for block in posterior.design.pool.blocks(20)]
    assert len(parts) > 3
    np.testing.assert_allclose(np.concatenate([e for e, _ in parts], axis=1), eta, atol=1e-12)
    np.testing.assert_allclose(np.concatenate([c for _, c in parts], axis=1), cuts, atol=1e-12)


def test_the_campaigns_block_does_not_grow_with_queries():
    small, large = (
        JudgedPairs(design, full.judgments.on(design.pool).codes(GRADED))
        for full in (campaign(queries=5), campaign(queries=50))
        for design in [ModelDesign.of(PRIOR, full.problem(depth=5, scale=GRADED))]
    )
    assert small.layout == large.layout
    assert list(small.layout.blocks) == ["first_cut", "gaps", "coefficients", "team", "system"]


@pytest.mark.slow
def test_the_centre_undoes_the_shrinkage_of_the_plain_mode(solved):
    """Against the exact posterior mean, by weighting draws of the plain approximation with the true posterior."""
    problem, log_sd, explicit, best = solved
    rng = np.random.default_rng(11)
    # Exact mean by importance sampling over all explicit effects, from a normal as wide as Laplace's.
    covariance = np.linalg.inv(explicit.hessian(best))
    root = np.linalg.cholesky(covariance) * 1.1
    z = rng.standard_normal((40_000, len(best)))
    theta = best + z @ root.T
    log_weight = np.array([-explicit.value(t) for t in theta]) + (z**2).sum(axis=1) / 2
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    assert 1 / (weight**2).sum() > 2_000  # effective draws
    exact = weight @ (explicit.linear(theta) @ explicit.columns[problem.pairs].T)
    plain, mended = (centre(problem, find_mode(problem, log_sd, averaged=a)) for a in (False, True))
    assert np.abs(mended - exact).mean() < 0.6 * np.abs(plain - exact).mean()


def test_a_query_whose_grades_lie_apart_is_found_out():
    """One query has only ends of the scale, another only its middle: their cutpoints move together and apart."""
    collection = campaign(systems=8, queries=6, depth=8)
    design = ModelDesign.of(PRIOR, collection.problem(depth=8, scale=GRADED))
    codes = np.array(collection.judgments.on(design.pool).codes(GRADED))
    first, second = design.pool.query == 0, design.pool.query == 1
    codes[first], codes[second] = np.where(np.arange(first.sum()) % 2, 0, 2), 1
    _, cuts = fit_laplace(design, codes).draw(400, np.random.default_rng(0)).whole()
    gap = (cuts[..., 0] - cuts[..., 1]).mean(axis=0)
    assert gap[0] < gap[2:].min()
    assert gap[1] > gap[2:].max()


def test_two_levels_have_no_cutpoint_scale():
    unjudged = replace(campaign(), judgments=None)
    unjudged = replace(campaign(), judgments=None)
    graded, binary = (ModelDesign.of(PRIOR, unjudged.problem(depth=5, scale=s)) for s in (GRADED, Scale.binary()))
    assert graded.names == (*binary.names, "cutpoint_scale")
    known = {name: n for name, n in PRIOR.log_sds.items() if name != "cutpoint_scale"}
    estimates = [CampaignEstimate("past", 2, PRIOR.coefficients, PRIOR.first_cut, (), known)]
    pooled = pooled_prior(estimates, ModelSpec(PRIOR.terms))
    assert pooled.log_sds["cutpoint_scale"].sd > 0.4


def test_the_log_evidence_of_one_judgment_is_its_log_probability():
    collection = campaign(3)
    model = Hierarchical(PRIOR, draws=4000)
    before = model.predict(replace(collection, judgments=None).problem(depth=5, scale=GRADED))
    for pair in (0, 7, 19):
        one = replace(collection, judgments=collection.judgments.on(before.pool).take(np.array([pair])))
        level = int(one.judgments.grades()[pair])
        posterior = model.infer(one.problem(depth=5, scale=GRADED))
        assert posterior.log_evidence == pytest.approx(np.log(before.probability[:, pair, level].mean()), abs=0.05)
    nothing = model.infer(replace(collection, judgments=None).problem(depth=5, scale=GRADED))
    assert nothing.log_evidence == pytest.approx(0.0, abs=1e-6)


def test_a_grade_that_was_never_given_teaches_no_gap():
    """Such a gap is held at its least value: that is no estimate, however sure."""
    collection = campaign(0, systems=10, queries=15, depth=8)
    given = collection.judgments
    never = Judgments.coded(given.pool, given.pair, np.where(given.grades() == 1, 0.0, given.grades()))
    spec = ModelSpec(PRIOR.terms)
    gappy, whole = (
        estimate_campaign(replace(collection, judgments=j), spec, depth=8) for j in (never, collection.judgments)
    )
    assert gappy.n_levels == 3
    assert gappy.gaps == (None,)
    alone, both = pooled_prior([gappy], spec), pooled_prior([gappy, whole], spec)
    assert alone.gaps[3] == (alone.gap,)
    assert both.gaps[3][0] == pooled_prior([whole], spec).gaps[3][0]


def test_the_slope_of_the_evidence_points_where_it_grows():
    problem = problem_of(60)
    log_sd = prior_means(problem)
    pull = influence(problem, find_mode(problem, log_sd)).slope
    for i, kind in enumerate(problem.design.names):
        up, down = (find_mode(problem, log_sd + s * np.eye(len(log_sd))[i]).log_evidence for s in (0.4, -0.4))
        if abs(up - down) > 0.5:  # Laplace's slope leaves out how the curvature moves: only clear cases count
            assert np.sign(pull[i]) == np.sign(up - down), kind


def test_a_warm_start_ends_where_a_cold_one_does():
    problem = few(campaign(), 40).problem(depth=5, scale=GRADED)
    model = Hierarchical(PRIOR)
    design = model.design(problem)
    cold = model.refit(problem, design)
    warm = model.refit(problem, design, last=cold)
    np.testing.assert_allclose(warm.best.log_evidence, cold.best.log_evidence, atol=0.1)
    np.testing.assert_allclose(warm.best.campaign, cold.best.campaign, atol=0.1)


def test_pairs_of_a_query_and_of_a_system_hang_together_before_any_judgment():
    collection = replace(campaign(), judgments=None)
    relevance = Hierarchical(PRIOR, draws=2000).predict(collection.problem(depth=5, scale=GRADED))
    mean = relevance.moments(GRADED.gains)[0]
    query = relevance.pool.query
    same = np.corrcoef(mean.T)[query[:, None] == query].mean()
    other = np.corrcoef(mean.T)[query[:, None] != query].mean()
    assert same > other + 0.1
    assert other > 0.1  # the level of the whole campaign is not known


def test_judging_narrows_scores_and_moves_them_to_the_truth():
    spread, error = np.zeros(3), np.zeros(3)
    for seed in range(4):
        collection = campaign(seed, queries=15)
        truth = evaluate(collection.runs.top(5), Hierarchical(PRIOR).predict(collection.problem(depth=5)), "DCG@5").mean
        for i, n in enumerate((0, 40, 160)):
            relevance = Hierarchical(PRIOR).predict(few(collection, n).problem(depth=5, scale=GRADED))
            scores = evaluate(collection.runs.top(5), relevance, "DCG@5")
            spread[i] += scores.standard_deviation.mean()
            error[i] += np.abs(scores.mean - truth).mean()
    assert spread[0] > 1.5 * spread[1] > 1.5 * spread[2]
    assert error[1] > error[2]
    assert (error < 2 * spread).all()


def twins():
    table = campaign().runs.to_frame()
    return as_runs(pd.concat([table, table[table.system == "system-01"].assign(system="twin")]))


def contradictory():
    table = campaign().judgments.to_frame().head(12)
    return Judgments.rows(
        list(table["query"]) * 2,
        list(table["doc"]) * 2,
        [*table["grade"], *((table["grade"] + 1) % 3)],
        assessors=["a"] * 12 + ["b"] * 12,
    )


EDGES = {
    "nothing judged": lambda: replace(campaign(), judgments=None),
    "one system": lambda: few(campaign(systems=1), 6),
    "one query": lambda: few(campaign(queries=1), 6),
    "one grade judged so far": lambda: replace(
        campaign(), judgments=campaign().judgments.take(np.flatnonzero(campaign().judgments.grade == 0)[:6])
    ),
    "two assessors who contradict each other": lambda: replace(campaign(), judgments=contradictory()),
    "no teams": lambda: replace(few(campaign(), 6), runs=replace(campaign().runs, teams=None)),
    "all judged": campaign,
}


@pytest.mark.parametrize("edge", EDGES)
def test_edges_are_defined(edge):
    collection = EDGES[edge]()
    relevance = Hierarchical(PRIOR, draws=50).predict(collection.problem(depth=5, scale=GRADED))
    np.testing.assert_allclose(relevance.probability.sum(axis=-1), 1)
    ranking = evaluate(collection.runs.top(5), relevance, "nDCG@5", n=50).ranking()
    assert np.isfinite(ranking.scores.mean).all()
    assert (ranking.scores.standard_deviation > 0).all() == (edge != "all judged")
    assert ranking.confidence == 1 if edge in ("all judged", "one system") else 0.5 <= ranking.confidence < 1


def test_identical_systems_tie_for_certain():
    collection = replace(campaign(), runs=twins(), judgments=None)
    relevance = Hierarchical(PRIOR, draws=100).predict(collection.problem(depth=5, scale=GRADED))
    comparison = evaluate(collection.runs.top(5), relevance, "DCG@5").compare("system-01", "twin")
    assert comparison.p_equal == 1


def test_the_same_seed_gives_the_same_bytes():
    collection = few(campaign(), 20)
    once, again = (
        Hierarchical(PRIOR, draws=20).predict(collection.problem(depth=5, scale=GRADED), rng=np.random.default_rng(5))
        for _ in "ab"
    )
    assert once.probability.tobytes() == again.probability.tobytes()


def test_an_unknown_inference_is_refused():
    with pytest.raises(ModelError, match=r"No inference 'nut': laplace, nuts\. Did you mean 'nuts'"):
        Hierarchical(PRIOR, inference="nut")


def test_the_predictive_is_wider_the_more_campaigns_differ():
    alike = _next([Normal(1.0, 0.1), Normal(1.05, 0.1), Normal(0.95, 0.1)], 0.5)
    apart = _next([Normal(0.2, 0.1), Normal(1.0, 0.1), Normal(1.8, 0.1)], 0.5)
    single = _next([Normal(1.0, 0.1)], 0.5)
    assert alike.mean == pytest.approx(apart.mean, abs=0.02) == pytest.approx(1.0, abs=0.02)
    assert alike.sd < single.sd < apart.sd
    assert alike.sd > 0.1  # never surer than a single campaign's own error


def test_learning_finds_a_strong_effect_and_a_weak_one():
    spec = ModelSpec(PRIOR.terms)
    estimates = [estimate_campaign(campaign(seed, systems=10, queries=25, depth=8), spec, depth=8) for seed in range(3)]
    prior = pooled_prior(estimates, spec)
    # The generator's own: query .9, slope .3 (standardised popularity), popularity .9.
    assert np.exp(prior.log_sds["query"].mean) == pytest.approx(0.9, rel=0.35)
    assert prior.log_sds["slope"].mean < prior.log_sds["query"].mean
    assert prior.coefficients[0].mean > 0.3


def test_the_prior_survives_a_card(tmp_path):
    assert HierarchicalPrior.from_dict(PRIOR.to_dict()) == PRIOR
    with pytest.raises(ModelError, match="positive"):
        Normal(0.0, 0.0)


@pytest.mark.validation
def test_intervals_of_scores_cover_campaigns_drawn_from_the_model():
    """Over replications, 90% intervals hold the truth at about that rate (three standard errors of 40 x 8 systems)."""
    spec = ModelSpec(PRIOR.terms)
    model = Hierarchical(
        pooled_prior(
            [estimate_campaign(campaign(100 + s, systems=8, queries=15), spec, depth=5) for s in range(5)], spec
        )
    )
    held = []
    for seed in range(40):
        collection = campaign(seed, systems=8, queries=15)
        runs = collection.runs.top(5)
        truth = evaluate(runs, model.predict(collection.problem(depth=5)), "DCG@5").mean
        relevance = model.predict(few(collection, 60, seed).problem(depth=5, scale=GRADED))
        scores = evaluate(runs, relevance, "DCG@5")
        held += [
            low <= t <= high
            for s, t in zip(runs.systems, truth, strict=True)
            for low, high in [scores[s].interval(0.9)]
        ]
    assert 0.8 <= np.mean(held) <= 0.98


def test_a_grade_that_is_never_seen_settles():
    # Nothing between the lowest and the highest grade: the best gap between the cutpoints is none at all.
    collection = campaign(queries=12)
    known = collection.judgments
    grades = np.where(known.grade > 0, 2.0, 0.0)
    extreme = replace(collection, judgments=replace(known, grade=grades))
    loose = replace(PRIOR, gap=Normal(1.2, 2.0))
    problem = extreme.problem(depth=5, scale=GRADED)
    fit = Hierarchical(loose).infer(problem)
    assert fit.best.campaign[1] == pytest.approx(newton.LEAST_GAP, rel=0.01)
    middle = Hierarchical(loose).distribution(problem.with_judgments(None), fit, np.random.default_rng(0))
    assert middle.probability[..., 1].mean() < 0.02


def test_what_the_model_cannot_do_without_is_said():
    alone = replace(PRIOR, log_sds={"team": Normal(0.0, 1.0)})
    with pytest.raises(ModelError, match="needs an effect of queries"):
        problem_of(prior=alone)
    with pytest.raises(ModelError, match="chains: for a sampler"):
        Hierarchical(PRIOR).infer(campaign().problem(depth=5, scale=GRADED), chains=4)
