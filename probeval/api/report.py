"""An HTML report of an evaluation, a campaign, a simulation or a study of campaigns."""

from __future__ import annotations

import sys
from dataclasses import KW_ONLY, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from probeval.api.evaluate import EvaluationInputs
from probeval.api.evaluation import Evaluation
from probeval.api.evidence import Beside
from probeval.api.settings import Distribution, Level, MeasureOfRuns, Stop, Work
from probeval.api.simulate import SimulationInputs
from probeval.api.users import agreement_named
from probeval.errors import DataError
from probeval.records import About, part, task
from probeval.studies.collections import CollectionStudy

if TYPE_CHECKING:
    from probeval.campaign import Campaign
    from probeval.reports import Page

__all__ = ["ReportInputs", "is_store", "report"]

URLS = ("postgresql://", "postgresql+", "postgres://", "sqlite:")
SQLITE = b"SQLite format 3\x00"  # the first bytes of such a file


@dataclass(frozen=True, eq=False, repr=False)
class ReportInputs(Work, Distribution, Beside):
    """Write a report as one self-contained HTML file, and return its content as plain data.

    The source is an :class:`Evaluation`; runs, with a measure; the store of a campaign, or an open campaign; a
    simulation, or the JSON file that ``probeval simulate`` wrote; a study of campaigns, such as that of
    :func:`probeval.meta_study`. An evaluation and a campaign have their own rope.
    """

    source: Annotated[
        Any,
        About(
            "Runs, with --metric; or the store of a campaign; or the output of probeval simulate --format json.",
            metavar="SOURCE...",
            argument=True,
            kind=str,
            many=True,
        ),
    ]
    path: Annotated[
        str | PathLike[str],
        About(
            "The output file.",
            metavar="FILE",
            option="-o, --out",
            kind=Path,
            default=Path("probeval-report.html"),
        ),
    ]
    metric: MeasureOfRuns = None
    _: KW_ONLY
    title: Annotated[str | None, About("The title of the report.", metavar="TEXT")] = None
    name: Annotated[str | None, About("The campaign, if the store has several.", metavar="NAME")] = None
    policies: Annotated[
        Any,
        About(
            "Simulate the campaign with this policy and report that.",
            metavar="POLICY[:MODEL]",
            option="--policy",
            kind=str,
            many=True,
        ),
    ] = None
    batch: Annotated[int, About("The number of judgments per batch, with --policy.", least=1, default=10)] = 1
    stop: Stop = "confidence=.95"
    level: Level = 0.95
    command: Annotated[str, About("The command that makes the report again, for its last section.", option="")] = ""

    def run(self) -> Page:
        """The content of the report."""
        from probeval.reports import write_report

        page = self._page()
        page = page if self.title is None else replace(page, title=self.title)
        write_report(page, Path(self.path))
        return page

    def _page(self) -> Page:
        from probeval.reports import read_simulation, report_simulation, report_study
        from probeval.satisfaction import load_mapping
        from probeval.simulation import Simulation

        place, command = alone(self.source), self.command
        users = None if self.mapping is None else load_mapping(self.mapping)
        agreement = None if self.mapping is None else agreement_named(self.mapping)
        shown: dict[str, Any] = {
            "command": command,
            "mapping": users,
            "agreement": agreement,
            "reporter": self.reporter,
        }
        stored = isinstance(place, (str, PathLike)) and is_store(str(place))
        written = isinstance(place, (str, PathLike)) and str(place).endswith(".json") and self.metric is None
        if stored or written or isinstance(place, (CollectionStudy, Simulation, Evaluation)) or _is_campaign(place):
            self.refuse("stored")
        if isinstance(place, CollectionStudy):
            return report_study(place, command=command)
        if isinstance(place, Simulation):
            return report_simulation(place, command=command)
        if written:
            return report_simulation(read_simulation(place), command=command)
        if _is_campaign(place):
            return self._of_campaign(place, shown)
        if stored:
            from probeval.campaign import Campaign

            with Campaign.open(str(place), name=self.name, read_only=True) as opened:
                return self._of_campaign(opened, shown)
        if isinstance(place, Evaluation):
            return place.page(**shown)
        if self.metric is None:
            raise DataError("Runs need a measure, such as nDCG@10.")
        if self.policies:
            if self.outside:
                raise DataError("--outside is for an evaluation, not for a simulation with --policy. Leave out one.")
            result = part(self, SimulationInputs, runs=self.source).run()
            title = f"{_name(self.source)}: {self.metric}, simulated"
            return report_simulation(result, title=title, command=command, seed=self.seed)
        return part(self, EvaluationInputs, runs=self.source).run().page(**shown)

    def _of_campaign(self, campaign: Campaign, shown: dict[str, Any]) -> Page:
        from probeval.reports import report_campaign

        return report_campaign(campaign, level=self.level, **shown)


def alone(source: Any) -> Any:
    """The only one of several sources, or the source itself."""
    return source[0] if isinstance(source, (list, tuple)) and len(source) == 1 else source


def is_store(place: str) -> bool:
    """Whether this is the store of a campaign: a database URL, or an SQLite file."""
    if place.startswith(URLS):
        return True
    path = Path(place)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE


def _is_campaign(source: Any) -> bool:
    """Whether this is an open campaign; without its module, which needs SQLAlchemy, there is none."""
    module = sys.modules.get("probeval.campaign.campaign")
    return module is not None and isinstance(source, module.Campaign)


def _name(source: Any) -> str:
    """The name of a collection, or of a folder of runs."""
    place = alone(source)
    if isinstance(place, (str, PathLike)):
        return Path(place).resolve().name
    return str(getattr(place, "name", "runs"))


report = task(ReportInputs, "report")
