"""What is refused, with a clear word and nothing lost: forged hosts and forms, wrong tokens, tricks in every field."""

from __future__ import annotations

import http.client
import socket
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from starlette.exceptions import HTTPException

from probeval.campaign import Campaign, Role
from probeval.errors import CampaignError, DataError, StoreError, did_you_mean
from probeval.web import Guesses, Limiter, Roster, read_assessors, read_documents, serve
from probeval.web.guard import HEADERS
from tests.web.asking import Client
from tests.web.conftest import ANN, EVE, HOST, SCRIPT, TOKENS
from tests.web.served import Judge, Served

Open = Callable[..., Client]
TRICKS = (
    "' OR 1=1 --",
    "'; DROP TABLE probeval_event; --",
    "../../../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "/etc/passwd",
    "file:///etc/passwd",
    "C:\\Windows\\win.ini",
    SCRIPT,
    "{{ 7 * 7 }}{% for x in [] %}",
    "%s%n%x",
    "\x00",
    "\u202e\u2028",
    "nan",
    "-1",
    "1e999",
    "٣",
    "a" * 4000,
)


@pytest.mark.parametrize(
    "host", ["evil.example", "", "judge.test@evil.example", "judge.test.evil.example", "[::1", "a b"]
)
def test_a_forged_host_is_refused(open_page: Open, campaign: Campaign, host: str):
    client = open_page()
    before = len(campaign.log())
    answer = client.get("/", {"host": host or " "})
    assert answer.status == 421
    assert "is not a name of this server" in answer.text
    assert len(campaign.log()) == before


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": f"http://{HOST}.evil.example"},
        {"origin": f"http://{HOST}:81"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_form_from_another_site_is_refused(open_page: Open, campaign: Campaign, headers: dict[str, str]):
    client = open_page()
    form = {**client.get("/").form("/judge"), "grade": "1"}
    answer = client.post("/judge", form, headers)
    assert answer.status == 403
    assert "another site" in answer.text
    assert not campaign.state.judged
    assert client.post("/judge", form).status == 200


@pytest.mark.parametrize("mark", ["", "0" * 64, "é", None])
def test_a_form_without_its_mark_is_refused(open_page: Open, campaign: Campaign, mark: str | None):
    client = open_page()
    form = {**client.get("/").form("/judge"), "grade": "1"}
    form.pop("mark")
    answer = client.post("/judge", form if mark is None else {**form, "mark": mark})
    assert answer.status == 403
    assert "Reload" in answer.text
    assert not campaign.state.judged


def test_another_assessors_mark_is_no_use(open_page: Open, campaign: Campaign):
    form = {**open_page(who=EVE).get("/").form("/judge"), "grade": "1"}
    assert open_page(who=ANN).post("/judge", form).status == 403
    assert not campaign.state.judged


@pytest.mark.parametrize(
    "token", [None, "", "wrong", ANN.secret + " ", ANN.secret[:-1], ANN.secret.upper(), TOKENS["ann"]]
)
def test_a_missing_or_wrong_token_is_refused_everywhere(open_page: Open, campaign: Campaign, token: str | None):
    form = {**open_page(who=ANN).get("/").form("/judge"), "grade": "1"}
    plenty = Limiter(rate=1e9, burst=1e9)
    client = open_page(who=ANN, guesses=Guesses(plenty, plenty))
    client.token = None
    stranger = (
        {} if token is None else {"cookie": f'probeval="{token}"' if token.endswith(" ") else f"probeval={token}"}
    )
    for path in ("/judge", "/undo", "/skip", "/flag", "/comment", "/settle", "/logout"):
        answer = client.post(path, form, stranger)
        assert answer.status == 401
        assert "token" in answer.text
    for path in ("/progress", "/overview", "/export/qrels", "/export/log", "/media/x"):
        assert client.get(path, stranger).status == 401
    assert not campaign.state.judged


def test_wrong_tokens_are_few_and_then_the_right_one_waits_too(open_page: Open):
    now = [0.0]
    clock: Callable[[], float] = lambda: now[0]  # noqa: E731
    client = open_page(who=ANN, guesses=Guesses(Limiter(rate=0.1, burst=3, clock=clock)))
    assert client.get("/").status == 200
    signed_in, client.token = client.token, None
    said = [client.post("/login", {"token": f"guess {i}"}).status for i in range(5)]
    assert said == [401, 401, 401, 429, 429]
    assert client.post("/login", {"token": TOKENS["ann"]}).status == 429  # no guess is told from the right one
    client.token = "a-guess-by-cookie"
    assert client.get("/progress").status == 429
    client.token = EVE.secret  # right, but new to this address
    assert client.get("/progress").status == 429
    client.token = signed_in  # those who are signed in here go on
    assert client.get("/progress").status == 200
    now[0] = 10.0
    assert client.post("/login", {"token": "again"}).status == 401


def test_guesses_by_cookie_count(open_page: Open):
    client = open_page(who=ANN, guesses=Guesses(Limiter(rate=0.1, burst=3, clock=lambda: 0.0)))
    said = []
    for i in range(5):
        client.token = f"guess-{i}"
        said.append(client.get("/progress").status)
    assert said == [401, 401, 401, 429, 429]


def test_many_addresses_share_one_budget():
    guesses = Guesses(together=Limiter(rate=1, burst=5, clock=lambda: 0.0))
    said = []
    for i in range(8):
        try:
            said.append(guesses.attempt(f"127.0.0.{i}", lambda: None))
        except HTTPException as refused:
            said.append(refused.status_code)
    assert said == [None] * 5 + [429] * 3
    assert Guesses(together=Limiter(rate=1, burst=1)).attempt("a", lambda: "right") == "right"


def test_right_tokens_cost_nothing():
    guesses = Guesses(Limiter(rate=0.1, burst=1, clock=lambda: 0.0), Limiter(rate=0.1, burst=1, clock=lambda: 0.0))
    assert [guesses.attempt("a", lambda: 1) for _ in range(20)] == [1] * 20

    def fails() -> None:
        raise StoreError("gone")

    with pytest.raises(StoreError):
        guesses.attempt("a", fails)
    assert guesses.attempt("a", lambda: 1) == 1


def test_too_many_requests_are_refused_one_person_at_a_time(open_page: Open):
    now = [0.0]
    shared = Limiter(rate=10, burst=5, clock=lambda: now[0])
    ann = open_page(who=ANN, requests=shared)
    assert [ann.get("/progress").status for _ in range(6)] == [200] * 5 + [429]
    stranger = Client(ann.app, HOST)
    assert stranger.get("/login").status == 200
    now[0] = 0.1
    assert ann.get("/progress").status == 200


def test_a_query_that_is_not_there_costs_little():
    known = [f"query-number-{i}-of-a-large-campaign" for i in range(20_000)]
    began = time.process_time()
    assert did_you_mean("query-number-17-of-a-large-campaing", known) != ""
    for word in ("query-number-x" * 2, "q" * 4000, "query" * 800, known[7] + "x"):
        did_you_mean(word, known)
    assert time.process_time() - began < 1  # 10 s before there was a limit
    assert did_you_mean("long" * 50, ["long" * 50 + "er"]) == ""


def test_a_limiter_forgets_those_who_rest():
    now = [0.0]
    limiter = Limiter(rate=1, burst=2, clock=lambda: now[0])
    for i in range(limiter.MAX_KEYS):
        limiter.allows(str(i))
    now[0] = 10.0
    limiter.allows("one more")
    assert len(limiter._left) == 1
    for i in range(limiter.MAX_KEYS + 10):
        limiter.allows(str(i))
    assert len(limiter._left) == limiter.MAX_KEYS


@pytest.mark.parametrize("trick", TRICKS, ids=lambda t: t[:20].encode("ascii", "replace").decode())
def test_tricks_in_every_field_do_nothing(open_page: Open, campaign: Campaign, trick: str):
    client = open_page()
    good = {**client.get("/").form("/judge"), "grade": "1", "text": "x", "judgment": "1"}
    before = len(campaign.log())
    for path, own in {
        "/judge": ("query", "doc", "grade"),
        "/undo": ("judgment",),
        "/skip": ("query", "doc"),
        "/flag": ("query", "doc"),
        "/comment": ("query", "doc"),
        "/settle": ("query", "doc", "grade"),
    }.items():
        for name in (*own, "mark", "unknown"):
            answer = client.post(path, {**good, name: trick})
            assert 400 <= answer.status < 500, (path, name)
            assert len(answer.text.splitlines()) == 1
    for path in (f"/media/{trick}", f"/static/{trick}", f"/export/{trick}", f"/{trick}"):
        assert client.get(path.replace("?", "").replace("%", "%25")).status == 404
    assert len(campaign.log()) == before
    assert campaign.state.number == before


@pytest.mark.parametrize("trick", TRICKS[:12], ids=lambda t: t[:20].encode("ascii", "replace").decode())
def test_tricks_in_free_text_are_text(open_page: Open, campaign: Campaign, trick: str):
    client = open_page()
    form = client.get("/").form("/comment")
    answer = client.post("/comment", {**form, "text": trick, "request": trick[:60] or "x"})
    if trick in ("\x00", "\u202e\u2028"):  # control characters
        assert answer.status == 422
        return
    assert answer.status == 200
    (comment,) = campaign.state.comments[form["query"], form["doc"]]
    assert comment.text == trick
    assert "<script>window" not in answer.text
    assert "{{ 7" in answer.text or "7 * 7" not in trick
    assert "<script>window" not in client.get("/").text


def test_every_answer_carries_the_headers(open_page: Open):
    client = open_page()
    answers = [
        client.get("/"),
        client.get("/nowhere"),
        client.get("/", {"host": "evil.example"}),
        client.post("/judge", {}),
        client.post("/judge", {}, {"origin": "null"}),
        client.ask("DELETE", "/", {}),
        client.ask("TRACE", "/", {"origin": ""}),
    ]
    for answer in answers:
        for name, value in HEADERS.items():
            assert answer.headers[name] == value
        assert "unsafe" not in answer.headers["content-security-policy"]


def test_pages_have_no_script_style_or_handler_of_their_own(open_page: Open, campaign: Campaign):
    import re

    campaign.refresh()
    client = open_page()
    for path in ("/", "/overview", "/adjudicate", "/login", "/progress", "/nowhere"):
        text = client.get(path).text
        assert not re.search(
            r"<style|\sstyle=|\son[a-z]+=\"|<script(?! src=\"/static/(judge|overview).js\" defer></script>)", text
        )
        assert not re.search(r"(?:src|href)=\"(?:https?:)?//", text)


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("application/json", b"{}", 415),
        ("multipart/form-data; boundary=x", b"--x--", 415),
        ("", b"a=b", 415),
        ("application/x-www-form-urlencoded", b"text=%ff", 400),
        ("application/x-www-form-urlencoded", b"text=\xff", 400),
        ("application/x-www-form-urlencoded", b"text=a&text=b", 400),
        ("application/x-www-form-urlencoded", b"text=" + b"a" * 10_001, 400),
        ("application/x-www-form-urlencoded", b"&".join(b"x%d=1" % i for i in range(50)), 400),
    ],
)
def test_what_is_not_a_form_is_refused(open_page: Open, kind: str, body: bytes, status: int):
    assert open_page().ask("POST", "/comment", {"content-type": kind, "x-part": "1"}, body).status == status


