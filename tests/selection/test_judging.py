"""The loop: what is known now, what comes next, and when a model learns again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from probeval.data import Judgments, Scale
from probeval.errors import ScaleError, SelectionError
from probeval.metrics import Metric
from probeval.relevance import FallbackModel, Uniform
from probeval.selection import EXPLORE, EXPLORE_SIDES, POLICIES, Goal, Judging, Policy

MODEL = FallbackModel([Uniform()])


@dataclass
class Counting:
    """Says nothing new, and counts how many judgments it was shown each time."""

    seen: list[int] = field(default_factory=list)

    def predict(self, problem, *, rng=None):
        judgments = problem.collection.judgments
        self.seen.append(0 if judgments is None else len(judgments))
        return MODEL.predict(problem)


def test_what_is_not_named_is_settled(full):
    judging = Judging.of(full, MODEL, "nDCG@3", goal="top:2")
    assert str(judging.metric) == "nDCG@3"
    assert (judging.depth, judging.runs.depth, str(judging.goal), str(judging.scale)) == (3, 3, "top:2", "graded:2")
    assert Judging.of(full, MODEL, "AP").depth == full.runs.depth
    assert Judging.of(full, MODEL, "AP@3", depth=5).runs.depth == 5
    assert {p: Judging.of(full, MODEL, "P@3", policy=p).explore for p in ("gain", "mtc", "random", "depth")} == {
        "gain": EXPLORE, "mtc": 0.0, "random": 0.0, "depth": 0.0,
    }  # fmt: skip
    assert Judging.of(full, MODEL, "P@3", explore=0).explore == 0
    assert judging.explore == EXPLORE_SIDES
    assert Judging.choosing(judging, "gain").explore == EXPLORE
    assert Judging.choosing(judging, "mtc", goal="best").explore == 0
    two = replace(full, runs=full.runs.select(full.runs.systems[:2]))
    assert Judging.of(two, MODEL, "P@3").explore == EXPLORE_SIDES


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
        Judging.of(full, counting, "P@3", **options)
    assert counting.seen == []


def test_grades_must_be_known(full):
    with pytest.raises(ScaleError, match=r"Without judgments the scale of the grades must be named\."):
        Judging.of(replace(full, judgments=None), MODEL, "P@3")


def test_a_model_learns_again_after_so_many(full):
    counting = Counting()
    judging = Judging.of(
        replace(full, judgments=None), counting, "P@3", scale=Scale.graded(2), policy="depth", refresh=5
    )
    state = judging.begin()
    for n in range(1, 12):
        chosen = np.concatenate([state.judgments.pair, state.next(1).pairs])
        state = state.after(Judgments.coded(judging.pool, chosen, np.ones(n)))
        assert state.prediction.relevance.certain.sum() == n  # known at once, whether learned from or not
        assert state.learned == n // 5 * 5
    assert counting.seen == [0, 5, 10]


def test_judgments_outside_the_pool_are_kept(full):
    more = Judgments.rows(["q1", "q1"], ["nowhere", full.runs.pool.label(0)[1]], [2, 1])
    some = replace(full, judgments=more)
    state = Judging.of(some, MODEL, "nDCG@5", scale=Scale.graded(2), draws=50).begin()
    assert len(state.judgments) == 2
    assert state.scores.judged == state.prediction.relevance.certain.sum() == 1
    assert state.prediction.relevance.beyond.sum() > 0  # the ideal list knows of it


def test_only_offered_pairs_are_open(full):
    pool = full.runs.top(3).pool
    offered = np.zeros(len(pool), dtype=bool)
    offered[:4] = True
    some = replace(full, judgments=None)
    state = Judging.of(some, MODEL, "P@3", scale=Scale.graded(2), offered=offered, policy="mtc").begin()
    assert state.open.tolist() == offered.tolist()
    assert sorted(state.next(50).pairs) == [0, 1, 2, 3]
    assert state.open.tolist() == offered.tolist()  # asking changes nothing


def test_family_and_draws_reach_the_scores(full):
    some = replace(full, judgments=full.judgments.take(np.arange(5)))
    assert Judging.of(some, MODEL, "DCG@3", family="t", scale=Scale.graded(2)).begin().scores.family == "t"
    drawn = Judging.of(some, MODEL, "nDCG@3", draws=37, scale=Scale.graded(2)).begin().scores.joint.draws
    assert len(drawn) == 37


def test_replacing_a_field_fits_nothing_again(full, monkeypatch):
    from probeval.relevance import load_card
    from probeval.relevance.models.hierarchical import Hierarchical

    designs = []
    design = Hierarchical.design
    monkeypatch.setattr(Hierarchical, "design", lambda *a, **k: designs.append(a) or design(*a, **k))
    some = replace(full, judgments=full.judgments.take(np.arange(5)))
    judging = Judging.of(some, load_card("text-hierarchical").model, "DCG@3", scale="graded:2", draws=50)
    assert len(designs) == 1
    other = replace(judging, draws=20, policy=POLICIES["mtc"], goal=Goal.parse("best"))
    assert other.online is judging.online
    assert other.runs is judging.runs
    assert len(designs) == 1
    assert (other.draws, str(other.policy), str(other.goal)) == (20, "mtc", "best")
    assert (other.collection, other.model) == (judging.collection, judging.model)


def test_fields_are_of_exact_types(full):
    judging = Judging.of(full, MODEL, "P@3", policy="mtc", goal="best", scale="graded:2")
    types = {"metric": Metric, "policy": Policy, "goal": Goal, "scale": Scale, "depth": int, "explore": float}
    assert {name: type(getattr(judging, name)) for name in types} == types


def test_a_plain_function_is_a_policy(full):
    def backwards(context, goal):
        """The last pair of the pool first."""
        return np.arange(len(context.runs.pool), dtype=float)

    some = replace(full, judgments=None)
    state = Judging.of(some, MODEL, "P@3", policy=backwards, scale=Scale.graded(2)).begin()
    n = len(state.judging.pool)
    assert state.next(3).pairs.tolist() == [n - 1, n - 2, n - 3]
    assert (state.judging.policy.name, state.judging.policy.summary) == ("backwards", "The last pair of the pool first")


def test_method_and_target_reach_the_scores(full):
    some = replace(full, judgments=full.judgments.take(np.arange(5)))
    drawn = Judging.of(some, MODEL, "DCG@3", method="draws", draws=30).begin().scores
    assert drawn.method == "draws"
    assert len(drawn.joint.draws) == 30
    here, beyond = (Judging.of(some, MODEL, "DCG@3", target=t).begin() for t in ("collection", "population"))
    assert (here.scores.method, here.scores.target, beyond.scores.target) == ("moments", "collection", "population")
    assert (np.diag(beyond.scores.covariance) > np.diag(here.scores.covariance)).all()
    assert len(beyond.next(3)) == 3
