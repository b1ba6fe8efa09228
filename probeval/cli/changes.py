"""``probeval campaign change``, ``pause``, ``runs add`` and the like: changes of a campaign under way, and its log."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from probeval.api.evidence import Order, RunPaths, as_collection
from probeval.cli.campaign_settings import CampaignSettings, setup_of
from probeval.cli.commands import FieldsOf, Output, Printed
from probeval.cli.stores import CampaignPlace, OwnersPlace
from probeval.errors import ProbevalError
from probeval.records import About
from probeval.results import Result

if TYPE_CHECKING:
    from probeval.campaign import HistoryEntry, Phase

__all__ = ["change", "close", "pause", "reopen", "resume", "runs", "set_aside", "show_log"]

runs = typer.Typer(help="Add late runs to a campaign.")

Reason = Annotated[str, About("The reason, which assessors see.", metavar="TEXT")]


@dataclass(frozen=True)
class SettingChange:
    """A setting, and its values before and after a change, as text."""

    setting: str
    before: str
    after: str


@dataclass(frozen=True, repr=False)
class SettingChanges(Result):
    """A change of settings."""

    number: Annotated[int, "The number of the event."]
    by: Annotated[str, "Its author."]
    changes: Annotated[tuple[SettingChange, ...], "The settings that changed."]

    def _headline(self) -> str:
        return f"Changed by {self.by}, event {self.number}"


def change(
    place: OwnersPlace, given: Annotated[dict[str, Any], FieldsOf(CampaignSettings)], output: Output
) -> SettingChanges:
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
    changes = tuple(SettingChange(setting, str(old), str(new)) for setting, (old, new) in changed.items())
    return SettingChanges(event.number, event.by, changes)


@dataclass(frozen=True)
class ChangedPhase:
    """The phase that a campaign is in now, and the event that changed it."""

    number: int
    phase: Phase
    reason: str
    by: str


def pause(place: OwnersPlace, output: Printed, reason: Reason = "") -> ChangedPhase:
    """Pause a campaign: assessors get no pairs, and nothing is taken from them, until it is resumed.

    Example: probeval campaign pause mine.db --reason "the guideline is being revised"
    """
    return _change_phase(place, "paused", reason=reason)


def resume(place: OwnersPlace, output: Printed) -> ChangedPhase:
    """Resume a paused campaign.

    Example: probeval campaign resume mine.db
    """
    return _change_phase(place, "open", only_from="paused")


def close(place: OwnersPlace, output: Printed, reason: Reason = "") -> ChangedPhase:
    """Close a campaign: no judgment, adjudication, import, run or setting changes until it is reopened.

    Example: probeval campaign close mine.db
    """
    return _change_phase(place, "closed", reason=reason)


def reopen(place: OwnersPlace, output: Printed) -> ChangedPhase:
    """Reopen a closed campaign.

    Example: probeval campaign reopen mine.db
    """
    return _change_phase(place, "open", only_from="closed")


def _change_phase(place: OwnersPlace, phase: str, *, reason: str = "", only_from: str | None = None) -> ChangedPhase:
    with place.open() as opened:
        current = opened.state.phase
        if only_from is not None and current != only_from:
            raise ProbevalError(f"The campaign is {current}, not {only_from}.")
        event = opened.change_phase(place.by, phase, reason=reason)
    return ChangedPhase(event.number, event.phase, event.reason, event.by)


@dataclass(frozen=True)
class ChangedStanding:
    """Whether the answers of a person count now, and the event that changed it."""

    number: int
    assessor: str
    set_aside: Annotated[bool, "Whether their answers are set aside."]
    reason: str
    by: str


def set_aside(
    place: OwnersPlace,
    assessor: Annotated[str, About("The person.", metavar="PERSON", argument=True)],
    output: Printed,
    reason: Annotated[str, About("The reason, for the log.", metavar="TEXT")] = "",
    undo: Annotated[bool, About("Let their answers count again.", option="--undo")] = False,
) -> ChangedStanding:
    """Set all answers of a person aside: none counts, earlier or later ones, and their questions open again.

    Example: probeval campaign set-aside mine.db dan --reason "29 of 56 gold questions wrong"
    """
    with place.open() as opened:
        event = (opened.restore if undo else opened.set_aside)(place.by, assessor, reason=reason)
        is_aside = opened.state.is_set_aside(assessor)
    return ChangedStanding(event.number, event.assessor, is_aside, event.reason, event.by)


def show_log(
    place: CampaignPlace,
    output: Printed,
    everything: Annotated[
        bool, About("Also leases, judgments, comments and the other steps of assessors.", option="--all")
    ] = False,
) -> tuple[HistoryEntry, ...]:
    """Show who changed what and when: settings, guideline, runs, people, imports, pauses.

    Example: probeval campaign log mine.db
    """
    with place.open(read_only=True) as opened:
        from probeval.campaign import history

        return tuple(history(opened.log(), everything=everything))


@dataclass(frozen=True)
class LateRuns:
    """Late runs of a campaign."""

    number: Annotated[int, "The number of the event."]
    systems: Annotated[tuple[str, ...], "The new systems."]
    pairs: Annotated[int, "The new pairs."]
    pool: Annotated[int, "All pairs of the pool."]


@runs.command("add")
def add_runs(place: OwnersPlace, runs: RunPaths, output: Output, order: Order = "trec_eval") -> LateRuns:
    """Add late runs: the pool grows, judgments stay, and the model ranks the new systems from its next update on.

    Example: probeval campaign runs add mine.db late/bm25.txt
    """
    messages = output.messages
    late = messages.warned(lambda: as_collection(runs, order=order, reporter=messages)).runs
    with place.open() as opened:
        event = opened.add_runs(place.by, late, source=", ".join(Path(path).name for path in runs))
        found = LateRuns(event.number, tuple(event.systems), event.pairs, len(opened.pool))
        missing = set(opened.queries) - set(late.queries)
    if missing:
        messages.say(
            f"The late runs lack {len(missing):,} of the campaign's queries: {', '.join(sorted(missing)[:3])}, .."
        )
    return found
