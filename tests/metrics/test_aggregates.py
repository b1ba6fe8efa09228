"""Geometric means over queries, by judgments alone and by a model."""

from __future__ import annotations

import numpy as np
import pytest

from probeval.errors import MetricError, ScoreError
from probeval.metrics import AGGREGATES, aggregate_queries, measure
from probeval.relevance import FallbackModel, Uniform, synthetic_campaign
from probeval.scores import evaluate

CAMPAIGN = synthetic_campaign(seed=3, systems=3, queries=12, depth=5)


def test_the_worked_values():
    # Derived from Eqs 2.18 and 2.19 of Yang (2019), and from trec_eval's rule with epsilon 1e-5.
    assert aggregate_queries([0.0, 0.5], "gm-eps") == pytest.approx(0.0022261, abs=5e-8)
    assert aggregate_queries([0.0, 0.5], "gm-trec") == pytest.approx(0.0022361, abs=5e-8)
    assert aggregate_queries([0.2, 0.5, 0.9], "gm-eps", epsilon=1.0) == pytest.approx(0.506637, abs=5e-7)
    assert aggregate_queries([0.0, 0.5], "gm") == 0
    assert aggregate_queries([0.1, 0.4], "gm") == pytest.approx(0.2)
    assert aggregate_queries([0.1, 0.4], "gm", weights=np.array([2.0, 0.0])) == pytest.approx(0.1)


def test_as_trec_eval_has_it():
    pytrec_eval = pytest.importorskip("pytrec_eval")
    measured = measure(CAMPAIGN.runs, CAMPAIGN.judgments, "AP", aggregate="gm-trec")
    for i, system in enumerate(measured.systems):
        logs = np.log(np.maximum(measured.values[i], 1e-5))
        mean = pytrec_eval.compute_aggregated_measure("gm_map", logs.tolist())
        assert measured.to_frame().set_index("system")["mean"][system] == pytest.approx(mean, rel=1e-9)


def test_bounds_are_aggregated_too():
    few = CAMPAIGN.judgments.take(np.arange(0, len(CAMPAIGN.judgments), 2))
    measured = measure(CAMPAIGN.runs, few, "P@5", aggregate="gm-eps")
    table = measured.to_frame()
    assert (table["lower"] <= table["mean"]).all()
    assert (table["mean"] <= table["upper"]).all()
    assert measured.to_dict()["aggregate"] == "gm-eps"
    assert any("geometric mean" in sentence for sentence in measured.sentences())


@pytest.mark.parametrize("aggregate", [a for a in AGGREGATES if a != "gm"])
def test_a_model_with_all_judged_has_the_same_means(aggregate):
    relevance = FallbackModel([Uniform()]).predict(CAMPAIGN.problem(depth=5))
    scores = evaluate(CAMPAIGN.runs, relevance, "DCG@5", method="draws", aggregate=aggregate, n=10)
    measured = measure(CAMPAIGN.runs, CAMPAIGN.judgments, "DCG@5", aggregate=aggregate)
    expected = measured.to_frame().set_index("system")["mean"]
    np.testing.assert_allclose(scores.mean, [expected[s] for s in scores.systems], rtol=1e-9)
    assert scores.standard_deviation == pytest.approx(0, abs=1e-12)


def test_the_sd_for_new_queries_is_that_of_resampled_queries():
    # Without zeros the delta method is close: 60 lognormal scores, whose geometric mean is exp of a mean.
    from probeval.scores.scores import Joint, with_aggregate

    rng = np.random.default_rng(4)
    values = np.exp(rng.normal(-1.5, 0.4, size=(1, 1, 60)))
    zero = np.zeros((1, 1))
    joint = Joint(values.mean(axis=2)[0], zero, zero, values[0], np.zeros((1, 60)), values.mean(axis=2), values)
    found = with_aggregate(joint, "gm", np.ones(60), keep=False)
    again = [aggregate_queries(values[0, 0, rng.integers(60, size=60)], "gm") for _ in range(1500)]
    assert np.sqrt(found.between[0, 0]) == pytest.approx(np.std(again), rel=0.08)


def test_bad_input_is_refused():
    with pytest.raises(MetricError, match="No aggregate 'gmean': mean, gm, gm-eps, gm-trec"):
        aggregate_queries([0.5], "gmean")
    with pytest.raises(MetricError, match="needs scores from 0"):
        aggregate_queries([-0.5], "gm")
    relevance = FallbackModel([Uniform()]).predict(CAMPAIGN.problem(depth=5))
    with pytest.raises(ScoreError, match="Geometric means over queries are drawn"):
        evaluate(CAMPAIGN.runs, relevance, "DCG@5", method="moments", aggregate="gm")
