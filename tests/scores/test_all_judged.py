"""With every pair judged, scores are the classical ones, for certain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from probeval.data import Judgments
from probeval.metrics import REGISTRY, Metric, measure, parse
from probeval.relevance import FallbackModel, Uniform
from probeval.scores import evaluate

EVERY = [str(Metric(name).completed(4)) for name in sorted(REGISTRY)]
EVERY += ["nDCG@4", "AP@4", 'AP(norm="min")@4', "ERR@3", 'RBP(norm="ideal")@4', 'DCG(gain="exp")@20', "nDCG@20"]


@pytest.fixture(scope="module")
def more(campaign):
    """The campaign with judgments of documents that nobody retrieved: they count in ideal lists."""
    told = campaign.judgments.to_frame()
    queries, docs = [*told["query"], "q1", "q1", "q3"], [*told["doc"], "x1", "x2", "x1"]
    return replace(campaign, judgments=Judgments.rows(queries, docs, [*told["grade"], 2, 1, 2]))


@pytest.mark.parametrize("method", [None, "draws", "exact"])
@pytest.mark.parametrize("name", EVERY)
def test_equal_to_classical_evaluation_and_certain(more, name, method):
    depth = parse(name).cutoff or more.runs.depth
    relevance = FallbackModel([Uniform()]).predict(more.problem(depth=depth))
    scores = evaluate(more.runs.top(depth), relevance, name, method=method)
    classical = measure(more.runs, more.judgments, name)
    assert scores.judged == scores.pool == classical.pool
    np.testing.assert_allclose(scores.joint.query_mean, classical.values, atol=1e-12)
    np.testing.assert_allclose(scores.mean, classical.values.mean(axis=1), atol=1e-12)
    assert np.all(scores.covariance == 0)
    assert np.all(scores.joint.query_variance == 0)
    ranking = scores.ranking()
    assert ranking.confidence == 1
    table = ranking.to_frame()
    assert table["rank"].tolist() == classical.to_frame()["rank"].tolist()
    assert (table["lower"] == table["mean"]).all()
    assert (table["upper"] == table["mean"]).all()


@pytest.mark.parametrize("name", ["nDCG@4", "nDCG", 'RBP(norm="ideal")', 'nDCG(gain="exp")@3'])
def test_the_taylor_route_too(more, name):
    depth = parse(name).cutoff or more.runs.depth
    relevance = FallbackModel([Uniform()]).predict(more.problem(depth=depth))
    scores = evaluate(more.runs.top(depth), relevance, name, method="taylor")
    np.testing.assert_allclose(scores.joint.query_mean, measure(more.runs, more.judgments, name).values, atol=1e-12)
    assert np.all(scores.covariance == 0)


@pytest.mark.slow
def test_on_a_real_campaign(data):
    from probeval.data import read_campaign

    if not (data / "trec-dl2019-passage").is_dir():
        pytest.skip("trec-dl2019-passage is not in the data folder")
    campaign = read_campaign(data / "trec-dl2019-passage")
    runs = campaign.runs.top(10)
    grades = np.nan_to_num(campaign.judgments.on(runs.pool).grades())
    judged = Judgments.coded(runs.pool, np.arange(len(runs.pool)), grades)
    for name in ("nDCG@10", "AP@10", "DCG@10", "RR@10"):
        relevance = FallbackModel([Uniform()]).predict(replace(campaign, judgments=judged).problem(depth=10))
        scores = evaluate(runs, relevance, name)
        np.testing.assert_allclose(scores.joint.query_mean, measure(runs, judged, name).values, atol=1e-12)
        assert np.all(scores.covariance == 0)
        assert scores.ranking().confidence == 1
