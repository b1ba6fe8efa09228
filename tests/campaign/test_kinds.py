"""All kinds of questions go one way: leases, answers, skips, undo, tokens, gold, repeats, settled answers, files.

One kind is of this file alone: which of three documents is best.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from probeval.campaign import (
    KINDS,
    Answered,
    Campaign,
    GoldChanged,
    Kind,
    Leased,
    Question,
    Settled,
    Setup,
    Store,
    Task,
    TaskPurpose,
    check_store,
    copy_store,
    history,
)
from probeval.campaign.candidates import Candidates
from probeval.campaign.log import decode, encode
from probeval.campaign.questions import known_asks
from probeval.data import Collection, PairAnswers, Scale
from probeval.data.answers import as_answers
from probeval.errors import CampaignError
from probeval.satisfaction import choose_lists
from tests.campaign.conftest import Clock

PLACES = ("first", "second", "third")


@dataclass(frozen=True, kw_only=True, repr=False)
class BestOfThree(Answered):
    """An assessor chose the best of three documents."""

    kind = "best of three"
    asks = "three"
    best: str


@dataclass(frozen=True, kw_only=True, repr=False)
class BestSettled(Settled):
    """The best of three was settled."""

    kind = "best of three settled"
    asks = "three"
    best: str


@dataclass(frozen=True, kw_only=True, repr=False)
class BestKnown(GoldChanged):
    """The best of three is known: by query, it and the others."""

    kind = "best of three known"
    asks = "three"
    triples: Mapping[str, tuple[tuple[str, str, str], ...]]

    @property
    def known(self) -> dict[Question, str]:
        return {Three().question(query, docs): docs[0] for query, several in self.triples.items() for docs in several}


class Three(Kind):
    """Which of three documents is best."""

    name = "three"
    asks = MappingProxyType({"threes": "three"})
    places = PLACES
    fields = MappingProxyType({"best": 10})
    answered, settled, gold = BestOfThree, BestSettled, BestKnown

    def questions(self, candidates: Candidates, setup: Setup) -> Sequence[Question]:
        docs: dict[str, list[str]] = {}
        for query, doc in candidates.pairs:
            docs.setdefault(query, []).append(doc)
        return [self.question(query, each) for query, own in docs.items() for each in combinations(own[:6], 3)]

    def values(self, given: Mapping[str, Any], setup: Setup) -> dict[str, Any]:
        if given.get("best") not in PLACES:
            raise CampaignError(f"The best of three is {', '.join(PLACES)}; got {given.get('best')!r}.")
        return {"best": given["best"]}

    def parse(self, form: Mapping[str, str]) -> dict[str, Any]:
        return {"best": form["best"]}

    def _best(self, answer: Any) -> str:
        return str(answer.documents[PLACES.index(answer.best)])

    def evidence(self, answers: Sequence[Answered | Settled]) -> PairAnswers | None:
        rows = [
            {"query": a.query, "left": self._best(a), "right": doc, "choice": "left", "assessor": a.by}
            for a in answers
            for doc in a.documents
            if doc != self._best(a)
        ]
        return as_answers(pd.DataFrame(rows)) if rows else None

    def words(self, answer: Answered | Settled, first: str | None = None) -> tuple[str, str]:
        return (f"{self._best(answer)} is best",) * 2

    def is_right(self, answer: Answered, known: Any, setup: Setup) -> bool:
        return self._best(answer) == known

    def as_gold(self, given: Any, setup: Setup) -> dict[str, Any]:
        return {"triples": {query: tuple(map(tuple, several)) for query, several in given.items()}}


@pytest.fixture(autouse=True)
def three() -> Iterator[None]:
    KINDS.add("three", Three())
    yield
    KINDS.pop("three")


ASKED = {
    "grades": "grade",
    "preferences": "comparison",
    "magnitudes": "comparison",
    "lists": "lists",
    "threes": "three",
}
SOME = {
    "grades": ({"grade": 1}, {"grade": 2}),
    "preferences": ({"choice": "left"}, {"choice": "right"}),
    "magnitudes": ({"numbers": (3, 1)}, {"numbers": (1, 3)}),
    "lists": ({"choice": "left", "good": True}, {"choice": "right", "good": True}),
    "threes": ({"best": "first"}, {"best": "second"}),
}


@pytest.fixture(params=ASKED)
def ask(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def begin(memory: Path, small: Collection, make: Callable[..., Campaign]) -> Iterator[Callable[..., Campaign]]:
    """Create a campaign that asks for something."""
    made: list[Campaign] = []

    def create(ask: str, **settings: Any) -> Campaign:
        if ask != "lists":
            return make(ask=ask, **settings)
        assert small.judgments is not None
        chosen = choose_lists(small.runs, small.judgments, "CG@5", pairs=40, rng=np.random.default_rng(0))
        made.append(Campaign.create_lists(memory / "lists.db", chosen, clock=Clock(), **settings))
        return made[-1]

    yield create
    for campaign in made:
        campaign.close()


def test_every_setting_of_what_is_asked_is_tried_here():
    assert {*known_asks()} == {*ASKED, "mixed"}


def test_a_question_is_leased_answered_withdrawn_and_skipped(begin: Callable[..., Campaign], ask: str):
    campaign, (one, other) = begin(ask), SOME[ask]
    (task,) = campaign.next("ann")
    assert task.question.kind == ASKED[ask]
    assert campaign.next("ann") == [task]
    given, (second,) = campaign.answer_and_next("ann", task.question, **one)
    assert (given.documents, given.query) == (task.documents, task.query)
    assert second.question != task.question
    gone = campaign.withdraw("ann")
    assert (gone.judgment, gone.question) == (given.number, task.question)
    again, held = campaign.next("ann", n=2)
    assert (again.question, again.documents, held.question) == (task.question, task.documents, second.question)
    campaign.skip("ann", task.question, reason="hard")
    assert task.question not in {each.question for each in campaign.next("ann", n=500)}
    assert not campaign.state.is_open(task.question, "ann", 0.0)
    assert campaign.state.is_open(task.question, "bob", 0.0)
    campaign.release("ann", second.question)
    assert second.question not in {lease.question for lease in campaign.state.held_by("ann", 0.0)}
    (bobs,) = campaign.next("bob")
    before = campaign.answer("bob", bobs.question, **one)
    last = campaign.answer("bob", bobs.question, shown=before.documents, **other)
    assert campaign.state.latest(bobs.question)["bob"] == last
    campaign.withdraw("bob")
    assert campaign.state.latest(bobs.question)["bob"] == before
    assert [decode(encode(event)) for event in campaign.log()] == campaign.log()
    assert len(history(campaign.log(), everything=True)) == campaign.state.number


def test_a_token_names_one_request_across_kinds(begin: Callable[..., Campaign], ask: str):
    campaign, (one, other) = begin(ask), SOME[ask]
    first, second = campaign.next("ann", n=2)
    given = campaign.answer("ann", first.question, token="t", **one)
    assert campaign.answer("ann", first.question, token="t", **one) == given
    again, _ = campaign.answer_and_next("ann", first.question, token="t", **one)
    assert again == given
    for step in (
        lambda: campaign.answer("ann", first.question, token="t", **other),
        lambda: campaign.answer("ann", second.question, token="t", **one),
        lambda: campaign.answer("bob", first.question, token="t", **one),
        lambda: campaign.skip("ann", first.question, token="t"),
        lambda: campaign.release("ann", first.question, token="t"),
        lambda: campaign.withdraw("ann", token="t"),
        lambda: campaign.change_guideline("ann", "x", token="t"),
    ):
        with pytest.raises(CampaignError, match="The token 't' was used for a different request"):
            step()
    assert sum(isinstance(event, Answered) for event in campaign.log()) == 1


def test_a_paused_campaign_takes_no_answers_of_any_kind(begin: Callable[..., Campaign], ask: str):
    campaign = begin(ask)
    (task,) = campaign.next("ann")
    campaign.change_phase("eve", "paused")
    with pytest.raises(CampaignError, match="The campaign is paused: nothing was saved"):
        campaign.answer("ann", task.question, **SOME[ask][0])
    assert campaign.next("ann") == []


def test_opinions_differ_and_are_settled(begin: Callable[..., Campaign], ask: str):
    campaign, (one, other) = begin(ask, overlap=1.0), SOME[ask]
    (task,) = campaign.next("ann")
    campaign.answer("ann", task.question, shown=task.question.documents, **one)
    campaign.answer("bob", task.question, shown=task.question.documents, **other)
    if ask == "lists":  # users may differ
        assert campaign.state.disagreements == []
        return
    assert campaign.state.disagreements == [task.question]
    values = {"choice": "equal"} if ask == "magnitudes" else one
    settled = campaign.settle("eve", task.question, reason="sure", token="s", **values)
    assert campaign.settle("eve", task.question, reason="sure", token="s", **values) == settled
    assert campaign.state.settled == {task.question: settled}
    assert campaign.state.disagreements == []
    assert not campaign.state.is_open(task.question, "cy", 0.0)
    evidence = campaign.state.judgments if ask == "grades" else campaign.state.pair_answers
    assert len(evidence) == (2 if ask == "threes" else 1)


def known_answers(campaign: Campaign, ask: str) -> dict[str, Any]:
    """Known answers for some questions: of documents that are asked about."""
    queries = list(campaign.queries)
    docs = {query: [doc for q, doc in campaign.known_material.pairs if q == query][:6] for query in queries}
    if ask == "grades":
        return {query: dict.fromkeys(own[:3], 1.0) for query, own in docs.items()}
    if ask == "threes":
        return {query: [list(some) for some in combinations(own, 3)][::4] for query, own in docs.items()}
    return {query: [(own[0], own[1]), (own[2], own[3])] for query, own in docs.items()}


@pytest.mark.parametrize("ask", ["grades", "preferences", "magnitudes", "threes"])
def test_gold_and_repeated_questions_check_assessors_and_are_no_evidence(begin: Callable[..., Campaign], ask: str):
    campaign = begin(ask, gold_share=0.25, repeat_share=0.25, overlap=1.0, depth=8)
    campaign.change_gold("eve", known_answers(campaign, ask), kind=ASKED[ask])
    gold = campaign.state.gold
    assert {question.kind for question in gold} == {ASKED[ask]}

    def answer(who: str, task: Task) -> dict[str, Any]:
        """Ann is right about gold, and answers the same again; bob is wrong."""
        known = gold.get(task.question, 1.0 if ask == "grades" else sorted(task.documents)[0])
        if ask == "grades":
            return {"grade": known if who == "ann" else 2}
        at = task.documents.index(known) if who == "ann" else 1 - min(1, task.documents.index(known))
        sides = ({"best": place} for place in PLACES) if ask == "threes" else SOME[ask]
        return [*sides][at]

    for who in ("ann", "bob"):
        for _ in range(50):
            (task,) = campaign.next(who)
            campaign.answer(who, task.question, **answer(who, task))
    given = [event for event in campaign.log() if isinstance(event, Answered)]
    purposes = {who: [event.purpose for event in given if event.by == who] for who in ("ann", "bob")}
    leased = [event for event in campaign.log() if isinstance(event, Leased)]
    assert [(e.by, e.question, e.purpose, e.documents) for e in leased] == [
        (e.by, e.question, e.purpose, e.documents) for e in given
    ]
    status = campaign.status()
    ann, bob = {"grades": status.assessors, "threes": status.users}.get(ask, status.comparers)
    for found in (ann, bob):
        assert found.gold == purposes[found.assessor].count(TaskPurpose.gold) > 5
        assert found.repeats == purposes[found.assessor].count(TaskPurpose.repeat) > 3
        assert found.repeats_same == found.repeats
    assert (ann.gold_right, bob.gold_right) == (ann.gold, 0)
    verdicts = {each.assessor: each for each in status.verdicts}
    assert not verdicts["ann"].is_careless
    assert verdicts["bob"].is_careless or verdicts["bob"].manner == "generous"
    assert any(line.startswith(f"bob is {verdicts['bob'].verdict}") for line in status.summary().splitlines())
    counted = sum(event.purpose is TaskPurpose.judgment for event in given)
    latest = [a for q in campaign.state.answers for a in campaign.state.latest(q).values()]
    assert len(latest) == counted


def test_a_kind_of_ones_own_has_files_a_check_and_a_backup(
    begin: Callable[..., Campaign], store: str, tmp_path: Path, clock: Clock
):
    campaign = begin("threes", model="text-hierarchical")
    for task in campaign.next("ann", n=4):
        campaign.answer("ann", task.question, best="second", comment="=1+1")
    campaign.settle("eve", task.question, best="third")
    rows = list(csv.DictReader(io.StringIO(campaign.export("three"))))
    assert [(row["assessor"], row["best"], row["settled"]) for row in rows] == [
        *[("ann", "second", "False")] * 4,
        ("eve", "third", "True"),
    ]
    assert [rows[3][f"document_{at}"] for at in (1, 2, 3)] == [*task.documents]
    assert campaign.export("log").count("\n") == campaign.state.number
    assert len(campaign.collection.answers) == 8  # each best one before two others
    before = campaign.refresh()
    assert before.judged == 4
    assert "Asked for threes: 4 answers." in campaign.status().summary()
    assert campaign.next("bob", n=3)  # also with a snapshot
    with pytest.raises(CampaignError, match="The best of three is first, second, third; got 'fourth'"):
        campaign.answer("ann", task.question, best="fourth")
    with pytest.raises(CampaignError, match="is about 3 of a query's documents"):
        campaign.answer("ann", Question(task.query, task.documents[:2], "three"), best="first")
    assert copy_store(store, tmp_path / "copy.db").faults == ()
    with Campaign.open(tmp_path / "copy.db", clock=clock) as again:
        assert again.export("three") == campaign.export("three")
    assert check_store(Store(store, read_only=True)).faults == ()


def test_a_store_with_a_kind_that_is_not_there_says_so(begin: Callable[..., Campaign], store: str):
    begin("threes").answer("ann", begin("threes", name="b").next("ann")[0].question, best="first")
    known = KINDS.pop("three")
    with (
        Campaign.open(store, name="campaign") as again,
        pytest.raises(Exception, match=r"threes|best of three") as said,
    ):
        again.status()
    assert "\n" not in str(said.value)
    KINDS.add("three", known)


def test_answers_about_a_task_are_about_its_documents_as_shown(begin: Callable[..., Campaign]):
    campaign = begin("preferences")
    tasks = campaign.next("ann", n=12)
    assert any(task.documents != task.question.documents for task in tasks)
    for task in tasks:
        assert campaign.answer("ann", task.question, choice="left").better == task.documents[0]
    free = ("q1", *[doc for query, doc in campaign.known_material.pairs if query == "q1"][1::-1])
    assert campaign.answer("ann", free, choice="left").better == free[1]


@pytest.mark.parametrize(
    ("question", "values", "says"),
    [
        (("q1",), {"choice": "left"}, "kind comparison is about 2 of a query's documents"),
        (("q1", "a", "b", "c"), {"choice": "left"}, "kind comparison is about 2 of a query's documents"),
        (Question("q1", ("a", "b")), {"grade": 1}, "kind grade is about 1 of a query's documents"),
        (Question("q1", ("a",), "grades"), {"grade": 1}, "Unknown kind of question 'grades'.* Did you mean 'grade'"),
        (0, {"grades": 1}, "The values of this answer are grade; got 'grades'. Did you mean 'grade'"),
        (0, {"grade": 1, "choice": "left"}, "The values of this answer are grade; got 'choice'"),
        (0, {}, "The grades of the scale graded:2 are 0, 1, 2; got None"),
    ],
)
def test_questions_and_values_that_do_not_fit_are_refused(campaign: Campaign, question, values, says):
    with pytest.raises(CampaignError, match=says):
        campaign.answer("ann", question or campaign.pool.label(0), **values)
    assert campaign.state.number == 1


def test_a_comparison_is_settled_by_a_choice(begin: Callable[..., Campaign]):
    campaign = begin("preferences", forced=True)
    (task,) = campaign.next("ann")
    with pytest.raises(CampaignError, match="One of the two documents has to be chosen"):
        campaign.answer("ann", task.question, choice="equal")
    with pytest.raises(CampaignError, match="The values of this answer are choice, relevant; got 'numbers'"):
        campaign.settle("eve", task.question, numbers=(1, 2))
    with pytest.raises(CampaignError, match="Settle a comparison by a choice"):
        campaign.settle("eve", task.question)
    assert campaign.settle("eve", task.question, choice="equal").choice == "equal"


def test_the_name_of_a_kind_is_not_what_a_campaign_asks_for():
    with pytest.raises(CampaignError, match=r"Assessors are asked for .*; got 'three'. Did you mean 'threes'"):
        Setup(name="a", metric="P@5", scale=Scale.binary(), model="uniform", depth=5, ask="three")
