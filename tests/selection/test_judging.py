"""The loop: what is known now, what comes next, and when a model learns again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from probeval.data import Judgments, Scale
from probeval.errors import ScaleError, SelectionError
from probeval.relevance import FallbackModel, Uniform
from probeval.selection import EXPLORE, Judging

MODEL = FallbackModel([Uniform()])


@dataclass
class Counting:
    """Says nothing new, and counts how many judgments it was shown each time."""

    seen: list[int] = field(default_factory=list)

    def predict(self, collection, *, depth, scale=None, rng=None):
        self.seen.append(0 if collection.judgments is None else len(collection.judgments))
        return MODEL.predict(collection, depth=depth, scale=scale)


def test_what_is_not_named_is_settled(full):
    judging = Judging(full, MODEL, "nDCG@3", goal="top:2")
    assert str(judging.metric) == "nDCG@3"
    assert (judging.depth, judging.runs.depth, str(judging.goal), str(judging.scale)) == (3, 3, "top:2", "graded:2")
    assert Judging(full, MODEL, "AP").depth == full.runs.depth
    assert Judging(full, MODEL, "AP@3", depth=5).runs.depth == 5
    assert {p: Judging(full, MODEL, "P@3", policy=p).explore for p in ("gain", "mtc", "random", "depth")} == {
        "gain": EXPLORE, "mtc": 0.0, "random": 0.0, "depth": 0.0,
    }  # fmt: skip
    assert Judging(full, MODEL, "P@3", explore=0).explore == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "gian"}, "Did you mean 'gain'"),
        ({"goal": "bets"}, "Did you mean 'best'"),
        ({"goal": "pair:system-01,nobody"}, "No system 'nobody' to compare."),
    ],
)
def test_slips_are_found_before_any_work(full, options, message):
    counting = Counting()
    with pytest.raises(SelectionError, match=message):
        Judging(full, counting, "P@3", **options)
    assert counting.seen == []


def test_grades_must_be_known(full):
    with pytest.raises(ScaleError, match=r"Without judgments the scale of the grades must be named\."):
        Judging(replace(full, judgments=None), MODEL, "P@3")


def test_a_model_learns_again_after_so_many(full):
    counting = Counting()
    judging = Judging(replace(full, judgments=None), counting, "P@3", scale=Scale.graded(2), policy="depth", refresh=5)
    state = judging.begin()
    for n in range(1, 12):
        chosen = np.concatenate([state.judgments.pair, state.next(1)])
        state = state.after(Judgments.coded(judging.pool, chosen, np.ones(n)))
        assert state.prediction.relevance.certain.sum() == n  # known at once, whether learned from or not
        assert state.learned == n // 5 * 5
    assert counting.seen == [0, 5, 10]


def test_judgments_outside_the_pool_are_kept(full):
    more = Judgments.rows(["q1", "q1"], ["nowhere", full.runs.pool.label(0)[1]], [2, 1])
    some = replace(full, judgments=more)
    state = Judging(some, MODEL, "nDCG@5", scale=Scale.graded(2), draws=50).begin()
    assert len(state.judgments) == 2
    assert state.scores.judged == state.prediction.relevance.certain.sum() == 1
    assert state.prediction.relevance.beyond.sum() > 0  # the ideal list knows of it


def test_only_offered_pairs_are_open(full):
    pool = full.runs.top(3).pool
    offered = np.zeros(len(pool), dtype=bool)
    offered[:4] = True
    some = replace(full, judgments=None)
    state = Judging(some, MODEL, "P@3", scale=Scale.graded(2), offered=offered, policy="mtc").begin()
    assert state.open.tolist() == offered.tolist()
    assert sorted(state.next(50)) == [0, 1, 2, 3]
    assert state.open.tolist() == offered.tolist()  # asking changes nothing


def test_family_and_draws_reach_the_scores(full):
    some = replace(full, judgments=full.judgments.take(np.arange(5)))
    assert Judging(some, MODEL, "DCG@3", family="t", scale=Scale.graded(2)).begin().scores.family == "t"
    drawn = Judging(some, MODEL, "nDCG@3", draws=37, scale=Scale.graded(2)).begin().scores.joint.draws
    assert len(drawn) == 37
