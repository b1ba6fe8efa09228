"""A problem has the evidence of its pairs, and of each part of its queries, by position."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from probeval.data import Collection, Judgments, LabelTable, Scale
from probeval.data.problem import Grades, Problem
from probeval.relevance import synthetic_campaign

SCALE = Scale.graded(2)


@pytest.fixture(scope="module")
def whole() -> Collection:
    """A collection with groups, vectors, and labels of some pairs."""
    made = synthetic_campaign(seed=4, systems=4, queries=6, depth=5, dimensions=3)
    pairs = np.arange(1, len(made.runs.pool), 2)
    keep = np.zeros(len(made.runs.pool), dtype=bool)
    keep[pairs] = True
    return replace(made, labels=LabelTable(made.runs.pool.take(keep), ("bot",), pairs[:, None].astype(float)))


@pytest.mark.parametrize("depth", [1, 3, 5])
def test_every_array_follows_the_pool(whole, depth):
    problem = whole.problem(depth=depth, scale=SCALE)
    labels = {whole.labels.pool.label(i): v for i, v in enumerate(whole.labels.values[:, 0])}
    grades = {whole.judgments.pool.label(i): v for i, v in enumerate(whole.judgments.grades())}
    sources = dict(zip(whole.metadata.docs, whole.metadata.groups["source"], strict=True))
    code = {name: i for i, name in enumerate(sorted(set(sources.values())))}
    for pair in range(len(problem.pool)):
        key = problem.pool.label(pair)
        np.testing.assert_equal(problem.labels.values[pair, 0], labels.get(key, np.nan))
        assert problem.grades.codes[pair] == grades[key]
        assert problem.groups["source"].doc[pair] == code[sources[key[1]]]
        assert whole.vectors.docs[problem.vectors.row[pair]] == key[1]
    for at, pair in enumerate(problem.place):
        assert pair < 0 or problem.pool.label(pair) == problem.deep.pool.label(at)


def test_a_part_is_the_problem_of_its_queries(whole):
    problem, at = whole.problem(depth=3, scale=SCALE), np.array([1, 4])
    part = problem.part(at)
    alone = Problem.of(replace(whole, runs=whole.runs.at(at)), depth=3, scale=SCALE, positions=at)
    assert part.pool == alone.pool
    assert part.positions.tolist() == [1, 4]
    np.testing.assert_array_equal(part.labels.values, alone.labels.values)
    np.testing.assert_array_equal(part.grades.codes, alone.grades.codes)
    np.testing.assert_array_equal(part.groups["source"].doc, alone.groups["source"].doc)
    np.testing.assert_array_equal(part.vectors.row, alone.vectors.row)
    assert part.labels.observers == problem.labels.observers


def test_judged_pairs_outside_the_pool_are_counted(whole):
    problem = whole.problem(depth=1, scale=SCALE)
    outside = [whole.judgments.pool.label(i) for i in range(len(whole.judgments.pool))]
    inside = {problem.pool.label(i) for i in range(len(problem.pool))}
    for position, query in enumerate(problem.pool.queries):
        mine = [k for k in outside if k[0] == query and k not in inside]
        assert problem.grades.beyond[position, 0] == len(mine)


def test_the_median_of_a_pair_does_not_depend_on_others():
    """Junk and the lowest grade differ as grades and are one code."""
    rows = (["q", "q"], ["d1", "d1"], [-2, 0])
    alone = Judgments.rows(*rows, assessors=["a", "b"])
    more = Judgments.rows(*(x + y for x, y in zip(rows, (["q", "q"], ["d2", "d2"], [0, 2]), strict=True)),
                          assessors=["a", "b", "a", "b"])  # fmt: skip
    for judged in (alone, more):
        assert Grades.of(judged, more.pool, SCALE).median[0] == 0


def test_the_same_judgments_give_the_same_problem(whole):
    problem = whole.problem(depth=3, scale=SCALE)
    assert problem.with_judgments(whole.judgments) is problem
    none = problem.with_judgments(None)
    assert (none.grades.codes < 0).all()
    np.testing.assert_array_equal(none.with_judgments(whole.judgments).grades.codes, problem.grades.codes)
