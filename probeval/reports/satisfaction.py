"""The section of a report on the satisfaction of users."""

from __future__ import annotations

import pandas as pd

from probeval.errors import ProbevalError
from probeval.plots import plot_satisfaction
from probeval.reports.page import Figure, Part, Prose, Section, Table, between
from probeval.reports.pictures import draw
from probeval.reports.results import ReportResults

__all__ = ["users"]


def users(found: ReportResults) -> Section:
    """Return the section on user satisfaction, or the reason why it is not available."""
    title = "User satisfaction"
    try:
        satisfied = found.users
        table = satisfied.to_frame(level=found.level)
    except ProbevalError as error:
        return Section("users", title, (Prose(str(error)),))
    shown = pd.DataFrame(
        {
            "system": table["system"].astype(str),
            "P(Sat)": table["p_sat"],
            "interval": [between(a, b) for a, b in zip(table["lower"], table["upper"], strict=True)],
            "P(Succ)": table["p_success"],
            "interval of P(Succ)": [
                between(a, b) for a, b in zip(table["success_lower"], table["success_upper"], strict=True)
            ],
            "P(Sat) on a new query": [
                between(a, b) for a, b in zip(table["new_lower"], table["new_upper"], strict=True)
            ],
        }
    )
    parts: list[Part] = [
        Prose(f"By the mapping {satisfied.mapping.name} ({satisfied.mapping.origin}): other users may differ."),
        _users_picture(found),
        Table.of(
            shown,
            f"P(Sat): share of users satisfied with a list. P(Succ): share of queries that satisfy most users. "
            f"{found.level:.0%} intervals.",
        ),
    ]
    order = found.ranking.order
    if len(order) > 1:
        parts.append(Prose(f"{satisfied.compare(order[0], order[1], level=found.level)}."))
    return Section("users", title, tuple(parts))


def _users_picture(found: ReportResults) -> Figure:
    return draw(
        plot_satisfaction(found.users, level=found.level),
        key="users-picture",
        alt=f"Share of satisfied users, and of queries that satisfy most, for {len(found.scores.systems)} systems",
        caption="Mean P(Sat) with its interval, the band for a new query, and P(Succ).",
    )
