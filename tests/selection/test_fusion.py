"""Fused rankings against their definitions, by hand and by loops."""

from __future__ import annotations

import numpy as np
import pytest

from probeval.data import Runs
from probeval.errors import SelectionError
from probeval.relevance import synthetic_campaign
from probeval.selection import FUSIONS, POLICIES, fused_places
from probeval.selection.fusion import find_fusion

# Three systems: scores within lists become 0 to 1.
RUNS = Runs.rows(
    ["a", "a", "a", "b", "b", "c", "c", "c"],
    ["q"] * 8,
    ["x", "y", "z", "y", "x", "z", "w", "y"],
    [9.0, 5.0, 1.0, 2.0, 1.0, 6.0, 4.0, 2.0],
)
SCORES = {"x": [1.0, 0.0], "y": [0.5, 1.0, 0.0], "z": [0.0, 1.0], "w": [0.5]}
RANKS = {"x": [1, 2, 4], "y": [2, 1, 3], "z": [3, 3, 1], "w": [4, 3, 2]}  # below its last where not retrieved


def values(name):
    return dict(zip(RUNS.pool.docs, find_fusion(name).value(RUNS).round(6).tolist(), strict=True))


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("combmax", lambda d: max(SCORES[d])),
        ("combmin", lambda d: min(SCORES[d])),
        ("combmed", lambda d: np.median(SCORES[d])),
        ("combsum", lambda d: sum(SCORES[d])),
        ("combanz", lambda d: np.mean([s for s in SCORES[d] if s > 0])),
        ("combmnz", lambda d: sum(SCORES[d]) * len(SCORES[d])),
        ("take", lambda d: -min(RANKS[d])),
        ("borda", lambda d: -sum(RANKS[d])),
        ("condorcet", lambda d: sum(np.sign(np.sign(np.subtract(RANKS[e], RANKS[d])).sum()) for e in RANKS)),
    ],
)  # fmt: skip
def test_by_hand(name, by):
    assert values(name) == pytest.approx({doc: float(by(doc)) for doc in RUNS.pool.docs})


@pytest.mark.parametrize("name", FUSIONS)
def test_a_fused_ranking_is_a_ranking_of_every_query_and_a_policy(name):
    runs = synthetic_campaign(seed=1, systems=5, queries=4, depth=6).runs
    places = fused_places(runs, name)
    for q in range(len(runs.queries)):
        assert sorted(places[runs.pool.query == q]) == list(range(runs.pool.sizes[q]))

    class Context:
        pass

    Context.runs = runs
    assert POLICIES[name](Context, None).tolist() == (-places).tolist()


def test_refusals():
    with pytest.raises(SelectionError, match="Did you mean 'borda'"):
        find_fusion("bord")
