from __future__ import annotations

import numpy as np
import pytest

from probeval import Scale
from probeval.errors import DataError, SatisfactionError
from probeval.satisfaction import (
    Agreement,
    Preferences,
    agreement_for,
    load_agreement,
    published_agreements,
    read_preferences,
)


def test_agreement_counts_each_answer_once():
    said = Preferences(
        [0.9, 0.9, 0.1, 0.1, 0.5, 0.5], [0.1, 0.1, 0.9, 0.9, 0.5, 0.45], ["a", "b", "b", "bad", "a", "good"]
    )
    agreement = said.agreement()
    assert agreement.n.tolist() == [2, 0, 0, 0, 0, 0, 0, 0, 4, 0]
    assert agreement.better.tolist()[8] == 2
    assert agreement.worse.tolist()[8] == 1
    assert agreement.neither.tolist() == [2, 0, 0, 0, 0, 0, 0, 0, 1, 0]  # a tie in score names no better list


def test_agreement_is_the_same_from_either_side():
    agreement = load_agreement("DCGl@5/broad")
    d = np.linspace(-1, 1, 41)
    first, neither, second = agreement(d)
    np.testing.assert_allclose(first + neither + second, 1)
    np.testing.assert_allclose(first, second[::-1])
    assert [x[20] for x in (first, neither, second)] == [0, 1, 0]
    assert first[-1] > first[25] > second[25]


def test_a_tenth_without_answers_takes_its_neighbours_share():
    counts = np.zeros(10, dtype=int)
    counts[[2, 7]] = 4
    agreement = Agreement(counts, np.zeros(10, dtype=int), counts // 4)
    assert agreement(0.05)[0] == pytest.approx(0.8)
    assert np.isnan(agreement.to_frame()["better"]).sum() == 8
    assert agreement.distance_from_ideal == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("name", "share", "difference"),
    [("CGl@5/fine", 0.5, 0.3), ("CGl@5/broad", 0.5, 0.5), ("DCGl@5/broad", 0.5, 0.4), ("CGl@5/fine", 0.8, 0.7),
     ("CGl@5/fine", 0.1, 0.0), ("CGl@5/fine", 1, 0.9)],
)  # fmt: skip
def test_the_difference_that_a_share_of_users_notice(name, share, difference):
    agreement = load_agreement(name)
    assert agreement.noticeable(share) == difference
    beyond = np.linspace(difference, 1, 50) + 1e-6
    assert (agreement(np.minimum(beyond, 1))[0] >= share).all()


def test_a_difference_is_noticed_only_if_every_larger_one_is():
    better, worse = np.array([0, 0, 6, 0, 4, 7, 0, 8, 9, 0]), np.array([9, 0, 4, 0, 6, 3, 0, 2, 1, 0])
    agreement = Agreement(better, np.zeros(10, dtype=int), worse)
    assert agreement.noticeable(0.5) == 0.5  # .2 has more than half too, and .4 does not
    assert agreement.noticeable(0.75) == 0.7  # .6 has no answers
    assert agreement.noticeable_in_words(0.75) == "75% of the users notice a difference of 0.7."
    with pytest.raises(SatisfactionError, match=r"No difference is noticed by 95% of users: .* reaches 90.0%"):
        agreement.noticeable(0.95)
    with pytest.raises(SatisfactionError, match="above 0 and at most 1, got 50"):
        agreement.noticeable(50)


@pytest.mark.parametrize("name", sorted(published_agreements()))
def test_what_ships_grows_with_the_difference(name):
    agreement = load_agreement(name)
    better = agreement.to_frame()["better"].to_numpy()
    assert np.corrcoef(np.arange(10), better)[0, 1] > 0.95
    assert agreement.disagreement < 0.08


def test_agreement_by_measure_and_scale():
    found = agreement_for("DCG@5", Scale.graded(2))
    assert found is not None
    assert found.name == "DCGl@5/broad"
    assert agreement_for("nDCG@10", Scale.graded(2)) is None
    with pytest.raises(SatisfactionError, match="No agreement 'DCG': CGl@5/broad"):
        load_agreement("DCG")


def test_a_table_of_preferences(put):
    path = put("said.csv", "left,right,which\n0.1,0.9,R\n0.5,0.4,both fine\n")
    words = {"R": "b", "both fine": "good"}
    said = read_preferences(path, a="left", b="right", answer="which", words=words)
    assert repr(said) == "<Preferences: 2 answers, 1 without preference, 1 of these good>"


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"a": "lefft", "b": "right", "answer": "which"}, r"no column 'lefft'. Did you mean 'left'\?"),
        ({"a": "left", "b": "right", "answer": "which"}, "An answer is 'a', 'b', 'good', 'bad', got 'R'"),
        ({"a": "which", "b": "right", "answer": "which"}, "the which in row 1 must be a number, got 'R'"),
    ],
)
def test_a_bad_table_is_refused_with_its_path(put, columns, expected):
    path = put("said.csv", "left,right,which\n0.1,0.9,R\n")
    with pytest.raises(DataError, match=expected) as caught:
        read_preferences(path, **columns)
    assert str(caught.value).startswith(str(path))


def test_scores_must_match_the_answers():
    with pytest.raises(SatisfactionError, match="2 answers need as many scores on both sides, got 1 and 2"):
        Preferences([0.1], [0.2, 0.3], ["a", "b"])
    with pytest.raises(SatisfactionError, match="at least one answer"):
        Preferences([], [], []).agreement()
