"""``probeval campaign change``, ``pause``, ``runs add`` and the like: changes of a campaign under way, and its log."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import pandas as pd
import typer

from probeval.api.evidence import Order, RunPaths, as_collection
from probeval.api.settings import Depth, Explore, GoalName, Mapping, Policy, Rope, Stay, Stop, Topics
from probeval.api.users import as_goal_metric, as_rope
from probeval.cli.assessor_texts import grade_words_of
from probeval.cli.campaign_documents import (
    ChangeDocument,
    HistoryDocument,
    PhaseDocument,
    RunsAddedDocument,
    SettingChange,
)
from probeval.cli.commands import Output
from probeval.cli.options import Format, Metric, OutputFormat, Quiet
from probeval.cli.output import Talk, write
from probeval.cli.stores import (
    Ask,
    By,
    FollowUp,
    GoldShare,
    GradeWords,
    Lease,
    Name,
    Opinions,
    Overlap,
    RepeatShare,
    Rule,
    StorePlace,
    opened_campaign,
)
from probeval.errors import ProbevalError
from probeval.records import About
from probeval.reporting import Reporter
from probeval.schema import records

if TYPE_CHECKING:
    from probeval.campaign import Setup

__all__ = ["change", "close", "pause", "reopen", "resume", "runs", "show_log"]

runs = typer.Typer(help="Add late runs to a campaign.")

Reason = Annotated[str, About("The reason, which assessors see.", metavar="TEXT")]


@dataclass(frozen=True, kw_only=True)
class CampaignChanges:
    """The settings of a campaign that may change under way; None leaves one as it is."""

    metric: Metric | None = None
    depth: Depth | None = None
    ask: Ask | None = None
    follow_up: FollowUp | None = None
    policy: Policy | None = None
    goal: GoalName | None = None
    stop: Stop | None = None
    rope: Rope | None = None
    mapping: Mapping | None = None
    explore: Explore | None = None
    overlap: Overlap | None = None
    opinions: Opinions | None = None
    gold_share: GoldShare | None = None
    repeat_share: RepeatShare | None = None
    rule: Rule | None = None
    lease: Lease | None = None
    topics: Topics | None = None
    stay: Stay | None = None
    grade_words: GradeWords | None = None

    def of(self, before: Setup, reporter: Reporter) -> dict[str, Any]:
        """The changes of a setup, by the names of its settings."""
        changed = {name: value for name, value in asdict(self).items() if value is not None}
        mapping = changed.pop("mapping", None)
        metric, goal = self.metric or before.metric, self.goal or before.goal
        measure = as_goal_metric(metric, goal, mapping=mapping, rope=self.rope or 0.0)
        if self.metric is not None or mapping is not None:
            changed["metric"] = str(measure)
        if self.stop is not None:
            changed["stopping"] = changed.pop("stop")
        if self.rope is not None:
            changed["rope"] = as_rope(self.rope, measure, before.scale, mapping=mapping, reporter=reporter)
        if self.lease is not None:
            changed["lease"] = self.lease * 60
        if self.grade_words is not None:
            changed["grade_words"] = grade_words_of(self.grade_words)
        return changed


def change(store: StorePlace, given: CampaignChanges, output: Output, by: By = "owner", name: Name = None) -> None:
    """Change settings of a campaign from now on, also while its page is served; judgments stay.

    Settings that are not given stay as they are.

    Example: probeval campaign change mine.db --stop confidence=.97
    """
    with opened_campaign(store, name) as opened:
        from probeval.campaign.history import changed_settings

        before = opened.setup
        settings = given.of(before, output.talk)
        if not settings:
            raise ProbevalError("Give at least one setting to change, such as --stop confidence=.97.")
        event = opened.change(by, **settings)
        changed = changed_settings(before, event.setup)
    rows: list[SettingChange] = [
        {"setting": setting, "before": str(old), "after": str(new)} for setting, (old, new) in changed.items()
    ]
    document: ChangeDocument = {"number": event.number, "by": event.by, "changes": rows}
    write(pd.DataFrame(rows), document, output.output_format)


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
