"""Five assessors judge DL 2020, one of them carelessly: who is named, and what becomes of the scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from probeval.campaign import Campaign
from probeval.data import Collection, Scale

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

    def judge(self, n: int, *, look: Callable[[int], None], refit: int) -> None:
        """Each assessor answers ``n`` questions, in turn; the model runs after every ``refit`` answers of each."""
        for turn in range(n):
            if turn % refit == 0:
                self.campaign.refresh()
            for who in (*HONEST, CARELESS):
                self.answer(who)
            look(turn + 1)
