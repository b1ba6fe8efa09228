"""CSV that a spreadsheet cannot take for formulas.

A spreadsheet computes a cell that begins with ``=``, ``+``, ``-`` or ``@``, whoever wrote it: the name of a system, an
assessor or a document could run a command on the reader's machine. Such cells get an apostrophe in front, numbers
excepted. :func:`probeval.data.tables.read_table` takes it away again, so that names come back as they were.
"""

from __future__ import annotations

import re

import pandas as pd

__all__ = ["csv_text", "read_cell", "safe_cell"]

# Apostrophes in front are part of the pattern, so that a name that has one comes back with it.
FORMULA = re.compile(
    "'*[=+\\-@\t\r\n\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}"
    "\N{FULLWIDTH HYPHEN-MINUS}\N{FULLWIDTH COMMERCIAL AT}]"
)


def safe_cell(value: object) -> object:
    """A cell that no spreadsheet computes; other values than such texts are returned as they are.

    >>> safe_cell("=1+1"), safe_cell("bm25"), safe_cell("-1.5"), safe_cell(-1.5)
    ("'=1+1", 'bm25', '-1.5', -1.5)
    """
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) and not _is_number(value) else value


def read_cell(text: str) -> str:
    """The text of a cell that :func:`safe_cell` wrote.

    >>> read_cell("'=1+1"), read_cell("'tis")
    ('=1+1', "'tis")
    """
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text


def csv_text(table: pd.DataFrame, *, separator: str = ",", header: bool = True) -> str:
    """A table as CSV in full precision, safe to open in a spreadsheet.

    >>> print(csv_text(pd.DataFrame({"system": ["@sum", "bm25"], "mean": [-0.5, 0.25]})), end="")
    system,mean
    '@sum,-0.5
    bm25,0.25
    """
    texts = [at for at, kind in enumerate(table.dtypes) if not pd.api.types.is_numeric_dtype(kind)]
    safe = table.set_axis([safe_cell(name) for name in table.columns], axis=1)
    for at in texts:
        safe.isetitem(at, safe.iloc[:, at].map(safe_cell).to_numpy())
    return str(safe.to_csv(index=False, lineterminator="\n", sep=separator, header=header))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return not text[:1].isspace()
