"""How much memory a file may take: limits that real campaigns do not reach, and one variable that raises them.

A small file can unpack to many times its size, and a short table can stand for many empty cells. What is refused
here would fill the memory before any other check sees it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path

from probeval.errors import DataError

__all__ = ["VARIABLE", "check_array", "check_cells", "most_bytes", "refuse_size"]

VARIABLE = "PROBEVAL_MAX_BYTES"  # the bytes that one file may take, in place of what is below
MAX_FILE_BYTES = 4 << 30  # bytes of one file
# A compressed file may unpack to so many times its size, or to so many bytes if that is more. Compressed runs and
# judgments of real campaigns unpack to 2 to 13 times their size.
RATIO, ROOM = 50, 64 << 20
MOST_COLUMNS, COLUMN = 10_000, 1000  # of one table, and the bytes that one takes
SOME_CELLS, CELL = 10_000_000, 8  # cells that any table may have, and the bytes that an empty one takes
SPARSE = 100  # cells for each value of a larger array


def most_bytes(packed: int | None = None) -> int:
    """The bytes that a file may take; ``packed`` is the size of a compressed one."""
    given = _given()
    if given is not None:
        return given
    return MAX_FILE_BYTES if packed is None else min(MAX_FILE_BYTES, max(ROOM, RATIO * packed))


def refuse_size(what: str, most: int, *, path: Path) -> DataError:
    """The error for a file that takes more bytes than ``most``; ``what`` it does, as "unpacks to"."""
    return DataError(f"{what} more than {most:,} bytes. If it is to be trusted, set {VARIABLE} to more.", path=path)


def check_cells(rows: int, columns: int, size: int, *, path: Path | None) -> None:
    """Refuse a table with more columns than a file of this size can need, or with more cells than bytes."""
    given = _given()
    widest = MOST_COLUMNS if given is None else max(MOST_COLUMNS, given // COLUMN)
    if columns > widest:
        raise DataError(
            f"expected at most {widest:,} columns, got {columns:,}. If it is to be trusted, set {VARIABLE} to "
            f"{columns * COLUMN} or more.",
            path=path,
        )
    most = max(SOME_CELLS, size if given is None else given // CELL)
    if rows * columns > most:
        raise DataError(
            f"{rows:,} rows and {columns:,} columns are {rows * columns:,} cells, and at most {most:,} are expected. "
            f"If it is to be trusted, set {VARIABLE} to {rows * columns * CELL} or more.",
            path=path,
        )


def check_array(shape: Sequence[int], filled: int, *, path: Path | None = None) -> None:
    """Refuse an array that would be large and nearly empty: runs or labels that have little in common.

    >>> check_array((50, 1000, 1000), filled=30_000_000)
    """
    given, cells = _given(), math.prod(shape)
    if cells > max(SOME_CELLS, SPARSE * filled if given is None else given // CELL):
        raise DataError(
            f"{filled:,} values would be kept in {' x '.join(f'{n:,}' for n in shape)} places, nearly all empty. Read "
            f"them in parts that have more in common, or set {VARIABLE} to {cells * CELL} or more.",
            path=path,
        )


def _given() -> int | None:
    """The limit in the environment."""
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise DataError(f"{VARIABLE} must be a number of bytes such as 8000000000, got {text!r:.60}.")
    return int(text)
