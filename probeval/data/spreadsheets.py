"""CSV that spreadsheets do not take for formulas, and that reads back as it was.

A spreadsheet computes a cell that begins with ``=``, ``+``, ``-`` or ``@``, so the name of a document could run as a
formula. Text that begins so gets an apostrophe in front, in every CSV and TSV file that is written; :func:`restored`
takes it away again when a table is read. Numbers stay as they are.
"""

from __future__ import annotations

import re

import pandas as pd

__all__ = ["as_text", "csv_text", "restored", "restored_cell"]

SIGNS = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"  # the wide ones are the same to a spreadsheet
MARKED = re.compile(f"'+[{re.escape(SIGNS)}]")
IN_BYTES = re.compile(b"'(?:" + b"|".join(re.escape(sign.encode()) for sign in SIGNS) + b")")


def as_text(cell: str) -> str:
    """Return a cell that no spreadsheet computes: text like a formula gets an apostrophe.

    >>> [as_text(cell) for cell in ("=1+1", "-d7", "-7", "bm25", "'=x")]
    ["'=1+1", "'-d7", '-7', 'bm25', "''=x"]
    """
    if MARKED.match(cell) or (len(cell) > 1 and cell[0] in SIGNS and not _is_number(cell)):
        return f"'{cell}"
    return cell


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def csv_text(frame: pd.DataFrame, *, header: bool = True, separator: str = ",") -> str:
    """Return a table as CSV, numbers in full precision; text that is like a formula gets an apostrophe.

    >>> print(csv_text(pd.DataFrame({"doc": ["=A1", "d2"], "score": [-0.5, 0.25]})), end="")
    doc,score
    '=A1,-0.5
    d2,0.25
    """
    safe = frame.rename(columns=lambda name: as_text(str(name)))
    for i, dtype in enumerate(frame.dtypes):
        if not pd.api.types.is_numeric_dtype(dtype):
            safe.isetitem(i, [as_text(cell) if isinstance(cell, str) else cell for cell in frame.iloc[:, i]])
    return str(safe.to_csv(index=False, lineterminator="\n", header=header, sep=separator))


def restored_cell(cell: str) -> str:
    """Return a cell as it was before :func:`as_text`.

    >>> [restored_cell(cell) for cell in ("'=1+1", "'-d7", "-7", "''=x", "'tis")]
    ['=1+1', '-d7', '-7', "'=x", "'tis"]
    """
    return cell[1:] if MARKED.match(cell) else cell


def restored(table: pd.DataFrame, data: bytes) -> pd.DataFrame:
    """Return a table of strings as it was before :func:`csv_text`; ``data`` is the file that it was read from."""
    if not IN_BYTES.search(data):
        return table
    return table.rename(columns=restored_cell).map(restored_cell)
