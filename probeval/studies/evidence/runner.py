"""Does the cells of a plan that are missing or of earlier mathematics, until the time is up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

import pandas as pd

from probeval.display import Table
from probeval.errors import DataError
from probeval.parallel import parallel
from probeval.reporting import SILENT, Reporter
from probeval.results import Result, frame, key
from probeval.studies.evidence.fingerprint import fingerprint_of_values
from probeval.studies.evidence.plan import Cell, EvidencePlan
from probeval.studies.evidence.store import CellStore, FinishedCell
from probeval.studies.evidence.work import do_cell, made_of, mathematics_of, parts_of

__all__ = ["Coverage", "EvidenceCells", "read_cells", "run_cells"]

HOUR = 3600


@dataclass(frozen=True)
class Coverage:
    """The cells of a study on one campaign."""

    study: str
    campaign: str
    cells: Annotated[int, "The cells of the plan."]
    done: Annotated[int, "Those that are done."]
    now: Annotated[int, "Those that are done with the mathematics and the settings of now."]


@dataclass(frozen=True, eq=False, repr=False)
class EvidenceCells(Result):
    """The finished cells of a plan.

    Parameters
    ----------
    cells
        The cells of the plan.
    finished
        Those that are done, in their order.
    """

    cells: tuple[Cell, ...]
    finished: tuple[FinishedCell, ...]
    stale_pages: Annotated[tuple[str, ...], "Pages that are not what the cells give now; empty if not checked."] = ()
    changed: Annotated[
        tuple[str, ...], "Modules that have changed since the cells of earlier mathematics were made, where known."
    ] = ()
    seconds: Annotated[float, "The time that was spent on cells, in seconds, over all processes."] = 0.0

    @key
    def coverage(self) -> tuple[Coverage, ...]:
        """One entry per study and campaign."""
        found: dict[tuple[str, str], list[int]] = {}
        done = {one.cell.place: one for one in self.finished}
        for cell in self.cells:
            counts = found.setdefault((cell.study, cell.collection), [0, 0, 0])
            one = done.get(cell.place)
            for i, holds in enumerate((True, one is not None, one is not None and is_of_now(one, cell))):
                counts[i] += holds
        return tuple(Coverage(*names, *counts) for names, counts in found.items())

    @property
    def exit_code(self) -> int:
        """1 if pages are stale."""
        return int(bool(self.stale_pages))

    @property
    def of_now(self) -> int:
        """The number of cells that are of the mathematics of now."""
        return sum(one.now for one in self.coverage)

    def some(self, wanted: Callable[[Cell], bool]) -> EvidenceCells:
        """The cells that are wanted."""
        return EvidenceCells(
            tuple(cell for cell in self.cells if wanted(cell)),
            tuple(one for one in self.finished if wanted(one.cell)),
            changed=self.changed,
        )

    def of(self, study: str) -> EvidenceCells:
        """The cells of one study."""
        return self.some(lambda cell: cell.study == study)

    def to_frame(self) -> pd.DataFrame:
        """One row per study and campaign."""
        return frame(self.coverage, Coverage)

    def _headline(self) -> str:
        return f"{len(self.finished)} of {len(self.cells)} cells are done, {self.of_now} with the mathematics of now"

    def tables(self) -> tuple[Table, ...]:
        """The coverage."""
        return (Table(self.to_frame(), self._headline()),)

    def sentences(self) -> tuple[str, ...]:
        """What has changed since, and which pages are stale."""
        changed = (f"Changed since they were made: {', '.join(self.changed)}.",) if self.changed else ()
        return (*changed, *(f"Stale: {page}" for page in self.stale_pages))


def is_of_now(one: FinishedCell, cell: Cell) -> bool:
    """Whether a finished cell is of the mathematics and the settings of now. Data need not be at hand."""
    made = one.made
    return made.mathematics == mathematics_of(cell) and made.settings == fingerprint_of_values(cell.settings)


def read_cells(plan: EvidencePlan, store: CellStore) -> EvidenceCells:
    """Return the cells of a plan that are finished."""
    cells, known, noted = plan.cells(), store.read(), store.mathematics()
    changed = set[str]()
    for cell in cells:
        if cell.place in known:
            then, now = noted.get(known[cell.place].made.mathematics, {}), parts_of(cell)
            changed |= {name for name in {*then, *now} if then and then.get(name) != now.get(name)}
    finished = tuple(known[cell.place] for cell in cells if cell.place in known)
    return EvidenceCells(cells, finished, changed=tuple(sorted(changed)))


def run_cells(
    plan: EvidencePlan,
    store: CellStore,
    *,
    version: str,
    hours: float = 3.0,
    most: int | None = None,
    jobs: int = 1,
    scheduler: str | None = None,
    reporter: Reporter = SILENT,
) -> EvidenceCells:
    """Do the cells that are missing, then those of earlier mathematics, data or settings; keep each when it is done.

    Parameters
    ----------
    plan, store
        The cells, and where finished ones are kept.
    version
        The version of probeval, which finished cells state.
    hours
        No cell begins after this time.
    most
        The most cells to do; None for all.
    jobs, scheduler
        The number of processes, or the address of a Dask scheduler.
    reporter
        Receives a line per finished cell.
    """
    todo = to_do(plan, store, version)[:most]
    begin, spent, noted = time.monotonic(), 0.0, set(store.mathematics())

    def in_time() -> Iterator[partial[tuple[FinishedCell, float]]]:
        for cell in todo:
            if time.monotonic() - begin >= hours * HOUR:
                return
            yield partial(_timed, plan, cell, version)

    with parallel(max(1, min(jobs, len(todo))), scheduler) as run:
        for finished, seconds in run(in_time()):
            store.keep(finished)
            if finished.made.mathematics not in noted:
                store.note(finished.made.mathematics, parts_of(finished.cell))
                noted.add(finished.made.mathematics)
            spent += seconds
            reporter.say(f"{' '.join(filter(None, map(str, finished.cell.place)))}: {seconds:.1f} s")
    found = read_cells(plan, store)
    return replace(found, seconds=spent)


def to_do(plan: EvidencePlan, store: CellStore, version: str) -> Sequence[Cell]:
    """Return the cells that are missing, then those that are of something else than now, each in their order."""
    known = store.read()
    missing = [cell for cell in plan.cells() if cell.place not in known]
    stale = [
        cell
        for cell in plan.cells()
        if cell.place in known
        and (not is_of_now(known[cell.place], cell) or known[cell.place].made.data != _data_of(plan, cell, version))
    ]
    return [*missing, *stale]


def _data_of(plan: EvidencePlan, cell: Cell, version: str) -> str | None:
    try:
        return made_of(plan, cell, version).data
    except DataError:
        return None


def _timed(plan: EvidencePlan, cell: Cell, version: str) -> tuple[FinishedCell, float]:
    """Return a finished cell, and the processor time that it took in this process."""
    begin = time.process_time()
    finished = do_cell(plan, cell, version)
    return finished, time.process_time() - begin
