"""``probeval campaign change``, ``pause``, ``runs add`` and the like: changes of a campaign under way, and its log."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import pandas as pd
import typer

from probeval.api.evidence import Order, RunPaths, as_collection
from probeval.cli.campaign_documents import (
    ChangeDocument,
    HistoryDocument,
    PhaseDocument,
    RunsAddedDocument,
    SettingChange,
)
from probeval.cli.campaign_settings import CampaignSettings, setup_of
from probeval.cli.commands import FieldsOf, Output, Printed
from probeval.cli.options import OutputFormat
from probeval.cli.output import write
from probeval.cli.stores import OwnersPlace, Place
from probeval.errors import ProbevalError
from probeval.records import About
from probeval.schema import records

if TYPE_CHECKING:
    pass

__all__ = ["change", "close", "pause", "reopen", "resume", "runs", "show_log"]

runs = typer.Typer(help="Add late runs to a campaign.")

Reason = Annotated[str, About("The reason, which assessors see.", metavar="TEXT")]


def change(place: OwnersPlace, given: Annotated[dict[str, Any], FieldsOf(CampaignSettings)], output: Output) -> None:
    """Change settings of a campaign from now on, also while its page is served; judgments stay.

    Settings that are not given stay as they are.

    Example: probeval campaign change mine.db --stop confidence=.97
    """
    if not given:
        raise ProbevalError("Give at least one setting to change, such as --stop confidence=.97.")
    with place.open() as opened:
        from probeval.campaign.history import changed_settings

        before = opened.setup
        settings = setup_of(given, metric=before.metric, goal=before.goal, scale=before.scale, reporter=output.messages)
        event = opened.change(place.by, **settings)
        changed = changed_settings(before, event.setup)
    rows: list[SettingChange] = [
        {"setting": setting, "before": str(old), "after": str(new)} for setting, (old, new) in changed.items()
    ]
    document: ChangeDocument = {"number": event.number, "by": event.by, "changes": rows}
    write(pd.DataFrame(rows), document, output.output_format)


def pause(place: OwnersPlace, output: Printed, reason: Reason = "") -> None:
    """Pause a campaign: assessors get no pairs, and nothing is taken from them, until it is resumed.

    Example: probeval campaign pause mine.db --reason "the guideline is being revised"
    """
    _change_phase(place, "paused", output, reason=reason)


def resume(place: OwnersPlace, output: Printed) -> None:
    """Resume a paused campaign.

    Example: probeval campaign resume mine.db
    """
    _change_phase(place, "open", output, only_from="paused")


def close(place: OwnersPlace, output: Printed, reason: Reason = "") -> None:
    """Close a campaign: no judgment, adjudication, import, run or setting changes until it is reopened.

    Example: probeval campaign close mine.db
    """
    _change_phase(place, "closed", output, reason=reason)


def reopen(place: OwnersPlace, output: Printed) -> None:
    """Reopen a closed campaign.

    Example: probeval campaign reopen mine.db
    """
    _change_phase(place, "open", output, only_from="closed")


def _change_phase(
    place: OwnersPlace, phase: str, output: Printed, *, reason: str = "", only_from: str | None = None
) -> None:
    with place.open() as opened:
        current = opened.state.phase
        if only_from is not None and current != only_from:
            raise ProbevalError(f"The campaign is {current}, not {only_from}.")
        event = opened.change_phase(place.by, phase, reason=reason)
    row: PhaseDocument = {
        "number": event.number,
        "phase": cast("Any", event.phase),
        "reason": event.reason,
        "by": event.by,
    }
    write(pd.DataFrame([row]), row, output.output_format)


def show_log(
    place: Place,
    output: Printed,
    everything: Annotated[
        bool, About("Also leases, judgments, comments and the other steps of assessors.", option="--all")
    ] = False,
) -> None:
    """Show who changed what and when: settings, guideline, runs, people, imports, pauses.

    Example: probeval campaign log mine.db
    """
    with place.open(read_only=True) as opened:
        from probeval.campaign import history

        entries = history(opened.log(), everything=everything)
    frame = pd.DataFrame([asdict(entry) for entry in entries], columns=["number", "time", "by", "event", "what"])
    shown = frame.assign(time=pd.to_datetime(frame["time"].round(), unit="s").astype(str))
    rows = records(frame, HistoryDocument)
    table = output.output_format is OutputFormat.table
    write(shown if table else frame, rows, output.output_format)


@runs.command("add")
def add_runs(place: OwnersPlace, runs: RunPaths, output: Output, order: Order = "trec_eval") -> None:
    """Add late runs: the pool grows, judgments stay, and the model ranks the new systems from its next update on.

    Example: probeval campaign runs add mine.db late/bm25.txt
    """
    messages = output.messages
    late = messages.warned(lambda: as_collection(runs, order=order, reporter=messages)).runs
    with place.open() as opened:
        event = opened.add_runs(place.by, late, source=", ".join(Path(path).name for path in runs))
        document: RunsAddedDocument = {
            "number": event.number,
            "systems": list(event.systems),
            "pairs": event.pairs,
            "pool": len(opened.pool),
        }
        missing = set(opened.queries) - set(late.queries)
    if missing:
        messages.say(
            f"The late runs lack {len(missing):,} of the campaign's queries: {', '.join(sorted(missing)[:3])}, .."
        )
    write(pd.DataFrame([{**document, "systems": ", ".join(event.systems)}]), document, output.output_format)
