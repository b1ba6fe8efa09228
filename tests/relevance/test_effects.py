"""Effects: one matrix however it is asked for, the list that everything goes through, one more from outside."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from probeval.data import Judgments, Runs, Scale
from probeval.errors import ModelError
from probeval.features import compute_features
from probeval.relevance import Hierarchical, HierarchicalPrior, SyntheticCampaign, effects, synthetic_campaign
from probeval.relevance.effects.effect import CampaignView, Columns, Effect
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.inference.laplace import fit_laplace
from probeval.relevance.learning.campaign import ModelSpec, estimate_campaign
from probeval.relevance.normal import Normal
from probeval.relevance.nuts.directions import SampledPairs
from probeval.relevance.observers.prior import UNSEEN
from probeval.relevance.observers.worth import Hypothesis

GRADED = Scale.graded(2)
PRIOR = HierarchicalPrior(
    terms=("log(fSYS)", "fTEAM"),
    coefficients=(Normal(0.7, 0.4), Normal(0.1, 0.3)),
    first_cut=Normal(-0.6, 1.0),
    gaps={},
    gap=Normal(1.2, 0.4),
    log_sds={effect.name: Normal(-0.6, 0.4) for effect in effects.model_effects(["source"])},
)


@pytest.fixture(scope="module")
def campaign():
    made = synthetic_campaign(seed=0, systems=6, queries=7, depth=5)
    some = np.random.default_rng(0).permutation(len(made.judgments))[:40]
    return replace(made, judgments=made.judgments.take(some))


def design_of(collection, prior=PRIOR):
    return ModelDesign.of(prior, collection.problem(depth=5, scale=GRADED))


def test_effects_of_systems_and_teams_sum_to_zero(campaign):
    design = design_of(campaign)
    every = np.arange(len(design.pool))
    for effect in design.effects:
        if effect.name in ("team", "system", "interaction"):
            same = np.ones((effect.columns.n_columns, 1))
            unmixed = replace(effect.columns, mix=None)
            np.testing.assert_allclose(unmixed.rows(every) @ same, 0, atol=1e-12)


def test_systems_with_the_same_lists_have_the_same_effect(campaign):
    runs = campaign.runs
    rows = [(s, q, d) for s, q, d, *_ in runs.to_frame().itertuples(index=False)]
    twins = [("twin", q, d) for s, q, d in rows if s == runs.systems[0]]
    systems, queries, docs = zip(*rows, *twins, strict=True)
    design = design_of(replace(campaign, runs=Runs.rows(systems, queries, docs), judgments=None))
    effect = next(e for e in design.effects if e.name == "system")
    first, twin = (design.coords["system"].index(s) for s in (runs.systems[0], "twin"))
    drawn = effect.columns.mixed(np.random.default_rng(0).standard_normal((effect.columns.n_columns, 2000)))
    np.testing.assert_allclose(drawn[first], drawn[twin], atol=1e-5)
    # Differences keep the mean variance of independent systems, 2, less what is held along authority.
    n = len(drawn)
    apart = np.array([np.var(drawn[a] - drawn[b]) for a in range(n) for b in range(a)])
    assert 1.0 < apart.mean() < 2.1


def test_systems_differ_along_authority_no_more_than_in_other_directions(campaign):
    view = CampaignView.of(campaign.problem(depth=5, scale=GRADED))
    authority = np.log(compute_features(campaign.problem(depth=5), ["wSYS"])["wSYS"])
    mean = authority[view.runs.pairs].mean(axis=(1, 2))
    along = (mean - mean.mean()) / np.linalg.norm(mean - mean.mean())
    covariance = view.overlap @ view.overlap.T
    assert along @ covariance @ along <= 1 + 1e-9
    assert np.linalg.eigvalsh(covariance)[-1] > 1.5  # others do


def test_a_term_that_is_the_same_for_all_pairs_says_nothing(campaign):
    one_team = replace(campaign, runs=campaign.runs.with_teams(dict.fromkeys(campaign.runs.systems, "us")))
    design = design_of(one_team)
    assert not design.terms[:, 1].any()  # the share of teams is 1 everywhere, nine spreads from its centre
    assert design.terms[:, 0].any()


def test_columns_have_one_matrix_however_they_are_asked(campaign):
    design = design_of(campaign)
    pool, rng = design.pool, np.random.default_rng(0)
    every = np.arange(len(pool))
    for effect in design.effects:
        dense, n = effect.columns.rows(every), effect.columns.n_columns
        np.testing.assert_allclose(effect.columns.squares, (dense**2).sum(axis=1), atol=1e-12)
        b = rng.standard_normal((n, 3))
        np.testing.assert_allclose(effect.columns.times(b), dense @ b, atol=1e-12)
        by_query = rng.standard_normal((len(pool.queries), n, 3))
        expected = np.einsum("dc,dcn->dn", dense, by_query[pool.query])
        np.testing.assert_allclose(effect.columns.times_by_query(by_query, pool.query), expected, atol=1e-12)
        x = rng.standard_normal((len(pool), 2))
        same = (dense @ dense.T) * (pool.query[:, None] == pool.query)
        np.testing.assert_allclose(effect.columns.gram_by_query(x, pool.query, len(pool.queries)), same @ x, atol=1e-10)
        part = pool.pairs_of(2)
        np.testing.assert_allclose(effect.columns.take(part).rows(np.arange(part.stop - part.start)), dense[part])


def test_the_model_has_the_effects_that_its_prior_names(campaign):
    prior = replace(PRIOR, log_sds={k: n for k, n in PRIOR.log_sds.items() if k != "team"})
    assert design_of(campaign, prior).names == (
        "query", "slope", "interaction", "group:source", "system", "cutpoint_scale",
    )  # fmt: skip
    strange = replace(PRIOR, log_sds={**PRIOR.log_sds, "weather": Normal(0.0, 1.0)})
    with pytest.raises(ModelError, match="No effect weather"):
        design_of(campaign, strange)


def shortened(campaign, lengths):
    """The campaign with the lists of some systems cut to a length."""
    frame = campaign.runs.to_frame()
    kept = frame[frame["rank"] <= frame["system"].map(lengths).fillna(99)]
    columns = [kept[name].tolist() for name in ("system", "query", "doc")]
    return replace(campaign, runs=Runs.rows(*columns))


def test_selectivity_is_an_effect_where_lists_have_unequal_lengths(campaign):
    first, second = campaign.runs.systems[:2]
    design = design_of(shortened(campaign, {first: 2, second: 4}))
    assert "selectivity" not in design_of(campaign).names
    column = next(e for e in design.effects if e.name == "selectivity").columns
    selectivity = np.zeros(6)
    selectivity[:2] = -np.log([2 / 5, 4 / 5])
    view = CampaignView.of(shortened(campaign, {first: 2, second: 4}).problem(depth=5, scale=GRADED))
    np.testing.assert_allclose(view.selectivity, selectivity)
    for pair in (0, len(design.pool) // 2, len(design.pool) - 1):
        has = np.array([(view.runs.pairs[s] == pair).any() for s in range(6)])
        expected = selectivity[has].sum() / np.sqrt(has.sum()) - np.sqrt(has.sum()) * selectivity.mean()
        assert column.rows(np.array([pair]))[0, 0] == pytest.approx(expected)


def test_part_of_a_campaign_has_the_selectivity_of_the_whole(campaign):
    cut = shortened(campaign, dict.fromkeys(campaign.runs.systems[:2], 2))
    whole = design_of(cut)
    some = ModelDesign.of(
        PRIOR, replace(cut, runs=cut.runs.at(np.arange(3))).problem(depth=5, scale=GRADED), standards=whole.standards
    )
    rows = [
        next(e for e in d.effects if e.name == "selectivity").columns.rows(np.arange(len(some.pool)))
        for d in (whole, some)
    ]
    np.testing.assert_allclose(*rows)


@pytest.mark.slow
@pytest.mark.bayes
@pytest.mark.filterwarnings("ignore:NUTS did not sample well")  # 500 draws suffice for a mean
def test_both_inferences_find_the_same_selectivity(campaign):
    cut = shortened(campaign, dict.fromkeys(campaign.runs.systems[:2], 2))
    model = Hierarchical(PRIOR)
    laplace = model.infer(cut.problem(depth=5, scale=GRADED))
    sampled = model.infer(cut.problem(depth=5, scale=GRADED), inference="nuts", draws=500, tune=500)
    drawn = sampled.draw(1000, np.random.default_rng(0)).campaign()["selectivity"][0]
    where = laplace.problem.layout["selectivity"]
    expected = laplace.weights @ [mode.campaign[where][0] for mode in laplace.modes]
    assert drawn.mean() == pytest.approx(expected, abs=0.25 * drawn.std())


def test_nearly_equal_lists_change_nothing(campaign):
    frame = campaign.runs.to_frame()
    lists = [frame[name].tolist()[:-1] for name in ("system", "query", "doc")]  # one document short
    nearly = replace(campaign, runs=Runs.rows(*lists))
    bare = replace(PRIOR, log_sds={k: n for k, n in PRIOR.log_sds.items() if k != "selectivity"})
    with_effect, without = (
        Hierarchical(prior).predict(nearly.problem(depth=5, scale=GRADED)).probability for prior in (PRIOR, bare)
    )
    np.testing.assert_array_equal(with_effect, without)


def test_synthetic_observers_of_a_prior_may_have_views_that_no_list_asks_for():
    prior = replace(PRIOR, log_sds={k: n for k, n in PRIOR.log_sds.items() if not k.startswith("group")})
    made = synthetic_campaign(seed=1, systems=4, queries=5, depth=4, prior=prior, observers=1)
    assert made.labels is not None


def test_judgments_tell_whether_short_lists_are_better():
    rng = np.random.default_rng(3)
    made = SyntheticCampaign(systems=8, queries=20, depth=6).draw(rng)
    short = set(made.runs.systems[:3])
    cut = shortened(made, dict.fromkeys(short, 2))
    by_short = np.zeros(len(cut.runs.pool), dtype=bool)
    for s in np.flatnonzero([name in short for name in cut.runs.systems]):
        pairs = cut.runs.pairs[s]
        by_short[pairs[pairs >= 0]] = True
    found = {}
    for sign in (1, -1):  # relevance follows from being returned by a system with short lists, or the opposite
        relevant = np.where(by_short == (sign > 0), 2, 0)
        judged = Judgments.coded(cut.runs.pool, np.arange(len(relevant)), relevant.astype(float))
        posterior = Hierarchical(PRIOR).infer(replace(cut, judgments=judged).problem(depth=6, scale=GRADED))
        found[sign] = posterior.best.campaign[posterior.problem.layout["selectivity"]][0]
    assert found[1] > 0.3
    assert found[-1] < -0.3


class BestRank(Effect):
    """A query can care more or less for the best rank that a document has."""

    name = "best_rank"
    scope = "query"
    typical = 0.2

    def columns(self, view):
        best = np.full(len(view.runs.pool), view.runs.depth)
        system, query, rank = np.nonzero(view.runs.retrieved)
        np.minimum.at(best, view.runs.pairs[system, query, rank], rank)
        return Columns.of(csr_array((best - best.mean())[:, None] / view.runs.depth))


def test_a_new_effect_is_a_class_and_a_line_in_the_list(campaign, monkeypatch):
    before = effects.model_effects
    monkeypatch.setattr(effects, "model_effects", lambda groups=(): (*before(groups), BestRank()))
    prior = replace(PRIOR, log_sds={**PRIOR.log_sds, "best_rank": Normal(0.0, 0.5)})
    problem = campaign.problem(depth=5, scale=GRADED)
    posterior = Hierarchical(prior).infer(problem)
    assert posterior.design.names[-1] == "best_rank"
    assert posterior.log_sds["best_rank"].sd < 0.5
    eta, _ = posterior.draw(50, np.random.default_rng(0)).whole()
    assert np.isfinite(eta).all()
    sampled = SampledPairs.of(posterior.design, problem.grades.codes)
    assert (sampled.coordinate_effect == posterior.design.position("best_rank")).any()


def test_few_systems_widen_effects_of_systems_and_no_others(campaign):
    two = replace(campaign, runs=campaign.runs.select(campaign.runs.systems[:2]), judgments=None)
    for collection, systems in ((campaign, 6), (two, 2)):
        for effect in design_of(collection).effects:
            wider = 0.5 * np.log(1 + 3 / systems) if effect.name in ("system", "team") else 0.0
            assert effect.log_sd.mean == pytest.approx(-0.6 + wider)
            assert effect.widening == pytest.approx(wider)
            # Biases of labellers are tied to the effects of a campaign of many systems.
            bias = UNSEEN.log_bias.mean - 0.6 if effect.effect.scope == "campaign" else UNSEEN.own(effect.name).mean
            assert Hypothesis(1, "machine", UNSEEN).own(effect.name, effect, Normal(0, 1)).mean == pytest.approx(bias)


def test_a_card_of_an_earlier_version_is_the_same_with_few_systems(campaign):
    data = PRIOR.to_dict()
    assert HierarchicalPrior.from_dict(data).few == 3.0
    earlier = HierarchicalPrior.from_dict({name: value for name, value in data.items() if name != "few"})
    design = ModelDesign.of(earlier, campaign.problem(depth=5, scale=GRADED))
    assert {effect.log_sd.mean for effect in design.effects} == {-0.6}
    for few in (-0.1, np.nan, 1e9):
        with pytest.raises(ValueError, match="the constant of few systems is from 0 to 1000"):
            HierarchicalPrior.from_dict({**data, "few": few})


def test_what_is_learned_is_of_a_campaign_of_many_systems(campaign):
    """The widening is taken out of estimates: learned from and applied to one campaign it comes to nothing."""
    spec = ModelSpec(("log(fSYS)",))
    learned = estimate_campaign(campaign, spec, depth=5).log_sds
    problem = campaign.problem(depth=5, scale=campaign.judgments.scale())
    fitted = fit_laplace(ModelDesign.of(spec.vague(), problem), problem.grades.codes, points=1).log_sds
    for name, estimate in fitted.items():
        wider = 0.5 * np.log(1 + 3 / 6) if name in ("system", "team") else 0.0
        assert learned[name].mean == pytest.approx(estimate.mean - wider)
