"""Observers: who gives labels (a machine, a similarity or a person), of which family, on which scale."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from probeval.arrays import Bools, Floats
from probeval.data.pool import Pool
from probeval.data.tables import cell_text, read_table
from probeval.errors import DataError, ProbevalWarning, did_you_mean

__all__ = [
    "KINDS",
    "MOST_GRADE",
    "OBSERVER_COLUMNS",
    "ObserverSpec",
    "as_observers",
    "describe_observer",
    "read_observers",
]

KINDS = ("machine", "similarity", "person")
MOST_GRADE = 10  # integers above it are numbers, such as counts or percentages
SCALES = f"binary, graded:M (integers 0..M, M up to {MOST_GRADE}), number, probabilities"
OBSERVER_COLUMNS = ("name", "kind", "family", "scale", "provenance")
GRADED = re.compile(r"graded:([1-9]\d*)")

Given = Mapping[str, "Mapping[str, str] | ObserverSpec"]


@dataclass(frozen=True)
class ObserverSpec:
    """The description of an observer: a source of labels.

    Parameters
    ----------
    name
        The name of the source, that of its column in a table of labels.
    kind
        ``"machine"``, ``"similarity"`` (a score of words, vectors or lengths) or ``"person"``.
    family
        Observers of one family tend to make the same errors, such as one language model with several prompts. By
        default the name up to the first ``_`` or ``-``.
    scale
        ``"binary"`` (0 and 1), ``"graded:M"`` (integers 0..M), ``"number"``, or ``"probabilities"`` (of each grade).
    provenance
        How the labels were made, in words: the model and its version, the prompt, settings, the date.

    Examples
    --------
    >>> ObserverSpec("gpt4o_umbrela", scale="graded:3")
    ObserverSpec(name='gpt4o_umbrela', kind='machine', family='gpt4o', scale='graded:3')
    """

    name: str
    kind: str = "machine"
    family: str = ""
    scale: str = "number"
    provenance: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not self.name:
            raise DataError("an observer has no name. Name it as its column of labels.")
        if self.kind not in KINDS:
            raise DataError(
                f"observer {self.name!r}: the kind must be {', '.join(KINDS[:-1])} or {KINDS[-1]}, got {self.kind!r}."
                f"{did_you_mean(self.kind, KINDS)}"
            )
        if not _is_scale(self.scale):
            raise DataError(f"observer {self.name!r}: the scale must be one of {SCALES}; got {self.scale!r}.")
        if not self.family:
            object.__setattr__(self, "family", re.split("[_-]", self.name, maxsplit=1)[0] or self.name)

    @property
    def levels(self) -> int | None:
        """The number of grades of the scale; None for numbers and probabilities.

        >>> ObserverSpec("ann", scale="graded:3").levels
        4
        """
        if self.scale == "binary":
            return 2
        graded = GRADED.fullmatch(self.scale)
        return None if graded is None else int(graded[1]) + 1


def describe_observer(
    name: str, values: Floats, given: Mapping[str, str] | ObserverSpec | None = None, *, pool: Pool | None = None
) -> ObserverSpec:
    """Describe an observer, by its labels where nothing is given.

    By default it is a machine; labels that are all 0 or 1 are binary, other integers from 0 to 10 are grades up to
    the highest one, and anything else is a number.

    Parameters
    ----------
    name
        The name of the observer.
    values
        Its labels, NaN where missing, shape (pair,); or its probabilities, shape (pair, level).
    given
        A description, complete or not: any of ``kind``, ``family``, ``scale`` and ``provenance``.
    pool
        The labelled pairs, to name the pair in an error.

    Raises
    ------
    DataError
        If a label is not on the given scale.

    Examples
    --------
    >>> describe_observer("llama_binary", np.array([0.0, 1.0, np.nan])).scale
    'binary'
    >>> describe_observer("ann", np.array([0.0, 2.0]), {"kind": "person", "scale": "graded:3"})
    ObserverSpec(name='ann', kind='person', family='ann', scale='graded:3')
    """
    known = asdict(given) if isinstance(given, ObserverSpec) else dict(given or {})
    known = {key: value for key, value in known.items() if key in OBSERVER_COLUMNS[1:] and value}
    spec = ObserverSpec(name, **{"scale": _inferred_scale(values), **known})
    if (spec.scale == "probabilities") != (values.ndim == 2):
        has = "probabilities of grades" if values.ndim == 2 else "one label per pair"
        raise DataError(f"observer {name!r} has {has}, which the given scale {spec.scale} does not allow. Correct it.")
    off = np.flatnonzero(_off_scale(values, spec))
    if len(off):
        query, doc = ("", "") if pool is None else pool.label(int(off[0]))
        where = "" if pool is None else f" of query {query!r}, document {doc!r}"
        raise DataError(
            f"observer {name!r}: the label {values[off[0]]:g}{where} is not on the given scale {spec.scale}. "
            "Correct the label or the scale."
        )
    return spec


def _is_scale(text: str) -> bool:
    graded = GRADED.fullmatch(text)
    return text in ("binary", "number", "probabilities") or (
        graded is not None and len(graded[1]) <= 3 and int(graded[1]) <= MOST_GRADE
    )


def _inferred_scale(values: Floats) -> str:
    if values.ndim == 2:
        return "probabilities"
    seen = values[~np.isnan(values)]
    if not len(seen) or np.any((seen != np.round(seen)) | (seen < 0) | (seen > MOST_GRADE)):
        return "number"
    return "binary" if seen.max() <= 1 else f"graded:{int(seen.max())}"


def _off_scale(values: Floats, spec: ObserverSpec) -> Bools:
    """Which labels the scale lacks, shape (pair,)."""
    if spec.levels is None:
        return np.zeros(len(values), dtype=bool)
    return ~np.isnan(values) & ~np.isin(values, np.arange(spec.levels))


def read_observers(path: str | PathLike[str]) -> dict[str, dict[str, str]]:
    """Read descriptions of observers from a table: ``name`` and any of ``kind``, ``family``, ``scale``, ``provenance``.

    An empty cell leaves the value to :func:`describe_observer`. Other columns are not used, which a warning says.
    """
    return observers_from_table(read_table(Path(path)), path=Path(path))


def observers_from_table(table: pd.DataFrame, *, path: Path | None = None) -> dict[str, dict[str, str]]:
    """Descriptions of observers from a data frame with the columns that :func:`read_observers` expects."""
    by_name = {str(c).strip().lower(): c for c in table.columns}
    if "name" not in by_name:
        got = ", ".join(repr(str(c)) for c in table.columns)
        raise DataError(f"no column 'name'. Expected name, and any of kind, family and scale; got {got}.", path=path)
    unknown = [str(c) for name, c in by_name.items() if name not in OBSERVER_COLUMNS]
    if unknown:
        where = "" if path is None else f"{path}: "
        warnings.warn(
            f"{where}columns that describe no observer are not used: {', '.join(unknown)}.", ProbevalWarning, 3
        )
    cells = {c: [cell_text(v).strip() for v in table[by_name[c]]] for c in OBSERVER_COLUMNS if c in by_name}
    given: dict[str, dict[str, str]] = {}
    for row, name in enumerate(cells["name"]):
        if name in given:
            raise DataError(f"row {row + 1}: observer {name!r} is described twice. Keep one row.", path=path)
        given[name] = {c: values[row] for c, values in cells.items() if c != "name" and values[row]}
        try:
            ObserverSpec(name, **given[name])
        except DataError as error:
            raise DataError(f"row {row + 1}: {error}", path=path) from None
    return given


def as_observers(given: Any) -> dict[str, dict[str, str]]:
    """Descriptions of observers by name, from a path, a data frame or a mapping.

    >>> as_observers({"ann": {"kind": "person"}})
    {'ann': {'kind': 'person'}}
    """
    if isinstance(given, (str, PathLike)):
        return read_observers(given)
    if isinstance(given, Mapping):
        wrong = next((name for name, s in given.items() if not isinstance(s, (Mapping, ObserverSpec))), None)
        if wrong is not None:
            raise DataError(
                f"observer {wrong!r}: expected a mapping such as {{'kind': 'person'}}, got {given[wrong]!r}."
            )
        described = {name: asdict(s) if isinstance(s, ObserverSpec) else s for name, s in given.items()}
        rows = [{**s, "name": name} for name, s in described.items()]
        given = pd.DataFrame(rows, columns=None if rows else OBSERVER_COLUMNS, dtype=object)
    return observers_from_table(given)
