"""Runs with a prediction about every pair, and the same by brute force."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from probeval.data import Collection, Judgments, Runs, Scale
from probeval.metrics import Lists, Metric
from probeval.metrics.lists import gather
from probeval.relevance import RelevanceDistribution, synthetic_campaign


def beliefs(runs: Runs, scale: Scale, seed: int, *, draws: int | None = None, judgments=None) -> RelevanceDistribution:
    """Random P(grade) for every pair; with ``draws``, so many posterior draws of it that vary by query and system."""
    rng = np.random.default_rng(seed)
    pool = runs.pool
    logit = rng.normal(size=(len(pool), len(scale)))
    if draws is not None:
        level = rng.normal(size=(draws, len(pool.queries)))[:, pool.query] + rng.normal(size=(draws, 1))
        logit = logit + level[:, :, None] * np.linspace(-1, 1, len(scale))
    probability = np.exp(logit) / np.exp(logit).sum(axis=-1, keepdims=True)
    return RelevanceDistribution.of(pool, scale, probability, judgments=judgments)


def every_world(runs: Runs, relevance: RelevanceDistribution, metric: Metric) -> tuple[np.ndarray, np.ndarray]:
    """P of every grading of the whole pool, and the scores under it, shapes (world,) and (world, system, query)."""
    open_pairs = np.flatnonzero(~relevance.certain)
    chance, codes = [], []
    for grades in product(range(len(relevance.levels)), repeat=len(open_pairs)):
        world = relevance.judged.copy()
        world[open_pairs] = relevance.levels[list(grades)]
        codes.append(world)
        chance.append(np.prod([relevance.probability[p, g] for p, g in zip(open_pairs, grades, strict=True)]))
    lists = []
    for world in codes:
        relevant_counts = np.array(
            [
                [((world >= grade) & (runs.pool.query == q)).sum() for grade in range(len(relevance.scale))]
                for q in range(len(runs.queries))
            ]
        )
        lists.append(Lists(relevance.scale, gather(world, runs.pairs), relevant_counts + relevance.beyond))
    return np.array(chance), np.stack([metric.scores(one) for one in lists])


@pytest.fixture(scope="session")
def believe() -> Callable[..., RelevanceDistribution]:
    return beliefs


@pytest.fixture(scope="session")
def worlds() -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    return every_world


@pytest.fixture(scope="session")
def campaign() -> Collection:
    """Twelve lists: 4 systems, 3 queries, 5 ranks, on 0-2; about 35 pairs, all judged, which most tests leave out."""
    return synthetic_campaign(seed=3, systems=4, queries=3, depth=5, docs=12, groups=2)


@pytest.fixture(scope="session")
def tiny() -> tuple[Runs, Judgments]:
    """Three systems, two queries, seven pairs, and judgments of one of them and of two documents nobody retrieved."""
    rows = [
        ("a", "q1", "d1"), ("a", "q1", "d2"), ("a", "q1", "d3"), ("a", "q2", "e1"), ("a", "q2", "e2"),
        ("b", "q1", "d2"), ("b", "q1", "d1"), ("b", "q1", "d4"), ("b", "q2", "e2"), ("b", "q2", "e3"),
        ("c", "q1", "d4"), ("c", "q1", "d3"),
    ]  # fmt: skip
    runs = Runs.rows(*map(list, zip(*rows, strict=True)))
    judgments = Judgments.rows(["q1", "q1", "q2"], ["d2", "x1", "x2"], [1, 1, 1])
    return runs, judgments


@pytest.fixture(scope="session")
def part_judged(campaign: Collection) -> Collection:
    """The campaign with a third of its judgments."""
    assert campaign.judgments is not None
    order = np.random.default_rng(0).permutation(len(campaign.judgments))
    return replace(campaign, judgments=campaign.judgments.take(order[: len(order) // 3]))
