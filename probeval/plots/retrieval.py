"""Plots of retrieved documents: precision against recall, and ROC curves."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from probeval.plots.canvas import GREY, clean, colours, entitle, legend_below, new_axes, shorten

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from probeval.arrays import Floats
    from probeval.studies import Curves

__all__ = ["plot_precision_recall", "plot_roc"]

NAMED = 6  # systems with a colour of their own, the best; others are thin and grey


def plot_precision_recall(curves: Curves, *, ax: Axes | None = None) -> Axes:
    """Plot the interpolated precision of every system at eleven levels of recall, as means over queries.

    The six systems with the highest mean over the levels have names and colours.
    """
    ax = _lines(curves.precision_frame(), "recall", "precision", curves.interpolated.mean(axis=(1, 2)), ax)
    entitle(ax, f"Interpolated precision, means over {len(curves.queries)} queries; relevant from grade {curves.rel:g}")
    return ax


def plot_roc(curves: Curves, *, ax: Axes | None = None) -> Axes:
    """Plot the ROC curve of every system over the judged documents, rank by rank, as means over queries.

    The six systems with the largest area have names and colours.
    """
    area = curves.to_frame()["area"].to_numpy(dtype=float)
    table = curves.roc_frame()
    ax = _lines(table, "false_positive_rate", "true_positive_rate", area, ax)
    furthest = float(table["false_positive_rate"].max())
    ax.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls=":", label="_chance")
    ax.set_xlim(-0.01, min(1.02, 1.1 * furthest + 0.01))
    entitle(ax, f"ROC to rank {curves.depth}, means over {len(curves.queries)} queries; dotted: chance")
    return ax


def _lines(table: pd.DataFrame, x: str, y: str, worth: Floats, ax: Axes | None) -> Axes:
    """One line per system, the best in front and in colour."""
    ax = new_axes(ax, 6.4, 5.2)
    names = table["system"].unique()
    order = np.argsort(-worth, kind="stable")
    bright = (colour for colour in colours() if colour != GREY)
    paint = dict(zip(order[:NAMED], islice(bright, NAMED), strict=False))
    short = shorten(names)
    others = [system for system in order if system not in paint]
    for system in others:
        rows = table[table["system"] == names[system]]
        label = f"{len(others)} other{'s' * (len(others) > 1)}" if system == others[-1] else None
        ax.plot(rows[x], rows[y], color=GREY, lw=0.6, alpha=0.5, label=label)
    for system, colour in paint.items():
        rows = table[table["system"] == names[system]]
        ax.plot(rows[x], rows[y], color=colour, lw=1.4, label=short[system])
    ax.set_xlabel(x.replace("_", " "))
    ax.set_ylabel(y.replace("_", " "))
    ax.set_ylim(-0.02, 1.02)
    clean(ax)
    legend_below(ax)
    return ax
