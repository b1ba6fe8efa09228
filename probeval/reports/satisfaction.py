"""The sections of a report on the satisfaction of users, and on one new query."""

from __future__ import annotations

import pandas as pd

from probeval.display import Table
from probeval.errors import ProbevalError
from probeval.plots import plot_satisfaction
from probeval.reports.page import Figure, Part, Prose, Section, between
from probeval.reports.pictures import draw
from probeval.reports.results import ReportResults
from probeval.satisfaction import Satisfaction, predict_query

__all__ = ["new_query", "users"]


def users(found: ReportResults) -> Section:
    """Return the section on user satisfaction, or the reason why it is not available."""
    title = "User satisfaction"
    try:
        satisfied = found.users
        table = satisfied.to_frame()
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
        }
    )
    parts: list[Part] = [
        Prose(f"By the mapping {satisfied.mapping.name} ({satisfied.mapping.origin}): other users may differ."),
        _users_picture(found),
        Table(
            shown,
            f"P(Sat): share of users satisfied with a list. P(Succ): share of queries that satisfy most users. "
            f"{found.level:.0%} intervals.",
        ),
    ]
    order = found.ranking.order
    if len(order) > 1:
        parts.append(Prose(f"{satisfied.compare(order[0], order[1])}."))
    return Section("users", title, tuple(parts))


def new_query(found: ReportResults) -> tuple[Section, ...]:
    """Return the section on one new query: the score, and users' satisfaction where it is known; none for one query."""
    draws = found.by_query.joint.query_draws
    assert draws is not None
    if draws.shape[2] < 2:
        return ()
    try:
        users: Satisfaction | None = found.users
    except ProbevalError:
        users = None
    level, metric = found.level, found.scores.metric
    rows = []
    for system in found.ranking.order:
        at = found.by_query.systems.index(system)
        score = predict_query(draws[:, at], level=level, limits=metric.limits)
        row = {
            "system": system,
            str(metric): score.mean,
            "interval": between(score.lower, score.upper),
            f"{level:.0%} above": score.above,
        }
        if users is not None:
            sat = users.new_query(system)
            row |= {"P(Sat)": sat.mean, "interval of P(Sat)": between(sat.lower, sat.upper)}
            row[f"P(Sat) {level:.0%} above"] = sat.above
        rows.append(row)
    table = Table(
        pd.DataFrame(rows),
        f"What to expect on one new query of the same kind: the mean, the two-sided {level:.0%} interval, and the "
        f"value that {level:.0%} of new queries reach. These limits are for a single query, not for the mean.",
    )
    return (Section("new-query", "One new query", (table,)),)


def _users_picture(found: ReportResults) -> Figure:
    return draw(
        plot_satisfaction(found.users),
        key="users-picture",
        alt=f"Share of satisfied users, and of queries that satisfy most, for {len(found.scores.systems)} systems",
        caption="Mean P(Sat) with its interval, the band for a new query, and P(Succ).",
    )
