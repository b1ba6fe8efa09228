"""Comparisons that a campaign's model chooses by their gain, alone and mixed with grades."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from probeval.campaign import Campaign
from probeval.campaign.questions import graded
from probeval.campaign.snapshot import ModelSnapshot

Make = Callable[..., Campaign]
MODEL = "text-hierarchical"
pytestmark = pytest.mark.parametrize("store", ["sqlite"], indirect=True)


def test_the_model_chooses_the_comparisons_and_learns_from_their_answers(make: Make):
    campaign = make(ask="preferences", model=MODEL)
    first = campaign.refresh()
    assert ModelSnapshot.from_row(first.to_row()) == first
    assert np.argmax(first.comparison_values) == 0
    tasks = campaign.next("ann", n=6)
    ranked = sorted(zip(first.comparisons, first.comparison_values, strict=True), key=lambda each: -each[1])
    assert [task.question for task in tasks] == [question for question, _ in ranked[:6]]
    for task in tasks:
        campaign.answer("ann", (task.query, task.doc, task.other), choice="left")
    started = campaign.judging_state().judging
    second = campaign.refresh()
    assert campaign.judging_state().judging is started  # the fit went on from the last one
    assert len(campaign.judging_state().answers) == 6
    assert set(second.comparisons).isdisjoint(first.comparisons[:6])
    assert second.confidence != first.confidence
    campaign.withdraw("ann")
    third = campaign.refresh()
    assert len(campaign.judging_state().answers) == 5
    assert third.confidence != second.confidence


def test_a_mixed_campaign_asks_for_what_tells_most_per_second(make: Make):
    campaign = make(ask="mixed", model=MODEL, explore=0.2)
    snapshot = campaign.refresh()
    assert snapshot.comparisons
    assert snapshot.queue
    assert len(snapshot.values) == len(snapshot.queue) == len(snapshot.picks) == len(snapshot.due)
    drawn = [at for at in snapshot.due if at is not None]
    assert drawn[:2] == [4, 9]
    tasks = campaign.next("ann", n=4)
    worth = dict(zip(snapshot.comparisons, snapshot.comparison_values, strict=True))
    worth |= dict(zip(snapshot.topic_queue.pairs, snapshot.values, strict=True))
    asked = [task.question for task in tasks]
    drawn_at_random = {graded(*pair) for pair in snapshot.draws}
    best = sorted((value for question, value in worth.items() if question not in drawn_at_random), reverse=True)
    assert [worth[question] for question in asked] == best[:4]


def test_a_policy_without_gains_keeps_to_the_design(make: Make):
    campaign = make(ask="preferences", model=MODEL, policy="depth")
    assert campaign.refresh().comparisons == ()
    (task,) = campaign.next("ann")
    assert task.other
