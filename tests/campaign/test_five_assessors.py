"""Five assessors judge DL 2020, one of them carelessly: who is named, and what becomes of the scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau

from probeval.arrays import Floats
from probeval.campaign import Campaign
from probeval.campaign.verdicts import ALARM
from probeval.data import Collection, Judgments, Scale, read_campaign
from probeval.relevance import FallbackModel, Uniform
from probeval.scores import Ranking
from probeval.scores.estimate import ScoreEstimation

SEEDS = 10
MEASURED = 5  # seeds in which scores are measured
HONEST = ("ann", "bob", "cy", "eve")
CARELESS = "dan"
WRONG = 0.1  # of the grades of an honest assessor, by one
AT_RANDOM = 0.75  # of the answers of the careless one
GOLD_OF_QUERY = 2


class Story:
    """A campaign with five simulated assessors, who answer in turn."""

    def __init__(self, collection: Collection, store: Path, seed: int) -> None:
        given = collection.judgments
        assert given is not None
        self.truth = dict(zip(map(given.pool.label, range(len(given.pool))), given.grades(), strict=True))
        self.rng = np.random.default_rng(seed)
        self.campaign = Campaign.create(
            store, replace(collection, judgments=None, labels=None), metric="nDCG@10", scale=Scale.graded(3), seed=seed,
            overlap=0.15, gold_share=0.1, repeat_share=0.05,
        )  # fmt: skip
        pool = self.campaign.pool
        known: dict[str, dict[str, float]] = {}
        for query in pool.queries:
            own = [pair for pair in map(pool.label, range(len(pool))) if pair[0] == query and pair in self.truth]
            chosen = self.rng.choice(len(own), min(GOLD_OF_QUERY, len(own)), replace=False)
            known[query] = {own[at][1]: self.grade(own[at]) for at in chosen}
        self.campaign.change_gold("owner", known)

    def grade(self, pair: tuple[str, str]) -> float:
        grade = self.truth.get(pair, 0.0)
        return 0.0 if np.isnan(grade) else max(grade, 0.0)

    def answer(self, who: str) -> None:
        (task,) = self.campaign.next(who)
        grade = self.grade((task.query, task.doc))
        if who == CARELESS and self.rng.random() < AT_RANDOM:
            grade = float(self.rng.integers(4))
        elif who != CARELESS and self.rng.random() < WRONG:
            grade = float(np.clip(grade + self.rng.choice([-1, 1]), 0, 3))
        self.campaign.answer(who, task.question, grade=grade)

    def judge(self, n: int, *, look: Callable[[int], None], refit: int = 20) -> None:
        """Each assessor answers ``n`` questions, in turn; the model runs after every ``refit`` answers of each."""
        for turn in range(n):
            if turn % refit == 0:
                self.campaign.refresh()
            for who in (*HONEST, CARELESS):
                self.answer(who)
            look(turn + 1)


def named(story: Story, n: int) -> tuple[int | None, float]:
    """After how many answers the careless assessor is named first, and the most that an honest one is doubted."""
    first, most = list[int](), 0.0

    def look(turn: int) -> None:
        nonlocal most
        for verdict in story.campaign.status().verdicts:
            if verdict.assessor != CARELESS:
                most = max(most, verdict.careless)
            elif verdict.is_careless:
                first.append(turn)

    story.judge(n, look=look)
    return next(iter(first), None), most


def quality(ranking: Ranking, truth: Floats) -> dict[str, float]:
    """Tau with the true ranking, the mean error of a score, the share of intervals with it, and the calibration."""
    systems = ranking.at(0.95).systems
    at = {name: i for i, name in enumerate(ranking.scores.systems)}
    true = np.array([truth[at[each.system]] for each in systems])
    mean, lower, upper = (np.array([getattr(each, name) for each in systems]) for name in ("mean", "lower", "upper"))
    better, upper_half = ranking.p_better, np.triu_indices(len(truth), k=1)
    right = (truth[:, None] > truth)[upper_half] == (better > 0.5)[upper_half]
    return {
        "tau": float(kendalltau(mean, true).statistic),
        "error": float(np.abs(mean - true).mean()),
        "coverage": float(((lower <= true) & (true <= upper)).mean()),
        "confidence": ranking.confidence,
        "accuracy": float(right.mean()),
    }


def three_ways(story: Story, truth: Floats) -> dict[str, dict[str, float]]:
    """The quality of the ranking with answers as certain, by consensus, and with the careless assessor set aside."""
    campaign, found = story.campaign, {}
    for name in ("certain", "consensus"):
        if campaign.setup.answers_as != name:
            campaign.change("owner", answers_as=name)
        found[name] = quality(campaign.evaluate(), truth)
    campaign.change("owner", answers_as="certain")
    campaign.set_aside("owner", CARELESS)
    found["set aside"] = quality(campaign.evaluate(), truth)
    return found


def true_scores(story: Story) -> Floats:
    """The scores by the grades of the data; what these lack counts as not relevant, as it does for the assessors."""
    pool, collection = story.campaign.pool, story.campaign.collection
    labels = [pool.label(i) for i in range(len(pool))]
    grades = [story.grade(pair) for pair in labels]
    judged = Judgments.rows([q for q, _ in labels], [d for _, d in labels], grades)
    model = FallbackModel([Uniform()])
    given = replace(collection, judgments=judged, labels=None)
    return ScoreEstimation.of(given, model, "nDCG@10", depth=10, scale=Scale.graded(3)).first().scores.mean


@pytest.mark.validation
def test_the_careless_one_of_five_assessors_is_named_and_no_honest_one(data: Path, memory: Path):
    """In 9 of 10 seeds within 60 of their answers; tau, error and calibration in three ways after 120 of each."""
    collection, times = read_campaign(data / "trec-dl2020-passage"), list[int | None]()
    rows = list[dict[str, dict[str, float]]]()
    for seed in range(SEEDS):
        story = Story(replace(collection, labels=None), memory / f"{seed}.db", seed)
        at, doubt = named(story, 60)
        assert doubt < ALARM
        times.append(at)
        if seed < MEASURED:
            story.judge(60, look=lambda _: None, refit=30)
            rows.append(three_ways(story, true_scores(story)))
        story.campaign.close()
    print(times)
    table = {
        way: {name: np.mean([row[way][name] for row in rows]).round(4) for name in rows[0][way]} for way in rows[0]
    }
    print(pd.DataFrame(table).T.to_string())
    assert sum(at is not None for at in times) >= 9
    certain, consensus = table["certain"], table["consensus"]
    assert consensus["error"] < certain["error"]
    assert consensus["coverage"] > certain["coverage"]
    assert consensus["tau"] > certain["tau"]
    assert abs(consensus["confidence"] - consensus["accuracy"]) < 0.02
