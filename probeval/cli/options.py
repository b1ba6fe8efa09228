"""Options of commands that no record of a task has, each with one name, one meaning and one help text."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from probeval.api.settings import MEASURE
from probeval.records import About

__all__ = [
    "Format",
    "Metric",
    "Metrics",
    "OutFile",
    "OutFolder",
    "OutputFormat",
    "PerQuery",
    "Quiet",
    "ReportFile",
    "ToolName",
]


class OutputFormat(StrEnum):
    """The format of output on stdout."""

    table = "table"
    csv = "csv"
    json = "json"
    markdown = "markdown"
    latex = "latex"


Format = Annotated[OutputFormat, About("The output format; latex needs the package booktabs.", option="--format")]
Quiet = Annotated[bool, About("Print only errors on stderr.", option="-q, --quiet")]
Metric = Annotated[str, MEASURE]
Metrics = Annotated[list[str], replace(MEASURE, many=True)]
ToolName = Annotated[
    str | None,
    About(
        "Write the pairs for a judging tool too: label-studio or quepid. Needs --out.", option="--for", metavar="TOOL"
    ),
]
OutFile = Annotated[Path | None, About("The output file; stdout by default.", metavar="FILE", option="-o, --out")]
OutFolder = Annotated[Path | None, About("Where --for writes the files of the tool.", option="--out", metavar="FOLDER")]
ReportFile = Annotated[Path | None, About("Write a report as one HTML file, too.", option="--report", metavar="FILE")]
PerQuery = Annotated[bool, About("Add the score of every system on every query.")]
