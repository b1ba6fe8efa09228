"""The studies that a plan can name, and the work on one cell."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from probeval.errors import DataError, ProbevalWarning, did_you_mean
from probeval.studies.evidence.calibration import calibrate
from probeval.studies.evidence.fingerprint import (
    fingerprint_of_files,
    fingerprint_of_mathematics,
    fingerprint_of_values,
    parts_of_mathematics,
)
from probeval.studies.evidence.judging import judge
from probeval.studies.evidence.plan import Cell, EvidencePlan
from probeval.studies.evidence.sources import CellSources
from probeval.studies.evidence.store import FinishedCell, Made

__all__ = ["STUDIES", "Study", "do_cell", "made_of", "mathematics_of", "parts_of"]


PRICED = ("probeval.selection.labellers", "probeval.selection.prices")  # taken if observers have prices


@cache
def sources_of(plan: EvidencePlan) -> CellSources:
    return CellSources(plan)


@dataclass(frozen=True)
class Study:
    """A kind of cell.

    Parameters
    ----------
    name
        Its name in plans.
    question
        What it answers, in a line.
    do
        Returns the figures of a cell.
    """

    name: str
    question: str
    do: Callable[[Cell, CellSources], dict[str, Any]]

    def parts(self, *, priced: bool = False) -> dict[str, str]:
        """The fingerprints of the modules that its cells can touch; of more if observers have prices."""
        return dict(parts_of_mathematics((self.do.__module__,), () if priced else PRICED))

    def mathematics(self, *, priced: bool = False) -> str:
        """The fingerprint of all of them."""
        return fingerprint_of_mathematics((self.do.__module__,), without=() if priced else PRICED)


STUDIES: Mapping[str, Study] = {
    study.name: study
    for study in (
        Study("judging", "What policies find, when they stop, and how sure they are.", judge),
        Study("calibration", "Whether confidence is right when pairs are judged in random order.", calibrate),
    )
}


def study_of(cell: Cell) -> Study:
    """Return the study of a cell."""
    if cell.study not in STUDIES:
        raise DataError(f"No study {cell.study!r}: {', '.join(STUDIES)}.{did_you_mean(cell.study, STUDIES)}")
    return STUDIES[cell.study]


def mathematics_of(cell: Cell) -> str:
    """Return the fingerprint of the mathematics that a cell uses now."""
    return study_of(cell).mathematics(priced=_priced(cell))


def parts_of(cell: Cell) -> dict[str, str]:
    """Return the fingerprints of the modules that a cell can touch now."""
    return study_of(cell).parts(priced=_priced(cell))


def _priced(cell: Cell) -> bool:
    return "prices" in json.loads(cell.settings)


def made_of(plan: EvidencePlan, cell: Cell, version: str) -> Made:
    """Return what the figures of a cell are made from now; the data are read, as bytes."""
    files = sources_of(plan).files(cell)
    missing = next((path for path in files if not path.exists()), None)
    if missing is not None:
        raise DataError("is not there. Name the folder of the campaigns with --data.", path=missing)
    data = fingerprint_of_values([fingerprint_of_files(path) for path in files])
    return Made(mathematics_of(cell), data, fingerprint_of_values(cell.settings), version)


def do_cell(plan: EvidencePlan, cell: Cell, version: str) -> FinishedCell:
    """Return a finished cell."""
    made = made_of(plan, cell, version)  # of the code as it was loaded, before a long time passes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbevalWarning)  # the same for every cell of a campaign
        figures = study_of(cell).do(cell, sources_of(plan))
    return FinishedCell(cell, made, figures)
