"""An HTML report of an evaluation, a campaign, a simulation or a study of campaigns."""

from __future__ import annotations

import sys
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probeval.api.evaluate import evaluate
from probeval.api.evaluation import Evaluation
from probeval.api.inputs import Note, Progress, silent
from probeval.api.simulate import simulate
from probeval.api.users import agreement_named
from probeval.campaign_studies import CampaignStudy
from probeval.errors import DataError
from probeval.metrics import AnyMetric

if TYPE_CHECKING:
    from probeval.reports import Page

__all__ = ["is_store", "report"]

URLS = ("postgresql://", "postgresql+", "postgres://", "sqlite:")
SQLITE = b"SQLite format 3\x00"  # the first bytes of such a file


def report(
    source: Any,
    path: str | PathLike[str],
    metric: AnyMetric | None = None,
    *,
    title: str | None = None,
    name: str | None = None,
    policies: Any = None,
    mapping: str | None = None,
    level: float = 0.95,
    rope: float | str = 0.0,
    command: str = "",
    progress: Progress = iter,
    say: Note = silent,
    **options: Any,
) -> Page:
    """Write a report as one self-contained HTML file, and return its content as plain data.

    Parameters
    ----------
    source
        An :class:`Evaluation`; runs, with a measure; the store of a campaign, or an open campaign; a simulation, or
        the JSON file that ``probeval simulate`` wrote; a study of campaigns, such as that of
        :func:`probeval.meta_study`.
    path
        The file to write.
    metric
        The measure, for runs.
    title
        The title of the report.
    name
        The campaign, where the store holds several.
    policies
        Simulate these policies on the finished campaign, and report the simulation.
    mapping
        A mapping to user satisfaction, by its published name or a file of users; by default that of the measure.
    level, rope
        The probability of intervals, and the largest difference that does not matter, as in :func:`probeval.evaluate`;
        an evaluation and a campaign have their own rope.
    command
        The command that makes the report again, for its last section.
    progress, say
        Wraps the sections; receives remarks.
    options
        As in :func:`probeval.evaluate`, or :func:`probeval.simulate` with ``policies``.
    """
    page = _page(source, metric, name, policies, mapping, level, rope, command, progress, say, options)
    page = page if title is None else replace(page, title=title)
    from probeval.reports import write_report

    write_report(page, Path(path))
    return page


def _page(
    source: Any,
    metric: AnyMetric | None,
    name: str | None,
    policies: Any,
    mapping: str | None,
    level: float,
    rope: float | str,
    command: str,
    progress: Progress,
    say: Note,
    options: dict[str, Any],
) -> Page:
    from probeval.reports import (
        read_simulation,
        report_campaign,
        report_simulation,
        report_study,
    )
    from probeval.satisfaction import load_mapping
    from probeval.simulation import Simulation

    users = None if mapping is None else load_mapping(mapping)
    agreement = None if mapping is None else agreement_named(mapping)
    place = source[0] if isinstance(source, (list, tuple)) and len(source) == 1 else source
    if isinstance(place, CampaignStudy):
        return report_study(place, command=command)
    if isinstance(place, Simulation):
        return report_simulation(place, command=command)
    if isinstance(place, (str, PathLike)) and str(place).endswith(".json") and metric is None:
        return report_simulation(read_simulation(place), command=command)
    if _is_campaign(place):
        return report_campaign(
            place, level=level, command=command, mapping=users, agreement=agreement, progress=progress
        )
    if isinstance(place, (str, PathLike)) and is_store(str(place)):
        from probeval.campaign import Campaign

        with Campaign.open(str(place), name=name, read_only=True) as opened:
            return report_campaign(
                opened, level=level, command=command, mapping=users, agreement=agreement, progress=progress
            )
    if not isinstance(place, Evaluation) and metric is None:
        raise DataError("Runs need a measure, such as nDCG@10.")
    if policies:
        result = simulate(
            source,
            metric,  # type: ignore[arg-type]
            policies,
            rope=rope,
            mapping=mapping,
            progress=progress,
            say=say,
            **options,
        )
        return report_simulation(
            result, title=f"{_name(source)}: {metric}, simulated", command=command, seed=options.get("seed", 0)
        )
    if isinstance(place, Evaluation):
        evaluation = place
    else:
        assert metric is not None
        evaluation = evaluate(source, metric, level=level, rope=rope, mapping=mapping, say=say, **options)
    return evaluation.page(command=command, mapping=users, agreement=agreement, progress=progress)


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
    place = source[0] if isinstance(source, (list, tuple)) and len(source) == 1 else source
    if isinstance(place, (str, PathLike)):
        return Path(place).resolve().name
    return str(getattr(place, "name", "runs"))
