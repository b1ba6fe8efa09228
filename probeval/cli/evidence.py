"""``probeval evidence``: held-out campaigns judged again, cell by cell, and the pages made of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from probeval.api.settings import Jobs, Scheduler, Work
from probeval.cli.commands import Output, verb
from probeval.records import About

if TYPE_CHECKING:
    from probeval.studies.evidence import CellStore, EvidenceCells, EvidencePlan

__all__ = ["evidence"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class EvidenceInputs(Work):
    """The plan, and where its figures are kept."""

    plan: Annotated[Path, About("The campaigns and what is tried: a TOML file.", metavar="PLAN", argument=True)]
    data: Annotated[Path | None, About("The folder of the campaigns. Default: that of the plan.", metavar="FOLDER")] = (
        None
    )
    cells: Annotated[
        Path | None, About("The folder of finished cells. Default: cells, beside the plan.", metavar="FOLDER")
    ] = None
    budget: Annotated[float, About("The hours after which no cell begins.", least=0)] = 3.0
    most: Annotated[int | None, About("The most cells to do.", least=0)] = None
    jobs: Jobs = 1
    scheduler: Scheduler = None

    def read(self) -> tuple[EvidencePlan, CellStore]:
        """The plan and the finished cells."""
        from probeval.studies.evidence import CellStore, read_plan  # slow to import

        return read_plan(self.plan, data=self.data), CellStore(self.cells or self.plan.parent / "cells")

    def run(self) -> EvidenceCells:
        """Do cells until the time is up."""
        from probeval import __version__
        from probeval.studies.evidence import run_cells

        return run_cells(
            *self.read(), version=__version__, hours=self.budget, most=self.most, jobs=self.jobs,
            scheduler=self.scheduler, reporter=self.reporter,
        )  # fmt: skip


@verb("Test policies on held-out campaigns; keep the figures.")
def evidence(
    given: EvidenceInputs,
    output: Output,
    pages: Annotated[
        Path | None, About("Write the pages, in Markdown with pictures, into this folder.", metavar="FOLDER")
    ] = None,
    check: Annotated[bool, About("Do nothing; name the pages in --pages that the cells would change.")] = False,
) -> EvidenceCells:
    """Hold out each campaign of a plan, judge it again by policies and models that never saw it, and keep the figures.

    A cell is one campaign, measure, policy, column of labels and seed. Finished cells are kept with fingerprints of
    the mathematics, the data and the settings that they come from: another run does those that are missing, then those
    that a change touched, the most telling ones first. With --check, the exit code is 1 if pages are stale.

    Example: probeval evidence plan.toml --data campaigns/ --budget 2 --pages pages/
    """
    from probeval.reports.evidence import stale_pages, write_pages  # slow to import
    from probeval.studies.evidence import read_cells

    if check:
        found = read_cells(*given.read())
        return found if pages is None else replace(found, stale_pages=stale_pages(found, pages))
    found = output.messages.warned(given.run)
    if pages is not None:
        for path in write_pages(found, pages):
            output.messages.say(f"Written: {path}")
    return found
