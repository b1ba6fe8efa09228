"""Plots of simulations: figures against the number of judgments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from probeval.plots.canvas import BLUE, GREY, ORANGE, clean, colours, entitle, legend_below, literal, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from probeval.simulation import Forecast, Simulation, Trajectory

__all__ = ["plot_forecast", "plot_trajectories", "plot_trajectory"]

FIGURES = {
    "accuracy": "pairs of systems in the true order",
    "tau": "Kendall's tau with the true order",
    "tau_top15": "tau among the 15 best systems",
    "tau_ap": "AP correlation with the true order",
    "calibration_excess": "excess calibration error",
    "mae": "mean absolute error of the scores",
}
STYLES = ("-", "--", ":", "-.")  # once the colours are used up


def plot_trajectory(simulation: Simulation, figure: str = "tau", *, ax: Axes | None = None) -> Axes:
    """Plot one figure against judgments, one line per policy and model: the median over seeds, with its range shaded.

    ``accuracy``, ``tau`` and ``confidence`` are shown after each batch, with a ring at the stop; the figures
    of :class:`probeval.simulation.Point` at the checkpoints. Without ``ax``, a legend is below.
    """
    given, ax = ax, new_axes(ax, 6.4, 4.2)
    groups: dict[str, list[Trajectory]] = {}
    for trajectory in simulation.trajectories:
        groups.setdefault(trajectory.label, []).append(trajectory)
    for i, (colour, (label, trajectories)) in enumerate(zip(colours(), groups.items(), strict=False)):
        lines = [_line(trajectory, figure) for trajectory in trajectories]
        grid = np.unique(np.concatenate([x for x, _ in lines]))
        values = np.array([np.interp(grid, x, y, right=np.nan) for x, y in lines])
        known = ~np.isnan(values).all(axis=0)
        grid, values = grid[known], values[:, known]
        ax.plot(grid, np.nanmedian(values, axis=0), color=colour, ls=STYLES[i // 7 % 4], lw=1.6, label=literal(label))
        if len(trajectories) > 1:
            low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
            ax.fill_between(grid, low, high, color=colour, alpha=0.15, lw=0)
        if figure in ("accuracy", "tau", "confidence"):
            stops = [c.stop for c in trajectories if c.stop is not None]
            ax.plot([s.judged for s in stops], [getattr(s, figure) for s in stops], "o", mfc="white", mec=colour, ms=7)
    if figure == "calibration_excess":
        ax.axhline(0.0, color=GREY, lw=1, ls="--")
    ax.set_xlabel("judgments")
    ax.set_ylabel(FIGURES.get(figure, figure.replace("_", " ")))
    clean(ax)
    if given is None:
        legend_below(ax)
    return ax


def plot_trajectories(simulation: Simulation) -> Axes:
    """Plot accuracy, tau, tau at the top, AP correlation, calibration and error against judgments; a ring is a stop."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.6, 6.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 3, sharex=True)
    for ax, name in zip(axes.ravel(), FIGURES, strict=True):
        plot_trajectory(simulation, name, ax=ax)
    for ax in axes[0]:
        ax.set_xlabel("")
    legend_below(axes[0, 0], columns=4)
    setup = simulation.setup
    title = f"{literal(setup.metric)}, {setup.systems} systems, {setup.pool:,} pairs"
    figure.suptitle(title, fontsize=10, x=0.02, ha="left")
    top: Axes = axes[0, 0]
    return top


def plot_forecast(
    forecast: Forecast, *, target: float | None = None, level: float = 0.9, ax: Axes | None = None
) -> Axes:
    """Plot the forecast of mean confidence against judgments: its median, and its ``level`` band."""
    ax = new_axes(ax, 6.4, 4.0)
    table = forecast.to_frame(level=level)
    ax.fill_between(table["judged"], table["lower"], table["upper"], color=BLUE, alpha=0.2, lw=0)
    ax.plot(table["judged"], table["confidence"], color=BLUE, lw=1.8)
    if target is not None:
        needed = forecast.needed(target, level=level)
        ax.axhline(target, color=GREY, lw=1, ls="--")
        ax.plot([needed["lower"], needed["upper"]], [target, target], color=ORANGE, lw=3, solid_capstyle="butt")
        ax.plot([needed["judgments"]], [target], "o", color=ORANGE, ms=7)
    ax.set_xlabel("judgments")
    ax.set_ylabel("mean confidence")
    entitle(ax, f"Expected trajectory over {forecast.pool:,} pairs, {level:.0%} band")
    clean(ax)
    return ax


def _line(trajectory: Trajectory, figure: str) -> tuple[list[float], list[float]]:
    rows = trajectory.steps if figure in ("accuracy", "tau", "confidence") else trajectory.points
    return [float(r.judged) for r in rows], [float(getattr(r, figure)) for r in rows]
