"""A real browser: two documents compared with keys alone, and with a thumb."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from probeval.campaign import Campaign, Compared, Judged
from probeval.data import Collection, Scale
from tests.web.browsing import FAINT, UNNAMED, listen, press
from tests.web.conftest import SCRIPT
from tests.web.served import Served

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.slow
NewPage = Callable[..., "Page"]


@pytest.fixture
def comparing(
    memory: Path, small: Collection, documents: Callable[[Campaign], Path], serve: Callable[..., Served]
) -> Iterator[tuple[Campaign, Served]]:
    """A campaign that asks which of two documents is better, and its server."""
    with Campaign.create(
        memory / "two.db",
        replace(small, judgments=None),
        metric="nDCG@5",
        scale=Scale.graded(2),
        model="uniform",
        ask="preferences",
        guideline=f"Be fair. {SCRIPT}",
        queries={query: f"text of {query} {SCRIPT}" for query in small.runs.queries},
    ) as campaign:
        yield campaign, serve(campaign.address[0], "--docs", documents(campaign), "--assessor", "ann")


def _docs(page: Page) -> tuple[str, ...]:
    form = page.locator("#answer")
    return tuple(form.locator(f"[name={name}]").input_value() for name in ("query", "left", "right"))


def _answers(campaign: Campaign) -> list[Compared]:
    return [answer for answer in campaign.state.compared if isinstance(answer, Compared)]


def test_documents_are_compared_by_keys_alone(new_page: NewPage, comparing: tuple[Campaign, Served]) -> None:
    campaign, server = comparing
    page = new_page(viewport={"width": 1280, "height": 900})
    wrong = listen(page)
    page.goto(server.url)
    left, right = (page.locator(f"#{side}").bounding_box() for side in ("left", "right"))
    assert left is not None
    assert right is not None
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] <= right["x"]
    assert page.locator("#left mark").count()
    assert page.evaluate(UNNAMED) == []
    assert page.evaluate(FAINT) == []

    asked = []
    for key in ("ArrowLeft", "l", "ArrowRight", "r", "=", "e", "b"):
        asked.append(_docs(page))
        press(page, key)
    given = _answers(campaign)
    assert [(answer.query, answer.left, answer.right) for answer in given] == asked
    assert [(answer.choice, answer.relevant) for answer in given] == [
        *[("left", "")] * 2,
        *[("right", "")] * 2,
        *[("equal", "")] * 2,
        ("equal", "neither"),
    ]
    assert all(answer.seconds is not None and answer.seconds < 60 for answer in given)
    press(page, "u")
    assert _docs(page) == asked[-1]
    assert page.locator("#mine").inner_text() == "6"
    page.keyboard.press("Shift+ArrowRight")  # selects text
    page.keyboard.press("c")
    page.keyboard.type("b = l, all of them letters")
    page.keyboard.press("Control+Enter")
    press(page, "l")
    assert _answers(campaign)[-1].comment == "b = l, all of them letters"
    skipped = _docs(page)
    page.keyboard.press("s")
    press(page, "3")
    assert _docs(page) != skipped
    assert [skip.reason for skips in campaign.state.skipped.values() for skip in skips] == ["cannot judge"]
    page.keyboard.press("f")
    flagged = _docs(page)
    page.keyboard.press("Tab")
    press(page, "Enter")
    assert [*campaign.state.flags] == [(flagged[0], flagged[2])]

    _follow_up_by_keys(page, campaign)
    _numbers_by_keys(page, campaign)
    _both_kinds_by_keys(page, campaign)
    assert page.evaluate("window.stolen") is None
    assert wrong == []


def _follow_up_by_keys(page: Page, campaign: Campaign) -> None:
    """After a choice, which are relevant; the choice can be taken back, and the question left open."""
    campaign.change("eve", follow_up=True)
    before = len(_answers(campaign))
    page.reload()
    page.keyboard.press("1")  # nothing is chosen yet
    page.keyboard.press("ArrowLeft")
    assert page.locator(".follow-up").is_visible()
    assert page.locator("#status").inner_text() == "Are they relevant?"
    page.keyboard.press("Escape")
    assert not page.locator(".follow-up").is_visible()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")  # the last choice counts
    press(page, "2")
    page.keyboard.press("=")
    page.keyboard.press("2")  # there is no chosen one
    press(page, "1")
    page.keyboard.press("r")
    press(page, "Enter")  # cannot tell
    page.keyboard.press("r")
    press(page, "b")
    assert [(answer.choice, answer.relevant) for answer in _answers(campaign)[before:]] == [
        ("left", "chosen"),
        ("equal", "both"),
        ("right", ""),
        ("equal", "neither"),
    ]
    campaign.change("eve", follow_up=False)


def _numbers_by_keys(page: Page, campaign: Campaign) -> None:
    """A number for each document, by digits, Tab and Enter."""
    campaign.change("eve", ask="magnitudes")
    page.reload()
    before = len(_answers(campaign))
    page.keyboard.type("30")
    page.keyboard.press("Enter")  # the other one is missing
    page.keyboard.press("Escape")
    page.keyboard.type(".5")
    press(page, "Enter")
    page.keyboard.type("0")
    page.keyboard.press("Tab")
    page.keyboard.type("7")
    page.keyboard.press("Enter")  # 0 is refused, and stays in its field
    assert page.locator("#left-number").input_value() == "0"
    assert page.evaluate("document.getElementById('left-number').validationMessage") == "Give a number above 0."
    page.locator("#left-number:focus").press("ArrowUp")
    page.keyboard.press("Control+A")
    page.keyboard.type("14")
    press(page, "Enter")
    numbers = [(answer.left_number, answer.right_number) for answer in _answers(campaign)[before:]]
    assert numbers == [(30.0, 0.5), (14.0, 7.0)]
    assert "Undo 14 and 7" in page.locator("#undo").inner_text()
    press(page, "u")
    assert len(_answers(campaign)) == before + 1


def _both_kinds_by_keys(page: Page, campaign: Campaign) -> None:
    """Comparisons that are under way, then grades."""
    campaign.change("eve", ask="grades")
    page.reload()
    while page.locator("#answer.comparison").count():
        press(page, "ArrowLeft")
    page.keyboard.press("4")  # no grade, and a reason of a closed menu
    press(page, "2")
    page.locator("#answer.grades").wait_for()
    assert [type(event) for event in campaign.log() if isinstance(event, Compared | Judged)][-2:] == [Compared, Judged]
    assert sum(map(len, campaign.state.skipped.values())) == 1
    press(page, "u")
    press(page, "u")  # the comparison again
    assert page.locator("#answer.comparison").count()


def test_a_phone_shows_one_document_under_the_other(new_page: NewPage, comparing: tuple[Campaign, Served]) -> None:
    campaign, server = comparing
    for scheme, ask, follow_up in (("light", "preferences", True), ("dark", "magnitudes", False)):
        campaign.change("eve", ask=ask, follow_up=follow_up)
        page = new_page(viewport={"width": 360, "height": 640}, has_touch=True, is_mobile=True, color_scheme=scheme)
        page.goto(server.url)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert page.evaluate(UNNAMED) == []
        assert page.evaluate(FAINT) == []
        upper, lower = (page.locator(f"#{side}").bounding_box() for side in ("left", "right"))
        assert upper is not None
        assert lower is not None
        assert upper["y"] + upper["height"] <= lower["y"]
        bar = page.locator(".answer").bounding_box()
        assert bar is not None
        assert bar["y"] + bar["height"] <= 641  # in sight without scrolling
        if follow_up:
            page.get_by_text("Lower", exact=True).last.tap()
            page.get_by_role("button", name="Neither").tap()
        else:
            page.get_by_label("Upper").fill("3")
            page.get_by_label("Lower").fill("1.5")
            page.get_by_role("button", name="Save").tap()
        page.locator("#undo").wait_for()
        page.locator("#page[data-turn='1']").wait_for()
        page.close()
    first, second = _answers(campaign)
    assert (first.choice, first.relevant) == ("right", "neither")
    assert (second.left_number, second.right_number) == (3.0, 1.5)
