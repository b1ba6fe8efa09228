"""What looks wrong about input is said; what only looks odd is not."""

from __future__ import annotations

import numpy as np
import pytest

from probeval.data import Judgments, Pool, read_labels, read_runs
from probeval.data.evidence import LabelTable
from probeval.data.suspicions import suspicious_ids, suspicious_judgments, suspicious_labels
from probeval.errors import DataError


def labels(*values: float) -> LabelTable:
    docs = [f"d{i}" for i in range(len(values))]
    return LabelTable(Pool.of(["q"] * len(docs), docs), ("llm",), np.array(values, dtype=float)[:, None])


def judgments(*grades: float) -> Judgments:
    return Judgments.rows(["q"] * len(grades), [f"d{i:03}" for i in range(len(grades))], list(grades))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([0, 1, 2, 3] * 5 + [-1, -1], "2 of 22 are -1, the others are from 0 to 3"),
        ([0, 1, 2, 3] * 5 + [50, 75, 100], "20 are from 0 to 3, 3 from 50 to 100"),
        ([0.2, 0.5, 0.9] * 5 + [2, 3, 4] * 2, "15 are fractions below 1, 6 whole numbers from 2 to 4"),
    ],
)
def test_labels(values, said):
    (line,) = suspicious_labels(labels(*values))
    assert said in line


@pytest.mark.parametrize(
    "values",
    [
        [0, 1, 2, 3, float("nan")] * 5,
        [-1.3, -0.2, 0.4, 2.2, 7.9],  # logits
        [-1, 1, -1, 1, -1],  # two classes
        [0.5, 1, 1.5, 2, 2.5, 3] * 5,  # means of grades
        list(range(0, 101, 5)),
        [0, 1, 2, 5, 9, 30, 120, 500],  # clicks: counts have no gap that most of them keep to
    ],
)
def test_labels_that_are_all_right(values):
    assert not list(suspicious_labels(labels(*values)))


def test_a_stray_grade_is_named_with_its_pair():
    (line,) = suspicious_judgments(judgments(*[0, 1, 2, 3] * 10, 30))
    assert line == (
        "The grade 30 occurs once (query 'q', document 'd040') and makes the scale fine; without it, it is graded:3."
    )
    (line,) = suspicious_judgments(judgments(*[0, 1, 2, 3] * 10, 0.5))
    assert "makes the scale real; without it, it is graded:3" in line


def test_the_highest_grade_is_rare_and_no_slip():
    assert not list(suspicious_judgments(judgments(*[0, 0, 1, 2] * 12, 3)))
    assert list(suspicious_judgments(judgments(*[0, 0, 1, 1] * 60, 2)))  # once in 241: graded:2, or a slip


def test_two_grades_by_one_assessor_are_named_with_their_rows():
    twice = Judgments.rows(["q", "q", "q"], ["a", "b", "a"], [0, 1, 2])
    (line,) = suspicious_judgments(twice)
    assert line == (
        "1 pair has two grades by one assessor, of which the later counts: query 'q', document 'a' has 0 in row 1 and "
        "2 in row 3."
    )
    assert not list(suspicious_judgments(Judgments.rows(["q", "q"], ["a", "a"], [0, 2], assessors=["ann", "bob"])))


@pytest.mark.parametrize(
    ("mine", "theirs", "how"),
    [
        ("Q7", "q7", "upper and lower case"),
        ("7", "007", "leading zeros"),
        ("7.0", "7", "the end '.0'"),
        ("'7'", "7", "quotes"),
        ("topics/7", "7", "what stands before the last '/' or ':'"),
        ("7.txt", "7", "the end after the last '.'"),
    ],
)
def test_ids_that_differ_in_spelling(mine, theirs, how):
    for kind, a, b in (("queries", (mine, "d"), (theirs, "d")), ("documents", ("q", mine), ("q", theirs))):
        pool, runs = (Pool.of([query, "both"], [doc, "e"]) for query, doc in (a, b))
        (line,) = suspicious_ids("labels", pool, runs)
        assert f"1 of 2 {kind} of the labels is not in the runs but for {how}: {mine!r} there, {theirs!r} here." == line


def test_other_queries_and_documents_are_nothing_odd():
    assert not list(
        suspicious_ids("judgments", Pool.of(["q1", "q2"], ["d1", "d9"]), Pool.of(["q1", "q3"], ["d1", "d2"]))
    )


def test_duplicates_are_refused_with_their_rows(tmp_path):
    run, table = tmp_path / "run.csv", tmp_path / "labels.csv"
    run.write_text("system,query,doc,score\na,q1,d1,9\nb,q1,d2,8\na,q1,d2,7\na,q2,d1,6\na,q1,d2,5\n")
    table.write_text("query,doc,llm\nq1,d1,0\nq2,d1,1\nq1,d1,2\n")
    with pytest.raises(DataError, match="document 'd2' twice for query 'q1', in its rows 2 and 4"):
        read_runs(run)
    with pytest.raises(DataError, match=r"two rows label one pair: 1 and 3, document 'd1' of query 'q1'\. Keep one"):
        read_labels(table)


def test_labels_among_the_runs_are_refused_as_such(tmp_path):
    (tmp_path / "bm25.txt").write_text("q1 Q0 d1 1 2.5 bm25\n")
    (tmp_path / "labels.csv").write_text("query,doc,llm\nq1,d1,2\n")
    for given in (tmp_path, tmp_path / "labels.csv"):
        with pytest.raises(DataError, match=r"labels.csv: not a run but labels or judgments \(llm\)"):
            read_runs(given)
