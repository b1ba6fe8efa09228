"""Comparisons of two documents in a campaign: questions, leases, answers, undo, gold and repeated questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from probeval.campaign import (
    Campaign,
    Compared,
    ComparisonDesign,
    Leased,
    State,
    Store,
    TaskPurpose,
    check_store,
    fold,
    seconds_per_answer,
)
from probeval.errors import CampaignError
from probeval.preferences import pair_list_faults

Make = Callable[..., Campaign]
in_a_file = pytest.mark.parametrize("store", ["sqlite"], indirect=True)


def _answer(campaign: Campaign, who: str, choice: str = "left", n: int = 1, **options: object) -> list[Compared]:
    """Answer the next ``n`` questions, all comparisons, the same way."""
    given = []
    for _ in range(n):
        (task,) = campaign.next(who)
        given.append(campaign.answer(who, task.query, task.doc, task.other, choice, **options))  # type: ignore[arg-type]
    return given


def test_an_assessor_gets_two_documents_answers_and_gets_others(make: Make):
    campaign = make(ask="preferences")
    (task,) = campaign.next("ann")
    assert task.asks == "preference"
    assert task.doc != task.other
    assert {(task.query, task.doc), (task.query, task.other)} <= {
        campaign.pool.label(i) for i in range(len(campaign.pool))
    }
    assert campaign.next("ann") == [task]  # held until it is answered
    answer, (following,) = campaign.answer_and_next("ann", task.query, task.doc, task.other, "right", relevant="chosen")
    assert (answer.better, answer.relevant, answer.purpose) == (task.other, "chosen", TaskPurpose.judgment)
    assert {following.doc, following.other} != {task.doc, task.other}
    answers = campaign.collection.answers
    assert answers is not None
    assert answers.to_frame()[["query", "left", "right", "choice", "relevant", "assessor"]].to_numpy().tolist() == [
        [task.query, task.doc, task.other, "right", "chosen", "ann"]
    ]


@in_a_file
def test_two_assessors_never_hold_the_same_comparison(make: Make):
    campaign = make(ask="preferences")
    ann, bob = campaign.next("ann", n=6), campaign.next("bob", n=6)
    assert len({(t.query, *sorted((t.doc, t.other))) for t in (*ann, *bob)}) == 12


@in_a_file
def test_every_document_is_compared_as_in_the_design(make: Make):
    campaign = make(ask="preferences", depth=8)
    first = campaign._candidates(campaign.state).design(0).division(0)
    tasks = campaign.next("ann", n=sum(len(pairs) for _, pairs in first))
    asked = [(task.query, task.doc, task.other) for task in tasks]
    assert sorted(asked) == sorted((query, *pair) for query, pairs in first for pair in pairs)
    more = campaign.next("bob", n=10)  # of the next division
    assert (
        len({(q, *sorted(pair)) for q, *pair in (*asked, *((m.query, m.doc, m.other) for m in more))})
        == len(asked) + 10
    )


@pytest.mark.parametrize("n", range(1, 30))
def test_a_division_has_every_document_in_lists_that_an_assessor_can_follow(n: int):
    docs = [f"d{i}" for i in range(n)]
    groups = [pairs for _, pairs in ComparisonDesign({"q": docs}, seed=3).division(1)]
    members = [sorted({doc for pair in pairs for doc in pair}) for pairs in groups]
    assert sorted(doc for group in members for doc in group) == (sorted(docs) if n > 1 else [])
    for pairs, group in zip(groups, members, strict=True):
        (degree,) = set(Counter(doc for pair in pairs for doc in pair).values())
        assert degree == min(len(group) - 1, 3 if len(group) % 2 == 0 else 4 if len(group) > 4 else 2)
        assert not pair_list_faults(pairs, group, degree)


def test_the_same_seed_gives_the_same_design():
    docs = {"q": [f"d{i}" for i in range(20)], "r": [f"d{i}" for i in range(9)]}
    one, same, other = (ComparisonDesign(docs, seed).division(2) for seed in (1, 1, 2))
    assert one == same != other


@in_a_file
def test_an_answer_is_withdrawn_and_asked_again_on_the_same_sides(make: Make):
    campaign = make(ask="preferences")
    (task,) = campaign.next("ann")
    answer = campaign.answer("ann", task.query, task.doc, task.other, "equal", relevant="neither")
    campaign.next("ann", n=2)
    gone = campaign.withdraw("ann")
    assert (gone.judgment, gone.question) == (answer.number, answer.question)
    assert campaign.collection.answers is None
    (again,) = campaign.next("ann")
    assert (again.doc, again.other) == (task.doc, task.other)
    with pytest.raises(CampaignError, match="'ann' has no judgment to withdraw"):
        campaign.withdraw("ann")


@in_a_file
def test_a_skipped_comparison_goes_to_others(make: Make):
    campaign = make(ask="preferences")
    (task,) = campaign.next("ann")
    campaign.skip("ann", task.query, task.other, task.doc, reason="no text")
    question = (task.query, *sorted((task.doc, task.other)))
    assert not campaign.state.is_open(question, "ann", 0.0)
    assert campaign.state.is_open(question, "bob", 0.0)
    assert (campaign.next("ann")[0].doc, campaign.next("ann")[0].other) != (task.doc, task.other)


@in_a_file
def test_a_request_sent_twice_counts_once(make: Make):
    campaign = make(ask="preferences")
    (task,) = campaign.next("ann")
    about = ("ann", task.query, task.doc, task.other)
    first = campaign.answer(*about, "left", token="t")
    assert campaign.answer(*about, "left", token="t") == first
    with pytest.raises(CampaignError, match="was used for a different request"):
        campaign.answer(*about, "right", token="t")
    assert len(campaign.state.pair_answers or ()) == 1


@in_a_file
def test_a_later_answer_replaces_the_first_and_a_settled_one_replaces_all(make: Make):
    campaign = make(ask="preferences", overlap=1.0)
    (task,) = campaign.next("ann")
    about = (task.query, task.doc, task.other)
    campaign.answer("ann", *about, "left")
    campaign.answer("ann", *about, "right")
    assert campaign.state.contested == []
    (same,) = campaign.next("bob")  # needs another opinion
    assert {same.doc, same.other} == {task.doc, task.other}
    campaign.answer("bob", *about, "left")
    assert campaign.state.contested == [(task.query, *sorted((task.doc, task.other)))]
    assert campaign.collection.answers.to_frame()["choice"].tolist() == ["right", "left"]
    campaign.adjudicate_comparison("eve", *about, "equal", reason="alike")
    assert campaign.state.contested == []
    settled = campaign.collection.answers.to_frame()
    assert settled[["choice", "assessor"]].to_numpy().tolist() == [["equal", "eve"]]


@in_a_file
@pytest.mark.parametrize(
    ("about", "options", "message"),
    [
        (("x", "x", "left"), {}, "cannot be compared with itself"),
        (("x", "y", "better"), {}, "is left, equal, right; got 'better'"),
        (("x", "y"), {}, "needs a choice"),
        (("x", "y", "equal"), {"relevant": "chosen"}, "neither was chosen"),
        (("x", "y", "left"), {"relevant": "all"}, "both, chosen, neither may be relevant; got 'all'"),
        (("x", "y"), {"numbers": (1, -2)}, "must be from 0, got -2"),
        (("x", "y"), {"numbers": (float("nan"), 2)}, "must be from 0, got nan"),
        (("x", "y"), {"numbers": (None, 2)}, "Give both documents a number"),
    ],
)
def test_a_wrong_answer_is_refused_in_one_line(make: Make, about, options, message):
    campaign = make(ask="preferences")
    (task,) = campaign.next("ann")
    docs = {"x": task.doc, "y": task.other}
    before = campaign.state.number
    with pytest.raises(CampaignError, match=message):
        campaign.answer("ann", task.query, *(docs.get(each, each) for each in about), **options)
    with pytest.raises(CampaignError, match="no run retrieves document 'none'"):
        campaign.answer("ann", task.query, task.doc, "none", "left")
    assert campaign.state.number == before


@in_a_file
def test_magnitudes_ask_for_numbers_of_two_documents(make: Make):
    campaign = make(ask="magnitudes")
    (task,) = campaign.next("ann")
    assert task.asks == "magnitude"
    answer = campaign.answer("ann", task.query, task.doc, task.other, numbers=(30, 10.5))
    assert answer.better == task.doc
    (row,) = campaign.collection.answers.to_frame().to_dict("records")
    assert (row["left_number"], row["right_number"], row["choice"]) == (30.0, 10.5, "")


@in_a_file
def test_a_mixed_campaign_asks_for_grades_and_preferences_and_no_order_that_grades_tell(make: Make):
    campaign = make(ask="mixed")
    kinds = Counter()
    for _ in range(40):
        (task,) = campaign.next("ann")
        kinds[task.asks] += 1
        if task.asks == "grade":
            campaign.record("ann", task.query, task.doc, 1.0)
        else:
            graded = [(task.query, doc) in campaign.state.judged for doc in (task.doc, task.other)]
            assert not all(graded)
            campaign.answer("ann", task.query, task.doc, task.other, "left")
    assert kinds["grade"] > 5 < kinds["preference"]


@in_a_file
def test_the_times_of_answers_are_learned_by_kind(make: Make, clock):
    campaign = make(ask="mixed")
    tasks = campaign.next("ann", n=60)
    clock.now += 100
    for task in tasks:
        if task.asks == "grade":
            campaign.record("ann", task.query, task.doc, 1.0, seconds=4.0)
        else:
            campaign.answer("ann", task.query, task.doc, task.other, "left", seconds=7.0)
    assert seconds_per_answer(campaign.state) == {"grade": 4.0, "comparison": 7.0}
    assert seconds_per_answer(State()) == {"grade": 25.0, "comparison": 18.0}


def test_a_log_folds_in_one_pass_as_in_several_and_the_store_is_sound(make: Make, store: str):
    campaign = make(ask="preferences", overlap=0.5)
    _answer(campaign, "ann", n=4)
    _answer(campaign, "bob", "right", n=2)
    campaign.withdraw("bob")
    log = campaign.log()
    whole, half = fold(State(), log), fold(fold(State(), log[:7]), log[7:])
    assert whole.compared == half.compared
    assert whole.leases == half.leases
    assert any(isinstance(event, Leased) and event.other for event in log)
    opened = Store(store)
    assert check_store(opened).faults == ()
    opened.close()
