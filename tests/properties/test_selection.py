"""Choosing on small generated campaigns: nothing twice, nothing that is not offered, and no favour by names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from probeval.data import Collection, Judgments, Scale, as_runs
from probeval.metrics import parse
from probeval.relevance import FallbackModel, RelevanceDistribution, Uniform
from probeval.relevance.online import Prediction, follow
from probeval.scores.estimate import ScoreEstimate, ScoreEstimation
from probeval.selection import POLICIES, Goal, SelectionContext, choose

DOCS = tuple(f"d{i}" for i in range(5))
GOALS = ("ranking", "best", "top:2", "scores", "relevant")
METRICS = ("CG@2", "DCG@3", "P@3", "nDCG@3", "RR@3")


@st.composite
def moments(draw, metrics=METRICS, posterior=None):
    """A moment of some judging: lists, P(grade) with or without a posterior, judgments, a measure."""
    scale = draw(st.sampled_from([Scale.binary(), Scale.graded(2)]))
    queries = [f"q{i}" for i in range(draw(st.integers(1, 3)))]
    runs = {
        system: {
            q: {d: float(-i) for i, d in enumerate(draw(st.lists(st.sampled_from(DOCS), min_size=1, unique=True)))}
            for q in queries
        }
        for system in "abcd"[: draw(st.integers(1, 4))]
    }
    lists = as_runs(runs)
    draws = draw(st.integers(2, 4)) if (draw(st.booleans()) if posterior is None else posterior) else 0
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    chance = rng.dirichlet(np.ones(len(scale)), size=(*([draws] if draws else []), len(lists.pool)))
    pairs = [p for p in range(len(lists.pool)) if draw(st.integers(0, 3)) == 0]
    judged = Judgments.coded(lists.pool, np.array(pairs, dtype=np.int64), rng.integers(len(scale), size=len(pairs)))
    relevance = RelevanceDistribution.of(lists.pool, scale, chance, judgments=judged)
    return lists, relevance, judged, draw(st.sampled_from(metrics))


def known(lists, relevance, judged, metric, seed=0):
    problem = Collection("", lists, judged).problem(depth=lists.depth, scale=relevance.scale)
    how = ScoreEstimation(follow(FallbackModel([Uniform()]), problem), parse(metric), draws=60, seed=seed)
    return SelectionContext(ScoreEstimate(how, judged, Prediction(relevance)))


def policies(metric):
    return [p for p in POLICIES if p != "mtc-thesis" or metric != "RR@3"]


@given(moments(), st.integers(0, 12), st.floats(0, 1), st.data())
def test_a_choice_is_of_open_pairs_each_once_and_as_many_as_there_are(moment, n, explore, data):
    context = known(*moment)
    size = len(moment[0].pool)
    offered = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    before = offered.copy()
    policy = data.draw(st.sampled_from(policies(moment[3])))
    goal = Goal.parse(data.draw(st.sampled_from(GOALS)))
    chosen = choose(context, policy, n, goal=goal, offered=offered, explore=explore).pairs
    open_ = offered & ~context.judged
    assert len(chosen) == len(set(chosen.tolist())) == min(n, open_.sum())
    assert open_[chosen].all()
    np.testing.assert_array_equal(offered, before)
    again = choose(context, policy, n, goal=goal, offered=offered, explore=explore).pairs
    np.testing.assert_array_equal(chosen, again)


@pytest.mark.slow
@given(moments(), st.sampled_from(GOALS), st.integers(1, 4), st.data())
def test_a_smaller_batch_is_the_start_of_a_larger_one(moment, goal, n, data):
    context = known(*moment)
    policy = data.draw(st.sampled_from(policies(moment[3])))
    everything = np.ones(len(moment[0].pool), dtype=bool)
    one, more = (choose(context, policy, size, goal=Goal.parse(goal), offered=everything).pairs for size in (n, n + 3))
    np.testing.assert_array_equal(one, more[: len(one)])


@given(moments(), st.sampled_from(GOALS))
def test_values_are_numbers_and_gain_is_never_negative(moment, goal):
    context, goal = known(*moment), Goal.parse(goal)
    for policy in policies(moment[3]):
        value = POLICIES[policy](context, goal)
        assert value.shape == (len(moment[0].pool),)
        assert not np.isnan(value).any()
    if goal.kind != "relevant":
        value = POLICIES["gain"](context, goal)
        assert (value >= -1e-12 * max(1.0, value.max(initial=0.0))).all()
        assert not value[context.judged].any()
        covariance, own = context.covariance, context.gain_variance
        assert (own >= 0).all()
        # Cauchy and Schwarz, for the measures whose moments are exact.
        if context.metric.is_linear:
            spread = np.diag(context.scores.covariance)
            assert (covariance**2 <= np.outer(own, spread) * (1 + 1e-9) + 1e-15).all()


@given(moments(metrics=("CG@2", "DCG@3", "P@3")), st.permutations("abcd"), st.sampled_from(["ranking", "scores"]))
def test_the_order_of_systems_does_not_matter(moment, order, goal):
    lists, relevance, judged, metric = moment
    names = [s for s in order if s in lists.systems]
    assume(tuple(names) != lists.systems)
    at = [lists.systems.index(s) for s in names]
    shuffled = replace(lists, systems=tuple(names), pairs=lists.pairs[at], scores=lists.scores[at])
    one, two = known(lists, relevance, judged, metric), known(shuffled, relevance, judged, metric)
    for policy in ("depth", "mtc", "mtc-thesis", "variance", "uncertain", "gain"):
        a, b = (POLICIES[policy](k, Goal.parse(goal)) for k in (one, two))
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-12)


@given(moments(metrics=("CG@2", "DCG@3", "P@3"), posterior=False))
def test_what_all_systems_have_alike_tells_nobody_apart(moment):
    context = known(*moment)
    weights = context.weights
    alike = np.ptp(weights, axis=1) < 1e-12
    value = POLICIES["gain"](context, Goal.parse("ranking"))
    assert np.abs(value[alike]).max(initial=0.0) <= 1e-12 * max(1.0, value.max(initial=0.0))
    thesis = POLICIES["mtc-thesis"](context, Goal.parse("ranking"))
    assert np.abs(thesis[alike]).max(initial=0.0) < 1e-9


@given(moments(metrics=("DCG@3",)))
def test_values_of_a_pair_goal_are_those_of_its_difference(moment):
    lists = moment[0]
    assume(len(lists.systems) >= 2)
    context = known(*moment)
    goal = Goal.parse(f"pair:{lists.systems[0]},{lists.systems[1]}")
    g, own = context.covariance, context.gain_variance
    spread = context.scores.difference_moments()[1][0, 1] ** 2
    value = POLICIES["gain"](context, goal)
    if spread <= 1e-12:
        assert not value.any()
        return
    mean = context.scores.mean[0] - context.scores.mean[1]
    omega = np.exp(-(mean**2) / spread / 2) / np.sqrt(2 * np.pi) / spread
    expected = np.divide(omega * (g[:, 0] - g[:, 1]) ** 2, own, out=np.zeros(len(own)), where=own > 1e-12)
    assert value == pytest.approx(expected, rel=1e-6, abs=1e-9)
