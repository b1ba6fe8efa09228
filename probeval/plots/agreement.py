"""Plots of two sources, of ranks known up to bands, and of ties."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from probeval.plots.canvas import BLUE, GREEN, GREY, ORANGE, clean, legend_below, literal, new_axes
from probeval.reliability.correlation import kendall

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from probeval.reliability import TieStudy
    from probeval.studies import SourceAgreement

__all__ = ["plot_p_values", "plot_ties", "plot_two_scores"]

SMALLEST = 1e-8  # a p-value below it is drawn there
NARROWEST = 1e-6  # and a range of scores
MANY_TIES = 1000  # documents


def plot_two_scores(found: SourceAgreement, *, ax: Axes | None = None) -> Axes:
    """Plot the mean score of every system by both sources, and Kendall's tau (Yang 2019, Figure 5.9)."""
    systems = found.systems
    if systems is None or systems.means is None:
        raise ValueError("There are no systems to plot.")
    ax = new_axes(ax, 5.2, 4.6)
    ax.plot(*systems.means, "o", color=BLUE, ms=4, alpha=0.7)
    ax.set_xlabel(f"score by {literal(found.a)}" if systems.queries else f"place by {literal(found.a)}")
    ax.set_ylabel(f"score by {literal(found.b)}" if systems.queries else f"place by {literal(found.b)}")
    tau = next(one for one in systems.figures if one.figure == "tau")
    known = "" if np.isnan(tau.lower) else f" ({tau.lower:.3f} to {tau.upper:.3f})"
    ax.text(0.98, 0.03, f"tau {tau.value:.3f}{known}", transform=ax.transAxes, ha="right", fontsize=9)
    clean(ax)
    ax.grid(axis="y", color=GREY, alpha=0.3, lw=0.6)
    return ax


def plot_p_values(
    p_a: ArrayLike, p_b: ArrayLike, *, names: tuple[str, str] = ("a", "b"), alpha: float = 0.05, ax: Axes | None = None
) -> Axes:
    """Plot the p-values of all pairs of systems by two sources, with the share of pairs in each quadrant.

    Both axes are logarithmic and end at 1e-8; the lines are at alpha (Yang 2019, Figures 3.8-3.11, 5.18 and 5.19).
    """
    x, y = (np.asarray(p, dtype=float) for p in (p_a, p_b))
    ax = new_axes(ax, 5.4, 5.0)
    ax.plot(
        np.maximum(x, SMALLEST), np.maximum(y, SMALLEST), "o", color=BLUE, ms=2.5, alpha=0.35, mew=0, rasterized=True
    )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(SMALLEST / 1.6, 1.6)
    ax.set_ylim(SMALLEST / 1.6, 1.6)
    ax.axvline(alpha, color=ORANGE, lw=1, ls="--")
    ax.axhline(alpha, color=ORANGE, lw=1, ls="--")
    boxed = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1.5}
    right, top = (0.94, 0.96)
    for across, up, at in (
        (x < alpha, y < alpha, (0.05, 0.05)),
        (x >= alpha, y < alpha, (right, 0.05)),
        (x < alpha, y >= alpha, (0.05, top)),
        (x >= alpha, y >= alpha, (right, top)),
    ):
        side, end = ("left" if at[0] < 0.5 else "right"), ("bottom" if at[1] < 0.5 else "top")
        share = f"{(across & up).mean():.1%}"
        ax.text(*at, share, transform=ax.transAxes, ha=side, va=end, fontsize=9, bbox=boxed)
    ax.set_xlabel(f"p-value by {literal(names[0])}")
    ax.set_ylabel(f"p-value by {literal(names[1])}")
    ax.set_title(f"{len(x):,} pairs of systems, tau of p-values {kendall(x, y):.3f}", fontsize=10, loc="left")
    clean(ax)
    return ax


def plot_ties(study: TieStudy, *, ax: Axes | None = None) -> Axes:
    """Plot the range of every system's score by ties against its score (Yang 2019, Figures 3.4 and 3.5).

    A line is from the worst to the best order of tied documents; ranges below 1e-6 are drawn there.
    """
    given, ax = ax, new_axes(ax, 6.4, 4.4)
    systems = study.by_system
    kinds = (
        (f"more than {MANY_TIES:,} tied documents", ORANGE, [one.tied_docs > MANY_TIES for one in systems]),
        ("ties", BLUE, [0 < one.tied_docs <= MANY_TIES for one in systems]),
        ("no ties", GREEN, [one.tied_docs == 0 for one in systems]),
    )
    for label, colour, mask in kinds:
        part = [one for one, shown in zip(systems, mask, strict=True) if shown]
        if part:
            height = [max(one.range, NARROWEST) for one in part]
            ax.hlines(height, [one.lower for one in part], [one.upper for one in part], color=colour, lw=1, alpha=0.6)
            ax.plot([one.mean for one in part], height, "o", color=colour, ms=4, label=label)
    ax.set_yscale("log")
    ax.set_ylim(NARROWEST / 2, None)
    ax.set_xlabel(f"mean {literal(study.metric)}")
    ax.set_ylabel("range over all orders of tied documents")
    clean(ax)
    if given is None:
        legend_below(ax)
    return ax
