"""Display of objects: short reprs, tables for people, HTML for notebooks."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from datetime import UTC, datetime
from html import escape
from typing import Any

import pandas as pd

from probeval.characters import printable
from probeval.text_tables import DECIMALS, NOTHING, cell_text, is_text_column, latex_table, markdown_table, text_table

__all__ = ["Described", "Record", "Table", "counted", "dated", "fact_table", "html_table", "moment", "summary_text"]

WIDEST = 100  # characters of a repr
SHORT = 44  # characters of a field in a repr
FEW = 8  # values that are listed, not counted
LONG = 60  # characters of a cell from which on it breaks into lines
PLAIN = (str, int, float, tuple, type(None))  # types whose values compare as a whole
MOST_ROWS = 60  # of a table in a summary or a notebook; to_frame() has them all
WIDTH, HEIGHT, MARGIN = 160, 16, 4  # of the drawing of an interval, in pixels

# Colours come from the page, so that the table fits a light theme and a dark one; the accent is readable on both.
STYLE = """
.probeval-table { font: 13px/1.4 system-ui, sans-serif; color: inherit; overflow-x: auto; }
.probeval-table table { border-collapse: collapse; background: transparent; margin: .4em 0; font: inherit;
  color: inherit; }
.probeval-table caption { text-align: left; font-weight: 600; padding: .3em 0; color: inherit; caption-side: top;
  white-space: nowrap; }
