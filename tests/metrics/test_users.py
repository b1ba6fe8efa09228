"""Measures of users against the satisfaction of users, computed from scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from probeval.data import Scale
from probeval.metrics import Lists, bounds, measure, parse
from probeval.relevance import FallbackModel, Uniform, synthetic_campaign
from probeval.satisfaction import Satisfaction, load_mapping
from probeval.scores import evaluate

MAPPED = {"CG@5": "CGl@5/broad", 'DCG(gain="exp")@5': "DCGe@5/broad", 'GAP(norm="perfect")@5': "GAP@5/broad"}
mapped = pytest.mark.parametrize(("metric", "name"), MAPPED.items())


@pytest.fixture(scope="module")
def campaign():
    return synthetic_campaign(seed=2, systems=5, queries=12, depth=8)


@mapped
def test_with_all_judged_they_are_p_sat_and_p_success(campaign, metric, name):
    users = Satisfaction.of(measure(campaign.runs, campaign.judgments, metric), load_mapping(name))
    sat, success = (measure(campaign.runs, campaign.judgments, f'{m}(mapping="{name}")') for m in ("PSat", "PSucc"))
    np.testing.assert_allclose(sat.values, users.values[0], atol=1e-12)
    assert np.unique(success.values).tolist() == [0, 1]
    for i, system in enumerate(users.systems):
        assert sat.values[i].mean() == pytest.approx(users.p_sat(system).mean, abs=1e-12)
        assert success.values[i].mean() == pytest.approx(users.p_success(system).mean, abs=1e-12)
    assert success.complete


@mapped
def test_by_draws_they_are_p_sat_and_p_success(campaign, metric, name):
    some = replace(campaign, judgments=campaign.judgments.take(np.arange(40)))
    runs, relevance = (
        campaign.runs.top(5),
        FallbackModel([Uniform()]).predict(some.problem(depth=5, scale=Scale.graded(2))),
    )

    def drawn(asked):
        rng = np.random.default_rng(4)
        return evaluate(runs, relevance, asked, method="draws", per_query=True, n=60, rng=rng)

    users = Satisfaction.of(drawn(metric), load_mapping(name), target="collection")
    sat, success = (drawn(f'{m}(mapping="{name}")') for m in ("PSat", "PSucc"))
    np.testing.assert_allclose(sat.joint.query_draws, users.values, atol=1e-12)
    for i, system in enumerate(users.systems):
        assert sat.mean[i] == pytest.approx(users.p_sat(system).mean, abs=1e-12)
        assert success.mean[i] == pytest.approx(users.p_success(system).mean, abs=1e-12)


def test_bounds_where_they_are_exact():
    lists = Lists.of_grades([[2, np.nan, 1, np.nan, 0], [2, 2, 2, 2, np.nan]], Scale.graded(2))
    assert np.isnan(bounds(parse('PSat(mapping="CGl@5/broad")'), lists)).all()  # this mapping is not monotone
    for name in ('PSat(mapping="nDCG@5/broad")', 'PSucc(mapping="nDCG@5/broad")'):
        assert np.isnan(bounds(parse(name), lists)).all()  # a relevant document outside the list lowers nDCG
    for name in ('PSat(mapping="DCGl@5/broad")', 'PSucc(mapping="CGl@5/broad")', 'PSucc(mapping="GAP@5/broad")'):
        metric = parse(name)
        every = [
            metric.scores(Lists(lists.scale, np.where(lists.codes < 0, [a, a, a, b, b], lists.codes), known))
            for a in range(3)
            for b in range(3)
            for known in [lists.relevant_counts]
        ]
        low, high = bounds(metric, lists)
        np.testing.assert_allclose(low, np.min(every, axis=0), atol=1e-12)
        np.testing.assert_allclose(high, np.max(every, axis=0), atol=1e-12)


def test_gains_are_those_of_the_mapped_measure():
    scale = Scale.graded(2)
    assert parse('PSat(mapping="CGe@5/broad")').gains(scale).tolist() == [0, 1, 3]
    assert parse('PSucc(mapping="P@5/lmin20")').gains(scale).tolist() == [0, 1, 1]
    assert parse('PSucc(mapping="GAP@5/broad")').gains(scale).tolist() == [0, 1, 2]
