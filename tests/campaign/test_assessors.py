"""What assessors are given and how they work: guidelines per query, words for grades, time, agreement, the forecast."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from probeval.campaign import Campaign, Judged, QueryGuidelinesChanged, Setup
from probeval.campaign.assessors import tendencies
from probeval.campaign.runner import forecast_is_due
from probeval.data import Collection, Scale
from probeval.errors import CampaignError
from tests.campaign.conftest import Clock

Make = Callable[..., Campaign]
DAY = 24 * 3600


def _judge(campaign: Campaign, who: str, pair: tuple[str, str], grade: float) -> Judged:
    return campaign.answer(who, pair, grade=grade)


def test_a_judgment_names_the_texts_that_it_was_made_under(make: Make):
    campaign = make(guideline="Be fair.")
    first, second = (campaign.pool.label(i) for i in (0, 1))
    assert _judge(campaign, "ann", first, 1).guideline == 1
    changed = campaign.change_query_guidelines("eve", {first[0]: "Birds only.", "elsewhere": "x"})
    assert (changed.version, changed.texts) == (2, {first[0]: "Birds only."})
    assert _judge(campaign, "ann", second, 1).guideline == 2
    campaign.change_guideline("eve", "Be fairer.")
    assert campaign.state.guideline_version == 3
    assert campaign.state.query_guideline(first[0]) == "Birds only."  # the general one leaves it alone
    campaign.change_query_guidelines("eve", {first[0]: ""})
    assert campaign.state.query_guideline(first[0]) == ""
    assert _judge(campaign, "bob", first, 1).guideline == 4
    texts = {e.version: e.texts for e in campaign.log() if isinstance(e, QueryGuidelinesChanged)}
    assert texts == {2: {first[0]: "Birds only."}, 4: {first[0]: ""}}
    with pytest.raises(CampaignError, match="Expected texts of this campaign's queries"):
        campaign.change_query_guidelines("eve", {"elsewhere": "x"})


def test_every_grade_has_words_or_none_has(make: Make):
    words = ("not relevant", "related", "it answers, all of it")
    campaign = make(grade_words=words)
    assert campaign.setup.grade_words == words
    assert Setup.from_dict(campaign.setup.to_dict()) == campaign.setup
    assert campaign.status().to_dict()["grade_words"] == list(words)
    campaign.change("eve", grade_words=("a", "b", "c"))
    assert campaign.setup.grade_words == ("a", "b", "c")
    for wrong, why in [
        (("a", "b"), "has 3 grades: give words for 3, got 2"),
        (("a", " ", "c"), "must be one line of text"),
        (("a", "b\nb", "c"), "must be one line of text"),
        (("a", "b" * 61, "c"), "at most 60 characters, got 61"),
    ]:
        with pytest.raises(CampaignError, match=why):
            campaign.change("eve", grade_words=wrong)


def test_the_time_on_a_document_is_at_most_the_time_since_it_was_leased(make: Make, clock: Clock):
    campaign = make()
    for said, waits, counts in [(5.0, 30, 5.0), (1e9, 30, 30.0), (0.0, 30, 0.0)]:
        (task,) = campaign.next("ann")
        clock.now += waits - 1  # and a second for the judgment's own look at the clock
        start = campaign.state.leases[task.question]["ann"].time
        judged = campaign.answer("ann", task.question, grade=1, seconds=said)
        assert judged.seconds == min(said, judged.time - start)
        assert judged.seconds == pytest.approx(counts, abs=3)
    free = next(pair for pair in map(campaign.pool.label, range(9)) if pair not in campaign.state.judged)
    assert campaign.answer("bob", free, grade=1, seconds=5.0).seconds is None  # not leased: it cannot be checked
    for wrong in (-1.0, float("nan"), float("inf"), "5"):
        with pytest.raises(CampaignError, match="must be a number of seconds"):
            campaign.answer("ann", free, grade=1, seconds=wrong)  # type: ignore[arg-type]


def test_pace_is_the_measured_time_where_there_is_one(make: Make, clock: Clock):
    campaign = make()
    for seconds in (8.0, 10.0, 12.0, None):
        (task,) = campaign.next("ann")
        clock.now += 300  # a telephone call each time
        campaign.answer("ann", task.question, grade=1, seconds=seconds)
    share = campaign.status().assessors[0]
    assert share.seconds == 11.0  # of 8, 10, 12 and the 300 that nobody measured
    assert share.last == pytest.approx(clock.now, abs=3)


def _shared(campaign: Campaign, n: int, more: float, seed: int = 0) -> None:
    """Ann and bob judge the same pairs; bob gives a grade more to a share of them."""
    rng = np.random.default_rng(seed)
    for i in range(n):
        pair, grade = campaign.pool.label(i), int(rng.integers(3))
        campaign.answer("ann", pair, grade=grade)
        campaign.answer("bob", pair, grade=min(2, grade + int(rng.random() < more)))


def test_a_generous_assessor_is_found_and_a_fair_one_is_not(make: Make):
    campaign = make(name="generous")
    _shared(campaign, 9, 0.8)
    assert tendencies(campaign.state) == ()  # too few to tell
    _shared(campaign, 56, 0.8)
    campaign.refresh()
    status = campaign.status()
    assert [(share.assessor, share.manner) for share in status.assessors] == [("ann", "strict"), ("bob", "generous")]
    ann, bob = status.assessors
    assert ann.tendency == pytest.approx(-bob.tendency)
    assert bob.tendency_lower > 0 > ann.tendency_upper
    assert "bob is generous: +" in status.summary()
    assert "bob is more generous than the others: discuss the guideline." in status.advice
    (kappa,) = status.agreements
    assert (kappa.a, kappa.b, kappa.shared) == ("ann", "bob", 56)
    assert 0 < kappa.kappa < 1
    fair = make(name="fair")
    _shared(fair, 56, 0.0)
    fair.refresh()
    assert [share.manner for share in fair.status().assessors] == ["", ""]
    assert fair.status().agreements[0].kappa == 1.0
    assert fair.status().agreements[0].equal == 56


def test_one_grade_for_all_tells_nothing_of_assessors(make: Make):
    campaign = make()
    for i in range(20):
        for who in ("ann", "bob"):
            campaign.answer(who, campaign.pool.label(i), grade=1)
    assert tendencies(campaign.state) == ()
    assert np.isnan(campaign.status().agreements[0].kappa)


def test_progress_of_each_query(make: Make):
    campaign = make()
    campaign.change_queries("eve", {"q1": "what is it"})
    before = {each.query: each for each in campaign.status().queries}
    assert sum(each.pool for each in before.values()) == len(campaign.pool)
    assert all(np.isnan(each.uncertainty) and each.assessors == () for each in before.values())
    campaign.refresh()
    mine = [pair for pair in map(campaign.pool.label, range(len(campaign.pool))) if pair[0] == "q1"]
    for pair in mine:
        campaign.answer("ann", pair, grade=1)
    campaign.answer("bob", mine[0], grade=2)
    campaign.refresh()
    after = {each.query: each for each in campaign.status().queries}
    first = after["q1"]
    assert (first.text, first.judged, first.pool, first.assessors) == (
        "what is it",
        len(mine),
        len(mine),
        ("ann", "bob"),
    )
    assert first.proposed == 0
    assert first.uncertainty < min(each.uncertainty for query, each in after.items() if query != "q1")
    assert sum(each.proposed for each in after.values()) == len(campaign.pool) - len(mine)


def test_what_to_do_next(make: Make, clock: Clock):
    campaign = make(stopping="confidence=.95")
    assert campaign.status().advice == ("The model has not run yet: it needs a moment.",)
    campaign.refresh()
    campaign.answer("ann", campaign.pool.label(0), grade=0)
    campaign.answer("bob", campaign.pool.label(0), grade=2)
    clock.now += 3 * DAY
    campaign.answer("bob", campaign.pool.label(1), grade=2)
    campaign.refresh()
    advice = campaign.status().advice
    day = time.strftime("%A", time.localtime(clock.now - 3 * DAY))
    assert advice == ("Adjudicate 1 pair on which assessors differ.", f"ann has not judged since {day}.")
    clock.now += 30 * DAY
    assert "ann has not judged since " + time.strftime("%d %B %Y", time.localtime(clock.now - 33 * DAY)) + "." in (
        campaign.status().advice
    )


def test_the_forecast_is_kept_and_says_what_is_left(make: Make, small: Collection, clock: Clock):
    campaign = make(stopping="confidence=.97")
    given = small.judgments
    assert given is not None
    truth = dict(zip(map(given.pool.label, range(len(given.pool))), given.grades(), strict=True))
    first = campaign.refresh()
    assert first.forecast is None
    assert not forecast_is_due(first, campaign.state)  # nothing to go by yet
    for _ in range(20):
        (task,) = campaign.next("ann")
        clock.now += 10
        campaign.answer("ann", task.question, grade=truth[task.query, task.doc])
    plain = campaign.refresh()
    assert forecast_is_due(plain, campaign.state)
    with Campaign.open(campaign.address[0], clock=clock) as other:
        assert other.snapshot == plain
        ahead = campaign.forecast()
        made = campaign.snapshot
        assert made is not None
        assert made.number == plain.number
        assert other.snapshot == made  # of the same events, and seen all the same
        assert ahead is not None
        assert made.forecast == ahead
        assert ahead.judged == ahead.points[0].judged == 20
        assert 20 < ahead.lower <= ahead.needed <= ahead.upper <= len(campaign.pool)
        assert ahead.points[0].confidence == pytest.approx(plain.confidence, abs=0.05)
        status = other.status()
    assert status.left == round(ahead.needed) - 20
    assert (status.left_lower, status.left_upper) == (round(ahead.lower) - 20, round(ahead.upper) - 20)
    assert f"about {status.left} judgments more ({status.left_lower} to {status.left_upper})" in status.summary()
    assert status.advice[0].startswith(
        f"About {status.left} judgments more ({status.left_lower} to {status.left_upper}):"
    )
    assert status.advice[0].endswith("with 1 assessor.")
    assert not forecast_is_due(made, campaign.state)
    assert forecast_is_due(replace(made, judged=41), campaign.state)
    assert not forecast_is_due(replace(made, judged=41, reached=True), campaign.state)
    assert forecast_is_due(
        made, replace(campaign.state, setup=replace(campaign.setup, stopping="confidence=.8"))
    )  # another target
    assert not forecast_is_due(made, replace(campaign.state, setup=replace(campaign.setup, stopping="budget=90")))
    campaign.answer("ann", next(p for p in truth if p not in campaign.state.judged), grade=1)
    assert campaign.refresh().forecast == ahead  # kept until the next one
    campaign.change("eve", stopping="confidence=.97,budget=22")
    assert campaign.status().left == 1  # the budget comes first
    campaign.change("eve", stopping="confidence=.8")
    assert campaign.status().left_lower is None  # a forecast of another target says nothing


def test_a_fine_scale_has_tendencies_too(make: Make):
    campaign = make(scale=Scale.fine())
    rng = np.random.default_rng(0)
    for i in range(40):
        grade = float(rng.integers(60))
        campaign.answer("ann", campaign.pool.label(i), grade=grade)
        campaign.answer("bob", campaign.pool.label(i), grade=grade + 40)
    found = {each.assessor: each for each in tendencies(campaign.state)}
    assert found["bob"].lower > 0 > found["ann"].upper
