"""Simulated assessors who compare documents, and campaigns judged by questions."""

from __future__ import annotations

import numpy as np
import pytest

from probeval.data import PairAnswers, Pool
from probeval.errors import SelectionError
from probeval.relevance import load_card, synthetic_campaign
from probeval.selection import Questions
from probeval.simulation import HeldOut, QuestionStep, QuestionTrajectory, SimulatedComparer, replay_questions

EQUAL = np.log(3)
POOL = Pool.of(["q"] * 4, ["d0", "d1", "d2", "d3"])


def compare(left, right, n):
    kinds = ("preference",) * n
    return Questions(kinds, np.full(n, left), np.full(n, right), *np.full((2, n), 18.0), np.full(n, np.nan))


def shares(slope, left, right, *, tie=EQUAL, n=1500):
    given = SimulatedComparer(np.array([0.0, 0.0, 1.0, 3.0]), slope, tie, seed=5).answer(POOL, compare(left, right, n))
    return [float(np.mean(given.choice == choice)) for choice in (1, 0, -1)]


def test_answers_have_the_stated_probabilities():
    error = 4 * np.sqrt(0.25 / 1500)
    assert shares(1.5, 0, 1) == pytest.approx([0.25, 0.5, 0.25], abs=error)  # half of them are equal
    logistic = 1 / (1 + np.exp(-(1.5 - EQUAL)))
    assert shares(1.5, 2, 1)[0] == pytest.approx(logistic, abs=error)
    assert shares(1.5, 1, 2)[2] == pytest.approx(logistic, abs=error)
    assert shares(4.0, 3, 0)[0] == pytest.approx(1.0, abs=error)
    assert shares(2.0, 2, 0, tie=0.0)[0] == pytest.approx(1 / (1 + np.exp(-2)), abs=error)
    assert shares(0.0, 3, 0) == pytest.approx([0.25, 0.5, 0.25], abs=error)  # at random


def test_an_answer_depends_on_the_seed_and_its_number_alone():
    comparer = SimulatedComparer(np.array([0.0, 0.0, 1.0, 3.0]), 0.5, seed=2)
    whole = comparer.answer(POOL, compare(0, 2, 20))
    part = comparer.answer(POOL, compare(0, 2, 8), asked=12)
    assert whole.choice[12:].tolist() == part.choice.tolist()
    assert set(whole.left) == {"d0"}
    assert set(whole.right) == {"d2"}
    other = SimulatedComparer(comparer.grades, 0.5, seed=3).answer(POOL, compare(0, 2, 20))
    assert whole.choice.tolist() != other.choice.tolist()


def test_grades_are_not_compared_and_answers_add_up():
    one = Questions(("grade", "preference"), np.array([0, 1]), np.array([-1, 2]), *np.full((3, 2), 18.0))
    given = SimulatedComparer(np.zeros(4), 1.0).answer(POOL, one)
    assert len(given) == 1
    both = PairAnswers.none().with_more(given).with_more(given)
    assert both.left.tolist() == ["d1", "d1"]
    assert both.seconds.tolist() == [18.0, 18.0]


def test_bad_comparers():
    with pytest.raises(SelectionError, match="a tie from 0; got 1 and -2"):
        SimulatedComparer(np.zeros(4), 1.0, -2.0)


def test_tau_must_last_for_a_hundred_answers():
    def trajectory(*taus):
        steps = [QuestionStep(18.0 * 50 * i, 0, 50 * i, 0.9, 0.9, tau) for i, tau in enumerate(taus)]
        return QuestionTrajectory("preferences", "gain", 1.0, 0, tuple(steps))

    assert trajectory(0.5, 0.9, 0.8, 0.9, 0.95, 0.92).reached.comparisons == 150
    assert trajectory(0.5, 0.9, 0.91).reached is None
    some = trajectory(0.5, 0.6, 0.7)
    assert some.after(0.25).tau == 0.6
    assert some.to_frame()["comparisons"].tolist() == [0, 50, 100]


@pytest.fixture(scope="module")
def held():
    return HeldOut.of(synthetic_campaign(seed=3, systems=5, queries=3, depth=5), depth=5)


@pytest.mark.parametrize("ask", ["grades", "preferences", "mixed"])
def test_answers_lead_to_the_true_ranking(held, ask):
    model = load_card("text-hierarchical").model
    found = replay_questions(held, model, "DCG@5", ask=ask, slope=4.0, batch=40, hours=0.18)
    first, last = found.steps[0], found.steps[-1]
    assert last.seconds == 25 * last.grades + 18 * last.comparisons
    assert (last.grades > 0) == (ask != "preferences")
    assert (last.comparisons > 0) == (ask != "grades")
    assert last.confidence > first.confidence + 0.1
    assert last.tau > first.tau + 0.3


def test_batches_have_questions(held):
    with pytest.raises(SelectionError, match="at least one question, got 0"):
        replay_questions(held, load_card("text-hierarchical").model, "DCG@5", ask="mixed", slope=1, batch=0, hours=1)
