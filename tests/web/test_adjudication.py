"""The adjudication page: the pair with its document, who may settle it, and what is in the log after it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from probeval.campaign import Campaign, Role
from probeval.web import Assessor, Document
from tests.web.asking import Client
from tests.web.conftest import ANN, EVE, SCRIPT

Open = Callable[..., Client]


@pytest.fixture
def disputed(campaign: Campaign) -> list[tuple[str, str]]:
    """Two disagreements, the wider one first."""
    near, wide = campaign.pool.label(0), campaign.pool.label(1)
    for pair, grades in ((near, (1, 2)), (wide, (0, 2))):
        for who, grade in zip(("ann", "bob"), grades, strict=True):
            campaign.answer(who, pair, grade=grade)
    return [wide, near]


def test_everything_about_a_pair_is_on_the_page(open_page: Open, campaign: Campaign, disputed: list[tuple[str, str]]):
    query, doc = disputed[0]
    campaign.change_queries("eve", {query: "singing birds"})
    campaign.change_query_guidelines("eve", {query: "Songs only."})
    campaign.change("eve", grade_words=("no", "partly", "yes, really"))
    campaign.comment("bob", query, doc, f"It sings. {SCRIPT}")
    campaign.flag("ann", query, doc, reason="no text at all")
    campaign.skip("cid", (query, doc), reason="wrong language")
    page = open_page(who=EVE, documents={doc: Document(f"A bird. {SCRIPT}", "Of birds")}).get("/adjudicate").text
    for text in (
        "Disagreement 1 of 2.",
        '<h1 dir="auto">singing birds</h1>',
        "Songs only.",
        "Be fair.",
        "A <mark>bird</mark>. &lt;script&gt;",
        "Of <mark>birds</mark>",
        '<span class="number">0</span> <bdi>ann</bdi>',
        '<span class="number">2</span> <bdi>bob</bdi>',
        "yes, really",
        "<strong><bdi>bob</bdi>:</strong> It sings. &lt;script&gt;",
        "<bdi>ann</bdi> flagged it.",
        "<bdi>cid</bdi> skipped it.</strong> wrong language",
    ):
        assert text in page, text
    assert "<script>window" not in page


def test_pairs_are_settled_one_after_the_other_and_a_reason_is_kept(
    open_page: Open, campaign: Campaign, disputed: list[tuple[str, str]]
):
    owner = open_page(who=EVE)
    page = owner.get("/adjudicate")
    for place, pair in enumerate(disputed):
        form = page.form("/settle")
        assert (form["query"], form["doc"]) == pair
        page = owner.post("/settle", {**form, "grade": "1", "text": f"reason {place}"})
        assert page.status == 200
        assert "You settled <a" in page.text
        again = owner.post("/settle", {**form, "grade": "1", "text": f"reason {place}"})
        assert again.status == 200  # sent twice, it counts once
    assert "No disagreements to settle" in page.text
    settled = [campaign.state.adjudicated[pair] for pair in disputed]
    assert [(each.by, each.grade) for each in settled] == [("eve", 1.0)] * 2
    assert [each.reason for each in settled] == ["reason 0", "reason 1"]
    assert sum(event.kind == "adjudicated" for event in campaign.log()) == 2


def test_next_goes_round_and_a_settled_pair_can_be_seen_and_settled_again(
    open_page: Open, campaign: Campaign, disputed: list[tuple[str, str]]
):
    owner = open_page(who=EVE)
    wide, near = disputed
    address = f"/adjudicate?query={near[0]}&doc={near[1]}"
    page = owner.get(address)
    assert page.form("/settle")["doc"] == near[1]
    assert f'href="/adjudicate?query={wide[0]}&amp;doc={wide[1]}" data-key="n"' in page.text
    owner.post("/settle", {**page.form("/settle"), "grade": "1"})
    page = owner.get(address)
    assert "Settled by <bdi>eve</bdi> as 1." in page.text
    assert owner.post("/settle", {**page.form("/settle"), "grade": "2"}).status == 200
    assert campaign.state.adjudicated[near].grade == 2
    elsewhere = owner.get("/adjudicate?query=nowhere&doc=%3Cscript%3E")
    assert elsewhere.form("/settle")["doc"] == wide[1]


def test_without_our_script_the_next_pair_follows(open_page: Open, disputed: list[tuple[str, str]]):
    owner = open_page(who=EVE)
    form = {**owner.get("/adjudicate").form("/settle"), "grade": "1"}
    answer = owner.post("/settle", form, {"x-part": ""})
    near = disputed[1]
    assert (answer.status, answer.headers["location"]) == (303, f"/adjudicate?query={near[0]}&doc={near[1]}")
    form = {**owner.get(answer.headers["location"]).form("/settle"), "grade": "1"}
    assert owner.post("/settle", form, {"x-part": ""}).headers["location"] == "/adjudicate"


def test_only_those_who_may_adjudicate_see_the_page(open_page: Open, campaign: Campaign, disputed):
    assert EVE.adjudicates
    assert Assessor("cy", "a-long-token-that-is-of-cy", Role.adjudicator).adjudicates
    assert not Assessor("bob", "a-long-token-that-is-of-bob").adjudicates
    ann = open_page(who=ANN)
    assert "/adjudicate" not in ann.get("/").text
    assert ann.get("/adjudicate").status == 403
    form = {**ann.get("/").form("/judge"), "query": disputed[0][0], "doc": disputed[0][1], "grade": "1"}
    assert ann.post("/settle", form).status == 403
    assert not campaign.state.adjudicated
    ann.token = None
    assert ann.get("/adjudicate").status == 401
