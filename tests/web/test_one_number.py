"""One number each: what status, page, report, statement and audit of the same store say, number by number."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from probeval.campaign import Campaign
from probeval.display import counted
from probeval.reports import Page, report_campaign
from probeval.reports.page import Prose
from probeval.web import Board
from tests.cli.conftest import Said
from tests.web.asking import Client

Open = Callable[..., Client]


def _words(text: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def _prose(page: Page, key: str) -> str:
    return " ".join(str(part.text) for part in page[key].parts if isinstance(part, Prose))


def _judge_some(campaign: Campaign, who: str, n: int, grade: Callable[[int], float]) -> None:
    for at in range(n):
        for task in campaign.next(who):
            campaign.answer(who, task.question, grade=grade(at))


@pytest.fixture
def judged(campaign: Campaign) -> Campaign:
    """A campaign with gold, shared pairs on which two assessors differ, and a judgment of a pair outside the pool."""
    runs = campaign.collection.runs
    pool = {campaign.pool.label(pair) for pair in range(len(campaign.pool))}
    label = runs.pool.label
    outside = next(label(pair) for pair in range(len(runs.pool)) if label(pair) not in pool)
    first = min(pool)
    campaign.change("eve", overlap=0.5, gold_share=0.2)
    campaign.change_gold("eve", {first[0]: {first[1]: 1.0, "no run has it": 0.0}})
    _judge_some(campaign, "ann", 10, lambda at: float(at % 3))
    campaign.refresh()
    _judge_some(campaign, "ann", 20, lambda at: float(at % 3))
    _judge_some(campaign, "bob", 8, lambda at: float((at + 1) % 3))
    campaign.answer("ann", outside, grade=1)
    campaign.refresh()
    campaign.forecast()
    return campaign


@pytest.mark.slow
def test_every_view_of_a_store_states_the_same_numbers(
    open_page: Open, judged: Campaign, probeval: Callable[..., Said]
) -> None:
    store, board = judged.address[0].removeprefix("sqlite:///"), Board(judged)
    client = open_page(board=board)
    for change in (
        {},
        {"goal": "top:2"},
        {"stopping": "every=.6+halfwidth=.01"},
        {"stopping": "confidence=.9,budget=500"},
    ):
        if change:
            judged.change("eve", **change)
            status = board.look().status
            assert status.left_lower is None  # the forecast was for another target
            assert "the model has not run since it changed" in status.summary()
            assert client.get("/overview").status == 200
        said = json.loads(probeval("campaign", "status", store, "--refresh", "--format", "json").out)
        snapshot, status = said["snapshot"], board.look().status
        page, report, made = _words(client.get("/overview").text), report_campaign(judged), judged.statement()
        state, rule = judged.judging_state(), judged.setup.rule_to_stop

        # What the rule tests, always beside its target.
        tested = [(one.title, one.value, one.target) for one in rule.check(state).figures]
        assert [(one["title"], one["value"], one["target"]) for one in snapshot["figures"]] == [
            (title, pytest.approx(value, abs=1e-12), target) for title, value, target in tested
        ]
        for title, value, target in tested:
            assert f"{title[0].upper()}{title[1:]} {value:.3f} target {target:g}" in page
            stated = f"{title} {value:.3f} (target {target:g})"
            assert stated.lower() in status.summary().lower()
            assert stated.lower() in _prose(report, "reliability").lower()
            assert (title, f"{value:.3f}") in [figure[:2] for figure in report.figures]
            assert made.reached or stated in made.of_stop()
        assert snapshot["confidence"] == pytest.approx(state.confidence, abs=1e-12)

        # How many judgments more.
        assert (said["left"], said["left_lower"], said["left_upper"]) == (
            status.left, status.left_lower, status.left_upper
        )  # fmt: skip
        if status.left:
            assert f"Left about {status.left:,}" in page
            assert status.outlook == f"about {counted(status.left, 'judgment')} more" + (
                f" ({status.left_lower:,} to {status.left_upper:,})" if status.left_lower is not None else ""
            )
            assert status.outlook in _prose(report, "reliability")
            assert status.outlook.capitalize() in page
        if board.standing.picture is not None and snapshot["forecast"]:
            assert f"reached at about {status.made + status.left:,} judged pairs" in page

        # How many are judged, and why that is not the number of judgments.
        grades = [len({event.by for event in given}) for given in judged.state.judged.values()]
        assert said["judgments"] == sum(grades)
        assert said["judgments"] == (
            said["judged"] - said["known"] + said["further"] + said["outside"] + said["undecided"]
        )
        assert min(said[reason] for reason in ("known", "further", "outside", "undecided")) > 0
        assert said["judged"] == snapshot["judged"] == state.scores.judged == made.judged
        assert f"Judged {said['judged']:,}" in page
        assert ("judged", f"{said['judged']:,}") in [figure[:2] for figure in report.figures]
        assert status.count in page
        assert status.given in _prose(report, "judging")
        assert status.count in _prose(report, "people")

        # Gold, and the draws of the audit.
        gold = judged.gold()
        assert (len(gold.pairs), sum(pair.answers > 0 for pair in gold.pairs)) == (said["gold"], said["gold_asked"])
        assert sum(pair.answers for pair in gold.pairs) == sum(each["gold"] for each in said["assessors"])
        assert sum(pair.right for pair in gold.pairs) == sum(each["gold_right"] for each in said["assessors"])
        assert judged.audit().draws == snapshot["audit"]["draws"] == made.audit.draws
        for sentence in judged.audit().sentences():
            assert sentence in page
            assert sentence in _prose(report, "audit")
