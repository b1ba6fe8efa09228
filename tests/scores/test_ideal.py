"""What the ideal list is taken from: said with every score, and wider with more runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import probeval
from probeval.data import Scale
from probeval.data.runs import Runs
from probeval.errors import DataError
from probeval.metrics import REGISTRY, Metric, measure, parse
from probeval.relevance import synthetic_campaign
from probeval.scores.ideal import Ideal


@pytest.fixture(scope="module")
def campaign():
    return synthetic_campaign(seed=3, systems=5, queries=6, depth=5)


def first(campaign, n):
    return replace(campaign, runs=campaign.runs.select(campaign.runs.systems[:n]), judgments=None)


@pytest.mark.parametrize("name", sorted(REGISTRY))
@pytest.mark.parametrize("scale", ["binary", "graded:3", "fine"])
def test_measures_with_bounds_by_the_ideal_need_one_and_linear_ones_do_not(name, scale):
    metric = Metric(name).completed()
    found = metric.needs_ideal(Scale.parse(scale))
    if metric.definition.bounds(metric) in ("ratio", "precision", "found"):
        assert found
    if metric.is_linear:
        assert not found
    assert found or not metric.counts_all(Scale.parse(scale))


def test_a_norm_takes_the_ideal_away_or_brings_it():
    scale = Scale.graded(3)
    assert not parse('nDCG(norm="perfect")@10').needs_ideal(scale)
    assert parse('DCG(norm="ideal")@10').needs_ideal(scale)
    assert not parse('AP(norm="perfect")@10').needs_ideal(scale)
    assert parse("nDCG@1").needs_ideal(scale)


def test_scores_state_their_ideal(campaign):
    two = first(campaign, 2)
    evaluation = probeval.evaluate(two, "nDCG@5", scale="graded:2", model="uniform")
    n = len(two.runs.pool)
    assert evaluation.scores.ideal == Ideal(n, n, 2)
    assert evaluation.sentences()[1].startswith(f"Ideal: {n} pairs of these 2 runs. Relevant documents outside would")
    assert evaluation.to_dict()["ideal"] == {"pairs": n, "retrieved": n, "judged": 0, "outside": None}
    assert evaluation.next(2).status()[1].startswith(f"Ideal: {n} pairs of these 2 runs.")
    linear = probeval.evaluate(two, "DCG@5", scale="graded:2", model="uniform")
    assert linear.scores.ideal is None
    assert "ideal" not in linear.to_dict()


def test_scores_with_documents_outside_stand_beside_those_without(campaign):
    two = first(campaign, 2)
    beside = probeval.evaluate(two, "nDCG@5", scale="graded:2", model="uniform")
    counted = probeval.evaluate(two, "nDCG@5", scale="graded:2", model="uniform", outside=True)
    rows, wider = beside.to_dict()["systems"], {row["system"]: row for row in counted.to_dict()["systems"]}
    for row in rows:
        assert [row[f"{of}_outside"] for of in ("mean", "lower", "upper")] == [
            wider[row["system"]][of] for of in ("mean", "lower", "upper")
        ]
        assert row["mean_outside"] < row["mean"]
    assert beside.to_frame().columns[6:9].tolist() == ["mean_outside", "lower_outside", "upper_outside"]
    number = f"about {counted.scores.ideal.outside:.0f} more per query."
    assert beside.sentences()[2] == f"The columns with _outside count an estimate of these: {number}"
    assert "mean_outside" not in wider["system-01"]
    fine = probeval.evaluate(two, "nDCG@5", scale="fine", model="uniform")  # too many grades to estimate them
    assert fine.scores.ideal.is_narrow
    assert "mean_outside" not in fine.to_dict()["systems"][0]


@pytest.mark.parametrize("metric", ["AP@5", "R@5", "Rprec"])
def test_measures_that_count_all_documents_estimate_those_outside_while_pairs_are_open(campaign, metric):
    settings = {"scale": "graded:2", "model": "uniform"}
    blind = replace(campaign, judgments=None)
    default, counted, pool = (probeval.evaluate(blind, metric, **settings, outside=o) for o in (None, True, False))
    assert default.to_dict() == counted.to_dict()
    assert default.scores.ideal.outside > 1
    assert pool.scores.ideal.is_narrow
    beside = {system.system: system.mean_outside for system in pool.ranking.systems}
    assert beside == dict(zip(default.scores.systems, default.scores.mean.tolist(), strict=True))
    judged = probeval.evaluate(campaign, metric, **settings)
    classical = measure(campaign.runs, campaign.judgments, metric, scale=Scale.graded(2))
    np.testing.assert_allclose(judged.scores.mean, classical.values.mean(axis=1), atol=1e-12)
    assert judged.scores.ideal.outside is None
    assert not judged.scores.ideal.goes_on


def test_another_measure_of_one_evaluation_is_as_if_asked_for_alone(campaign):
    blind, settings = replace(campaign, judgments=None), {"scale": "graded:2", "model": "uniform"}
    for first_, second in (("AP@5", "nDCG@5"), ("nDCG@5", "AP@5")):
        alone = probeval.evaluate(blind, second, **settings).to_dict()
        assert probeval.evaluate(blind, first_, **settings).by(second).to_dict() == alone


def test_a_measure_that_reaches_below_the_pool_is_said_to(campaign):
    blind = replace(campaign, judgments=None)
    cut, whole = (probeval.evaluate(blind, "nDCG@5", depth=d, scale="graded:2", model="uniform") for d in (3, 5))
    assert cut.scores.ideal.goes_on
    assert not whole.scores.ideal.goes_on


def test_more_runs_widen_the_pool_and_are_not_ranked(campaign):
    two, every = first(campaign, 2), replace(campaign, judgments=None)
    narrow, wide, whole = (
        probeval.evaluate(runs, "nDCG@5", scale="graded:2", model="uniform", pool=pool)
        for runs, pool in ((two, None), (two, every.runs), (every, None))
    )
    assert wide.scores.systems == two.runs.systems
    assert wide.scores.pool == narrow.scores.pool == len(two.runs.pool)
    assert str(wide.scores.ideal) == (
        f"ideal: {len(every.runs.pool)} pairs of the pool, {len(two.runs.pool)} of these 2 runs"
    )
    # The same draws as with all systems evaluated.
    np.testing.assert_array_equal(wide.scores.joint.draws, whole.scores.joint.draws[:, :2])
    assert (wide.scores.mean < narrow.scores.mean).all()
    mine = {two.runs.pool.label(i) for i in range(len(two.runs.pool))}
    assert set(wide.next(1000, policy="random").pairs) == mine  # pairs of the others are not offered


def test_a_table_of_pairs_is_one_more_run(campaign, tmp_path):
    two = first(campaign, 2)
    (tmp_path / "pairs.csv").write_text("query,doc\nq1,unheard\nq1,unseen\n")
    evaluation = probeval.evaluate(two, "nDCG@5", scale="graded:2", model="uniform", pool=tmp_path / "pairs.csv")
    assert evaluation.scores.ideal.pairs == len(two.runs.pool) + 2
    (tmp_path / "pairs.csv").write_text("query,doc\nother,unheard\n")
    with pytest.raises(DataError, match="no query in common: the runs answer 'q1' and others, the pool 'other'"):
        probeval.evaluate(two, "nDCG@5", scale="graded:2", pool=tmp_path / "pairs.csv")


def test_joined_runs_keep_their_lists_and_teams():
    a = Runs.rows(["a", "a"], ["q", "q"], ["d1", "d2"]).with_teams({"a": "A"})
    b = Runs.rows(["b", "b", "b", "a"], ["q", "q", "p", "q"], ["d3", "d1", "d9", "d1"])
    both = a.joined(b)
    assert both.systems == ("a", "b")
    assert both.teams == ("A", "b")
    lists = both.to_frame().groupby("system")["doc"].apply(list).to_dict()
    assert lists == {"a": ["d1", "d2"], "b": ["d3", "d1"]}