def test_a_table_of_documents_cannot_reach_out(put: Callable[[str, str], Path], tmp_path: Path):
    put("secret.png", "x")
    for cell, why in [
        ("../secret.png", "below the table's folder"),
        ("/etc/passwd", "below the table's folder"),
        (str(tmp_path / "secret.png"), "below the table's folder"),
        ("notes.txt", "must end in one of"),
        ("picture.svg", "must end in one of"),
        ("none.png", "does not exist"),
    ]:
        with pytest.raises(DataError, match=why):
            read_documents(put("inner/docs.csv", f"doc,text,image\nd1,x,{cell}\n"))
    for link in ("javascript:alert(1)", "data:text/html,x", "//evil.example", "http://", "http://[x"):
        with pytest.raises(DataError, match="must begin with http"):
            read_documents(put("docs.csv", f'doc,text,link\nd1,x,"{link}"\n'))


def test_a_table_of_documents_may_have_no_text(put: Callable[[str, str], Path]):
    put("a.mp3", "x")
    document = read_documents(put("docs.csv", "doc,audio\nd1,a.mp3\n"))["d1"]
    assert document.text == ""
    assert document.audio is not None


GOOD, OTHER = "kX2vq0Zl9mJr5tYw8uBn", "Qe7pLd3sVh1cRf6gTa4i"


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("name,token\nann,x\n", "no column 'assessor'"),
        ("assessor,token\nann,short\n", "must be 16 letters and digits or more"),
        ("assessor,token\nann,a token with spaces and ü\n", "must be 16 letters and digits or more"),
        ("assessor,token\nann,aaaaaaaaaaaaaaaaaaaa\n", "at least 8 of them different, such as"),
        (f"assessor,token\n,{GOOD}\n", "must be one line of text"),
        (f"assessor,token,role\nann,{GOOD},king\n", "the role of 'ann' must be one of assessor, adjudicator, owner"),
        (f"assessor,token\nann,{GOOD}\nann,{OTHER}\n", "two assessors have the same name"),
        (f"assessor,token\nann,{GOOD}\nbob,{GOOD}\n", "two assessors have the same token"),
    ],
)
def test_a_table_of_assessors_that_will_not_do_says_why(put: Callable[[str, str], Path], table: str, why: str):
    with pytest.raises(DataError, match=why):
        read_assessors(put("team.csv", table))


