"""The parts of a report, and its rendering as one self-contained HTML file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from math import isfinite, isnan
from os import PathLike
from pathlib import Path
from typing import Any

from probeval.data.files import write_bytes
from probeval.display import Record, Table

__all__ = ["Facts", "Figure", "Page", "Part", "Prose", "Quote", "Section", "TableText", "render", "write_report"]

UNFOLDED_ROWS = 20  # rows of a table that are shown; those of a longer one are folded
NUMBER = re.compile(r"[-+<>]?[\d,.]+%?|-|never")


@dataclass(frozen=True, repr=False)
class Prose(Record):
    """A paragraph."""

    text: str
    kind: str = "prose"


@dataclass(frozen=True, repr=False)
class Quote(Record):
    """A paragraph to copy."""

    text: str
    kind: str = "quote"


@dataclass(frozen=True, repr=False)
class Facts(Record):
    """Names and values, one per line."""

    rows: tuple[tuple[str, str], ...]
    kind: str = "facts"


@dataclass(frozen=True, repr=False)
class Figure(Record):
    """A figure: inline SVG, alternative text and caption."""

    svg: str
    alt: str
    caption: str
    kind: str = "figure"


@dataclass(frozen=True, repr=False)
class TableText(Record):
    """The text of a table on a page; rows past the first 20 are folded."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    kind: str = "table"

    @classmethod
    def of(cls, table: Table) -> TableText:
        """The cells of a table: numbers with four decimals, whole counts, a dash for missing values.

        >>> import pandas as pd
        >>> TableText.of(Table(pd.DataFrame({"system": ["a"], "mean": [0.25], "n": [1200]}), "Scores")).rows
        (('a', '0.2500', '1,200'),)
        """
        rows = tuple(tuple(map(cell, row)) for row in table.frame.itertuples(index=False))
        return cls(table.title or "", tuple(map(str, table.frame.columns)), rows)

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Which columns are all numbers, and so aligned to the right."""
        return tuple(all(NUMBER.fullmatch(row[i]) for row in self.rows) for i in range(len(self.columns)))

    @property
    def folded(self) -> int:
        """The number of rows that are shown on request; a few more than the limit are not folded."""
        return len(self.rows) - UNFOLDED_ROWS if len(self.rows) > UNFOLDED_ROWS + 5 else 0


Part = Prose | Quote | Facts | Figure | Table


@dataclass(frozen=True, repr=False)
class Section(Record):
    """A section of a page, with a heading."""

    key: str
    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, repr=False)
class Page(Record):
    """A whole report.

    Parameters
    ----------
    title, lead
        The title, and one or two sentences on the main result.
    figures
        The key figures: name, value and note.
    sections
        The sections, in order.
    kind
        ``"evaluation"``, ``"campaign"``, ``"simulation"``, ``"study"`` or ``"statement"``.
    """

    title: str
    lead: str
    figures: tuple[tuple[str, str, str], ...]
    sections: tuple[Section, ...]
    kind: str = "evaluation"

    def __getitem__(self, key: str) -> Section:
        return next(section for section in self.sections if section.key == key)


def between(low: float, high: float, spec: str = ".4f") -> str:
    """An interval in brackets that does not break at its comma."""
    return f"[{low:{spec}},\N{NO-BREAK SPACE}{high:{spec}}]"


def percent(part: int, whole: int) -> str:
    """A share in percent; 100% only for the whole.

    >>> percent(2494, 2495), percent(5, 5), percent(0, 0)
    ('99.9%', '100.0%', '0.0%')
    """
    share = part / max(whole, 1)
    return f"{min(share, 0.999):.1%}" if part < whole else f"{share:.1%}"


def cell(value: Any) -> str:
    """Return the text of a table cell."""
    if isinstance(value, float) or hasattr(value, "dtype"):
        number = float(value)
        if isnan(number):
            return "-"
        if not isfinite(number):
            return "never"
        return f"{int(number):,}" if "int" in str(getattr(value, "dtype", "")) else f"{number:.4f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def render(page: Page) -> str:
    """Return the page as HTML: no scripts, no requests, light and dark, printable."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = files("probeval.reports") / "templates"
    environment = Environment(
        loader=FunctionLoader(lambda name: (folder / name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html").render(page=page, parts=_numbered(page.sections))


def _numbered(sections: Sequence[Section]) -> dict[str, list[tuple[str, Part | TableText]]]:
    """Return the parts of every section, each with a unique id, and tables as text."""
    return {
        s.key: [
            (f"{s.key}-{i}", TableText.of(part) if isinstance(part, Table) else part)
            for i, part in enumerate(s.parts, start=1)
        ]
        for s in sections
    }


def write_report(page: Page, path: str | PathLike[str]) -> Path:
    """Write the page as one HTML file, atomically."""
    file = Path(path)
    write_bytes(file, render(page).encode())
    return file
