"""One rule for the verdict on two systems, wherever it is stated."""

from __future__ import annotations

import numpy as np
import pytest

from probeval.api.gate import GateRule
from probeval.metrics import parse
from probeval.reliability import ScorePosterior
from probeval.scores import Joint, Scores
from probeval.scores.decision import PairDecision
from probeval.scores.two_systems import TwoSystems


@pytest.mark.parametrize(
    ("better", "worse", "equal", "verdict"),
    [
        (0.95, 0.05, 0.0, "better"),
        (0.05, 0.95, 0.0, "worse"),
        (0.03, 0.02, 0.95, "equal"),
        (0.949, 0.051, 0.0, "undecided"),
        (0.60, 0.00, 0.40, "undecided"),  # not worse for certain, but neither better nor equal
    ],
)
def test_a_verdict_is_stated_when_its_own_probability_reaches_the_level(better, worse, equal, verdict):
    found = PairDecision(better, worse, equal, 0.95)
    assert found.verdict == verdict
    assert found.confidence == max(better, worse, equal)
    turned = {"better": "worse", "worse": "better"}
    assert PairDecision(worse, better, equal, 0.95).verdict == turned.get(verdict, verdict)


def test_a_low_level_takes_the_likeliest():
    assert PairDecision(0.5, 0.1, 0.4, 0.3).verdict == "better"
    assert PairDecision(0.5, 0.5, 0.0, 0.5).verdict == "undecided"


@pytest.mark.parametrize("rope", [0.0, 0.1])
@pytest.mark.parametrize("mean", np.linspace(-0.4, 0.4, 17).tolist())
def test_every_comparison_states_the_same(mean, rope):
    draws = mean + 0.1 * np.random.default_rng(1).standard_normal(4000)
    joint = Joint(
        np.array([mean, 0.0]), np.diag([0.01, 0.0]), np.diag([0.01, 0.0]), np.zeros((2, 3)), np.zeros((2, 3)),
        draws=np.column_stack([draws, np.zeros(4000)]),
    )  # fmt: skip
    queries = np.array(["a", "b", "c"])
    scores = Scores(parse("DCG@5"), ("new", "old"), queries, joint, "draws", "collection", "empirical", 9, 0)
    comparison = scores.compare("new", "old", rope=rope)
    by_scores = ScorePosterior(
        ("new", "old"), ("a", "b", "c"), "normal", np.zeros((2, 3)), 0.95, rope, np.arange(2), {}, {}, joint.draws
    )
    stated = comparison.verdict()
    assert TwoSystems(comparison, None, None).pair.verdict == stated
    assert by_scores.pairs[0].verdict == stated
    words = {"equal": "tied"}
    assert GateRule(0.95, rope).verdict(comparison) == words.get(stated, stated)
    passing = "not worse" if 1 - comparison.p_worse >= 0.95 else "worse" if stated == "worse" else "undecided"
    assert GateRule(0.95, rope, not_worse=True).verdict(comparison) == passing
