"""Comparisons of two documents in a campaign: questions, leases, answers, undo, gold and repeated questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest

from probeval.campaign import (
    Campaign,
    Compared,
    Imported,
    Leased,
    ModelSnapshot,
    State,
    Store,
    TaskPurpose,
    check_store,
    fold,
)
from probeval.campaign.assessors import side_by_query
from probeval.campaign.candidates import ComparisonDesign, seconds_per_answer
from probeval.data import Scale, read_answers
from probeval.errors import CampaignError, DataError
from probeval.preferences import pair_list_faults, wilson_interval
from probeval.relevance.answers.verdicts import AnsweringAssessor

Make = Callable[..., Campaign]
in_a_file = pytest.mark.parametrize("store", ["sqlite"], indirect=True)


def _answer(campaign: Campaign, who: str, choice: str = "left", n: int = 1, **options: object) -> list[Compared]:
    """Answer the next ``n`` questions, all comparisons, the same way."""
    given = []
    for _ in range(n):
        (task,) = campaign.next(who)
        given.append(campaign.answer(who, (task.query, task.doc, task.other), choice=choice, **options))  # type: ignore[arg-type]
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
    answer, (following,) = campaign.answer_and_next(
        "ann", (task.query, task.doc, task.other), choice="right", relevant="chosen"
    )
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
    answer = campaign.answer("ann", (task.query, task.doc, task.other), choice="equal", relevant="neither")
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
    campaign.skip("ann", (task.query, task.other, task.doc), reason="no text")
    assert not campaign.state.is_open(task.question, "ann", 0.0)
    assert campaign.state.is_open(task.question, "bob", 0.0)
    assert (campaign.next("ann")[0].doc, campaign.next("ann")[0].other) != (task.doc, task.other)


@in_a_file
def test_a_request_sent_twice_counts_once(make: Make):
    campaign = make(ask="preferences")
    (task,) = campaign.next("ann")
    about = ("ann", (task.query, task.doc, task.other))
    first = campaign.answer(*about, choice="left", token="t")
    assert campaign.answer(*about, choice="left", token="t") == first
    with pytest.raises(CampaignError, match="was used for a different request"):
        campaign.answer(*about, choice="right", token="t")
    assert len(campaign.state.pair_answers or ()) == 1


@in_a_file
def test_a_later_answer_replaces_the_first_and_a_settled_one_replaces_all(make: Make):
    campaign = make(ask="preferences", overlap=1.0)
    (task,) = campaign.next("ann")
    about = (task.query, task.doc, task.other)
    campaign.answer("ann", about, choice="left")
    campaign.answer("ann", about, choice="right")
    assert campaign.state.disagreements == []
    (same,) = campaign.next("bob")  # needs another opinion
    assert {same.doc, same.other} == {task.doc, task.other}
    campaign.answer("bob", about, choice="left")
    assert campaign.state.disagreements == [task.question]
    assert campaign.collection.answers.to_frame()["choice"].tolist() == ["right", "left"]
    campaign.settle("eve", about, choice="equal", reason="alike")
    assert campaign.state.disagreements == []
    settled = campaign.collection.answers.to_frame()
    assert settled[["choice", "assessor"]].to_numpy().tolist() == [["equal", "eve"]]


@in_a_file
@pytest.mark.parametrize(
    ("about", "options", "message"),
    [
        (("x", "x"), {"choice": "left"}, "cannot be compared with itself"),
        (("x", "y"), {"choice": "better"}, "is left, equal, right; got 'better'"),
        (("x", "y"), {}, "needs a choice"),
        (("x", "y"), {"choice": "equal", "relevant": "chosen"}, "neither was chosen"),
        (("x", "y"), {"choice": "left", "relevant": "all"}, "both, chosen, neither may be relevant; got 'all'"),
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
        campaign.answer("ann", (task.query, *(docs[each] for each in about)), **options)
    with pytest.raises(CampaignError, match="no run retrieves document 'none'"):
        campaign.answer("ann", (task.query, task.doc, "none"), choice="left")
    assert campaign.state.number == before


@in_a_file
def test_magnitudes_ask_for_numbers_of_two_documents(make: Make):
    campaign = make(ask="magnitudes")
    (task,) = campaign.next("ann")
    assert task.asks == "magnitude"
    answer = campaign.answer("ann", (task.query, task.doc, task.other), numbers=(30, 10.5))
    assert answer.better == task.doc
    (row,) = campaign.collection.answers.to_frame().to_dict("records")
    assert (row["left_number"], row["right_number"], row["choice"]) == (30.0, 10.5, "")


@in_a_file
def test_numbers_from_0_to_100_are_grades_of_the_fine_scale(make: Make):
    campaign = make(scale=Scale.fine(100))
    (task,) = campaign.next("ann")
    assert task.asks == "grade"
    assert campaign.answer("ann", task.question, grade=37).grade == 37.0
    with pytest.raises(CampaignError, match="The grades of the scale fine are 0 to 100; got 101"):
        campaign.answer("ann", task.question, grade=101)
    assert campaign.export().split()[3] == "37"


@in_a_file
def test_a_mixed_campaign_asks_for_grades_and_preferences_and_no_order_that_grades_tell(make: Make):
    campaign = make(ask="mixed")
    kinds = Counter()
    for _ in range(40):
        (task,) = campaign.next("ann")
        kinds[task.asks] += 1
        if task.asks == "grade":
            campaign.answer("ann", task.question, grade=1.0)
        else:
            graded = [(task.query, doc) in campaign.state.judged for doc in (task.doc, task.other)]
            assert not all(graded)
            campaign.answer("ann", (task.query, task.doc, task.other), choice="left")
    assert kinds["grade"] > 5 < kinds["preference"]


@in_a_file
def test_the_times_of_answers_are_learned_by_kind(make: Make, clock):
    campaign = make(ask="mixed")
    tasks = campaign.next("ann", n=60)
    clock.now += 100
    for task in tasks:
        if task.asks == "grade":
            campaign.answer("ann", task.question, grade=1.0, seconds=4.0)
        else:
            campaign.answer("ann", (task.query, task.doc, task.other), choice="left", seconds=7.0)
    assert seconds_per_answer(campaign.state) == {"grade": 4.0, "preference": 7.0, "magnitude": 25.0}
    assert seconds_per_answer(State()) == {"grade": 25.0, "preference": 18.0, "magnitude": 25.0}


def test_a_log_folds_in_one_pass_as_in_several_and_the_store_is_sound(make: Make, store: str):
    campaign = make(ask="preferences", overlap=0.5)
    _answer(campaign, "ann", n=4)
    _answer(campaign, "bob", "right", n=2)
    campaign.withdraw("bob")
    log = campaign.log()
    whole, half = fold(State(), log), fold(fold(State(), log[:7]), log[7:])
    assert whole.compared == half.compared
    assert whole.leases == half.leases
    assert any(isinstance(event, Leased) and len(event.documents) == 2 for event in log)
    opened = Store(store)
    assert check_store(opened).faults == ()
    opened.close()


def _orders(campaign: Campaign, n: int) -> dict[str, list[tuple[str, str]]]:
    """The first ``n`` pairs of the design, as if their better document were known: the one on the left."""
    first = campaign._candidates(campaign.state).design(0).division(0)
    orders: dict[str, list[tuple[str, str]]] = {}
    for query, pair in [(query, pair) for query, pairs in first for pair in pairs][:n]:
        orders.setdefault(query, []).append(pair)
    return orders


@in_a_file
def test_gold_comparisons_are_asked_checked_and_are_no_evidence(make: Make):
    campaign = make(ask="preferences", gold_share=0.5)
    campaign.change_gold("eve", _orders(campaign, 40), kind="comparison")
    better = campaign.state.gold
    for name, honest in (("ann", True), ("bob", False)):
        for task in campaign.next(name, n=32):
            known = better.get(task.question)
            choice = "left" if task.doc == known else "right"
            wrong = {"left": "right", "right": "left"}[choice]
            campaign.answer(
                name, (task.query, task.doc, task.other), choice=choice if honest or known is None else wrong
            )
    status = campaign.status()
    ann, bob = status.comparers
    assert ann.gold > 5 < bob.gold
    assert (ann.gold_right, bob.gold_right) == (ann.gold, 0)
    named = f"bob is careless: {bob.gold} of {bob.gold} gold questions wrong. P "
    assert [each.verdict for each in status.verdicts] == ["careful", "careless"]
    assert any(line.startswith(named) for line in status.summary().splitlines())
    assert any(line.startswith(named) for line in status.advice)
    assert len(campaign.state.pair_answers or ()) == status.answers == 64 - ann.gold - bob.gold
    listed = campaign.gold()
    assert sum(order.answers for order in listed.orders) == ann.gold + bob.gold
    assert sum(order.right for order in listed.orders) == ann.gold


@in_a_file
@pytest.mark.parametrize(
    ("orders", "message"),
    [
        ({"none": [("a", "b")]}, "no query 'none' in this campaign"),
        ({"q000": [("a", "a")]}, "compares document 'a' with itself"),
        ({"q000": [("a", "b"), ("b", "a")]}, "in both orders"),
    ],
)
def test_wrong_gold_comparisons_are_refused(make: Make, orders, message):
    campaign = make(ask="preferences")
    first = next(iter(campaign.queries))
    with pytest.raises(CampaignError, match=message):
        campaign.change_gold(
            "eve", {first if query == "q000" else query: o for query, o in orders.items()}, kind="comparison"
        )


@in_a_file
def test_questions_come_again_with_the_sides_exchanged(make: Make):
    campaign = make(ask="preferences", repeat_share=0.4)
    given = _answer(campaign, "ann", "left", n=45)
    again = [answer for answer in given if answer.purpose is TaskPurpose.repeat]
    first = {answer.question: answer for answer in given if answer.purpose is TaskPurpose.judgment}
    assert len(again) > 3
    for answer in again:
        assert (answer.left, answer.right) == (first[answer.question].right, first[answer.question].left)
    (ann,) = campaign.status().comparers
    assert (ann.repeats, ann.repeats_same) == (len(again), 0)  # left both times is the other document
    assert ann.left == 1.0
    assert ann.left_lower > 0.5


@in_a_file
def test_the_status_tells_contradictions_manner_and_pace(make: Make, clock):
    campaign = make(ask="preferences")
    query = next(iter(campaign.queries))
    a, b, c, d = [doc for q, doc in map(campaign.pool.label, range(len(campaign.pool))) if q == query][:4]
    for left, right in ((a, b), (b, c), (c, d), (d, a)):
        campaign.answer("ann", (query, left, right), choice="left", relevant="both")
        campaign.answer("bob", (query, left, right), choice="equal", relevant="neither")
    ann, bob = campaign.status().comparers
    assert (ann.violated, ann.contradictions) == (1, 0.5)
    assert (bob.violated, bob.preferences) == (0, 4)
    assert (ann.relevant, ann.manner, bob.relevant, bob.manner) == (1.0, "generous", 0.0, "strict")
    shown = campaign.status().summary()
    assert "Asked for preferences: 8 answers about two documents (8 with a choice, 0 with numbers)." in shown
    assert "ann contradicts themselves in 1 preference (50% of the documents)." in shown
    document = campaign.status().to_dict()
    assert [row["assessor"] for row in document["comparers"]] == ["ann", "bob"]
    assert {row["query"]: row["answers"] for row in document["queries"]}[query] == 8


@in_a_file
@pytest.mark.parametrize("file_format", ["answers", "answers-jsonl"])
def test_exported_answers_come_back_as_they_were(make: Make, tmp_path, file_format: str):
    campaign = make(ask="preferences", name="first", gold_share=0.3)
    campaign.change_gold("eve", _orders(campaign, 6), kind="comparison")
    tasks = campaign.next("ann", n=12)
    for at, task in enumerate(tasks):
        about = ("ann", (task.query, task.doc, task.other))
        if at % 3:
            campaign.answer(*about, choice="right", relevant="chosen", seconds=0.1 + at, comment='a "remark", =1+1')
        else:
            campaign.answer(*about, numbers=(at + 1 / 3, 0))
    kept = campaign.collection.answers.to_frame()
    assert 0 < len(kept) < 12
    file = tmp_path / ("answers.csv" if file_format == "answers" else "answers.jsonl")
    file.write_text(campaign.export(file_format))
    again = make(ask="preferences", name="second")
    incoming = again.import_file("eve", file)
    assert len(incoming.answers) == len(kept)
    assert repr(again) == f"<Campaign: second, 0 pairs judged, {len(kept)} answers>"
    pd.testing.assert_frame_equal(again.collection.answers.to_frame(), kept)
    with pytest.raises(CampaignError, match="already imported"):
        again.import_file("eve", file)
    assert [e.answers for e in again.log() if isinstance(e, Imported)] == [len(kept)]
    pd.testing.assert_frame_equal(read_answers(file).to_frame(), kept)


@in_a_file
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{q},{a},{a},left,", "with itself"),
        ("{q},{a},{b},,", "has no choice, relevant or numbers"),
        ("{q},{a},{b},equal,chosen", "chooses none"),
        ("nowhere,{a},{b},left,", "nothing in it belongs to this campaign: 1 answers of other queries"),
    ],
)
def test_a_file_of_wrong_answers_is_refused_whole(make: Make, tmp_path, row: str, message: str):
    campaign = make(ask="preferences")
    query = next(iter(campaign.queries))
    a, b = [doc for q, doc in map(campaign.pool.label, range(len(campaign.pool))) if q == query][:2]
    file = tmp_path / "answers.csv"
    file.write_text("query,left,right,choice,relevant\n" + row.format(q=query, a=a, b=b) + "\n")
    with pytest.raises(DataError, match=message):
        campaign.import_file("eve", file)
    assert campaign.collection.answers is None


@in_a_file
def test_an_import_ends_the_lease_of_a_question_and_the_pace_is_that_of_answers(make: Make, tmp_path, clock):
    campaign = make(ask="preferences", stay=1.0)
    campaign.refresh()
    first, second = campaign.next("ann", n=2)
    assert first.left_in_topic > 2  # pairs of the design, not documents
    file = tmp_path / "given.csv"
    file.write_text(f"query,left,right,choice\n{first.query},{first.other},{first.doc},right\n")
    campaign.import_file("eve", file, assessor="bob")
    assert [(task.doc, task.other) for task in campaign.next("ann")] == [(second.doc, second.other)]
    clock.now += 50
    campaign.answer("ann", (second.query, second.doc, second.other), choice="left", seconds=12.5)
    assert campaign.status().seconds == 12.5


@in_a_file
def test_a_collection_with_answers_becomes_a_campaign_with_them(make: Make, small, store: str, clock):
    campaign = make(ask="preferences", name="first")
    _answer(campaign, "ann", n=3)
    whole = replace(campaign.collection, judgments=None)
    with Campaign.create(
        store, whole, metric="nDCG@5", scale=Scale.graded(2), model="uniform", name="second", clock=clock
    ) as again:
        pd.testing.assert_frame_equal(again.collection.answers.to_frame(), whole.answers.to_frame())


@in_a_file
def test_answers_count_towards_a_budget(make: Make):
    campaign = make(ask="preferences", stopping="budget=4")
    _answer(campaign, "ann", n=3)
    assert not campaign.refresh().reached
    assert campaign.is_behind is False
    _answer(campaign, "ann")
    assert campaign.is_behind
    assert campaign.refresh().reached
    assert campaign.judging_state().collection.answers is not None


@in_a_file
def test_changing_what_is_asked_keeps_the_answers(make: Make):
    campaign = make(ask="preferences")
    _answer(campaign, "ann", n=2)
    campaign.change("eve", ask="grades")
    (task,) = campaign.next("bob")
    assert (task.asks, task.other) == ("grade", "")
    assert len(campaign.collection.answers) == 2
    with pytest.raises(CampaignError, match=r"Assessors are asked for .*grades, lists; got 'all'"):
        campaign.change("eve", ask="all")


@pytest.mark.validation
def test_an_honest_assessor_is_not_said_to_favour_a_side_because_documents_stay_on_theirs():
    wrong, by_answer = 0, 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        docs = {f"q{i}": [f"d{j}" for j in range(11)] for i in range(20)}
        relevance = {query: dict(zip(own, rng.normal(0, 2, len(own)), strict=True)) for query, own in docs.items()}
        groups = ComparisonDesign(docs, seed).division(0)
        asked = [
            (query, *pair) for at in rng.permutation(len(groups)) for query, pairs in [groups[at]] for pair in pairs
        ]
        given = []
        for query, left, right in asked[:100]:
            better = relevance[query][left] - relevance[query][right] > rng.logistic(0, 0.5)
            given.append((query, "left" if better else "right"))
        _, lower, upper = side_by_query(given)
        wrong += not lower <= 0.5 <= upper
        one = wilson_interval(sum(choice == "left" for _, choice in given), len(given))
        by_answer += not one.lower <= 0.5 <= one.upper
    assert wrong <= 9  # 3 expected; 10 or more have a probability of .001
    assert wrong < by_answer


def test_a_side_is_favoured_if_it_is_so_over_queries():
    over_all = [(f"q{i % 20}", "left" if i % 5 else "right") for i in range(100)]
    assert side_by_query(over_all)[1] > 0.5
    in_some = [(f"q{i % 5}", "left" if i % 5 else "right") for i in range(100)]  # one query goes the other way
    assert wilson_interval(80, 100).lower > 0.5 > side_by_query(in_some)[1]


@in_a_file
def test_an_assessor_whom_the_model_finds_careless_is_named(make: Make):
    campaign = make(ask="preferences")
    _answer(campaign, "cy", n=2)
    snapshot = campaign.refresh()
    assert not snapshot.uses_answers
    assert "The model uniform does not use answers about two documents" in campaign.status().summary()
    found = AnsweringAssessor("cy", 2, "choice", 0.1, -1.0, 1.0, 0.0, -1.0, 1.0, 0.02, 0.95, 0.03, "careless")
    later = replace(snapshot, time=snapshot.time + 1, answering=(asdict(found),), uses_answers=True)
    campaign._log.store.add_snapshot(campaign._log.key, later.to_row())
    status = campaign.status()
    (cy,) = status.comparers
    assert (cy.verdict, cy.careless, cy.reversed, cy.is_bad) == ("careless", 0.95, 0.03, True)
    said = "cy is careless: comparisons that do not follow relevance (P 0.98 by the model). P 0.98 that "
    assert said in status.summary()
    assert any(line.startswith(said) for line in status.advice)


@pytest.mark.validation
@in_a_file
def test_the_model_takes_answers_as_evidence_and_names_a_careless_assessor(make: Make, small):
    campaign = make(ask="preferences", model="text-hierarchical")
    known = {small.judgments.pool.label(i): grade for i, grade in enumerate(small.judgments.grades())}
    rng = np.random.default_rng(1)
    for name in ("ann", "cy", "bob"):
        for task in campaign.next(name, n=50):
            better = known.get((task.query, task.doc), 0) - known.get((task.query, task.other), 0)
            honest = "left" if better > 0 else "right" if better < 0 else "equal"
            choice = str(rng.choice(["left", "right"])) if name == "cy" else honest
            campaign.answer(name, (task.query, task.doc, task.other), choice=choice)
    snapshot = campaign.refresh()
    assert snapshot.uses_answers
    ann, bob, cy = campaign.status().comparers
    assert (ann.is_bad, bob.is_bad, cy.verdict) == (False, False, "careless")
    assert [each.assessor for each in campaign.status().verdicts if each.is_careless] == ["cy"]
    assert any(line.startswith("cy is careless: ") for line in campaign.status().advice)
    bare = ModelSnapshot.from_row(snapshot.to_row())
    assert bare.answering == snapshot.answering
