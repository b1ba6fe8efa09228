"""Whose grades count: one assessor, the consensus, or those on which all agree."""

import numpy as np
import pytest

from probeval.data import Collection, Judgments, LabelTable, Pool, Scale, as_runs, with_reference
from probeval.errors import DataError

RUNS = as_runs({"a": {"q": {"d1": 3.0, "d2": 2.0, "d3": 1.0}}})
EVENTS = Judgments.rows(
    ["q"] * 6,
    ["d1", "d1", "d2", "d2", "d3", "d1"],
    [2, 1, 1, 1, 0, 0],
    assessors=["ann", "bob", "ann", "bob", "bob", "bob"],
)
SCALE = Scale.graded(2)


def test_grades_on_which_assessors_agree_are_certain_and_others_have_limits():
    assert EVENTS.codes_on(RUNS.pool, SCALE, rule="unanimous").tolist() == [-1, 1, 0]
    low, high = EVENTS.on(RUNS.pool).limits(SCALE)
    assert (low.tolist(), high.tolist()) == ([0, -1, -1], [2, -1, -1])  # the latest grade of bob is 0


def test_one_assessor_never_differs():
    alone = EVENTS.by("bob")
    assert alone.codes_on(RUNS.pool, SCALE, rule="unanimous").tolist() == [0, 1, 0]
    assert (alone.on(RUNS.pool).limits(SCALE)[1] < 0).all()


def test_pairs_that_nobody_judged_stay_unjudged_by_the_unanimous_rule():
    sampled = Judgments.rows(["q", "q"], ["d1", "d1"], [-1, -1], assessors=["ann", "bob"])
    assert (sampled.codes_on(RUNS.pool, SCALE, rule="unanimous") < 0).all()


def test_the_grades_of_the_reference_are_judgments_and_those_of_others_labels():
    found = with_reference(Collection("c", RUNS, EVENTS), "ann")
    assert found.judgments.codes_on(RUNS.pool, SCALE).tolist() == [2, 1, -1]
    assert found.labels.sources == ("bob",)
    np.testing.assert_array_equal(found.labels.on(RUNS.pool).values[:, 0], [0, 1, 0])
    assert (found.labels.observers[0].kind, found.labels.observers[0].family) == ("person", "assessors")
    assert not found.consensus


def test_for_the_consensus_every_grade_is_a_label_beside_those_of_machines():
    machine = LabelTable(Pool.of(["q"], ["d2"]), ("llm",), np.array([[1.0]]))
    found = with_reference(Collection("c", RUNS, EVENTS, labels=machine), "consensus")
    assert found.consensus
    assert found.judgments is None
    assert found.labels.sources == ("llm", "ann", "bob")


def test_without_a_reference_nothing_changes():
    collection = Collection("c", RUNS, EVENTS)
    assert with_reference(collection, None) is collection


def test_an_unknown_reference_is_an_error_that_names_the_assessors():
    with pytest.raises(DataError, match=r"No assessor 'anne': ann, bob, consensus\. Did you mean 'ann'\?"):
        with_reference(Collection("c", RUNS, EVENTS), "anne")


def test_a_reference_needs_named_assessors():
    plain = Judgments.rows(["q"], ["d1"], [1])
    with pytest.raises(DataError, match="the judgments name none"):
        with_reference(Collection("c", RUNS, plain), "ann")
