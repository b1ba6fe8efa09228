"""A campaign that changes under way: late runs, settings, pauses, people; every change an event."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from probeval.campaign import Campaign, Role, history
from probeval.campaign.access import MOST_SESSIONS, digest_token
from probeval.data import Runs
from probeval.errors import CampaignError
from tests.campaign.conftest import Clock, on_both_databases


def late_runs(campaign: Campaign, name: str = "late") -> Runs:
    """A run of one new document and one known one, for two queries, and for one that the campaign does not have."""
    (one, doc), (two, _) = campaign.pool.label(0), campaign.pool.label(len(campaign.pool) - 1)
    return Runs.rows([name] * 4, [one, one, two, "elsewhere"], [f"{name}-a", doc, f"{name}-b", "x"])


@on_both_databases
def test_late_runs_join_while_others_have_the_campaign_open(make: Callable[..., Campaign], store: str):
    campaign = make()
    with Campaign.open(store) as other:
        first, second = (campaign.pool.label(i) for i in (0, 1))
        other.answer("ann", first, grade=2)
        campaign.refresh()
        before, systems = len(campaign.pool), campaign.collection.runs.systems
        event = campaign.add_runs("eve", late_runs(campaign), source="late.txt")
        assert (event.systems, event.pairs, event.by) == (("late",), 2, "eve")
        assert len(other.pool) == before + 2  # it follows
        assert other.collection.runs.systems == (*systems, "late")
        assert other.state.judged.keys() == {first}
        assert other.is_behind
        other.answer("ann", (first[0], "late-a"), grade=1)
        other.answer("ann", second, grade=0)
        snapshot = other.refresh()
        assert snapshot.judged == 3
        assert {row.system for row in snapshot.systems} == {*systems, "late"}
        assert {doc for _, doc in snapshot.queue} & {"late-b"}
        assert not other.is_behind
        assert other.status().pool == before + 2
    with pytest.raises(CampaignError, match="no run retrieves document 'late-z'"):
        campaign.answer("ann", (first[0], "late-z"), grade=1)


def test_new_pairs_can_be_judged_before_the_model_runs(campaign: Campaign):
    total = len(campaign.pool) + campaign.add_runs("eve", late_runs(campaign)).pairs
    given = {(task.query, task.doc) for task in campaign.next("ann", n=1000)}
    assert len(given) == total
    assert {"late-a", "late-b"} <= {doc for _, doc in given}


def test_draws_from_before_late_runs_keep_their_probabilities(make: Callable[..., Campaign]):
    campaign = make(explore=1.0, metric="DCG@5")
    campaign.refresh()
    for _ in range(12):
        (task,) = campaign.next("ann")
        campaign.answer("ann", task.question, grade=float(len(task.doc) % 3))
    before, picks = campaign.refresh().audit, dict(campaign.state.picks)
    assert before is not None
    assert before.draws == 12
    campaign.add_runs("eve", late_runs(campaign))
    (waiting,) = campaign.next("ann")  # from the queue of the old snapshot
    after = campaign.refresh().audit
    assert after is not None
    assert dict(campaign.state.picks) == {**picks, waiting.question: campaign.state.picks[waiting.question]}
    assert (after.draws, after.first, len(after.systems)) == (12, len(before.systems), len(before.systems) + 1)
    assert (after.sample, after.lower, after.upper) == (before.sample, before.lower, before.upper)
    assert [(one.sample, one.lower) for one in after.systems[:-1]] == [
        (one.sample, one.lower) for one in before.systems
    ]
    assert after.systems[-1].sample is None
    assert f"level of the first {after.first} systems" in after.sentences()[0]
    for _ in range(12):
        (task,) = campaign.next("ann")
        campaign.answer("ann", task.question, grade=float(len(task.doc) % 3))
    later = campaign.refresh().audit
    assert later is not None
    assert later.draws == 24
    assert later.systems[-1].sample is not None  # by the draws since it is there
    campaign.change("eve", metric="P@5")  # predictions were of another measure
    assert not campaign.state.picks


def test_runs_that_will_not_do_are_refused(campaign: Campaign):
    campaign.add_runs("eve", late_runs(campaign))
    with pytest.raises(CampaignError, match="has a system 'late' already"):
        campaign.add_runs("eve", late_runs(campaign))
    known = campaign.collection.runs.systems[0]
    with pytest.raises(CampaignError, match=f"has a system {known!r} already"):
        campaign.add_runs("eve", late_runs(campaign, known))
    with pytest.raises(CampaignError, match="none of the campaign's queries, such as 'q1'; they have 'other'"):
        campaign.add_runs("eve", Runs.rows(["x"], ["other"], ["d"]))
    with pytest.raises(CampaignError, match="must not contain white space"):
        campaign.add_runs("eve", Runs.rows(["x"], ["q1"], ["d 1"]))
    assert len(campaign.state.runs) == 1


def test_a_new_target_measure_and_depth(campaign: Campaign):
    first = campaign.refresh()
    event = campaign.change("eve", stopping="confidence=.999", policy="depth")
    assert (event.setup.stopping, event.setup.policy, event.setup.metric) == ("confidence=.999", "depth", "nDCG@5")
    assert campaign.is_behind
    assert campaign.refresh().number > first.number
    with pytest.raises(CampaignError, match=r"P@7 looks at 7 ranks, and the pool has 5. Change the depth as well"):
        campaign.change("eve", metric="P@7")
    pool = len(campaign.pool)
    campaign.change("eve", metric="P@7", depth=7)
    assert campaign.setup.metric == "P@7"
    assert len(campaign.pool) >= pool
    assert campaign.refresh().judged == 0
    with pytest.raises(CampaignError, match="settings already"):
        campaign.change("eve", metric="P@7")


@on_both_databases
def test_two_changes_at_once_keep_both(make: Callable[..., Campaign], store: str):
    campaign = make()
    with Campaign.open(store) as other:
        threads = [
            threading.Thread(target=campaign.change, args=("eve",), kwargs={"overlap": 0.5}),
            threading.Thread(target=other.change, args=("fay",), kwargs={"lease": 60.0}),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (campaign.setup.overlap, campaign.setup.lease) == (0.5, 60.0)


def test_a_paused_campaign_leases_and_takes_nothing(campaign: Campaign):
    (task,) = campaign.next("ann")
    campaign.answer("ann", task.question, grade=1, token="one")
    (held,) = campaign.next("ann")
    campaign.change_phase("eve", "paused", reason="lunch")
    assert campaign.next("ann") == []
    before = campaign.state.number
    pair = held.query, held.doc
    for step in (
        lambda: campaign.answer("ann", pair, grade=1),
        lambda: campaign.answer_and_next("ann", pair, grade=1),
        lambda: campaign.withdraw("ann"),
        lambda: campaign.skip("ann", pair),
        lambda: campaign.flag("ann", *pair),
        lambda: campaign.comment("ann", *pair, "x"),
        lambda: campaign.release("ann", pair),
    ):
        with pytest.raises(CampaignError, match=r"The campaign is paused \(lunch\): nothing was saved"):
            step()
    again = campaign.answer(
        "ann", (task.query, task.doc), grade=1, token="one"
    )  # what was saved before is acknowledged again
    assert again.token == "one"
    assert campaign.state.number == before
    campaign.settle("eve", task.question, grade=2)  # the owner goes on
    assert "The campaign is paused (lunch)" in campaign.status().summary()
    campaign.change_phase("eve", "open")
    assert campaign.next("ann")[0].doc == held.doc


def test_a_closed_campaign_stays_as_it_is_until_it_is_reopened(campaign: Campaign, put: Callable[..., object]):
    pair = campaign.pool.label(0)
    campaign.answer("ann", pair, grade=1)
    qrels = put("qrels.txt", f"{pair[0]} 0 {pair[1]} 2\n")
    campaign.change_phase("eve", "closed")
    for step in (
        lambda: campaign.settle("eve", pair, grade=2),
        lambda: campaign.import_file("eve", qrels, assessor="trec"),  # type: ignore[arg-type]
        lambda: campaign.change("eve", stopping="confidence=.5"),
        lambda: campaign.add_runs("eve", late_runs(campaign)),
    ):
        with pytest.raises(CampaignError, match="The campaign is closed: nothing was saved"):
            step()
    assert campaign.export().split() == [pair[0], "0", pair[1], "1"]
    with pytest.raises(CampaignError, match="The campaign is closed: it cannot become paused from there"):
        campaign.change_phase("eve", "paused")
    campaign.change_phase("eve", "open")
    campaign.settle("eve", pair, grade=2)


def test_the_history_names_who_changed_what(campaign: Campaign, clock: Clock):
    campaign.change("eve", stopping="confidence=.9")
    campaign.add_runs("fay", late_runs(campaign))
    campaign.change_phase("eve", "paused", reason="a\nbreak")
    campaign.people.invite("eve", "zoe", role="owner")
    campaign.people.revoke("fay", "zoe")
    campaign.change_phase("eve", "open")
    campaign.comment("ann", *campaign.pool.label(0), "x" * 500)
    entries = history(campaign.log())
    assert [(entry.by, entry.event, entry.what) for entry in entries[1:]] == [
        ("eve", "changed", "stopping confidence=0.95 -> confidence=.9"),
        ("fay", "runs", "late; 2 new pairs"),
        ("eve", "phase", r"paused: a\nbreak"),
        ("eve", "invited", "zoe as owner"),
        ("fay", "revoked", "zoe"),
        ("eve", "phase", "open"),
    ]
    assert [entry.time for entry in entries] == sorted(entry.time for entry in entries)
    (*_, comment) = history(campaign.log(), everything=True)
    assert comment.event == "commented"
    assert len(comment.what) <= 120


def test_a_link_is_exchanged_for_a_session_and_the_store_has_neither(
    make: Callable[..., Campaign], store: str, clock: Clock
):
    campaign = make()
    event, token = campaign.people.invite("eve", "ann", role="adjudicator")
    session, secret = campaign.people.sign_in(token)
    found = campaign.people.find(secret)
    assert found is not None
    assert (found.assessor, found.role, session.by) == ("ann", Role.adjudicator, "ann")
    assert len({token, secret}) == 2
    assert campaign.people.find(token) is None
    kept = repr(campaign.log()) + campaign.export("log")
    assert token not in kept
    assert secret not in kept
    assert event.digest == digest_token(token)
    with Campaign.open(store, clock=clock) as other:  # another server
        assert other.people.find(secret) is not None
        other.people.sign_out("ann", secret)
    assert campaign.people.find(secret) is None
    assert campaign.people.sign_in(token)  # the link works again


@on_both_databases
def test_a_revocation_holds_at_once_for_all_sessions(make: Callable[..., Campaign], store: str):
    campaign = make()
    _, token = campaign.people.invite("eve", "ann")
    secrets = [campaign.people.sign_in(token)[1] for _ in range(2)]
    with Campaign.open(store) as other:
        other.people.revoke("eve", "ann")
    assert [campaign.people.find(secret) for secret in secrets] == [None, None]
    with pytest.raises(CampaignError, match="unknown, has expired or was revoked"):
        campaign.people.sign_in(token)
    _, again = campaign.people.invite("eve", "ann")
    assert [campaign.people.find(secret) for secret in secrets] == [None, None]  # old sessions stay ended
    assert campaign.people.find(campaign.people.sign_in(again)[1]) is not None
    with pytest.raises(CampaignError, match=r"No one called 'anm' is invited. Did you mean 'ann'"):
        campaign.people.revoke("eve", "anm")


def test_invitations_expire(campaign: Campaign, clock: Clock):
    _, token = campaign.people.invite("eve", "ann", seconds=100)
    session, secret = campaign.people.sign_in(token)
    assert session.until < clock.now + 100  # no longer than the invitation
    with pytest.raises(CampaignError, match=r"'ann' is invited already, as assessor. Revoke that first"):
        campaign.people.invite("eve", "ann")
    clock.now += 100
    assert campaign.people.find(secret) is None
    assert not campaign.people.may_sign_in(token)
    campaign.people.invite("eve", "ann", seconds=None)


def test_one_person_has_a_bounded_number_of_sessions(campaign: Campaign):
    _, token = campaign.people.invite("eve", "ann")
    secrets = [campaign.people.sign_in(token)[1] for _ in range(MOST_SESSIONS + 2)]
    valid = [campaign.people.find(secret) is not None for secret in secrets]
    assert valid == [False] * 2 + [True] * MOST_SESSIONS


def test_a_table_of_people_is_imported_once_and_brings_nothing_back(campaign: Campaign):
    people = [("ann", Role.assessor, "kX2vq0Zl9mJr5tYw8uBn"), ("eve", Role.owner, "Qe7pLd3sVh1cRf6gTa4i")]
    assert campaign.people.add("owner", people) == []
    number = campaign.state.number
    assert campaign.people.add("owner", people) == []
    assert campaign.state.number == number
    secret = campaign.people.sign_in(people[0][2])[1]
    campaign.people.revoke("eve", "ann")
    assert campaign.people.add("owner", people) == ["ann"]
    assert campaign.people.find(secret) is None
    assert campaign.people.add("owner", [("bob", Role.owner, people[0][2])]) == ["bob"]  # nor by another name
    assert campaign.people.add("owner", [("ann", Role.assessor, "Zm8nWy2xUo5kHj9bGe0r")]) == []
    assert campaign.people.add("owner", [("eve", Role.assessor, people[1][2])]) == []
    assert campaign.people.access.invited["eve"].role == Role.assessor
