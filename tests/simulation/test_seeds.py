"""Figures over seeds, and policies compared seed by seed."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from probeval.simulation import Simulation, SimulationProtocol, Trajectory, TrajectoryStep, simulate


def trajectory(policy: str, seed: int, stop: int | None, tau90: int | None) -> Trajectory:
    """A trajectory that stops, and stays at tau .9, after these numbers of judgments."""
    ends = 1000
    steps = tuple(
        TrajectoryStep(n, 0.5 + n / 2000, 0.8, 0.95 if tau90 is not None and n >= tau90 else 0.5)
        for n in range(0, ends + 1, 10)
    )
    at = None if stop is None else next(s for s in steps if s.judged == stop)
    return Trajectory(
        policy=policy, model="uniform", metric="P@5", seed=seed, pool=2000, offered=2000, systems=4, steps=steps,
        points=(), rules=(), stop=at, reasons=(), order=(),
    )  # fmt: skip


STOPS = {"gain": [100, 140, 90, None], "random": [200, 180, 110, 300], "depth": [100, 140, 90, 300]}
TAUS = {"gain": [300, 320, 280, 310], "random": [None, 420, 480, 380], "depth": [None, None, None, None]}


@pytest.fixture
def result() -> Simulation:
    return Simulation(
        tuple(
            trajectory(policy, seed, stop, tau)
            for policy in STOPS
            for seed, (stop, tau) in enumerate(zip(STOPS[policy], TAUS[policy], strict=True))
        )
    )


def test_means_over_the_seeds_that_got_there(result):
    rows = result.over_seeds().set_index(["policy", "figure"])
    stops = rows.loc["gain", "judgments_at_stop"]
    assert (stops.seeds, stops.reached, stops["mean"]) == (4, 3, 110.0)
    assert (stops.lower, stops.upper) == pytest.approx(
        stats.t.interval(0.95, 2, loc=110, scale=stats.sem([100, 140, 90]))
    )
    assert rows.loc["gain", "judgments_to_tau90"]["mean"] == np.mean(TAUS["gain"])
    assert rows.loc["random", "confidence_at_stop"]["mean"] == pytest.approx(0.5 + np.mean(STOPS["random"]) / 2000)
    never = rows.loc["depth", "judgments_to_tau90"]
    assert never.reached == 0
    assert np.isnan([never["mean"], never.lower, never.upper]).all()
    narrow = result.over_seeds(level=0.5).set_index(["policy", "figure"]).loc["gain", "judgments_at_stop"]
    assert narrow.upper < stops.upper


def test_policies_are_compared_seed_by_seed(result):
    rows = result.compare_policies().set_index(["policy", "other", "figure"])
    assert len(rows) == 3 * 2
    tau = rows.loc["gain:uniform", "random:uniform", "judgments_to_tau90"]
    differences = [320 - 420, 280 - 480, 310 - 380]
    assert (tau.seeds, tau.difference) == (3, pytest.approx(np.mean(differences)))
    assert (tau.lower, tau.upper) == pytest.approx(
        stats.t.interval(0.95, 2, loc=np.mean(differences), scale=stats.sem(differences))
    )
    assert (tau.fewer, tau.more, tau.verdict) == (4, 0, "undecided")  # random never got there with seed 0
    stop = rows.loc["gain:uniform", "random:uniform", "judgments_at_stop"]
    assert (stop.seeds, stop.fewer, stop.more) == (3, 3, 1)
    same = rows.loc["gain:uniform", "depth:uniform", "judgments_at_stop"]
    assert (same.difference, same.fewer, same.more, same.verdict) == (0, 0, 1, "undecided")
    assert rows.loc["random:uniform", "depth:uniform", "judgments_at_stop"].verdict == "undecided"
    assert np.isnan(rows.loc["random:uniform", "depth:uniform", "judgments_to_tau90"].difference)


def test_a_difference_that_is_certain():
    pairs = [("gain", [100, 110, 120, 130]), ("random", [200, 220, 210, 240])]
    made = [trajectory(policy, s, stop, 500) for policy, stops in pairs for s, stop in enumerate(stops)]
    first, back = (Simulation(tuple(t)).compare_policies() for t in (made, made[4:] + made[:4]))
    assert (first.verdict[0], back.verdict[0]) == ("fewer", "more")
    assert first.difference[0] == -back.difference[0] == -102.5


def test_without_all_seeds_the_signs_decide():
    made = [trajectory("gain", seed, 100, 300) for seed in range(6)]
    made += [trajectory("random", seed, None if seed else 200, None) for seed in range(6)]
    stop, tau = (row for _, row in Simulation(tuple(made)).compare_policies().iterrows())
    assert (stop.seeds, stop.fewer, stop.verdict) == (1, 6, "fewer")
    assert (tau.seeds, tau.fewer, tau.verdict) == (0, 6, "fewer")


def test_they_are_in_the_document_and_the_tables(result, three):
    document = json.loads(json.dumps(result.to_dict()))
    assert len(document["over_seeds"]) == 15
    assert document["over_seeds"][-4]["mean"] is None
    assert document["comparisons"][0]["verdict"] == "undecided"
    titles = [view.title for view in result.tables()[2:]]
    assert titles == [
        "Means over 4 seeds, 95% intervals",
        "Judgments of policy less those of other, 95% intervals",
    ]
    assert "judgments_at_stop" in result.tables()[2].text()
    alone = Simulation(result.trajectories[:4])
    assert len(alone.tables()) == 3
    assert alone.to_dict()["comparisons"] == []
    one = Simulation(tuple(replace(t, seed=0) for t in result.trajectories[::4]))
    assert len(one.tables()) == 2  # nothing to average
    protocol = SimulationProtocol.of("DCG@5", policies=["mtc:uniform"], batch=10, checkpoints=(), until=0.3, seeds=2)
    assert simulate(three[0], protocol).over_seeds()["seeds"].tolist() == [2] * 5
