"""The Bayesian comparison: truth recovered, bounds kept, corners."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from probeval.errors import ReliabilityError
from probeval.reliability import compare_bayes, kendall, posterior, read_scores

pytestmark = pytest.mark.bayes


def bounded_scores(rng, effects, n_queries, *, query_sd=1.0, precision=8.0):
    eta = -1 + np.array(effects)[:, None] + rng.normal(0, query_sd, n_queries)
    y = rng.beta(expit(eta) * precision, (1 - expit(eta)) * precision)
    return np.where(rng.random(y.shape) < expit(-4 - eta), 0.0, np.where(rng.random(y.shape) < expit(eta - 3), 1.0, y))


SCORES = {
    "bounded": bounded_scores(np.random.default_rng(1), [0.0, 0.0, 1.2], 30),
    "normal": np.random.default_rng(2).normal([[10.0], [10.2], [14.0]], 2.0, size=(3, 25)),
}
SCORES["bounded"][0, 3] = np.nan  # one score of 90 is missing
SHAPES = {
    "system_effect": (3,),
    "query_effect": (30,),
    "spread_effect": (3,),
    posterior.COORDINATE: (3,),
}  # of what is not one number


def chains_of(model, rng, n=1000):
    """Made-up chains of a model of three systems and 30 queries, within the constraints of its parameters."""
    names = [rv.name for rv in (*model.free_RVs, *model.deterministics)]
    chains = {name: rng.normal(size=(2, n, *SHAPES.get(name, ()))) for name in names}
    chains["system_effect"] += [-0.6, -0.6, 4.0]
    for name in SHAPES:
        chains[name] -= chains[name].mean(axis=-1, keepdims=True)
    for name in {"system_sd", "query_sd", "spread_sd", "cut_gap"} & chains.keys():
        chains[name] = np.exp(chains[name] / 3)
    return chains, {"diverging": np.zeros((2, n), dtype=bool)}


@pytest.fixture(scope="module")
def made():
    """A posterior whose chains are made up."""
    rng = np.random.default_rng(4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(posterior, "sample", lambda model, **_: chains_of(model, rng))
        return compare_bayes(SCORES["bounded"], systems=["a", "b", "c"], rope=0.03, rng=rng)


def log_likelihood(values, c):
    """The log-likelihood of scores from 0 to 1 given the parameters, shape (system, query)."""
    eta = c["mean"] + c["system_effect"][:, None] + c["query_effect"]
    m = expit(c["mean"] + c["system_effect"])
    kappa = (np.exp(c["log_spread"] + c["spread_effect"]) / (m * (1 - m)))[:, None]
    zero, one = expit(c["low_cut"] - eta), expit(eta - c["low_cut"] - c["cut_gap"])
    beta = stats.beta.logpdf(np.clip(values, 5e-7, 1 - 5e-7), expit(eta) * kappa, (1 - expit(eta)) * kappa)
    return np.where(values == 0, np.log(zero), np.where(values == 1, np.log(one), beta + np.log1p(-zero - one)))


def test_tables_are_those_of_the_draws(made):
    assert made.family == "bounded"
    assert made.systems == ("c", *np.array(["a", "b"])[np.argsort(-np.nanmean(SCORES["bounded"][:2], axis=1))])
    table = made.to_frame()
    gap = made.means[:, [0, 0, 1]] - made.means[:, [1, 2, 2]]
    np.testing.assert_allclose(table["difference"], gap.mean(axis=0))
    np.testing.assert_allclose(table["p_better"], (gap > 0.03).mean(axis=0))
    np.testing.assert_allclose(table["lower"], np.quantile(gap, 0.025, axis=0))
    np.testing.assert_allclose(table[["p_better", "p_equal", "p_worse"]].sum(axis=1), 1)
    highest = table[["p_better", "p_equal", "p_worse"]].to_numpy().max(axis=1)
    assert (table["verdict"] != "undecided").tolist() == (highest >= 0.95).tolist()
    systems = made.systems_frame()
    np.testing.assert_allclose(systems["mean"], made.means.mean(axis=0))
    np.testing.assert_allclose(systems["p_best"], [(made.means.argmax(axis=1) == i).mean() for i in range(3)])
    assert ((made.means > 0) & (made.means < 1)).all()
    document = json.loads(json.dumps(made.to_dict()))
    assert len(document["pairs"]) == 3


def test_systems_with_the_same_scores_are_one_and_tied(monkeypatch):
    rng, values = np.random.default_rng(4), SCORES["bounded"]
    sampled = []

    def draws(model, **_):
        sampled.append(model)
        return chains_of(model, rng)

    monkeypatch.setattr(posterior, "sample", draws)
    found = compare_bayes(values[[0, 1, 2, 0]], systems=["a", "b", "c", "d"], rng=rng)
    assert [sampled[0]["system_effect"].shape.eval().tolist()] == [[3]]
    assert found.alike == (("a", "d"),)
    assert "a, d: the same scores on all queries, so they are one system of the model, and tied." in found.sentences()
    table = found.to_frame().set_index(["a", "b"])
    assert table.loc[("a", "d"), ["difference", "sd", "p_better", "p_worse"]].tolist() == [0, 0, 0, 0]
    assert table.loc[("a", "d"), "verdict"] == "equal"
    assert sum(found.p_best) == pytest.approx(1)
    best = dict(zip(found.systems, found.p_best, strict=True))
    assert best["a"] == best["d"]
    assert sorted(found.to_arviz()["posterior"]["system"].values) == ["a", "b", "c"]
    with pytest.raises(ReliabilityError, match="All systems have the same scores on every query"):
        compare_bayes(values[[0, 0]])


def test_means_are_over_the_population_of_queries():
    rng = np.random.default_rng(4)
    model = posterior._model(SCORES["bounded"], "bounded")
    chains, _ = chains_of(model, rng, 20)
    many = np.broadcast_to(0.0, (2, 20, 10**12))  # of so many queries the mean is known
    found = posterior._population_means({**chains, "query_effect": many}, "bounded", rng)
    # The expected score of a query that is drawn from the model, by a sum over a grid.
    c = {name: values.reshape(40, -1, 1) for name, values in chains.items()}
    z = np.linspace(-6, 6, 601)
    eta = c["mean"] + c["system_effect"] + c["query_sd"] * z
    zero, one = expit(c["low_cut"] - eta), expit(eta - c["low_cut"] - c["cut_gap"])
    expected = (one + (1 - zero - one) * expit(eta)) @ stats.norm.pdf(z) * (z[1] - z[0])
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_the_mean_of_these_queries_is_an_error_common_to_all_systems():
    rng = np.random.default_rng(4)
    chains, _ = chains_of(posterior._model(SCORES["normal"], "normal"), rng, 1000)
    c = {name: values.reshape(2000, -1) for name, values in chains.items()}
    error = posterior._population_means(chains, "normal", rng) - c["mean"] - c["system_effect"]
    np.testing.assert_allclose(error[:, 1:], error[:, :-1], atol=1e-12)
    assert stats.kstest(error[:, 0] / c["query_sd"][:, 0] * np.sqrt(30), "norm").pvalue > 0.001


@pytest.mark.slow
@pytest.mark.parametrize("family", SCORES)
def test_the_sampled_density_is_that_of_priors_and_scores(family):
    """Of the model that PyMC samples, at some points, but for constants."""
    values = SCORES[family]
    model, share = posterior._model(values, family), posterior._share_determined(values)
    density = model.compile_logp(jacobian=False, mode="FAST_COMPILE")
    outputs = model.replace_rvs_by_values(model.free_RVs)
    constrained = model.compile_fn(outputs, inputs=model.value_vars, mode="FAST_COMPILE")
    rng, apart = np.random.default_rng(0), []
    scale, centre = (1.5, 0.0) if family == "bounded" else (np.std(values), np.mean(values))
    spread = 1.0 if family == "bounded" else np.log(scale)
    for _ in range(4):
        point = {k: v + 0.3 * rng.standard_normal(np.shape(v)) for k, v in model.initial_point().items()}
        c = dict(zip((rv.name for rv in model.free_RVs), constrained(point), strict=True))
        expected = stats.norm.logpdf(c["mean"], centre, 2 * scale) + stats.norm.logpdf(c["log_spread"], spread, 1.5)
        for name, sd in (("system", c["system_sd"]), ("query", c["query_sd"])):
            effect = c[f"{name}_effect"]
            assert effect.sum() == pytest.approx(0.0, abs=1e-9)
            # One degree of freedom is lost to the sum.
            expected += stats.norm.logpdf(effect, 0, sd).sum() + np.log(sd) + stats.norm.logpdf(sd, 0, scale)
        # z has the standard deviation s^share, and the effect s^(1 - share) z the standard deviation s.
        own = c["spread_sd"] ** share
        expected += stats.norm.logpdf(c["spread_sd"], 0, 0.5)
        expected += stats.norm.logpdf(c[posterior.COORDINATE], 0, own).sum() + np.log(own)
        c["spread_effect"] = c["spread_sd"] ** (1 - share) * c[posterior.COORDINATE]
        if family == "bounded":
            expected += stats.norm.logpdf(c["low_cut"], -5, 3) + stats.lognorm.logpdf(
                c["cut_gap"], 0.7, scale=np.exp(2)
            )
            likelihood = log_likelihood(values, c)
        else:
            eta = c["mean"] + c["system_effect"][:, None] + c["query_effect"]
            likelihood = stats.norm.logpdf(values, eta, np.exp(c["log_spread"] + c["spread_effect"])[:, None])
        apart.append(float(density(point)) - expected - np.nansum(likelihood))
    np.testing.assert_allclose(apart, apart[0], atol=1e-8)


def test_the_share_of_spreads_that_scores_determine_follows_their_number():
    rng = np.random.default_rng(5)
    alike = rng.normal(size=(10, 50))
    spreads = np.exp(0.5 * rng.normal(size=(10, 1)))
    assert posterior._share_determined(alike) < 0.4
    assert (
        0.8
        < posterior._share_determined(spreads * alike)
        < posterior._share_determined(spreads * rng.normal(size=(10, 1000)))
    )


@pytest.mark.slow
def test_arviz_has_all_groups_and_predictions_follow_their_parameters(made):
    data = made.to_arviz()
    groups = ("prior", "prior_predictive", "posterior", "posterior_predictive", "log_likelihood", "sample_stats")
    assert all(data[group].attrs["inference_library"] == "probeval" for group in (*groups, "observed_data"))
    assert data["posterior"].attrs["rhat"] == made.diagnostics.rhat
    at = data["constant_data"]
    scores = made.values[at["system_index"].values, at["query_index"].values]
    np.testing.assert_array_equal(scores, data["observed_data"]["score"].values)
    # The priors as they are documented: half-normal, normal, and normal effects that sum to zero.
    prior = data["prior"]
    assert abs(float(prior["mean"].std()) - 3) < 5 * 3 / np.sqrt(4000)
    assert abs(float((prior["system_sd"] ** 2).mean()) - 1.5**2) < 5 * 1.5**2 * np.sqrt(2 / 2000)
    np.testing.assert_allclose(prior["system_effect"].sum("system"), 0.0, atol=1e-9)
    # Predictions of a score have the probabilities of both ends, and the mean in between.
    some = {name: v[:1, :1].repeat(2000, axis=1) for name, v in made.chains.items()}
    drawn = made._predicted(some, np.random.default_rng(1))[0]
    c = {name: v[0, 0] for name, v in made.chains.items()}
    eta = c["mean"] + c["system_effect"][:, None] + c["query_effect"]
    zero, one = expit(c["low_cut"] - eta), expit(eta - c["low_cut"] - c["cut_gap"])
    error = 5 * np.sqrt(0.25 / 2000)
    np.testing.assert_allclose((drawn == 1).mean(axis=0), one, atol=error)
    np.testing.assert_allclose(drawn.mean(axis=0), one + (1 - zero - one) * expit(eta), atol=error)


def test_arviz_has_the_likelihood_of_the_ordered_beta(made):
    data = made.to_arviz()
    assert data["posterior"]["system_mean"].sizes["system"] == 3
    assert data["log_likelihood"]["score"].sizes["cell"] == 89
    c = {name: values[0, 0] for name, values in made.chains.items()}
    want = log_likelihood(made.values, c)[~np.isnan(made.values)]
    np.testing.assert_allclose(data["log_likelihood"]["score"].values[0, 0], want, rtol=1e-6)


@pytest.mark.parametrize(
    ("values", "options", "match"),
    [
        ([[0.5, 0.2]], {}, "Two systems"),
        ([[0.5], [0.2]], {}, "two queries"),
        (np.full((3, 4), 0.5), {}, "alike"),
        ([[0.5, 2.0], [0.1, 0.2]], {"family": "bounded"}, "between 0 and 1"),
        ([[0.5, 0.1], [0.1, 0.2]], {"family": "beta"}, "No family"),
    ],
)
def test_what_is_refused(values, options, match):
    with pytest.raises(ReliabilityError, match=match):
        compare_bayes(values, **options)


@pytest.mark.validation
def test_what_is_clearly_better_is_found():
    found = compare_bayes(
        SCORES["bounded"], systems=["a", "b", "c"], rope=0.03, draws=1500, rng=np.random.default_rng(1)
    )
    assert found.systems[0] == "c"
    assert found.p_best[0] > 0.99
    assert found.to_frame()["verdict"].tolist() == ["better", "better", "undecided"]
    means = found.systems_frame()
    np.testing.assert_allclose(means["mean"], means["observed"], atol=0.05)
    assert found.diagnostics.problems == ()


@pytest.mark.validation
def test_scores_without_bounds():
    rng = np.random.default_rng(2)
    scores = rng.normal([[10.0], [10.2], [14.0]], 2.0, size=(3, 25)) + rng.normal(0, 3, size=25)
    found = compare_bayes(scores, draws=400, rng=rng)
    assert found.family == "normal"
    gap = found.to_frame()
    observed = scores.mean(axis=1)
    order = np.argsort(-observed)
    want = observed[order[0]] - observed[order[1]]
    assert gap["difference"].iloc[0] == pytest.approx(want, abs=0.6)
    # The spread of a difference is about that of the paired t test.
    error = stats.sem(scores[order[0]] - scores[order[1]])
    assert gap["sd"].iloc[0] == pytest.approx(error, rel=0.35)
    assert found.to_arviz()["log_likelihood"]["score"].shape[-1] == 75


@pytest.mark.validation
def test_trec8_in_five_minutes_with_clean_diagnostics(data):
    scores = read_scores(data / "scores" / "adhoc8_ap.csv.gz")
    start = time.perf_counter()
    found = compare_bayes(scores, rope=0.01)
    assert found.diagnostics.problems == ()
    took = time.perf_counter() - start
    assert len(found.to_frame()) == 129 * 128 // 2
    table = found.systems_frame()
    assert kendall(table["mean"], table["observed"]) > 0.95
    # The model's mean is not the sample's: one family of systems, erratic from query to query, comes out up to .039
    # higher. What is stated has to allow for that.
    assert table["observed"].between(table["lower"], table["upper"]).mean() >= 0.95
    assert took < 300  # two cores that have nothing else to do


@pytest.mark.validation
def test_intervals_of_differences_hold_as_often_as_they_say():
    rng = np.random.default_rng(3)
    held = []
    for _ in range(20):
        effects = rng.normal(0, 0.7, 4)
        scores = bounded_scores(rng, effects, 20)
        eta = -1 + effects[:, None] + rng.normal(0, 1, 200_000)
        zero, one = expit(-4 - eta), expit(eta - 3)
        truth = ((1 - zero) * (one + (1 - one) * expit(eta))).mean(axis=1)
        found = compare_bayes(scores, level=0.9, draws=400, rng=rng)
        at = [int(s[1:]) - 1 for s in found.systems]
        table = found.to_frame()
        gap = [truth[i] - truth[j] for k, i in enumerate(at) for j in at[k + 1 :]]
        held += list((table["lower"] < gap) & (table["upper"] > gap))
    # 120 pairs, of which those of one campaign share systems: about 60 that count.
    assert abs(np.mean(held) - 0.9) < 3 * np.sqrt(0.09 / 60)
