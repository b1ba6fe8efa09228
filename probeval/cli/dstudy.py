"""``probeval dstudy``: the reliability of collections of other sizes, and the size that a target needs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from probeval.api.studies import DStudyInputs
from probeval.cli.commands import Output, verb
from probeval.cli.output import Messages, check_picture, write_pictures
from probeval.cli.studies import StudyMetrics, study_each
from probeval.errors import ProbevalError
from probeval.metrics import parse
from probeval.records import About, parse_counts

if TYPE_CHECKING:
    from probeval.reliability import DStudies, DStudy

__all__ = ["dstudy"]


@verb("Predict reliability with more queries or assessors.")
def dstudy(
    given: DStudyInputs,
    output: Output,
    metric: StudyMetrics = None,
    cutoffs: Annotated[
        list[int] | None, About("Cutoffs of each measure.", metavar="K,K,..", kind=str, parse=parse_counts)
    ] = None,
    target: Annotated[
        list[str] | None,
        About(
            "The target: .95, or a value of erho2, phi, tau, tau_ap or power, such as tau=.9.",
            metavar="[NAME=]X",
            kind=str,
            many=True,
        ),
    ] = None,
    plot: Annotated[
        Path | None, About("Plot reliability by queries; FILE-judgments by judgments, of runs.", metavar="FILE")
    ] = None,
) -> DStudy | DStudies:
    """Predict reliability with other numbers of queries, assessors and ranks, and the queries that a target needs.

    tau, tau_ap and power are rough estimates, from their relation to reliability on past TREC collections.

    Example: probeval dstudy scores.csv --queries 50,100,200 --target .95 --target tau=.9
    """
    from probeval.reliability import DStudies

    check_picture(plot)
    metrics = list(metric or [])
    if cutoffs is not None:
        if not metrics:
            raise ProbevalError("--cutoffs needs a measure: --metric nDCG, for example.")
        metrics = [str(parse(text) @ k) for text in metrics for k in cutoffs]
    wanted = [pair for text in target or ["erho2=.95", "phi=.95"] for pair in _target(text)]
    studies = study_each(replace(given, targets=wanted), metrics, DStudyInputs.run, output.messages)
    if plot is not None:
        _plot(studies, plot, output.messages)
    return studies[0] if len(studies) == 1 else DStudies(studies)


def _target(text: str) -> list[tuple[str, float]]:
    """Targets from text: ``.95`` is for both coefficients, ``tau=.9`` for one figure."""
    name, _, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        raise ProbevalError(f"--target takes a number or NAME=NUMBER, got {text!r}.") from None
    return [(name.strip(), value)] if name else [("erho2", value), ("phi", value)]


def _plot(studies: tuple[DStudy, ...], path: Path, messages: Messages) -> None:
    from probeval.plots import plot_dstudy

    named = {str(study.metric or "scores"): study for study in studies}
    pictures = {path: plot_dstudy(named)}
    if all("judgments" in study.to_frame() for study in studies):
        beside = path.with_name(f"{path.stem}-judgments{path.suffix}")
        pictures[beside] = plot_dstudy(named, against="judgments")
    write_pictures(pictures, messages)
