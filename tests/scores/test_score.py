"""A score as a random variable: its algebra, its distribution, its target."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from probeval.data import Judgments, Runs, Scale
from probeval.errors import ScoreError
from probeval.relevance import RelevanceDistribution
from probeval.scores import evaluate


@pytest.fixture(scope="module")
def by(part_judged, believe):
    """Scores by the two main routes."""
    relevance = believe(part_judged.runs, Scale.graded(2), 1, judgments=part_judged.judgments)
    return {
        "moments": evaluate(part_judged.runs, relevance, "DCG@5"),
        "draws": evaluate(part_judged.runs, relevance, "nDCG@5", n=4000, rng=np.random.default_rng(1)),
    }


METHODS = pytest.mark.parametrize("method", ["moments", "draws"])
A, B = "system-01", "system-02"


@METHODS
def test_a_score_less_itself_is_nothing_at_all(by, method):
    scores = by[method]
    zero = scores[A] - scores[A]
    assert (zero.mean(), zero.variance(), zero.standard_deviation()) == (0, 0, 0)
    assert np.all(zero.sample(10, np.random.default_rng(1)) == 0)
    assert zero.interval() == (0, 0)
    assert (zero.cdf(-1e-6), zero.cdf(0)) == (0, 1)
    again = scores[A] - scores[B] - (scores[A] - scores[B])
    assert (again.mean(), again.variance()) == (0, 0)


@METHODS
def test_differences_keep_the_covariance(by, method):
    scores = by[method]
    i, j = scores.systems.index(A), scores.systems.index(B)
    difference, c = scores[A] - scores[B], scores.covariance
    assert difference.mean() == pytest.approx(scores.mean[i] - scores.mean[j], abs=1e-15)
    assert difference.variance() == pytest.approx(c[i, i] + c[j, j] - 2 * c[i, j], abs=1e-15)
    assert c[i, j] > 0  # they share documents
    mean, sd = scores.difference_moments()
    assert mean[i, j] == pytest.approx(difference.mean(), abs=1e-15)
    assert sd[i, j] == pytest.approx(difference.standard_deviation(), abs=1e-15)
    assert (-difference).mean() == pytest.approx((scores[B] - scores[A]).mean(), abs=1e-15)
    assert (-difference).variance() == difference.variance()


@METHODS
def test_samples_have_the_moments(by, method):
    scores, n = by[method], 40_000
    drawn = scores.sample(n, np.random.default_rng(2))
    assert np.all(np.abs(drawn.mean(axis=0) - scores.mean) < 5 * scores.standard_deviation / np.sqrt(n))
    c, variance = scores.covariance, np.diag(scores.covariance)
    error = np.sqrt((np.outer(variance, variance) + c**2) / n)  # of a covariance of n normal draws
    assert np.all(np.abs(np.cov(drawn.T) - c) < 5 * error)
    one = (scores[A] - scores[B]).sample(n, np.random.default_rng(2))
    np.testing.assert_allclose(one, drawn[:, scores.systems.index(A)] - drawn[:, scores.systems.index(B)], atol=1e-14)


def test_distribution_of_moments_is_normal_or_t(by):
    from dataclasses import replace

    scores = by["moments"]
    score = scores[A]
    normal = stats.norm(score.mean(), score.standard_deviation())
    assert score.cdf(0.6) == pytest.approx(normal.cdf(0.6), abs=1e-14)
    assert score.interval(0.9) == pytest.approx(normal.interval(0.9), abs=1e-12)
    wide = replace(scores, family="t")[A]
    t = stats.t(len(scores.queries) - 1, score.mean(), score.standard_deviation())
    assert wide.cdf(0.6) == pytest.approx(t.cdf(0.6), abs=1e-12)
    assert wide.interval(0.9) == pytest.approx(t.interval(0.9), abs=1e-9)


def test_distribution_of_draws_is_theirs(by):
    scores = by["draws"]
    assert scores.family == "empirical"
    drawn = scores.joint.draws[:, scores.systems.index(A)]
    score = scores[A]
    assert score.cdf(0.5) == np.mean(drawn <= 0.5)
    assert score.interval(0.8) == pytest.approx(tuple(np.quantile(drawn, [0.1, 0.9])))


def test_draws_of_these_queries_make_a_normal_for_the_population(by, part_judged, believe):
    scores = by["draws"]
    of_all = scores.with_target("population")
    assert (of_all.family, scores.with_target("collection").family) == ("normal", "empirical")
    assert of_all.with_target("collection").family == "empirical"
    normal = stats.norm(of_all[A].mean(), of_all[A].standard_deviation())
    assert of_all[A].cdf(0.5) == pytest.approx(normal.cdf(0.5), abs=1e-12)
    relevance = believe(part_judged.runs, Scale.graded(2), 1)
    asked = {"method": "draws", "target": "population", "n": 20}
    assert evaluate(part_judged.runs, relevance, "DCG@5", **asked).family == "normal"
    assert evaluate(part_judged.runs, relevance, "DCG@5", **asked, family="t").with_target("collection").family == "t"
    with pytest.raises(ScoreError, match="Use family='normal' or 't', or target='collection'"):
        evaluate(part_judged.runs, relevance, "DCG@5", **asked, family="empirical")


def test_the_population_adds_the_spread_between_queries(by):
    for scores in by.values():
        of_all = scores.with_target("population")
        assert of_all.target == "population"
        np.testing.assert_allclose(of_all.covariance, scores.joint.covariance + scores.joint.between, atol=1e-16)
        assert np.all(of_all.mean == scores.mean)
        assert np.all(of_all.standard_deviation > scores.standard_deviation)
        here, there = scores.to_frame(), of_all.to_frame()
        assert "sd_judging" not in here
        np.testing.assert_allclose(there["sd_judging"], here["sd"], atol=1e-15)
        np.testing.assert_allclose(there["sd_judging"] ** 2 + there["sd_sampling"] ** 2, there["sd"] ** 2, atol=1e-15)
        assert (there["upper"] > here["upper"]).all()
        n = 40_000
        drawn = of_all.sample(n, np.random.default_rng(3))
        np.testing.assert_allclose(np.cov(drawn.T), of_all.covariance, rtol=0.06, atol=2e-5)


def test_the_population_interval_covers_the_mean_of_the_population():
    # Queries drawn from a population whose mean P@5 is known, all judged: only the draw of queries is uncertain.
    rng = np.random.default_rng(8)
    queries, docs, trials = 25, 5, 400
    rows = [(f"q{q:02d}", f"d{d}") for q in range(queries) for d in range(docs)]
    runs = Runs.rows(["s"] * len(rows), *map(list, zip(*rows, strict=True)))
    blind = np.full((len(runs.pool), 2), 0.5)
    hits = {"collection": 0, "population": 0}
    for _ in range(trials):
        hard = rng.beta(2, 3, size=queries)  # mean .4
        grades = (rng.random((queries, docs)) < hard[:, None]).astype(float).ravel()
        judged = Judgments.coded(runs.pool, np.arange(len(runs.pool)), grades)
        relevance = RelevanceDistribution.of(runs.pool, Scale.binary(), blind, judgments=judged)
        scores = evaluate(runs, relevance, "P@5", family="t")
        for target in hits:
            low, high = scores.with_target(target)["s"].interval(0.95)
            hits[target] += low <= 0.4 <= high
    # 400 trials: the standard error is .011.
    assert 0.917 <= hits["population"] / trials <= 0.983
    assert hits["collection"] / trials < 0.2  # on these queries the score is certain, and not the population's mean


def test_the_population_interval_covers_when_nothing_is_judged():
    # Judged nothing, but the model knows each pair's probability: the interval is on the safe side.
    rng = np.random.default_rng(9)
    queries, docs, trials, hits = 25, 5, 200, 0
    rows = [(f"q{q:02d}", f"d{d}") for q in range(queries) for d in range(docs)]
    runs = Runs.rows(["s"] * len(rows), *map(list, zip(*rows, strict=True)))
    for _ in range(trials):
        p = np.repeat(rng.beta(2, 3, size=queries), docs)
        relevance = RelevanceDistribution.of(runs.pool, Scale.binary(), np.stack([1 - p, p], axis=1))
        low, high = evaluate(runs, relevance, "P@5", target="population")["s"].interval(0.95)
        hits += low <= 0.4 <= high
    assert hits / trials >= 0.95


@pytest.mark.parametrize("family", ["normal", "t"])
@pytest.mark.parametrize("metric", ["P@2", 'DCG(norm="none")@2'])
def test_an_interval_is_cut_to_what_the_measure_can_be(tiny, family, metric):
    runs, _ = tiny
    sure = [0.02, 0.98] if metric == "P@2" else [0.98, 0.02]
    relevance = RelevanceDistribution.of(runs.pool, Scale.binary(), np.tile(sure, (len(runs.pool), 1)))
    scores = evaluate(runs, relevance, metric, family=family)
    low, high = scores.intervals(0.999)
    assert np.all((low <= scores.mean) & (scores.mean <= high))
    assert low.min() == 0 or high.max() == 1  # something was cut
    assert low.min() >= 0
    assert high.max() <= scores.metric.limits[1]
    gap = scores["a"] - scores["c"]
    assert -scores.metric.limits[1] <= gap.interval(0.999)[0] <= gap.mean() <= gap.interval(0.999)[1]
    everything = evaluate(
        runs, RelevanceDistribution.of(runs.pool, Scale.binary(), np.tile([0.0, 1.0], (len(runs.pool), 1))), metric
    )
    for end in everything.intervals():  # certain: the interval is the mean, rounding and all
        np.testing.assert_array_equal(end, everything.mean)


@METHODS
def test_frame_and_table(by, method):
    scores = by[method]
    frame = scores.to_frame(per_query=True)
    assert list(frame.columns) == ["system", "query", "mean", "sd"]
    assert len(frame) == len(scores.systems) * len(scores.queries)
    np.testing.assert_allclose(frame.groupby("system", sort=False)["mean"].mean(), scores.mean, atol=1e-14)
    table = scores.at(0.5).to_frame()
    assert table["mean"].is_monotonic_decreasing
    assert table["rank"].tolist() == [1, 2, 3, 4]
    low, high = scores[table["system"][0]].interval(0.5)
    assert (table["lower"].iloc[0], table["upper"].iloc[0]) == (low, high)
    assert "Scores: " in repr(scores)
    assert "+-" in repr(scores[A])


def test_what_cannot_be_asked(by, part_judged, believe):
    scores = by["moments"]
    with pytest.raises(ScoreError, match=r"No system 'system-1'. Did you mean 'system-01'"):
        scores["system-1"]
    with pytest.raises(ScoreError, match="one evaluation"):
        scores[A] - by["draws"][A]
    with pytest.raises(TypeError):
        scores[A] - 1.0
    for level in (0, 1, 95):
        with pytest.raises(ScoreError, match="A level is a probability"):
            scores[A].interval(level)
    with pytest.raises(ScoreError, match="'collection' or 'population', got 'all'"):
        scores.with_target("all")
    relevance = believe(part_judged.runs, Scale.graded(2), 1)
    for family in ("empirical", "cauchy"):
        with pytest.raises(ScoreError, match="A family is"):
            evaluate(part_judged.runs, relevance, "DCG@5", family=family)
