"""``probeval campaign change``, ``pause``, ``runs add`` and the like: changes of a campaign under way, and its log."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, cast

import pandas as pd
import typer

from probeval.api.evidence import Order, RunPaths, as_collection
from probeval.api.users import as_goal_metric, as_rope
from probeval.cli.assessor_texts import grade_words_of
from probeval.cli.campaign_documents import (
    ChangeDocument,
    HistoryDocument,
    PhaseDocument,
    RunsAddedDocument,
    SettingChange,
)
from probeval.cli.options import Format, OutputFormat, Quiet
from probeval.cli.output import Talk, write
from probeval.cli.stores import AskName, By, Name, StorePlace, opened_campaign
from probeval.errors import ProbevalError
from probeval.records import About
from probeval.schema import records
from probeval.selection.topics import TOPICS

__all__ = ["change", "close", "pause", "reopen", "resume", "runs", "show_log"]

runs = typer.Typer(help="Add late runs to a campaign.")

Reason = Annotated[str, About("The reason, which assessors see.", metavar="TEXT")]


def change(
    store: StorePlace,
    metric: Annotated[
        str | None,
        About("Another measure.", metavar="METRIC"),
    ] = None,
    depth: Annotated[int | None, About("Another depth of the pool.", least=1)] = None,
    ask: Annotated[AskName | None, About("Ask for grades, preferences, magnitudes or mixed.")] = None,
    follow_up: Annotated[
        bool | None,
        About("Ask, after a preference, which of the two are relevant.", option="--follow-up/--no-follow-up"),
    ] = None,
    policy: Annotated[
        str | None,
        About("Another policy.", metavar="NAME"),
    ] = None,
    goal: Annotated[str | None, About("Another goal of judging.", metavar="GOAL")] = None,
    stop: Annotated[
        str | None,
        About("Another target or budget.", metavar="RULES"),
    ] = None,
    rope: Annotated[str | None, About("Differences up to this size count as ties.", metavar="D|users=SHARE")] = None,
    mapping: Annotated[str | None, About("A published mapping to user satisfaction.", metavar="NAME")] = None,
    explore: Annotated[float | None, About("The share of random judgments.")] = None,
    overlap: Annotated[float | None, About("The share of pairs that several assessors judge.", least=0, most=1)] = None,
    opinions: Annotated[int | None, About("The number of assessors for these pairs.", least=2)] = None,
    gold_share: Annotated[float | None, About("The share of tasks with a known grade.", least=0, most=1)] = None,
    repeat_share: Annotated[
        float | None,
        About("The share of tasks that come a second time.", least=0, most=1),
    ] = None,
    rule: Annotated[str | None, About("The grade of a pair that has several.", metavar="RULE")] = None,
    lease: Annotated[float | None, About("Minutes that an assessor may hold a pair.", least=0.1)] = None,
    topics: Annotated[
        str | None, About("How topics are given to assessors: free, in-turn or owned.", choices=TOPICS)
    ] = None,
    stay: Annotated[float | None, About("The price of switching to another topic, in judgments.", least=0)] = None,
    grade_words: Annotated[
        str | None,
        About("What each grade means, lowest first: text or a file.", metavar="WORDS"),
    ] = None,
    by: By = "owner",
    name: Name = None,
    output_format: Format = OutputFormat.table,
    quiet: Quiet = False,
) -> None:
    """Change settings of a campaign from now on, also while its page is served; judgments stay.

    Example: probeval campaign change mine.db --stop confidence=.97
    """
    talk = Talk(quiet=quiet)
    with opened_campaign(store, name) as opened:
        from probeval.campaign.history import changed_settings

        before = opened.setup
        settings: dict[str, Any] = {
            "ask": None if ask is None else ask.value, "follow_up": follow_up,
            "depth": depth, "policy": policy, "goal": goal, "stopping": stop, "explore": explore, "overlap": overlap,
            "opinions": opinions, "gold_share": gold_share, "repeat_share": repeat_share, "rule": rule,
            "lease": None if lease is None else lease * 60, "topics": None if topics is None else topics,
            "stay": stay, "grade_words": None if grade_words is None else grade_words_of(grade_words),
        }  # fmt: skip
        measure = as_goal_metric(metric or before.metric, goal or before.goal, mapping=mapping, rope=rope or "0")
        if metric is not None or mapping is not None:
            settings["metric"] = str(measure)
        if rope is not None:
            settings["rope"] = as_rope(rope, measure, before.scale, mapping=mapping, reporter=talk)
        given = {setting: value for setting, value in settings.items() if value is not None}
        if not given:
            raise ProbevalError("Give at least one setting to change, such as --stop confidence=.97.")
        event = opened.change(by, **given)
        changed = changed_settings(before, event.setup)
    rows: list[SettingChange] = [
        {"setting": setting, "before": str(old), "after": str(new)} for setting, (old, new) in changed.items()
    ]
    document: ChangeDocument = {"number": event.number, "by": event.by, "changes": rows}
    write(pd.DataFrame(rows), document, output_format)


def pause(
    store: StorePlace,
    reason: Reason = "",
    by: By = "owner",
    name: Name = None,
    output_format: Format = OutputFormat.table,
) -> None:
    """Pause a campaign: assessors get no pairs, and nothing is taken from them, until it is resumed.

    Example: probeval campaign pause mine.db --reason "the guideline is being revised"
    """
    _change_phase(store, "paused", reason, by, name, output_format)


def resume(
    store: StorePlace,
    by: By = "owner",
    name: Name = None,
    output_format: Format = OutputFormat.table,
) -> None:
    """Resume a paused campaign.

    Example: probeval campaign resume mine.db
    """
    _change_phase(store, "open", "", by, name, output_format, only_from="paused")


def close(
    store: StorePlace,
    reason: Reason = "",
    by: By = "owner",
    name: Name = None,
    output_format: Format = OutputFormat.table,
) -> None:
    """Close a campaign: no judgment, adjudication, import, run or setting changes until it is reopened.

    Example: probeval campaign close mine.db
    """
    _change_phase(store, "closed", reason, by, name, output_format)


def reopen(
    store: StorePlace,
    by: By = "owner",
    name: Name = None,
    output_format: Format = OutputFormat.table,
) -> None:
    """Reopen a closed campaign.

    Example: probeval campaign reopen mine.db
    """
    _change_phase(store, "open", "", by, name, output_format, only_from="closed")


def _change_phase(
    store: str,
    phase: str,
    reason: str,
    by: str,
    name: str | None,
    output_format: OutputFormat,
    *,
    only_from: str | None = None,
) -> None:
    with opened_campaign(store, name) as opened:
        current = opened.state.phase
        if only_from is not None and current != only_from:
            raise ProbevalError(f"The campaign is {current}, not {only_from}.")
        event = opened.change_phase(by, phase, reason=reason)
    row: PhaseDocument = {
        "number": event.number,
        "phase": cast("Any", event.phase),
        "reason": event.reason,
        "by": event.by,
    }
    write(pd.DataFrame([row]), row, output_format)


def show_log(
    store: StorePlace,
    everything: Annotated[
        bool, About("Also leases, judgments, comments and the other steps of assessors.", option="--all")
    ] = False,
    name: Name = None,
    output_format: Format = OutputFormat.table,
) -> None:
    """Show who changed what and when: settings, guideline, runs, people, imports, pauses.

    Example: probeval campaign log mine.db
    """
    with opened_campaign(store, name, read_only=True) as opened:
        from probeval.campaign import history

        entries = history(opened.log(), everything=everything)
    frame = pd.DataFrame([asdict(entry) for entry in entries], columns=["number", "time", "by", "event", "what"])
    shown = frame.assign(time=pd.to_datetime(frame["time"].round(), unit="s").astype(str))
    rows = records(frame, HistoryDocument)
    write(shown if output_format is OutputFormat.table else frame, rows, output_format)


@runs.command("add")
def add_runs(
    store: StorePlace,
    runs: RunPaths,
    order: Order = "trec_eval",
    by: By = "owner",
    name: Name = None,
    output_format: Format = OutputFormat.table,
    quiet: Quiet = False,
) -> None:
    """Add late runs: the pool grows, judgments stay, and the model ranks the new systems from its next update on.

    Example: probeval campaign runs add mine.db late/bm25.txt
    """
    talk = Talk(quiet=quiet)
    late = talk.warned(lambda: as_collection(runs, order=order, reporter=talk)).runs
    with opened_campaign(store, name) as opened:
        event = opened.add_runs(by, late, source=", ".join(Path(path).name for path in runs))
        document: RunsAddedDocument = {
            "number": event.number,
            "systems": list(event.systems),
            "pairs": event.pairs,
            "pool": len(opened.pool),
        }
        missing = set(opened.queries) - set(late.queries)
    if missing:
        talk.say(f"The late runs lack {len(missing):,} of the campaign's queries: {', '.join(sorted(missing)[:3])}, ..")
    write(pd.DataFrame([{**document, "systems": ", ".join(event.systems)}]), document, output_format)
