"""Stores and cards of an earlier version still open, and still give the same scores.

This test stays through all later changes of events, cards and schema: people keep such files for years. It uses the
public names alone, so that it outlives the names inside. The files are never written again; README.md tells how they
were made.

Scores are compared by their moments. Each is pooled over :data:`SEEDS` seeds, whose spread gives the Monte Carlo error
of the means. A mean may be off by 1% of the spread of the systems' means and four such errors; the standard deviations
by 3%, in the median over systems; the confidence by .01. Two systems whose means differ by more than is tolerated keep
their order.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from probeval.campaign import Campaign, copy_store
from probeval.data import Runs
from probeval.errors import StoreError
from probeval.relevance import load_card, read_card
from probeval.scores import Scores, evaluate

FOLDER = Path(__file__).parent
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
CAMPAIGNS, CARDS = EXPECTED["campaigns"], EXPECTED["cards"]
SEEDS = 40
ERRORS = 4.0  # Monte Carlo errors that a mean may be off
MEANS, SDS, CONFIDENCE = 0.01, 0.03, 0.01  # of the spread of the means; of the sds; as it is


@pytest.fixture(params=CAMPAIGNS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def campaign(name: str, tmp_path: Path) -> Iterator[Campaign]:
    with opened(name, tmp_path) as campaign:
        yield campaign


def opened(name: str, folder: Path) -> Campaign:
    """A campaign of a copy of the store."""
    return Campaign.open(shutil.copy(FOLDER / "campaign.sqlite", folder), name=name)


def expect_same(found: Sequence[Scores], expected: dict[str, Any]) -> None:
    """Scores over several seeds have the expected moments, order and confidence."""
    systems = list(expected["mean"])
    mean = np.array([[scores[s].mean() for s in systems] for scores in found])
    variance = np.array([[scores[s].variance() for s in systems] for scores in found])
    pooled, sd = mean.mean(axis=0), np.sqrt(variance.mean(axis=0) + mean.var(axis=0))
    old, old_sd = (np.array([expected[what][s] for s in systems]) for what in ("mean", "sd"))
    tolerance = MEANS * np.ptp(old) + ERRORS * mean.std(axis=0, ddof=1) / np.sqrt(len(found))
    off = np.abs(pooled - old)
    assert np.all(off <= tolerance), f"means are off by {off}, tolerated are {tolerance}"
    assert np.median(sd / old_sd) == pytest.approx(1, abs=SDS)
    assert np.mean([scores.ranking().confidence for scores in found]) == pytest.approx(
        expected["confidence"], abs=CONFIDENCE
    )
    apart = old[:, None] - old > tolerance[:, None] + tolerance
    assert apart.sum() > len(systems), "nearly all systems are tied: this test says nothing of their order"
    assert np.all((pooled[:, None] > pooled)[apart])


def test_a_store_has_its_judgments(campaign, name):
    expected = CAMPAIGNS[name]
    judgments = campaign.collection.judgments
    grades = [[*judgments.pool.label(pair), grade] for pair, grade in enumerate(judgments.grades())]
    assert grades == expected["grades"]
    assert len(campaign.log()) == expected["events"]
    assert campaign.setup.metric == expected["metric"]
    assert {"ann", "ben"} <= {event.by for event in campaign.log()}
    assert campaign.queries["q01"] == "the text of q01"


def test_a_store_has_what_the_model_said_last(campaign, name):
    expected, snapshot = CAMPAIGNS[name]["snapshot"], campaign.snapshot
    assert snapshot is not None
    assert (snapshot.judged, snapshot.confidence) == (expected["judged"], expected["confidence"])
    assert snapshot.systems[0].system == expected["best"]
    assert len(campaign.curve()) == 2


def test_judging_goes_on_in_a_store(campaign, name):
    judged = {(query, doc) for query, doc, _ in CAMPAIGNS[name]["grades"]}
    new = next(t for t in campaign.next("cy", n=len(judged)) if (t.query, t.doc) not in judged)
    campaign.answer("cy", (new.query, new.doc), grade=1)
    assert campaign.evaluate().scores.judged == CAMPAIGNS[name]["judged"] + 1
    assert campaign.refresh().judged == CAMPAIGNS[name]["judged"] + 1


@pytest.mark.slow
def test_a_store_gives_the_same_scores(campaign, name):
    found = []
    for seed in range(SEEDS):
        if seed != campaign.setup.seed:
            campaign.change("owner", seed=seed)
        found.append(campaign.evaluate().scores)
    assert {scores.judged for scores in found} == {CAMPAIGNS[name]["judged"]}
    expect_same(found, CAMPAIGNS[name])


def test_a_store_of_schema_1_is_migrated_and_goes_on(tmp_path):
    expected = json.loads((FOLDER / "schema1.json").read_text())
    place = shutil.copy(FOLDER / "schema1.sqlite", tmp_path)
    with pytest.raises(StoreError, match="has an older schema"):
        Campaign.open(place, read_only=True)
    with Campaign.open(place) as campaign:
        status = campaign.status()
        assert len(campaign.log()) == expected["events"]
        assert {name: getattr(status, name) for name in ("judged", "judgments", "pool")} == {
            name: expected[name] for name in ("judged", "judgments", "pool")
        }
        assert campaign.export("qrels") == expected["qrels"]
        assert campaign.snapshot.confidence == expected["confidence"]
        assert list(campaign.collection.runs.systems) == expected["systems"]
        assert [*campaign.state.adjudicated] == [tuple(expected["adjudicated"])]
        assert campaign.collection.labels.sources == ("robot",)
        assert (campaign.state.phase, campaign.state.access.invited) == ("open", {})
        campaign.add_runs("eve", Runs.rows(["late"], ["q1"], ["new"]))
        (task,) = campaign.next("cy")
        campaign.answer("cy", task.question, grade=1)
        assert campaign.refresh().judged in (expected["judged"], expected["judged"] + 1)
    assert copy_store(place, tmp_path / "copy.sqlite").faults == ()


def same(found: object, expected: object) -> bool:
    """Whether two values are the same JSON; NaN is equal to itself."""
    return json.dumps(found, sort_keys=True) == json.dumps(expected, sort_keys=True)


def later() -> float:
    """A moment after the last event."""
    return 1_700_007_000.0


def test_a_store_of_schema_2_says_what_it_said(tmp_path):
    """Grades, preferences and magnitudes; gold and repeated questions of both kinds; imports, late runs, labels."""
    expected = json.loads((FOLDER / "schema2.json").read_text())
    place = shutil.copy(FOLDER / "schema2.sqlite", tmp_path)
    with pytest.raises(StoreError, match="has an older schema"):
        Campaign.open(place, name="mixed", read_only=True)
    with Campaign.open(place, name="mixed", clock=later) as campaign:
        status = campaign.status().to_dict()
        assert [name for name, value in expected["figures"].items() if not same(status[name], value)] == []
        assert {name: campaign.export(name) for name in expected["exports"]} == expected["exports"]
        assert same(campaign.gold().to_dict(), expected["gold"])
        assert same(campaign.topics().to_dict(), expected["topics"])
        assert campaign.snapshot.confidence == expected["confidence"]
        tasks = campaign.next("cy", n=4)
        assert [[task.query, task.doc, task.other, task.asks] for task in tasks] == expected["next"]
        values = {"grade": {"grade": 1}, "preference": {"choice": "left"}}
        for task in tasks:
            campaign.answer("cy", task.question, **values[task.asks])
        assert campaign.status().events == expected["figures"]["events"] + 4
    assert copy_store(place, tmp_path / "copy.sqlite").faults == ()


def test_a_study_of_schema_2_says_what_it_said_and_goes_on(tmp_path):
    expected = json.loads((FOLDER / "schema2.json").read_text())["study"]
    place = shutil.copy(FOLDER / "schema2.sqlite", tmp_path)
    with Campaign.open(place, name="lists", clock=later) as study:
        assert study.export("lists") == expected["answers"]
        users = sorted(study.state.own)
        tasks = [study.next(user)[0] for user in users]
        assert [task.question.documents[0] for task in tasks] == [f"{number}a" for number in expected["next"]]
        assert [task.judged_in_topic + 1 for task in tasks] == expected["place"]
        study.answer(users[0], tasks[0].question, choice="same", good=True)
        study.withdraw(users[0])
        assert study.export("lists") == expected["answers"]


@pytest.mark.slow
@pytest.mark.parametrize("card", CARDS)
def test_a_card_gives_the_same_scores(card, tmp_path):
    model = read_card(FOLDER / card).model
    with opened("fitted", tmp_path) as campaign:
        collection, scale, depth = campaign.collection, campaign.scale, campaign.setup.depth
    found: dict[str, list[Scores]] = {metric: [] for metric in CARDS[card]}
    for seed in range(SEEDS):
        relevance = model.predict(collection.problem(depth=depth, scale=scale), rng=np.random.default_rng(seed))
        for metric, scores in found.items():
            scores.append(evaluate(collection.runs, relevance, metric, rng=np.random.default_rng(seed)))
    for metric, expected in CARDS[card].items():
        expect_same(found[metric], expected)


def test_a_card_is_found_by_its_path():
    card = load_card(str(FOLDER / "card"))
    assert (card.name, card.kind, card.depth) == ("old", "hierarchical", 10)
    assert list(card.fingerprints) == ["synthetic-1", "synthetic-2", "synthetic-3"]
