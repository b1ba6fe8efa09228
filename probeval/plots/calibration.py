"""Plots of a validation: the calibration of stated confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from probeval.plots.canvas import GREY, clean, colours, entitle, legend_below, listed, literal, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from probeval.simulation import Validation

__all__ = ["plot_checkpoints", "plot_reliability"]


def plot_reliability(validation: Validation, *, ax: Axes | None = None) -> Axes:
    """Plot accuracy against stated confidence by bins of pairs of systems; the diagonal is perfect calibration.

    One line per model, over all campaigns, measures, checkpoints and seeds; larger dots have more pairs.
    """
    ax = new_axes(ax, 5.2, 5.2)
    table = validation.reliability()
    ax.plot([0.5, 1.0], [0.5, 1.0], color=GREY, lw=1, ls="--", label="perfect calibration")
    lowest = min(0.5, float(table["accuracy"].min()))
    for colour, (model, bins) in zip(colours(), table.groupby("model", sort=False), strict=False):
        share = bins["pairs"] / bins["pairs"].sum()
        ax.plot(bins["confidence"], bins["accuracy"], "-", color=colour, lw=1.5)
        ax.scatter(bins["confidence"], bins["accuracy"], s=20 + 300 * share, color=colour, lw=0, label=literal(model))
    ax.set_xlim(0.49, 1.02)
    ax.set_ylim(lowest - 0.02, 1.02)
    ax.set_xlabel("stated confidence that one system is better")
    ax.set_ylabel("share of these pairs that are in the true order")
    collections = list(dict.fromkeys(one.collection for one in validation.validation_runs))
    entitle(ax, listed(collections), size=9)
    legend = ax.legend(loc="upper left", frameon=False)
    for handle in legend.legend_handles[1:]:
        handle.set_sizes([50])  # type: ignore[union-attr]
    clean(ax)
    return ax


def plot_checkpoints(validation: Validation, figure: str = "calibration_excess", *, ax: Axes | None = None) -> Axes:
    """Plot a figure of :class:`probeval.simulation.Point` against the judged share of the pool.

    One line per model and campaign, over measures and seeds. Without ``ax``, a legend is below.
    """
    given, ax = ax, new_axes(ax, 6.4, 5.0)
    table = validation.to_frame().groupby(["model", "campaign", "checkpoint"], sort=False)[figure].mean()
    x = np.arange(len(validation.checkpoints))
    for colour, (model, rows) in zip(colours(), table.groupby(level="model", sort=False), strict=False):
        for mark, (campaign, line) in zip(
            "os^Dv<>P*X" * len(rows), rows.groupby(level="campaign", sort=False), strict=False
        ):
            ax.plot(x, line.to_numpy(), f"-{mark}", color=colour, lw=1.2, ms=5, label=literal(f"{model}, {campaign}"))
    if figure in ("calibration_excess", "level_z"):
        ax.axhline(0.0, color=GREY, lw=1, ls="--")
    ax.set_xticks(x, [f"{100 * c:g}%" for c in validation.checkpoints])
    ax.set_xlabel("share of the pool judged, in random order")
    ax.set_ylabel(figure.replace("_", " "))
    clean(ax)
    if given is None:
        legend_below(ax)
    ax.grid(axis="y", color=GREY, alpha=0.3, lw=0.6)
    return ax
