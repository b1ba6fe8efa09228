"""Gold and repeated pairs: who gets them and when, what becomes of the answers, and whom they name."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from probeval.campaign import Adjudicated, Campaign, GoldChanged, Judged, Leased, State, TaskPurpose, check_store, fold
from probeval.campaign.assessors import share_interval
from probeval.campaign.exchange import export_rows
from probeval.campaign.leases import REPEAT_AFTER, task_purpose
from probeval.campaign.log import Store, decode, encode
from probeval.data import Runs, Scale, read_judgments
from probeval.errors import CampaignError, DataError
from tests.campaign.conftest import Clock

Make = Callable[..., Campaign]
OUTSIDE = {"q1": {"unseen1": 2.0, "unseen2": 0.0}}


def _gold(campaign: Campaign, n: int) -> dict[str, dict[str, float]]:
    """Every n-th pair of the pool, graded 1."""
    found: dict[str, dict[str, float]] = {}
    for at in range(0, len(campaign.pool), n):
        query, doc = campaign.pool.label(at)
        found.setdefault(query, {})[doc] = 1.0
    return found


def _judge(campaign: Campaign, who: str, n: int, grade: Callable[[Judged | Leased], float] = lambda _: 1.0) -> None:
    for _ in range(n):
        tasks = campaign.next(who)
        lease = campaign.state.leases[tasks[0].question][who]
        campaign.answer(who, tasks[0].question, grade=grade(lease))


def _of(log: Iterable[object], who: str) -> list[Judged]:
    return [event for event in log if isinstance(event, Judged) and event.by == who]


def test_each_check_comes_at_the_position_drawn_for_it_or_soon_after(make: Make):
    campaign = make(gold_share=0.3, repeat_share=0.2, seed=3)
    campaign.change_gold("eve", _gold(campaign, 2))
    _judge(campaign, "ann", 45)
    given = _of(campaign.log(), "ann")
    drawn = [task_purpose(campaign.setup, "ann", at) for at in range(len(given))]
    gold = [at for at, answer in enumerate(given) if answer.purpose is TaskPurpose.gold]
    due = [at for at, purpose in enumerate(drawn) if purpose is TaskPurpose.gold]
    assert gold[:9] == due[:9]  # while there is gold about every query
    assert all(at >= first for at, first in zip(gold, due, strict=False))
    assert len({given[at].question for at in gold}) == len(gold)  # each once
    repeats = [at for at, answer in enumerate(given) if answer.purpose is TaskPurpose.repeat]
    assert repeats
    due = [at for at, purpose in enumerate(drawn) if purpose is TaskPurpose.repeat]
    assert len(repeats) <= len(due)
    for at in repeats:
        (first,) = [i for i in range(at) if given[i].question == given[at].question]
        own = [answer for answer in given[first + 1 : at] if answer.purpose is TaskPurpose.judgment]
        assert len(own) >= REPEAT_AFTER
    shares = Counter(task_purpose(campaign.setup, "bob", at) for at in range(4000))
    assert shares[TaskPurpose.gold] / 4000 == pytest.approx(0.3, abs=4 * np.sqrt(0.21 / 4000))
    assert shares[TaskPurpose.repeat] / 4000 == pytest.approx(0.2, abs=4 * np.sqrt(0.16 / 4000))


def test_without_a_share_nothing_is_checked_and_with_no_pair_left_judging_goes_on(make: Make):
    campaign = make()
    campaign.change_gold("eve", OUTSIDE)
    _judge(campaign, "ann", 10)
    assert {answer.purpose for answer in _of(campaign.log(), "ann")} == {TaskPurpose.judgment}
    campaign.change("eve", gold_share=0.9)
    _judge(campaign, "ann", 10)
    given = Counter(answer.purpose for answer in _of(campaign.log(), "ann"))
    assert given == {TaskPurpose.judgment: 18, TaskPurpose.gold: 2}
    assert campaign.status().assessors[0].gold_left == 0
    assert any("ann has answered all gold pairs" in sentence for sentence in campaign.status().advice)


def test_the_known_grade_of_a_retrieved_pair_counts_and_answers_do_not(make: Make, store: str):
    campaign = make(gold_share=0.5, seed=1)
    query, doc = campaign.pool.label(0)
    campaign.change_gold("eve", {query: {doc: 2.0, "unseen": 0.0}})
    answered: dict[str, float] = {}
    while len(answered) < 2:
        (task,) = campaign.next("ann")
        lease = campaign.state.leases[task.question]["ann"]
        if lease.purpose is TaskPurpose.gold:
            before = campaign.state.changed
            campaign.answer("ann", task.question, grade=1)
            assert campaign.state.changed == before  # nothing new for the model
            answered[task.doc] = 1.0
        else:
            campaign.answer("ann", task.question, grade=0)
    assert set(answered) == {doc, "unseen"}
    assert not any(campaign.state.given(question) for question in campaign.state.gold)
    qrels = campaign.export("qrels")
    assert f"{query} 0 {doc} 2\n" in qrels  # known, and not adjudicated by anyone
    (known,) = [row for row in export_rows(campaign.state) if (row["doc"], row["purpose"]) == (doc, "judgment")]
    assert (known["adjudicated"], known["source"]) == (False, "gold")
    assert "unseen" not in qrels
    assert campaign.status().adjudicated == 0
    assert campaign.status().gold == 2
    shown = {pair.doc: pair for pair in campaign.gold().pairs}
    assert (shown[doc].retrieved, shown[doc].answers, shown[doc].right, shown[doc].mean) == (True, 1, 0, 1.0)
    assert not shown["unseen"].retrieved
    with pytest.raises(CampaignError, match="no run retrieves document 'unseen'"):
        campaign.settle("eve", (query, "unseen"), grade=1)
    campaign.close()
    assert check_store(Store(store, read_only=True)).faults == ()


def test_late_runs_settle_the_gold_pairs_that_they_retrieve(make: Make):
    campaign = make()
    campaign.change_gold("eve", OUTSIDE)
    assert not campaign.state.adjudicated
    campaign.add_runs("eve", Runs.rows(["late"] * 2, ["q1"] * 2, ["unseen1", "other"], [2.0, 1.0]))
    assert {pair: event.grade for pair, event in campaign.state.adjudicated.items()} == {("q1", "unseen1"): 2.0}


def test_of_a_repeated_pair_the_first_answer_counts(make: Make):
    campaign = make(repeat_share=0.3, seed=2)
    _judge(campaign, "ann", 40, lambda lease: 2.0 if lease.purpose is TaskPurpose.repeat else 0.0)
    state = campaign.state
    again = [question for question in state.answers if "ann" in state.checks(question)]
    assert again
    assert all(state.latest(question)["ann"].grade == 0 for question in again)
    assert set(campaign.state.judgments.grade) == {0.0}
    (share,) = campaign.status().assessors
    assert (share.repeats, share.repeats_same, share.repeats_gap) == (len(again), 0, 2.0)
    campaign.answer("ann", again[0], grade=1)  # sent once more without a lease: still the repeat
    assert campaign.state.latest(again[0])["ann"].grade == 0
    assert campaign.state.checks(again[0])["ann"].grade == 1


def test_undo_and_skip_work_on_gold_as_on_other_pairs(make: Make):
    campaign = make(gold_share=0.9)
    campaign.change_gold("eve", OUTSIDE)
    (task,) = campaign.next("ann")
    assert task.question in campaign.state.gold
    campaign.answer("ann", task.question, grade=1)
    campaign.withdraw("ann")
    assert not campaign.state.answers
    assert campaign.state.own_count("ann") == 0
    (again,) = campaign.next("ann")
    assert again.question == task.question
    campaign.skip("ann", task.question, reason="no text")
    (other,) = campaign.next("ann")
    assert other.question in campaign.state.gold.keys() - {task.question}


def test_a_price_of_switching_keeps_gold_in_the_topic(make: Make):
    campaign = make(gold_share=0.3, stay=5.0, topics="in-turn", seed=4)
    campaign.change_gold("eve", {query: {f"{query}-gold{i}": 1.0 for i in range(9)} for query in campaign.queries})
    campaign.refresh()
    _judge(campaign, "ann", 12)
    given = _of(campaign.log(), "ann")
    assert any(answer.purpose is TaskPurpose.gold for answer in given[1:])
    assert all(a.query == b.query for a, b in pairwise(given) if b.purpose is TaskPurpose.gold)


@pytest.mark.parametrize("topics", ["free", "in-turn", "owned"])
def test_a_check_is_about_the_query_of_the_questions_beside_it(make: Make, topics: str):
    campaign = make(gold_share=0.2, repeat_share=0.1, stay=5.0, topics=topics, seed=5)
    known = {f"{query}-gold{i}": query for query in list(campaign.queries)[:3] for i in range(9)}
    campaign.change_gold("eve", {query: {d: 1.0 for d, of in known.items() if of == query} for query in known.values()})
    campaign.refresh()
    _judge(campaign, "ann", 45)
    given = _of(campaign.log(), "ann")
    checks = [at for at, answer in enumerate(given) if answer.purpose is not TaskPurpose.judgment]
    assert len(checks) > 5
    for at in checks:
        assert given[at].query in {each.query for each in (*given[max(0, at - 1) : at], *given[at + 1 : at + 2])}
        assert given[at].question not in {each.question for each in given[max(0, at - REPEAT_AFTER) : at]}


def test_every_answer_counts_in_the_topic_and_in_all(make: Make):
    campaign = make(gold_share=0.3, repeat_share=0.2, overlap=0.5, seed=4)
    campaign.change_gold("eve", {query: {f"{query}-gold{i}": 1.0 for i in range(9)} for query in campaign.queries})
    campaign.refresh()
    counted = Counter[str]()
    for _ in range(40):
        (task,) = campaign.next("ann")
        assert task.judged_in_topic == counted[task.query]
        campaign.answer("ann", task.question, grade=1)
        counted[task.query] += 1
    assert {answer.purpose for answer in _of(campaign.log(), "ann")} == set(TaskPurpose) - {TaskPurpose.aside}
    assert sum(campaign.state.answered.values()) == campaign.state.own_count("ann") == 40
    campaign.withdraw("ann")
    assert sum(campaign.state.answered.values()) == 39


def test_the_log_comes_back_and_a_second_process_gives_the_same_tasks(make: Make, store: str, clock: Clock):
    campaign = make(gold_share=0.3, repeat_share=0.2)
    campaign.change_gold("eve", _gold(campaign, 3))
    _judge(campaign, "ann", 30)
    log = campaign.log()
    assert [decode(encode(event)) for event in log] == log
    with Campaign.open(store, clock=clock) as other:
        assert other.next("ann", n=4) == campaign.next("ann", n=4)
    assert fold(State(), log).answers == campaign.state.answers


def test_exports_mark_answers_and_readers_leave_them_out(make: Make, put: Callable[[str, str], Path]):
    campaign = make(gold_share=0.4, repeat_share=0.2)
    campaign.change_gold("eve", OUTSIDE)
    _judge(campaign, "ann", 40)
    text = campaign.export("csv")
    rows = Counter(row["purpose"] for row in csv.DictReader(io.StringIO(text)))
    assert rows["gold"] == 2
    assert rows["repeat"] > 0
    lines = [json.loads(line) for line in campaign.export("jsonl").splitlines()]
    assert Counter(line["purpose"] for line in lines) == rows
    logged = Counter(
        json.loads(line).get("purpose") for line in campaign.export("log").splitlines() if "judged" in line
    )
    assert (logged["gold"], logged["repeat"]) == (rows["gold"], rows["repeat"])
    assert campaign.export("qrels").count("\n") == rows["judgment"]
    for name in ("judged.csv", "judged.jsonl"):
        back = read_judgments(put(name, campaign.export(name.partition(".")[2])))
        assert len(back) == rows["judgment"]
        assert "unseen1" not in back.pool.docs


def test_bad_gold_gets_one_line(make: Make, put: Callable[[str, str], Path]):
    campaign = make()
    with pytest.raises(CampaignError, match=r"Gold: no query 'q9' in this campaign\. Did you mean"):
        campaign.change_gold("eve", {"q9": {"d": 1.0}})
    with pytest.raises(CampaignError, match="The grades of the scale graded:2 are 0, 1, 2; got 5"):
        campaign.change_gold("eve", {"q1": {"d": 5.0}})
    with pytest.raises(DataError, match="document 'd' has the grades 1 and 2"):
        campaign.change_gold("eve", put("gold.csv", "query,doc,grade,assessor\nq1,d,1,a\nq1,d,2,b\n"))
    with pytest.raises(CampaignError, match="share of gold pairs must be from 0 to below 1"):
        campaign.change("eve", gold_share=1.0)
    with pytest.raises(CampaignError, match="together must be fewer than all tasks"):
        campaign.change("eve", gold_share=0.6, repeat_share=0.5)
    assert not [event for event in campaign.log() if isinstance(event, (GoldChanged, Adjudicated))]


def test_intervals_are_those_of_the_textbook():
    assert share_interval(8, 10) == pytest.approx(stats.beta(8.5, 2.5).ppf([0.025, 0.975]))
    assert share_interval(0, 4)[0] == 0.0
    assert share_interval(4, 4)[1] == 1.0


def test_gold_of_a_fine_scale_is_right_within_a_bin(make: Make):
    campaign = make(gold_share=0.9, scale=Scale.fine(100, bins=10), metric="DCG@5")
    campaign.change_gold("eve", {"q1": {"near": 50.0, "far": 50.0}})
    while campaign.state.own_count("ann") < 2:
        (task,) = campaign.next("ann")
        campaign.answer("ann", task.question, grade={"near": 58, "far": 80}.get(task.doc, 10))
    assert {pair.doc: pair.right for pair in campaign.gold().pairs} == {"far": 0, "near": 1}
