"""``probeval report``: one HTML file about an evaluation, a campaign or a simulation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

from probeval.api.report import ReportInputs, is_store
from probeval.cli.commands import Output, verb
from probeval.cli.output import command_line
from probeval.errors import ProbevalError
from probeval.results import Result, key

if TYPE_CHECKING:
    from probeval.reports import Page

__all__ = ["report"]


@dataclass(frozen=True)
class KeyFigure:
    """A key figure of a report."""

    what: str
    value: str
    note: str


@dataclass(frozen=True, eq=False, repr=False)
class WrittenReport(Result):
    """A written report."""

    report: Annotated[str, "Its path."]
    page: Page

    @key
    def kind(self) -> Literal["evaluation", "campaign", "simulation"]:
        """Its kind."""
        return cast("Literal['evaluation', 'campaign', 'simulation']", self.page.kind)

    @key
    def title(self) -> str:
        """Its title."""
        return self.page.title

    @key
    def lead(self) -> str:
        """A summary in a sentence or two."""
        return self.page.lead

    @key
    def figures(self) -> tuple[KeyFigure, ...]:
        """The key figures."""
        return tuple(KeyFigure(*figure) for figure in self.page.figures)

    @key
    def sections(self) -> tuple[str, ...]:
        """The titles of its sections."""
        return tuple(section.title for section in self.page.sections)

    @key
    def paragraph(self) -> str:
        """The paragraph for a paper."""
        return str(self.page["paper"].parts[0].text)  # type: ignore[union-attr]

    def _headline(self) -> str:
        return self.lead

    def sentences(self) -> tuple[str]:
        """Where it is."""
        return (f"The report is in {self.report}: open it in a browser.",)


@verb("Write a report as one HTML file.")
def report(given: ReportInputs, output: Output) -> WrittenReport:
    """Write a report as one self-contained HTML file: offline, light and dark, printable.

    Example: probeval report runs/ --qrels judged.txt --metric nDCG@10 -o report.html
    """
    if given.metric is None and not _stands_alone(given.source):
        missing = [s for s in given.source if not (Path(s).exists() or set("*?[") & set(s))]
        if missing:
            raise ProbevalError(f"{missing[0]}: no such file. Check the spelling.")
        raise ProbevalError("Runs need a measure: --metric nDCG@10, for example.")
    if given.metric is not None and given.model == "none":
        raise ProbevalError("A report states uncertainty, which needs a model: uniform, hierarchical or a card.")
    if given.policies and given.qrels is None:
        raise ProbevalError("A simulation needs full judgments: give --qrels FILE.")
    page = output.messages.warned(replace(given, command=command_line()).run)
    return WrittenReport(str(given.path), page)


def _stands_alone(source: list[str]) -> bool:
    """Whether the source needs no measure: a store, or the JSON of a simulation."""
    return len(source) == 1 and (source[0].endswith(".json") or is_store(source[0]))