.probeval-table th, .probeval-table td { padding: .2em .7em; background: transparent; color: inherit; border: 0;
  text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.probeval-table thead th { font-weight: 600; border-bottom: 1px solid rgba(128, 128, 128, .6); }
.probeval-table tbody td { border-bottom: 1px solid rgba(128, 128, 128, .2); }
.probeval-table .text, .probeval-table .long { text-align: left !important; }  /* notebooks align all cells alike */
.probeval-table .long { white-space: normal; min-width: 24em; max-width: 44em; }
.probeval-table svg { display: block; }
.probeval-table .line { stroke: #4a90d9; stroke-width: 2.5; stroke-linecap: round; }
.probeval-table .dot { fill: #4a90d9; }
.probeval-table .zero { stroke: currentColor; stroke-width: 1; opacity: .35; }
.probeval-table p { margin: .3em 0; opacity: .8; max-width: 60em; }
""".strip()


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
    text = [is_text_column(frame[name]) for name in frame.columns]
    bars = [] if intervals is None else _bars(frame, intervals)
    head = [_tag("th", escape(name), left) for name, left in zip(names, text, strict=True)]
    rows = []
    for i, values in enumerate(frame.itertuples(index=False, name=None)):
        cells = [
            _tag("td", escape(cell_text(value, decimals.get(name, DECIMALS))), left)
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
    kind = "" if not left else ' class="long"' if len(content) > LONG else ' class="text"'
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


class Record:
    """A repr of one short line for a dataclass: its fields, without those at their defaults and without long content.

    The dataclass is made with ``repr=False``. Notebooks show the fields as a table.

    Examples
    --------
    >>> @dataclass(frozen=True, repr=False)
    ... class Batch(Record):
    ...     pairs: tuple[int, ...]
    ...     note: str = ""
    >>> Batch(tuple(range(1000)))
    Batch(pairs=<1,000 values>)
    """

    def __repr__(self) -> str:
        shown = [f"{f.name}={_short(getattr(self, f.name))}" for f in _informative(self)]
        return _one_line(f"{type(self).__name__}({', '.join(shown)})")

    def _repr_html_(self) -> str:
        values = {f.name: _short(getattr(self, f.name), WIDEST) for f in _informative(self)}
        return html_table(fact_table(values), title=type(self).__name__)


@dataclass(frozen=True, eq=False, repr=False)
class Table(Record):
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

    def _repr_html_(self) -> str:
        some, more = self.head()
        return html_table(
            some.frame, title=self.title, intervals=self.intervals, note=more or None, decimals=self.decimals
        )

    def text(self) -> str:
        """The table for a terminal."""
        return text_table(self.frame, title=self.title, decimals=self.decimals)

    def markdown(self) -> str:
        """The table in Markdown."""
        return markdown_table(self.frame, title=self.title, decimals=self.decimals)

    def latex(self) -> str:
        """The table in LaTeX."""
        return latex_table(self.frame, title=self.title, decimals=self.decimals)

    def head(self, n: int = MOST_ROWS) -> tuple[Table, str]:
        """The first ``n`` rows, and a sentence on those left out; empty where there are none."""
        left = len(self.frame) - n
        if left <= 0:
            return self, ""
        some = Table(self.frame.head(n), self.title, self.decimals, self.intervals)
        return some, f"{left:,} more row{'s' * (left > 1)} in to_frame()."


class Described(ABC):
    """A repr of one short line, and tables in notebooks.

    A class gives its title in :meth:`_headline`, and its tables in :meth:`tables`.
    """

    @abstractmethod
    def _headline(self) -> str:
        """A title in a few words."""

    @abstractmethod
    def tables(self) -> Sequence[Table]:
        """The tables that notebooks show."""

    def sentences(self) -> Sequence[str]:
        """Sentences below these tables."""
        return ()

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.sentences())
        tables = "".join(view._repr_html_() for view in self.tables())
        return f'<div class="probeval-table">{tables}{notes}</div>'

    def __repr__(self) -> str:
        return _one_line(f"<{type(self).__name__}: {self._headline()}>")


def fact_table(values: Mapping[str, object]) -> pd.DataFrame:
    """Names and values as a table of text."""
    return pd.DataFrame({"what": list(values), "value": [str(value) for value in values.values()]}, dtype=object)


def _informative(value: Any) -> list[Field[Any]]:
    """The fields that say something: neither hidden nor at their defaults."""
    return [f for f in fields(value) if f.repr and not _is_default(f, getattr(value, f.name))]


def _is_default(one: Field[Any], value: object) -> bool:
    default = one.default_factory() if one.default_factory is not MISSING else one.default
    return value is default or (type(value) is type(default) and isinstance(value, PLAIN) and value == default)


def _short(value: object, most: int = SHORT) -> str:
    """The content of a field in a few words."""
    if hasattr(value, "shape"):
        return f"<{' x '.join(f'{n:,}' for n in value.shape) or '1'} values>"
    if isinstance(value, (Mapping, Sequence)) and not isinstance(value, (str, bytes)):
        text = repr(value) if len(value) <= FEW else ""
        return text if 0 < len(text) <= most else f"<{len(value):,} values>"
    return _one_line(getattr(value, "__qualname__", "") or repr(value), most)


def _one_line(text: str, most: int = WIDEST) -> str:
    """Text on one line of at most this many characters; what is cut is in its middle."""
    text = printable(" ".join(text.split()))
    half = (most - 1) // 2
    return text if len(text) <= most else f"{text[: most - 1 - half]}\N{HORIZONTAL ELLIPSIS}{text[-half:]}"


def dated(frame: pd.DataFrame, kind: type) -> pd.DataFrame:
    """A table of records as people read it: the columns that their class lists in ``TIMES``, which are seconds since
    1970, as dates in UTC.
    """
    times: dict[str, Any] = {name: list(map(_date, frame[name])) for name in getattr(kind, "TIMES", ())}
    return frame.assign(**times)


def _date(seconds: float | None) -> str | None:
    return None if seconds is None or math.isnan(seconds) else str(pd.to_datetime(round(seconds), unit="s"))


def moment(seconds: float) -> str:
    """A time, in seconds since 1970, to the minute.

    >>> moment(1.7e9)
    '2023-11-14 22:13 UTC'
    """
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def counted(n: int, what: str) -> str:
    """A number of things, in words.

    >>> counted(1, "pair"), counted(1200, "pair")
    ('1 pair', '1,200 pairs')
    """
    return f"{n:,} {what}{'s' * (n != 1)}"


def summary_text(views: Iterable[Table], sentences: Iterable[str]) -> str:
    """Tables and sentences as one text."""
    tables = ["\n".join(filter(None, (view.text(), more))) for view, more in (view.head() for view in views)]
    return "\n\n".join([*tables, *filter(None, ["\n".join(map(printable, sentences))])])
