"""The next questions: grades and comparisons by their gain per second."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from probeval.errors import SelectionError
from probeval.relevance import load_card
from probeval.selection import Goal, Judging, Preference, Ratio, choose, next_questions
from probeval.selection.pairs import SECONDS
from probeval.selection.policies import score_value

RANKING = Goal.parse("ranking")
MODEL = "text-hierarchical"


@pytest.fixture(scope="module")
def now(state):
    """A campaign of 20 pairs or more, 8 of them judged."""
    return state(8, model=MODEL)


def ask(state, n, **options):
    offered = np.ones(len(state.judging.pool), dtype=bool)
    return next_questions(state.context, n, **{"goal": RANKING, "offered": offered, **options})


class Dense:
    """All questions of a small campaign as one normal vector: gains, then latent relevance, of all documents."""

    def __init__(self, context, goal, answer, *, grades=True):
        gains, n = context.dependence, len(context.runs.pool)
        self.value, self.seconds = score_value(context, goal), SECONDS
        whole = np.block(
            [
                [gains.between(np.arange(n)), gains.between_across(gains.latent, np.arange(n)).T],
                [gains.between_across(gains.latent, np.arange(n)), gains.latent.between(np.arange(n))],
            ]
        )
        weights = np.vstack([context.weights, np.zeros_like(context.weights)])
        query, certain = context.runs.pool.query, context.judged
        self.keys, rows, noise, kinds = [], [], [], []
        for d in np.flatnonzero(~certain) if grades else ():
            self.keys.append((int(d), -1))
            rows.append(np.eye(2 * n)[d])
            noise.append(context.gain_moments[1][d])
            kinds.append("grade")
        for a, b in combinations(range(n), 2):
            if query[a] == query[b] and not (certain[a] and certain[b]):
                row = np.eye(2 * n)[n + a] - np.eye(2 * n)[n + b]
                v = row @ whole @ row
                told = answer.information(np.array([gains.centre[a] - gains.centre[b]]), np.array([v]))[0]
                self.keys.append((a, b))
                rows.append(row)
                noise.append(1 / told - v if told > 0 else np.inf)
                kinds.append(answer.kind)
        rows = np.array(rows)
        self.matrix = rows @ whole @ rows.T + np.diag(noise)
        # The noise of a grade is relevance too: it is in the score.
        own = np.array([context.weights[left] * context.gain_moments[1][left] * (r < 0) for left, r in self.keys])
        self.covariance = rows @ whole @ weights + own
        self.cost = np.array([SECONDS[k] for k in kinds])

    def worth(self, taken=()):
        matrix, covariance = self.matrix, self.covariance
        if len(taken):
            solve = np.linalg.solve(matrix[np.ix_(taken, taken)], np.column_stack([matrix[taken], covariance[taken]]))
            less = matrix[:, taken] @ solve
            matrix, covariance = matrix - less[:, : len(matrix)], covariance - less[:, len(matrix) :]
        total = np.einsum("da,ab,db->d", covariance, self.value, covariance)
        own = np.diag(matrix)
        return np.divide(total, own, out=np.zeros(len(own)), where=own > 1e-9) / self.cost


@pytest.mark.parametrize("goal", ["ranking", "scores", "best"])
@pytest.mark.parametrize(("what", "answer"), [("mixed", Preference(slope=2.0)), ("magnitudes", Ratio())])
def test_a_batch_is_what_conditioning_one_normal_on_its_questions_gives(now, goal, what, answer):
    goal = Goal.parse(goal)
    found = ask(now, 6, ask=what, goal=goal, answering={answer.kind: answer})
    dense = Dense(now.context, goal, answer, grades=what == "mixed")
    taken = []
    for (left, right), value in zip(found.keys, found.value, strict=True):
        worth = dense.worth(taken)
        worth[taken] = -1.0
        key = (left, right) if right < 0 else (min(left, right), max(left, right))
        at = dense.keys.index(key)
        assert worth[at] == pytest.approx(worth.max(), rel=1e-6)
        assert value == pytest.approx(worth[at], rel=1e-6)
        taken.append(at)
    if what == "mixed" and goal.kind == "ranking":
        assert set(found.kind) == {"grade", "preference"}


def test_grades_alone_are_those_of_the_policy(now):
    found = ask(now, 5, ask="grades", explore=0.2, asked=8)
    expected = choose(now.context, "gain", 5, goal=RANKING, offered=now.open, explore=0.2)
    assert found.left.tolist() == expected.pairs.tolist()
    np.testing.assert_array_equal(found.probability, expected.probability)
    assert set(found.kind) == {"grade"}
    assert not found.compares.any()


def test_comparisons_are_of_one_query_and_never_of_two_judged_documents(now):
    found = ask(now, 30, ask="preferences")
    query, judged = now.judging.pool.query, now.context.judged
    assert np.array_equal(query[found.left], query[found.right])
    assert not np.any(judged[found.left] & judged[found.right])
    assert len({frozenset(key) for key in found.keys}) == len(found) == 30
    assert np.argmax(found.value) == 0
    assert 0 < np.mean(found.left < found.right) < 1  # sides are drawn


def test_a_dear_question_is_not_asked(now):
    assert set(ask(now, 5, seconds={"grade": 1e6}).kind) == {"preference"}
    assert set(ask(now, 5, seconds={"preference": 1e6}).kind) == {"grade"}
    twice = ask(now, 5, ask="preferences", seconds={"preference": 36.0})
    np.testing.assert_allclose(twice.value * 2, ask(now, 5, ask="preferences").value)


def test_assessors_who_answer_at_random_are_asked_for_grades(now):
    assert set(ask(now, 5, answering={"preference": Preference(slope=0.0)}).kind) == {"grade"}
    none = ask(now, 3, ask="preferences", answering={"preference": Preference(slope=0.0)})
    assert not none.value.any()


def test_questions_already_taken_are_not_asked_in_either_order(now):
    first = ask(now, 4)
    turned = [(right, left) if right >= 0 else (left, right) for left, right in first.keys]
    again = ask(now, 40, taken=turned)
    asked = {frozenset(key) for key in first.keys}
    assert asked.isdisjoint(frozenset(key) for key in again.keys)


def test_same_seed_same_questions(now):
    assert ask(now, 8, explore=0.3).keys == ask(now, 8, explore=0.3).keys


@pytest.mark.parametrize("what", ["grades", "preferences", "mixed"])
def test_random_questions(now, what):
    found = ask(now, 200, ask=what, policy="random")
    query, grades = now.judging.pool.query, ~found.compares
    assert np.isnan(found.value).all()
    assert np.isnan(found.probability[~grades]).all()
    assert not np.isnan(found.probability[grades]).any()
    assert np.array_equal(query[found.left[~grades]], query[found.right[~grades]])
    assert len({frozenset(key) for key in found.keys}) == len(found)
    if what == "grades":
        assert len(found) == now.open.sum()  # all that are left
    else:
        assert found.keys[:5] == ask(now, 5, ask=what, policy="random").keys  # the same for any batch


def test_exploration_compares_if_grades_are_not_asked(now):
    found = ask(now, 20, ask="preferences", explore=0.1)
    assert np.flatnonzero(np.isnan(found.value)).tolist() == [9, 19]
    mixed = ask(now, 20, explore=0.1, asked=5)
    drawn = np.flatnonzero(np.isnan(mixed.value))
    assert drawn.tolist() == [4, 14]
    assert not mixed.compares[drawn].any()
    assert np.all(mixed.probability[drawn] > 0)


def test_documents_that_cannot_differ_have_no_gain(tiny):
    # Both systems retrieve d1 and d2, and only their order differs: relevance does not depend on it.
    some = Judging.of(tiny, load_card(MODEL).model, "DCG@2", scale="graded:2").begin()
    found = ask(some, 10, ask="preferences")
    value = {frozenset(key): v for key, v in zip(found.keys, found.value, strict=True)}
    label = {some.judging.pool.label(p)[1]: p for p in range(4)}
    assert value[frozenset((label["d1"], label["d2"]))] == pytest.approx(0.0, abs=1e-12)
    assert max(value.values()) > 1e-6


def test_what_cannot_be_asked(now, state):
    with pytest.raises(SelectionError, match="Did you mean 'preferences'"):
        ask(now, 1, ask="preference")
    with pytest.raises(SelectionError, match="The policy depth orders single documents"):
        ask(now, 1, policy="depth")
    with pytest.raises(SelectionError, match="The goal relevant needs grades"):
        ask(now, 1, goal=Goal.parse("relevant"))
    with pytest.raises(SelectionError, match="posterior of the hierarchical model"):
        ask(state(8), 1)
    with pytest.raises(SelectionError, match="must not be negative, got -1"):
        ask(now, -1)
    with pytest.raises(SelectionError, match="Seconds are those of grade, preference, magnitude; got 'grades'"):
        ask(now, 1, seconds={"grades": 3.0})
    with pytest.raises(SelectionError, match="must be above 0, got 0"):
        ask(now, 1, seconds={"grade": 0.0})
    assert len(ask(now, 0)) == 0
    assert (
        ask(now, 3, ask="grades", goal=Goal.parse("relevant")).left.tolist()
        == choose(now.context, "gain", 3, goal=Goal.parse("relevant"), offered=now.open).pairs.tolist()
    )
