"""Links, sessions, roles and pauses on the page; a store that fails while it is served."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from probeval.campaign import Campaign
from probeval.campaign.access import MOST_SESSIONS
from probeval.data import Runs
from probeval.errors import DataError, StoreError
from probeval.web import Assessor, Board, Limiter, PoolDocuments, Roster, application
from probeval.web.site import UNAVAILABLE
from tests.web.asking import Answer, Client
from tests.web.conftest import ANN, EVE, HOST
from tests.web.served import Served

if TYPE_CHECKING:
    from playwright.sync_api import Page

Open = Callable[..., Client]


@pytest.fixture
def client(campaign: Campaign) -> Client:
    """A stranger, at the page of a team."""
    plenty = Limiter(rate=1e9, burst=1e9)
    app = application(campaign, roster=Roster(campaign), board=Board(campaign), hosts=[HOST], requests=plenty)
    return Client(app, HOST)


def sign_in(client: Client, token: str) -> Answer:
    """Open the link of an invitation, as a browser does."""
    page = client.get(f"/join/{token}")
    assert page.status == 200
    (sent,) = re.findall(r'name="token" value="([^"]*)"', page.text)
    answer = client.post("/login", {"token": sent}, {"x-part": ""})
    if answer.status == 303:
        client.token = answer.headers["set-cookie"].partition("=")[2].partition(";")[0]
    return answer


def test_a_link_signs_in_with_a_cookie_of_its_own(client: Client, campaign: Campaign):
    _, token = campaign.people.invite("eve", "ann", seconds=1000)
    number = campaign.state.number
    assert client.get(f"/join/{token}").status == 200
    assert campaign.state.number == number  # a look at the link signs no one in
    answer = sign_in(client, token)
    cookie = answer.headers["set-cookie"]
    assert (answer.status, answer.headers["location"]) == (303, "/")
    assert all(word in cookie for word in ("HttpOnly", "SameSite=strict", "Path=/"))
    assert "Secure" not in cookie  # over http
    assert 0 < int(re.findall(r"Max-Age=(\d+)", cookie)[0]) <= 1000
    assert token not in cookie
    pasted = Client(client.app, HOST).post("/login", {"token": f" https://judge.example.org/join/{token} "})
    assert pasted.status == 303
    page = client.get("/")
    assert page.status == 200
    assert client.post("/judge", {**page.form("/judge"), "grade": "1"}).status == 200
    assert [judged.by for (judged,) in campaign.state.judged.values()] == ["ann"]


def test_over_https_everything_is(client: Client, campaign: Campaign):
    """The cookie, the next visit, and the page that a form comes from."""
    _, token = campaign.people.invite("eve", "ann")
    assert "strict-transport-security" not in client.get("/login").headers
    client.scheme = "https"
    signed = sign_in(client, token)
    assert "Secure" in signed.headers["set-cookie"]
    page = client.get("/")
    for answer in (signed, page, client.get("/nowhere"), client.get("/", {"host": "evil.example"})):
        assert answer.headers["strict-transport-security"] == "max-age=2592000"
    form = {**page.form("/judge"), "grade": "1"}
    assert client.post("/judge", form, {"origin": f"http://{HOST}"}).status == 403
    assert not campaign.state.judged
    assert client.post("/judge", form).status == 200


def test_a_proxy_may_add_https(open_page: Open):
    client = open_page()
    form = {**client.get("/").form("/judge"), "grade": "1"}
    assert client.post("/judge", form, {"origin": f"https://{HOST}"}).status == 200


@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_a_revoked_or_expired_token_gets_401_at_the_next_request(client: Client, campaign: Campaign, how: str):
    _, token = campaign.people.invite("eve", "ann", seconds=3600)
    sign_in(client, token)
    form = {**client.get("/").form("/judge"), "grade": "1"}
    if how == "revoked":
        with Campaign.open(campaign.address[0]) as elsewhere:  # the command line, while the server runs
            elsewhere.people.revoke("eve", "ann")
    else:
        later = campaign._log.clock() + 3601
        campaign._log.clock = lambda: later
    for _ in range(15):  # it is no guess, however often it comes
        refused = client.post("/judge", form)
        assert refused.status == 401
        assert "Your session has ended, or your token was revoked" in refused.text
    assert client.get("/").status == 401
    assert 'action="/login"' in client.get("/").text
    assert not campaign.state.judged
    assert sign_in(client, token).status == 401


def test_a_session_that_was_signed_out_is_no_guess(client: Client, campaign: Campaign):
    _, token = campaign.people.invite("eve", "ann")
    sign_in(client, token)
    assert client.post("/logout", client.get("/").form("/logout"), {"x-part": ""}).status == 303
    assert {client.get("/progress").status for _ in range(15)} == {401}
    first = campaign.people.sign_in(token)[1]
    for _ in range(MOST_SESSIONS):
        campaign.people.sign_in(token)
    client.token = first  # it gave way to newer ones
    assert {client.get("/progress").status for _ in range(15)} == {401}
    assert sign_in(client, token).status == 303


def test_two_servers_on_one_host_do_not_share_a_cookie(campaign: Campaign):
    """A browser sends the cookies of all ports of a host to each of them."""
    tokens = [campaign.people.invite("eve", who)[1] for who in ("ann", "bob")]
    app = application(campaign, roster=Roster(campaign), board=Board(campaign), hosts=[HOST])
    cookies = []
    for port, token in zip((8517, 8518), tokens, strict=True):
        signed = Client(app, f"{HOST}:{port}").post("/login", {"token": token})
        cookies.append(signed.headers["set-cookie"].partition(";")[0])
    for port, name in ((8517, "ann"), (8518, "bob")):
        page = Client(app, f"{HOST}:{port}").get("/", {"cookie": "; ".join(cookies)})
        assert f'<span class="who">{name}</span>' in page.text
    assert Client(app, f"{HOST}:8519").get("/progress", {"cookie": "; ".join(cookies)}).status == 401


def test_a_link_of_another_site_leads_to_a_page_that_asks_again(client: Client):
    assert client.get("/").headers["location"] == "/login"
    assert 'http-equiv="refresh"' in client.get("/login", {"sec-fetch-site": "cross-site"}).text
    assert 'http-equiv="refresh"' not in client.get("/login", {"sec-fetch-site": "same-origin"}).text


def test_roles_say_what_a_person_may_do(client: Client, campaign: Campaign):
    roster = Roster(campaign)
    for role, owner, adjudicates in (
        ("assessor", False, False),
        ("adjudicator", False, True),
        ("owner", True, True),
    ):
        _, token = campaign.people.invite("eve", role, role=role)
        sign_in(client, token)
        assert client.token is not None
        person = roster.find(client.token)
        assert person is not None
        assert (person.name, person.owner, person.adjudicates) == (role, owner, adjudicates)
        assert client.get("/overview").status == (200 if owner else 403)


def test_a_paused_campaign_says_so_in_one_line(open_page: Open, campaign: Campaign):
    client = open_page(who=ANN)
    form = {**client.get("/").form("/judge"), "grade": "1"}
    campaign.change_phase("eve", "paused", reason="<b>lunch</b>")
    page = client.get("/")
    assert page.status == 200
    assert "The campaign is paused" in page.text
    assert "&lt;b&gt;lunch&lt;/b&gt;" in page.text
    assert 'action="/judge"' not in page.text
    refused = client.post("/judge", form)
    assert (refused.status, len(refused.text.splitlines())) == (422, 1)
    assert "The campaign is paused" in refused.text
    assert not campaign.state.judged
    campaign.change_phase("eve", "open")
    assert client.post("/judge", form).status == 200


def test_late_runs_and_their_documents_reach_an_open_page(
    open_page: Open, campaign: Campaign, put: Callable[[str, str], Path]
):
    query, doc = campaign.pool.label(0)
    table = put("docs.csv", f"doc,text\n{doc},an old text\nlate-1,a late text\nother,x\n")
    documents = PoolDocuments(table, lambda: campaign.pool.docs)
    assert [*documents] == [doc]
    board = Board(campaign)
    client = open_page(documents=documents, board=board)
    for i in range(len(campaign.pool)):
        campaign.answer("owner", campaign.pool.label(i), grade=1)
    assert "Nothing is left for you" in client.get("/").text
    with Campaign.open(campaign.address[0]) as elsewhere:
        elsewhere.add_runs("eve", Runs.rows(["late"], [query], ["late-1"]))
    page = client.get("/")
    assert "a late text" in page.text
    assert client.post("/judge", {**page.form("/judge"), "grade": "2"}).status == 200
    assert board.look().status.made == len(campaign.pool)
    assert "other" not in documents


def test_a_store_that_is_gone_is_said_on_every_page(open_page: Open, campaign: Campaign):
    told: list[str] = []
    client = open_page(who=EVE, tell=told.append)
    form = {**client.get("/").form("/judge"), "grade": "1"}
    file = Path(campaign.address[0])
    file.rename(file.with_name("elsewhere.db"))
    answers = [client.post("/judge", form), *(client.get(path, {"x-part": "1"}) for path in ("/", "/overview"))]
    for answer in answers:
        assert answer.status == 503
        assert answer.text == f"{UNAVAILABLE}\n"
    assert len(told) == len(answers)
    assert all(line.startswith(f"{file}: deleted or moved while it was open") for line in told)
    assert client.get("/login").status == 200
    file.with_name("elsewhere.db").rename(file)
    assert client.post("/judge", form).status == 200
    assert len(campaign.state.judged) == 1


@pytest.mark.parametrize("who", [ANN, EVE, None], ids=["an assessor", "the owner", "alone"])
@pytest.mark.parametrize(
    "error", [StoreError("/home/eve/mine.db: the disk is full."), DataError("no.", path="/home/eve/docs.csv")]
)
def test_only_owners_see_the_place_of_a_failure(
    open_page: Open, campaign: Campaign, monkeypatch: pytest.MonkeyPatch, who: Assessor | None, error: Exception
):
    told: list[str] = []
    client = open_page(who=who, tell=told.append)
    form = {**client.get("/").form("/judge"), "grade": "1"}

    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(campaign, "answer_and_next", fails)
    monkeypatch.setattr(campaign, "next", fails)
    for answer in (client.post("/judge", form), client.get("/")):
        assert answer.status == 503
        assert (str(error) in answer.text) == (who is not ANN)
        assert ("/home" in answer.text) == (who is not ANN)
        assert (UNAVAILABLE in answer.text) == (who is ANN)
    assert told == [str(error)] * 2


@pytest.mark.slow
def test_a_link_in_a_browser_by_keys_until_it_is_revoked(
    new_page: Callable[..., Page], campaign: Campaign, serve: Callable[..., Served], tmp_path: Path
):
    _, token = campaign.people.invite("eve", "ann")
    server = serve(campaign.address[0])
    for script in (True, False):
        page = new_page(java_script_enabled=script, viewport={"width": 390, "height": 760})
        page.goto(f"{server.url}/join/{token}")
        if not script:  # the button has the focus
            page.screenshot(path=tmp_path / "join.png")
            page.keyboard.press("Enter")
        page.wait_for_url(f"{server.url}/")
        assert page.locator(".who").inner_text() == "ann"
        (cookie,) = page.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        assert cookie["value"] != token
        if script:
            page.keyboard.press("1")
            page.wait_for_selector("#undo")
            assert len(campaign.state.judged) == 1
            campaign.change_phase("eve", "paused", reason="lunch")
            page.keyboard.press("1")
            page.wait_for_selector("#alert:not([hidden])")
            assert page.locator("#alert").inner_text() == "The campaign is paused (lunch): nothing was saved."
            page.reload()
            assert page.locator("h1").inner_text() == "The campaign is paused"
            page.screenshot(path=tmp_path / "paused.png")
            campaign.change_phase("eve", "open")
        else:
            campaign.people.revoke("eve", "ann")
            page.reload()
            assert "your token was revoked" in page.locator("[role=alert]").inner_text()
            page.screenshot(path=tmp_path / "revoked.png")
    assert len(campaign.state.judged) == 1
