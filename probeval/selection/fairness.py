"""The fairness of judging between teams: how much of each is judged, and what its own documents changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from probeval.arrays import Bools, Floats
from probeval.reporting import SILENT, Reporter
from probeval.results import Result
from probeval.scores.estimate import ScoreEstimate
from probeval.selection.context import SelectionContext
from probeval.selection.reuse import contributed, team_names, without
from probeval.ties import TIE

__all__ = ["Fairness", "TeamJudging", "fairness"]


@dataclass(frozen=True)
class TeamJudging:
    """The judging of a team, or of a system if there are no teams."""

    team: str
    systems: Annotated[int, "The number of its systems."]
    pairs: Annotated[int, "The number of pairs that it retrieved."]
    judged: Annotated[float, "The share of these that are judged."]
    own: Annotated[int, "The number of pairs that it alone retrieved."]
    own_judged: Annotated[float, "The judged share of these."]
    score: Annotated[float, "The mean score of its systems."]
    left_out: Annotated[float, "The mean, had the team not contributed to the pool: its own pairs not judged."]
    shift: Annotated[int, "The ranks that its best system would lose."]


@dataclass(frozen=True, eq=False, repr=False)
class Fairness(Result):
    """The judging of every team."""

    teams: Annotated[tuple[TeamJudging, ...], "One entry per team, or per system if there are no teams."]

    def _headline(self) -> str:
        return f"Judging of {len(self.teams)} teams"


def fairness(estimate: ScoreEstimate, *, reporter: Reporter = SILENT) -> Fairness:
    """Return the coverage of judging per team, or per system without teams, and its effect on scores."""
    estimate.check_whole("The share of each team needs")
    teams = np.array(team_names(estimate.estimation.runs), dtype=object)
    certain, has = estimate.prediction.relevance.certain, (SelectionContext(estimate).retrieved.toarray() > 0)
    mean, rows = estimate.scores.mean, list[TeamJudging]()
    names: list[str] = list(dict.fromkeys(teams))
    for team in reporter.track(names, "Leaving teams out"):
        mine = teams == team
        pairs, own = has[mine].any(axis=0), contributed(has, mine)
        left = mean if not (own & certain).any() else _without(estimate, own)
        best = int(np.flatnonzero(mine)[np.argmax(mean[mine])])
        rows.append(
            TeamJudging(
                team=team,
                systems=int(mine.sum()),
                pairs=int(pairs.sum()),
                judged=float(certain[pairs].mean()) if pairs.any() else float("nan"),
                own=int(own.sum()),
                own_judged=float(certain[own].mean()) if own.any() else float("nan"),
                score=float(mean[mine].mean()),
                left_out=float(left[mine].mean()),
                shift=int((left > left[best] + TIE).sum() - (mean > mean[best] + TIE).sum()),
            )
        )
    return Fairness(tuple(rows))


def _without(estimate: ScoreEstimate, own: Bools) -> Floats:
    """Return the mean scores had these pairs not been judged, shape (system,)."""
    kept = without(estimate.judgments, estimate.estimation.pool, own)
    # The same random numbers as the estimate, so that only the judgments differ.
    return estimate.estimation.estimate(kept, answers=estimate.answers, last=estimate.prediction).scores.mean
