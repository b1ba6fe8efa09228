"""A real browser: a campaign judged with keys alone, from its first document to the export."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import pytest

from probeval.campaign import Campaign, TaskPurpose, Withdrawn
from probeval.campaign.questions import graded
from probeval.data import Collection, Scale, read_judgments
from tests.web.browsing import FAINT, UNNAMED, listen, press
from tests.web.conftest import ANN, EVE, SCRIPT, TOKENS, invite
from tests.web.served import Served

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.slow
PAIRS = 30
NewPage = Callable[..., "Page"]


@pytest.fixture
def judging(
    memory: Path, bundled: Collection, documents: Callable[[Campaign], Path], serve: Callable[..., Served]
) -> Iterator[tuple[Campaign, Served]]:
    """A campaign on the bundled collection, to be judged until its target, and its server."""
    bare = replace(bundled, judgments=None)
    with Campaign.create(
        memory / "mine.db",
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
    form = page.locator("#answer")
    return form.locator("[name=query]").input_value(), form.locator("[name=doc]").input_value()


def test_thirty_pairs_by_keys_undo_reload_target_export(
    new_page: NewPage, judging: tuple[Campaign, Served], bundled: Collection, tmp_path: Path
) -> None:
    campaign, server = judging
    given = bundled.judgments
    assert given is not None
    truth = dict(zip(map(given.pool.label, range(len(given.pool))), given.grades(), strict=True))
    page = new_page(viewport={"width": 1280, "height": 900})
    wrong = listen(page)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(server.url)

    judged: dict[tuple[str, str], float] = {}
    for _ in range(PAIRS - 1):
        pair = _pair(page)
        assert pair not in judged
        judged[pair] = truth[pair]
        press(page, f"{truth[pair]:g}")
    last = [*judged][-1]
    press(page, "u")  # the last document is there again, and is judged otherwise
    assert _pair(page) == last
    assert page.locator("#mine").inner_text() == str(PAIRS - 2)
    judged[last] = 2 - judged[last]
    press(page, f"{judged[last]:g}")

    page.keyboard.press("c")  # a comment, in a field where digits are digits
    page.keyboard.type(f"2 good {SCRIPT}")
    press(page, "Control+Enter")
    assert SCRIPT in page.locator(".remark").inner_text()
    seen = _pair(page), page.locator("#mine").inner_text(), page.locator(".remark").inner_text()
    page.reload()
    assert (_pair(page), page.locator("#mine").inner_text(), page.locator(".remark").inner_text()) == seen

    pair = _pair(page)
    judged[pair] = truth[pair]
    press(page, f"{truth[pair]:g}")
    page.locator(".met").wait_for()
    assert "Target met" in page.locator(".met").inner_text()
    assert page.locator("svg polyline.line").get_attribute("points")

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


def test_a_phone_has_room_for_everything(new_page: NewPage, judging: tuple[Campaign, Served]) -> None:
    _, server = judging
    for scheme in ("light", "dark"):
        page = new_page(viewport={"width": 360, "height": 640}, has_touch=True, is_mobile=True, color_scheme=scheme)
        page.goto(server.url)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 360
        for button in page.locator("button:visible").all():
            box = button.bounding_box()
            assert box is not None
            assert box["height"] >= 32
        low = page.locator("#answer button").last.bounding_box()
        assert low is not None
        assert low["y"] + low["height"] <= 640  # grades are in sight without scrolling
        page.locator("#answer button").last.tap()
        undo = page.locator("#undo button")
        undo.wait_for()
        assert undo.inner_text() == "Undo grade 2"  # on one line, with Skip beside it
        assert undo.bounding_box()["y"] == page.locator("#skip summary").bounding_box()["y"]  # type: ignore[index]
        undo.tap()
        undo.wait_for(state="detached")
        page.goto(server.url + "/overview")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360  # tables scroll within themselves
        assert page.locator(".narrow-only").first.is_visible()
        page.close()


def test_without_our_script_buttons_still_work(new_page: NewPage, judging: tuple[Campaign, Served]) -> None:
    campaign, server = judging
    page = new_page(java_script_enabled=False)
    page.goto(server.url)
    first = _pair(page)
    page.get_by_role("button", name=re.compile("^1")).click()
    assert _pair(page) != first
    assert campaign.state.judged[first][-1].grade == 1
    page.get_by_role("button", name=re.compile("^Undo")).click()
    assert _pair(page) == first


def test_labels_contrast_and_focus(new_page: NewPage, judging: tuple[Campaign, Served]) -> None:
    _, server = judging
    for scheme in ("light", "dark"):
        page = new_page(color_scheme=scheme)
        for path in ("/", "/overview", "/login"):
            page.goto(server.url + path)
            assert page.evaluate(UNNAMED) == []
            assert page.evaluate(FAINT) == []
        page.close()


@pytest.fixture
def team(
    memory: Path, small: Collection, put: Callable[[str, str], Path], serve: Callable[..., Served]
) -> Iterator[tuple[Campaign, Served]]:
    """A campaign with hostile texts of every kind, of which bob has judged some pairs; its owner is ann."""
    hostile = f"bird {SCRIPT} $\\foo$ \u202edrib\u202c =1+1"
    with Campaign.create(
        memory / "team.db",
        replace(small, judgments=None),
        metric="nDCG@5",
        scale=Scale.graded(2),
        model="uniform",
        policy="depth",
        guideline=f"Be fair. {hostile}",
        queries={query: f"{query} {hostile}" for query in small.runs.queries},
        grade_words=("none <b>", "$\\foo$", "all of it"),
        stopping="confidence=.99",
    ) as campaign:
        campaign.change_query_guidelines("eve", {query: f"Birds of {query}. {hostile}" for query in campaign.queries})
        lines = [{"doc": doc, "title": hostile, "text": f"A BÍRD in {doc}. {hostile}"} for doc in campaign.pool.docs]
        docs = put("documents.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        for i in range(3):
            campaign.answer("bob", campaign.pool.label(i), grade=2)
            campaign.comment("bob", *campaign.pool.label(i), f"mine: {hostile}")
            campaign.answer("cid", campaign.pool.label(i), grade=0)
        campaign.refresh()
        yield campaign, serve(campaign.address[0], "--docs", docs, "--assessor", "ann")


def test_a_check_looks_and_counts_like_any_other_question(
    new_page: NewPage, memory: Path, small: Collection, put: Callable[[str, str], Path], serve: Callable[..., Served]
) -> None:
    shares = {"gold_share": 0.3, "repeat_share": 0.1, "overlap": 0.3}
    with Campaign.create(
        memory / "checked.db",
        replace(small, judgments=None),
        metric="nDCG@5",
        scale=Scale.graded(2),
        model="uniform",
        **shares,  # type: ignore[arg-type]
    ) as campaign:
        campaign.change_gold("eve", {query: {f"known{i}": 1.0 for i in range(9)} for query in campaign.queries})
        for at in range(12):
            campaign.answer("bob", campaign.pool.label(at), grade=1)
        campaign.refresh()
        invite(campaign, ANN, EVE)
        docs = [*campaign.pool.docs, *(f"known{i}" for i in range(9))]
        texts = put("documents.jsonl", "".join(json.dumps({"doc": doc, "text": "A text."}) + "\n" for doc in docs))
        server = serve(campaign.address[0], "--docs", texts)
        page = new_page(viewport={"width": 1280, "height": 900})
        wrong = listen(page)
        page.goto(f"{server.url}/login")
        page.fill("#token", TOKENS["ann"])
        page.keyboard.press("Enter")
        page.locator("#answer").wait_for()
        press(page, "1")  # the first question has nothing to undo
        seen: dict[TaskPurpose, set[str]] = {}
        look = """() => { const copy = document.querySelector("#main").cloneNode(true);
            copy.querySelectorAll("[value]").forEach(e => { e.value = ""; e.removeAttribute("value"); });
            return copy.innerHTML; }"""
        for count in range(1, 40):
            query, doc = _pair(page)
            (held,) = campaign.state.held_by("ann", time.time())
            others = re.compile(rf"\b({query}|{doc}|{'|'.join(set(docs))}|{'|'.join(campaign.queries)})\b")
            seen.setdefault(held.purpose, set()).add(others.sub("-", page.evaluate(look)))
            assert page.locator("#mine").inner_text() == str(count)
            assert int(page.locator("#judged").inner_text().split()[0]) == 12 + count
            press(page, "1")
        assert set(seen) == {TaskPurpose.judgment, TaskPurpose.gold, TaskPurpose.repeat}
        assert seen[TaskPurpose.gold] | seen[TaskPurpose.repeat] <= seen[TaskPurpose.judgment]
        assert wrong == []


def test_a_topic_is_judged_through_by_keys(new_page: NewPage, team: tuple[Campaign, Served]) -> None:
    campaign, server = team
    page = new_page(viewport={"width": 1280, "height": 900})
    wrong = listen(page)
    page.goto(server.url)
    query, doc = _pair(page)
    assert f"Birds of {query}." in page.locator("#query-guideline p").inner_text()
    assert SCRIPT in page.locator("#query-guideline p").inner_text()
    assert page.locator("#document mark").first.inner_text() == "bird"  # in the title
    assert page.locator(".text mark").first.inner_text() == "BÍRD"
    painted = "getComputedStyle(document.querySelector('.text mark')).backgroundColor"
    before = page.evaluate(painted)
    page.keyboard.press("h")
    assert page.evaluate(painted) == "rgba(0, 0, 0, 0)" != before
    assert page.locator("#answer .words").all_inner_texts() == ["none <b>", "$\\foo$", "all of it"]
    assert not page.locator("#help dl").is_visible()
    page.keyboard.press("?")
    assert page.locator("#help dl").inner_text().split("\n") == ["0", "none <b>", "1", "$\\foo$", "2", "all of it"]
    assert page.locator("#guideline p").is_visible()  # before the first judgment
    page.keyboard.press("g")
    assert not page.locator("#guideline p").is_visible()

    page.keyboard.press("s")  # a menu of reasons, which Escape closes
    assert page.locator("#skip button").first.is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#skip button").first.is_visible()
    page.keyboard.press("s")
    press(page, "2")
    assert [skip.reason for skip in campaign.state.skipped[graded(query, doc)]] == ["wrong language"]
    other = _pair(page)
    page.keyboard.press("s")
    page.keyboard.press("4")
    page.keyboard.type("3 pages to log in")
    press(page, "Enter")
    assert [skip.reason for skip in campaign.state.skipped[graded(*other)]] == ["3 pages to log in"]
    assert page.evaluate(painted) == "rgba(0, 0, 0, 0)"  # still off

    todo = {pair for pair in map(campaign.pool.label, range(len(campaign.pool))) if pair[0] == query}
    for _ in range(len(campaign.pool)):
        pair = _pair(page)
        if not todo - campaign.state.judged.keys() - {(query, doc), other}:
            break
        press(page, str(len(pair[1]) % 3))
        assert campaign.state.judged[pair][-1].grade == len(pair[1]) % 3
    assert todo - campaign.state.judged.keys() <= {(query, doc), other}
    spent = [judgments[-1].seconds for judgments in campaign.state.judged.values() if judgments[-1].by == "ann"]
    assert all(seconds is not None and 0 <= seconds < 60 for seconds in spent)
    assert page.evaluate("window.stolen") is None
    assert wrong == []
    _check_idle_time(new_page, server)


def _check_idle_time(new_page: NewPage, server: Served) -> None:
    """Time counts while the page is in sight, up to a minute after the last key."""
    page = new_page()
    page.clock.install()
    page.goto(server.url)
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.post_data or "") if request.method == "POST" else None)
    for waits, least, most in (((20,), 19, 25), ((30, 600), 88, 95), ((600,), 59, 65)):
        for pause in waits:
            page.clock.run_for(1000 * pause)
            page.keyboard.press("Shift")
        press(page, "1")
        seconds = float(parse_qs(sent[-1])["seconds"][0])
        assert least <= seconds <= most, (waits, seconds)


def test_a_pair_is_adjudicated_by_keys_with_the_document_on_screen(
    new_page: NewPage, team: tuple[Campaign, Served]
) -> None:
    campaign, server = team
    _check_the_owners_page(new_page, campaign, server)
    first, second = (question.pairs[0] for question in campaign.state.disagreements)
    page = new_page(viewport={"width": 1280, "height": 900})
    wrong = listen(page)
    page.goto(server.url)
    page.goto(server.url + "/adjudicate")
    assert _pair(page) == first
    text = page.locator(".text")
    assert first[1] in text.inner_text()
    assert SCRIPT in text.inner_text()
    box = text.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < 900  # in sight, with both grades and the comment
    assert [each.split("\n")[0] for each in page.locator(".votes li").all_inner_texts()] == [
        "0 cid none <b>",
        "2 bob all of it",
    ]
    assert "mine: bird" in page.locator(".remark").first.inner_text()
    with page.expect_navigation():
        page.keyboard.press("n")
    assert _pair(page) == second
    page.keyboard.press("c")
    page.keyboard.type("1 is what it is <b>")  # digits in the field are digits
    page.keyboard.press("Enter")
    assert second not in campaign.state.adjudicated
    press(page, "1")
    settled = campaign.state.adjudicated[second]
    assert (settled.by, settled.grade, settled.reason) == ("ann", 1.0, "1 is what it is <b>")
    assert _pair(page) == first
    press(page, "2")
    assert "No disagreements to settle" in page.locator("main").inner_text()
    with page.expect_navigation():
        page.keyboard.press("u")
    assert _pair(page) == first
    assert "Settled by ann as 2" in page.locator("main").inner_text()
    press(page, "0")
    assert campaign.state.adjudicated[first].grade == 0
    assert page.evaluate("window.stolen") is None
    assert wrong == []


def _check_the_owners_page(new_page: NewPage, campaign: Campaign, server: Served) -> None:
    """It follows the campaign; and all pages have room on a phone."""
    page = new_page(viewport={"width": 1280, "height": 900})
    wrong = listen(page)
    page.goto(server.url + "/overview")
    page.locator("#queries-fold summary").click()  # folded by the reader, and stays so
    assert "Adjudicate 3 pairs" in page.locator(".next").inner_text()
    campaign.settle("eve", campaign.state.disagreements[0], grade=1)
    page.get_by_text("Adjudicate 2 pairs on which assessors differ.").wait_for()
    assert page.locator("#queries-fold").get_attribute("open") is None
    assert page.evaluate("window.stolen") is None
    assert wrong == []
    for scheme in ("light", "dark"):
        phone = new_page(viewport={"width": 360, "height": 640}, is_mobile=True, color_scheme=scheme)
        for path in ("/", "/adjudicate", "/overview"):
            phone.goto(server.url + path)
            assert phone.evaluate("document.documentElement.scrollWidth") <= 360, path
            assert phone.evaluate(UNNAMED) == []
            assert phone.evaluate(FAINT) == []
        phone.close()
