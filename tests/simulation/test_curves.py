"""When a ranking is good for good, and what a trajectory says of itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from probeval.simulation import ReplaySetup, Simulation, Trajectory, TrajectoryStep, lasting, measure_point


def steps(**tau_at):
    """Steps with this tau at these numbers of judgments: ``steps(j0=.5, j10=.95)``."""
    return [TrajectoryStep(int(name[1:]), 0.5 + tau / 2, (1 + tau) / 2, tau) for name, tau in tau_at.items()]


def made(*rows, offered=1000, stop=None, seed=0, policy="gain", points=()):
    at = [TrajectoryStep(judged, confidence, (1 + tau) / 2, tau) for judged, confidence, tau in rows]
    return Trajectory(
        setup=ReplaySetup("DCG@5", pool=1010, offered=offered, systems=4), policy=policy, model="uniform", seed=seed,
        steps=tuple(at), points=tuple(points), rules=(), stop=None if stop is None else at[stop],
        reasons=() if stop is None else ("budget 2 >= 2",), order=(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("taus", "expected"),
    [
        ({"j0": 0.5, "j50": 0.92, "j100": 0.95, "j150": 0.91}, 50),
        ({"j0": 0.95, "j100": 0.95}, 0),
        ({"j0": 0.95, "j99": 0.95}, None),  # 99 are not 100
        ({"j0": 0.95, "j60": 0.89, "j70": 0.9, "j170": 0.9}, 70),  # .9 itself is enough
        ({"j0": 0.95, "j60": 0.89, "j70": 0.9, "j160": 0.9, "j170": 0.8}, None),
        ({"j0": 0.95, "j110": 0.2, "j220": 0.95}, None),  # what lies between two steps is not known to be good
        ({"j0": 0.1}, None),
        ({"j0": float("nan"), "j200": float("nan")}, None),
    ],
)
def test_good_for_a_hundred_more(taus, expected):
    assert lasting(steps(**taus)) == expected


def test_good_to_the_end_is_good_where_all_is_judged():
    short = steps(j0=0.2, j40=0.95, j50=1.0)
    assert lasting(short) is None
    assert lasting(short, exhausted=True) == 40
    assert lasting(steps(j0=0.95, j40=0.2), exhausted=True) is None
    assert lasting(short, tau=0.99, lasts=0) == 50


def test_all_that_could_be_judged_is_all():
    rows = [(0, 0.5, 0.0), (40, 0.9, 0.95), (50, 1.0, 1.0)]
    assert made(*rows, offered=50).judgments_to_tau90 == 40  # the other pairs of the pool have no judgment to give
    assert made(*rows, offered=60).judgments_to_tau90 is None


def test_where_confidence_is_reached():
    trajectory = made((0, 0.5, 0.0), (1, 0.91, 0.2), (2, 0.89, 0.3), (3, 0.96, 0.3))
    assert (trajectory.reaches(0.9), trajectory.reaches(0.95), trajectory.reaches(0.99)) == (1, 3, None)


def test_where_all_that_is_significant_is_right():
    def at(*shares):
        return replace(made(), steps=tuple(TrajectoryStep(10 * i, 0.5, 0.5, 0.0, s) for i, s in enumerate(shares)))

    assert at(0.5, 0.9, 1.0, 0.9).significant == 20
    assert at(0.5, 0.9).significant is None


def test_the_document_has_a_stop_whether_it_was_reached_or_not():
    rows = [(0, 0.5, 0.0), (101, 0.9, 0.6), (202, 0.92, 0.7)]
    reached = made(*rows, stop=1).to_dict()
    assert reached["stop"] == {
        "reached": True, "judged": 101, "fraction": 101 / 1010, "confidence": 0.9, "accuracy": 0.8, "tau": 0.6,
        "accuracy_p": None, "reasons": ["budget 2 >= 2"],
    }  # fmt: skip
    never = made(*rows).to_dict()
    assert never["stop"] == {
        "reached": False, "judged": 202, "fraction": 0.2, "confidence": 0.92, "accuracy": 0.85, "tau": 0.7,
        "accuracy_p": None, "reasons": [],
    }  # fmt: skip
    assert never["judgments_to_tau90"] is None
    assert (reached["ending"], never["ending"]) == ("stopped", "until")
    assert made(*rows, offered=202).to_dict()["ending"] == "exhausted"
    assert [document["judged"] for document in (reached, never)] == [202, 202]


def test_tables_have_a_row_a_course_batch_or_checkpoint(small):
    from probeval.relevance import FallbackModel, Uniform
    from probeval.scores import evaluate

    scores = evaluate(small.runs, FallbackModel([Uniform()]).predict(small.problem(depth=8)), "DCG@5")
    point = measure_point(scores, scores.mean, draws=scores.sample(10, np.random.default_rng(0)))
    one = made((0, 0.5, 0.0), (10, 0.9, 0.95), stop=1, points=[point, replace(point, judged=3)])
    two = made((0, 0.5, 0.0), seed=1, policy="random")
    result = Simulation((one, two))
    assert one.to_frame().columns.tolist() == [
        "judged", "confidence", "accuracy", "tau", "significant", "sd", "mae",
    ]  # fmt: skip
    assert one.to_frame()["judged"].tolist() == [0, 10]
    assert result.to_frame()[["policy", "model", "seed", "judged"]].to_numpy().tolist() == [
        ["gain", "uniform", 0, point.judged],
        ["gain", "uniform", 0, 3],
    ]
    summary = result.stops()
    assert summary["ending"].tolist() == ["stopped", "until"]
    assert summary["judged"].tolist() == [10, 0]
    assert one.label == "gain:uniform"
    document = result.to_dict()
    assert (document["metric"], document["pool"], document["systems"]) == ("DCG@5", 1010, 4)
    assert [p["seed"] for p in document["policies"]] == [0, 1]
