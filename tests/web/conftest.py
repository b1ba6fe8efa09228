"""A server of one's own, as people start it; a campaign on the bundled collection; a browser."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from probeval.campaign import Campaign, Role
from probeval.campaign.access import digest_token
from probeval.campaign.people import SignIn
from probeval.data import Collection, Scale
from probeval.relevance import synthetic_campaign
from probeval.web import Assessor, Board, Document, Limiter, Roster, application
from tests.campaign.conftest import memory, store  # noqa: F401
from tests.cli.conftest import probeval  # noqa: F401
from tests.web.asking import Client
from tests.web.browsing import PATIENCE
from tests.web.served import Served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

HOST = "judge.test"
SCRIPT = "<script>window.stolen = 1</script>\"'<img src=x onerror=alert(1)>"
ANN = Assessor("ann", "the-secret-of-a-session-of-ann")
EVE = Assessor("eve", "the-secret-of-a-session-of-eve", Role.owner)
TOKENS = {"ann": "a-long-token-that-is-of-ann", "eve": "a-long-token-that-is-of-eve"}


def invite(campaign: Campaign, *people: Assessor) -> None:
    """Let these people sign in with their tokens, and give each the session of their secret."""
    campaign.people.add("owner", [(each.name, each.role, TOKENS[each.name]) for each in people])
    for each in people:
        if campaign.people.find(each.secret) is None:
            token, session = digest_token(TOKENS[each.name]), digest_token(each.secret)
            campaign._log.advance(SignIn(token=token, session=session))


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    """Start servers; those that still run are killed at the end."""
    running: list[Served] = []

    def start(place: object, *options: object, **settings: bool) -> Served:
        running.append(Served.start(place, *options, **settings))
        return running[-1]

    yield start
    for each in running:
        each.kill()


@pytest.fixture
def new_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open pages, each in a context of its own with these settings; all are closed at the end."""
    contexts: list[BrowserContext] = []

    def open_in_context(**settings: object) -> Page:
        contexts.append(browser.new_context(**settings))  # type: ignore[arg-type]
        contexts[-1].set_default_timeout(1000 * PATIENCE)
        return contexts[-1].new_page()

    yield open_in_context
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def bundled() -> Collection:
    """A synthetic collection, with its judgments."""
    return synthetic_campaign(seed=0)


@pytest.fixture
def documents(put: Callable[[str, str], Path]) -> Callable[[Campaign], Path]:
    """A file with a text for every document of a campaign, hostile ones among them."""

    def write(campaign: Campaign) -> Path:
        lines = [
            {"doc": doc, "title": f"Title of {doc}", "text": f"Text of {doc}.\n{SCRIPT}"} for doc in campaign.pool.docs
        ]
        return put("documents.jsonl", "".join(json.dumps(line) + "\n" for line in lines))

    return write


@pytest.fixture
def campaign(memory: Path, small: Collection) -> Iterator[Campaign]:  # noqa: F811
    """A small campaign in a file, nothing judged."""
    bare = replace(small, judgments=None)
    guideline = f"Be fair. {SCRIPT}"
    with Campaign.create(
        memory / "small.db", bare, metric="nDCG@5", scale=Scale.graded(2), model="uniform", guideline=guideline
    ) as made:
        yield made


@pytest.fixture
def open_page(campaign: Campaign) -> Callable[..., Client]:
    """A client of the page, without a server; by default for one person, as on their own machine."""

    def client(*, who: Assessor | None = None, **settings: object) -> Client:
        plenty = Limiter(rate=1e9, burst=1e9)
        if who is not None:
            invite(campaign, ANN, EVE)
        settings = {
            "roster": Roster(campaign, alone="owner" if who is None else None),
            "board": Board(campaign),
            "hosts": [HOST],
            "documents": {doc: Document(f"Text of {doc}. {SCRIPT}") for doc in campaign.pool.docs},
            "requests": plenty,
            **settings,
        }
        return Client(application(campaign, **settings), HOST, token=None if who is None else who.secret)  # type: ignore[arg-type]

    return client
