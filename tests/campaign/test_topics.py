"""Assessors who judge by topic: their own, or one after another; second opinions; the log."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise

import pytest

from probeval.campaign import Campaign
from probeval.campaign.questions import graded
from probeval.errors import CampaignError, SelectionError
from tests.campaign.conftest import Clock

Make = Callable[..., Campaign]


def _judge(campaign: Campaign, who: str, n: int, *, refresh: bool = False) -> list[str]:
    """The topics of the next pairs of an assessor, who judges them."""
    out = []
    for _ in range(n):
        if refresh and campaign.is_behind:
            campaign.refresh()
        tasks = campaign.next(who)
        if not tasks:
            break
        campaign.answer(who, tasks[0].question, grade=1)
        out.append(tasks[0].query)
    return out


def _switches(topics: list[str]) -> int:
    return sum(a != b for a, b in pairwise(topics))


def test_owners_get_their_topics_only_and_the_rest_when_nobody_owns_it(make: Make):
    campaign = make(topics="owned", stay=1.0)
    first, second, *others = campaign.queries
    campaign.assign_topics("eve", {first: "ann", second: "bob"})
    assert set(_judge(campaign, "ann", 99)) == {first, *others}
    assert set(_judge(campaign, "bob", 99)) == {second}
    assert _judge(campaign, "cy", 1) == []
    campaign.assign_topics("eve", {second: ""})
    assert campaign.state.owners == {first: "ann"}


def test_topics_in_turn_belong_to_one_assessor_until_the_lease_runs_out(make: Make, clock: Clock):
    campaign = make(topics="in-turn", stay=5.0, lease=60.0)
    campaign.refresh()
    ann, bob = _judge(campaign, "ann", 4), _judge(campaign, "bob", 4)
    assert len(set(ann)) == len(set(bob)) == 1
    assert ann[0] != bob[0]
    mine = campaign.state.topics["ann"].query
    assert {t.query: t.judging for t in campaign.topics().queries if t.judging} == {mine: "ann", bob[0]: "bob"}
    clock.now += 120
    assert not any(t.judging for t in campaign.topics().queries)


def test_more_assessors_than_topics_share_them(make: Make):
    campaign = make(topics="in-turn", stay=1.0)
    names = [f"a{i}" for i in range(len(campaign.queries) + 2)]
    assert all(campaign.next(name) for name in names)


@pytest.mark.parametrize("topics", ["free", "in-turn", "owned"])
def test_a_price_keeps_an_assessor_in_a_topic(make: Make, topics: str):
    campaign = make(topics=topics, stay=3.0, explore=0.0)
    judged = _judge(campaign, "ann", 15, refresh=True)
    assert len(judged) == 15
    assert _switches(judged) <= 4


def test_without_a_price_the_queue_is_judged_in_order(make: Make):
    campaign = make()
    queue = campaign.refresh().queue
    assert [(t.query, t.doc) for t in campaign.next("ann", n=20)] == list(queue[:20])


def test_a_task_tells_whether_the_topic_changed_and_what_is_left(make: Make):
    campaign = make(topics="in-turn", stay=2.0, explore=0.0)
    campaign.refresh()
    first = campaign.next("ann")[0]
    assert (first.switched, first.judged_in_topic) == (True, 0)
    assert 1 <= first.left_in_topic <= len(campaign.pool)
    _, [second] = campaign.answer_and_next("ann", first.question, grade=1)
    assert second.query == first.query
    assert (second.switched, second.judged_in_topic) == (False, 1)
    assert second.left_in_topic == first.left_in_topic - 1
    campaign.skip("ann", second.question)
    last = second
    while last.query == first.query:
        last = campaign.next("ann")[0]
        campaign.answer("ann", last.question, grade=0)
        before, now = last, campaign.next("ann")[0]
        assert now.switched == (now.query != before.query)
        last = now


def test_second_opinions_wait_for_a_change_of_topic_and_come_together(make: Make):
    campaign = make(topics="owned", stay=9.0, overlap=1.0, explore=0.0)
    first = next(iter(campaign.queries))
    campaign.assign_topics("eve", {query: "ann" if query == first else "bob" for query in campaign.queries})
    campaign.refresh()
    assert set(_judge(campaign, "bob", 3)) != {first}
    bobs = campaign.state.finished["bob"][0]
    begun = campaign.next("ann")[0]
    assert begun.query == bobs  # before her first topic, what another waits for
    judged = _judge(campaign, "ann", 8)
    assert judged[:3] == [bobs] * 3
    assert set(judged[3:]) == {first}  # and then her own, until it is done
    more = _judge(campaign, "bob", 4)
    assert set(more) == {bobs}  # bob stays, though pairs of ann wait
    assert all(len(judgments) <= 2 for judgments in campaign.state.judged.values())


def test_second_opinions_come_from_those_who_do_not_own_the_topic(make: Make):
    campaign = make(topics="owned", stay=1.0, overlap=1.0)
    campaign.assign_topics("eve", dict.fromkeys(campaign.queries, "ann"))
    _judge(campaign, "ann", 6)
    assert len(_judge(campaign, "bob", 99)) == 6
    assert _judge(campaign, "bob", 1) == []
    assert all(set(campaign.state.latest(graded(*pair))) == {"ann", "bob"} for pair in campaign.state.judged)


def test_draws_that_wait_stay_in_the_next_snapshot(make: Make):
    campaign = make(topics="owned", stay=50.0, explore=0.5)
    campaign.assign_topics("eve", dict.fromkeys(campaign.queries, "ann"))
    snapshot = campaign.refresh()
    assert len(snapshot.values) == len(snapshot.due) == len(snapshot.queue) == len(snapshot.picks)
    judged = _judge(campaign, "ann", 4)
    waiting = {pair for pair, due in snapshot.draws.items() if due < 4 and pair not in campaign.state.judged}
    assert waiting
    assert len(set(judged)) == 1
    again = campaign.refresh()
    assert {pair for pair, due in again.draws.items() if due == 0} >= waiting
    for pair in waiting:
        assert again.pick_of[graded(*pair)] == snapshot.pick_of[graded(*pair)]  # the prediction is that of the draw


def test_an_audit_counts_the_draws_judged_by_topic(make: Make):
    campaign = make(topics="in-turn", stay=1.0, explore=0.5)
    _judge(campaign, "ann", 20, refresh=True)
    assert 7 <= campaign.audit().draws <= 10  # a few may wait


def test_owners_must_be_of_this_campaign(make: Make):
    campaign = make()
    with pytest.raises(CampaignError, match="No query 'q99' in this campaign"):
        campaign.assign_topics("eve", {"q99": "ann"})
    with pytest.raises(CampaignError, match="one line of text"):
        campaign.assign_topics("eve", {next(iter(campaign.queries)): "a\nb"})
    assert campaign.state.owners == {}


@pytest.mark.parametrize("wrong", [{"topics": "mine"}, {"stay": -1.0}])
def test_settings_that_cannot_be(make: Make, wrong: dict[str, object]):
    with pytest.raises(SelectionError):
        make(**wrong)


def test_the_next_pair_needs_no_model_and_little_time(make: Make):
    campaign = make(topics="in-turn", stay=2.0)
    campaign.refresh()
    tasks = campaign.next("ann")
    start = time.process_time()
    for _ in range(20):
        _, tasks = campaign.answer_and_next("ann", tasks[0].question, grade=1)
    assert (time.process_time() - start) / 20 < 0.05
