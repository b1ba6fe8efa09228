"""Validation end to end on small campaigns: what is judged, what is reported, and that it is repeatable."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from math import ceil

import numpy as np
import pytest

from probeval.data import Scale
from probeval.errors import DataError, MetricError, ModelError, ScoreError
from probeval.results import plain
from probeval.simulation import BINS, MARKS, Bins, Point, Validation, ValidationRun, validate
from tests.heard import Heard

CHECKPOINTS = (0, 0.1, 0.5, 1)


@pytest.fixture(scope="module")
def result(three) -> Validation:
    return validate(three, models=["independent"], depth=5, checkpoints=CHECKPOINTS, seeds=2, draws=100)


def test_what_was_run(result):
    assert result.checkpoints == (0.0, 0.1, 0.5, 1.0)
    assert [(t.collection, t.model, t.metric, t.seed) for t in result.validation_runs] == [
        (c, "independent", m, s) for c in ("one", "two", "three") for m in ("DCG@5", "nDCG@5") for s in (0, 1)
    ]
    for validation_run in result.validation_runs:
        assert (validation_run.systems, validation_run.depth, len(validation_run.points)) == (5, 5, 4)
        assert [p.judged for p in validation_run.points] == [ceil(f * validation_run.pool) for f in CHECKPOINTS]
        assert [p.fraction for p in validation_run.points] == [
            p.judged / validation_run.pool for p in validation_run.points
        ]


def test_with_everything_judged_all_is_known(result):
    for validation_run in result.validation_runs:
        last = validation_run.points[-1]
        assert (last.confidence, last.accuracy, last.accuracy_significant, last.tau) == (1, 1, 1, 1)
        assert (last.coverage, last.centred_coverage, last.calibration_p, last.level_z) == (1, 1, 1, 0)
        assert max(last.mae, last.rmse_difference, abs(last.calibration_error), abs(last.calibration_excess)) < 1e-12


def test_judgments_help(result):
    table = result.to_frame().groupby("checkpoint")[["tau", "mae", "confidence"]].mean()
    assert table["mae"].is_monotonic_decreasing
    assert max(table["tau"][0.0], table["tau"][0.1]) < table["tau"][0.5] < table["tau"][1.0] == 1


def test_judging_is_random_nested_and_shared_by_the_models(three, spy):
    other = type(spy)()
    models = {"a": spy, "b": other}
    validate(three, models=models, metrics=["P@5"], checkpoints=CHECKPOINTS, seeds=2, draws=10)
    assert [[c.name for c in fitted] for fitted in spy.fitted] == [["two", "three"], ["one", "three"], ["one", "two"]]
    assert len(spy.asked) == 3 * 2 * 4
    shown = [set() if c.judgments is None else set(c.judgments.pair.tolist()) for c in spy.asked]
    assert shown == [set() if c.judgments is None else set(c.judgments.pair.tolist()) for c in other.asked]
    for start in range(0, len(shown), 4):
        assert shown[start] < shown[start + 1] < shown[start + 2] < shown[start + 3]
        assert spy.asked[start].judgments is None
    assert shown[1] != shown[5]  # another seed, another order
    # Random: neither the first nor the last pairs.
    assert sorted(shown[1]) != list(range(len(shown[1])))


def test_what_nobody_judged_is_never_offered(three, spy, campaign):
    few = campaign("big", 6, systems=3, queries=60, depth=5)
    gone = np.array([7, 100])
    few = replace(few, judgments=few.judgments.take(~np.isin(few.judgments.pair, gone)))
    found = validate([few, three[0]], models={"spy": spy}, metrics=["P@5"], checkpoints=[0.99, 1], seeds=1, draws=10)
    assert len(spy.asked) == 4
    assert not {7, 100} & set(spy.asked[1].judgments.pair.tolist())
    validation_run = found.validation_runs[0]
    assert validation_run.points[-1].judged == validation_run.pool - 2


def test_one_model_does_not_change_another(three):
    arguments = {"metrics": ["DCG@5"], "checkpoints": [0, 0.2], "seeds": 1, "draws": 20}
    both = validate(three, models=["independent", "uniform"], **arguments)
    alone = validate(three, models=["independent"], **arguments)
    assert [t for t in both.validation_runs if t.model == "independent"] == list(alone.validation_runs)


def test_same_seed_same_bytes_another_seed_others(three):
    def run(seed: int) -> str:
        found = validate(three, models=["independent"], depth=5, checkpoints=[0, 0.2], seeds=2, seed=seed, draws=30)
        return json.dumps(found.to_dict())

    assert run(0) == run(0)
    assert run(0) != run(1)


@pytest.mark.slow
def test_processes_share_the_work(three):
    arguments = {"models": ["independent"], "depth": 5, "checkpoints": [0, 0.2], "seeds": 2, "draws": 30}
    one, two = (validate(three, n_jobs=n, **arguments) for n in (1, 2))
    for a, b in zip(one.validation_runs, two.validation_runs, strict=True):
        for left, right in zip(a.points, b.points, strict=True):
            assert plain(left) == pytest.approx(plain(right), nan_ok=True)


def test_halves(campaign):
    music = campaign("music", 9, scale=Scale.fine(), metadata=True)
    found = validate([music], models=["independent"], depth=5, checkpoints=[0, 0.2], seeds=2, draws=30)
    assert {(t.collection, t.seed) for t in found.validation_runs} == {("music", 0), ("music", 1)}
    pools = {t.seed: t.pool for t in found.validation_runs}
    assert sum(pools.values()) == len(music.runs.top(5).pool)
    assert {d["pool"] for d in found.to_dict()["campaigns"][0]["policies"]} == set(pools.values())


def test_campaigns_without_teams(three):
    bare = [replace(c, runs=replace(c.runs, teams=None)) for c in three]
    mixed = [bare[0], *three[1:]]
    for collections in (bare, mixed):
        found = validate(collections, models=["independent"], depth=5, checkpoints=[0, 0.2], seeds=1, draws=20)
        assert len(found.validation_runs) == 6


def test_progress_and_talk(three):
    heard = Heard()
    validate(
        three,
        models=["uniform"],
        metrics=["P@5"],
        checkpoints=[0],
        seeds=2,
        draws=10,
        reporter=heard,
    )
    assert [n for _, n in heard.work] == [3, 6]
    assert heard.said[0].startswith("one: 5 of 5 systems are judged to depth 5; 8 queries, ")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"models": ["independant"]}, ModelError, "No model 'independant'. Did you mean 'independent'?"),
        ({"metrics": []}, DataError, "at least one metric"),
        ({"metrics": ["P"]}, MetricError, "P needs a cutoff"),
        ({"seeds": 0}, DataError, "one seed"),
        ({"checkpoints": [0.1, 0.1]}, DataError, "rising shares"),
        ({"checkpoints": [0.2, 0.1]}, DataError, "rising shares"),
        ({"checkpoints": [0, 1.5]}, DataError, "from 0 to 1"),
    ],
)
def test_what_is_refused(three, arguments, error, message):
    with pytest.raises(error, match=message):
        validate(three, **{"models": ["uniform"], **arguments})


# ---- what is reported ----


def made(**figures: float) -> Point:
    """A point with these figures, everything else harmless."""
    base = dict.fromkeys(Point.__dataclass_fields__, 0.0) | {"judged": 0, "calibration_p": 0.5, "centred_coverage": 1.0}
    return Point(**{**base, "bins": Bins((0,) * 7, (0,) * 7, (0,) * 7), **figures})  # type: ignore[arg-type]


def validation_run(
    points: list[Point], *, campaign: str = "c", model: str = "m", metric: str = "P@5", seed: int = 0
) -> ValidationRun:
    return ValidationRun(campaign, model, metric, seed, 5, 100, 5, tuple(points))


def test_the_table_is_the_mean_over_seeds():
    parts = [
        validation_run([made(tau=t, judged=0), made(tau=t + 0.1, judged=5)], seed=s) for s, t in enumerate((0.2, 0.4))
    ]
    table = Validation((0.0, 0.05), tuple(parts)).to_frame()
    assert list(table.columns[:4]) == ["campaign", "model", "metric", "checkpoint"]
    assert table["checkpoint"].tolist() == [0.0, 0.05]
    np.testing.assert_allclose(table["tau"], [0.3, 0.4])
    assert table["judged"].tolist() == [0, 5]
    assert "seed" not in table


def test_reliability_pools_pairs():
    one = Bins((0, 0, 0, 0, 2, 0, 8), (0, 0, 0, 0, 1.86, 0, 7.96), (0, 0, 0, 0, 1, 0, 8))
    two = Bins((0, 0, 0, 0, 3, 0, 2), (0, 0, 0, 0, 2.73, 0, 1.99), (0, 0, 0, 0, 2, 0, 1.5))
    found = Validation(
        (0.0,), (validation_run([made(bins=one)], campaign="a"), validation_run([made(bins=two)], campaign="b"))
    )
    table = found.reliability()
    assert table[["low", "high", "pairs"]].to_numpy().tolist() == [[0.9, 0.95, 5], [0.99, 1.0, 10]]
    np.testing.assert_allclose(table["confidence"], [4.59 / 5, 0.995])
    np.testing.assert_allclose(table["accuracy"], [0.6, 0.95])
    by = found.reliability(by=("campaign", "checkpoint"))
    assert by["campaign"].tolist() == ["a", "a", "b", "b"]
    np.testing.assert_allclose(by["accuracy"], [0.5, 1.0, 2 / 3, 0.75])


def test_reliability_counts_every_pair_once_a_point(result):
    points = [p for t in result.validation_runs for p in t.points]
    assert result.reliability()["pairs"].sum() == sum(sum(p.bins.pairs) for p in points)
    assert set(zip(result.reliability()["low"], result.reliability()["high"], strict=True)) <= set(pairwise(BINS))


def figures(*validation_runs: ValidationRun) -> dict[str, tuple[float, bool]]:
    summary = Validation((0.0, 0.02, 0.05), validation_runs).marks()
    assert list(summary["figure"]) == list(MARKS)
    return {f: (v, h) for f, v, h in zip(summary["figure"], summary["value"], summary["holds"], strict=True)}


def test_the_summary_by_hand():
    points = [
        made(
            calibration_p=0.5, calibration_excess=0.05, centred_coverage=0.9, centred_coverage_null05=0.7, level_z=1.0
        ),
        made(
            calibration_p=0.005, calibration_excess=0.03, centred_coverage=0.8, centred_coverage_null05=0.7, level_z=-3
        ),
        made(
            calibration_p=0.2, calibration_excess=0.01, centred_coverage=0.7, centred_coverage_null05=0.7, level_z=2.0
        ),
    ]
    found = figures(validation_run(points))
    assert found["calibration_p >= .01"] == (pytest.approx(2 / 3), False)
    assert found["smallest calibration_p"] == (0.005, True)
    assert found["calibration_excess to 2%"] == (pytest.approx(0.04), False)
    assert found["calibration_excess from 5%"] == (pytest.approx(0.01), True)
    assert found["centred_coverage"] == (pytest.approx(0.8), False)
    assert found["centred_coverage over null"] == (pytest.approx(0.1), True)
    assert found["|level_z| <= 2.6"] == (pytest.approx(2 / 3), False)
    assert found["largest |level_z|"] == (3.0, True)


def test_the_worst_campaign_decides_over_the_null():
    good, bad = made(centred_coverage_null05=0.8), made(centred_coverage=0.75, centred_coverage_null05=0.8)
    found = figures(validation_run([good] * 3), validation_run([bad] * 3, campaign="d"))
    assert found["centred_coverage over null"] == (pytest.approx(-0.05), False)
    assert found["centred_coverage"] == (pytest.approx(0.875), True)


def test_models_are_summed_up_apart():
    validation_runs = (validation_run([made()] * 3), validation_run([made(level_z=9.0)] * 3, model="n"))
    summary = Validation((0.0, 0.02, 0.05), validation_runs).marks()
    assert summary[summary["figure"] == "largest |level_z|"]["holds"].tolist() == [True, False]


def test_the_document(result):
    document = result.to_dict()
    assert document["checkpoints"] == [0.0, 0.1, 0.5, 1.0]
    assert [(c["campaign"], c["metric"]) for c in document["campaigns"]] == [
        (c, m) for c in ("one", "two", "three") for m in ("DCG@5", "nDCG@5")
    ]
    first = document["campaigns"][0]
    assert first.keys() == {"campaign", "metric", "depth", "pool", "systems", "policies"}
    assert first["systems"] == 5
    assert [(p["policy"], p["model"], p["seed"]) for p in first["policies"]] == [
        ("random", "independent", 0),
        ("random", "independent", 1),
    ]
    policy = first["policies"][0]
    assert policy["stop"].keys() == {"reached", "judged", "fraction", "confidence", "accuracy", "tau"}
    assert [p["judged"] for p in policy["points"]] == [ceil(f * first["pool"]) for f in CHECKPOINTS]
    assert json.loads(json.dumps(document)) == document  # plain data alone
    assert len(document["summary"]) == len(MARKS)
    assert document["reliability"][0].keys() == {"model", "low", "high", "pairs", "confidence", "accuracy"}


def test_stop_and_effort_by_hand():
    points = [
        made(judged=0, confidence=0.8, tau=0.95),
        made(judged=10, confidence=0.96, tau=0.85, accuracy=0.9, fraction=0.1),
        made(judged=20, confidence=0.94, tau=0.92),
        made(judged=40, confidence=0.97, tau=0.9),
    ]
    document = plain(validation_run(points))
    assert document["stop"] == {
        "reached": True, "judged": 10, "fraction": 0.1, "confidence": 0.96, "accuracy": 0.9, "tau": 0.85,
    }  # fmt: skip
    assert document["judgments_to_tau90"] == 20
    never = plain(validation_run([points[0], replace(points[2], tau=0.5)]))
    assert never["judgments_to_tau90"] is None
    assert (never["stop"]["reached"], never["stop"]["judged"]) == (False, 20)


def test_validations_can_be_put_together():
    one, two = (Validation((0.0,), (validation_run([made()], campaign=c),)) for c in "ab")
    assert [t.collection for t in (one + two).validation_runs] == ["a", "b"]
    with pytest.raises(ScoreError, match="same checkpoints"):
        one + replace(two, checkpoints=(0.5,))
