"""Decisions with judgments missing: bounds by brute force, rules, and the probability that replaces them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from probeval.data import Scale, as_judgments, as_runs
from probeval.errors import ReliabilityError
from probeval.metrics import Lists, measure, parse
from probeval.metrics.lists import gather
from probeval.relevance import synthetic_campaign
from probeval.reliability.incomplete import difference_bounds, probability_significant, rules
from probeval.reliability.paired import differences, pair_index, t_test
from probeval.reliability.twoway import signed, two_way

SCALE = Scale.graded(2)


def campaign():
    lists = {"a": "vwxy", "b": "xvzu", "c": "tuvw"}
    return as_runs({s: {q: {d: 9 - i for i, d in enumerate(docs)} for q in "pq"} for s, docs in lists.items()})


def every_truth(runs, codes, metric):
    """The scores of all systems under every way to judge what is open, shape (way, system, query)."""
    open_ = np.flatnonzero(codes < 0)
    ways = []
    for grades in product(range(len(SCALE)), repeat=len(open_)):
        full = codes.copy()
        full[open_] = grades
        relevant_counts = np.stack(
            [(full[runs.pool.query == q][:, None] >= np.arange(3)).sum(axis=0) for q in range(2)]
        )
        ways.append(metric.scores(Lists(SCALE, gather(full, runs.pairs), relevant_counts)))
    return np.array(ways)


@pytest.mark.parametrize(
    ("name", "exact"),
    [("CG@4", True), ("DCG@3", True), ("RBP@4", True), ("P@2", True), ("nDCG@4", False), ("AP@4", False)],
)
def test_bounds_of_differences(name, exact):
    runs, metric = campaign(), parse(name)
    codes = np.random.default_rng(3).integers(0, 3, size=len(runs.pool)).astype(np.int16)
    codes[[0, 2, 5, 9, 11]] = -1
    low, high = difference_bounds(runs, codes, metric, SCALE)
    gap = differences(every_truth(runs, codes, metric), *pair_index(3))
    if exact:
        np.testing.assert_allclose(low, gap.min(axis=0), atol=1e-12)
        np.testing.assert_allclose(high, gap.max(axis=0), atol=1e-12)
    else:
        assert (low <= gap.min(axis=0) + 1e-12).all()
        assert (high >= gap.max(axis=0) - 1e-12).all()


def test_shared_documents_cancel():
    runs = as_runs({"a": {"q": {"x": 2, "y": 1}}, "b": {"q": {"y": 2, "x": 1}}})
    low, high = difference_bounds(runs, np.array([-1, -1], dtype=np.int16), parse("CG@2"), SCALE)
    assert low[0, 0] == high[0, 0] == 0
    low, high = difference_bounds(runs, np.array([-1, -1], dtype=np.int16), parse("DCG@2"), SCALE)
    assert low[0, 0] == -high[0, 0] < 0


def test_all_judged_leaves_nothing_open(small):
    metric = parse("DCG@5")
    runs = small.runs.top(5)
    scale = small.judgments.scale()
    low, high = difference_bounds(runs, small.judgments.codes_on(runs.pool, scale), metric, scale)
    scores = measure(runs, small.judgments, metric, scale=scale).values
    np.testing.assert_allclose(low, high, atol=1e-12)
    np.testing.assert_allclose(low, differences(scores, *pair_index(len(scores))), atol=1e-12)


def test_the_four_rules():
    rng = np.random.default_rng(1)
    noise = rng.normal(0, 0.05, size=(5, 20))
    gap = noise + np.array([[-0.5], [0.5], [0.0], [0.2], [0.0]])
    width = np.array([[0.1], [0.1], [0.001], [0.5], [0.5]])
    found = rules(gap - width, gap + width, estimate=gap.mean(axis=1), threshold=0.1)
    np.testing.assert_array_equal(found.rule, [1, 2, 3, 4, 0])
    np.testing.assert_array_equal(found.sign, [-1, 1, 0, 1, 0])
    silent = rules(gap - width, gap + width)
    np.testing.assert_array_equal(silent.rule, [1, 2, 3, 0, 0])


def test_rules_refuse():
    gap = np.zeros((1, 3))
    with pytest.raises(ReliabilityError, match="give estimate="):
        rules(gap, gap, threshold=0.1)
    with pytest.raises(ReliabilityError, match="t, wilcoxon or sign"):
        rules(gap, gap, test="bootstrap")
    with pytest.raises(ReliabilityError, match="At least one draw"):
        probability_significant([])


def test_rules_and_probabilities_on_a_campaign_judged_in_part():
    made = synthetic_campaign(seed=2, systems=8, queries=30, depth=5)
    runs, metric, scale = made.runs.top(5), parse("CG@5"), made.judgments.scale()
    full = made.judgments.codes_on(runs.pool, scale)
    rng = np.random.default_rng(4)
    fewer, known = (np.where(rng.random(len(full)) < share, full, -1).astype(np.int16) for share in (0.9, 0.99))
    gap = differences(measure(runs, made.judgments, metric, scale=scale).values, *pair_index(8))
    truth = signed(gap.mean(axis=1), t_test(gap)[1])
    decided = rules(*difference_bounds(runs, known, metric, scale))
    said = decided.rule > 0
    assert said.mean() > (rules(*difference_bounds(runs, fewer, metric, scale)).rule > 0).mean()
    assert (decided.sign[said] == truth[said]).mean() > 0.9
    assert two_way(decided.sign, truth).precision > 0.9
    # Draws: what is open gets the grades of other pairs at random.
    drawn = np.where(fewer < 0, rng.choice(full, size=(200, len(full))), fewer).astype(np.int16)
    lists = Lists(scale, gather(drawn, runs.pairs), np.zeros((200, len(runs.queries), len(scale)), dtype=np.int64))
    better, worse = probability_significant([metric.scores(lists)[:100], metric.scores(lists)[100:]])
    assert ((better >= 0) & (better + worse <= 1)).all()
    assert (better[truth == 1] > 0.5).mean() > 0.8
    assert (better + worse)[truth == 0].mean() < 0.3


def test_a_certain_campaign_has_certain_probabilities():
    scores = np.random.default_rng(5).normal([[0.5], [0.3], [0.3]], 0.1, size=(3, 25))
    better, worse = probability_significant([np.stack([scores] * 3)])
    gap = differences(scores, *pair_index(3))
    truth = signed(gap.mean(axis=1), t_test(gap)[1])
    np.testing.assert_array_equal(better, truth == 1)
    np.testing.assert_array_equal(worse, truth == -1)


def test_judgments_of_some_pairs_only():
    runs = campaign()
    judged = as_judgments({"p": {"v": 2, "x": 0}, "q": {"v": 1}})
    codes = judged.codes_on(runs.pool, SCALE)
    low, high = difference_bounds(runs, codes, parse("CG@4"), SCALE)
    assert (low < high).any()
    assert (low <= high).all()
