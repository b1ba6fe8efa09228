"""Plots of the progress of judging: confidence and reliability against judgments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probeval.plots.canvas import BLUE, GREEN, GREY, ORANGE, clean, new_axes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["plot_milestones"]


def plot_milestones(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    r"""Plot confidence, :math:`E\rho^2` and :math:`\Phi` against judgments, the last two with bands.

    ``table`` has one row per milestone (:func:`probeval.reports.milestone_table`).
    """
    ax = new_axes(ax, 6.4, 3.6)
    x = table["judged"]
    lines = (("confidence", "mean confidence", ORANGE), ("erho2", "E ρ²", BLUE), ("phi", "Φ", GREEN))
    for name, label, colour in lines:
        ax.plot(x, table[name], "-o", color=colour, ms=4, lw=1.8, label=label)
        if f"{name}_lower" in table:
            ax.fill_between(x, table[f"{name}_lower"], table[f"{name}_upper"], color=colour, alpha=0.15, lw=0)
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("pairs judged")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 1.14), ncol=3, frameon=False, fontsize=9)
    clean(ax)
    ax.grid(axis="y", color=GREY, alpha=0.3, lw=0.6)
    return ax
