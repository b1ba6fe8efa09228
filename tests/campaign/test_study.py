"""Studies with users: campaigns that ask about lists; their questions, sides, traps and answers in a store."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from probeval.campaign import Campaign, Question, Store, Task, TaskPurpose, check_store, copy_store, history
from probeval.campaign.kinds.lists import ListMaterial
from probeval.data import Collection, Scale
from probeval.errors import CampaignError, StoreError
from probeval.satisfaction import ListQuestions, choose_lists
from tests.campaign.conftest import Clock


@pytest.fixture(scope="module")
def chosen(small: Collection) -> ListQuestions:
    assert small.judgments is not None
    return choose_lists(small.runs, small.judgments, "CG@5", pairs=20, rng=np.random.default_rng(0))


@pytest.fixture
def study(tmp_path: Path, chosen: ListQuestions) -> Iterator[Campaign]:
    with Campaign.create_lists(tmp_path / "study.db", chosen, queries={"q1": "one"}, seed=5, clock=Clock()) as made:
        yield made


def lists(number: int) -> Question:
    return Question("", (f"{number}a", f"{number}b"), "lists")


def material(study: Campaign) -> ListMaterial:
    found = study.known_material
    assert isinstance(found, ListMaterial)
    return found


def number(task: Task) -> int:
    return int(task.question.documents[0][:-1])


def by_scores(study: Campaign, task: Task) -> dict[str, object]:
    """The answer that the scores of the lists give."""
    question = material(study).questions[number(task)]
    left, right = (question.score_b if name.endswith("b") else question.score_a for name in task.documents)
    choice = "same" if left == right else "left" if left > right else "right"
    return {"choice": choice, "good": max(left, right) > 0.5}


def answer_all(study: Campaign, user: str, n: int | None = None) -> list[int]:
    """Answer questions as they come, each with the next one, by the scores; their numbers."""
    asked, tasks = list[int](), study.next(user)
    while tasks and (n is None or len(asked) < n):
        (task,) = tasks
        asked.append(number(task))
        _, tasks = study.answer_and_next(user, task.question, seconds=2.0, **by_scores(study, task))
    return asked


def test_a_user_answers_every_question_once(study, chosen):
    asked = answer_all(study, "ann")
    assert sorted(asked) == list(range(len(chosen.questions)))
    assert study.next("ann") == []
    found = study.list_answers()
    assert found.is_right.sum() == found.is_trap.sum() == 4
    assert found.preferences.name == "CG@5/graded:2"
    agreement = found.take(~found.is_trap).preferences.agreement()
    assert agreement.worse.sum() == 0
    assert agreement.neither.sum() == sum(q.score_a == q.score_b for q in chosen.pairs)
    status = study.status()
    assert (status.pool, status.judged, status.answers) == (24, 24, 24)
    (ann,) = status.users
    assert (ann.answers, ann.gold, ann.gold_right, ann.gold_left) == (24, 4, 4, 0)


def test_answers_are_as_users_saw_the_lists(study):
    answer_all(study, "ann")
    found, questions = study.list_answers(), material(study).questions
    scores = {
        (q.query, " ".join(docs)): score for q in questions for docs, score in ((q.a, q.score_a), (q.b, q.score_b))
    }
    for i in range(len(found)):
        assert scores[found.query[i], found.docs_a[i]] == found.preferences.a[i]
        assert scores[found.query[i], found.docs_b[i]] == found.preferences.b[i]
    events = study.state.counted_answers
    assert 5 <= sum(event.swapped for event in events) <= 19
    for event, trap in zip(events, found.trap, strict=True):
        known = questions[event.asked_about].trap
        assert trap == ("b" if known == "a" and event.swapped else known)
        assert event.query == questions[event.asked_about].query
    assert np.isnan(found.chosen_good[found.preferences.undecided]).all()
    assert not np.isnan(found.chosen_good[~found.preferences.undecided]).any()


def test_users_get_their_own_order_and_sides_which_stay(study, tmp_path):
    ann = study.next("ann")
    assert ann == study.next("ann")
    with Campaign.open(tmp_path / "study.db", clock=Clock()) as again:
        assert again.next("ann") == ann
    orders = {user: tuple(answer_all(study, user)) for user in ("bob", "eve", "max")}
    assert len(set(orders.values())) == 3
    sides = Counter(event.swapped for event in study.state.counted_answers)
    assert min(sides.values()) > 20  # of 72


def test_traps_are_spread_over_the_questions(study):
    for user in ("bob", "eve", "max"):
        traps = [bool(material(study).questions[question].trap) for question in answer_all(study, user)]
        assert [sum(traps[i : i + 6]) for i in range(0, 24, 6)] == [1, 1, 1, 1]


def test_questions_with_fewer_answers_come_first(study):
    first = set(answer_all(study, "ann", 10))
    second = answer_all(study, "bob", 10)
    pairs = [question for question in second if not material(study).questions[question].trap]
    assert not first & set(pairs)


def test_the_most_questions_of_a_user(tmp_path, chosen):
    with Campaign.create_lists(tmp_path / "short.db", chosen, most=7) as study:
        assert len(answer_all(study, "ann")) == 7
        assert study.next("ann") == []
        assert len(study.next("bob", n=20)) == 7  # held at once
        assert study.next("bob", n=20) == study.next("bob", n=7)


def test_an_answer_can_be_withdrawn_by_its_user_alone(study):
    asked = answer_all(study, "ann", 3)
    last = study.state.own["ann"].last
    assert last.question == lists(asked[-1])
    with pytest.raises(CampaignError, match=f"'bob' has no judgment {last.number} to withdraw"):
        study.withdraw("bob", last.number)
    study.withdraw("ann", last.number)
    with pytest.raises(CampaignError, match=f"'ann' has no judgment {last.number} to withdraw"):
        study.withdraw("ann", last.number)
    (again,) = study.next("ann")
    assert (again.question, again.documents) == (last.question, last.documents)  # on the same sides
    assert len(study.list_answers()) == 2


def test_a_skipped_question_does_not_come_back(study):
    (task,) = study.next("ann")
    study.skip("ann", task.question, reason="no idea")
    assert number(task) not in answer_all(study, "ann")
    assert task.question in {each.question for each in study.next("bob", n=24)}
    (ann,) = study.status().users
    assert ann.skipped == 1


def test_a_request_sent_twice_counts_once(study):
    first = study.answer("ann", lists(3), choice="left", good=True, token="t")
    assert study.answer("ann", lists(3), choice="left", good=True, token="t") == first
    for other in ({"choice": "right"}, {"choice": "left", "shown": ("3b", "3a")}):
        with pytest.raises(CampaignError, match="used for a different request"):
            study.answer("ann", lists(3), good=True, token="t", **other)
    assert len(study.list_answers()) == 1


def test_repeated_questions_are_counted_and_are_no_answers(tmp_path, chosen):
    place = tmp_path / "repeats.db"
    with Campaign.create_lists(place, chosen, repeat_share=0.5, seed=2, clock=Clock()) as study:
        asked = answer_all(study, "ann")
        again = [each for each in study.log() if getattr(each, "purpose", "") == TaskPurpose.repeat]
        (ann,) = study.status().users
        assert len(set(asked)) < len(asked)
        assert (ann.repeats, ann.repeats_same) == (len(asked) - len(set(asked)),) * 2 != (0, 0)
        assert len(again) == 2 * ann.repeats  # leased and answered
        assert len(study.list_answers()) == ann.answers == len(set(asked))


@pytest.mark.parametrize(
    ("question", "values", "message"),
    [
        (lists(99), {"choice": "left", "good": True}, "from 0 to 23, got 99"),
        (lists(0), {"choice": "both", "good": True}, "left, right, same, got 'both'"),
        (lists(0), {"choice": "left"}, "good must be yes or no, got None"),
        (lists(0), {"choice": "left", "good": True, "grade": 1}, "are choice, good; got 'grade'"),
        (Question("", ("1a", "2b"), "lists"), {"choice": "left", "good": True}, "such as 7a and 7b; got 1a and 2b"),
        (Question("", ("1a",), "lists"), {"choice": "left", "good": True}, "is about 2 of a query's documents"),
        (("q1", "d001"), {"grade": 1}, "Users are asked about two lists, not for a grade"),
    ],
)
def test_wrong_answers_are_refused(study, question, values, message):
    with pytest.raises(CampaignError, match=message):
        study.answer("ann", question, **values)
    assert not study.state.answers


def test_a_study_has_no_scores_and_a_campaign_no_answers_about_lists(study, tmp_path, small):
    for step in (study.evaluate, study.gold, lambda: study.change_gold("eve", {"q1": {"d001": 1.0}})):
        with pytest.raises(CampaignError, match="asks about lists: it has no runs to evaluate"):
            step()
    with pytest.raises(CampaignError, match="Answers to questions about lists are not settled"):
        study.settle("eve", lists(1), choice="left", good=True)
    campaign = Campaign.create(tmp_path / "c.db", small, metric="P@5", scale=Scale.graded(2), model="uniform")
    with campaign, pytest.raises(CampaignError, match="asks for grades, not about lists"):
        campaign.list_answers()


def test_the_owner_has_what_other_campaigns_have(study, tmp_path):
    """A pause, people with roles, leases, a guideline, exports, a backup."""
    study.people.invite("owner", "ann", role="assessor")
    (task,) = study.next("ann")
    assert study.state.holders(task.question, study.state.leases[task.question]["ann"].time) == {"ann"}
    study.change_phase("owner", "paused", reason="lunch")
    with pytest.raises(CampaignError, match=r"paused \(lunch\): nothing was saved"):
        study.answer("ann", task.question, choice="same", good=False)
    study.change_phase("owner", "open")
    study.change_guideline("owner", "Read both.")
    assert study.answer("ann", task.question, choice="same", good=False).guideline == 1
    assert study.export("lists").count("\n") == 2
    assert study.export("lists-jsonl").count("\n") == 1
    assert study.export("log").count("\n") == study.state.number
    assert [entry.event for entry in history(study.log())] == [
        "created", "queries", "invited", "phase", "phase", "guideline",
    ]  # fmt: skip
    assert copy_store(tmp_path / "study.db", tmp_path / "backup.db").faults == ()
    with Campaign.open(tmp_path / "backup.db") as again:
        assert again.export("lists") == study.export("lists")


def test_the_store_of_a_study_is_checked(study, tmp_path):
    answer_all(study, "ann", 4)
    study.withdraw("ann")
    study.close()
    path = tmp_path / "study.db"
    assert not check_store(Store(path)).faults
    with sqlite3.connect(path) as base:
        base.execute("UPDATE probeval_event SET body = replace(body, '\"left\"', '\"right\"') WHERE number > 3")
        base.execute("DELETE FROM probeval_part")
    faults = check_store(Store(path)).faults
    assert any("was changed" in fault for fault in faults)
    assert any("questions are missing" in fault for fault in faults)
    with Campaign.open(path) as again, pytest.raises(StoreError, match="the questions are missing"):
        again.next("ann")


def test_settings_are_checked(tmp_path, chosen):
    with pytest.raises(CampaignError, match="must be 1 or more, got 0"):
        Campaign.create_lists(tmp_path / "a.db", chosen, most=0)
    with pytest.raises(CampaignError, match="Expected texts of this campaign's queries"):
        Campaign.create_lists(tmp_path / "b.db", chosen, queries={"x": "y"})
    assert not (tmp_path / "a.db").exists()
