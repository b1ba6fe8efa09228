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
from probeval.cli.completion import complete_metric, complete_policy, complete_stop
from probeval.cli.options import Format, OutputFormat, Quiet
from probeval.cli.output import Talk, write
from probeval.cli.stores import AskName, By, Name, StorePlace, opened_campaign
from probeval.errors import ProbevalError
from probeval.records import About
from probeval.schema import records
from probeval.selection.topics import TOPICS

__all__ = ["change", "close", "pause", "reopen", "resume", "runs", "show_log"]

runs = typer.Typer(help="Add late runs to a campaign.")

Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="The reason, which assessors see.")]


def change(
    store: StorePlace,
    metric: Annotated[
        str | None,
        typer.Option("--metric", metavar="METRIC", help="Another measure.", autocompletion=complete_metric),
    ] = None,
    depth: Annotated[int | None, typer.Option("--depth", min=1, help="Another depth of the pool.")] = None,
    ask: Annotated[
        AskName | None, typer.Option("--ask", help="Ask for grades, preferences, magnitudes or mixed.")
    ] = None,
    follow_up: Annotated[
        bool | None,
        typer.Option("--follow-up/--no-follow-up", help="Ask, after a preference, which of the two are relevant."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option("--policy", metavar="NAME", help="Another policy.", autocompletion=complete_policy),
    ] = None,
    goal: Annotated[str | None, typer.Option("--goal", metavar="GOAL", help="Another goal of judging.")] = None,
    stop: Annotated[
        str | None,
        typer.Option("--stop", metavar="RULES", help="Another target or budget.", autocompletion=complete_stop),
    ] = None,
    rope: Annotated[
        str | None, typer.Option("--rope", metavar="D|users=SHARE", help="Differences up to this size count as ties.")
    ] = None,
    mapping: Annotated[
        str | None, typer.Option("--mapping", metavar="NAME", help="A published mapping to user satisfaction.")
    ] = None,
    explore: Annotated[float | None, typer.Option("--explore", help="The share of random judgments.")] = None,
    overlap: Annotated[
        float | None, typer.Option("--overlap", min=0, max=1, help="The share of pairs that several assessors judge.")
    ] = None,
    opinions: Annotated[
        int | None, typer.Option("--opinions", min=2, help="The number of assessors for these pairs.")
    ] = None,
    gold_share: Annotated[
        float | None, typer.Option("--gold-share", min=0, max=1, help="The share of tasks with a known grade.")
    ] = None,
    repeat_share: Annotated[
        float | None,
        typer.Option("--repeat-share", min=0, max=1, help="The share of tasks that come a second time."),
    ] = None,
    rule: Annotated[
        str | None, typer.Option("--rule", metavar="RULE", help="The grade of a pair that has several.")
    ] = None,
    lease: Annotated[
        float | None, typer.Option("--lease", min=0.1, help="Minutes that an assessor may hold a pair.")
    ] = None,
    topics: Annotated[
        str | None, About("How topics are given to assessors: free, in-turn or owned.", choices=TOPICS)
    ] = None,
    stay: Annotated[
        float | None, typer.Option("--stay", min=0, help="The price of switching to another topic, in judgments.")
    ] = None,
    grade_words: Annotated[
        str | None,
        typer.Option("--grade-words", metavar="WORDS", help="What each grade means, lowest first: text or a file."),
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
        bool, typer.Option("--all", help="Also leases, judgments, comments and the other steps of assessors.")
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
