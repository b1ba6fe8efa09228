"""Plots of comparisons: all pairs of systems, and critical differences of their ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from probeval.errors import ReliabilityError
from probeval.plots.canvas import BLUE, CROWDED, GREY, ORANGE, clean, entitle, heat_map, new_axes, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from probeval.reliability import Pairwise, ScorePosterior

__all__ = ["plot_critical", "plot_tests"]

LEGIBLE = 20  # most systems for cells with room for numbers
STRONGEST = 5.0  # -log10 p beyond which cells are equally dark


def plot_tests(result: Pairwise | ScorePosterior, *, ax: Axes | None = None) -> Axes:
    """Plot the evidence that the row's system is better than the column's for every pair of systems, best first.

    For tests, the corrected p on a log scale, blank if a pair does not differ significantly. For a posterior,
    P(better by more than the rope).
    """
    from probeval.reliability import Pairwise

    n = len(result.systems)
    upper = np.triu_indices(n, k=1)
    cells = np.full((n, n), np.nan)
    if isinstance(result, Pairwise):
        strength = np.minimum(-np.log10(np.maximum(result.adjusted, 10**-STRONGEST)), STRONGEST)
        cells[upper] = np.where(result.decision != 0, strength, np.nan)
        low, high, label = -np.log10(result.alpha), STRONGEST, "corrected p"
        texts = [f"{v:.2f}".replace("0.", ".", 1) for v in result.difference.value]
        title = (
            f"{result.method}: {result.discrimination:.0%} of {len(result.p):,} pairs differ (alpha {result.alpha:g})"
        )
        title += "; differences of means" * (n <= LEGIBLE)
    else:
        pairs = zip(*upper, strict=True)
        better = np.array([(result.means[:, i] - result.means[:, j] > result.rope).mean() for i, j in pairs])
        cells[upper] = better
        low, high, label = 0.0, 1.0, "P(row better)"
        texts = [f"{v:.2f}".replace("0.", ".", 1) for v in better]
        title = f"P(row better than column by more than {result.rope:g})"
    ax, image = heat_map(cells, result.systems, low, high, ax)
    if n <= LEGIBLE:
        for i, j, text in zip(*(index.tolist() for index in upper), texts, strict=True):
            bright = np.nan_to_num(cells[i, j], nan=high) > (low + high) / 2
            ax.text(j, i, text, ha="center", va="center", fontsize=6, color="black" if bright else "white")
    entitle(ax, title)
    bar = ax.figure.colorbar(image, ax=ax, shrink=min(1.0, 4 / (0.2 * n + 2)), aspect=30, label=label)
    if isinstance(result, Pairwise):
        marks = {low: f"{result.alpha:g}"} | {n: f"{10.0**-n:g}" for n in (2, 3, 4) if n > low + 0.25}
        bar.set_ticks([*marks, STRONGEST], labels=[*marks.values(), "less"])
    return ax


def plot_critical(result: Pairwise, *, ax: Axes | None = None) -> Axes:
    """Plot mean ranks with half a critical difference on either side: bars that do not overlap differ (Nemenyi).

    Systems that do not differ significantly from the best have another colour.
    """
    overall = result.friedman
    if overall is None:
        raise ReliabilityError("Ranks need two systems and two queries that both have a score on.")
    order = np.argsort(overall.ranks, kind="stable")
    ranks, n = overall.ranks[order], len(order)
    gap = overall.critical_difference(alpha=result.alpha)
    ax = new_axes(ax, 6.4, 1.4 + (0.2 if n <= CROWDED else 0.12) * n)
    y = np.arange(n)
    near = ranks - ranks[0] <= gap
    ax.axvspan(ranks[0] - gap / 2, ranks[0] + gap / 2, color=ORANGE, alpha=0.12, lw=0)
    for mask, colour in ((near, ORANGE), (~near, BLUE)):
        ax.hlines(y[mask], ranks[mask] - gap / 2, ranks[mask] + gap / 2, color=colour, lw=1.5)
        ax.plot(ranks[mask], y[mask], "o", color=colour, ms=4 if n <= CROWDED else 2.5)
    ax.set_yticks(y, shorten(result.systems[i] for i in order), fontsize=8 if n <= CROWDED else 6)
    ax.set_ylim(n - 0.5, -0.5)
    ax.set_xlabel(f"mean rank over {overall.queries} queries (1 is best), critical difference {gap:.2f}")
    entitle(ax, f"{int(near.sum())} of {n} do not differ from the best (alpha {result.alpha:g})")
    clean(ax)
    ax.axvline(ranks[0], color=GREY, lw=0.8, ls="--")
    return ax
