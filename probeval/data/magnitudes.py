"""Numbers that assessors gave single documents: magnitudes of any size, and scores from 0 to 100."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from probeval.arrays import Bools, Floats, Ids, frozen, objects
from probeval.data.tables import cell_text, ids, numbers, read_table
from probeval.errors import DataError, did_you_mean

__all__ = ["NUMBER_KINDS", "Magnitudes", "as_magnitudes", "read_magnitudes"]

NUMBER_KINDS = ("magnitude", "s100")
HIGHEST = 100.0  # of a number on the scale from 0 to 100
COLUMNS = ("query", "doc", "number")


@dataclass(frozen=True, eq=False)
class Magnitudes:
    """Numbers for the relevance of single documents.

    Parameters
    ----------
    query, doc
        The query and the document, shape (answer,).
    number
        The number: above 0 for a magnitude, from 0 to 100 on that scale, shape (answer,).
    kind
        ``"magnitude"`` for numbers of any size, of which only ratios within a unit count; ``"s100"`` for numbers from 0
        to 100.
    unit
        The documents that an assessor judged together, by any name; empty if all of a query's are one unit.
    assessor
        The name of the assessor; empty if unknown.
    seconds
        The time that the answer took, NaN if unknown, shape (answer,).

    Examples
    --------
    >>> as_magnitudes(pd.DataFrame({"query": ["q"] * 2, "doc": ["d1", "d2"], "number": [10, 40]}))
    <Magnitudes: 2 numbers by 1 assessor on 2 documents of 1 query>
    """

    query: Ids
    doc: Ids
    number: Floats
    kind: Ids
    unit: Ids
    assessor: Ids
    seconds: Floats

    def __post_init__(self) -> None:
        for name in ("number", "seconds"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def __len__(self) -> int:
        return len(self.query)

    def __repr__(self) -> str:
        people, queries = len(set(self.assessor)), len(set(self.query))
        docs = len(set(zip(self.query, self.doc, strict=True)))
        return (
            f"<Magnitudes: {len(self):,} number{'s' * (len(self) != 1)} by {people:,} assessor{'s' * (people != 1)} "
            f"on {docs:,} document{'s' * (docs != 1)} of {queries:,} {'query' if queries == 1 else 'queries'}>"
        )

    @property
    def is_bounded(self) -> Bools:
        """Which numbers are on the scale from 0 to 100, shape (answer,)."""
        return np.asarray(self.kind == "s100", dtype=bool)

    def take(self, which: Any) -> Magnitudes:
        """These numbers alone, by positions or by a mask."""
        return Magnitudes(*(getattr(self, name)[which] for name in self.__dataclass_fields__))

    def by_assessor(self) -> Iterator[tuple[str, Magnitudes]]:
        """The numbers of each assessor, in the order of their first answers."""
        for name in dict.fromkeys(self.assessor):
            yield name, self.take(np.flatnonzero(self.assessor == name))

    def to_frame(self) -> pd.DataFrame:
        """One row per number, in the columns that :func:`read_magnitudes` takes."""
        return pd.DataFrame({name: getattr(self, name) for name in self.__dataclass_fields__})


def read_magnitudes(path: str | PathLike[str]) -> Magnitudes:
    """Read numbers from a table (CSV, TSV, JSONL, parquet; gzipped or not).

    Its columns are ``query``, ``doc`` and ``number``. Optional are ``kind`` (magnitude, or s100 for numbers from 0 to
    100; magnitude by default), ``unit``, ``assessor`` and ``seconds``.
    """
    return as_magnitudes(read_table(Path(path)), path=Path(path))


def as_magnitudes(table: pd.DataFrame, *, path: Path | None = None) -> Magnitudes:
    """The numbers of a table with the columns of :func:`read_magnitudes`."""
    names = {str(name).strip().lower(): name for name in table.columns}
    missing = next((name for name in COLUMNS if name not in names), None)
    if missing is not None:
        raise DataError(
            f"no column {missing!r}: expected {', '.join(COLUMNS)}.{did_you_mean(missing, names)}", path=path
        )
    number = numbers(table[names["number"]], "number", path=path, finite=True)
    kind = _words(table, names, "kind")
    kind = objects([word.strip().lower() or NUMBER_KINDS[0] for word in kind])
    for row, word in enumerate(kind):
        if word not in NUMBER_KINDS:
            raise DataError(
                f"the kind in row {row + 1} must be one of {', '.join(NUMBER_KINDS)}, or empty, got {word!r}.",
                path=path,
            )
    bounded = np.asarray(kind == "s100", dtype=bool)
    wrong = np.flatnonzero(np.where(bounded, (number < 0) | (number > HIGHEST), number <= 0))
    if wrong.size:
        row = int(wrong[0])
        must = f"from 0 to {HIGHEST:g}" if bounded[row] else "above 0"
        raise DataError(f"the number in row {row + 1} must be {must}, got {number[row]:g}.", path=path)
    seconds = np.full(len(table), np.nan)
    if "seconds" in names:
        seconds = numbers(table[names["seconds"]], "seconds", path=path, missing=True, finite=True)
    return Magnitudes(
        objects(ids(table[names["query"]], "query", path=path)),
        objects(ids(table[names["doc"]], "doc", path=path)),
        number,
        kind,
        _words(table, names, "unit"),
        _words(table, names, "assessor"),
        seconds,
    )


def _words(table: pd.DataFrame, names: dict[str, Any], name: str) -> Ids:
    """The texts of an optional column, empty where it has none."""
    if name not in names:
        return objects([""] * len(table))
    return objects([cell_text(value) for value in table[names[name]]])
