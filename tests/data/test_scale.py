from __future__ import annotations

import numpy as np
import pytest

from probeval.data import POOLED, UNJUDGED, Scale
from probeval.errors import ScaleError


@pytest.mark.parametrize(
    ("grades", "expected"),
    [
        ([0, 1], Scale.binary()),
        ([0, 0], Scale.binary()),
        ([1.0], Scale.binary()),
        ([], Scale.binary()),
        ([-1, -2, float("nan")], Scale.binary()),
        ([0, 2, -2], Scale.graded(2)),
        ([9, 3], Scale.graded(9)),
        ([0, 10], Scale.fine()),
        ([100], Scale.fine()),
    ],
)
def test_infer_by_the_largest_grade(grades, expected):
    assert Scale.infer(grades) == expected


@pytest.mark.parametrize("grades", [[0, 101], [float("inf")]])
def test_infer_refuses_what_no_scale_has(grades):
    with pytest.raises(ScaleError, match="No scale can be inferred"):
        Scale.infer(grades)


@pytest.mark.parametrize(
    "text", ["binary", "binary:40", "graded:2", "graded:9", "graded:100", "fine", "fine:4", "fine:5", "real"]
)
def test_the_name_of_a_scale_parses_back(text):
    assert str(Scale.parse(text)) == text


def test_what_a_name_means():
    assert Scale.parse("graded:1") == Scale.binary()
    assert Scale.parse("graded:3").grades == (0, 1, 2, 3)
    assert Scale.parse("fine") == Scale.fine(100, bins=10)
    assert Scale.parse("fine") != Scale.graded(100)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "binary:0",
        "graded",
        "graded:",
        "graded:0",
        "graded:-1",
        "graded:1.5",
        "fine:1",
        "fine:101",
        "real:3",
        "GRADED:3",
    ],
)
def test_a_name_of_no_scale_is_refused(text):
    with pytest.raises(ScaleError, match="A scale is"):
        Scale.parse(text)


def test_a_scale_too_long_for_16_bits_is_refused_and_not_wrapped():
    for text in ("graded:99999", "graded:" + "9" * 5000):
        with pytest.raises(ScaleError):
            Scale.parse(text)
    with pytest.raises(ScaleError, match="at most"):
        Scale.graded(40_000)


def test_codes_of_grades_and_of_what_has_no_grade():
    codes = Scale.graded(3).codes([[3, 0, 1], [-1, -2, np.nan]])
    assert codes.tolist() == [[3, 0, 1], [POOLED, 0, UNJUDGED]]
    assert codes.dtype == np.int16


def test_codes_are_positions_not_values():
    assert Scale((0, 20, 50)).codes([50, 20, 0]).tolist() == [2, 1, 0]


def test_codes_keep_the_shape_down_to_a_single_grade():
    assert Scale.binary().codes(1).shape == ()
    assert Scale.binary().codes(np.zeros((2, 0, 3))).shape == (2, 0, 3)


@pytest.mark.parametrize("grade", [4, 1.5, -0.5, -1.5, float("inf")])
def test_a_grade_off_the_scale_is_refused_and_named(grade):
    with pytest.raises(ScaleError, match=rf"Grade {grade:g} is not on the scale graded:3"):
        Scale.graded(3).codes([0, grade])


def test_gains_and_their_lookup():
    scale = Scale.graded(3, gain="exp")
    assert scale.gains.tolist() == [0, 1, 3, 7]
    assert scale.with_gain("linear").gains.tolist() == [0, 1, 2, 3]
    # Everything without a grade is worth nothing.
    assert scale.lookup(scale.gains)[scale.codes([3, np.nan, -1, -2])].tolist() == [7, 0, 0, 0]
    with pytest.raises(ValueError, match="read-only"):
        scale.gains[0] = 1


def test_at_least():
    scale = Scale.graded(3)
    assert [scale.at_least(g) for g in (0, 1, 1.5, 3, 4)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Scale((0,)),
        lambda: Scale((1, 0)),
        lambda: Scale((0, 0)),
        lambda: Scale((0, float("nan"))),
        lambda: Scale((-1, 0)),
        lambda: Scale((0, 1), gain="log"),
        lambda: Scale((0, 1), bins=3),
        lambda: Scale.graded(0),
    ],
)
def test_a_scale_that_cannot_be_is_refused(make):
    with pytest.raises(ScaleError):
        make()


def test_repr_says_how_to_make_it():
    for scale in (Scale.binary(), Scale.graded(3, gain="exp"), Scale.fine(50, bins=5), Scale((0, 0.5, 2))):
        assert eval(repr(scale), {"Scale": Scale}) == scale


@pytest.mark.parametrize("n", [2, 3, 4, 5, 10, 100])
def test_fine_is_cut_into_equal_intervals_of_101_over_n(n):
    values = np.arange(101)
    assert Scale.cut(n).codes(values).tolist() == (values * n // 101).tolist()
    assert np.ptp(np.bincount(values * n // 101)) <= 1


def test_judged_values_are_cut_to_their_grade():
    for scale in (Scale.cut(4), Scale.cut(7), Scale.at_threshold(40), Scale.graded(3), Scale.fine()):
        assert scale.codes(scale.judged_values).tolist() == list(range(len(scale)))


def test_a_cut_scale_keeps_what_has_no_grade_and_refuses_more_than_its_top():
    scale = Scale.parse("fine:4")
    assert scale.codes([-1, -2, np.nan, 33.5]).tolist() == [POOLED, 0, UNJUDGED, 1]
    with pytest.raises(ScaleError, match="Grade 101 is not on the scale fine:4"):
        scale.codes([101])
    assert Scale.parse("binary:2").codes([1, 2, 500]).tolist() == [0, 1, 1]


def test_real_values_are_their_own_grades():
    scale = Scale.parse("real").of([0.25, 0.75, np.nan, 0.25, 3])
    assert scale.grades == (0, 0.25, 0.75, 3)
    assert scale.gains.tolist() == [0, 0.25, 0.75, 3]
    assert Scale.infer([0, 0.5]).grades == (0, 0.5)
    with pytest.raises(ScaleError, match="none is above 0"):
        Scale.parse("real").of([0.0])


def test_models_have_up_to_ten_levels_of_real_values():
    values = np.random.default_rng(0).random(300) ** 3
    scale = Scale.of_values(values)
    codes = np.arange(len(scale), dtype=np.int16)
    level = scale.level_of(codes)
    assert np.all(np.diff(level) >= 0)
    assert level[scale.levels].tolist() == list(range(len(scale.levels)))
    assert scale.level_of(np.array([UNJUDGED], dtype=np.int16)).tolist() == [UNJUDGED]
    gap = Scale.of_values([*np.linspace(0.01, 0.2, 20), 1.0])  # most bins have no value
    assert len(gap.levels) == len(set(gap.levels)) == 4


def test_gains_by_name_or_one_per_grade():
    scale = Scale.graded(3)
    assert scale.with_gain("0,.25,.5,1") == scale.with_gain([0, 0.25, 0.5, 1])
    assert scale.with_gain("exp").gains.tolist() == [0, 1, 3, 7]
    assert scale.with_gain("0,1,1,4").gains_as("linear").tolist() == [0, 1, 2, 3]
    for wrong in ("0,1", "0,2,1,3", "-1,0,1,2", "0,0,0,0", "0,1,2,inf", "log", ""):
        with pytest.raises(ScaleError, match=r"[Gg]ains"):
            scale.with_gain(wrong)
