"""Pictures of simulations: what is drawn is what was computed."""

from __future__ import annotations

import numpy as np
import pytest

from probeval.plots import BLUE, ORANGE, plot_trajectories, plot_trajectory, save
from probeval.simulation import Simulation, SimulationProtocol, simulate


@pytest.fixture(scope="module")
def result(three) -> Simulation:
    protocol = SimulationProtocol.of(
        "DCG@5", policies=["mtc:uniform", "random:uniform"], seeds=3, batch=10, stop="budget=25",
        checkpoints=[0, 0.2, 0.5], until=0.5,
    )  # fmt: skip
    return simulate(three[0], protocol)


def test_steps_are_the_median_over_seeds_with_their_range(result):
    ax = plot_trajectory(result, "tau")
    lines = {line.get_label(): line for line in ax.lines}
    assert lines["mtc:uniform"].get_color() == ORANGE
    assert lines["random:uniform"].get_color() == BLUE
    drawn = lines["random:uniform"]
    taus = np.array([[s.tau for s in c.steps] for c in result.trajectories if c.policy == "random"])
    np.testing.assert_allclose(drawn.get_xdata(), [s.judged for s in result.trajectories[-1].steps])
    np.testing.assert_allclose(drawn.get_ydata(), np.median(taus, axis=0))
    shade = ax.collections[1].get_paths()[0].vertices
    assert (shade[:, 1].min(), shade[:, 1].max()) == pytest.approx((taus.min(), taus.max()))


def test_rings_are_at_the_stops(result):
    ax = plot_trajectory(result, "accuracy")
    rings = [line for line in ax.lines if line.get_marker() == "o"]
    stops = [c.stop for c in result.trajectories if c.policy == "random"]
    assert rings[1].get_xdata().tolist() == [25, 25, 25]
    np.testing.assert_allclose(rings[1].get_ydata(), [s.accuracy for s in stops])


def test_figures_of_checkpoints(result):
    ax = plot_trajectory(result, "mae")
    points = [[p.mae for p in c.points] for c in result.trajectories if c.policy == "mtc"]
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [p.judged for p in result.trajectories[0].points])
    np.testing.assert_allclose(ax.lines[0].get_ydata(), np.median(points, axis=0))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("judgments", "mean absolute error of the scores")


def test_six_figures_each_with_its_axis(result, tmp_path):
    top = plot_trajectories(result)
    axes = top.figure.axes
    assert [ax.get_ylabel() for ax in axes] == [
        "pairs of systems in the true order",
        "Kendall's tau with the true order",
        "tau among the 15 best systems",
        "AP correlation with the true order",
        "excess calibration error",
        "mean absolute error of the scores",
    ]
    for name in ("one.png", "two.png"):
        save(top, tmp_path / name)
    assert all(any(label.get_text() for label in ax.get_yticklabels()) for ax in axes)
    assert [ax.get_xlabel() for ax in axes] == ["", "", "", "judgments", "judgments", "judgments"]
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    assert [t.get_text() for t in top.figure.legends[0].get_texts()] == ["mtc:uniform", "random:uniform"]


def test_given_axes_are_drawn_on(result):
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert plot_trajectory(result, "confidence", ax=ax) is ax
    assert ax.get_ylabel() == "confidence"
