"""Plots of studies of pools: decisions by cut, trends of p-values, relevance by the number of systems."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from probeval.errors import DataError
from probeval.plots.canvas import GREY, clean, colours, entitle, legend_below, literal, new_axes, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from probeval.studies.pools import CollectionPool, PoolRow, PoolStudy

__all__ = ["plot_multiplicity", "plot_pools", "plot_trends"]

WIDTH, HEIGHT, ACROSS = 3.6, 3.4, 2  # inches of a panel, and panels side by side
SHADES = {"significant": "#0072B2", "straddling": "#E69F00", "undecided": "#BBBBBB"}
AXES = {"depth": "depth of the pool", "share": "share of the judgments"}


def _panels(n: int, height: float = HEIGHT) -> list[Axes]:
    """Return one panel per campaign, at most two side by side, so that a page on a phone can show them."""
    across = min(n, ACROSS)
    down = -(-n // across)
    first = new_axes(None, max(4.8, WIDTH * across), height * down + 0.4)
    figure = first.figure
    first.remove()
    panels = [figure.add_subplot(down, across, i + 1) for i in range(n)]
    return list(panels)


def plot_pools(study: PoolStudy, *, kind: str | None = None) -> Axes:
    """Plot concordance with the reference, discrimination and the residual against the cuts, one panel per campaign.

    Parameters
    ----------
    study
        The study.
    kind
        ``"depth"``, ``"share"``, ``"fused"`` or ``"team"``; by default the first of which there are two cuts.
    """
    kinds = [row.kind for part in study.campaigns for row in part.cuts]
    chosen = kind or next(
        (k for k in ("depth", "share", "fused", "team") if kinds.count(k) > len(study.campaigns)), "share"
    )
    if chosen not in kinds:
        raise DataError(f"The study has no cuts of the kind {chosen!r}: {', '.join(dict.fromkeys(kinds))}.")
    if chosen == "team":
        return _plot_teams(study)
    if chosen == "fused":
        return _plot_fused(study)
    panels = _panels(len(study.campaigns))
    for ax, part in zip(panels, study.campaigns, strict=True):
        _plot_cuts(ax, part, chosen, study.options.tests[0])
        entitle(ax, part.campaign, size=9)
    panels[0].set_ylabel("share of pairs, or residual")
    legend_below(panels[0])
    return panels[0]


def _rows(part: CollectionPool, kind: str, test: str) -> dict[str, list[PoolRow]]:
    """Return the rows of one kind of cuts by measure, in order; shares end with the whole reference."""
    reference = [row for row in part.rows if row.cut == f"depth {part.facts.depth}"]
    wanted = [row for row in part.rows if row.kind == kind] + (reference if kind == "share" else [])
    found: dict[str, list[PoolRow]] = {}
    for row in wanted:
        if row.test == test and row.lists == "whole":
            found.setdefault(row.metric, []).append(row)
    return found


def _plot_cuts(ax: Axes, part: CollectionPool, kind: str, test: str) -> None:
    by_metric = _rows(part, kind, test)
    at = [row.value if row.kind == kind else 1.0 for row in next(iter(by_metric.values()))]
    for colour, (metric, rows) in zip(colours(), by_metric.items(), strict=False):
        same, differ = ([getattr(row.decisions, name) for row in rows] for name in ("concordance", "discrimination"))
        ax.plot(at, same, "-o", ms=4, color=colour, label=f"{literal(metric)}: same decision")
        ax.plot(at, differ, "--", lw=1.2, color=colour, label=f"{literal(metric)}: significant")
    residual = [row.residual for row in next(iter(by_metric.values()))]
    ax.plot(at, residual, ":", color=GREY, lw=1.6, label="mean RBP residual")
    ax.set_ylim(0, 1.03)
    ax.set_xlim(left=0)
    ax.set_xticks(at, [f"{value:g}" for value in at], fontsize=8)
    ax.set_xlabel(AXES[kind])
    clean(ax)
    ax.grid(axis="y", color=GREY, alpha=0.3, lw=0.6)


def _plot_fused(study: PoolStudy) -> Axes:
    """Plot concordance and residual against documents per query, one line per fused ranking, by the first measure."""
    panels = _panels(len(study.campaigns))
    for ax, part in zip(panels, study.campaigns, strict=True):
        rows = next(iter(_rows(part, "fused", study.options.tests[0]).values()))
        names = list(dict.fromkeys(row.cut.rpartition(" ")[0] for row in rows))
        for i, (colour, name) in enumerate(zip(colours(), names, strict=False)):
            mine = [row for row in rows if row.cut.rpartition(" ")[0] == name]
            at, style = [row.value for row in mine], ("-o", "-s")[i > 6]
            ax.plot(at, [row.decisions.concordance for row in mine], style, ms=4, color=colour, label=name)
            ax.plot(at, [row.residual for row in mine], ":", color=colour, lw=1.4)
        ax.plot([], [], ":", color=GREY, lw=1.4, label="mean RBP residual")
        ax.set_ylim(0, 1.03)
        ax.set_xlim(left=0)
        ax.set_xlabel(f"documents per query, {literal(rows[0].metric)}")
        entitle(ax, part.campaign, size=9)
        clean(ax)
        ax.grid(axis="y", color=GREY, alpha=0.3, lw=0.6)
    panels[0].set_ylabel("same decisions, or residual")
    legend_below(panels[0], columns=5)
    return panels[0]


def _plot_teams(study: PoolStudy) -> Axes:
    most = max(sum(cut.kind == "team" for cut in part.cuts) for part in study.campaigns)
    panels = _panels(len(study.campaigns), max(HEIGHT, 1.2 + 0.16 * most))
    for ax, part in zip(panels, study.campaigns, strict=True):
        names: list[str] = []
        for colour, (metric, rows) in zip(colours(), _rows(part, "team", study.options.tests[0]).items(), strict=False):
            names = [row.cut.removeprefix("without ") for row in rows]
            y = np.arange(len(rows))
            ax.plot([row.scores.change for row in rows], y, "o", ms=4, color=colour, label=literal(metric))
        ax.axvline(0, color=GREY, lw=1)
        ax.set_yticks(range(len(names)), shorten(names), fontsize=7)
        ax.set_ylim(len(names) - 0.5, -0.5)
        ax.set_xlabel("mean change of its scores")
        entitle(ax, part.campaign, size=9)
        clean(ax)
    legend_below(panels[0])
    return panels[0]


def plot_trends(study: PoolStudy, *, metric: str | None = None) -> Axes:
    """Plot the pairs of systems by the trend of their p-values from cut to cut, one panel per campaign.

    Parameters
    ----------
    study
        The study.
    metric
        The measure; the first by default.
    """
    named = [bar.metric for part in study.campaigns for bar in part.bars]
    if not named or (metric is not None and metric not in named):
        raise DataError("The study has no trends: they need two cuts below the reference, of one kind.")
    metric = metric or named[0]
    panels = _panels(len(study.campaigns), 2.8)
    for ax, part in zip(panels, study.campaigns, strict=True):
        bars = [bar for bar in part.bars if bar.metric == metric and bar.lists == "whole"]
        bars = [bar for bar in bars if (bar.kind, bar.test) == (bars[0].kind, bars[0].test)]
        total = sum(getattr(bar, name) for bar in bars for name in SHADES) or 1
        x, below = np.array([bar.tau for bar in bars]), np.zeros(len(bars))
        width = min(0.16, 0.8 * float(np.diff(x).min())) if len(x) > 1 else 0.16
        for name, colour in SHADES.items():
            part_of = np.array([getattr(bar, name) for bar in bars]) / total
            labels = {"significant": "always significant", "straddling": "by some cuts", "undecided": "never"}
            ax.bar(x, part_of, width, bottom=below, color=colour, label=labels[name])
            below = below + part_of
        ax.set_xlim(-1.15, 1.15)
        ax.set_xlabel("tau of p with more judgments")
        entitle(ax, f"{part.campaign}, {metric}", size=9)
        clean(ax)
    panels[0].set_ylabel("share of pairs")
    legend_below(panels[0])
    return panels[0]


def plot_multiplicity(study: PoolStudy) -> Axes:
    """Plot the share of relevant documents by the number of systems that have them, one line per depth."""
    panels = _panels(len(study.campaigns), 2.8)
    for ax, part in zip(panels, study.campaigns, strict=True):
        shown = part.multiplicity[:: max(1, (len(part.multiplicity) + 2) // 3)]
        chosen = [*shown, *([part.multiplicity[-1]] if part.multiplicity[-1] not in shown else [])]
        for colour, found in zip(colours(), chosen, strict=False):
            table = found.to_frame()
            middle = np.sqrt(table["least"].astype(float) * table["most"])
            ax.plot(middle, table["relevant"], "-o", ms=4, color=colour, label=f"top {found.depth}")
        ax.set_xscale("log", base=2)
        ticks = [2**i for i in range(8) if 2**i <= max(2, part.facts.counted)]
        ax.set_xticks(ticks, [str(tick) for tick in ticks])
        ax.set_ylim(0, 1.03)
        ax.set_xlabel("systems that have the document")
        ax.legend(frameon=False, fontsize=8)
        entitle(ax, part.campaign, size=9)
        clean(ax)
    panels[0].set_ylabel("share relevant")
    return panels[0]
