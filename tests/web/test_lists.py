"""Two lists on the judging page: over HTTP, and by keys alone in a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from probeval.campaign import Campaign, ListsCompared
from probeval.campaign.kinds.lists import LISTS, ListMaterial
from probeval.campaign.questions import Question
from probeval.data import Collection
from probeval.satisfaction import ListQuestion, choose_lists
from probeval.studies import UserStudy
from probeval.web import Board, Document, Limiter, Roster, application
from tests.campaign.nursery import start_python
from tests.web.asking import Answer, Client
from tests.web.browsing import listen, press
from tests.web.conftest import ANN, EVE, HOST, SCRIPT, invite
from tests.web.served import COMMAND

if TYPE_CHECKING:
    from playwright.sync_api import Page

TEXT = re.compile(r"Text of ([\w-]+)\.")


@pytest.fixture
def study(tmp_path: Path, small: Collection) -> Iterator[Campaign]:
    assert small.judgments is not None
    chosen = choose_lists(small.runs, small.judgments, "CG@5", pairs=20, rng=np.random.default_rng(0))
    queries = dict.fromkeys({question.query for question in chosen.questions}, f"a search {SCRIPT}")
    with Campaign.create_lists(tmp_path / "study.db", chosen, queries=queries, guideline=f"Be fair. {SCRIPT}") as made:
        yield made


@pytest.fixture
def open_page(study: Campaign) -> Callable[..., Client]:
    def client(who: object = None, **settings: object) -> Client:
        if who is not None:
            invite(study, ANN, EVE)
        settings = {
            "roster": Roster(study, alone="owner" if who is None else None),
            "board": Board(study),
            "hosts": [HOST],
            "documents": {doc: Document(f"Text of {doc}. {SCRIPT}{'x ' * 200}", f"T {doc}") for doc in study.docs},
            "requests": Limiter(rate=1e9, burst=1e9),
            **settings,
        }
        return Client(application(study, **settings), HOST, token=getattr(who, "secret", None))  # type: ignore[arg-type]

    return client


def fields(page: Answer) -> dict[str, str]:
    """The hidden fields of the form of the question."""
    return page.form("/judge")


def number(fields: dict[str, str]) -> int:
    """The number of the question: its lists are called 7a and 7b."""
    assert fields["left"][:-1] == fields["right"][:-1]
    return int(fields["left"][:-1])


def questions(study: Campaign) -> tuple[ListQuestion, ...]:
    assert isinstance(study.material, ListMaterial)
    return study.material.questions


def compared(study: Campaign) -> list[ListsCompared]:
    return [event for event in study.state.counted_answers if isinstance(event, ListsCompared)]


def answered(client: Client, page: Answer, choice: str = "left", good: str = "yes", **more: str) -> Answer:
    return client.post("/judge", {**fields(page), "choice": choice, "good": good, **more})


def test_twenty_pairs_from_the_first_question_to_the_mapping(open_page, study, probeval, tmp_path):
    """A careful user, and one who always presses the same key: the report names the latter."""
    truth = {(q.query, docs): score for q in questions(study) for docs, score in ((q.a, q.score_a), (q.b, q.score_b))}
    client = open_page(ANN)
    page = client.get("/")
    for turn in range(24):
        assert f"Question {turn + 1} of 24" in page.text
        question = questions(study)[number(fields(page))]
        sides = [tuple(TEXT.findall(side)) for side in page.text.split('class="list"')[1:]]
        left, right = (truth[question.query, docs] for docs in sides)
        choice = "same" if left == right else "left" if left > right else "right"
        page = answered(client, page, choice, "yes" if max(left, right) > 0.5 else "no", seconds="3.5")
        assert page.status == 200
    assert "that was all" in page.text
    assert client.get("/").status == 200
    some = [i for i, question in enumerate(questions(study)) if question.trap or i < 6]
    for question in some:
        study.answer("eve", Question("", (f"{question}a", f"{question}b"), LISTS), choice="left", good=True)
    found = UserStudy(study.list_answers())
    assert found.bad_users == ("eve",)
    assert found.users[0].right == 4
    assert 0 < found.users[0].seconds <= 3.5  # as sent, and no longer than the question was theirs
    kept = UserStudy(study.list_answers(), leave_out=True)
    assert kept.agreement.worse.sum() == 0
    assert kept.noticeable is not None
    said = probeval("users", "report", tmp_path / "study.db", "--shape", "monotone", "--save", tmp_path / "mine.json")
    assert said.code == 0, said.err
    assert "Fewer than 70% of the traps right: eve." in said.err
    exported = probeval("campaign", "export", tmp_path / "study.db", "-o", tmp_path / "answers.csv")
    assert exported.err.startswith(f"{1 + 24 + len(some)} lines in")
    again = probeval("users", "report", "--answers", tmp_path / "answers.csv", "--format", "json")
    assert json.loads(again.out) == json.loads(
        probeval("users", "report", tmp_path / "study.db", "--format", "json").out
    )


def test_texts_cannot_run_and_traps_do_not_show(open_page, study):
    page = open_page().get("/")
    assert SCRIPT not in page.text
    assert "<script>window" not in page.text
    assert "Be fair." in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "trap" not in page.text.lower()
    assert not re.search(r"score|same-list|expected", page.text.split("<main", 1)[1])


def test_a_form_sent_twice_counts_once(open_page, study):
    client = open_page()
    page = client.get("/")
    one, two = answered(client, page), answered(client, page)
    assert (one.status, two.status) == (200, 200)
    assert len(compared(study)) == 1
    assert answered(client, page, "right").status == 422
    assert answered(client, page, "right", request="other").status == 200  # a second answer replaces the first
    assert [event.choice for event in compared(study)] == ["right"]


def test_undo_shows_the_question_again(open_page, study):
    client = open_page()
    first = client.get("/")
    second = answered(client, first)
    undo = second.form("/undo")
    back = client.post("/undo", undo)
    assert number(fields(back)) == number(fields(first))
    assert not compared(study)
    assert 'action="/undo"' not in back.text


def test_without_the_script_steps_redirect(open_page, study):
    client = open_page()
    page = client.get("/")
    sent = client.post("/judge", {**fields(page), "choice": "same", "good": "no"}, {"x-part": ""})
    assert (sent.status, sent.headers["location"]) == (303, "/")
    (event,) = compared(study)
    assert (event.choice, event.good, event.seconds) == ("same", False, None)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"choice": "up"}, 422),
        ({"choice": ""}, 422),
        ({"good": "maybe"}, 422),
        ({"left": "99a", "right": "99b"}, 422),
        ({"left": "x"}, 422),
        ({"left": "0a", "right": "1b"}, 422),
        ({"kind": "grade"}, 422),
        ({"kind": "song"}, 422),
        ({"seconds": "many"}, 400),
        ({"mark": "forged"}, 403),
        ({"extra": "1"}, 400),
    ],
)
def test_wrong_forms_are_refused(open_page, study, change, status):
    client = open_page()
    assert answered(client, client.get("/"), **{"choice": "left", "good": "yes", **change}).status == status
    assert not compared(study)


def test_strangers_sign_in_first(open_page, study):
    invite(study, ANN, EVE)
    stranger = Client(open_page(ANN).app, HOST)
    assert stranger.get("/").status == 303
    form = {"kind": "lists", "left": "0a", "right": "0b", "choice": "left", "good": "yes"}
    assert stranger.post("/judge", form).status == 401
    ann, eve = open_page(ANN), open_page(EVE)
    answered(ann, ann.get("/"))
    assert {event.by for event in compared(study)} == {"ann"}
    forged = {**fields(eve.get("/")), "choice": "left", "good": "yes"}
    assert ann.post("/judge", forged).status == 403
    assert ann.get("/", {"host": "evil.test"}).status == 421
    assert ann.get("/overview").status == 403
    assert "Traps right" in open_page(EVE).get("/overview").text


def test_documents_without_texts_are_shown_by_id(open_page):
    page = open_page(documents={}).get("/")
    assert "probeval judge --docs" in page.text


@pytest.fixture
def served(study: Campaign, put: Callable[[str, str], Path]) -> Iterator[str]:
    """The address of the page, as people serve it."""
    lines = [{"doc": doc, "title": f"Title of {doc}", "text": f"Text of {doc}. {SCRIPT}"} for doc in study.docs]
    documents = put("documents.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))
    place = study._log.store.url
    words = ["judge", place, "--port", 0, "--format", "csv", "--quiet", "--docs", documents]
    process = start_python(COMMAND, *words, "--assessor", "ann")
    process.stdout.readline()
    yield process.stdout.readline().split(",")[0]
    process.kill()
    process.communicate()


@pytest.mark.slow
def test_twenty_pairs_by_keys_alone(new_page: Callable[..., Page], served: str, study: Campaign) -> None:
    page = new_page(viewport={"width": 1280, "height": 900})
    wrong = listen(page)
    page.goto(served)
    page.keyboard.press("g")  # nothing is chosen yet: nothing is sent
    assert page.locator("#place").inner_text() == "Question 1 of 24"
    for turn in range(24):
        question = questions(study)[int(page.locator("#answer [name=left]").input_value()[:-1])]
        titles = page.locator(".list >> nth=0 >> .title").all_inner_texts()
        left = tuple(title.removeprefix("Title of ") for title in titles)
        scores = (question.score_a, question.score_b)
        first, second = scores if left == question.a else scores[::-1]
        page.keyboard.press("2" if first == second else "1" if first > second else "3")
        asked = page.locator(".ask").inner_text()
        assert asked == ("Are both lists good?" if first == second else "Is the better list good?")
        press(page, "g" if max(first, second) > 0.5 else "b")
        if turn == 5:
            press(page, "u")
            assert int(page.locator("#answer [name=left]").input_value()[:-1]) == questions(study).index(question)
            page.keyboard.press("3")
            page.keyboard.press("1")  # the choice can change before the last key
            press(page, "b")
    assert page.locator("h1").inner_text() == "Thank you, that was all"
    assert not wrong
    assert page.evaluate("window.stolen") is None
    events = compared(study)
    assert len(events) == 24
    assert all(event.seconds is not None for event in events)
    assert UserStudy(study.list_answers()).users[0].right >= 3
    phone = new_page(viewport={"width": 390, "height": 844}, has_touch=True)
    phone.goto(served)
    assert phone.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