def test_a_table_of_assessors_is_read(put: Callable[[str, str], Path]):
    table = f"assessor,token,role\nann,{GOOD},\neve,{OTHER},owner\n"
    assert read_assessors(put("team.csv", table)) == [("ann", Role.assessor, GOOD), ("eve", Role.owner, OTHER)]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "judge.example.org", ""])
def test_beyond_this_machine_tokens_are_needed(campaign: Campaign, host: str):
    with pytest.raises(CampaignError, match="every assessor outside this machine needs a token"):
        serve(campaign, roster=Roster(campaign, alone="me"), host=host, port=0)


def test_a_full_disk_is_said_and_nothing_is_lost(open_page: Open, campaign: Campaign):
    client = open_page()
    page, engine = client.get("/"), campaign._log.store._engine
    with engine.connect() as connection:
        room = connection.exec_driver_sql("PRAGMA page_count").scalar() + 4
    engine.dispose()

    def limit(connection: sqlite3.Connection, _: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {room}")

    sa.event.listen(engine, "connect", limit)
    kept = 0
    for _ in range(100):
        answer = client.post("/comment", {**page.form("/comment"), "text": "x" * 3000})
        if answer.status != 200:
            break
        page, kept = answer, kept + 1
    assert kept, answer.text
    assert answer.status == 503
    assert "the disk is full; this step was not saved" in answer.text
    sa.event.remove(engine, "connect", limit)
    engine.dispose()
    pair = page.form("/judge")["query"], page.form("/judge")["doc"]
    assert len(campaign.state.comments.get(pair, ())) == kept
    assert client.post("/judge", {**page.form("/judge"), "grade": "1"}).status == 200


def test_a_store_that_is_read_only_here_is_said(open_page: Open, campaign: Campaign):
    reader = Campaign.open(campaign.address[0], read_only=True)
    client = open_page()
    form = {**client.get("/").form("/judge"), "grade": "1"}
    client.app._app._app.router.routes[1].endpoint.__self__.site.campaign = reader  # type: ignore[attr-defined]
    answer = client.post("/judge", form)
    assert answer.status == 503
    assert "open for reading only" in answer.text
    reader.close()


@pytest.mark.slow
def test_a_newer_store_is_refused_at_the_start(campaign: Campaign, serve: Callable[..., Served]):
    campaign.close()
    with sqlite3.connect(campaign.address[0]) as file:
        file.execute("UPDATE probeval_version SET version = 99")
    with pytest.raises(AssertionError, match="written by a newer probeval"):
        serve(campaign.address[0])


def test_a_port_that_is_taken_is_said(campaign: Campaign):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(CampaignError, match="cannot listen there"):
            serve(campaign, roster=Roster(campaign, alone="me"), port=taken.getsockname()[1])


@pytest.mark.slow
def test_over_the_wire(campaign: Campaign, serve: Callable[..., Served]):
    """What only a real server shows: a second one, a body of 50 MB, garbage for HTTP."""
    server = serve(campaign.address[0])
    with pytest.raises(AssertionError, match="another server is using this store"):
        serve(campaign.address[0])
    with pytest.raises(StoreError, match="another server"), campaign.serving():
        pass

    judge = Judge(server.url)
    judge.look()
    for length in (True, False):
        connection = http.client.HTTPConnection(server.host, timeout=60)
        headers = {"Origin": server.url, "Content-Type": "application/x-www-form-urlencoded"}
        piece = b"a" * 1_000_000
        if length:
            headers["Content-Length"] = str(50 * len(piece))
        connection.request("POST", "/comment", (piece for _ in range(50)), headers, encode_chunked=not length)
        answer = connection.getresponse()
        assert answer.status == 413
        assert "longer than 256 KB; nothing was saved" in answer.read().decode()
        connection.close()
    judge.judge(2)  # the server goes on

    for garbage in (
        b"\x00\xff\x00\xff\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET " + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
    ):
        with socket.create_connection(server.host.split(":"), timeout=10) as raw:
            raw.sendall(garbage)
            assert b" 4" in raw.recv(1000)[:13]
    judge.judge(1)
    judge.close()
    assert len(campaign.state.judged) == 2
