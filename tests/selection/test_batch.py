"""Choosing several pairs: what one says of the others, exploration, ties, and the edges of a pool."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from probeval.data import Collection, Judgments, Scale, as_runs
from probeval.errors import SelectionError
from probeval.relevance import FallbackModel, Uniform, choose_model, synthetic_campaign
from probeval.selection import POLICIES, Goal, Judging, SelectionContext, choose
from probeval.selection.batch import FROM_SIDES, SHORT_LIST, STEP, UNIFORM, condition, draw_probability, in_turn
from probeval.selection.policies import comparison_weights, laplacian

RANKING = Goal.parse("ranking")
HIERARCHICAL = "text-hierarchical"
METRICS = ("DCG@5", "nDCG@5", "AP", "RR", "ERR@5")


def conditioned(context, goal, taken):
    """The value of every pair once these are taken, by conditioning the whole Gaussian on them at once."""
    n = len(context.runs.pool)
    pairs = context.dependence.between(np.arange(n))  # of pairs with pairs
    np.fill_diagonal(pairs, context.gain_variance)
    scores = context.covariance
    if len(taken):
        solve = np.linalg.solve(pairs[np.ix_(taken, taken)], np.column_stack([pairs[taken], scores[taken]]))
        less = pairs[:, taken] @ solve
        pairs, scores = pairs - less[:, :n], scores - less[:, n:]
    form = laplacian(comparison_weights(context, goal))
    own = np.diag(pairs)
    return np.divide(np.einsum("da,ab,db->d", scores, form, scores), own, out=np.zeros(n), where=own > 1e-12)


@pytest.mark.parametrize("goal", ["ranking", "best"])
def test_a_batch_is_what_conditioning_on_its_own_pairs_gives(state, goal):
    some, goal = state(8, model=HIERARCHICAL), Goal.parse(goal)
    chosen = choose(some.context, "gain", 6, goal=goal, offered=some.open).pairs
    for i, pair in enumerate(chosen):
        value = conditioned(some.context, goal, chosen[:i])
        value[some.prediction.relevance.certain] = -1
        value[chosen[:i]] = -1
        assert value[pair] == pytest.approx(value.max(), rel=1e-9)
    alone = np.argsort(-POLICIES["gain"](some.context, goal), kind="stable")
    assert chosen[0] == alone[0]
    assert set(chosen) != set(alone[:6])  # redundancy has moved some


@pytest.fixture(scope="module")
def labelled():
    """Two systems, and labels by which the first leads; a pool of several short lists, with nothing judged."""
    full = synthetic_campaign(seed=4, systems=2, queries=150, depth=10, observers=1)
    first, second = (np.isin(np.arange(len(full.runs.pool)), full.runs.pairs[s]) for s in (0, 1))
    toward = np.where(first & ~second, 1.5, np.where(second & ~first, -1.5, 0.0))
    labels = replace(full.labels, values=full.labels.values + toward[:, None])
    blind = replace(full, judgments=None, labels=labels)
    model = choose_model(None, blind, scale=Scale.graded(2)).model
    return Judging.of(blind, model, "DCG@10", scale=Scale.graded(2), explore=0.0).begin()


@pytest.mark.parametrize("goal", ["pair:system-01,system-02", "ranking", "best", "top:1"])
def test_a_large_batch_has_pairs_of_both_sides(labelled, goal):
    assert len(labelled.judging.pool) > 5 * SHORT_LIST
    weights = labelled.context.weights
    chosen = choose(labelled.context, "gain", 100, goal=Goal.parse(goal), offered=labelled.open).pairs
    counts = np.bincount((weights[chosen, 0] > weights[chosen, 1]).astype(int), minlength=2)
    assert counts.max() <= 0.65 * counts.sum()


def test_the_list_is_renewed_by_what_is_taken(labelled):
    goal, n = Goal.parse("pair:system-01,system-02"), STEP + 1
    chosen = choose(labelled.context, "gain", n, goal=goal, offered=labelled.open).pairs
    value = conditioned(labelled.context, goal, chosen[:STEP])
    value[chosen[:STEP]] = -1
    assert value[chosen[STEP]] == pytest.approx(value.max(), rel=1e-9)  # of all pairs, not of a short list


def test_all_pairs_are_chosen_once_and_the_first_are_those_of_a_smaller_batch(labelled):
    goal, offered = Goal.parse("pair:system-01,system-02"), labelled.open & (np.arange(len(labelled.open)) < 600)
    every = choose(labelled.context, "gain", offered.sum(), goal=goal, offered=offered).pairs
    assert np.sort(every).tolist() == np.flatnonzero(offered).tolist()
    some = choose(labelled.context, "gain", 3 * STEP, goal=goal, offered=offered).pairs
    assert every[: 3 * STEP].tolist() == some.tolist()


def test_conditioning_at_once_is_conditioning_on_one_pair_after_another(state):
    context = state(8, model=HIERARCHICAL).context
    n = len(context.runs.pool)
    whole = context.dependence.between(np.arange(n))
    np.fill_diagonal(whole, context.gain_variance)
    g, taken = context.covariance.copy(), np.flatnonzero(~context.judged)[[1, 4, 9, 16, 5]]
    for x in taken:
        v = whole[:, x] / np.sqrt(whole[x, x])
        g, whole = g - np.outer(v, g[x]) / np.sqrt(whole[x, x]), whole - np.outer(v, v)
    known, at_once = np.empty(0, dtype=int), (context.covariance, context.gain_variance)
    for more in (taken[:2], taken[2:]):
        at_once, known = condition(context, *at_once, known, more), np.append(known, more)
    others = np.setdiff1d(np.arange(n), taken)
    np.testing.assert_allclose(at_once[0][others], g[others], atol=1e-12)
    np.testing.assert_allclose(at_once[1][others], np.diag(whole)[others], atol=1e-12)


def test_pairs_that_say_nothing_of_each_other_are_taken_by_value(state):
    some = state(8)
    value = POLICIES["gain"](some.context, RANKING)
    # In ten digits: equal values stay in the order of the pool.
    open_ = sorted(np.flatnonzero(some.open), key=lambda p: (-round(value[p] / value.max(), 10), p))
    assert some.next(9).pairs.tolist() == open_[:9]


def test_ties_go_to_the_first_in_the_pool():
    runs = as_runs({s: {q: {f"{s}{i}": float(-i) for i in range(3)} for q in "xyz"} for s in "ab"})
    campaign = Collection("even", runs)
    for policy in ("mtc", "gain", "variance", "uncertain", "mtc-thesis"):
        judging = Judging.of(
            campaign, FallbackModel([Uniform()]), "CG@3", policy=policy, scale=Scale.binary(), explore=0
        )
        begun = judging.begin()
        assert begun.next(18).pairs.tolist() == list(range(18)), policy
        assert [*begun.next(1).pairs, *begun.next(1, taken=[0]).pairs] == [0, 1], policy


@pytest.mark.parametrize("metric", METRICS)
def test_every_measure_goes_through_gain(state, metric):
    some = state(8, metric=metric)
    chosen = some.next(5).pairs
    assert len(set(chosen)) == 5
    assert some.open[chosen].all()
    value = POLICIES["gain"](some.context, RANKING)
    assert np.isfinite(value).all()
    assert value[chosen].min() > 0
    assert chosen[0] == np.argmax(np.where(some.open, value, -1))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_pool_is_exhausted_and_no_pair_is_asked_twice(full, policy):
    judging = Judging.of(
        replace(full, judgments=None),
        FallbackModel([Uniform()]),
        "DCG@3",
        policy=policy,
        scale=Scale.graded(2),
        explore=0.3,
    )
    state, asked = judging.begin(), []
    grades = full.judgments.on(judging.pool).grades()
    while len(chosen := state.next(7).pairs):
        asked += chosen.tolist()
        state = state.after(Judgments.coded(judging.pool, np.array(asked), grades[asked]))
        assert len(asked) <= len(judging.pool)
    assert sorted(asked) == list(range(len(judging.pool)))
    assert state.ranking.confidence == 1.0
    assert not state.open.any()


def test_same_seed_same_order(full):
    def order(seed, policy="gain", explore=0.3):
        judging = Judging.of(
            replace(full, judgments=None), FallbackModel([Uniform()]), "DCG@5", policy=policy, scale=Scale.graded(2),
            explore=explore, seed=seed, draws=100,
        )  # fmt: skip
        return judging.begin().next(12).pairs.tolist()

    assert order(1) == order(1)
    assert order(1) != order(2)
    assert order(1, "random") != order(2, "random")
    assert order(1, "depth", 0) == order(2, "depth", 0)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("batch", [1, 3, 10])
def test_exploration_is_spread_evenly_whatever_the_batches(full, share, batch):
    judging = Judging.of(
        replace(full, judgments=None),
        FallbackModel([Uniform()]),
        "DCG@5",
        policy="mtc",
        scale=Scale.graded(2),
        explore=share,
    )
    state, explored = judging.begin(), []
    for _ in range(0, 20, batch):
        by_policy = choose(state.context, "mtc", 1000, goal=RANKING, offered=state.open).pairs.tolist()
        chosen = state.next(batch)
        made = len(state.judgments) + np.arange(batch)
        due = (made + 1) * share // 1 > made * share // 1
        assert chosen.drawn.tolist() == due.tolist()
        strays = chosen.pairs[due].tolist()
        assert chosen.pairs[~due].tolist() == [p for p in by_policy if p not in strays][: batch - len(strays)]
        explored += due.tolist()
        pairs = np.concatenate([state.judgments.pair, chosen.pairs])
        state = state.after(Judgments.coded(judging.pool, pairs, np.ones(len(pairs))))
    assert np.abs(np.cumsum(explored) - share * (np.arange(len(explored)) + 1)).max() < 1


def test_exploration_draws_every_open_pair_with_the_probability_that_it_states(state):
    some = state(8, policy="mtc")
    probability = draw_probability(some.context, RANKING, some.open)
    assert (probability[some.open] >= UNIFORM / some.open.sum()).all()
    assert not probability[~some.open].any()
    assert probability.sum() == pytest.approx(1)
    weight = some.context.level_weights.mean(axis=0)[some.open]
    expected = UNIFORM / some.open.sum() + (1 - UNIFORM) * weight / weight.sum()
    np.testing.assert_allclose(probability[some.open], expected)
    n, counts = 1500, np.zeros(len(probability))
    for seed in range(n):
        context = type("Seeded", (SelectionContext,), {"seed": seed})(some.estimate)  # of the same scores
        drawn = choose(context, "mtc", 1, goal=RANKING, offered=some.open, explore=1.0)
        counts[drawn.pairs[0]] += 1
        assert drawn.probability[0] == pytest.approx(probability[drawn.pairs[0]])
    # Pearson's statistic has as many degrees of freedom as there are open pairs but one.
    free = some.open.sum() - 1
    statistic = ((counts - n * probability)[some.open] ** 2 / (n * probability[some.open])).sum()
    assert abs(statistic - free) < 4 * np.sqrt(2 * free)


@pytest.mark.parametrize("goal", ["pair:system-03,system-01", "best", "top:2"])
def test_draws_for_a_comparison_are_half_from_each_side(state, goal):
    some, goal = state(8), Goal.parse(goal)
    probability = draw_probability(some.context, goal, some.open)
    assert probability.sum() == pytest.approx(1)
    level = draw_probability(some.context, RANKING, some.open)
    assert (probability >= (1 - FROM_SIDES) * level - 1e-12).all()
    side, omega = goal.sides(some.ranking), comparison_weights(some.context, goal)
    w = some.context.level_weights.toarray()
    weight = sum(omega[a, b] * (w[a] - w[b]) for a in np.flatnonzero(side > 0) for b in np.flatnonzero(side < 0))
    for sign in (1, -1):
        mine = some.open & (sign * weight > 1e-12)
        extra = (probability - (1 - FROM_SIDES) * level)[mine] / FROM_SIDES
        np.testing.assert_allclose(extra, weight[mine] / weight[mine].sum() / 2)


def test_draws_are_from_both_sides_even_if_the_model_is_sure_of_one(state, monkeypatch):
    some, goal = state(8), Goal.parse("pair:system-03,system-01")
    expected = draw_probability(some.context, goal, some.open)
    monkeypatch.setattr("probeval.selection.batch.comparison_weights", lambda *_: np.zeros((5, 5)))  # no doubt is left
    np.testing.assert_allclose(draw_probability(replace(some.context), goal, some.open), expected)


def test_draws_of_a_batch_are_without_replacement_and_the_same_for_any_size(state):
    some = state(8, policy="mtc")
    batch = choose(some.context, "mtc", 12, goal=RANKING, offered=some.open, explore=1.0)
    left = some.open.copy()
    for pair, probability in zip(batch.pairs, batch.probability, strict=True):
        assert probability == pytest.approx(draw_probability(some.context, RANKING, left)[pair])
        left[pair] = False
    shorter = choose(some.context, "mtc", 5, goal=RANKING, offered=some.open, explore=1.0)
    assert shorter.pairs.tolist() == batch.pairs[:5].tolist()


def test_random_order_is_a_uniform_draw_from_the_pairs_still_open(state):
    some = state(8, policy="random")
    batch, n = some.next(6), some.open.sum()
    np.testing.assert_allclose(batch.probability, 1 / (n - np.arange(6)))
    assert np.isnan(Judging.choosing(some.judging, "mtc").state(some.judgments).next(3).probability).all()


def test_only_what_is_offered_and_not_taken(state):
    some = state(8)
    offered = some.open.copy()
    offered[::2] = False
    chosen = choose(some.context, "gain", 1000, goal=RANKING, offered=offered, explore=0.2).pairs
    assert sorted(chosen) == np.flatnonzero(offered).tolist()
    first = some.next(3).pairs
    assert not set(first) & set(some.next(1000, taken=first).pairs)
    assert len(some.next(1000, taken=first)) == some.open.sum() - 3


def test_none_and_bad_requests(state):
    some = state(8)
    assert some.next(0).pairs.tolist() == []
    with pytest.raises(SelectionError, match="The number of pairs must not be negative, got -1"):
        some.next(-1)
    with pytest.raises(SelectionError, match=r"The share of exploration must be between 0 and 1, got 1\.5"):
        choose(some.context, "gain", 1, goal=RANKING, offered=some.open, explore=1.5)
    with pytest.raises(SelectionError, match="Did you mean 'gain'"):
        choose(some.context, "gains", 1, goal=RANKING, offered=some.open)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("metric", ["DCG@5", "nDCG@5"])
def test_one_system_one_query_and_identical_systems(full, policy, metric):
    runs = full.runs
    one_query = as_runs({"a": {"q": {"d1": 2.0, "d2": 1.0}}, "b": {"q": {"d2": 2.0, "d3": 1.0}}})
    twins = as_runs({s: {q: {f"d{i}": float(-i) for i in range(3)} for q in "xy"} for s in ("a", "b")})
    for lists, n in ((runs.select(["system-01"]), 20), (one_query, 3), (twins, 6)):
        campaign = Collection("edge", lists)
        judging = Judging.of(
            campaign, FallbackModel([Uniform()]), metric, policy=policy, scale=Scale.graded(2), draws=50
        )
        state = judging.begin()
        chosen = state.next(1000).pairs
        assert sorted(chosen) == list(range(n))
        done = state.after(Judgments.coded(judging.pool, chosen, np.ones(n)))
        assert done.ranking.confidence == 1.0
        assert done.next(5).pairs.tolist() == []


@pytest.mark.parametrize("pairs", [12, 90])
def test_pairs_are_taken_as_if_the_whole_matrix_were_conditioned(pairs):
    rng = np.random.default_rng(pairs)
    root = rng.normal(size=(pairs, 6))
    between, weights = root @ root.T, rng.normal(size=(pairs, 4))
    variance = np.diag(between) + rng.uniform(0.1, 1.0, size=pairs)
    matrix = between - np.diag(np.diag(between)) + np.diag(variance)
    covariance, value = matrix @ weights, laplacian(np.ones((4, 4)) - np.eye(4))
    expected, free, g, rest = [], list(range(pairs)), covariance, matrix
    for _ in range(min(pairs, 70)):
        at = max(free, key=lambda d: g[d] @ value @ g[d] / rest[d, d])
        expected.append(at)
        free.remove(at)
        g = g - np.outer(rest[:, at], g[at]) / rest[at, at]
        rest = rest - np.outer(rest[:, at], rest[at]) / rest[at, at]
    assert in_turn(covariance, variance, between, min(pairs, 70), value)[0].tolist() == expected
