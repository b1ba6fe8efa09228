"""Leave-team-out: how well the judgments of a campaign would serve systems that had no part in it.

See docs/theory/judging.md#reuse-study.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

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
from probeval.results import Result
from probeval.scores.moments import weight_matrix
from probeval.selection.judging import JudgingState
from probeval.selection.reuse import contributed, newcomer_interval, team_names, without
from probeval.simulation.points import tau_and_accuracy
from probeval.ties import TIE, signs

__all__ = ["LeftOutSystem", "LeftOutTeam", "ReuseStudy", "ReuseStudyDocument", "RouteAccuracy", "leave_teams_out"]

ROUTES = {"classical": "unjudged documents as not relevant", "model": "unjudged documents by the model"}


class LeftOutSystem(TypedDict):
    """A system without the judgments that only its team contributed.

    Parameters
    ----------
    system, team, route
        Its name, its team, and the treatment of unjudged documents: ``classical`` (not relevant) or ``model``.
    score, left_out
        Its score with all judgments, and without those of its team.
    rank, left_out_rank
        Its rank among all systems by these scores.
    lower, upper
        The interval of its score without the judgments of its team; null for the classical route.
    accuracy
        The share of the systems of other teams that keep their order with it; a tie on one side counts half.
    """

    system: str
    team: str
    route: str
    score: float
    left_out: float
    rank: int
    left_out_rank: int
    lower: float
    upper: float
    accuracy: float


class LeftOutTeam(TypedDict):
    """A team left out, by one route.

    Parameters
    ----------
    team, route
        The team, and the treatment of unjudged documents.
    systems, pairs, judged
        The number of its systems, the number of judged pairs that only it contributed, and the share of its systems'
        retrieved documents that is judged without these.
    change, largest_change
        The change of its systems' scores: the mean, and the largest in size.
    rank_change, largest_rank_change
        The change of their ranks in size: the mean, and the largest.
    tau
        Kendall's tau between the rankings of all systems, with and without these judgments.
    accuracy
        The share of comparisons of its systems with those of other teams that keep their order.
    coverage
        The share of its systems whose interval contains the score with all judgments; null where nothing is
        uncertain, as by the classical route.
    """

    team: str
    route: str
    systems: int
    pairs: int
    judged: float
    change: float
    largest_change: float
    rank_change: float
    largest_rank_change: int
    tau: float
    accuracy: float
    coverage: float


class RouteAccuracy(TypedDict):
    """How well the collection serves later systems, by one route.

    Parameters
    ----------
    route
        The treatment of unjudged documents.
    accuracy
        Reuse accuracy: the share of comparisons between a left-out system and the systems of other teams that keep
        their order, mean over left-out systems.
    change, rank_change
        The size of the change of a left-out system's score and rank, mean over systems.
    tau
        Kendall's tau between the rankings with and without a team's judgments, mean over teams.
    coverage
        The share of left-out systems whose interval contains the score with all judgments, of those with an interval;
        null for the classical route.
    """

    route: str
    accuracy: float
    change: float
    rank_change: float
    tau: float
    coverage: float


class ReuseStudyDocument(TypedDict):
    """A leave-team-out study.

    Parameters
    ----------
    metric, model
        The measure, and the model; ``none`` for the classical route alone.
    depth
        The depth of the pool: a pair is contributed by the teams that have it in their top ``depth``.
    judged
        The number of judged pairs of that pool.
    """

    metric: str
    model: str
    depth: int
    judged: int
    routes: list[RouteAccuracy]
    teams: list[LeftOutTeam]
    systems: list[LeftOutSystem]


@dataclass(frozen=True, eq=False, repr=False)
class ReuseStudy(Result):
    """Every team of a campaign evaluated as if it had come after the judging.

    Parameters
    ----------
    metric, model
        The measure, and the name of the model; ``none`` for the classical route alone.
    depth
        The depth of the pool that teams contributed to.
    judged
        The number of judged pairs of that pool.
    systems
        One row per system and route: the columns of :class:`LeftOutSystem`.
    teams
        One row per team and route: the columns of :class:`LeftOutTeam`.
    """

    metric: str
    model: str
    depth: int
    judged: int
    systems: pd.DataFrame
    teams: pd.DataFrame

    def _headline(self) -> str:
        shown = ", ".join(f"{row['accuracy']:.3f} ({row['route']})" for row in self.routes().to_dict("records"))
        return f"{self.metric} of {self.teams['team'].nunique()} teams left out in turn, reuse accuracy {shown}"

    def routes(self) -> pd.DataFrame:
        """One row per route: reuse accuracy, changes of scores and ranks, tau, coverage."""
        by_system = self.systems.assign(
            change=(self.systems["left_out"] - self.systems["score"]).abs(),
            rank_change=(self.systems["left_out_rank"] - self.systems["rank"]).abs(),
            coverage=_covered(self.systems),
        ).groupby("route", sort=False)[["accuracy", "change", "rank_change", "coverage"]]
        tau = self.teams.groupby("route", sort=False)["tau"].mean()
        return by_system.mean().assign(tau=tau).reset_index()[list(RouteAccuracy.__annotations__)]

    def to_frame(self) -> pd.DataFrame:
        """One row per team and route; :attr:`systems` has one per system and route."""
        return self.teams

    def to_dict(self) -> ReuseStudyDocument:
        """The study as plain data, as ``probeval reuse --format json`` prints it."""
        routes: Any = self.routes().to_dict("records")
        teams: Any = self.teams.to_dict("records")
        systems: Any = self.systems.to_dict("records")
        return {
            "metric": self.metric,
            "model": self.model,
            "depth": self.depth,
            "judged": self.judged,
            "routes": routes,
            "teams": teams,
            "systems": systems,
        }

    def tables(self) -> tuple[Table, ...]:
        """The collection, then the teams by each route, those with the largest changes first."""
        tables = [Table(_known(self.routes()), f"{self.metric}, each team left out in turn")]
        for route, part in self.teams.groupby("route", sort=False):
            worst = part.assign(size=part["largest_change"].abs()).sort_values("size", ascending=False, kind="stable")
            tables.append(
                Table(
                    _known(worst.drop(columns=["route", "size"])),
                    f"Teams, {ROUTES[str(route)]}",
                    decimals={"rank_change": 1, "judged": 3, "tau": 3, "accuracy": 3},
                )
            )
        return tuple(tables)

    def sentences(self) -> tuple[str, ...]:
        """The share of pairs of one team alone, and reuse accuracy."""
        found = {row["route"]: row["accuracy"] for row in self.routes().to_dict("records")}
        by_model = f", {found['model']:.3f} by the model" if "model" in found else ""
        pairs = self.teams.groupby("route", sort=False)["pairs"].sum().iloc[0]
        return (
            f"{pairs:,} of {self.judged:,} judged pairs were contributed by one team alone, to depth {self.depth}.",
            f"Reuse accuracy {found['classical']:.3f} with unjudged documents as not relevant{by_model}: the share of "
            "comparisons between a left-out system and those of other teams that keep their order.",
        )


def _covered(systems: pd.DataFrame) -> pd.Series:
    """Whether each interval contains the score with all judgments; NaN where nothing is uncertain."""
    inside = (systems["lower"] <= systems["score"] + TIE) & (systems["score"] <= systems["upper"] + TIE)
    return inside.astype(float).where(systems["upper"] - systems["lower"] > TIE)


def _known(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns with a value."""
    return frame.dropna(axis=1, how="all")


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
    systems: dict[str, list[pd.DataFrame]] = {route: [] for route in full}
    rows: dict[str, list[LeftOutTeam]] = {route: [] for route in full}
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
            systems[route].append(part)
            rows[route].append(_team(team, route, int(own.sum()), float(judged), part, full[route], scores))
    return ReuseStudy(
        str(metric),
        model,
        depth,
        int(known.sum()),
        pd.concat([part for parts in systems.values() for part in parts], ignore_index=True),
        pd.DataFrame([row for parts in rows.values() for row in parts]),
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
) -> pd.DataFrame:
    """Return one row per system of a team."""
    at = np.flatnonzero(mine)
    before, after = signs(full[at, None] - full[~mine]), signs(left[at, None] - left[~mine])
    agrees = np.where(before == after, 1.0, np.where(before * after == 0, 0.5, 0.0))
    return pd.DataFrame(
        {
            "system": [names[i] for i in at.tolist()],
            "team": teams[at],
            "route": route,
            "score": full[at],
            "left_out": left[at],
            "rank": _ranks(full)[at],
            "left_out_rank": _ranks(left)[at],
            "lower": low[at],
            "upper": high[at],
            "accuracy": agrees.mean(axis=1),
        }
    )


def _team(
    team: str, route: str, pairs: int, judged: float, systems: pd.DataFrame, full: Floats, left: Floats
) -> LeftOutTeam:
    """Return the row of a team."""
    change = (systems["left_out"] - systems["score"]).to_numpy()
    ranks = (systems["left_out_rank"] - systems["rank"]).abs()
    return {
        "team": team,
        "route": route,
        "systems": len(systems),
        "pairs": pairs,
        "judged": judged,
        "change": float(change.mean()),
        "largest_change": float(change[np.argmax(np.abs(change))]),
        "rank_change": float(ranks.mean()),
        "largest_rank_change": int(ranks.max()),
        "tau": tau_and_accuracy(left, full)[0],
        "accuracy": float(systems["accuracy"].mean()),
        "coverage": float(_covered(systems).mean()),
    }
