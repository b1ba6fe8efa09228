"""How much an answer about two documents tells, against sums over all answers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit

from probeval.errors import SelectionError
from probeval.relevance.answers.assessors import Assessors
from probeval.relevance.answers.questions import QUESTIONS
from probeval.selection import Preference, Ratio
from probeval.selection.comparisons import typical_answers

GRID = np.linspace(-12, 12, 6001)


def probabilities(answer, difference):
    left, right = expit(answer.slope * difference - answer.tie), expit(-answer.slope * difference - answer.tie)
    return left, right, 1 - left - right


def expected_fall(answer, mean, variance):
    """The expected fall of the variance of the difference, over all answers, by integration."""
    difference = mean + np.sqrt(variance) * GRID
    prior = np.exp(-(GRID**2) / 2)
    prior /= prior.sum()
    fall = 0.0
    for likelihood in probabilities(answer, difference):
        p = prior @ likelihood
        if p > 0:
            fall += p * ((prior * likelihood) @ difference / p - mean) ** 2
    return fall


@pytest.mark.parametrize("slope", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("tie", [0.0, 0.5, 1.1])
@pytest.mark.parametrize(("mean", "variance"), [(0.0, 0.01), (0.0, 2.0), (1.5, 0.8), (-2.0, 6.0)])
def test_the_information_is_the_fall_of_variance_over_all_answers(slope, tie, mean, variance):
    answer = Preference(slope=slope, tie=tie)
    told = answer.information(np.array([mean]), np.array([variance]))[0]
    assert told * variance**2 == pytest.approx(expected_fall(answer, mean, variance), rel=0.04)
    assert told * variance <= 1.0


def test_it_is_the_same_from_both_sides_and_more_from_sharper_assessors():
    mean, variance = np.linspace(-3, 3, 13), np.full(13, 1.5)
    blunt, sharp = Preference(slope=0.5, tie=0.3), Preference(slope=2.0, tie=0.3)
    np.testing.assert_allclose(blunt.information(mean, variance), blunt.information(-mean, variance))
    assert np.argmax(sharp.information(mean, variance)) == 6  # documents that seem alike
    assert np.all(sharp.information(mean[4:9], variance[4:9]) > blunt.information(mean[4:9], variance[4:9]))
    assert not Preference(slope=0.0).information(mean, variance).any()  # answers at random
    half = Preference(slope=2.0, tie=0.3, attention=0.5)
    np.testing.assert_allclose(half.information(mean, variance), sharp.information(mean, variance) / 2)
    # At worst a certain answer: one that is better for sure.
    assert Preference(slope=40.0).information(np.array([30.0]), np.array([0.1]))[0] < 1e-6


def test_a_hard_choice_between_two_tells_two_over_pi():
    told = Preference(slope=1e6, tie=0.0).information(np.zeros(1), np.ones(1))[0]
    assert told == pytest.approx(2 / np.pi, rel=1e-5)


def test_a_ratio_is_a_normal_observation():
    answer, mean, variance = Ratio(slope=0.5, sd=0.8), np.array([0.0, 3.0]), np.array([1.2, 0.0])
    # Two normals: what is left is 1/(1/V + c^2/sd^2).
    left = 1 / (1 / 1.2 + 0.25 / 0.64)
    told = answer.information(mean, variance)
    assert told[0] * 1.2**2 == pytest.approx(1.2 - left)
    assert told[1] == pytest.approx(0.25 / 0.64)


def test_assessors_answer_as_they_did_so_far():
    assert typical_answers(None) == {"preference": Preference(), "magnitude": Ratio()}
    choice = next(i for i, question in enumerate(QUESTIONS) if question.name == "choice")
    # Ann gave 3 answers and is attentive, Bob gave 1 and is careless.
    parameters = np.zeros((3, 2, len(QUESTIONS), 3))
    parameters[0, :, choice] = [[np.log(0.4), 0.0, np.log(1.5)], [np.log(0.1), 0.0, np.log(0.2)]]
    kinds = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    seen = SimpleNamespace(
        questions=QUESTIONS, question=np.full(4, choice), assessor=np.array([0, 0, 0, 1]), assessors=("ann", "bob")
    )
    found = typical_answers(SimpleNamespace(observations=seen, assessors=Assessors(parameters, kinds)))
    assert found["magnitude"] == Ratio()  # none so far
    assert found["preference"].slope == pytest.approx(0.4)
    assert found["preference"].tie == pytest.approx(1.5)
    assert found["preference"].attention == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Preference(tie=-1), "tie from 0; got slope 0.7, tie -1"),
        (lambda: Preference(slope=np.nan), "finite slope"),
        (lambda: Ratio(sd=0), "sd above 0; got slope 0.18, sd 0"),
    ],
)
def test_bad_answers(make, message):
    with pytest.raises(SelectionError, match=message):
        make()
