"""The statement for participants: what it commits to, what it tells, and what it keeps to itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from probeval.campaign import Campaign, check_store, copy_store
from probeval.campaign.log import Store, chained
from probeval.campaign.statement import APPEAL
from probeval.reports import render, statement_page

Make = Callable[..., Campaign]


def _judge(campaign: Campaign, who: str, n: int) -> None:
    for _ in range(n):
        (task,) = campaign.next(who)
        campaign.answer(who, task.question, grade=len(task.doc) % 3)


def test_its_hashes_are_those_of_the_log_and_a_copy_gives_them_again(make: Make, store: str, tmp_path: Path):
    campaign = make(name="mine", stopping="budget=5")
    registered = campaign.digest(1)
    _judge(campaign, "ann", 6)
    found = campaign.statement()
    opened = Store(store, read_only=True)
    digests = chained("", opened.event_rows(opened.find("mine")))
    assert (found.registered.hash, found.head) == (registered, digests[-1]) == (digests[0], digests[-1])
    assert found.events == len(digests)
    assert (found.reached, found.reasons) == (True, ("budget 6 >= 5",))
    copy_store(store, tmp_path / "copy.db")
    with Campaign.open(tmp_path / "copy.db", read_only=True) as copy:
        assert copy.statement().to_dict() == found.to_dict()
    assert not check_store(Store(tmp_path / "copy.db", read_only=True)).faults


def test_later_changes_of_the_rule_are_told_from_others(make: Make):
    campaign = make(stopping="confidence=.99")
    campaign.change("eve", rope=0.01)  # nothing is judged yet
    _judge(campaign, "ann", 3)
    campaign.change("eve", lease=60)
    campaign.change("eve", stopping="confidence=.8")
    campaign.change_guideline("eve", "Be fair.")
    campaign.people.invite("eve", "bob")
    campaign.change_phase("eve", "closed", reason="out of time")
    found = campaign.statement(appeal="Write to us.")
    assert [(change.event, change.judged, change.rule) for change in found.changes] == [
        ("changed", 0, True),
        ("changed", 3, False),
        ("changed", 3, True),
        ("guideline", 3, False),
        ("phase", 3, False),
    ]
    assert found.late_changes == 1
    assert (found.registered.rule, found.rule) == ("confidence=.99", "confidence=.8")
    said = found.sentences()
    assert said[0].startswith(
        "The rule confidence=.99 was registered on 1970-01-12 13:46 UTC, before the first judgment"
    )
    assert said[1] == "The rule changed 1 time after the first judgment."
    assert said[2].startswith("The campaign was closed before the rule was met: confidence=.8 asked for, confidence 0.")
    assert said[-1] == "Write to us."


def test_what_is_decided_and_what_is_not(make: Make):
    campaign = make(overlap=1.0)
    _judge(campaign, "ann-with-a-name", 20)
    _judge(campaign, "bob-with-a-name", 20)
    found, ranking = campaign.statement(level=0.9), campaign.evaluate()
    n = len(ranking.scores.systems)
    sure = ranking.direction_confidence[np.triu_indices(n, k=1)]
    assert found.decided == (sure >= 0.9).sum()
    assert found.wrong == pytest.approx((1 - sure[sure >= 0.9]).sum())
    assert found.comparisons == n * (n - 1) // 2
    apart = [abs(pair.p_better - 0.5) for pair in found.undecided]
    assert apart == sorted(apart, reverse=True)
    assert max(apart) < 0.4
    assert found.appeal == APPEAL
    page, data = render(statement_page(found)), json.dumps(found.to_dict())
    assert f"Krippendorff&#39;s alpha {campaign.status().alpha:.3f}" in page
    assert found.head in page
    assert "2 assessors, 40 judgments." in page
    assert "with-a-name" not in page + data
    assert "src=" not in page  # nothing is loaded
