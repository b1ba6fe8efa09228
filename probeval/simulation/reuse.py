"""Leave-team-out: how well the judgments of a campaign would serve systems that had no part in it.

See docs/theory/judging.md#reuse-study.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any

import numpy as np
import pandas as pd

from probeval.arrays import Bools, Floats
from probeval.data.collection import Collection, judged_share
from probeval.data.judgments import Judgments
from probeval.data.scale import Scale
from probeval.display import Table
from probeval.errors import DataError
from probeval.metrics import Metric
from probeval.metrics.classical import measure
from probeval.reporting import SILENT, Reporter
from probeval.results import Result, frame, key, rows
from probeval.scores.moments import weight_matrix
from probeval.selection.judging import JudgingState
from probeval.selection.reuse import contributed, newcomer_interval, team_names, without
from probeval.simulation.points import tau_and_accuracy
from probeval.ties import TIE, signs

__all__ = ["LeftOutSystem", "LeftOutTeam", "ReuseStudy", "RouteAccuracy", "leave_teams_out"]

ROUTES = {"classical": "unjudged documents as not relevant", "model": "unjudged documents by the model"}


@dataclass(frozen=True)
class LeftOutSystem:
    """A system without the judgments that only its team contributed."""

    system: str
    team: str
    route: Annotated[str, "The treatment of unjudged documents: ``classical`` (not relevant) or ``model``."]
    score: Annotated[float, "Its score with all judgments."]
    left_out: Annotated[float, "Its score without those of its team."]
    rank: Annotated[int, "Its rank among all systems by the first of these scores."]
    left_out_rank: Annotated[int, "Its rank by the second."]
    lower: Annotated[float, "The interval of its score without its team's judgments; null for the classical route."]
    upper: float
    accuracy: Annotated[
        float, "The share of the systems of other teams that keep their order with it; a tie on one side counts half."
    ]

    @property
    def change(self) -> float:
        """The change of its score."""
        return self.left_out - self.score

    @property
    def rank_change(self) -> int:
        """The size of the change of its rank."""
        return abs(self.left_out_rank - self.rank)

    @property
    def covered(self) -> float:
        """Whether its interval contains the score with all judgments; NaN where nothing is uncertain."""
        if not self.upper - self.lower > TIE:
            return float("nan")
        return float(self.lower - TIE <= self.score <= self.upper + TIE)


@dataclass(frozen=True)
class LeftOutTeam:
    """A team left out, by one route."""

    team: str
    route: Annotated[str, "The treatment of unjudged documents."]
    systems: Annotated[int, "The number of its systems."]
    pairs: Annotated[int, "The number of judged pairs that only it contributed."]
    judged: Annotated[float, "The share of its systems' retrieved documents that is judged without these."]
    change: Annotated[float, "The mean change of its systems' scores."]
    largest_change: Annotated[float, "The change that is largest in size."]
    rank_change: Annotated[float, "The mean size of the change of their ranks."]
    largest_rank_change: int
    tau: Annotated[float, "Kendall's tau between the rankings of all systems, with and without these judgments."]
    accuracy: Annotated[float, "The share of comparisons of its systems with others' that keep their order."]
    coverage: Annotated[
        float,
        "The share of its systems whose interval contains the score with all judgments; null where nothing is "
        "uncertain, as by the classical route.",
    ]


@dataclass(frozen=True)
class RouteAccuracy:
    """How well the collection serves later systems, by one route."""

    route: Annotated[str, "The treatment of unjudged documents."]
    accuracy: Annotated[
        float,
        "Reuse accuracy: the share of comparisons between a left-out system and the systems of other teams that keep "
        "their order, mean over left-out systems.",
    ]
    change: Annotated[float, "The size of the change of a left-out system's score, mean over systems."]
    rank_change: Annotated[float, "The size of the change of its rank, mean over systems."]
    tau: Annotated[float, "Kendall's tau between the rankings with and without a team's judgments, mean over teams."]
    coverage: Annotated[
        float,
        "The share of left-out systems whose interval contains the score with all judgments, of those with an "
        "interval; null for the classical route.",
    ]


@dataclass(frozen=True, eq=False, repr=False)
class ReuseStudy(Result):
    """Every team of a collection evaluated as if it had come after the judging."""

    metric: Annotated[str, "The measure."]
    model: Annotated[str, "The model; ``none`` for the classical route alone."]
    depth: Annotated[int, "The depth of the pool: a pair is contributed by the teams that have it in their top."]
    judged: Annotated[int, "The number of judged pairs of that pool."]
    teams: Annotated[tuple[LeftOutTeam, ...], "One entry per team and route."]
    systems: Annotated[tuple[LeftOutSystem, ...], "One entry per system and route."]

    @key
    def routes(self) -> tuple[RouteAccuracy, ...]:
        """One entry per route."""
        return tuple(self._route(name) for name in dict.fromkeys(team.route for team in self.teams))

    def _route(self, name: str) -> RouteAccuracy:
        systems = [system for system in self.systems if system.route == name]
        return RouteAccuracy(
            route=name,
            accuracy=float(np.mean([system.accuracy for system in systems])),
            change=float(np.mean([abs(system.change) for system in systems])),
            rank_change=float(np.mean([system.rank_change for system in systems])),
            tau=float(np.mean([team.tau for team in self.teams if team.route == name])),
            coverage=_coverage(systems),
        )

    def _headline(self) -> str:
        shown = ", ".join(f"{route.accuracy:.3f} ({route.route})" for route in self.routes)
        teams = len({team.team for team in self.teams})
        return f"{self.metric} of {teams} teams left out in turn, reuse accuracy {shown}"

    def tables(self) -> tuple[Table, ...]:
        """The collection, then the teams by each route, those with the largest changes first."""
        tables = [Table(_known(frame(self.routes, RouteAccuracy)), f"{self.metric}, each team left out in turn")]
        worst = sorted(self.teams, key=lambda team: -abs(team.largest_change))
        for route in self.routes:
            teams = frame([team for team in worst if team.route == route.route], LeftOutTeam)
            tables.append(
                Table(
                    _known(teams.drop(columns="route")),
                    f"Teams, {ROUTES[route.route]}",
                    decimals={"rank_change": 1, "judged": 3, "tau": 3, "accuracy": 3},
                )
            )
        return tuple(tables)

    def sentences(self) -> tuple[str, ...]:
        """The share of pairs of one team alone, and reuse accuracy."""
        found = {route.route: route.accuracy for route in self.routes}
        by_model = f", {found['model']:.3f} by the model" if "model" in found else ""
        pairs = sum(team.pairs for team in self.teams if team.route == self.teams[0].route)
        return (
            f"{pairs:,} of {self.judged:,} judged pairs were contributed by one team alone, to depth {self.depth}.",
            f"Reuse accuracy {found['classical']:.3f} with unjudged documents as not relevant{by_model}: the share of "
            "comparisons between a left-out system and those of other teams that keep their order.",
        )


def _coverage(systems: Sequence[LeftOutSystem]) -> float:
    """The share of intervals that contain the score with all judgments; NaN if there is no interval."""
    known = [system.covered for system in systems if not np.isnan(system.covered)]
    return float(np.mean(known)) if known else float("nan")


def _known(table: pd.DataFrame) -> pd.DataFrame:
    """The columns with a value."""
    return table.dropna(axis=1, how="all")


def leave_teams_out(
    collection: Collection,
    metric: Metric,
    *,
    scale: Scale,
    depth: int,
    state: JudgingState | None = None,
    model: str = "none",
    level: float = 0.95,
    reporter: Reporter = SILENT,
) -> ReuseStudy:
    """Leave out each team's own judgments in turn, and evaluate its systems as if they had come later.

    Parameters
    ----------
    collection
        A campaign with judgments, on judged queries. Without teams, each system is its own.
    metric, scale
        The measure, and the grades.
    depth
        The depth of the pool: a pair is contributed by the teams that have it in their top ``depth``.
    state
        The judging with all judgments, for the route by a model; each fit starts from it. None for the classical route
        alone.
    model
        The name of its model.
    level
        The probability of intervals.
    reporter
        Receives progress and remarks.

    Examples
    --------
    >>> from probeval.metrics import parse
    >>> from probeval.relevance import synthetic_campaign
    >>> campaign = synthetic_campaign(seed=1, systems=6, queries=5, depth=5)
    >>> leave_teams_out(campaign, parse("DCG@5"), scale=campaign.scale(), depth=5)
    <ReuseStudy: DCG@5 of 2 teams left out in turn, reuse accuracy 0.778 (classical)>
    """
    judgments = collection.judgments
    if judgments is None or not len(judgments):
        raise DataError("Without judgments nothing can be left out: give --qrels FILE.")
    runs = collection.runs
    teams = np.array(team_names(runs), dtype=object)
    names: list[str] = list(dict.fromkeys(teams))
    if len(names) < 2:
        raise DataError(f"All systems are of one team, {names[0]!r}: there is none to compare it with.")
    pooled = runs.top(depth)
    has = weight_matrix(pooled, np.ones(pooled.depth)).toarray() > 0
    known = judgments.codes_on(pooled.pool, scale) >= 0
    cut = metric.cutoff or depth
    full = {"classical": _classical(collection, judgments, metric, scale, cut)}
    if state is not None:
        full["model"] = state.scores.mean
    systems: dict[str, list[LeftOutSystem]] = {route: [] for route in full}
    by_team: dict[str, list[LeftOutTeam]] = {route: [] for route in full}
    unknown = np.full(len(teams), np.nan)
    for team in reporter.track(names, "Leaving teams out"):
        mine = teams == team
        own = contributed(has, mine) & known
        kept = without(judgments, pooled.pool, own)
        left = {"classical": _classical(collection, kept, metric, scale, cut) if own.any() else full["classical"]}
        ends = {"classical": (unknown, unknown)}
        if state is not None:
            after = state.judging.state(kept, last=state.prediction) if own.any() else state
            low, high = np.array([newcomer_interval(after.scores[s], level) for s in runs.systems]).T
            left["model"], ends["model"] = after.scores.mean, (low, high)
        judged = judged_share(runs, kept, cut)[mine].mean()
        for route, scores in left.items():
            part = _systems(runs.systems, teams, mine, route, full[route], scores, *ends[route])
            systems[route] += part
            by_team[route].append(_team(int(own.sum()), float(judged), part, full[route], scores))
    return ReuseStudy(
        str(metric),
        model,
        depth,
        int(known.sum()),
        tuple(chain.from_iterable(by_team.values())),
        tuple(chain.from_iterable(systems.values())),
    )


def _classical(collection: Collection, judgments: Judgments, metric: Metric, scale: Scale, depth: int) -> Floats:
    """Return the mean score of each system with unjudged documents as not relevant, shape (system,)."""
    values = measure(collection.runs, judgments, metric, scale=scale, depth=depth).values
    return np.asarray(values.sum(axis=1) / len(collection.runs.queries))  # a query without any judgment left scores 0


def _ranks(scores: Floats) -> Floats:
    """Return the rank of each system; ties share one."""
    return np.asarray(1 + (scores > scores[:, None] + TIE).sum(axis=1))


def _systems(
    names: Sequence[str], teams: Any, mine: Bools, route: str, full: Floats, left: Floats, low: Floats, high: Floats
) -> tuple[LeftOutSystem, ...]:
    """Return the systems of a team."""
    at = np.flatnonzero(mine)
    before, after = signs(full[at, None] - full[~mine]), signs(left[at, None] - left[~mine])
    agrees = np.where(before == after, 1.0, np.where(before * after == 0, 0.5, 0.0))
    return rows(
        LeftOutSystem,
        system=[names[i] for i in at.tolist()],
        team=teams[at],
        route=[route] * len(at),
        score=full[at],
        left_out=left[at],
        rank=_ranks(full)[at],
        left_out_rank=_ranks(left)[at],
        lower=low[at],
        upper=high[at],
        accuracy=agrees.mean(axis=1),
    )


def _team(pairs: int, judged: float, systems: Sequence[LeftOutSystem], full: Floats, left: Floats) -> LeftOutTeam:
    """Return the row of a team, from those of its systems."""
    changes = [system.change for system in systems]
    ranks = [system.rank_change for system in systems]
    return LeftOutTeam(
        team=systems[0].team,
        route=systems[0].route,
        systems=len(systems),
        pairs=pairs,
        judged=judged,
        change=float(np.mean(changes)),
        largest_change=max(changes, key=abs),
        rank_change=float(np.mean(ranks)),
        largest_rank_change=max(ranks),
        tau=tau_and_accuracy(left, full)[0],
        accuracy=float(np.mean([system.accuracy for system in systems])),
        coverage=_coverage(systems),
    )
