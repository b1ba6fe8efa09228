"""Figures of a report: plots as inline SVG that follows the colours of the page."""

from __future__ import annotations

import re
from html import escape
from io import StringIO
from typing import TYPE_CHECKING

from probeval.reports.page import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw"]

SCALE = 7.2  # rem per inch: text has one size in all figures, if the page is wide enough
INK, PAPER = "#010101", "#fefefe"  # black and white that do not follow the page, for text on heat maps


def draw(axes: Axes, *, key: str, alt: str, caption: str) -> Figure:
    """Return the figure of some axes as inline SVG.

    Parameters
    ----------
    axes
        Any axes of the figure.
    key
        The prefix of ids inside the SVG, unique in the page.
    alt, caption
        The alternative text, and the caption.
    """
    import matplotlib as mpl

    figure = axes.figure
    for ax in figure.axes:
        if ax.images:  # text colours on a heat map match its cells, not the page
            for text in ax.texts:
                text.set_color(INK if text.get_color() == "black" else PAPER)
    out = StringIO()
    with mpl.rc_context({"svg.hashsalt": key, "svg.fonttype": "path"}):
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})  # type: ignore[union-attr]
    width = figure.get_figwidth() * SCALE  # type: ignore[union-attr]
    return Figure(_inline(out.getvalue(), key, alt, width), alt, caption)


def _inline(svg: str, key: str, alt: str, width: float) -> str:
    """Return an SVG document as an element of a page: unique ids, colours of the page, width, alternative text."""
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{key}-', svg)
    svg = re.sub(r'href="#', f'href="#{key}-', svg)
    svg = re.sub(r"url\(#", f"url(#{key}-", svg)
    svg = svg.replace("#000000", "currentColor").replace("#ffffff", "var(--paper)")
    box = re.search(r'viewBox="[^"]+"', svg)
    assert box is not None  # matplotlib always writes it
    head = f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" {box[0]} role="img"'
    head += f' style="--width: {width:g}rem"'
    title = f'{head} aria-label="{escape(alt)}">'
    return title + svg[svg.index(">") + 1 :]
