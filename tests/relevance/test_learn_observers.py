"""Priors over observers learned from labels beside grades: a synthetic observer's slope and level come back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logit

from probeval.data import Judgments, LabelTable, Pool
from probeval.relevance import synthetic_campaign
from probeval.relevance.learning.fit import TEXT_SPEC
from probeval.relevance.learning.observers import ALIKE, FEWEST, SAME, learn_observers
from probeval.relevance.observers.prior import PAIR, SEEN, UNSEEN
from probeval.relevance.observers.worth import LOGISTIC

QUERIES, PAIRS, TOP = 400, 20, 9
VARIANCE = {"query": 0.4, PAIR: 0.6}  # of the grades' latent relevance
SLOPE, NOISE = 0.8, 0.5


def pool_of(queries=QUERIES, pairs=PAIRS):
    return Pool.of(
        [f"q{q:04d}" for q in range(queries) for _ in range(pairs)],
        [f"d{d}" for _ in range(queries) for d in range(pairs)],
    )


def observed(rng, slope=SLOPE):
    """Grades and labels of one table: at each level labels have ``slope`` times the part of grades that is seen."""
    pool = pool_of()
    drawn = {"query": rng.normal(size=(2, QUERIES))[:, pool.query], PAIR: rng.normal(size=(2, len(pool)))}
    seen = sum(np.sqrt(v * SEEN[k]) * drawn[k][0] for k, v in VARIANCE.items())
    rest = sum(np.sqrt(v * (1 - SEEN[k])) * drawn[k][1] for k, v in VARIANCE.items())
    grade = np.clip(np.round(TOP / 2 + 1.7 * (seen + rest)), 0, TOP)
    label = slope * seen + NOISE * rng.normal(size=len(pool))
    return pool, grade, label


def learned(pool, grade, **columns):
    table = LabelTable(pool, tuple(columns), np.column_stack(list(columns.values())))
    judged = Judgments.coded(pool, np.arange(len(pool)), grade)
    return learn_observers([], [(table, judged)], TEXT_SPEC, depth=10)


def relative_error(n, correlation):
    """The standard error of a covariance of n normal pairs, as a share of it."""
    return np.sqrt((1 + correlation**-2) / n)


def test_the_slope_comes_back_without_runs():
    pool, grade, label = observed(np.random.default_rng(1))
    priors = learned(pool, grade, bot=label)
    pair = VARIANCE[PAIR]  # of grades with variance 1, so that a logit is this many sds of grades
    expected = np.log(SLOPE / label.std() * np.sqrt(pair / LOGISTIC))
    # The log slope is the mean over levels; each has the error of a covariance between label and grade.
    errors = []
    for level, n in (("query", QUERIES), (PAIR, len(pool) - QUERIES)):
        signal = SLOPE**2 * SEEN[level] * VARIANCE[level]
        noise = NOISE**2 * (1 if level == PAIR else 1 / PAIRS)
        errors.append(relative_error(n, np.sqrt(signal / (signal + noise) * SEEN[level])))
    tolerance = 4 * np.hypot(*errors) / 2 + 0.02  # and the rounding of grades
    assert tolerance < 0.25
    assert priors.by_name["bot"].log_slope.mean == pytest.approx(expected, abs=tolerance)


def test_a_better_observer_has_a_larger_slope_and_less_of_its_own():
    pool, grade, label = observed(np.random.default_rng(2))
    worse = label + 1.5 * np.random.default_rng(3).normal(size=len(label))
    priors = learned(pool, grade, good=label, poor=worse)
    good, poor = priors.by_name["good"], priors.by_name["poor"]
    # In standard deviations of the labels, noise divides the slope.
    drop = np.log(label.std() / worse.std())
    assert poor.log_slope.mean - good.log_slope.mean == pytest.approx(drop, abs=4 * relative_error(QUERIES, 0.5) / 2)
    assert poor.log_own[PAIR].mean > good.log_own[PAIR].mean


def test_the_level_is_that_of_mean_labels():
    pool, grade, _ = observed(np.random.default_rng(4))
    generous = np.minimum(grade + 2, TOP)
    priors = learned(pool, grade, bot=generous)
    expected = logit(grade.mean() / TOP) - logit(generous.mean() / TOP)
    assert expected < -0.5
    assert priors.by_name["bot"].level.mean == pytest.approx(expected, abs=1e-9)
    assert priors.by_kind["machine graded"].level.mean == pytest.approx(expected, abs=1e-9)
    assert learned(pool, grade, bot=generous + 0.5).by_name["bot"].level is None  # a number has no highest label


def test_with_runs_pairs_count_once_for_each_system_and_noise_divides_the_slope():
    campaign = synthetic_campaign(seed=5, systems=8, queries=20, depth=10, docs=40)
    grade = campaign.judgments.on(campaign.runs.pool).grades()
    rng, found = np.random.default_rng(6), []
    for _ in range(5):
        clear, blurred = (grade + noise * rng.normal(size=len(grade)) for noise in (0.3, 1.0))
        table = LabelTable(campaign.runs.pool, ("clear", "blurred"), np.column_stack([clear, blurred]))
        priors = learn_observers([replace(campaign, labels=table)], [], TEXT_SPEC, depth=10)
        drop = np.log(clear.std() / blurred.std())
        found.append(priors.by_name["blurred"].log_slope.mean - priors.by_name["clear"].log_slope.mean - drop)
        assert priors.by_name["clear"].log_own.keys() == {"query", "slope", "interaction", PAIR}
    # 4.6 standard errors: the 99% point of Student's t with four degrees of freedom.
    assert abs(np.mean(found)) < 4.6 * np.std(found, ddof=1) / np.sqrt(5)

    generous = np.minimum(grade + 1, 2)
    table = LabelTable(campaign.runs.pool, ("generous",), generous[:, None])
    prior = learn_observers([replace(campaign, labels=table)], [], TEXT_SPEC, depth=10).by_name["generous"]
    count = np.bincount(campaign.runs.pairs[campaign.runs.pairs >= 0], minlength=len(grade))
    means = [float(count @ values) / count.sum() / 2 for values in (grade, generous)]
    assert prior.level.mean == pytest.approx(logit(means[0]) - logit(min(means[1], 0.99)), abs=1e-9)


def test_columns_with_too_few_grades_or_one_label_teach_nothing():
    pool, grade, label = observed(np.random.default_rng(7))
    sparse = np.where(np.arange(len(pool)) < FEWEST - 1, label, np.nan)
    priors = learned(pool, grade, bot=label, sparse=sparse, flat=np.ones(len(pool)))
    assert list(priors.by_name) == ["bot"]
    assert learn_observers([], [], TEXT_SPEC, depth=10).by_kind == {}


def test_people_and_machines_have_priors_of_their_own():
    pool, grade, label = observed(np.random.default_rng(8))
    table = LabelTable(
        pool, ("ann", "bot"), np.column_stack([label, label + np.random.default_rng(9).normal(size=len(label))])
    )
    judged = Judgments.coded(pool, np.arange(len(pool)), grade)
    priors = learn_observers([], [(table.described({"ann": {"kind": "person"}}), judged)], TEXT_SPEC, depth=10)
    assert set(priors.by_kind) == {"person number", "machine number"}
    assert priors.by_kind["person number"].log_slope.mean > priors.by_kind["machine number"].log_slope.mean
    assert priors.by_kind["machine number"].popularity == UNSEEN.popularity  # without runs nothing is popular


def test_biases_towards_systems_come_back_whatever_the_noise():
    campaign = synthetic_campaign(seed=5, systems=12, queries=30, depth=10, docs=40)
    pool, has = campaign.runs.pool, np.zeros((len(campaign.runs.pool), 12))
    for system, pairs in enumerate(campaign.runs.pairs):
        has[pairs[pairs >= 0], system] = 1
    grade = campaign.judgments.on(pool).grades()
    rng = np.random.default_rng(6)
    favour = has @ rng.normal(size=12) / np.sqrt(has.sum(axis=1))
    fair, unfair = grade + 0.8 * rng.normal(size=len(pool)), grade + 0.8 * rng.normal(size=len(pool)) + 0.5 * favour
    noisier = grade + 1.6 * rng.normal(size=len(pool)) + 1.0 * favour
    table = LabelTable(pool, ("fair", "unfair", "noisier"), np.column_stack([fair, unfair, noisier]))
    found = learn_observers([replace(campaign, labels=table)], [], TEXT_SPEC, depth=10).by_name
    # In standard deviations of the labels the biases of the unfair two are alike, though the slopes are not.
    assert found["unfair"].log_bias.mean > found["fair"].log_bias.mean + 0.5
    assert found["noisier"].log_bias.mean == pytest.approx(found["unfair"].log_bias.mean, abs=0.45)
    assert found["noisier"].log_slope.mean < found["unfair"].log_slope.mean - 0.1


def test_directions_are_counted():
    pool, grade, label = observed(np.random.default_rng(7))
    stated = UNSEEN.reversed
    priors = learned(pool, grade, **{f"bot{i}": label + 0.1 * i for i in range(4)})
    kind = priors.by_kind["machine number"].reversed
    assert kind == pytest.approx(stated * ALIKE / (ALIKE + 4))
    assert priors.by_name["bot0"].reversed == pytest.approx(kind * SAME / (SAME + 1))
    turned = learned(pool, grade, bot=label, backwards=-label)
    assert turned.by_kind["machine number"].reversed == pytest.approx((stated * ALIKE + 1) / (ALIKE + 2))
    assert turned.by_name["backwards"].reversed > 0.9 > 0.1 > turned.by_name["bot"].reversed
