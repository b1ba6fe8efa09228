"""Plots of held-out campaigns: figures along the judging, and figures of single campaigns side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probeval.plots.canvas import GREY, clean, colours, legend_below, literal, new_axes, shorten

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["plot_along", "plot_by_campaign"]


def plot_along(
    table: pd.DataFrame, figure: str, *, by: str, label: str, target: float | None = None, ax: Axes | None = None
) -> Axes:
    """Plot a figure against the judged share: the mean of each group, and a thin line for each campaign and measure.

    ``table`` has one row per ``campaign``, ``measure``, group, seed and ``share``; ``by`` is the column of the groups.
    """
    ax = new_axes(ax, 6.4, 3.8)
    for (name, part), colour in zip(table.groupby(by, sort=False), colours(), strict=False):
        for _, one in part.groupby(["campaign", "measure"], sort=False):
            mean = one.groupby("share")[figure].mean()
            ax.plot(mean.index, mean, color=colour, lw=0.6, alpha=0.3)
        means = part.groupby("share")[figure].mean()
        ax.plot(means.index, means, "-o", color=colour, ms=4, lw=2, label=literal(name))
    if target is not None:
        ax.axhline(target, color=GREY, lw=0.8, ls="--")
    ax.xaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
    ax.set_xlabel("judged share of the pool")
    ax.set_ylabel(label)
    clean(ax)
    ax.grid(axis="y", color=GREY, alpha=0.3, lw=0.6)
    legend_below(ax)
    return ax


def plot_by_campaign(table: pd.DataFrame, columns: dict[str, str], *, label: str, ax: Axes | None = None) -> Axes:
    """Plot figures of campaigns side by side: one row per campaign, one mark per column, which has a name each."""
    ax = new_axes(ax, 6.4, 1.2 + 0.26 * len(table))
    places = range(len(table))
    for (column, name), colour in zip(columns.items(), colours(), strict=False):
        ax.plot(table[column], places, "o", color=colour, ms=6, label=literal(name), alpha=0.9)
    ax.set_yticks(places, shorten(table["campaign"]), fontsize=8)
    ax.invert_yaxis()
    ax.set_xlabel(label)
    clean(ax)
    ax.grid(axis="y", color=GREY, alpha=0.2, lw=0.6)
    legend_below(ax)
    return ax
