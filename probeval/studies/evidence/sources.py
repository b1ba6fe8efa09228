"""What cells are made from: campaigns, labels and models that never saw the campaign that is held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probeval.data.collection import Collection, read_campaign
from probeval.data.evidence import LabelTable, read_graded_labels, read_label_table
from probeval.errors import DataError
from probeval.relevance.learning.fit import fit_hierarchical
from probeval.relevance.models.base import Predicts
from probeval.simulation.points import Point
from probeval.simulation.validate import MODELS
from probeval.streams import Purpose, stream

if TYPE_CHECKING:
    from probeval.studies.evidence.plan import Cell, EvidencePlan

__all__ = ["CellSources", "columns_of", "rounded"]

POINTS = (
    *("judged", "confidence", "accuracy", "accuracy_p", "tau", "tau_top15", "tau_ap", "mae", "sd"),
    *("calibration_error", "calibration_excess", "calibration_p", "coverage"),
    *("centred_coverage", "centred_coverage_null05", "level_z"),
)
DIGITS = 6  # of figures
SHUFFLED = "shuffled"  # in front of a column: its labels, dealt to the pairs at random
TABLES = (".tsv.gz", ".tsv", ".csv.gz", ".csv")


class CellSources:
    """Campaigns, labels and fitted models of a plan, each read or fitted once per process."""

    def __init__(self, plan: EvidencePlan) -> None:
        self.plan = plan
        self.folder = Path(plan.folder)
        self.collection = cache(self._collection)
        self.table = cache(read_label_table)
        self.model = cache(self._model)

    def _collection(self, name: str) -> Collection:
        return read_campaign(self.folder / name)

    def held_out(self, cell: Cell) -> Collection:
        """Return the campaign of a cell, with its column of labels alone."""
        return replace(self.collection(cell.collection), labels=self.labels(cell.labels) if cell.labels else None)

    def labels(self, named: str) -> LabelTable:
        """Return a column of labels, by the name of its table and its own."""
        first, _, rest = named.partition(":")
        shuffled = first == SHUFFLED
        table, _, column = (rest if shuffled else named).partition(":")
        found = self.table(self.file_of(table)).take([column])
        if not shuffled:
            return found
        order = stream(0, named, Purpose.ORDER).permutation(len(found.values))
        return LabelTable(found.pool, (f"{SHUFFLED}_{column}",), found.values[order])

    def file_of(self, table: str) -> Path:
        """Return the file of a table of labels."""
        found = next((p for p in (self.folder / f"{table}{end}" for end in TABLES) if p.exists()), None)
        if found is None:
            raise DataError(f"no table of labels {table!r} in {self.folder}: expected {table}{TABLES[0]} or the like.")
        return found

    def past(self, name: str, *, labels: bool) -> list[Collection]:
        """Return the campaigns that are learned from."""
        found = [self.collection(other) for other in self.plan.past(name)]
        if not found:
            raise DataError(f"{name}: there is no other campaign to learn from. Name at least two.")
        return found if labels else [replace(one, labels=None) for one in found]

    def fitted(self, cell: Cell, kind: str, depth: int) -> Predicts:
        """Return a model that never saw the campaign of a cell, nor its labels."""
        return self.model(self.plan.left_out(cell.collection), kind, depth, bool(cell.labels))

    def _model(self, out: Sequence[str], kind: str, depth: int, labels: bool) -> Predicts:
        past = [one.judged_part(depth) for one in self.past(out[0], labels=labels)]
        if labels and kind == "hierarchical":
            graded = [read_graded_labels(self.file_of(table)) for table in self.plan.graded(out[0])]
            return fit_hierarchical(past, depth=depth, labelled=graded)
        return MODELS[kind](past, depth=depth)

    def files(self, cell: Cell) -> list[Path]:
        """Return the files and folders that the figures of a cell depend on."""
        names = [cell.collection, *self.plan.past(cell.collection)]
        found = [self.folder / name for name in names]
        if cell.labels:
            table = cell.labels.removeprefix(f"{SHUFFLED}:").partition(":")[0]
            found += [self.file_of(one) for one in (table, *self.plan.graded(cell.collection))]
        return found


def columns_of(points: Sequence[Point]) -> dict[str, list[Any]]:
    """Return the figures of points, one list each."""
    return {name: [rounded(getattr(point, name)) for point in points] for name in POINTS}


def rounded(value: Any) -> Any:
    """Return a figure in few digits; None for one that is not finite."""
    if isinstance(value, float):
        return round(value, DIGITS) if isfinite(value) else None
    return value
