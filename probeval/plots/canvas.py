"""Shared parts of plots: colours, axes and saving."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BLUE", "GREEN", "GREY", "ORANGE", "clean", "colours", "listed", "new_axes", "save"]

# Okabe and Ito's palette: distinguishable by all kinds of colour vision, and in grey.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#777777"


def new_axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the given axes, or those of a new figure of this size in inches."""
    if ax is not None:
        return ax
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Axes = figure.add_subplot()
    return axes


def colours() -> Iterator[str]:
    """Yield colours for lines, endlessly."""
    return cycle((ORANGE, BLUE, GREEN, GREY))


def listed(names: Sequence[str]) -> str:
    """Return names for a title, or their number if there are many."""
    return ", ".join(names) if len(names) <= 4 else f"{len(names)} campaigns"


def clean(ax: Axes) -> None:
    """Remove superfluous spines, and add a light grid."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="x", color=GREY, alpha=0.3, lw=0.6)
    ax.set_axisbelow(True)


def save(ax: Axes, path: Any, *, dpi: int = 150) -> None:
    """Save the figure of some axes, in the format of the file name's suffix."""
    figure = ax.figure
    figure.savefig(path, dpi=dpi)  # type: ignore[union-attr]
