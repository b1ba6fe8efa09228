"""Display of results: text tables for terminals, HTML tables for notebooks, and the exits of every result."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from types import MappingProxyType
from typing import Any

import pandas as pd

__all__ = ["Shown", "View", "html_table", "text_table"]

DECIMALS = 4
MOST_ROWS = 60  # of a table in a summary or a notebook; to_frame() has them all
NOTHING: Mapping[str, int] = MappingProxyType({})
WIDTH, HEIGHT, MARGIN = 160, 16, 4  # of the drawing of an interval, in pixels

# Colours come from the page, so that the table fits a light theme and a dark one; the accent is readable on both.
STYLE = """
.probeval-table { font: 13px/1.4 system-ui, sans-serif; color: inherit; overflow-x: auto; }
.probeval-table table { border-collapse: collapse; background: transparent; margin: .4em 0; font: inherit;
  color: inherit; }
.probeval-table caption { text-align: left; font-weight: 600; padding: .3em 0; color: inherit; caption-side: top; }
.probeval-table th, .probeval-table td { padding: .2em .7em; background: transparent; color: inherit; border: 0;
  text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.probeval-table thead th { font-weight: 600; border-bottom: 1px solid rgba(128, 128, 128, .6); }
.probeval-table tbody td { border-bottom: 1px solid rgba(128, 128, 128, .2); }
.probeval-table .text { text-align: left; }
.probeval-table svg { display: block; }
.probeval-table .line { stroke: #4a90d9; stroke-width: 2.5; stroke-linecap: round; }
.probeval-table .dot { fill: #4a90d9; }
.probeval-table .zero { stroke: currentColor; stroke-width: 1; opacity: .35; }
.probeval-table p { margin: .3em 0; opacity: .8; max-width: 60em; }
""".strip()


def text_table(frame: pd.DataFrame, *, title: str | None = None, decimals: Mapping[str, int] = NOTHING) -> str:
    """A table for people: text to the left, numbers to the right, ``-`` for missing values.

    Parameters
    ----------
    frame
        The rows; the index is not shown.
    title
        A line above the table.
    decimals
        Decimals by column; four by default.

    Examples
    --------
    >>> print(text_table(pd.DataFrame({"system": ["a", "bm25"], "mean": [0.5, float("nan")]}), title="nDCG@10"))
    nDCG@10
    system    mean
    a       0.5000
    bm25         -
    """
    columns = [_column(str(name), frame[name], decimals.get(str(name), DECIMALS)) for name in frame.columns]
    rows = ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]
    return "\n".join([title, *rows] if title else rows)


def _column(name: str, values: pd.Series, decimals: int) -> Iterable[str]:
    text = [_cell(v, decimals) for v in values]
    width = max(map(len, [name, *text]))
    left = _is_text(values)
    return [cell.ljust(width) if left else cell.rjust(width) for cell in (name, *text)]


def _cell(value: Any, decimals: int) -> str:
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.{decimals}f}"
    return "-" if value is None else str(value)


def _is_text(values: pd.Series) -> bool:
    return all(isinstance(v, str) for v in values)


def html_table(
    frame: pd.DataFrame,
    *,
    title: str | None = None,
    intervals: tuple[str, str, str] | None = None,
    note: str | None = None,
    decimals: Mapping[str, int] = NOTHING,
) -> str:
    """A table as HTML that needs nothing else: no script, no network, fit for light and dark pages.

    Parameters
    ----------
    frame
        The rows; the index is not shown.
    title, note
        A line above the table and a paragraph below it.
    intervals
        The columns of a value and of the ends of its interval, which are drawn in a column of their own.
    decimals
        Decimals by column; four by default.
    """
    names = [str(name) for name in frame.columns]
    text = [_is_text(frame[name]) for name in frame.columns]
    bars = [] if intervals is None else _bars(frame, intervals)
    head = [_tag("th", escape(name), left) for name, left in zip(names, text, strict=True)]
    rows = []
    for i, values in enumerate(frame.itertuples(index=False, name=None)):
        cells = [
            _tag("td", escape(_cell(value, decimals.get(name, DECIMALS))), left)
            for name, value, left in zip(names, values, text, strict=True)
        ]
        rows.append(f"<tr>{''.join(cells)}{f'<td>{bars[i]}</td>' if bars else ''}</tr>")
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    drawn = '<th aria-label="interval"></th>' if bars else ""
    return (
        f'<div class="probeval-table"><style>{STYLE}</style><table>{caption}'
        f"<thead><tr>{''.join(head)}{drawn}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        f"{f'<p>{escape(note)}</p>' if note else ''}</div>"
    )


def _tag(name: str, content: str, left: bool) -> str:
    kind = ' class="text"' if left else ""
    return f"<{name}{kind}>{content}</{name}>"


def _bars(frame: pd.DataFrame, intervals: tuple[str, str, str]) -> list[str]:
    """A drawing of the interval of each row, all on one axis; nothing where an end is not known."""
    columns = [[float(v) for v in frame[name]] for name in intervals]
    rows = list(zip(*columns, strict=True))
    known = [x for row in rows for x in row if math.isfinite(x)]
    if not known:
        return []
    low, high = min(known), max(known)
    unit = (WIDTH - 2 * MARGIN) / ((high - low) or 1.0)

    def at(x: float) -> str:
        return f"{MARGIN + (x - low) * unit:.1f}"

    zero = f'<line class="zero" x1="{at(0)}" x2="{at(0)}" y1="0" y2="{HEIGHT}"/>' if low < 0 < high else ""
    return [_bar(row, zero, at) for row in rows]


def _bar(row: tuple[float, ...], zero: str, at: Callable[[float], str]) -> str:
    value, lower, upper = row
    middle = HEIGHT // 2
    parts = [zero]
    if math.isfinite(lower) and math.isfinite(upper):
        parts.append(f'<line class="line" x1="{at(lower)}" x2="{at(upper)}" y1="{middle}" y2="{middle}"/>')
    if math.isfinite(value):
        parts.append(f'<circle class="dot" cx="{at(value)}" cy="{middle}" r="3.5"/>')
    label = f"{value:.4g}, from {lower:.4g} to {upper:.4g}"
    inside = "".join(parts)
    return f'<svg role="img" aria-label="{label}" width="{WIDTH}" height="{HEIGHT}">{inside}</svg>'


@dataclass(frozen=True, eq=False)
class View:
    """A table as people see it.

    Parameters
    ----------
    frame
        The rows.
    title
        A line above it.
    decimals
        Decimals by column; four by default.
    intervals
        The columns of a value and of the ends of its interval, which notebooks draw.
    """

    frame: pd.DataFrame
    title: str | None = None
    decimals: Mapping[str, int] = field(default_factory=dict)
    intervals: tuple[str, str, str] | None = None

    def text(self) -> str:
        """The table for a terminal."""
        return text_table(self.frame, title=self.title, decimals=self.decimals)

    def head(self, n: int = MOST_ROWS) -> tuple[View, str]:
        """The first ``n`` rows, and a sentence on those left out; empty where there are none."""
        left = len(self.frame) - n
        if left <= 0:
            return self, ""
        some = View(self.frame.head(n), self.title, self.decimals, self.intervals)
        return some, f"{left:,} more row{'s' * (left > 1)} in to_frame()."


class Shown(ABC):
    """The exits of a result: rows, plain data, text, HTML, and one short line.

    A class says what its rows and its plain data are, and in :meth:`views` and :meth:`sentences` what people read.
    """

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """The rows: labels in columns and a plain index, as CSV has them."""

    @abstractmethod
    def to_dict(self) -> Any:
        """The plain data that JSON prints."""

    @abstractmethod
    def _headline(self) -> str:
        """A title in a few words."""

    def views(self) -> Sequence[View]:
        """The tables that :meth:`summary` and notebooks show."""
        return (View(self.to_frame(), self._headline()),)

    def sentences(self) -> Sequence[str]:
        """Sentences below these tables."""
        return ()

    def summary(self) -> str:
        """The result for people: its tables, and a sentence or two."""
        return summary_text(self.views(), self.sentences())

    def _repr_html_(self) -> str:
        shown = [view.head() for view in self.views()]
        notes = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.sentences())
        tables = "".join(
            html_table(v.frame, title=v.title, intervals=v.intervals, note=more or None, decimals=v.decimals)
            for v, more in shown
        )
        return f'<div class="probeval-table">{tables}{notes}</div>'

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._headline()}>"


def summary_text(views: Iterable[View], sentences: Iterable[str]) -> str:
    """Tables and sentences as one text."""
    tables = ["\n".join(filter(None, (view.text(), more))) for view, more in (view.head() for view in views)]
    return "\n\n".join([*tables, *filter(None, ["\n".join(sentences)])])
