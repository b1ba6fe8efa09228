"""Studies with users: questions, sides and answers in a store."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from probeval.campaign import Campaign, Store, Study, check_store
from probeval.data import Collection, Scale
from probeval.errors import CampaignError, StoreError
from probeval.satisfaction import ListQuestions, choose_lists


@pytest.fixture(scope="module")
def chosen(small: Collection) -> ListQuestions:
    assert small.judgments is not None
    return choose_lists(small.runs, small.judgments, "CG@5", pairs=20, rng=np.random.default_rng(0))


@pytest.fixture
def study(tmp_path: Path, chosen: ListQuestions) -> Iterator[Study]:
    with Study.create(tmp_path / "study.db", chosen, queries={"q1": "one"}, seed=5, clock=lambda: 100.0) as made:
        yield made


def answer_all(study: Study, user: str, n: int | None = None) -> list[int]:
    """Answer questions as they come, by the scores; their numbers."""
    asked = []
    while (task := study.next(user)) is not None and (n is None or len(asked) < n):
        question = study.questions[task.question]
        left, right = (question.score_a, question.score_b)
        if task.left != question.a:
            left, right = right, left
        choice = "same" if left == right else "left" if left > right else "right"
        study.record(user, task.question, choice, good=max(left, right) > 0.5, seconds=2.0)
        assert task.place == len(asked) + 1
        asked.append(task.question)
    return asked


def test_a_user_answers_every_question_once(study, chosen):
    asked = answer_all(study, "ann")
    assert sorted(asked) == list(range(len(chosen.questions)))
    assert study.next("ann") is None
    found = study.answers()
    assert found.is_right.sum() == found.is_trap.sum() == 4
    assert found.preferences.name == "CG@5/graded:2"
    agreement = found.take(~found.is_trap).preferences.agreement()
    assert agreement.worse.sum() == 0
    assert agreement.neither.sum() == sum(q.score_a == q.score_b for q in chosen.pairs)


def test_answers_are_as_users_saw_the_lists(study):
    answer_all(study, "ann")
    found = study.answers()
    lists = {
        (q.query, " ".join(docs)): score
        for q in study.questions
        for docs, score in ((q.a, q.score_a), (q.b, q.score_b))
    }
    for i in range(len(found)):
        assert lists[found.query[i], found.docs_a[i]] == found.preferences.a[i]
        assert lists[found.query[i], found.docs_b[i]] == found.preferences.b[i]
    swapped = [event.swapped for event in study.state.lists_compared.values()]
    assert 5 <= sum(swapped) <= 19
    for event, trap in zip(study.state.lists_compared.values(), found.trap, strict=True):
        known = study.questions[event.question].trap
        assert trap == ("b" if known == "a" and event.swapped else known)
    assert np.isnan(found.chosen_good[found.preferences.undecided]).all()
    assert not np.isnan(found.chosen_good[~found.preferences.undecided]).any()


def test_users_get_their_own_order_and_sides_which_stay(study, tmp_path):
    ann = study.next("ann")
    assert ann == study.next("ann")
    with Study.open(tmp_path / "study.db") as again:
        assert again.next("ann") == ann
    orders = {user: tuple(answer_all(study, user)) for user in ("bob", "eve", "max")}
    assert len(set(orders.values())) == 3
    sides = Counter(event.swapped for event in study.state.lists_compared.values())
    assert min(sides.values()) > 20  # of 72


def test_traps_are_spread_over_the_questions(study):
    for user in ("bob", "eve", "max"):
        traps = [bool(study.questions[question].trap) for question in answer_all(study, user)]
        assert [sum(traps[i : i + 6]) for i in range(0, 24, 6)] == [1, 1, 1, 1]


def test_questions_with_fewer_answers_come_first(study):
    first = set(answer_all(study, "ann", 10))
    second = answer_all(study, "bob", 10)
    pairs = [question for question in second if not study.questions[question].trap]
    assert not first & set(pairs)


def test_the_most_questions_of_a_user(tmp_path, chosen):
    with Study.create(tmp_path / "short.db", chosen, most=7) as study:
        assert len(answer_all(study, "ann")) == 7
        assert study.next("ann") is None
        assert study.next("bob").total == 7
        left = next(i for i in range(24) if ("ann", i) not in study.state.lists_compared)
        with pytest.raises(CampaignError, match="All 7 questions of 'ann' are answered"):
            study.record("ann", left, "same", good=True)


def test_an_answer_can_be_withdrawn_by_its_user_alone(study):
    asked = answer_all(study, "ann", 3)
    last = study.last("ann")
    assert last.question == asked[-1]
    with pytest.raises(CampaignError, match="'bob' has no answer"):
        study.withdraw("bob", last.number)
    study.withdraw("ann", last.number)
    with pytest.raises(CampaignError, match="'ann' has no answer"):
        study.withdraw("ann", last.number)
    assert study.next("ann", again=asked[-1]).question == asked[-1]
    assert study.next("ann", again=asked[0]).question not in asked[:2]  # answered already
    assert len(study.answers()) == 2


def test_a_request_sent_twice_counts_once(study):
    first = study.record("ann", 3, "left", good=True, token="t")
    assert study.record("ann", 3, "left", good=True, token="t") == first
    with pytest.raises(CampaignError, match="used for a different request"):
        study.record("ann", 3, "right", good=True, token="t")
    with pytest.raises(CampaignError, match="answered already"):
        study.record("ann", 3, "left", good=True)
    assert len(study.answers()) == 1


@pytest.mark.parametrize(
    ("question", "choice", "message"),
    [(99, "left", "from 0 to 23, got 99"), (-1, "left", "got -1"), (0, "both", "left, right, same, got 'both'")],
)
def test_wrong_answers_are_refused(study, question, choice, message):
    with pytest.raises(CampaignError, match=message):
        study.record("ann", question, choice, good=True)
    assert not study.state.lists_compared


def test_a_study_is_no_campaign(study, tmp_path, small):
    with Campaign.open(tmp_path / "study.db") as wrong, pytest.raises(CampaignError, match="is a study with users"):
        wrong.status()
    Campaign.create(tmp_path / "c.db", small, metric="P@5", scale=Scale.graded(2), model="uniform").close()
    with pytest.raises(StoreError, match="is a campaign, not a study with users"):
        Study.open(tmp_path / "c.db")


def test_the_store_of_a_study_is_checked(study, tmp_path):
    answer_all(study, "ann", 4)
    study.withdraw("ann", study.last("ann").number)
    study.close()
    path = tmp_path / "study.db"
    assert not check_store(Store(path)).faults
    with sqlite3.connect(path) as base:
        base.execute("UPDATE probeval_event SET body = replace(body, '\"left\"', '\"right\"') WHERE number = 3")
        base.execute("DELETE FROM probeval_part")
    faults = check_store(Store(path)).faults
    assert any("'questions' is missing" in fault for fault in faults)
    with pytest.raises(StoreError, match="the questions are missing"):
        Study.open(path).questions  # noqa: B018


def test_settings_are_checked(tmp_path, chosen):
    with pytest.raises(CampaignError, match="must be 1 or more, got 0"):
        Study.create(tmp_path / "a.db", chosen, most=0)
    with pytest.raises(CampaignError, match="Expected texts of this campaign's queries"):
        Study.create(tmp_path / "b.db", chosen, queries={"x": "y"})
    assert not (tmp_path / "a.db").exists()
