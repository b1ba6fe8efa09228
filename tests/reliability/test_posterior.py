"""The Bayesian comparison: truth recovered, bounds kept, corners."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from probeval.errors import ReliabilityError
from probeval.reliability import ScorePosterior, compare_bayes, kendall, read_scores

pytestmark = pytest.mark.bayes


def bounded_scores(rng, effects, n_queries, *, query_sd=1.0, precision=8.0):
    eta = -1 + np.array(effects)[:, None] + rng.normal(0, query_sd, n_queries)
    y = rng.beta(expit(eta) * precision, (1 - expit(eta)) * precision)
    return np.where(rng.random(y.shape) < expit(-4 - eta), 0.0, np.where(rng.random(y.shape) < expit(eta - 3), 1.0, y))


@pytest.fixture(scope="module")
def posterior() -> ScorePosterior:
    rng = np.random.default_rng(1)
    scores = bounded_scores(rng, [0.0, 0.0, 1.2], 30)
    scores[0, 3] = np.nan
    return compare_bayes(scores, systems=["a", "b", "c"], rope=0.03, draws=1500, rng=rng)


@pytest.mark.slow
def test_what_is_clearly_better_is_found(posterior):
    assert posterior.family == "bounded"
    assert posterior.systems[0] == "c"
    assert posterior.p_best[0] > 0.99
    table = posterior.to_frame().set_index(["a", "b"])
    assert (table.iloc[:2]["verdict"] == "better").all()
    assert table.iloc[2]["verdict"] == "open"
    np.testing.assert_allclose(table[["p_better", "p_equal", "p_worse"]].sum(axis=1), 1)
    means = posterior.systems_frame()
    np.testing.assert_allclose(means["mean"], means["observed"], atol=0.05)
    assert ((posterior.means > 0) & (posterior.means < 1)).all()


@pytest.mark.slow
def test_arviz_and_json(posterior):
    data = posterior.to_arviz()
    assert data["posterior"]["system_mean"].sizes["system"] == 3
    assert data["log_likelihood"]["score"].sizes["cell"] == 89  # one score of 90 is missing
    assert np.isfinite(data["log_likelihood"]["score"].values).all()
    document = json.loads(json.dumps(posterior.to_dict()))
    assert len(document["pairs"]) == 3
    assert posterior.diagnostics.problems == ()


@pytest.mark.slow
def test_the_likelihood_is_that_of_the_ordered_beta(posterior):
    c = {name: values[0, 0] for name, values in posterior.chains.items()}
    found = posterior.to_arviz()["log_likelihood"]["score"].values[0, 0]
    y = posterior.values[~np.isnan(posterior.values)]
    eta = c["mean"] + c["system_effect"][:, None] + c["query_effect"]
    m = expit(c["mean"] + c["system_effect"])
    kappa = (np.exp(c["log_spread"] + c["spread_effect"]) / (m * (1 - m)))[:, None] + 0 * eta
    eta, kappa = (x[~np.isnan(posterior.values)] for x in (eta, kappa))
    zero, one = expit(c["low_cut"] - eta), expit(eta - c["low_cut"] - c["cut_gap"])
    beta = stats.beta.logpdf(np.clip(y, 1e-6, 1 - 1e-6), expit(eta) * kappa, (1 - expit(eta)) * kappa)
    want = np.where(y == 0, np.log(zero), np.where(y == 1, np.log(one), beta + np.log(1 - zero - one)))
    np.testing.assert_allclose(found, want, rtol=1e-6)


@pytest.mark.slow
def test_scores_without_bounds():
    rng = np.random.default_rng(2)
    scores = rng.normal([[10.0], [10.2], [14.0]], 2.0, size=(3, 25)) + rng.normal(0, 3, size=25)
    found = compare_bayes(scores, draws=400, tune=400, rng=rng)
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
        found = compare_bayes(scores, level=0.9, draws=400, tune=400, rng=rng)
        at = [int(s[1:]) - 1 for s in found.systems]
        table = found.to_frame()
        gap = [truth[i] - truth[j] for k, i in enumerate(at) for j in at[k + 1 :]]
        held += list((table["lower"] < gap) & (table["upper"] > gap))
    # 120 pairs, of which those of one campaign share systems: about 60 that count.
    assert abs(np.mean(held) - 0.9) < 3 * np.sqrt(0.09 / 60)
