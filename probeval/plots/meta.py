"""Plots of meta-evaluations: tests by level of significance, and the reliability of measures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from probeval.plots.canvas import BLUE, GREY, ORANGE, clean, colours, entitle, legend_below, literal, new_axes, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from probeval.studies import MetaCollection, MetaStudy

__all__ = ["plot_measures", "plot_meta", "plot_rates"]

STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))  # one per test: lines of tests often coincide
RATES = {
    "discrimination": "pairs of systems that differ",
    "nonsignificance": "not significant on a half",
    "success": "confirmed by the other half",
    "conflict": "contradicted by the other half",
}
ROW = 0.24  # inches per measure


def plot_rates(part: MetaCollection, rate: str = "discrimination", *, ax: Axes | None = None) -> Axes:
    """Plot a rate of every test against alpha, all measures and scales together.

    Conflicts have the diagonal beside them, on which a test is exact, and both axes are logarithmic.
    Without ``ax``, a legend is below.
    """
    given, ax = ax, new_axes(ax, 6.4, 3.6)
    table = part.levels_frame(rate)
    for colour, style, test in zip(colours(), STYLES, table.columns[1:], strict=False):
        ax.plot(table["alpha"], table[test], color=colour, ls=style, lw=1.6, label=literal(test))
    if rate == "conflict":
        ax.plot(table["alpha"], table["alpha"], color=GREY, lw=1, ls=":")
        top = float(table["alpha"].max())
        ax.annotate("exact", (top, top), (-4, 0), textcoords="offset points", color=GREY, fontsize=8, ha="right")
        if len(table) > 1 and np.nanmin(table.to_numpy()) > 0:
            _logarithmic(ax)
    ax.set_xlabel("alpha")
    ax.set_ylabel(RATES.get(rate, rate.replace("_", " ")))
    clean(ax)
    ax.grid(axis="y", color=GREY, alpha=0.3, lw=0.6)
    if given is None:
        entitle(ax, part.campaign)
        legend_below(ax, columns=6)
    return ax


def _logarithmic(ax: Axes) -> None:
    """Make both axes logarithmic, with plain numbers at 1, 2 and 5."""
    limits = ax.get_xlim(), ax.get_ylim()
    lines = [np.asarray(line.get_data()) for line in ax.lines]
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.minorticks_off()
    for axis, i, (_, high) in ((ax.xaxis, 0, limits[0]), (ax.yaxis, 1, limits[1])):
        low = min(float(np.nanmin(data[i])) for data in lines) / 1.1
        decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
        ticks = [t for k in decades for t in (10.0**k, 2 * 10.0**k, 5 * 10.0**k) if low <= t <= high]
        axis.set_ticks(ticks, labels=[f"{t:g}" for t in ticks])
    ax.set_xlim(min(float(np.nanmin(data[0])) for data in lines) / 1.1, limits[0][1])


def plot_measures(part: MetaCollection, *, ax: Axes | None = None) -> Axes:
    """Plot the reliability of every measure and scale, with intervals: of differences (E rho^2) and of scores (Phi)."""
    scales = {measure.scale for measure in part.measures}
    names = [m.metric if len(scales) == 1 else f"{m.metric}, {m.scale}" for m in part.measures]
    given, ax = ax, new_axes(ax, 6.4, 1.3 + ROW * max(len(names), 4))
    rows = np.arange(len(names))
    for shift, colour, symbol, found in (
        (-0.14, BLUE, "E ρ²", [m.erho2 for m in part.measures]),
        (0.14, ORANGE, "Φ", [m.phi for m in part.measures]),
    ):
        ax.hlines(rows + shift, [e.lower for e in found], [e.upper for e in found], color=colour, lw=1.4, alpha=0.6)
        ax.plot([e.value for e in found], rows + shift, "o", color=colour, ms=4.5, label=symbol)
    ax.set_yticks(rows, shorten(names), fontsize=8)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlabel("reliability: differences E ρ², scores Φ")
    clean(ax)
    if given is None:
        entitle(ax, part.campaign)
        legend_below(ax)
    else:
        ax.legend(frameon=False, fontsize=8, loc="best")
    return ax


def plot_meta(study: MetaStudy) -> Axes:
    """Plot discrimination and conflicts of tests by alpha, and the reliability of measures: a row per campaign."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    most = max(len(part.measures) for part in study.campaigns)
    height = max(3.0, 0.9 + ROW * most)
    figure = Figure(figsize=(12.4, height * len(study.campaigns) + 0.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(study.campaigns), 3, squeeze=False)
    for row, part in zip(axes, study.campaigns, strict=True):
        plot_rates(part, "discrimination", ax=row[0])
        plot_rates(part, "conflict", ax=row[1])
        plot_measures(part, ax=row[2])
        entitle(row[0], part.campaign)
    legend_below(axes[0, 1], columns=6)
    top: Axes = axes[0, 0]
    return top
