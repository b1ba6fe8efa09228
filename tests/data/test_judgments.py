from __future__ import annotations

import numpy as np
import pytest

from probeval.data import POOLED, UNJUDGED, Judgments, Pool, Scale
from probeval.data.judgments import RULES
from probeval.errors import DataError, ScaleError


def several(grades: list[float], who: list[str]) -> Judgments:
    """Events of one pair."""
    return Judgments.rows(["q"] * len(grades), ["d"] * len(grades), grades, assessors=who)


NONE = float("nan")  # no grade


@pytest.mark.parametrize(
    ("grades", "who", "expected"),
    [
        # median (lower), majority (lower on a tie), min, max, latest, unanimous, mean
        ([0, 1, 3], "abc", (1, 0, 0, 3, 3, NONE, 4 / 3)),
        ([3, 0], "ab", (0, 0, 0, 3, 0, NONE, 1.5)),
        ([2, 2, 0, 1], "abcd", (1, 2, 0, 2, 1, NONE, 1.25)),
        ([0, 3, 3], "aab", (3, 3, 3, 3, 3, 3, 3)),  # only the latest of each assessor counts
        ([3, 1, 0], "aba", (0, 0, 0, 1, 0, NONE, 0.5)),
        ([2], "a", (2, 2, 2, 2, 2, 2, 2)),
        ([2, -2, 1], "abc", (1, -2, -2, 2, 1, NONE, 1)),  # junk is a judgment
        ([2, -1], "ab", (2, 2, 2, 2, -1, 2, 2)),  # who did not judge has no vote
        ([-1, -1], "ab", (-1, -1, -1, -1, -1, -1, -1)),
    ],
)
def test_the_rules_for_several_assessors(grades, who, expected):
    judged = several(grades, list(who))
    assert list(RULES) == ["median", "majority", "min", "max", "latest", "unanimous", "mean"]
    assert [judged.grades(rule)[0] for rule in RULES] == pytest.approx(expected, nan_ok=True)


def test_an_unknown_rule_is_refused():
    with pytest.raises(DataError, match="No rule 'mode'"):
        several([1], ["a"]).grades("mode")


def test_one_assessor_who_changes_their_mind():
    judged = Judgments.rows(["q", "q", "q"], ["a", "b", "a"], [0, 1, 2])
    for rule in RULES:
        assert judged.grades(rule).tolist() == [2, 1]


def test_unjudged_is_not_zero():
    pool = Pool.of(["q", "q"], ["a", "b"])
    judged = Judgments.coded(pool, np.array([1]), np.array([0.0]))
    assert np.isnan(judged.grades()[0])
    assert judged.codes(Scale.binary()).tolist() == [UNJUDGED, 0]
    assert np.isnan(Judgments.none(pool).grades()).all()
    assert len(Judgments.none(pool)) == 0


def test_negative_grades_keep_what_they_mean():
    judged = Judgments.rows(["q"] * 4, list("abcd"), [2, -1, -2, 0])
    assert judged.codes(Scale.graded(2)).tolist() == [2, POOLED, 0, 0]
    assert judged.scale() == Scale.graded(2)


def test_a_grade_off_the_scale_names_the_pair():
    judged = Judgments.rows(["q1", "q2"], ["d7", "d8"], [1, 3])
    with pytest.raises(ScaleError, match=r"Query 'q2', document 'd8': Grade 3 is not on the scale graded:2"):
        judged.codes(Scale.graded(2))


def test_on_another_pool():
    judged = Judgments.rows(["q1", "q2", "q2"], ["a", "a", "b"], [1, 2, 0], assessors=["x", "y", "x"])
    moved = judged.on(Pool.of(["q2", "q2"], ["a", "c"]))
    assert moved.to_frame()[["query", "doc", "grade", "assessor"]].values.tolist() == [["q2", "a", 2, "y"]]
    assert moved.grades().tolist()[0] == 2
    assert np.isnan(moved.grades()[1])
    assert judged.on(judged.pool) is judged


def test_take_by_position_and_by_mask():
    judged = Judgments.rows(["q"] * 3, list("abc"), [0, 1, 2], times=[10, 20, 30])
    by_mask, by_place = judged.take(np.array([True, False, True])), judged.take(np.array([2, 0]))
    assert by_mask.to_frame()[["doc", "grade", "time"]].values.tolist() == [["a", 0, 10], ["c", 2, 30]]
    assert by_place.to_frame()["doc"].tolist() == ["c", "a"]
    assert by_mask.pool is judged.pool


def test_repr_counts_events_pairs_and_assessors():
    assert repr(several([1, 2], ["a", "b"])) == "<Judgments: 2 of 1 pairs by 2 assessors>"


def test_columns_that_do_not_fit_are_refused():
    with pytest.raises(DataError, match="1 rows need as many docs, got 2"):
        Judgments.rows(["q"], ["a", "b"], [1, 0])
    with pytest.raises(DataError, match="1 rows need as many grades, got 2"):
        Judgments.rows(["q"], ["a"], [1, 0])
    with pytest.raises(DataError, match="2 rows need as many assessors, got 1"):
        Judgments.rows(["q", "q"], ["a", "b"], [1, 0], assessors=["x"])
    with pytest.raises(DataError, match="Ids are strings, got"):
        Judgments.rows(["q", "q"], ["a", "b"], [1, 0], assessors=["x", None])


def test_judgments_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        several([1], ["a"]).grade[0] = 2


def test_the_mean_of_assessors_is_a_real_number():
    judged = Judgments.rows(
        ["q"] * 6, ["a", "a", "a", "b", "b", "c"], [2, 0, 1, 2, -1, -1], assessors=["x", "x", "y", "x", "y", "x"]
    )
    assert judged.grades("mean").tolist() == [0.5, 2, -1]  # the latest of each who judged
    assert str(judged.scale(rule="mean")) == "real"
    assert judged.codes(judged.scale(rule="mean"), rule="mean").tolist() == [1, 2, -3]
    with pytest.raises(ScaleError, match=r"Query 'q', document 'a': Grade 0.5 is not on the scale graded:2"):
        judged.codes(Scale.graded(2), rule="mean")
