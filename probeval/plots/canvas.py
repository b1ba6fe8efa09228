"""Shared parts of plots: colours, axes and saving."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

from probeval.characters import HIDDEN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

    from probeval.arrays import Floats

__all__ = [
    "BLUE",
    "CROWDED",
    "GREEN",
    "GREY",
    "ORANGE",
    "clean",
    "colours",
    "entitle",
    "heat_map",
    "legend_below",
    "listed",
    "literal",
    "new_axes",
    "save",
    "shorten",
    "spaced",
]

# Okabe and Ito's palette: distinguishable by all kinds of colour vision, and in grey.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#777777"
PURPLE, SKY, YELLOW = "#CC79A7", "#56B4E9", "#E69F00"
CROWDED = 40  # systems from which on rows are lower
LONGEST = 40  # characters of a name beside an axis


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
    return cycle((ORANGE, BLUE, GREEN, GREY, PURPLE, SKY, YELLOW))


def literal(name: object) -> str:
    r"""Return a name that is drawn as it is: not as a formula of TeX, on one line.

    >>> print(literal("bm25"), literal("$k_1$"), literal("two\nlines"))
    bm25 \$k_1\$ two�lines
    """
    return HIDDEN.sub("\N{REPLACEMENT CHARACTER}", str(name)).replace("$", r"\$")


def listed(names: Sequence[str]) -> str:
    """Return names for a title, or their number if there are many."""
    return ", ".join(names) if len(names) <= 4 else f"{len(names)} campaigns"


def shorten(names: Iterable[object]) -> list[str]:
    """Return names for an axis; the middle of a long one is left out.

    >>> shorten(["bm25", "a-very-long-name-of-a-system-with-all-of-its-settings-7"])
    ['bm25', 'a-very-long-name-of-…ll-of-its-settings-7']
    """
    half = LONGEST // 2
    texts = map(str, names)
    short = [text if len(text) <= LONGEST else f"{text[:half]}\N{HORIZONTAL ELLIPSIS}{text[-half:]}" for text in texts]
    return [literal(text) for text in short]


def spaced(ticks: Sequence[float], *, keep: float, ratio: float) -> list[float]:
    """Return those ticks of a log axis that are at least a ratio apart; ``keep`` stays.

    >>> spaced([25, 50, 54, 100, 150], keep=54, ratio=1.5)
    [25, 54, 100, 150]
    """
    shown: list[float] = []
    for tick in sorted(ticks, key=lambda t: (t != keep, t)):
        if all(max(tick, other) >= ratio * min(tick, other) for other in shown):
            shown.append(tick)
    return sorted(shown)


def entitle(ax: Axes, text: str, *, size: float = 10) -> None:
    """Set the title at the left; it breaks into lines where it is too long for the figure."""
    ax.set_title(literal(text), fontsize=size, loc="left", wrap=True)


def heat_map(
    cells: Floats, names: Iterable[object], low: float, high: float, ax: Axes | None
) -> tuple[Axes, AxesImage]:
    """Plot the cells of a table of systems in colour; a new figure has room for the names."""
    short = shorten(names)
    n = len(short)
    cell, size = (0.2, 8) if n <= CROWDED else (0.12, 6)
    room = 0.3 + max(map(len, short)) * size / 110  # inches for the longest name
    ax = new_axes(ax, max(5.0, 1.6 + room + cell * n), max(3.2, 1.0 + room + cell * n))
    image = ax.imshow(cells, cmap="cividis", vmin=low, vmax=high)
    ax.set_xticks(range(n), short, rotation=90, fontsize=size)
    ax.set_yticks(range(n), short, fontsize=size)
    return ax, image


def legend_below(ax: Axes, *, columns: int = 3) -> None:
    """Add a legend below the axes, where it hides no line."""
    texts = ax.get_legend_handles_labels()[1]
    columns = max(1, min(columns, len(texts), 90 // (max(map(len, texts)) + 6)))
    ax.figure.legend(
        *ax.get_legend_handles_labels(), loc="outside lower center", ncols=columns, frameon=False, fontsize=8
    )


def clean(ax: Axes) -> None:
    """Remove superfluous spines, add a light grid, and break labels into lines where they are too long."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.xaxis.label.set_wrap(True)
    ax.yaxis.label.set_wrap(True)
    ax.grid(axis="x", color=GREY, alpha=0.3, lw=0.6)
    ax.set_axisbelow(True)


def save(ax: Axes, path: Any, *, dpi: int = 150) -> None:
    """Save the figure of some axes, in the format of the file name's suffix."""
    figure = ax.figure
    figure.savefig(path, dpi=dpi)  # type: ignore[union-attr]
