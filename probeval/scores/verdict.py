"""Decided, undecided and undecidable comparisons."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from probeval.arrays import Bools
from probeval.results import Result, key
from probeval.scores.compare import Ranking
from probeval.ties import TIE

__all__ = ["Verdict"]


@dataclass(frozen=True, eq=False, repr=False)
class Verdict(Result):
    """The number of comparisons of two systems in each state.

    Parameters
    ----------
    level
        The confidence at which a comparison is decided.
    decided
        Comparisons whose direction has at least that confidence.
    tied
        Ties within the rope with that confidence; without a rope, exact ties: no open pair can separate the systems.
    undecided
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
    undecided: Bools
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

    @key.named("decided")
    def n_decided(self) -> int:
        """Comparisons whose direction has at least the requested confidence."""
        return int(self.decided.sum()) // 2

    @key.named("tied")
    def n_tied(self) -> int:
        """Ties within the rope with that confidence; without a rope, exact ties, which no judgment can change."""
        return int(self.tied.sum()) // 2

    @key.named("open")
    def n_undecided(self) -> int:
        """The rest: more judgments will decide."""
        return int(self.undecided.sum()) // 2

    @key.named("beyond")
    def n_beyond(self) -> int:
        """Comparisons that new queries would leave undecided, even with all pairs judged: by a two-sided t test."""
        return int(self.beyond.sum()) // 2

    def to_frame(self) -> pd.DataFrame:
        """Return one row per state: state, comparisons."""
        return pd.DataFrame({"state": list(self.to_dict()), "comparisons": self.to_dict().values()})

    def _headline(self) -> str:
        return ", ".join(f"{n:,} {state}" for state, n in self.to_dict().items()) + f" at {self.level:g}"

    def sentences(self) -> tuple[str, ...]:
        """Return the summary sentence."""
        return (str(self),)

    def __str__(self) -> str:
        total = self.n_decided + self.n_tied + self.n_undecided
        kind = f"ties within {self.rope:g}" if self.rope else "exact ties"
        tied = f", {self.n_tied:,} are {kind}" if self.n_tied else ""
        return (
            f"{self.n_decided:,} of {total:,} comparisons are decided at {self.level:g}, {self.n_undecided:,} are "
            f"undecided{tied}; on new queries, with the differences expected now, {self.n_beyond:,} would stay "
            "undecided even with all pairs judged."
        )


def _on_new_queries(ranking: Ranking) -> Ranking:
    """Return the ranking for the population of queries, had all pairs been judged with the scores expected now."""
    scores = ranking.scores
    known = replace(scores.joint, covariance=np.zeros_like(scores.joint.covariance), draws=None)
    judged = replace(scores, joint=known, target="population", family="t")
    return Ranking(judged, ranking.draws[:0], ranking.rope)
