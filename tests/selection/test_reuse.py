"""What the judgments of a campaign say of a later system, and how many more it needs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from probeval.data import Collection, Judgments, Scale, as_judgments, as_runs
from probeval.metrics import measure
from probeval.relevance import FallbackModel, Uniform, load_card
from probeval.relevance.effects.system import LATER
from probeval.selection import Judging, judge_later, measure_later, narrowing
from probeval.selection.reuse import NEWCOMER, contributed, newcomer_interval, without

UNIFORM = FallbackModel([Uniform()])
Z = 1.959963984540054


def campaign():
    """Two first systems on two queries, everything judged, and a later one with two documents of its own."""
    runs = as_runs(
        {
            "a": {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d1": 2.0, "d2": 1.0}},
            "b": {"q1": {"d2": 2.0, "d1": 1.0}, "q2": {"d2": 2.0, "d1": 1.0}},
            "late": {"q1": {"d1": 2.0, "d3": 1.0}, "q2": {"d4": 2.0, "d1": 1.0}},
        }
    )
    return Collection("small", runs, as_judgments({"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 0, "d2": 1}}))


def begun(collection, metric="CG@2", model=UNIFORM):
    return Judging.of(collection, model, metric, scale=Scale.binary(), depth=2).begin()


def test_independent_pairs_by_hand():
    # Two unjudged documents, each with variance 1/4, weigh 1/4 in the mean score over two ranks and two queries.
    order = narrowing(begun(campaign(), "P@2"), "late")
    each = (1 / 4) ** 2 / 4
    np.testing.assert_allclose(order.halfwidth, NEWCOMER * Z * np.sqrt([2 * each, each, 0.0]))
    assert order.needed(order.halfwidth[0]) == 0
    assert order.needed(order.halfwidth[1]) == 1
    assert order.needed(0.0) == 2


def test_the_heavier_document_comes_first():
    state = begun(campaign(), "DCG@2")
    pairs = narrowing(state, "late").pairs
    assert [state.judging.pool.label(p)[1] for p in pairs] == ["d4", "d3"]  # at ranks 1 and 2


def test_at_most_so_many_documents_are_ordered():
    order = narrowing(begun(campaign(), "P@2"), "late", most=1)
    assert len(order.pairs) == 1
    assert order.needed(0.0) is None


def test_the_promise_is_kept_by_a_model_with_a_posterior(state, full):
    start = state(8, model="text-hierarchical")
    system = start.scores.systems[0]
    order = narrowing(start, system)
    assert (np.diff(order.halfwidth) <= 1e-12).all()
    low, high = newcomer_interval(start.scores[system])
    assert order.halfwidth[0] == pytest.approx((high - low) / 2)
    assert order.halfwidth[-1] == 0
    pool = start.judging.pool
    codes = full.judgments.codes_on(pool, Scale.graded(2))
    known = start.judgments.on(pool)
    for n in (3, len(order.pairs)):
        at = order.pairs[:n]
        judged = Judgments.coded(pool, np.append(known.pair, at), np.append(known.grade, codes[at]))
        low, high = newcomer_interval(start.after(judged).scores[system])
        assert (high - low) / 2 == pytest.approx(order.halfwidth[n], rel=0.25, abs=1e-9)


def test_the_interval_of_a_newcomer_is_wider_and_stays_within_the_measure(state):
    scores = state(8).scores
    for system in scores.systems:
        mean, (low, high) = scores[system].mean(), scores[system].interval()
        wide = newcomer_interval(scores[system])
        assert wide == pytest.approx((max(mean - NEWCOMER * (mean - low), 0), min(mean + NEWCOMER * (high - mean), 1)))


def test_a_later_system_by_the_judgments_alone():
    collection = campaign()
    found = measure_later(measure(collection.runs, collection.judgments, "P@2"), ("a", "b"), ("late",))[0]
    assert (found.score, found.lower, found.upper) == (0.25, 0.25, 0.75)
    assert (found.rank, found.judged) == (3, 0.5)


def test_a_later_system_by_the_model():
    found = judge_later(begun(campaign(), "P@2"), ("a", "b"), ("late",))[0]
    assert found.mean == pytest.approx(0.5)  # d3 and d4 are a coin each
    assert found.rank == 1  # a and b have 1/2 each
    assert (found.rank_lower, found.rank_upper) == (1, 3)
    assert found.best == "a"
    assert found.p_better == pytest.approx(0.5)
    assert found.target == 0
    assert found.needed == 2
    assert found.pairs["doc"].tolist() == ["d3", "d4"]
    assert found.pairs["rank"].tolist() == [2, 1]
    assert found.pairs["halfwidth"].iloc[-1] == 0


def test_contributions_and_what_is_left_without_them():
    collection = campaign()
    pool = collection.runs.pool
    has = np.zeros((3, len(pool)), dtype=bool)
    system, query, rank = np.nonzero(collection.runs.retrieved)
    has[system, collection.runs.pairs[system, query, rank]] = True
    assert [pool.label(p)[1] for p in np.flatnonzero(contributed(has, np.array([False, False, True])))] == ["d3", "d4"]
    own = contributed(has, np.array([True, True, False]))
    kept = without(collection.judgments, pool, own)
    assert kept.to_frame()["doc"].tolist() == ["d1", "d1"]


def test_the_prior_of_a_later_systems_quality_is_wider_and_no_other(full):
    problem = full.problem(depth=5, scale=Scale.graded(2))
    model = load_card("text-hierarchical").model
    name = full.runs.systems[1]
    plain, wide = (replace(model, later=later).design(problem).standards.overlap for later in ((), (name,)))
    np.testing.assert_array_equal(wide[1], LATER * plain[1])
    np.testing.assert_array_equal(np.delete(wide, 1, axis=0), np.delete(plain, 1, axis=0))
    nobody = replace(model, later=("somebody else",)).design(problem).standards.overlap
    np.testing.assert_array_equal(nobody, plain)


def test_a_later_system_that_does_better_than_expected_is_believed_sooner(full):
    """Its judged documents are the best there are: the expected score is higher with a wider prior."""
    model, last = load_card("text-hierarchical").model, full.runs.systems[-1]
    runs, pool = full.runs, full.runs.pool
    mine = np.unique(runs.pairs[-1][runs.pairs[-1] >= 0])[::2]
    others = np.setdiff1d(np.arange(len(pool)), mine)[::9]
    judgments = Judgments.coded(
        pool, np.append(mine, others), np.append(np.full(len(mine), 2.0), np.zeros(len(others)))
    )
    given = replace(full, judgments=judgments)
    first, then = (
        Judging.of(given, replace(model, later=later), "DCG@5", scale=Scale.graded(2), depth=5).begin().scores
        for later in ((), (last,))
    )
    assert then[last].mean() > first[last].mean() + 0.002
