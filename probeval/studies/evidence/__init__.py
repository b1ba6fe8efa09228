"""Studies of held-out campaigns whose figures are kept, cell by cell, and made again when the mathematics changes."""

from probeval.studies.evidence.fingerprint import fingerprint_of_mathematics, modules_reached
from probeval.studies.evidence.plan import Cell, EvidencePlan, PlanPart, read_plan
from probeval.studies.evidence.runner import Coverage, EvidenceCells, read_cells, run_cells
from probeval.studies.evidence.store import CellStore, FinishedCell, Made
from probeval.studies.evidence.work import STUDIES, Study

__all__ = [
    "STUDIES",
    "Cell",
    "CellStore",
    "Coverage",
    "EvidenceCells",
    "EvidencePlan",
    "FinishedCell",
    "Made",
    "PlanPart",
    "Study",
    "fingerprint_of_mathematics",
    "modules_reached",
    "read_cells",
    "read_plan",
    "run_cells",
]
