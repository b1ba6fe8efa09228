"""Finished cells, kept as lines of JSON: one file per study and campaign, small enough for a repository."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from probeval.data.files import write_bytes
from probeval.errors import DataError
from probeval.studies.evidence.plan import Cell

__all__ = ["CellStore", "FinishedCell", "Made"]


@dataclass(frozen=True)
class Made:
    """What the figures of a cell were made from, as fingerprints.

    Parameters
    ----------
    mathematics, data, settings
        The fingerprints of the modules, of the bytes of the files, and of the settings.
    version
        The version of probeval, for people.
    """

    mathematics: str
    data: str
    settings: str
    version: str


@dataclass(frozen=True)
class FinishedCell:
    """A cell, its figures, and what they were made from."""

    cell: Cell
    made: Made
    figures: Mapping[str, Any]

    def line(self) -> str:
        """The cell as a line of JSON; the same cell gives the same bytes."""
        place = dict(zip(PLACE, self.cell.place, strict=True))
        made = {name: getattr(self.made, name) for name in MADE}
        return json.dumps({**place, **made, "figures": dict(self.figures)}, separators=(",", ":"))

    @classmethod
    def of_line(cls, line: str) -> FinishedCell:
        """Read a line."""
        found = json.loads(line)
        cell = Cell(*(found[name] for name in PLACE))
        return cls(cell, Made(*(found[name] for name in MADE)), found["figures"])


PLACE = ("study", "collection", "measure", "policy", "labels", "seed")
MATHEMATICS = "mathematics.json"
MADE = ("mathematics", "data", "settings", "version")


class CellStore:
    """A folder of finished cells, one for each place of a plan: a cell that is done again takes the place of the old.

    Parameters
    ----------
    folder
        The folder; it is made when the first cell is kept.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self) -> dict[tuple[Any, ...], FinishedCell]:
        """Return the finished cells by their places."""
        files = sorted(self.folder.glob("*.jsonl")) if self.folder.is_dir() else []
        return {one.cell.place: one for path in files for one in self._lines(path)}

    def mathematics(self) -> dict[str, dict[str, str]]:
        """Return the fingerprints of modules, by the fingerprint of the mathematics of finished cells."""
        path = self.folder / MATHEMATICS
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}

    def note(self, mathematics: str, parts: Mapping[str, str]) -> None:
        """Write the modules of a mathematics; those of which no cell is left are dropped."""
        used = {one.made.mathematics for one in self.read().values()} | {mathematics}
        self.folder.mkdir(parents=True, exist_ok=True)
        with _locked(self.folder):
            known = {name: had for name, had in self.mathematics().items() if name in used}
            known[mathematics] = dict(parts)
            text = json.dumps(known, indent=0, sort_keys=True)
            write_bytes(self.folder / MATHEMATICS, f"{text}\n".encode())

    def keep(self, finished: FinishedCell) -> None:
        """Write a finished cell; cells that another process wrote meanwhile stay."""
        path = self.folder / f"{finished.cell.study}-{finished.cell.collection}.jsonl"
        self.folder.mkdir(parents=True, exist_ok=True)
        with _locked(self.folder):
            known = {one.cell.place: one for one in self._lines(path)} if path.exists() else {}
            known[finished.cell.place] = finished
            lines = [known[place].line() for place in sorted(known)]
            write_bytes(path, "".join(f"{line}\n" for line in lines).encode())

    @staticmethod
    def _lines(path: Path) -> Iterable[FinishedCell]:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            try:
                yield FinishedCell.of_line(line)
            except (ValueError, KeyError, TypeError):
                raise DataError(
                    "is no finished cell. Delete the line: it is made again.", path=path, line=number
                ) from None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which ends with the process, where the system has such locks."""
    if os.name != "posix":
        yield
        return
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
