"""Decided, open and undecidable comparisons."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np
import pandas as pd

from probeval.arrays import Bools
from probeval.results import Result
from probeval.scores.compare import Ranking
from probeval.ties import TIE

__all__ = ["Verdict", "VerdictDocument"]


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
class Verdict(Result):
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
