"""The section of a report on teams: the systems of each, their scores, and how much of their documents is judged."""

from __future__ import annotations

import numpy as np
import pandas as pd

from probeval.display import Table
from probeval.reports.page import Prose, Section, between, percent
from probeval.reports.results import ReportResults
from probeval.scores import Score

__all__ = ["team_of", "teams"]


def team_of(found: ReportResults) -> dict[str, str]:
    """Return the team of each system; empty if no two systems share a team, or all do."""
    runs = found.state.judging.runs
    if runs.teams is None or not 1 < len(set(runs.teams)) < len(runs.systems):
        return {}
    return dict(zip(runs.systems, runs.teams, strict=True))


def teams(found: ReportResults) -> tuple[Section, ...]:
    """Return the section on teams; none unless teams have several systems."""
    by_system = team_of(found)
    if not by_system:
        return ()
    scores, order = found.scores, found.ranking.order
    certain, retrieved = found.state.prediction.relevance.certain, found.state.context.retrieved.toarray() > 0
    rows = []
    for team in dict.fromkeys(by_system[system] for system in order):  # by their best system
        mine = np.array([by_system[system] == team for system in scores.systems])
        mean = Score(scores, mine / mine.sum())
        low, high = mean.interval(found.level)
        best = next(system for system in order if by_system[system] == team)
        pairs = retrieved[mine].any(axis=0)
        rows.append(
            {
                "team": team,
                "systems": int(mine.sum()),
                "best system": best,
                "its rank": order.index(best) + 1,
                "its score": scores[best].mean(),
                "mean of its systems": mean.mean(),
                f"{found.level:.0%} interval": between(low, high),
                "judged": percent(int(certain[pairs].sum()), int(pairs.sum())),
            }
        )
    return (
        Section(
            "teams",
            "Teams",
            (
                Prose(
                    f"{len(scores.systems)} systems of {len(rows)} teams. Systems of a team often resemble one "
                    "another: the hierarchical model allows for that, and examines labels for shifts towards teams."
                ),
                Table(
                    pd.DataFrame(rows),
                    "Teams by their best system. The interval is of the mean over the systems of a team, on these "
                    "queries; judged is the share of the pairs that its systems retrieved.",
                ),
            ),
        ),
    )
