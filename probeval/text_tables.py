r"""Tables as text: aligned for terminals, Markdown, and LaTeX.

Names may hold any characters. Those that mean something to Markdown or LaTeX are escaped, so ``$\foo$``, ``a|b`` and
``run_1`` come out as they are. Line breaks and other control characters are shown as ``\n`` and the like, so that a
name can neither forge a row nor move the cursor of a terminal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pandas as pd

from probeval.characters import printable

__all__ = ["cell_text", "is_text_column", "latex_table", "markdown_table", "markdown_text", "text_table"]

DECIMALS = 4
NOTHING: Mapping[str, int] = MappingProxyType({})
SPACE = re.compile(r"\s+")
NEGATIVE = re.compile(r"-(?=[\d.,]+(e[-+]?\d+)?%?$)")
# An underscore between letters or digits is only an underscore; elsewhere it starts emphasis.
# What Markdown would read as markup; an interval is none. At the beginning of a line also a heading or a list.
MARKDOWN = re.compile(
    r"[\\`*<>&$~|]|\[(?![+-]?[\d.]+, )|\](?=[(\[:])|(?<![^\W_])_|_(?![^\W_])"
    r"|^#(?=#{0,5}\s)|^[+-](?=\s)|(?<=^\d)[.)](?=\s)"
)
# What many readers of Markdown link, and notify: names of people, addresses.
ADDRESS = re.compile(r"(?<!\w)@(?=\w)|:(?=//)|(?<=\bwww)\.", re.IGNORECASE)
LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    "[": "{[}",  # at the start of a row it would be the option of the row before it, and so would a star
    "*": "{*}",
    "--": "-{}-",  # two hyphens, not a dash
}
SPECIAL = re.compile("|".join(re.escape(text) for text in sorted(LATEX, key=len, reverse=True)))


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
    names, left, rows = _cells(frame, decimals)
    lines = ["  ".join(row).rstrip() for row in _padded([names, *rows], left)]
    return "\n".join([printable(title, lines=True), *lines] if title else lines)


def markdown_table(frame: pd.DataFrame, *, title: str | None = None, decimals: Mapping[str, int] = NOTHING) -> str:
    r"""The same table in Markdown, as GitHub and most others read it; the title is a line in bold.

    Examples
    --------
    >>> print(markdown_table(pd.DataFrame({"system": ["a|b", "bm25"], "mean": [0.5, float("nan")]}), title="nDCG@10"))
    **nDCG@10**
    <BLANKLINE>
    | system |   mean |
    | :----- | -----: |
    | a\|b   | 0.5000 |
    | bm25   |      - |
    """
    names, left, rows = _cells(frame, decimals)
    if not names:
        return ""
    lines = _padded([[markdown_text(cell) for cell in row] for row in (names, *rows)], left, least=2)
    widths = [len(cell) for cell in lines[0]]
    rule = [":" + "-" * (w - 1) if first else "-" * (w - 1) + ":" for w, first in zip(widths, left, strict=True)]
    table = [f"| {' | '.join(line)} |" for line in (lines[0], rule, *lines[1:])]
    return "\n".join([f"**{markdown_text(title)}**", "", *table] if title else table)


def latex_table(frame: pd.DataFrame, *, title: str | None = None, decimals: Mapping[str, int] = NOTHING) -> str:
    r"""The same table in LaTeX with the rules of booktabs; with a title, a float with that caption.

    Examples
    --------
    >>> print(latex_table(pd.DataFrame({"system": ["run_1", "a&b"], "mean": [0.5, -0.25]}), title="nDCG@10"))
    % \usepackage{booktabs}
    \begin{table}
    \centering
    \caption{nDCG@10}
    \begin{tabular}{lr}
    \toprule
    system &      mean \\
    \midrule
    run\_1 &    0.5000 \\
    a\&b   & $-$0.2500 \\
    \bottomrule
    \end{tabular}
    \end{table}
    """
    names, left, rows = _cells(frame, decimals)
    if not names:
        return ""
    body = [
        [_latex(cell) if first else _latex_number(cell) for cell, first in zip(row, left, strict=True)] for row in rows
    ]
    lines = [f"{' & '.join(row)} \\\\" for row in _padded([[_latex(name) for name in names], *body], left)]
    table = [
        f"\\begin{{tabular}}{{{''.join('l' if first else 'r' for first in left)}}}",
        "\\toprule",
        lines[0],
        "\\midrule",
        *lines[1:],
        "\\bottomrule",
        "\\end{tabular}",
    ]
    if title:
        table = ["\\begin{table}", "\\centering", f"\\caption{{{_latex(title)}}}", *table, "\\end{table}"]
    return "\n".join(["% \\usepackage{booktabs}", *table])


def markdown_text(text: str) -> str:
    r"""Return text as one line that Markdown shows as it is: names in it are no markup, and notify and load nothing.

    >>> print(markdown_text("![x](y) run_1 @ann"))
    !\[x\](y) run_1 @<!-- -->ann
    """
    line = MARKDOWN.sub(lambda found: f"\\{found[0]}", printable(SPACE.sub(" ", text).strip()))
    return ADDRESS.sub(lambda found: f"{found[0]}<!-- -->", line)


def _latex(text: str) -> str:
    """Return text on one line with the signs of LaTeX escaped."""
    return SPECIAL.sub(lambda found: LATEX[found[0]], SPACE.sub(" ", text).strip())


def _latex_number(cell: str) -> str:
    """Return a cell of a column of numbers: a minus sign in place of a hyphen, a dash for missing values."""
    return "--" if cell == "-" else _latex(cell) if NEGATIVE.match(cell) is None else f"$-${_latex(cell[1:])}"


def _cells(frame: pd.DataFrame, decimals: Mapping[str, int]) -> tuple[list[str], list[bool], list[list[str]]]:
    """Return the names of the columns, whether each is text, and the rows as text."""
    names = [printable(str(name)) for name in frame.columns]
    columns = [frame.iloc[:, i] for i in range(len(names))]
    cells = [
        [printable(cell_text(value, decimals.get(name, DECIMALS))) for value in column]
        for name, column in zip(names, columns, strict=True)
    ]
    return names, [is_text_column(column) for column in columns], [list(row) for row in zip(*cells, strict=True)]


def _padded(rows: Sequence[Sequence[str]], left: Sequence[bool], *, least: int = 0) -> list[list[str]]:
    """Return cells of equal width in each column: text to the left, numbers to the right."""
    widths = [max(least, *map(len, column)) for column in zip(*rows, strict=True)]
    return [
        [cell.ljust(w) if first else cell.rjust(w) for cell, w, first in zip(row, widths, left, strict=True)]
        for row in rows
    ]


def cell_text(value: Any, decimals: int = DECIMALS) -> str:
    """Return the text of a cell; ``-`` for missing values."""
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.{decimals}f}"
    return "-" if value is None else str(value)


def is_text_column(values: pd.Series) -> bool:
    """Return whether every cell of a column is text."""
    return all(isinstance(v, str) for v in values)
