"""Small campaigns at a moment of their judging."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from probeval.data import Collection, Scale, as_runs
from probeval.relevance import FallbackModel, Uniform, load_card, synthetic_campaign
from probeval.selection import Judging, JudgingState

UNIFORM = FallbackModel([Uniform()])


@pytest.fixture(scope="session")
def full() -> Collection:
    """5 systems in 2 teams, 4 queries, 5 ranks, every pair judged on 0-2."""
    return synthetic_campaign(seed=11, systems=5, queries=4, depth=5, docs=14)


@pytest.fixture(scope="session")
def state(full) -> Callable[..., JudgingState]:
    """A moment of the judging: ``state(judged=10, model="hierarchical", metric="AP", policy="mtc")``."""
    made: dict[tuple, JudgingState] = {}

    def at(judged: int = 0, *, collection: Collection | None = None, model: str = "uniform", **options) -> JudgingState:
        # What is known does not depend on how pairs are chosen: one fit serves many tests.
        key = (judged, model, *sorted(options.items())) if collection is None else None
        if key in made:
            return made[key]
        campaign = full if collection is None else collection
        order = np.random.default_rng(2).permutation(len(campaign.judgments))[:judged]
        few = replace(campaign, judgments=campaign.judgments.take(order) if judged else None)
        predicts = UNIFORM if model == "uniform" else load_card(model).model
        options = {"metric": "DCG@5", "scale": Scale.graded(2), "explore": 0, "draws": 200, **options}
        begun = Judging.of(few, predicts, **options).begin()
        if key is not None:
            made[key] = begun
        return begun

    return at


@pytest.fixture(scope="session")
def tiny() -> Collection:
    """Three systems and one query that can be worked by hand: d1 and d2 are shared, d3 and d4 are not."""
    runs = as_runs(
        {
            "a": {"q": {"d1": 3.0, "d2": 2.0}},
            "b": {"q": {"d2": 3.0, "d1": 2.0}},
            "c": {"q": {"d3": 3.0, "d4": 2.0}},
        }
    )
    return Collection("tiny", runs)
