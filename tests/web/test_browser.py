"""A real browser: a campaign judged with keys alone, from its first document to the export."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from probeval.campaign import Campaign, Withdrawn
from probeval.data import Collection, Scale, read_judgments
from tests.web.conftest import SCRIPT
from tests.web.served import Served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow
PAIRS = 30


@pytest.fixture
def judging(
    tmp_path: Path, bundled: Collection, documents: Callable[[Campaign], Path], serve: Callable[..., Served]
) -> Iterator[tuple[Campaign, Served]]:
    """A campaign on the bundled collection, to be judged until its target, and its server."""
    bare = replace(bundled, judgments=None)
    with Campaign.create(
        tmp_path / "mine.db",
        bare,
        metric="nDCG@10",
        scale=Scale.graded(2),
        model="uniform",
        guideline=f"2 answers the query, 1 is on its topic. {SCRIPT}",
        stopping=f"confidence=.95,budget={PAIRS}",
    ) as campaign:
        campaign.refresh()  # the first look, where the way to the target begins
        yield campaign, serve(campaign.address[0], "--docs", documents(campaign))


def _pair(page: Page) -> tuple[str, str]:
    form = page.locator("#grades")
    return form.locator("[name=query]").input_value(), form.locator("[name=doc]").input_value()


def _press(page: Page, key: str) -> None:
    """Press a key and wait for what comes of it."""
    turn = page.evaluate("Number(document.getElementById('page').dataset.turn || 0)")
    page.keyboard.press(key)
    page.wait_for_function("n => Number(document.getElementById('page').dataset.turn || 0) > n", arg=turn)


def test_thirty_pairs_by_keys_undo_reload_target_export(
    browser: Browser, judging: tuple[Campaign, Served], bundled: Collection, tmp_path: Path
) -> None:
    campaign, server = judging
    given = bundled.judgments
    assert given is not None
    truth = dict(zip(map(given.pool.label, range(len(given.pool))), given.grades(), strict=True))
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(server.url)

    judged: dict[tuple[str, str], float] = {}
    for _ in range(PAIRS - 1):
        pair = _pair(page)
        assert pair not in judged
        judged[pair] = truth[pair]
        _press(page, f"{truth[pair]:g}")
    last = [*judged][-1]
    _press(page, "u")  # the last document is there again, and is judged otherwise
    assert _pair(page) == last
    assert page.locator("#mine").inner_text() == str(PAIRS - 2)
    judged[last] = 2 - judged[last]
    _press(page, f"{judged[last]:g}")

    page.keyboard.press("c")  # a comment, in a field where digits are digits
    page.keyboard.type(f"2 good {SCRIPT}")
    _press(page, "Control+Enter")
    assert SCRIPT in page.locator(".remark").inner_text()
    seen = _pair(page), page.locator("#mine").inner_text(), page.locator(".remark").inner_text()
    page.reload()
    assert (_pair(page), page.locator("#mine").inner_text(), page.locator(".remark").inner_text()) == seen

    pair = _pair(page)
    judged[pair] = truth[pair]
    _press(page, f"{truth[pair]:g}")
    page.locator(".met").wait_for(timeout=60_000)
    assert "Target met" in page.locator(".met").inner_text()
    assert page.locator("svg polyline").get_attribute("points")

    page.get_by_role("link", name="Overview").click()
    assert page.locator("table svg.interval").count() == len(bundled.runs.systems)
    with page.expect_download() as loading:
        page.get_by_role("link", name="qrels").click()
    loading.value.save_as(tmp_path / "qrels.txt")
    again = read_judgments(tmp_path / "qrels.txt")
    exported = dict(zip(map(again.pool.label, range(len(again.pool))), again.grades(), strict=True))
    assert exported == judged == {pair: said[-1].grade for pair, said in campaign.state.judged.items()}
    assert sum(isinstance(event, Withdrawn) for event in campaign.log()) == 1

    assert page.evaluate("window.stolen") is None
    assert wrong == []
    assert {url for url in asked if not url.startswith(server.url)} == set()  # nothing from elsewhere


def test_a_phone_has_room_for_everything(browser: Browser, judging: tuple[Campaign, Served]) -> None:
    _, server = judging
    for scheme in ("light", "dark"):
        page = browser.new_page(
            viewport={"width": 360, "height": 640}, has_touch=True, is_mobile=True, color_scheme=scheme
        )
        page.goto(server.url)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 360
        for button in page.locator("button:visible").all():
            box = button.bounding_box()
            assert box is not None
            assert box["height"] >= 32
        low = page.locator("#grades button").last.bounding_box()
        assert low is not None
        assert low["y"] + low["height"] <= 640  # grades are in sight without scrolling
        page.locator("#grades button").last.tap()
        undo = page.locator("#undo button")
        undo.wait_for()
        assert undo.inner_text() == "Undo grade 2"  # on one line, with Skip beside it
        assert undo.bounding_box()["y"] == page.locator("#skip button").bounding_box()["y"]  # type: ignore[index]
        undo.tap()
        undo.wait_for(state="detached")
        page.goto(server.url + "/overview")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360  # tables scroll within themselves
        assert page.locator(".narrow-only").first.is_visible()
        page.close()


def test_without_our_script_buttons_still_work(browser: Browser, judging: tuple[Campaign, Served]) -> None:
    campaign, server = judging
    page = browser.new_page(java_script_enabled=False)
    page.goto(server.url)
    first = _pair(page)
    page.get_by_role("button", name=re.compile("^1")).click()
    assert _pair(page) != first
    assert campaign.state.judged[first][-1].grade == 1
    page.get_by_role("button", name=re.compile("^Undo")).click()
    assert _pair(page) == first


def test_labels_contrast_and_focus(browser: Browser, judging: tuple[Campaign, Served]) -> None:
    _, server = judging
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme)
        for path in ("/", "/overview", "/login"):
            page.goto(server.url + path)
            assert page.evaluate(UNNAMED) == []
            assert page.evaluate(FAINT) == []
        page.close()


UNNAMED = """() => [...document.querySelectorAll("button, a, input:not([type=hidden]), textarea, svg[role=img]")]
  .filter(e => !e.textContent.trim() && !e.getAttribute("aria-label") && !(e.labels || []).length)
  .map(e => e.outerHTML)"""

# Every element with text of its own: the contrast of its colour with the ground behind it, by WCAG, 4.5 or more.
FAINT = """() => {
  const parse = c => (c.match(/[\\d.]+/g) || []).map(Number);
  const light = c => c.slice(0, 3).map(v => v / 255)
    .map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const ground = e => {
    const c = parse(getComputedStyle(e).backgroundColor);
    return c.length < 4 || c[3] > 0 ? c : e.parentElement ? ground(e.parentElement) : [255, 255, 255];
  };
  return [...document.querySelectorAll("body *")]
    .filter(e => e.checkVisibility() && [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()))
    .filter(e => !e.closest("svg"))
    .map(e => { const [a, b] = [light(parse(getComputedStyle(e).color)), light(ground(e))].sort((x, y) => y - x);
      return [(a + .05) / (b + .05), e.outerHTML.slice(0, 80)]; })
    .filter(([ratio]) => ratio < 4.5);
}"""
