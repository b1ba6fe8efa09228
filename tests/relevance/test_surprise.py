"""Judged pairs with their own judgment left out: against refits, calibration of tails, and grades that were turned."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

import probeval
from probeval.data import Judgments, LabelTable, Pool, Scale
from probeval.relevance import RelevanceDistribution, load_card, synthetic_campaign
from probeval.relevance.surprise import LeftOut, left_out, surprising_grades

DEPTH = 6
SCALE = Scale.graded(2)


@pytest.fixture(scope="module")
def campaign():
    made = synthetic_campaign(seed=3, systems=8, queries=25, depth=DEPTH)
    pool = made.runs.top(DEPTH).pool
    grades = np.nan_to_num(made.judgments.on(pool).grades())
    values = np.clip(np.round(grades + np.random.default_rng(0).standard_normal(len(pool))), 0, 3)
    rows = np.random.default_rng(0).permutation(len(pool))[:120]
    judged = Judgments.coded(pool, rows, grades[rows])
    return replace(made, judgments=judged, labels=LabelTable(pool, ("llm",), values[:, None]))


def predicted(collection):
    model = load_card("text-hierarchical").model
    return model.predict(collection.problem(depth=DEPTH, scale=SCALE), rng=np.random.default_rng(0))


@pytest.mark.slow
def test_a_pair_left_out_is_what_a_refit_without_it_gives(campaign):
    out = LeftOut.of(predicted(campaign))
    without = []
    some = range(0, 120, 20)
    order = campaign.judgments.pair
    for i in some:
        fewer = replace(campaign, judgments=campaign.judgments.take(np.delete(np.arange(len(order)), i)))
        relevance = predicted(fewer)
        without.append(relevance.probability[:, order[i]].mean(axis=0))
    at = [int(np.flatnonzero(out.pairs == order[i])[0]) for i in some]
    apart = np.abs(out.probability[at] - np.array(without))
    given = predicted(campaign).probability[:, order[list(some)]].mean(axis=0)
    assert apart.mean() < 0.03  # 200 draws: .02 at most in each probability, and the variances are not fitted again
    assert apart.mean() < np.abs(given - np.array(without)).mean() / 2


def test_the_cavity_of_a_normal_logit_is_exact():
    # One pair, two levels: a normal prior and a logistic likelihood, by a grid and by draws of the posterior.
    grid = np.linspace(-12, 12, 4001)
    prior = np.exp(-((grid - 0.5) ** 2) / (2 * 1.5**2))
    posterior = prior * expit(grid)
    rng = np.random.default_rng(0)
    drawn = rng.choice(grid, 20_000, p=posterior / posterior.sum())
    draws = np.stack([1 - expit(drawn), expit(drawn)], axis=1)[:, None, :]
    found = left_out(draws, np.array([1]))
    assert found[0, 1] == pytest.approx(float((prior * expit(grid)).sum() / prior.sum()), abs=0.02)


def test_tails_are_calibrated_under_the_model():
    rng = np.random.default_rng(1)
    p = rng.dirichlet([0.7, 0.7, 0.7], 2000)
    grades = (rng.random((2000, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    pool = Pool.of(["q"] * 2000, [f"{i:04}" for i in range(2000)])
    judged = Judgments.coded(pool, np.arange(2000), grades.astype(float))
    found = surprising_grades(RelevanceDistribution.of(pool, SCALE, p, judgments=judged))
    assert found.below_by_chance > 10
    assert abs(found.below - found.below_by_chance) < 3 * np.sqrt(found.below_by_chance)
    assert found.grades[0].tail == min(one.tail for one in found.grades)
    assert all(a.by_chance <= b.by_chance for a, b in zip(found.grades, found.grades[1:], strict=False))


def test_grades_that_were_turned_come_first(campaign):
    codes = campaign.judgments.grade
    right = LeftOut.of(predicted(campaign))
    low, high = right.tails
    sure = right.pairs[np.argsort(-np.minimum(low, high))]
    turned = [i for p in sure if codes[i := int(np.flatnonzero(campaign.judgments.pair == p)[0])] != 1][:4]
    wrong = codes.copy()
    wrong[turned] = 2 - wrong[turned]
    pool = campaign.judgments.pool
    now = replace(campaign, judgments=Judgments.coded(pool, campaign.judgments.pair, wrong))
    found = probeval.evaluate(now, f"DCG@{DEPTH}", model="hierarchical", scale=SCALE).surprising(n=12)
    named = {(one.query, one.doc) for one in found.grades}
    assert sum(pool.label(int(campaign.judgments.pair[i])) in named for i in turned) >= 3


def test_with_nothing_judged_nothing_is_surprising(campaign):
    found = probeval.evaluate(replace(campaign, judgments=None), f"DCG@{DEPTH}", model="hierarchical", scale=SCALE)
    assert found.surprising().to_dict()["grades"] == []
    assert "Nothing is judged" in found.surprising().sentences()[0]
