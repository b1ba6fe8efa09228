"""The page that an organiser publishes on a campaign."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from probeval.display import Table, moment
from probeval.reports.page import Facts, Page, Part, Prose, Section, between, percent

if TYPE_CHECKING:
    from probeval.campaign import Statement

__all__ = ["statement_page"]


def statement_page(found: Statement) -> Page:
    """Return the statement as one page: registration, changes, stop, decisions, audit, agreement, appeal, log."""
    return Page(
        title=f"Statement on {found.campaign}",
        lead=f"{found.of_registration()} {found.of_stop()}",
        figures=_figures(found),
        sections=(
            _rule(found),
            _changes(found),
            _decided(found),
            Section("audit", "Audit", tuple(Prose(sentence) for sentence in found.audit.sentences())),
            Section("agreement", "Agreement of assessors", tuple(Prose(sentence) for sentence in found.agreement)),
            Section("appeal", "How to appeal", (Prose(found.appeal),)),
            _log(found),
        ),
        kind="statement",
    )


def _figures(found: Statement) -> tuple[tuple[str, str, str], ...]:
    return (
        ("the rule", "met" if found.reached else "not met", found.rule),
        ("judged", f"{found.judged:,}", f"{percent(found.judged, found.pool)} of {found.pool:,} pairs"),
        ("decided", f"{found.decided + found.tied:,}", f"of {found.comparisons:,} comparisons of two systems"),
        ("changes of the rule", f"{found.late_changes:,}", "after the first judgment"),
    )


def _rule(found: Statement) -> Section:
    first = found.registered
    facts = {
        "stopping rule": first.rule,
        "goal": f"{first.goal}, by {first.metric}",
        "differences that count as ties": f"up to {first.rope:g}" if first.rope else "none but exact ties",
        "scale, depth of the pool": f"{first.scale}, {first.depth}",
        "model, policy": f"{first.model}, {first.policy}",
        "registered": f"{moment(first.time)} by {first.by}, as event 1 of the log",
        "hash of the registration": first.hash,
        "first judgment": "none yet" if first.first is None else moment(first.first),
    }
    allowed = (Prose(found.allowed),) if found.allowed else ()
    return Section("rule", "The rule as registered", (Facts(tuple(facts.items())), *allowed))


def _changes(found: Statement) -> Section:
    parts: list[Part] = [Prose(found.of_changes())]
    if found.changes:
        caption = "Every change after the registration. Judged: the judgments and answers before it."
        parts.append(Table(found.changes_frame(), caption))
    else:
        parts.append(Prose("Nothing was changed after the registration."))
    return Section("changes", "Changes", tuple(parts))


def _decided(found: Statement) -> Section:
    table = pd.DataFrame(
        {
            "rank": [each.rank for each in found.systems],
            "system": [each.system for each in found.systems],
            "score": [each.mean for each in found.systems],
            f"{found.level:.0%} interval": [between(each.lower, each.upper) for each in found.systems],
            "group": [each.group for each in found.systems],
        }
    )
    parts: list[Part] = [
        Prose(found.of_decisions()),
        Table(table, "The order within a group may be due to chance. Intervals are for these queries."),
    ]
    if found.undecided:
        parts.append(Table(found.undecided_frame(), "Not decided: the surest first."))
    return Section("decided", "What is decided, and what is not", tuple(parts))


def _log(found: Statement) -> Section:
    facts = (
        ("events", f"{found.events:,}, the last {moment(found.time)}"),
        ("hash of the last event", found.head),
    )
    how = (
        "Every event of the log has a hash that continues the one before, so these two hashes commit to all that "
        "stands here. With a copy of the store, probeval campaign check COPY tells whether any event was changed, and "
        "probeval campaign statement COPY gives both hashes again."
    )
    return Section("log", "The log", (Facts(facts), Prose(how)))
