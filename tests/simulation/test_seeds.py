"""Figures over seeds, and policies compared seed by seed."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logit

from probeval.simulation import ReplaySetup, Simulation, SimulationProtocol, Trajectory, TrajectoryStep, simulate
from probeval.simulation.seeds import mean_interval


def trajectory(policy: str, seed: int, stop: int | None, tau90: int | None) -> Trajectory:
    """A trajectory that stops, and stays at tau .9, after these numbers of judgments."""
    ends = 1000
    steps = tuple(
        TrajectoryStep(n, 0.5 + n / 2000, 0.8, 0.95 if tau90 is not None and n >= tau90 else 0.5)
        for n in range(0, ends + 1, 10)
    )
    at = None if stop is None else next(s for s in steps if s.judged == stop)
    return Trajectory(
        setup=ReplaySetup("P@5", pool=2000, offered=2000, systems=4), policy=policy, model="uniform", seed=seed,
        steps=steps, points=(), rules=(), stop=at, reasons=(), order=(),
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
    share, spread = 110 / 2000, stats.sem([100, 140, 90]) / 2000
    ends = stats.t.interval(0.95, 2, loc=logit(share), scale=spread / (share * (1 - share)))
    assert (stops.lower, stops.upper) == pytest.approx(2000 * expit(np.array(ends)))
    assert rows.loc["gain", "judgments_to_tau90"]["mean"] == np.mean(TAUS["gain"])
    assert rows.loc["random", "confidence_at_stop"]["mean"] == pytest.approx(0.5 + np.mean(STOPS["random"]) / 2000)
    never = rows.loc["depth", "judgments_to_tau90"]
    assert never.reached == 0
    assert np.isnan([never["mean"], never.lower, never.upper]).all()
    narrow = result.over_seeds(level=0.5).set_index(["policy", "figure"]).loc["gain", "judgments_at_stop"]
    assert narrow.upper < stops.upper


RANGES = {"judged": (0, 2000), "accuracy": (0, 1), "tau": (-1, 1)}


@pytest.mark.parametrize(("low", "high"), RANGES.values(), ids=RANGES)
@pytest.mark.parametrize("share", [(0.99, 1.0), (0.02, 0.9), (0.0, 0.001, 0.0), (1.0,) * 4, (0.0, 1.0), (0.3, 0.3)])
def test_an_interval_stays_in_the_range_of_its_figure(share, low, high):
    values = [low + (high - low) * one for one in share]
    mean, lower, upper = mean_interval(values, low, high)
    assert mean == pytest.approx(np.mean(values))
    assert low <= lower <= mean <= upper <= high
    assert (lower < mean < upper) == (len(set(values)) > 1)
    flipped = mean_interval([low + high - value for value in values], low, high)
    assert (low + high - upper, low + high - lower) == pytest.approx(flipped[1:])


def test_fisher_z_for_a_correlation_and_plain_t_where_the_range_is_far():
    taus = np.array([0.93, 0.97, 0.9, 0.95])
    error = stats.sem(taus) / (1 - taus.mean() ** 2)  # of the inverse hyperbolic tangent
    expected = np.tanh(stats.t.interval(0.95, 3, loc=np.arctanh(taus.mean()), scale=error))
    assert mean_interval(taus.tolist(), -1, 1)[1:] == pytest.approx(tuple(expected))
    values = [0.5, 0.501, 0.499]
    assert mean_interval(values, 0, 1)[1:] == pytest.approx(
        stats.t.interval(0.95, 2, loc=0.5, scale=stats.sem(values)), abs=1e-5
    )
    assert mean_interval([], 0, 1) == (None, None, None)
    assert mean_interval([1.0], 0, 1) == (1.0, None, None)


@pytest.mark.parametrize("seeds", [2, 3, 5, 10])
@pytest.mark.parametrize(("a", "b"), [(50, 5.5), (22, 1), (1, 22), (5, 5)])
def test_the_interval_holds_the_mean_as_often_as_it_says(seeds, a, b):
    n = 2000
    values = np.random.default_rng(seeds).beta(a, b, size=(n, seeds))
    true = a / (a + b)
    held = np.mean([lower <= true <= upper for _, lower, upper in (mean_interval(v, 0, 1) for v in values)])
    # Three binomial errors; .02 for the skew of the most skewed figure, of which the plain t interval lacks .04 to .06.
    allowed = 3 * np.sqrt(0.95 * 0.05 / n) + (0.02 if min(a, b) == 1 else 0.0)
    assert 0.95 - allowed <= held <= 0.95 + allowed
    plain = stats.t.interval(0.95, seeds - 1, loc=values.mean(axis=1), scale=stats.sem(values, axis=1))
    assert held >= np.mean((plain[0] <= true) & (true <= plain[1]))


def test_a_difference_is_at_most_the_number_of_pairs():
    made = [trajectory("gain", 0, 100, 10), trajectory("gain", 1, 900, 10)]
    made += [trajectory("random", seed, 600, 10) for seed in range(2)]
    row = Simulation(tuple(made)).compare_policies().iloc[0]
    assert (row.difference, row.lower, row.upper, row.verdict) == (-100, -2000, 2000, "undecided")


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
        "Judgments of policy minus those of other, 95% intervals",
    ]
    assert "judgments_at_stop" in result.tables()[2].text()
    alone = Simulation(result.trajectories[:4])
    assert len(alone.tables()) == 3
    assert alone.to_dict()["comparisons"] == []
    one = Simulation(tuple(replace(t, seed=0) for t in result.trajectories[::4]))
    assert len(one.tables()) == 2  # nothing to average
    protocol = SimulationProtocol.of("DCG@5", policies=["mtc:uniform"], batch=10, checkpoints=(), until=0.3, seeds=2)
    assert simulate(three[0], protocol).over_seeds()["seeds"].tolist() == [2] * 5
