"""Two documents side by side: what the page shows, what stands in the log after an answer, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from probeval.campaign import Campaign, Compared, Flagged, Judged, Leased, Skipped, Withdrawn
from probeval.campaign.assessors import comparer_sentences
from probeval.web import Board
from tests.web.asking import Answer, Client
from tests.web.conftest import ANN, EVE, SCRIPT

Open = Callable[..., Client]


@pytest.fixture
def comparing(campaign: Campaign) -> Campaign:
    """A campaign that asks which of two documents is better."""
    campaign.change("eve", ask="preferences")
    return campaign


def _events(campaign: Campaign, kind: type) -> list:
    return [event for event in campaign.log() if isinstance(event, kind)]


def _compare(client: Client, page: Answer, **fields: str) -> Answer:
    return client.post("/judge", {**page.form("/judge"), **fields})


def _docs(page: Answer) -> tuple[str, str]:
    form = page.form("/judge")
    return form["left"], form["right"]


def _said(text: str) -> str:
    """What a page says, without markup."""
    return " ".join(re.sub(r"<[^>]*>", " ", text).split())


@pytest.mark.usefixtures("comparing")
def test_a_preference_is_kept_and_the_next_question_comes(open_page: Open, campaign: Campaign):
    client = open_page()
    campaign.change_queries("eve", dict.fromkeys(campaign.queries, "a text of nothing"))
    first = client.get("/")
    left, right = _docs(first)
    assert first.text.index(f"<mark>Text</mark> of {left}.") < first.text.index(f"<mark>Text</mark> of {right}.")
    assert "<script>window" not in first.text
    assert SCRIPT not in first.text
    assert 'name="grade"' not in first.text
    second = _compare(client, first, choice="left", seconds="0.1", text="better\r\nwritten")
    assert second.status == 200
    (answer,) = _events(campaign, Compared)
    assert (answer.by, answer.query, answer.left, answer.right) == (
        "owner",
        first.form("/judge")["query"],
        left,
        right,
    )
    assert (answer.choice, answer.relevant, answer.comment, answer.guideline) == ("left", "", "better\nwritten", 1)
    assert answer.seconds <= answer.time - _events(campaign, Leased)[0].time
    assert set(_docs(second)) != {left, right}
    assert _docs(client.get("/")) == _docs(second)  # a reload changes nothing
    assert '<dd id="mine">1</dd>' in second.text


def test_answers_as_the_buttons_send_them(open_page: Open, comparing: Campaign):
    client = open_page()
    page = client.get("/")
    sent = {
        ("right", ""): {"choice": "right"},
        ("equal", ""): {"choice": "equal"},
        ("right", "chosen"): {"choice": "right", "relevant": "chosen"},
        ("left", ""): {"choice": "left", "relevant": ""},
        ("equal", "neither"): {"bad": "1", "choice": "left"},  # the button was pressed after a choice
    }
    for fields in sent.values():
        page = _compare(client, page, **fields)
    assert [(answer.choice, answer.relevant) for answer in _events(comparing, Compared)] == [*sent]


WRONG = [
    ({}, 422, "needs a choice"),
    ({"choice": "best"}, 422, "got 'best'"),
    ({"choice": "equal", "relevant": "chosen"}, 422, "neither was chosen"),
    ({"choice": "left", "relevant": "all"}, 422, "got 'all'"),
    ({"choice": "left", "right": "no such document"}, 422, "no run retrieves"),
    ({"choice": "left", "left": "", "right": ""}, 422, "cannot be compared with itself"),
    ({"choice": "left", "better": "yes"}, 400, "Unknown form field"),
    ({"choice": "left" * 9}, 400, "at most 10 characters"),
    ({"choice": "left", "seconds": "-1"}, 400, "must be a number of seconds"),
    ({"choice": "left", "mark": "forged"}, 403, "earlier session"),
    ({"left_number": "0", "right_number": "1"}, 422, "left document must be above 0, got '0'"),
    ({"left_number": "2", "right_number": ""}, 422, "right document must be above 0, got ''"),
    ({"left_number": "2", "right_number": "-1"}, 422, "right document must be above 0"),
    ({"left_number": "nan", "right_number": "1"}, 422, "left document must be above 0"),
    ({"left_number": "1e999", "right_number": "1"}, 422, "left document must be above 0"),
    ({"left_number": "٣", "right_number": "1"}, 422, "left document must be above 0"),
]


def test_a_wrong_answer_is_refused_in_one_line_and_changes_nothing(open_page: Open, comparing: Campaign):
    client = open_page()
    page = client.get("/")
    before = comparing.state.number
    for fields, status, message in WRONG:
        refused = _compare(client, page, **fields)
        assert (refused.status, message in refused.text) == (status, True), refused.text
        assert refused.text.count("\n") == 1
    assert comparing.state.number == before
    assert _compare(client, page, choice="left").status == 200  # the page is as good as before


def test_an_answer_from_elsewhere_or_after_a_revocation_is_refused(open_page: Open, comparing: Campaign):
    ann = open_page(who=ANN)
    page = ann.get("/")
    form = {**page.form("/judge"), "choice": "left"}
    assert ann.post("/judge", form, {"origin": "http://evil.test"}).status == 403
    assert ann.ask("POST", "/judge", {"content-type": "text/plain"}, b"choice=left").status == 415
    eve = open_page(who=EVE)
    assert eve.post("/judge", form).status == 403  # another person's form
    comparing.people.revoke("eve", "ann")
    refused = ann.post("/judge", form)
    assert refused.status == 401
    assert not _events(comparing, Compared)


def test_an_answer_sent_twice_counts_once(open_page: Open, comparing: Campaign):
    client = open_page(who=ANN)
    first = client.get("/")
    one, two = (_compare(client, first, choice="equal") for _ in range(2))
    assert len(_events(comparing, Compared)) == 1
    assert _docs(one) == _docs(two)
    assert _compare(client, first, choice="left").status == 422  # the same request, and another answer
    later = open_page(who=ANN)  # the server started again
    assert _docs(_compare(later, first, choice="equal")) == _docs(one)
    assert len(_events(comparing, Compared)) == 1


def test_two_assessors_never_get_the_same_question(open_page: Open, comparing: Campaign):
    ann, eve = open_page(who=ANN), open_page(who=EVE)
    pages = [client.get("/") for client in (ann, eve)]
    for _ in range(4):
        assert {pages[0].form("/judge")["query"], *_docs(pages[0])} != {
            pages[1].form("/judge")["query"],
            *_docs(pages[1]),
        }
        pages = [_compare(client, page, choice="left") for client, page in zip((ann, eve), pages, strict=True)]
    assert len(comparing.state.compared) == 8


def test_undo_brings_the_documents_back_on_their_sides(open_page: Open, comparing: Campaign):
    client = open_page()
    pages = [client.get("/")]
    for fields in ({"choice": "left"}, {"bad": "1"}):
        pages.append(_compare(client, pages[-1], **fields))
    assert "Undo both bad" in _said(pages[2].text)
    back = client.post("/undo", pages[2].form("/undo"))
    assert _docs(back) == _docs(pages[1])
    assert "Undo left is better upper is better : " + ", ".join(_docs(pages[0])) in _said(back.text).replace(
        " , ", ", "
    )
    again = client.post("/undo", back.form("/undo"))
    assert _docs(again) == _docs(pages[0])
    assert 'action="/undo"' not in again.text
    assert len(_events(comparing, Withdrawn)) == 2
    assert not comparing.state.compared


def test_skips_and_flags_of_two_documents(open_page: Open, comparing: Campaign):
    client = open_page()
    page = client.get("/")
    docs = _docs(page)
    assert 'name="doc" value="' + docs[1] in page.text
    page = client.post("/flag", {**page.form("/judge"), "doc": docs[1], "text": "wrong language"})
    assert _docs(page) == docs
    assert f"Your flag of {docs[1]} . wrong language" in _said(page.text)
    page = client.post("/skip", {**page.form("/skip"), "text": "no text"})
    assert set(_docs(page)) != set(docs)
    assert [(event.doc, event.reason) for event in _events(comparing, Flagged)] == [(docs[1], "wrong language")]
    (skip,) = _events(comparing, Skipped)
    assert ({*skip.documents}, skip.reason) == ({*docs}, "no text")


def test_the_follow_up_is_asked_if_the_campaign_asks_it(open_page: Open, comparing: Campaign):
    client = open_page()
    assert "Are they relevant?" not in client.get("/").text
    comparing.change("eve", follow_up=True)
    text = client.get("/").text
    assert "Are they relevant?" in text
    assert text.count('type="radio"') == 3
    assert text.index("Cannot tell") < text.index('value="both"')  # the button that Enter presses


def test_numbers_of_two_documents(open_page: Open, campaign: Campaign):
    campaign.change("eve", ask="magnitudes")
    client = open_page()
    page = client.get("/")
    assert page.text.count('type="number"') == 2
    assert 'name="choice"' not in page.text
    page = _compare(client, page, left_number="30", right_number=".5")
    page = _compare(client, page, left_number=" 1e3 ", right_number="2.")
    assert [(e.left_number, e.right_number, e.choice) for e in _events(campaign, Compared)] == [
        (30.0, 0.5, ""),
        (1000.0, 2.0, ""),
    ]
    assert "Undo 1000 and 2" in _said(page.text)


def test_a_mixed_campaign_asks_both_ways(open_page: Open, campaign: Campaign):
    campaign.change("eve", ask="mixed")
    client = open_page()
    page = client.get("/")
    for _ in range(30):
        if 'action="/judge"' not in page.text:
            break
        form = page.form("/judge")
        page = client.post("/judge", form | ({"grade": "1"} if form["kind"] == "grade" else {"choice": "left"}))
        assert page.status == 200
    assert len(_events(campaign, Compared)) > 5 < len(_events(campaign, Judged))
    last = max(_events(campaign, Compared) + _events(campaign, Judged), key=lambda event: event.number)
    assert f'name="judgment" value="{last.number}"' in page.text


def test_without_our_script_a_form_leads_back_to_the_page(open_page: Open, comparing: Campaign):
    client = open_page()
    form = {**client.get("/").form("/judge"), "choice": "left"}
    answer = client.post("/judge", form, {"x-part": ""})
    assert (answer.status, answer.headers["location"]) == (303, "/")
    assert len(comparing.state.compared) == 1


def test_contradicting_answers_are_settled_with_both_documents_on_screen(open_page: Open, comparing: Campaign):
    (task,) = comparing.next("bob")
    low, high = sorted((task.doc, task.other))
    comparing.answer("bob", (task.query, low, high), choice="left", relevant="chosen", comment=f"bob's {SCRIPT}")
    comparing.answer("cid", (task.query, low, high), choice="right")
    comparing.answer("dee", (task.query, high, low), choice="right")  # the same as bob, the other way round
    owner = open_page(who=EVE, board=Board(comparing))
    page = owner.get("/adjudicate")
    said = _said(page.text)
    assert "Disagreement 1 of 1." in said
    assert "dee : left is better upper is better" in said
    assert "bob : left is better upper is better , only the better one relevant" in said
    assert "cid : right is better lower is better" in said
    assert "<script>window" not in page.text
    assert page.text.index(f"Text of {low}.") < page.text.index(f"Text of {high}.")
    shown = _said(owner.get("/overview").text)
    assert f"{task.query} {low} {high} : bob left is better, only the better one relevant; cid right is better" in shown
    refused = owner.post("/settle", {**page.form("/settle")})
    assert refused.status == 422
    done = owner.post("/settle", {**page.form("/settle"), "choice": "right", "text": "newer"})
    assert "No disagreements to settle" in done.text
    assert "as right is better" in _said(done.text)
    (settled,) = comparing.state.settled.values()
    assert (settled.by, settled.choice, settled.left, settled.reason) == ("eve", "right", low, "newer")
    again = owner.get(f"/adjudicate?kind=comparison&query={task.query}&left={high}&right={low}")
    assert "Settled by eve as right is better lower is better : newer ." in _said(again.text)
    assert open_page(who=ANN).get("/adjudicate").status == 403


def test_progress_counts_answers_against_the_budget(open_page: Open, comparing: Campaign):
    comparing.change("eve", stopping="confidence=.99,budget=40")
    board = Board(comparing)
    client = open_page(board=board)
    page = client.get("/")
    for _ in range(3):
        page = _compare(client, page, choice="left", seconds="0.01")
    assert '<dd id="judged">3 <small>of at most 40</small></dd>' in page.text
    board.look()
    said = _said(client.get("/progress").text)
    assert "Answered 3 of at most 40 By you 3" in said
    assert "Your pace 0.0 s each" in said


def test_the_owner_sees_how_good_the_answers_are(open_page: Open, comparing: Campaign):
    client = open_page()
    page = client.get("/")
    for _ in range(12):
        page = _compare(client, page, choice="left", relevant="both", seconds="0.01")
    (question, *_) = comparing.state.answers
    comparing.answer("bob", question, choice="equal", relevant="neither")
    said = _said(open_page(board=Board(comparing)).get("/overview").text)
    owner = {each.assessor: each for each in comparing.status().comparers}["owner"]
    sentences = [*comparer_sentences(comparing.status().comparers)]
    assert len(sentences) > 1
    assert all(sentence in said for sentence in sentences)
    assert f"owner - 12 now {owner.seconds:.1f} - - {owner.violated} {owner.contradictions:.0%} 1.00 biased" in said
    assert f"biased {owner.left_lower:.2f} to 1.00 1.00 generous {owner.relevant_lower:.2f} to 1.00" in said
    assert "bob - 1 now - - - - - 0.00" in said
    assert "No grades yet." in said
    comparing.change("eve", ask="grades")
    assert "Comparisons" in open_page(board=Board(comparing)).get("/overview").text  # there are answers


def test_a_gold_comparison_looks_like_any_other(open_page: Open, comparing: Campaign):
    comparing.change("eve", gold_share=0.99)
    comparing.change_gold("eve", {"q1": [("known-1", "known-2")]}, kind="comparison")
    client = open_page()
    page = client.get("/")
    left, right = _docs(page)
    assert {left, right} == {"known-1", "known-2"}
    assert "gold" not in page.text
    page = client.post("/flag", {**page.form("/judge"), "doc": left, "text": "odd"})
    assert f"Your flag of {left} . odd" in _said(page.text)
    page = _compare(client, page, choice="left" if left == "known-2" else "right")
    assert page.status == 200
    said = _said(open_page(board=Board(comparing)).get("/overview").text)
    assert "Gold comparisons: 0 of 1 answers right." in said
    assert "0 of 1 0.00 to " in said
