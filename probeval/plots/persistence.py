"""Plots of rank-biased precision by its persistence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from probeval.plots.canvas import BLUE, GREY, ORANGE, clean, colours, legend_below, literal, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from probeval.studies import PersistenceStudy

__all__ = ["plot_persistence", "plot_persistence_queries"]


def plot_persistence(study: PersistenceStudy, *, ax: Axes | None = None) -> Axes:
    """Plot the tau of RBP with every measure, its mean score and its residual, by the expected depth of its users.

    The axis of depth is logarithmic (Yang 2019, Figures 4.1 and 4.2).
    """
    given, ax = ax, new_axes(ax, 6.4, 4.2)
    table = study.curve_frame()
    for i, (metric, part) in enumerate(table.groupby("metric", sort=False)):
        if not i:
            ax.plot(part["depth"], part["score"], color=BLUE, lw=1.4, ls="--", label="mean score of RBP")
            ax.plot(part["depth"], part["residual"], color=ORANGE, lw=1.4, ls="--", label="mean residual of RBP")
        colour = list(zip(range(i + 3), colours(), strict=False))[-1][1]
        ax.plot(part["depth"], part["tau"], color=colour, lw=1.7, label=f"tau with {literal(metric)}")
        best = next(one for one in study.closest if one.metric == metric)
        ax.plot([best.depth], [best.tau], "o", color=colour, ms=5)
    ax.set_xscale("log")
    ticks = [d for d in (2, 5, 10, 20, 50, 100, 200, 500, 1000) if d <= table["depth"].max() * 1.001]
    ax.set_xticks(ticks, labels=[f"{d}\np {1 - 1 / d:g}" for d in ticks])
    ax.minorticks_off()
    ax.set_xlabel("expected depth 1/(1 - p), and persistence p")
    ax.set_ylabel("tau, or share of the greatest score")
    clean(ax)
    if given is None:
        legend_below(ax)
    return ax


def plot_persistence_queries(study: PersistenceStudy, *, ax: Axes | None = None) -> Axes:
    """Plot the closest persistence of every query against its number of relevant documents (Yang 2019, Figure 4.3)."""
    given, ax = ax, new_axes(ax, 6.4, 4.2)
    table = study.queries_frame()
    for colour, (metric, part) in zip(colours(), table.groupby("metric", sort=False), strict=False):
        ax.plot(
            np.maximum(part["relevant"], 1),
            part["persistence"],
            "o",
            color=colour,
            ms=4,
            alpha=0.6,
            label=literal(metric),
        )
    ax.set_xscale("log")
    ax.set_xlabel("relevant documents of the query")
    ax.set_ylabel("persistence of the closest RBP")
    clean(ax)
    ax.grid(axis="y", color=GREY, alpha=0.3, lw=0.6)
    if given is None:
        legend_below(ax)
    return ax
