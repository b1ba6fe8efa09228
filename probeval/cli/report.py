"""``probeval report``: one HTML file about an evaluation, a campaign or a simulation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from probeval.api.report import ReportInputs, is_store
from probeval.cli.commands import Output, verb
from probeval.cli.options import OutputFormat
from probeval.cli.output import command_line, write
from probeval.errors import ProbevalError

if TYPE_CHECKING:
    from probeval.reports import Page

__all__ = ["report"]


@verb("Write a report as one HTML file.")
def report(given: ReportInputs, output: Output) -> None:
    """Write a report as one self-contained HTML file: offline, light and dark, printable.

    Example: probeval report runs/ --qrels judged.txt --metric nDCG@10 -o report.html
    """
    messages, out = output.messages, Path(given.path)
    if given.metric is None and not _stands_alone(given.source):
        missing = [s for s in given.source if not (Path(s).exists() or set("*?[") & set(s))]
        if missing:
            raise ProbevalError(f"{missing[0]}: no such file. Check the spelling.")
        raise ProbevalError("Runs need a measure: --metric nDCG@10, for example.")
    if given.metric is not None and given.model == "none":
        raise ProbevalError("A report states uncertainty, which needs a model: uniform, hierarchical or a card.")
    if given.policies and given.qrels is None:
        raise ProbevalError("A simulation needs full judgments: give --qrels FILE.")
    page = messages.warned(replace(given, command=command_line()).run)
    _write(page, out, output.output_format)
    messages.say(f"The report is in {out}: open it in a browser.")


def _stands_alone(source: list[str]) -> bool:
    """Whether the source needs no measure: a store, or the JSON of a simulation."""
    return len(source) == 1 and (source[0].endswith(".json") or is_store(source[0]))


def _write(page: Page, out: Path, output_format: OutputFormat) -> None:
    """Print the key figures and the paragraph for a paper."""
    figures = pd.DataFrame(page.figures, columns=["what", "value", "note"])
    document: dict[str, Any] = {
        "report": str(out),
        "kind": page.kind,
        "title": page.title,
        "lead": page.lead,
        "figures": [dict(zip(figures.columns, row, strict=True)) for row in page.figures],
        "sections": [section.title for section in page.sections],
        "paragraph": page["paper"].parts[0].text,  # type: ignore[union-attr]
    }
    write(figures, document, output_format, title=page.lead)
