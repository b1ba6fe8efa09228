"""Goals: their grammar, the comparisons that they ask for, and how sure their answers are."""

from __future__ import annotations

import numpy as np
import pytest

from probeval.data import Scale
from probeval.errors import SatisfactionError, SelectionError
from probeval.metrics import parse
from probeval.relevance import FallbackModel, Uniform
from probeval.scores import Joint, Scores
from probeval.selection import GOALS, Goal, Judging

SD = 0.05


def ranking(*means):
    """Systems a, b, .. with these means, independent and alike in spread."""
    n = len(means)
    by_query = np.repeat(np.array(means, dtype=float)[:, None], 4, axis=1)
    joint = Joint(by_query[:, 0], np.eye(n) * SD**2, np.eye(n), by_query, by_query * 0)
    queries = np.array(list("wxyz"), dtype=object)
    return Scores(
        parse("DCG@5"), tuple("abcdef"[:n]), queries, joint, "moments", "collection", "normal", 10, 0
    ).ranking()


RANKED = ranking(0.3, 0.5, 0.4, 0.1)  # b, c, a, d


@pytest.mark.parametrize("text", ["ranking", "best", "top:3", "pair:bm25,dense", "scores", "success", "relevant"])
def test_a_goal_is_its_text(text):
    goal = Goal.parse(text)
    assert str(goal) == text
    assert Goal.parse(goal) is goal
    assert goal.kind in {name.split(":")[0] for name in GOALS}


@pytest.mark.parametrize(
    "text", ["", "rank", "top", "top:", "top:0", "top:x", "best:2", "pair:a", "pair:a,", "pair:a,a", "pair:a,b,c"]
)
def test_what_is_no_goal(text):
    with pytest.raises(SelectionError, match=r"^No goal '.*': ranking, best, top:N, pair:A,B, scores, success, rel"):
        Goal.parse(text)


def test_a_slip_gets_a_hint():
    with pytest.raises(SelectionError, match=r"Did you mean 'ranking'\?$"):
        Goal.parse("rankng")


@pytest.mark.parametrize(
    ("goal", "asked"),
    [
        ("ranking", {"ab", "ac", "ad", "bc", "bd", "cd"}),
        ("scores", {"ab", "ac", "ad", "bc", "bd", "cd"}),
        ("success", {"ab", "ac", "ad", "bc", "bd", "cd"}),
        ("best", {"ab", "bc", "bd"}),
        ("top:1", {"ab", "bc", "bd"}),
        ("top:2", {"ab", "bd", "ac", "cd"}),
        ("top:4", set()),
        ("pair:c,a", {"ac"}),
    ],
)
def test_comparisons_that_matter(goal, asked):
    matters = Goal.parse(goal).comparisons(RANKED)
    np.testing.assert_array_equal(matters, matters.T)
    assert not np.diag(matters).any()
    assert {f"{'abcd'[i]}{'abcd'[j]}" for i, j in np.argwhere(np.triu(matters))} == asked


@pytest.mark.parametrize(
    ("goal", "sides", "closest"),
    [
        ("ranking", (0, 0, 0, 0), None),
        ("scores", (0, 0, 0, 0), None),
        ("best", (-1, 1, -1, -1), (1, 2)),
        ("top:2", (-1, 1, 1, -1), (2, 0)),
        ("top:4", (1, 1, 1, 1), None),
        ("pair:d,a", (-1, 0, 0, 1), (3, 0)),
    ],
)
def test_sides_that_are_compared(goal, sides, closest):
    asked = Goal.parse(goal)
    assert asked.sides(RANKED).tolist() == list(sides)
    assert asked.has_sides(4) == any(sides)
    assert asked.closest(RANKED) == closest


def test_the_order_of_two_systems_has_sides():
    two = ranking(0.3, 0.5)
    assert Goal.parse("ranking").sides(two).tolist() == [-1, 1]
    assert Goal.parse("ranking").closest(two) == (1, 0)
    assert not Goal.parse("scores").sides(two).any()


def test_success_is_by_the_mapping_of_the_measure():
    success, broad = Goal.parse("success"), Scale.graded(2)
    assert success.compares
    assert success.orders_all
    assert success.metric(parse("CG@5"), broad) == parse('PSucc(mapping="CGl@5/broad")')
    named = parse('PSucc(mapping="GAP@5/fine")')
    assert success.metric(named, broad) == named
    assert Goal.parse("ranking").metric(parse("CG@5"), broad) == parse("CG@5")
    with pytest.raises(SatisfactionError, match=r"^goal success: no mapping .* for nDCG@10 on .* with --mapping"):
        success.metric(parse("nDCG@10"), broad)


def test_judging_for_success_is_by_p_success(full):
    options = {"scale": Scale.graded(2), "draws": 100}
    by_goal = Judging.of(full, FallbackModel([Uniform()]), "DCG@5", goal="success", **options)
    assert by_goal.metric == parse('PSucc(mapping="DCGl@5/broad")')
    assert by_goal.depth == 5
    by_metric = Judging.of(full, FallbackModel([Uniform()]), "DCG@5", **options)
    later = Judging.choosing(by_metric, "gain", goal="success")
    assert (later.metric, later.goal) == (by_goal.metric, by_goal.goal)
    assert Judging.choosing(by_goal, "mtc", goal="success").metric == by_goal.metric
    np.testing.assert_array_equal(later.begin().scores.mean, by_goal.begin().scores.mean)


def test_confidence_is_that_of_what_matters():
    sure = RANKED.pair_confidence
    a, b, c, d = range(4)
    assert Goal.parse("ranking").confidence(RANKED) == pytest.approx(RANKED.confidence)
    assert Goal.parse("pair:c,a").confidence(RANKED) == pytest.approx(sure[a, c])
    assert Goal.parse("top:2").confidence(RANKED) == pytest.approx(
        np.mean([sure[a, b], sure[b, d], sure[a, c], sure[c, d]])
    )
    assert Goal.parse("top:4").confidence(RANKED) == 1.0  # all of them: nothing to tell
    assert Goal.parse("best").confidence(RANKED) == RANKED.p_near_best.max() == RANKED.p_near_best[b]


def test_some_goals_are_not_about_comparisons():
    assert {k for k in ("ranking", "best", "scores", "relevant") if Goal.parse(k).compares} == {"ranking", "best"}


def test_a_system_that_is_not_there(full):
    with pytest.raises(SelectionError, match=r"^No system 'system-1' to compare\. Did you mean 'system-01'\?$"):
        Judging.of(full, FallbackModel([Uniform()]), "DCG@5", goal="pair:system-1,system-02", policy="random")
