"""Requests that nobody would send, many to every address: none breaks the page or changes what it may not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.routing import Route

from probeval.campaign import Campaign, fold
from probeval.campaign.state import State
from probeval.data import Collection, Scale
from probeval.web import Board, Document, Guesses, Limiter, Roster, application
from probeval.web.forms import FIELDS
from probeval.web.guard import HEADERS
from tests.web.asking import Client
from tests.web.conftest import ANN, EVE, HOST, invite

pytestmark = pytest.mark.slow
PATHS = [
    *("/", "/judge", "/judge", "/undo", "/skip", "/flag", "/comment", "/progress", "/overview", "/adjudicate"),
    *("/settle", "/login", "/logout", "/join/{token}", "/export/{format}", "/media/{key}", "/static/{name}"),
]
REFUSED = {400, 401, 403, 404, 405, 408, 413, 415, 421, 422, 429}
FINE = {200, 206, 303}

words = st.one_of(
    st.sampled_from(["", "q1", "d001", "0", "1", "2", "-1", "nan", "qrels", "log", "../x", "'", "\x00", "judge.js"]),
    st.text(max_size=50),
)


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory, small: Collection) -> Iterator[tuple[Campaign, list[Client]]]:
    """A campaign, and the page as its owner, an assessor and a stranger see it."""
    file = tmp_path_factory.mktemp("fuzz") / "store.db"
    bare = replace(small, judgments=None)
    with Campaign.create(file, bare, metric="nDCG@5", scale=Scale.graded(2), model="uniform") as campaign:
        campaign.refresh()
        campaign.answer("ann", campaign.pool.label(0), grade=0)
        campaign.answer("bob", campaign.pool.label(0), grade=2)
        invite(campaign, ANN, EVE)
        app = application(
            campaign,
            roster=Roster(campaign),
            board=Board(campaign),
            hosts=[HOST],
            documents={doc: Document("text") for doc in campaign.pool.docs},
            requests=Limiter(rate=1e9, burst=1e9),
            guesses=Guesses(Limiter(rate=1e9, burst=1e9), Limiter(rate=1e9, burst=1e9)),
        )
        yield campaign, [Client(app, HOST, token=who) for who in (EVE.secret, ANN.secret, None)]


def test_every_route_is_tried(clients: tuple[Campaign, list[Client]]):
    routes = clients[1][0].app._app._app.routes  # type: ignore[attr-defined]
    assert {route.path for route in routes if isinstance(route, Route)} == set(PATHS)


@pytest.mark.hypothesis
@pytest.mark.parametrize("path", PATHS)
def test_requests_break_nothing(clients: tuple[Campaign, list[Client]], path: str):
    campaign, people = clients
    invite(campaign, ANN, EVE)  # an honest request to /logout ends a session

    @settings(suppress_health_check=list(HealthCheck))
    @given(
        who=st.integers(0, 2),
        method=st.sampled_from(["GET", "POST", "POST", "POST", "HEAD", "PUT", "OPTIONS", "BREW"]),
        part=words,
        form=st.dictionaries(st.one_of(st.sampled_from([*FIELDS]), words), words, max_size=8),
        raw=st.one_of(st.none(), st.binary(max_size=200)),
        honest=st.booleans(),
        headers=st.dictionaries(
            st.sampled_from(["x-part", "cookie", "range", "content-type", "accept", "host", "origin"]),
            st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=30),
            max_size=3,
        ),
    )
    def request(who, method, part, form, raw, honest, headers) -> None:
        client = people[who]
        if honest and who < 2:  # a form that a page of this person's own could send, but for what it says
            form = {**form, "mark": (EVE, ANN)[who].mark}
        address = re.sub(r"\{.*\}", lambda _: quote(part, safe=""), path)
        body = urlencode(form).encode() if raw is None else raw
        kind = {"content-type": "application/x-www-form-urlencoded"}
        answer = client.ask(method, address, {**kind, **headers}, b"" if method in ("GET", "HEAD") else body)
        assert answer.status in FINE | REFUSED | {416}, answer.text
        assert all(answer.headers[name] for name in HEADERS)
        assert b"Traceback" not in answer.body

    request()
    log = campaign.log()  # whole, and the same as what the campaign believes
    again = fold(State(), log)
    assert again.number == campaign.state.number == len(log)
    assert {event.by for event in log} <= {"owner", "ann", "bob", "eve"}


@pytest.mark.hypothesis
def test_forms_of_ones_own_with_anything_in_them(clients: tuple[Campaign, list[Client]]):
    """Judgments of strange pairs and grades: each is kept as the campaign allows it, or refused."""
    campaign, (owner, *_) = clients
    invite(campaign, ANN, EVE)
    pairs = [campaign.pool.label(i) for i in range(len(campaign.pool))]

    @given(
        path=st.sampled_from(["/judge", "/judge", "/skip", "/flag", "/comment", "/settle", "/undo"]),
        pair=st.one_of(st.sampled_from(pairs), st.tuples(words, words)),
        grade=st.one_of(st.sampled_from(["0", "1", "2"]), words),
        text=st.text(max_size=200),
        judgment=st.one_of(st.integers(0, 10**6).map(str), words),
        request=words,
        other=st.one_of(st.sampled_from(pairs).map(lambda pair: pair[1]), words),
        choice=st.one_of(st.sampled_from(["left", "right", "equal"]), words),
    )
    def step(path, pair, grade, text, judgment, request, other, choice) -> None:
        before = campaign.state.number
        form = {"mark": EVE.mark, "query": pair[0], "doc": pair[1], "request": request}
        form |= {"grade": grade, "text": text, "judgment": judgment}
        if path == "/judge":
            form |= {"left": pair[1], "right": other, "choice": choice}
        answer = owner.post(path, form)
        assert answer.status in {200, 303, 400, 422}, answer.text
        if answer.status in (400, 422):
            assert campaign.state.number == before
        elif path in ("/judge", "/settle"):
            assert pair in pairs
            assert grade in ("0", "1", "2")
        elif path == "/judge":
            assert pair in pairs
            assert (pair[0], other) in campaign._candidates(campaign.state).retrieved
            assert choice in ("left", "right", "equal")

    step()
    assert fold(State(), campaign.log()).number == campaign.state.number
