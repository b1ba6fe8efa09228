"""One prediction for all measures of a depth."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from probeval.metrics import parse
from probeval.relevance import FallbackModel, Uniform, synthetic_campaign
from probeval.scores import evaluate, score_collection
from probeval.streams import Purpose, stream


@dataclass
class Counting:
    asked: list[int] = field(default_factory=list)

    def predict(self, problem, *, rng=None):
        self.asked.append(problem.depth)
        return FallbackModel([Uniform()]).predict(problem, rng=rng)


def test_measures_of_one_depth_share_a_prediction():
    campaign = synthetic_campaign(seed=1, systems=4, queries=3, depth=8)
    model = Counting()
    scores = score_collection(model, campaign, [parse(m) for m in ("DCG@5", "nDCG@5", "P@3", "AP@5", "AP")], seed=7)
    assert model.asked == [5, 3, 8]
    assert [str(s.metric) for s in scores] == ["DCG@5", "nDCG@5", "P@3", "AP@5", "AP"]
    model = Counting()
    score_collection(model, campaign, [parse("DCG@5"), parse("P@3")], depth=8)
    assert model.asked == [8]


def test_it_is_predict_and_evaluate_with_the_streams_of_the_seed():
    campaign = synthetic_campaign(seed=1, systems=4, queries=3, depth=8)
    some = campaign.judgments.take(np.arange(10))
    campaign = type(campaign)(campaign.name, campaign.runs, some)
    (found,) = score_collection(FallbackModel([Uniform()]), campaign, [parse("nDCG@5")], seed=3, keys=("x", 2), n=30)
    relevance = FallbackModel([Uniform()]).predict(campaign.problem(depth=5))
    rng = stream(3, "x", 2, Purpose.SCORES)
    expected = evaluate(campaign.runs.top(5), relevance, "nDCG@5", n=30, rng=rng)
    np.testing.assert_array_equal(found.joint.draws, expected.joint.draws)
