"""Pictures of results: each function takes a result and perhaps axes, and returns the axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from probeval.scores import Ranking
    from probeval.simulation import Validation

__all__ = ["plot_checkpoints", "plot_pairs", "plot_ranking", "plot_reliability", "save"]

# Okabe and Ito's palette: told apart by all kinds of colour vision, and in grey.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#777777"


def _axes(ax: Axes | None, width: float, height: float) -> Axes:
    if ax is not None:
        return ax
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Axes = figure.add_subplot()
    return axes


def plot_ranking(ranking: Ranking, *, level: float = 0.95, ax: Axes | None = None) -> Axes:
    """Mean scores with their intervals, the best on top; a band holds systems that cannot be told from its best."""
    table = ranking.table(level=level)
    n = len(table)
    ax = _axes(ax, 6.4, 1.2 + 0.22 * n)
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
    ax.set_yticks(y, [str(s) for s in table.index], fontsize=8)
    ax.set_ylim(n - 0.5, -0.5)
    scores = ranking.scores
    queries = "these queries" if scores.target == "collection" else "the population of queries"
    ax.set_xlabel(f"{scores.metric}, {level:.0%} interval for {queries}")
    ax.set_title(
        f"{scores.judged:,} of {scores.pool:,} pairs judged, mean confidence {ranking.confidence:.3f}",
        fontsize=10,
        loc="left",
    )
    _clean(ax)
    return ax


def plot_pairs(ranking: Ranking, *, ax: Axes | None = None) -> Axes:
    """P(the row's system is better than the column's) for every pair, half of any tie, in the order of the ranking."""
    order = ranking.scores.order
    n = len(order)
    cell, size = (0.2, 8) if n <= 40 else (0.12, 6)
    ax = _axes(ax, max(5.0, 2.6 + cell * n), 2.0 + cell * n)
    better = ranking.p_better[np.ix_(order, order)]
    better = better + (1 - better - better.T) / 2  # a tie is neither dark nor light
    np.fill_diagonal(better, np.nan)
    image = ax.imshow(better, cmap="cividis", vmin=0, vmax=1)
    names = [ranking.scores.systems[i] for i in order]
    ax.set_xticks(np.arange(n), names, rotation=90, fontsize=size)
    ax.set_yticks(np.arange(n), names, fontsize=size)
    if n <= 20:
        for i in range(n):
            for j in range(n):
                if i != j:
                    value = better[i, j]
                    ax.text(
                        j, i, f"{value:.2f}"[1:] if value < 0.995 else "1", ha="center", va="center", fontsize=6,
                        color="white" if value < 0.5 else "black",
                    )  # fmt: skip
    ax.set_title(f"P(row better than column), {ranking.scores.metric}", fontsize=10, loc="left")
    ax.figure.colorbar(image, ax=ax, shrink=min(1.0, 4 / (cell * n + 2)), aspect=30, label="ties count half")
    return ax


def plot_reliability(validation: Validation, *, ax: Axes | None = None) -> Axes:
    """Accuracy against stated confidence by bins of pairs of systems: on the line, confidence is true.

    One line a model, over all campaigns, measures, checkpoints and seeds; the larger a dot, the more pairs it has.
    """
    ax = _axes(ax, 5.2, 5.2)
    table = validation.reliability()
    ax.plot([0.5, 1.0], [0.5, 1.0], color=GREY, lw=1, ls="--", label="true confidence")
    lowest = min(0.5, float(table["accuracy"].min()))
    for colour, (model, bins) in zip(_colours(), table.groupby("model", sort=False), strict=False):
        share = bins["pairs"] / bins["pairs"].sum()
        ax.plot(bins["confidence"], bins["accuracy"], "-", color=colour, lw=1.5)
        ax.scatter(bins["confidence"], bins["accuracy"], s=20 + 300 * share, color=colour, lw=0, label=str(model))
    ax.set_xlim(0.49, 1.02)
    ax.set_ylim(lowest - 0.02, 1.02)
    ax.set_xlabel("stated confidence that one system is better")
    ax.set_ylabel("share of these pairs that are in the true order")
    campaigns = list(dict.fromkeys(trial.campaign for trial in validation.trials))
    ax.set_title(_listed(campaigns), fontsize=9, loc="left")
    legend = ax.legend(loc="upper left", frameon=False)
    for handle in legend.legend_handles[1:]:
        handle.set_sizes([50])  # type: ignore[union-attr]
    _clean(ax)
    return ax


def plot_checkpoints(validation: Validation, figure: str = "calibration_excess", *, ax: Axes | None = None) -> Axes:
    """A figure of :class:`probeval.simulation.Point` against the share of the pool that is judged.

    One line a model and campaign, over measures and seeds.
    """
    ax = _axes(ax, 6.4, 4.2)
    table = validation.table().groupby(["model", "campaign", "checkpoint"], sort=False)[figure].mean()
    x = np.arange(len(validation.checkpoints))
    for colour, (model, rows) in zip(_colours(), table.groupby(level="model", sort=False), strict=False):
        for mark, (campaign, line) in zip(
            "os^Dv<>P*X" * len(rows), rows.groupby(level="campaign", sort=False), strict=False
        ):
            ax.plot(x, line.to_numpy(), f"-{mark}", color=colour, lw=1.2, ms=5, label=f"{model}, {campaign}")
    if figure in ("calibration_excess", "level_z"):
        ax.axhline(0.0, color=GREY, lw=1, ls="--")
    ax.set_xticks(x, [f"{100 * c:g}%" for c in validation.checkpoints])
    ax.set_xlabel("share of the pool judged, in random order")
    ax.set_ylabel(figure.replace("_", " "))
    ax.legend(fontsize=7, edgecolor="none")
    _clean(ax)
    ax.grid(axis="y", color=GREY, alpha=0.3, lw=0.6)
    return ax


def _colours() -> Iterator[str]:
    return cycle((ORANGE, BLUE, GREEN, GREY))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{len(names)} campaigns"


def _clean(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="x", color=GREY, alpha=0.3, lw=0.6)
    ax.set_axisbelow(True)


def save(ax: Axes, path: Any, *, dpi: int = 150) -> None:
    """Write the figure of some axes; the ending of the name says the format."""
    figure = ax.figure
    figure.savefig(path, dpi=dpi)  # type: ignore[union-attr]
