"""Policies against their formulas, written out."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import entropy, norm

from probeval.data import Judgments, LabelTable, Scale
from probeval.errors import SelectionError
from probeval.relevance import FallbackModel, Uniform, choose_model
from probeval.selection import POLICIES, Goal, Judging, Policy, register_policy
from probeval.selection.policies import comparison_weights, find_policy

RANKING = Goal.parse("ranking")
HIERARCHICAL = "text-hierarchical"


def at_tiny(tiny, metric="CG@2", judged=None, **options):
    if judged:
        tiny = replace(tiny, judgments=Judgments.rows(["q"] * len(judged), list(judged), list(judged.values())))
    return Judging.of(tiny, FallbackModel([Uniform()]), metric, scale=Scale.binary(), explore=0, **options).begin()


@pytest.mark.parametrize("goal", ["ranking", "best", "top:2", "pair:system-01,system-04"])
@pytest.mark.parametrize("judged", [0, 12])
def test_mtc_is_the_double_sum(state, goal, judged):
    context, goal = state(judged).context, Goal.parse(goal)
    has, sure = context.retrieved.toarray(), context.ranking.pair_confidence
    matters = goal.comparisons(context.ranking)
    expected = [
        sum(
            matters[a, b] * (1 - sure[a, b]) * (has[a, d] - has[b, d]) ** 2 for a, b in combinations(range(len(has)), 2)
        )
        for d in range(has.shape[1])
    ]
    np.testing.assert_allclose(POLICIES["mtc"](context, goal), expected, atol=1e-12)
    assert max(expected) > 0


def test_mtc_by_hand(tiny):
    # Nothing judged: every comparison is at a half. d1 and d2 tell a and b from c, and so do d3 and d4.
    state = at_tiny(tiny)
    assert POLICIES["mtc"](state.context, RANKING).tolist() == [1.0, 1.0, 1.0, 1.0]
    assert state.next(4).pairs.tolist() == [0, 1, 2, 3]
    # a and b have the same documents: CG cannot tell them apart, and their comparison asks for nothing.
    assert state.ranking.pair_confidence[0, 1] == 1.0


def test_mtc_undecided_leaves_out_what_is_decided(full):
    few = full.judgments.take(np.arange(27))
    judging = Judging.of(replace(full, judgments=few), FallbackModel([Uniform()]), "DCG@5", scale=Scale.graded(2))
    context = judging.begin().context
    confidence, has = context.ranking.pair_confidence, context.retrieved.toarray().astype(float)
    a, b = np.triu_indices(len(confidence), k=1)
    doubt = np.where(confidence[a, b] < 0.95, 1 - confidence[a, b], 0.0)
    assert 0 < np.count_nonzero(doubt) < len(a)
    expected = (doubt[:, None] * (has[a] - has[b]) ** 2).sum(axis=0)
    np.testing.assert_allclose(POLICIES["mtc-undecided"](context, RANKING), expected, atol=1e-12)
    assert not np.allclose(POLICIES["mtc"](context, RANKING), expected)
    # With everything judged nothing is undecided, and it is mtc.
    certain = Judging.of(full, FallbackModel([Uniform()]), "DCG@5", scale=Scale.graded(2)).begin().context
    values = [POLICIES[name](certain, RANKING) for name in ("mtc-undecided", "mtc")]
    np.testing.assert_array_equal(*values)


def test_mtc_looks_within_the_cutoff_only(tiny):
    deep = at_tiny(tiny, "CG@1", depth=2)
    assert deep.scores.pool == 4
    value = POLICIES["mtc"](deep.context, RANKING)
    assert value.tolist() == [1.0, 1.0, 1.0, 0.0]  # d4 is at rank 2 alone


def test_mtc_thesis_by_hand(tiny):
    second = 1 / np.log2(3)
    state = at_tiny(tiny, "DCG@2", policy="mtc-thesis")
    # |W_a - W_b| + |W_a - W_c| + |W_b - W_c|, with the weights 1, second and 0.
    expected = [2.0, 2.0, 2.0, 2 * second]
    np.testing.assert_allclose(POLICIES["mtc-thesis"](state.context, RANKING), expected)
    assert state.next(1).pairs.tolist() == [0]
    pair = Goal.parse("pair:a,b")
    found = POLICIES["mtc-thesis"](state.context, pair)
    np.testing.assert_allclose(found, [1 - second, 1 - second, 0, 0])


def test_mtc_thesis_divides_by_the_expected_ideal(full):
    both = [
        Judging.of(replace(full, judgments=few), FallbackModel([Uniform()]), m, scale=Scale.graded(2)).begin().context
        for few in [full.judgments.take(np.arange(0, len(full.judgments), 3))]
        for m in ("DCG@5", "nDCG@5")
    ]
    plain, normed = (POLICIES["mtc-thesis"](k, RANKING) for k in both)
    mean, query = both[0].gain_moments[0], both[0].runs.pool.query
    discount = 1 / np.log2(np.arange(2, 7))
    ideal = np.array([np.sort(mean[query == q])[::-1][:5] @ discount for q in range(4)])
    np.testing.assert_allclose(normed, plain / ideal[query])


def test_mtc_thesis_refuses_what_it_has_no_weights_for(state):
    with pytest.raises(SelectionError, match=r"mtc-thesis needs a weighted sum of gains such as DCG@10, not AP@5"):
        POLICIES["mtc-thesis"](state(metric="AP@5").context, RANKING)


@pytest.mark.parametrize("goal", ["ranking", "best", "top:2", "pair:system-01,system-04"])
@pytest.mark.parametrize("model", ["uniform", HIERARCHICAL])
def test_gain_is_the_double_sum(state, goal, model):
    context, goal = state(12, model=model).context, Goal.parse(goal)
    g, own = context.covariance, context.gain_variance
    mean, covariance = context.scores.mean, context.scores.covariance
    matters = goal.comparisons(context.ranking)
    expected = np.zeros(len(own))
    for d in np.flatnonzero(own > 1e-12):
        for a, b in combinations(range(len(mean)), 2):
            spread = covariance[a, a] + covariance[b, b] - 2 * covariance[a, b]
            if spread > 1e-12:
                omega = norm.pdf((mean[a] - mean[b]) / np.sqrt(spread)) / spread
                expected[d] += matters[a, b] * omega * (g[d, a] - g[d, b]) ** 2 / own[d]
    np.testing.assert_allclose(POLICIES["gain"](context, goal), expected, rtol=1e-9, atol=1e-15)
    assert expected.max() > 0
    assert not expected[context.judged].any()


def test_covariance_of_independent_pairs_is_weight_times_variance(state):
    context = state(12).context
    weights = np.zeros((len(context.runs.pool), 5))
    top = 2 * (1 / np.log2(np.arange(2, 7))).sum()  # a score is a share of what five documents of grade 2 would give
    for (s, _, r), pair in np.ndenumerate(context.runs.pairs):
        weights[pair, s] += 1 / np.log2(r + 2) / top / 4
    np.testing.assert_allclose(context.weights, weights)
    own = np.where(context.judged, 0.0, 2 / 3)  # of 0, 1, 2, each as likely
    np.testing.assert_allclose(context.covariance, weights * own[:, None])
    np.testing.assert_allclose(context.gain_variance, own)
    # and what all pairs add up to is the covariance of the scores
    np.testing.assert_allclose(weights.T @ context.covariance, context.scores.covariance)


def test_covariance_of_pairs_that_hang_together_adds_up_too(state):
    context = state(12, model=HIERARCHICAL).context
    # Scores by the posterior's 200 draws, pairs by the delta method: alike, not equal.
    by_pair, by_draw = context.weights.T @ context.covariance, context.scores.covariance
    np.testing.assert_allclose(np.diag(by_pair), np.diag(by_draw), rtol=0.35)
    own = (context.weights.T * context.gain_moments[1]) @ context.weights
    assert np.diag(by_pair - own).min() > 0.2 * np.diag(by_pair).max()  # dependence is no small part


def test_gain_for_absolute_scores(state):
    context, goal = state(12).context, Goal.parse("scores")
    g, own = context.covariance, context.gain_variance
    spread = np.diag(context.scores.covariance)
    expected = [sum(spread[a] * g[d, a] ** 2 for a in range(5)) / own[d] if own[d] else 0.0 for d in range(len(own))]
    np.testing.assert_allclose(POLICIES["gain"](context, goal), expected)


def test_gain_for_relevant_documents_is_the_expected_gain(state):
    some = state(12, model=HIERARCHICAL, goal="relevant")
    frame = some.prediction.relevance.to_frame()
    np.testing.assert_allclose(POLICIES["gain"](some.context, some.goal), frame["mean"])
    open_ = frame[~frame["judged"]]["mean"]
    assert some.next(3).pairs.tolist() == open_.sort_values(ascending=False, kind="stable").index[:3].tolist()


def test_variance_and_uncertain(state):
    context = state(12, model=HIERARCHICAL).context
    has, spread = context.retrieved.toarray(), np.diag(context.scores.covariance)
    np.testing.assert_allclose(POLICIES["variance"](context, RANKING), has.T @ spread)
    value = POLICIES["uncertain"](context, RANKING)
    assert not value[context.judged].any()
    by_draws = context.relevance.moments(context.gains)[0].var(axis=0) + context.gain_moments[1]
    assert np.corrcoef(value, by_draws)[0, 1] > 0.98


def test_depth_is_the_order_of_pooling(state):
    begun = state(policy="depth")
    runs, chosen = begun.judging.runs, begun.next(len(begun.judging.pool)).pairs
    best = {int(p): runs.depth for p in chosen}
    for (_, _, rank), pair in np.ndenumerate(runs.pairs):
        best[int(pair)] = min(best[int(pair)], rank)
    assert chosen.tolist() == sorted(best, key=lambda p: (best[p], p))


def test_random_is_one_order_for_the_whole_campaign(state):
    first, later = state(policy="random"), state(12, policy="random")
    order = first.next(1000).pairs
    assert sorted(order) == list(range(len(first.judging.pool)))
    assert later.next(1000).pairs.tolist() == [p for p in order if not later.prediction.relevance.certain[p]]
    assert state(policy="random", seed=1).next(1000).pairs.tolist() != order.tolist()


def test_mtf_turns_from_the_run_that_disappoints(tiny):
    # c's first document was not relevant, a's and b's was: theirs come first now.
    assert at_tiny(tiny, judged={"d3": 0, "d1": 1}, policy="mtf").next(2).pairs.tolist() == [1, 3]
    assert at_tiny(tiny, judged={"d3": 1, "d1": 0}, policy="mtf").next(2).pairs.tolist() == [3, 1]
    assert at_tiny(tiny, policy="mtf").next(4).pairs.tolist() == [0, 1, 2, 3]  # by rank, then run


def test_bandit_goes_by_the_mean_reward(tiny):
    assert at_tiny(tiny, judged={"d3": 1, "d1": 0}, policy="bandit").next(2).pairs.tolist() == [3, 1]
    assert at_tiny(tiny, judged={"d3": 0, "d1": 1}, policy="bandit").next(2).pairs.tolist() == [1, 3]


def test_the_latest_document_counts_most_for_the_bandit(full):
    # Two runs with one relevant document each, the first one's later: it is the better arm.
    from probeval.data import Collection, as_runs

    runs = as_runs(
        {
            "early": {"q": {"a1": 3.0, "a2": 2.0, "a3": 1.0}},
            "late": {"q": {"b1": 3.0, "b2": 2.0, "b3": 1.0}},
        }
    )
    judged = Judgments.rows(["q"] * 4, ["a1", "a2", "b1", "b2"], [1, 0, 0, 1])
    campaign = Collection("two", runs, judged)
    judging = Judging.of(campaign, FallbackModel([Uniform()]), "P@3", policy="bandit", scale=Scale.binary())
    query, doc = judging.pool.label(int(judging.begin().next(1).pairs[0]))
    assert (query, doc) == ("q", "b3")


def test_runs_take_turns_over_queries(state):
    for policy in ("mtf", "bandit"):
        begun = state(policy=policy)
        query = begun.judging.pool.query[begun.next(8).pairs]
        assert sorted(query[:4]) == sorted(query[4:]) == [0, 1, 2, 3]


def test_comparisons_of_draws_have_the_density_of_their_confidence(state):
    some = state(12, metric="nDCG@5")
    assert some.scores.family == "empirical"
    _, sd = some.scores.difference_moments()
    weights = comparison_weights(some.context, RANKING)
    better = some.ranking.p_better
    a, b = 0, 3
    middle = better[a, b] + (1 - better[a, b] - better[b, a]) / 2
    assert weights[a, b] == pytest.approx(norm.pdf(norm.ppf(middle)) / sd[a, b] ** 2)
    np.testing.assert_allclose(weights, weights.T)
    assert not np.diag(weights).any()


def test_no_policy_of_that_name():
    with pytest.raises(SelectionError, match=r"No policy 'gian': random, .*gain\. Did you mean 'gain'\?"):
        find_policy("gian")


def test_a_policy_from_outside():
    def by_pool(context, goal):
        """In the order of the pool.

        More of it.
        """
        return -np.arange(len(context.runs.pool), dtype=float)

    made = register_policy(by_pool)
    try:
        assert made is POLICIES["by-pool"] is find_policy("by-pool")
        assert (made.summary, made.explores) == ("In the order of the pool", 0.0)
        again = register_policy(by_pool)  # as when a notebook runs a cell again
        assert POLICIES["by-pool"] is again is not made
    finally:
        del POLICIES["by-pool"]
    with pytest.raises(SelectionError, match=r"gain is a policy of probeval\. Give yours another name\."):
        register_policy(Policy("gain", "", by_pool))
    with pytest.raises(SelectionError, match="The name of a policy must not be empty or have a colon, got 'a:b'"):
        register_policy(Policy("a:b", "", by_pool))


def test_every_policy_says_what_it_is():
    assert all(name == policy.name == str(policy) and policy.summary for name, policy in POLICIES.items())
    assert {name: policy.explores for name, policy in POLICIES.items() if policy.explores} == {"gain": 0.1}
    assert [name for name, policy in POLICIES.items() if policy.at_random] == ["random"]
    assert [name for name, policy in POLICIES.items() if policy.joint_value] == ["gain"]


def test_lara_asks_for_the_most_uncertain_label(full):
    pool = full.runs.top(5).pool
    label = np.random.default_rng(3).integers(0, 3, len(pool)).astype(float)
    label[:3] = 0, 1, 2
    campaign = replace(full, judgments=None, labels=LabelTable(pool, ("llm",), label[:, None]))
    model = choose_model("calibrated:llm", campaign, scale=Scale.graded(2)).model
    judging = Judging.of(campaign, model, "DCG@5", policy="lara", scale=Scale.graded(2), explore=0)
    # Nothing judged: a label is one grade off, either way, with probability .1 each.
    state = judging.begin()
    by_label = {0: entropy([0.9, 0.1]), 1: entropy([0.1, 0.8, 0.1]), 2: entropy([0.1, 0.9])}
    value = POLICIES["lara"](state.context, RANKING)
    np.testing.assert_allclose(value, [by_label[x] for x in label])
    assert state.next(2).pairs.tolist() == np.flatnonzero(label == 1)[:2].tolist()  # ties in the order of the pool
    # Judged pairs whose label is 2 have all three grades: this label is now the most uncertain.
    twos = np.flatnonzero(label == 2)[:3]
    state = judging.state(Judgments.coded(pool, twos, np.array([0.0, 1.0, 2.0])))
    chance = np.array([1, 1, 2]) / 4  # one agreeing judgment is added
    slip = np.array([[0.9, 0.1, 0], [0.1, 0.8, 0.1], [0, 0.1, 0.9]])
    value = POLICIES["lara"](state.context, RANKING)
    np.testing.assert_allclose(value[label == 2], entropy(chance @ slip))
    assert label[state.next(1).pairs[0]] == 2
    assert state.next(1).pairs[0] not in twos


def test_lara_averages_over_a_posterior(state):
    context = state(6, model=HIERARCHICAL).context
    chance = context.relevance.probability.mean(axis=0)
    slip = np.array([[0.9, 0.1, 0], [0.1, 0.8, 0.1], [0, 0.1, 0.9]])
    np.testing.assert_allclose(POLICIES["lara"](context, RANKING), entropy((chance @ slip).T))
