"""Plots of users: satisfaction against score, and preferences against difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from probeval.plots.canvas import BLUE, CROWDED, GREEN, GREY, ORANGE, clean, colours, literal, new_axes, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from probeval.satisfaction import Agreement, Satisfaction, SatMapping

__all__ = ["plot_agreement", "plot_mappings", "plot_satisfaction"]


def plot_mappings(mappings: Sequence[SatMapping], *, ax: Axes | None = None) -> Axes:
    """Plot P(Sat) against the score; on the dotted line the score equals the share of satisfied users."""
    ax = new_axes(ax, 5.2, 4.4)
    x = np.linspace(0, 1, 201)
    ax.plot([0, 1], [0, 1], color=GREY, lw=1, ls=":")
    styles = ("-", "--", ":", "-.")
    for i, (colour, mapping) in enumerate(zip(colours(), mappings, strict=False)):
        ax.plot(x, mapping(x), color=colour, ls=styles[i // 4 % 4], lw=1.8, label=literal(mapping.name))
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_xlabel("score of a list")
    ax.set_ylabel("P(Sat): share of users who are satisfied")
    ax.legend(loc="upper left", frameon=False, fontsize=8)
    clean(ax)
    return ax


def plot_agreement(agreement: Agreement, *, ax: Axes | None = None) -> Axes:
    """Plot users' preferences by tenths of the difference in score between two lists."""
    ax = new_axes(ax, 5.6, 4.2)
    table = agreement.to_frame()
    x = (table["from"] + table["to"]) / 2
    parts = (
        ("better", "the list with the higher score", BLUE),
        ("neither", "neither", "#cccccc"),
        ("worse", "the other", ORANGE),
    )
    bottom = np.zeros(len(table))
    for column, label, colour in parts:
        height = table[column].fillna(0).to_numpy()
        ax.bar(x, height, width=0.09, bottom=bottom, color=colour, label=label)
        bottom += height
    for at, n in zip(x, table["n"], strict=True):
        ax.text(at, 1.01, f"{n:,}", ha="center", va="bottom", fontsize=7, color=GREY)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.06)
    ax.set_xlabel(f"difference in score, {literal(agreement.name)}".rstrip(", "))
    ax.set_ylabel("share of users who prefer")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncol=3, frameon=False, fontsize=8)
    clean(ax)
    return ax


def plot_satisfaction(users: Satisfaction, *, ax: Axes | None = None) -> Axes:
    """Plot P(Sat) of each system with its interval and its band for a new query, and P(Succ); best on top."""
    table = users.to_frame()
    n = len(table)
    row, size = (0.24, 8) if n <= CROWDED else (0.15, 7)
    ax = new_axes(ax, 6.4, 1.4 + row * n)
    y = np.arange(n)
    ax.hlines(y, table["new_lower"], table["new_upper"], color=GREY, alpha=0.3, lw=6, label="P(Sat) on a new query")
    ax.hlines(y, table["lower"], table["upper"], color=BLUE, lw=2)
    ax.plot(table["p_sat"], y, "o", color=BLUE, ms=5, label="mean P(Sat)")
    ax.plot(table["p_success"], y, "D", mfc="white", mec=GREEN, mew=1.5, ms=5, label="P(Succ)")
    ax.set_yticks(y, shorten(table["system"]), fontsize=size)
    ax.set_ylim(n - 0.5, -0.5)
    ax.set_xlim(0, 1)
    ax.set_xlabel(f"share of users, or of queries; {users.level:.0%} intervals; mapping {literal(users.mapping.name)}")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncol=3, frameon=False, fontsize=8)
    clean(ax)
    return ax
