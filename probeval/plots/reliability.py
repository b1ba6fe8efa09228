"""Plots of reliability studies: variance components, and reliability against the number of queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from probeval.errors import ReliabilityError
from probeval.plots.canvas import GREY, clean, colours, entitle, literal, new_axes, spaced

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from probeval.reliability import DStudy, GStudy

__all__ = ["plot_components", "plot_dstudy", "plot_posterior"]


def plot_components(studies: GStudy | Mapping[str, GStudy], *, ax: Axes | None = None) -> Axes:
    """Plot the share of each variance component, with its interval if there is one; one colour per study."""
    named = studies if isinstance(studies, Mapping) else {"": studies}
    names = list(dict.fromkeys(name for study in named.values() for name in study.design.names))
    ax = new_axes(ax, 6.4, 1.2 + 0.3 * len(names) * max(1.0, 0.6 * len(named)))
    height = 0.8 / len(named)
    for i, (colour, (label, study)) in enumerate(zip(colours(), named.items(), strict=False)):
        for name in study.design.names:
            share = study.share_interval(name)
            y = names.index(name) - 0.4 + (i + 0.5) * height
            ax.barh(y, share.value, height=0.9 * height, color=colour, alpha=0.6, label=literal(label))
            if np.isfinite(share.lower):
                ax.hlines(y, share.lower, share.upper, color="black", lw=1.2)
            ax.text(
                max(share.value, np.nan_to_num(share.upper)) + 0.01, y, f"{share.value:.3f}", va="center", fontsize=8
            )
            label = "_"  # one legend entry per study
    ax.set_yticks(np.arange(len(names)), [literal(name) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlim(0, min(1.1, ax.get_xlim()[1] + 0.06))
    first = next(iter(named.values()))
    kind = f", {first.level:.0%} interval for {' and '.join(first.uncertainty)}" if first.draws is not None else ""
    ax.set_xlabel(f"share of variance{kind}")
    if len(named) > 1:
        ax.legend(frameon=False, fontsize=8)
    clean(ax)
    return ax


def plot_posterior(study: GStudy, *, ax: Axes | None = None) -> Axes:
    """Plot the density of the draws of each share of variance, on one axis, with the interval as a line."""
    if study.draws is None:
        raise ReliabilityError(
            "This study has no draws: use method='bayes', interval='bootstrap', or uncertain scores."
        )
    ax = new_axes(ax, 6.4, 1.2 + 0.6 * len(study.design.names))
    shares = study.draws / study.draws.sum(axis=1, keepdims=True)
    edges = np.linspace(0, min(1.0, float(shares.max()) * 1.05), 101)
    for i, (colour, name) in enumerate(zip(colours(), study.design.names, strict=False)):
        count, _ = np.histogram(shares[:, i], edges)
        smooth = np.convolve(count, np.hanning(9), "same")
        middle = (edges[1:] + edges[:-1]) / 2
        ax.fill_between(middle, i, i - 0.85 * smooth / smooth.max(), color=colour, alpha=0.5, lw=0)
        e = study.share_interval(name)
        ax.hlines(i, e.lower, e.upper, color=colour, lw=3)
        ax.plot(e.value, i, "o", color=colour, ms=6)
    ax.set_yticks(np.arange(len(study.design.names)), [literal(name) for name in study.design.names])
    ax.set_ylim(len(study.design.names) - 0.6, -1.0)
    ax.set_xlim(left=0)
    ax.set_xlabel(f"share of variance, {study.level:.0%} interval for {' and '.join(study.uncertainty)}")
    clean(ax)
    return ax


def plot_dstudy(
    studies: DStudy | Mapping[str, DStudy],
    coefficient: str | None = None,
    *,
    against: str = "query",
    ax: Axes | None = None,
) -> Axes:
    """Plot reliability against the number of queries, one line with a band per coefficient, study and assessor count.

    Against the number of judgments, measures with different cutoffs are on one axis of cost (Urbano 2013, Figure 6.4).

    Parameters
    ----------
    studies
        A D-study, or several by name.
    coefficient
        ``"erho2"`` or ``"phi"``; by default both for one study, erho2 for several.
    against
        ``"query"`` or ``"judgments"``.
    """
    if against not in ("query", "judgments"):
        raise ReliabilityError(f"Reliability is plotted against query or judgments, got {against!r}.")
    named = studies if isinstance(studies, Mapping) else {"": studies}
    shown = [coefficient] if coefficient else ["erho2", "phi"] if len(named) == 1 else ["erho2"]
    ax = new_axes(ax, 6.4, 4.2)
    palette = colours()
    symbols = {"erho2": "E ρ²", "phi": "Φ"}
    for name, study in named.items():
        table = study.to_frame()
        if against not in table.columns:
            raise ReliabilityError("The number of judgments is not known for a table of scores. Plot against queries.")
        people = dict.fromkeys(table["assessor"]) if "assessor" in table.columns else {None: None}
        for what in shown:
            for n in people:
                colour = next(palette)
                rows = (table if n is None else table[table["assessor"] == n]).sort_values("query")
                parts = [
                    symbols[what],
                    literal(name) if len(named) > 1 else "",
                    "" if n is None else f"{n:g} assessors",
                ]
                ax.plot(rows[against], rows[what], "-o", color=colour, ms=4, label=", ".join(filter(None, parts)))
                ax.fill_between(
                    rows[against], rows[f"{what}_lower"], rows[f"{what}_upper"], color=colour, alpha=0.15, lw=0
                )
    first = next(iter(named.values()))
    for target in {n.target for n in first.needed if n.measure in shown}:
        ax.axhline(target, color=GREY, lw=1, ls="--")
    ax.set_xscale("log")
    if against == "query":
        ticks = spaced([point.query for point in first.points], keep=first.study.sizes["query"], ratio=1.25)
    else:
        low, high = ax.get_xlim()
        ticks = [t for k in range(9) for t in (10**k, 2 * 10**k, 5 * 10**k) if low <= t <= high]
    ax.set_xticks(ticks, [f"{t:,g}" for t in ticks])
    ax.minorticks_off()
    ax.set_xlabel("queries" if against == "query" else "judgments")
    ax.set_ylabel(" and ".join(symbols[what] for what in shown))
    if first.study.uncertainty:
        entitle(ax, f"{first.level:.0%} bands for {' and '.join(first.study.uncertainty)}", size=9)
    ax.legend(frameon=False, fontsize=8, loc="lower right")
    clean(ax)
    ax.grid(axis="y", color=GREY, alpha=0.3, lw=0.6)
    return ax
