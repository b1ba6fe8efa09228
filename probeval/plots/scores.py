"""Plots of an evaluation: the ranking, its pairs, and the difference of two systems."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from probeval.plots.canvas import BLUE, CROWDED, GREY, ORANGE, clean, entitle, heat_map, literal, new_axes, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from probeval.scores import Ranking, TwoSystems

__all__ = ["plot_difference", "plot_pairs", "plot_ranking"]


def plot_ranking(ranking: Ranking, *, level: float = 0.95, ax: Axes | None = None) -> Axes:
    """Plot mean scores with intervals, best on top; bands group systems that do not differ from their best."""
    table = ranking.at(level).to_frame()
    n = len(table)
    row, size = (0.22, 8) if n <= CROWDED else (0.15, 7)
    ax = new_axes(ax, 6.4, 1.2 + row * n)
    y = np.arange(n)
    group = table["group"].to_numpy()
    for number in np.unique(group):
        rows = y[group == number]
        if number % 2:
            ax.axhspan(rows.min() - 0.5, rows.max() + 0.5, color=GREY, alpha=0.12, lw=0)
    mean = table["mean"].to_numpy()
    ax.hlines(y, table["lower"], table["upper"], color=BLUE, lw=2)
    ax.plot(mean, y, "o", color=BLUE, ms=5)
    ranks = table["rank"].to_numpy()
    tied = np.array([np.sum(ranks == r) > 1 for r in ranks])
    if tied.any():
        ax.plot(mean[tied], y[tied], "o", mfc="white", mec=ORANGE, mew=1.5, ms=6, label="tied")
        ax.legend(loc="lower right", frameon=False)
    ax.set_yticks(y, shorten(table["system"]), fontsize=size)
    ax.set_ylim(n - 0.5, -0.5)
    scores = ranking.scores
    queries = "these queries" if scores.target == "collection" else "the population of queries"
    ax.set_xlabel(f"{literal(scores.metric)}, {level:.0%} interval for {queries}")
    entitle(ax, f"{scores.judged:,} of {scores.pool:,} pairs judged, mean confidence {ranking.confidence:.3f}")
    clean(ax)
    return ax


def plot_pairs(ranking: Ranking, *, ax: Axes | None = None) -> Axes:
    """Plot P(the row's system is better than the column's) for every pair, ties counting half, in ranking order."""
    order = ranking.scores.order
    n = len(order)
    better = ranking.p_better[np.ix_(order, order)]
    better = better + (1 - better - better.T) / 2  # a tie is neither dark nor light
    np.fill_diagonal(better, np.nan)
    ax, image = heat_map(better, (ranking.scores.systems[i] for i in order), 0, 1, ax)
    if n <= 20:
        for i in range(n):
            for j in range(n):
                if i != j:
                    value = better[i, j]
                    ax.text(
                        j, i, f"{value:.2f}"[1:] if value < 0.995 else "1", ha="center", va="center", fontsize=6,
                        color="white" if value < 0.5 else "black",
                    )  # fmt: skip
    entitle(ax, f"P(row better than column), {ranking.scores.metric}")
    ax.figure.colorbar(
        image,
        ax=ax,
        shrink=min(1.0, 4 / (0.2 * n + 2)),
        aspect=30,
        label=f"ties{f' within {ranking.rope:g}' if ranking.rope else ''} count half",
    )
    return ax


def plot_difference(decision: TwoSystems, *, ax: Axes | None = None) -> Axes:
    """Plot the difference of two systems with its intervals, on these queries and on new ones; the band is the rope."""
    table, here = decision.to_frame(), decision.here
    y = np.arange(len(table))
    ax = new_axes(ax, 5.0, 0.9 + 0.32 * len(table))
    if here.rope:
        ax.axvspan(-here.rope, here.rope, color=GREY, alpha=0.2, lw=0)
    ax.axvline(0, color=GREY, lw=1)
    ax.hlines(y, table["lower"], table["upper"], color=BLUE, lw=3)
    ax.plot(table["difference"], y, "o", color=BLUE, ms=7)
    ax.set_yticks(y, [literal(name).replace(", ", ",\n") for name in table["queries"]], fontsize=9)
    ax.set_ylim(len(table) - 0.5, -0.5)
    ax.set_ylabel("queries", fontsize=9)
    metric = literal(here.difference.scores.metric)
    ax.set_xlabel(f"difference in {metric}, {decision.level:.0%} intervals", fontsize=9)
    ax.locator_params(axis="x", nbins=6)
    clean(ax)
    return ax
