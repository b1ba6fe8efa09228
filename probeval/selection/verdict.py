"""Decided, open and undecidable comparisons, and the fairness of judging between teams."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np
import pandas as pd

from probeval.arrays import Bools, Floats
from probeval.display import Shown
from probeval.reporting import SILENT, Reporter
from probeval.scores import Ranking
from probeval.selection.judging import JudgingState
from probeval.selection.reuse import contributed, team_names, without
from probeval.ties import TIE

__all__ = ["Verdict", "VerdictDocument", "fairness"]


class VerdictDocument(TypedDict):
    """The number of comparisons of systems in each state.

    Parameters
    ----------
    decided
        Comparisons whose direction has at least the requested confidence.
    tied
        Ties within the rope with that confidence; without a rope, exact ties, which no judgment can change.
    open
        The rest: more judgments will decide.
    beyond
        Comparisons that new queries would leave undecided, even with all pairs judged: by a two-sided t test.
    """

    decided: int
    tied: int
    open: int
    beyond: int


@dataclass(frozen=True, eq=False, repr=False)
class Verdict(Shown):
    """The state of every comparison of two systems.

    Parameters
    ----------
    level
        The confidence at which a comparison is decided.
    decided
        Comparisons whose direction has at least that confidence.
    tied
        Ties within the rope with that confidence; without a rope, exact ties: no open pair can separate the systems.
    open
        The rest: more judgments will decide.
    beyond
        Comparisons with too few queries: with all pairs judged and the difference as expected now, a two-sided paired
        t test at ``1 - level`` would not find it, nor would a tie within the rope have that confidence for the
        population of queries. All of shape (system, system), symmetric.
    rope
        Differences up to this size do not matter.
    """

    level: float
    decided: Bools
    tied: Bools
    open: Bools
    beyond: Bools
    rope: float = 0.0

    @classmethod
    def of(cls, ranking: Ranking, *, level: float = 0.95) -> Verdict:
        """Compute from a ranking."""
        other = ~np.eye(len(ranking.scores.systems), dtype=bool)
        tied = other & (ranking.p_equal >= level)
        decided = other & ~tied & (ranking.direction_confidence >= level)
        beyond = np.zeros_like(other)
        if not np.isnan(ranking.scores.joint.between).any():
            mean, sd = ranking.scores.difference_moments()
            exact = (sd == 0) & (np.abs(mean) < TIE)
            new = _on_new_queries(ranking)
            found = (new.direction_confidence >= (1 + level) / 2) | (new.p_equal >= level)
            beyond = other & ~exact & ~found
        return cls(level, decided, tied, other & ~tied & ~decided, beyond, ranking.rope)

    def to_dict(self) -> VerdictDocument:
        """Return the number of comparisons in each state, for JSON."""
        return {
            "decided": int(self.decided.sum()) // 2,
            "tied": int(self.tied.sum()) // 2,
            "open": int(self.open.sum()) // 2,
            "beyond": int(self.beyond.sum()) // 2,
        }

    def to_frame(self) -> pd.DataFrame:
        """Return one row per state: state, comparisons."""
        return pd.DataFrame({"state": list(VerdictDocument.__annotations__), "comparisons": self.to_dict().values()})

    def _headline(self) -> str:
        return ", ".join(f"{n:,} {state}" for state, n in self.to_dict().items()) + f" at {self.level:g}"

    def sentences(self) -> tuple[str, ...]:
        """Return the summary sentence."""
        return (str(self),)

    def __str__(self) -> str:
        n = self.to_dict()
        total = n["decided"] + n["tied"] + n["open"]
        kind = f"ties within {self.rope:g}" if self.rope else "exact ties"
        tied = f", {n['tied']:,} are {kind}" if n["tied"] else ""
        return (
            f"{n['decided']:,} of {total:,} comparisons are decided at {self.level:g}, {n['open']:,} are open{tied}; "
            f"on new queries, with the differences expected now, {n['beyond']:,} would stay undecided even with all "
            "pairs judged."
        )


def _on_new_queries(ranking: Ranking) -> Ranking:
    """Return the ranking for the population of queries, had all pairs been judged with the scores expected now."""
    scores = ranking.scores
    known = replace(scores.joint, covariance=np.zeros_like(scores.joint.covariance), draws=None)
    judged = replace(scores, joint=known, target="population", family="t")
    return Ranking(judged, ranking.draws[:0], ranking.rope)


def fairness(state: JudgingState, *, reporter: Reporter = SILENT) -> pd.DataFrame:
    """Return the coverage of judging per team, or per system without teams, and its effect on scores.

    ``judged`` is the share of its pairs that are judged, ``own`` the number of pairs that it alone retrieved, and
    ``own_judged`` the judged share of these. ``score`` is the mean score of its systems, ``left_out`` the mean had the
    team not contributed to the pool (its own pairs not judged), and ``shift`` the ranks its best system would lose.
    """
    state.check_whole("The share of each team needs")
    teams = np.array(team_names(state.judging.runs), dtype=object)
    certain, has = state.prediction.relevance.certain, state.context.retrieved.toarray() > 0
    mean, rows = state.scores.mean, []
    names: list[str] = list(dict.fromkeys(teams))
    for team in reporter.track(names, "Leaving teams out"):
        mine = teams == team
        pairs, own = has[mine].any(axis=0), contributed(has, mine)
        left = mean if not (own & certain).any() else _without(state, own)
        best = int(np.flatnonzero(mine)[np.argmax(mean[mine])])
        rows.append(
            {
                "team": team,
                "systems": int(mine.sum()),
                "pairs": int(pairs.sum()),
                "judged": float(certain[pairs].mean()) if pairs.any() else float("nan"),
                "own": int(own.sum()),
                "own_judged": float(certain[own].mean()) if own.any() else float("nan"),
                "score": float(mean[mine].mean()),
                "left_out": float(left[mine].mean()),
                "shift": int((left > left[best] + TIE).sum() - (mean > mean[best] + TIE).sum()),
            }
        )
    return pd.DataFrame(rows)


def _without(state: JudgingState, own: Bools) -> Floats:
    """Return the mean scores had these pairs not been judged, shape (system,)."""
    kept = without(state.judgments, state.judging.pool, own)
    # The same random numbers as the state, so that only the judgments differ.
    return state.judging.state(kept, last=state.prediction).scores.mean
