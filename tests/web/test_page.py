"""The page, address by address: what each says, to whom, and what stands in the log after it."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from probeval.campaign import Campaign, Commented, Flagged, Judged, Leased, Skipped, Withdrawn
from probeval.campaign.kinds.grade import grade_buttons
from probeval.data import Runs, Scale
from probeval.web import Board, Roster, read_documents
from probeval.web.judging import SKIP_REASONS
from probeval.web.overview import MAX_REASONS
from tests.web.asking import Answer, Client
from tests.web.browsing import PATIENCE
from tests.web.conftest import ANN, EVE, SCRIPT, TOKENS

Open = Callable[..., Client]


def _events(campaign: Campaign, kind: type) -> list:
    return [event for event in campaign.log() if isinstance(event, kind)]


def _judge(client: Client, page: Answer, grade: str = "1") -> Answer:
    return client.post("/judge", {**page.form("/judge"), "grade": grade})


def test_a_grade_is_kept_and_the_next_document_comes(open_page: Open, campaign: Campaign):
    client = open_page()
    first = client.get("/")
    second = _judge(client, first, "2")
    assert second.status == 200
    assert second.form("/judge")["doc"] != first.form("/judge")["doc"]
    (judged,) = _events(campaign, Judged)
    assert (judged.by, judged.grade, judged.guideline) == ("owner", 2.0, 1)
    assert (judged.query, judged.doc) == (first.form("/judge")["query"], first.form("/judge")["doc"])
    assert client.get("/").form("/judge")["doc"] == second.form("/judge")["doc"]  # a reload changes nothing


def test_a_form_sent_twice_counts_once(open_page: Open, campaign: Campaign):
    client = open_page()
    first = client.get("/")
    one, two = _judge(client, first), _judge(client, first)
    assert len(_events(campaign, Judged)) == 1
    assert one.form("/judge")["doc"] == two.form("/judge")["doc"]
    assert _judge(client, first, "2").status == 422  # the same request, and another grade
    assert len(_events(campaign, Judged)) == 1


def test_undo_goes_back_one_by_one(open_page: Open, campaign: Campaign):
    client = open_page()
    pages = [client.get("/")]
    for _ in range(3):
        pages.append(_judge(client, pages[-1]))
    for before in reversed(pages[:3]):
        page = client.post("/undo", client.get("/").form("/undo"))
        assert page.form("/judge")["doc"] == before.form("/judge")["doc"]
    assert 'action="/undo"' not in page.text
    assert len(_events(campaign, Withdrawn)) == 3
    assert not campaign.state.judged


def test_undo_takes_back_only_ones_own(open_page: Open, campaign: Campaign):
    campaign.answer("bob", campaign.pool.label(0), grade=1)
    number = _events(campaign, Judged)[0].number
    client = open_page(who=ANN)
    form = {**client.get("/").form("/judge"), "judgment": str(number)}
    answer = client.post("/undo", form)
    assert answer.status == 422
    assert "has no judgment" in answer.text
    assert not _events(campaign, Withdrawn)


def test_skip_comment_and_flag(open_page: Open, campaign: Campaign):
    client = open_page()
    first = client.get("/")
    form = first.form("/comment")
    page = client.post("/comment", {**form, "text": "two\r\nlines"})
    assert page.form("/judge")["doc"] == form["doc"]  # the same document
    assert "two\nlines" in page.text
    page = client.post("/comment", {**page.form("/comment"), "text": "and more"})
    page = client.post("/flag", {**page.form("/comment"), "text": "wrong language"})
    assert "Your flag." in page.text
    page = client.post("/skip", page.form("/skip"))
    assert page.form("/judge")["doc"] != form["doc"]
    assert [event.text for event in _events(campaign, Commented)] == ["two\nlines", "and more"]
    assert [event.reason for event in _events(campaign, Flagged)] == ["wrong language"]
    assert [event.documents for event in _events(campaign, Skipped)] == [(form["doc"],)]
    assert client.post("/comment", {**page.form("/comment"), "text": "  "}).status == 400


def test_an_assessor_does_not_see_other_peoples_remarks(open_page: Open, campaign: Campaign):
    ann = open_page(who=ANN)
    form = ann.get("/").form("/judge")
    campaign.comment("bob", form["query"], form["doc"], "bob's own view")
    campaign.comment("ann", form["query"], form["doc"], "ann's own view")
    text = ann.get("/").text
    assert "bob&#39;s own view" not in text
    assert "ann&#39;s own view" in text


def test_all_judged_says_so_and_can_be_undone(open_page: Open, campaign: Campaign):
    client = open_page()
    page = client.get("/")
    while 'action="/judge"' in page.text:
        page = _judge(client, page)
    assert "Nothing is left for you" in page.text
    assert len(campaign.state.judged) == len(campaign.pool)
    page = client.post("/undo", page.form("/undo"))
    assert 'action="/judge"' in page.text


def test_without_our_script_a_form_leads_back_to_the_page(open_page: Open):
    client = open_page()
    form = {**client.get("/").form("/judge"), "grade": "1"}
    answer = client.post("/judge", form, {"x-part": ""})
    assert (answer.status, answer.headers["location"]) == (303, "/")
    wrong = client.post("/judge", {**form, "grade": "7", "request": "x"}, {"x-part": ""})
    assert wrong.status == 422
    assert "<h1>That did not work</h1>" in wrong.text


def test_progress_shows_the_model_and_the_curve(open_page: Open, campaign: Campaign):
    board = Board(campaign)
    client = open_page(board=board)
    assert "has not run yet" in client.get("/").text
    campaign.refresh()
    page = client.get("/")
    for _ in range(4):
        page = _judge(client, page)
    campaign.refresh()
    board.look()
    text = client.get("/progress").text
    snapshot = campaign.snapshot
    assert snapshot is not None
    assert f"{snapshot.confidence:.3f}" in text
    assert "<polyline" in text
    assert '<dd id="judged">4</dd>' in text  # against the work ahead once it is known, never against the pool
    assert "ranking" not in text.lower()


def _said(text: str) -> str:
    """What a page says, without markup."""
    return " ".join(re.sub(r"<[^>]*>", " ", text).split())


def test_the_strip_says_what_the_model_knew_and_forecasts_nothing_from_little(open_page: Open, campaign: Campaign):
    board = Board(campaign)
    client = open_page(board=board)
    first = campaign.refresh().confidence
    page = client.get("/")
    for _ in range(4):
        page = _judge(client, page, "2")
    board.look()
    said = _said(client.get("/progress").text)
    assert f"Confidence {first:.3f} after 0 of 4 judged, target 0.95" in said
    assert "0% of the way to the target" in said
    assert "first judgments often lower confidence" not in said  # the model has not seen any
    assert "Left" not in said
    assert "Confidence so far" not in said  # one point is no trajectory
    for turn in range(20):
        page = _judge(client, page, str(turn % 3))
    snapshot = campaign.refresh()
    status = board.look().status
    said = _said(client.get("/progress").text)
    assert f"Confidence {snapshot.confidence:.3f} target 0.95" in said
    assert f"Judged 24 of about {24 + status.left} By you" in said  # type: ignore[operator]
    assert f"{100 * 24 / (24 + status.left):.0f}% of the judgments to the target" in said  # type: ignore[operator]
    assert f"Target confidence=0.95: about {status.left} judgments more" in status.summary()
    assert f"Left about {status.left} , under 1 min" in said
    assert "Confidence so far" in said


def test_a_query_without_a_text_says_so_and_gets_one_while_the_page_is_open(open_page: Open, campaign: Campaign):
    client = open_page()
    page = client.get("/")
    query = page.form("/judge")["query"]
    assert "only an id. The owner can add texts with <code>probeval campaign queries</code>" in page.text
    campaign.change_queries("eve", {query: "what is it"})
    page = client.get("/")
    assert '<h1 dir="auto">what is it</h1>' in page.text
    assert "only an id" not in page.text


def test_the_board_follows_the_campaign(campaign: Campaign):
    with Board(campaign, pause=0.01) as board:
        campaign.answer("ann", campaign.pool.label(0), grade=1)
        for _ in range(500):
            if board.standing.status.judged:
                break
            board._stop.wait(0.01)
        assert board.standing.status.judged == 1
        assert board.standing.share("ann").judgments == 1  # type: ignore[union-attr]
        assert board.standing.share("bob") is None


def test_the_ranking_is_the_owners_unless_it_is_shown_to_all(open_page: Open, campaign: Campaign):
    campaign.refresh()
    system = campaign.snapshot.systems[0].system  # type: ignore[union-attr]
    team, alone = open_page(who=EVE).get("/overview").text, open_page().get("/overview").text
    assert system in team
    assert "Only owners of the campaign see the ranking." in team
    assert "Knowing the ranking may bias your judgments: better wait until you are done." in alone
    refused = open_page(who=ANN).get("/overview")
    assert refused.status == 403
    assert "for the owner" in refused.text
    assert "/overview" not in open_page(who=ANN).get("/").text
    shown = open_page(who=ANN, show_ranking=True).get("/overview")
    assert shown.status == 200
    assert system in shown.text
    assert "Assessors see the ranking too." in shown.text
    assert "/export/" not in shown.text
    assert open_page(who=ANN, show_ranking=True).get("/export/qrels").status == 403


def test_the_owner_settles_disagreements_and_exports(open_page: Open, campaign: Campaign):
    pair = campaign.pool.label(0)
    campaign.answer("ann", pair, grade=0)
    campaign.answer("bob", pair, grade=2)
    owner = open_page(who=EVE)
    assert "Adjudicate 1 pair on which assessors differ." in owner.get("/overview").text
    form = owner.get("/adjudicate").form("/settle")
    assert (form["query"], form["doc"]) == pair
    assert owner.post("/settle", {**form, "grade": "1"}, {"x-part": ""}).status == 303
    assert "No disagreements to settle" in owner.get("/overview").text
    assert owner.get("/export/qrels").text == campaign.export("qrels")
    assert f"{pair[0]} adjudicated {pair[1]} 1" in owner.get("/export/qrels").text
    for form_name in ("csv", "jsonl", "log"):
        answer = owner.get(f"/export/{form_name}")
        assert answer.text == campaign.export(form_name)
        assert answer.headers["content-disposition"].startswith("attachment")
    assert owner.get("/export/exe").status == 404


def test_the_page_shows_the_guideline_of_the_query_and_words_for_grades(open_page: Open, campaign: Campaign):
    client = open_page()
    query = client.get("/").form("/judge")["query"]
    campaign.change_query_guidelines("eve", {query: f"Only today. {SCRIPT}"})
    campaign.change("eve", grade_words=("no <b>", "related", "perfect"))
    page = client.get("/").text
    assert page.index("Only today.") < page.index('id="document"')  # above the document
    assert "<script>window" not in page
    assert page.count("no &lt;b&gt;") == 3  # on the button, as its title, and in the help
    assert _judge(client, client.get("/"), "2").status == 200
    assert _events(campaign, Judged)[0].guideline == 2


def test_the_page_says_how_far_one_is_with_a_topic(open_page: Open, campaign: Campaign):
    client = open_page()
    assert "to go" not in client.get("/").text  # topics change all the time
    campaign.change("eve", stay=2.0)
    page = client.get("/")
    assert "a new topic, 0 judged by you, about " in page.text
    assert "a new topic, 1 judged" not in _judge(client, page, "1").text


def test_query_terms_are_marked_in_the_document(open_page: Open, campaign: Campaign):
    client = open_page()
    campaign.change_queries("eve", dict.fromkeys(campaign.queries, "a TÉXT of nothing"))
    assert "<mark>Text</mark> of " in client.get("/").text


def test_a_skip_has_a_reason(open_page: Open, campaign: Campaign):
    client = open_page()
    page = client.get("/")
    for reason in SKIP_REASONS:
        assert f'name="text" value="{reason}"' in page.text
        page = client.post("/skip", {**page.form("/skip"), "text": reason})
    page = client.post("/skip", {**page.form("/skip"), "text": "a page to log in <b>"})
    assert [event.reason for event in _events(campaign, Skipped)] == [*SKIP_REASONS, "a page to log in <b>"]
    said = _said(client.get("/overview").text)
    assert "Skipped: no text 1, wrong language 1, cannot judge 1, a page to log in &lt;b&gt; 1." in said


def test_the_owner_sees_the_most_frequent_reasons(open_page: Open, campaign: Campaign):
    for at in range(MAX_REASONS + 2):
        query, doc = campaign.pool.label(at)
        campaign.skip("ann", (query, doc), reason=f"reason {at}")
    said = _said(open_page().get("/overview").text)
    assert f"reason {MAX_REASONS - 1} 1, others 2." in said


def test_a_long_ranking_is_folded(open_page: Open, campaign: Campaign):
    systems = [f"late-{i:02d}" for i in range(20)]
    campaign.add_runs("eve", Runs.rows(systems, ["q1"] * 20, ["d1"] * 20))
    campaign.refresh()
    text = open_page(board=Board(campaign)).get("/overview").text
    n = len(campaign.snapshot.systems)
    assert f"<summary>All {n} systems</summary>" in text
    assert text.count('<tr class="more">') == n - 10


@pytest.mark.parametrize(("sent", "kept"), [("0.5", True), ("", False), ("999999999", True)])
def test_time_on_a_document_comes_with_the_grade(open_page: Open, campaign: Campaign, sent: str, kept: bool):
    client = open_page()
    page = client.get("/")
    assert client.post("/judge", {**page.form("/judge"), "grade": "1", "seconds": sent}).status == 200
    (judged,) = _events(campaign, Judged)
    assert (judged.seconds is not None) == kept
    assert (judged.seconds or 0) <= judged.time - _events(campaign, Leased)[0].time


@pytest.mark.parametrize("sent", ["-1", "nan", "1e9", "x", "٣"])
def test_time_that_is_no_number_is_refused(open_page: Open, campaign: Campaign, sent: str):
    client = open_page()
    answer = client.post("/judge", {**client.get("/").form("/judge"), "grade": "1", "seconds": sent})
    assert answer.status == 400
    assert "must be a number of seconds" in answer.text
    assert not _events(campaign, Judged)


def test_progress_is_against_the_budget_where_there_is_no_forecast(open_page: Open, campaign: Campaign):
    campaign.change("eve", stopping="confidence=.99,budget=40")
    campaign.refresh()
    client = open_page()
    _judge(client, client.get("/"))
    said = _said(client.get("/progress").text)
    assert "Judged 1 of at most 40 By you 1" in said
    assert "2% of the judgments in the budget" in said


def test_the_owners_page_and_its_part(open_page: Open, campaign: Campaign):
    campaign.refresh()
    for i in range(12):
        pair = campaign.pool.label(i)
        campaign.answer("ann", pair, grade=i % 3)
        campaign.answer("bob", pair, grade=min(2, i % 3 + (i == 3)))
    campaign.refresh()
    campaign.forecast()
    client = open_page(who=EVE)
    whole, part = client.get("/overview").text, client.get("/overview", {"x-part": "1"}).text
    assert part in whole
    assert "<html" not in part
    said = _said(part)
    status = campaign.status()
    assert "Adjudicate 1 pair on which assessors differ." in said
    assert f"Krippendorff&#39;s alpha {status.alpha:.3f}".replace("&#39;", "'") in said
    assert f"ann , bob 12 11 {status.agreements[0].kappa:.2f}" in said
    assert 'class="band"' in part
    assert 'class="ahead"' in part
    for each in status.queries:
        assert f"<code>{each.query}</code>" in part
        assert f"{each.uncertainty:.3f}" in said
    assert "ann 12 now" in said
    shown = open_page(who=ANN, show_ranking=True).get("/overview").text
    for secret in ("What to do next", "Agreement", "Queries", "Disagreements", "bob"):
        assert secret not in shown


def test_coming_in_and_going_out(open_page: Open):
    nobody = open_page(who=ANN)
    nobody.token = None
    answer = nobody.get("/")
    assert (answer.status, answer.headers["location"]) == (303, "/login")
    answer = nobody.post("/login", {"token": TOKENS["ann"]})
    cookie = answer.headers["set-cookie"]
    assert answer.status == 303
    assert all(word in cookie for word in ("HttpOnly", "SameSite=strict", "Path=/"))
    assert TOKENS["ann"] not in cookie  # a session of its own
    nobody.token = cookie.partition("=")[2].partition(";")[0]
    out = nobody.post("/logout", nobody.get("/").form("/logout"))
    assert "Max-Age=0" in out.headers["set-cookie"]
    assert nobody.get("/").status == 401  # the session ended, not only the cookie


def test_alone_nobody_needs_to_come_in(open_page: Open):
    client = open_page()
    assert "Sign out" not in client.get("/").text
    assert "set-cookie" not in client.post("/login", {"token": "x"}).headers


def test_sounds_and_pictures_are_served_whole_and_in_parts(
    open_page: Open, campaign: Campaign, put: Callable[[str, bytes | str], Path]
):
    doc = str(campaign.pool.docs[0])
    put("sounds/a.mp3", b"0123456789")
    put("b.PNG", b"picture")
    table = put("docs.csv", f"doc,text,audio,image\n{doc},some text,sounds/a.mp3,b.PNG\nother,x,,\n")
    documents = read_documents(table, only={doc})
    assert [*documents] == [doc]
    client = open_page(documents=documents)
    audio = documents[doc].audio
    assert audio is not None
    whole = client.get(f"/media/{audio.key}")
    assert (whole.status, whole.body, whole.headers["content-type"]) == (200, b"0123456789", "audio/mpeg")
    part = client.get(f"/media/{audio.key}", {"range": "bytes=2-4"})
    assert (part.status, part.body) == (206, b"234")
    assert documents[doc].image.type == "image/png"  # type: ignore[union-attr]


def test_grades_get_buttons_up_to_ten_and_a_field_beyond():
    assert grade_buttons(Scale.binary()) == [("0", "not relevant"), ("1", "relevant")]
    assert [grade for grade, _ in grade_buttons(Scale.graded(9))] == list("0123456789")
    assert grade_buttons(Scale.fine()) == []
    assert grade_buttons(Scale.binary(), ("no", "yes")) == [("0", "no"), ("1", "yes")]


def test_a_fine_scale_is_typed(tmp_path: Path, small, open_page: Open):
    from dataclasses import replace

    with Campaign.create(
        tmp_path / "fine.db", replace(small, judgments=None), metric="nDCG@5", scale=Scale.fine(), model="uniform"
    ) as fine:
        from probeval.web import application

        app = application(fine, roster=Roster(fine, alone="me"), board=Board(fine), hosts=["judge.test"])
        client = Client(app, "judge.test")
        page = client.get("/")
        assert 'type="number"' in page.text
        assert "<kbd>g</kbd>" not in page.text  # this campaign has no guideline, the other one has
        assert "<kbd>g</kbd> guideline" in open_page().get("/").text
        assert _judge(client, page, "73").status == 200
        assert _judge(client, client.get("/"), "101").status == 422
        assert [said[-1].grade for said in fine.state.judged.values()] == [73.0]


@pytest.mark.parametrize(
    "path", [f"/static/{name}" for name in ("probeval.css", "judge.js", "join.js", "overview.js", "icon.svg")]
)
def test_static_files_name_nothing_elsewhere(open_page: Open, path: str):
    answer = open_page().get(path)
    assert answer.status == 200
    assert "//" not in answer.text.replace("http://www.w3.org/2000/svg", "").replace("// ", "")


def test_a_gold_pair_looks_like_any_other_and_the_owner_sees_the_answer(open_page: Open, campaign: Campaign):
    campaign.change("eve", gold_share=0.99)
    campaign.change_gold("eve", {"q1": {"gold-doc": 2.0}})
    client = open_page(board=Board(campaign))
    page = client.get("/")
    assert page.form("/judge")["doc"] == "gold-doc"
    assert "gold" not in page.text.replace("gold-doc", "")
    after = _judge(client, page, "1")
    assert _judge(client, after).status == 200
    shown = _said(open_page(board=Board(campaign)).get("/overview").text)
    assert "Quality control Gold pairs: 0 of 1 answers right." in shown
    assert "0 of 1 0.00 to " in shown


def test_remarks_on_a_repeated_pair_do_not_give_it_away(open_page: Open, campaign: Campaign):
    campaign.change("eve", repeat_share=0.99)
    client, seen = open_page(), set[str]()
    page = client.get("/")
    while (doc := page.form("/judge")["doc"]) not in seen:
        seen.add(doc)
        client.post("/comment", {**client.get("/").form("/comment"), "text": "mine"})
        page = _judge(client, client.get("/"))
    assert "Your comment:" not in page.text
    client.post("/comment", {**client.get("/").form("/comment"), "text": "again"})
    assert client.get("/").text.count("Your comment:") == 1


def test_a_target_that_was_met_and_is_raised_does_not_stop_the_board(campaign: Campaign):
    """The way to a target that was met at once has no beginning; the progress goes on all the same."""
    campaign.change("eve", stopping="confidence=.1")
    campaign.refresh()
    board = Board(campaign)
    assert board.standing.status.way == 1
    campaign.change("eve", stopping="confidence=.9999")
    campaign.refresh()
    assert 0 <= board.look().status.way < 1


def test_the_board_goes_on_after_an_error_of_any_kind(campaign: Campaign, monkeypatch: pytest.MonkeyPatch):
    said: list[str] = []
    failed, told = threading.Event(), threading.Event()
    status = Campaign.status

    def fails_once(self: Campaign) -> object:
        if not failed.is_set():
            failed.set()
            raise ZeroDivisionError("once")
        return status(self)

    def tell(message: str) -> None:
        said.append(message)
        told.set()

    with Board(campaign, pause=0.01, tell=tell) as board:
        monkeypatch.setattr(Campaign, "status", fails_once)
        campaign.change("eve", stopping="confidence=.97")
        assert told.wait(PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while board.standing.status.setup.stopping != "confidence=.97" and time.monotonic() < deadline:
            threading.Event().wait(0.01)
        assert board.standing.status.setup.stopping == "confidence=.97"
    assert said == ["The progress could not be updated: ZeroDivisionError: once"]
