"""What a measure looks at: grades by rank, and what each query had to offer."""

from __future__ import annotations

import numpy as np
import pytest

from probeval.data import ABSENT, POOLED, UNJUDGED, Scale, as_judgments, as_runs
from probeval.data.scale import count_at_least
from probeval.errors import DataError, ScaleError
from probeval.metrics import Lists
from probeval.metrics.lists import gather

NAN = float("nan")


def test_what_a_query_offers_counts_the_pairs_of_at_least_each_grade():
    rng = np.random.default_rng(5)
    codes, query = rng.integers(-3, 4, (2, 3, 40)).astype(np.int16), rng.integers(0, 5, 40)
    found = count_at_least(codes, query, 5, 4)
    assert found.shape == (2, 3, 5, 4)
    for i in np.ndindex(2, 3):
        for q in range(5):
            for grade in range(4):
                assert found[(*i, q, grade)] == sum(codes[i][query == q] >= grade)


def test_what_is_offered_has_a_row_for_a_query_without_pairs():
    np.testing.assert_array_equal(
        count_at_least(np.array([1, 0], dtype=np.int16), np.array([2, 2]), 4, 2)[[0, 1, 3]], 0
    )


def test_gather_puts_each_pairs_code_at_its_ranks():
    codes = np.array([[0, 1, UNJUDGED], [2, 2, POOLED]], dtype=np.int16)
    pairs = np.array([[[2, 0], [1, -1]]])
    np.testing.assert_array_equal(gather(codes, pairs), [[[[UNJUDGED, 0], [1, ABSENT]]], [[[POOLED, 2], [2, ABSENT]]]])


def test_grades_by_query_and_rank():
    lists = Lists.of_grades([[2, NAN, 0], [1, 1, -1]], Scale.graded(2), known=[[2, 2, 0], [1, 1, 0]])
    np.testing.assert_array_equal(lists.codes, [[[2, UNJUDGED, 0], [1, 1, POOLED]]])
    np.testing.assert_array_equal(lists.relevant_counts, [[3, 2, 2], [3, 2, 0]])
    np.testing.assert_array_equal(lists.unjudged, [[[False, True, False], [False, False, True]]])
    assert lists.retrieved.all()
    assert lists.depth == 3
    np.testing.assert_array_equal(lists.n_relevant(1), [[2, 2]])
    np.testing.assert_array_equal(lists.n_relevant(2), [[2, 0]])
    np.testing.assert_array_equal(lists.n_relevant(3), [[0, 0]])
    np.testing.assert_array_equal(lists.n_relevant(-np.inf), [[3, 3]])
    np.testing.assert_array_equal(lists.values(np.array([10.0, 20, 30])), [[[30, 0, 10], [20, 20, 0]]])


def test_the_top_keeps_what_the_query_had_to_offer():
    lists = Lists.of_grades([[0, 1, 1]], Scale.binary())
    assert lists.top(None) is lists
    assert lists.top(9) is lists
    cut = lists.top(2)
    np.testing.assert_array_equal(cut.codes, [[[0, 1]]])
    np.testing.assert_array_equal(cut.relevant_counts, lists.relevant_counts)


def test_filling_touches_only_the_unjudged():
    lists = Lists(Scale.binary(), np.array([[[1, UNJUDGED, POOLED, 0, ABSENT]]], dtype=np.int16), np.array([[2, 1]]))
    np.testing.assert_array_equal(lists.filled(1).codes, [[[1, 1, 1, 0, ABSENT]]])
    np.testing.assert_array_equal(lists.codes, [[[1, UNJUDGED, POOLED, 0, ABSENT]]])


def test_lists_and_supply_must_fit():
    with pytest.raises(DataError, match="cannot have relevant_counts"):
        Lists(Scale.binary(), np.zeros((1, 2, 3), dtype=np.int16), np.zeros((1, 2), dtype=int))
    with pytest.raises(ScaleError, match="Grade 3 is not on the scale graded:2"):
        Lists.of_grades([[3]], Scale.graded(2))


def test_runs_meet_judgments_on_the_queries_that_have_both():
    runs = as_runs({"a": {"q1": {"x": 2, "y": 1}, "q2": {"x": 1}}, "b": {"q3": {"z": 1}, "q1": {"z": 5}}})
    judged = as_judgments({"q1": {"x": 0, "z": 2, "w": 1}, "q3": {"u": 1}, "q4": {"x": 1}})
    lists, queries = Lists.judged(runs, judged, Scale.graded(2))
    assert list(queries) == ["q1", "q3"]  # q2 has no judgment, q4 no answer
    np.testing.assert_array_equal(lists.codes, [[[0, UNJUDGED], [ABSENT, ABSENT]], [[2, ABSENT], [UNJUDGED, ABSENT]]])
    np.testing.assert_array_equal(lists.relevant_counts, [[3, 2, 1], [1, 1, 0]])


def test_a_query_with_nothing_but_pooled_documents_is_not_judged():
    runs = as_runs({"a": {"q1": {"x": 1}, "q2": {"x": 1}}})
    _, queries = Lists.judged(runs, as_judgments({"q1": {"x": -1}, "q2": {"x": 0}}), Scale.binary())
    assert list(queries) == ["q2"]


def test_no_query_in_common_is_an_error_that_names_some():
    runs = as_runs({"a": {"q1": {"x": 1}}})
    with pytest.raises(DataError, match=r"no query in common: the runs answer 'q1', the judgments are for 'Q1'\."):
        Lists.judged(runs, as_judgments({"Q1": {"x": 1}}), Scale.binary())
    with pytest.raises(DataError, match=r"for 't0', 't1', 't2', \.\.\."):
        Lists.judged(runs, as_judgments({f"t{i}": {"x": 1} for i in range(4)}), Scale.binary())
