"""What is decided, what is open, and what no judgment can decide; and whether every team had its share of judging."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from probeval.arrays import Bools
from probeval.scores import Ranking
from probeval.selection.judging import JudgingState
from probeval.ties import TIE

__all__ = ["Verdict", "fairness"]


@dataclass(frozen=True, eq=False)
class Verdict:
    """The comparisons of all systems by what is known of them.

    Parameters
    ----------
    level
        The confidence from which on a comparison is decided.
    decided
        Those that have it.
    tied
        Those that are ties whatever is judged: nothing open can tell the two apart.
    open
        The rest: more judgments will tell.
    beyond
        Those that these queries are too few for: with everything judged, and the difference as expected now, the
        population of queries would still leave them in doubt. All of shape (system, system), symmetric.
    """

    level: float
    decided: Bools
    tied: Bools
    open: Bools
    beyond: Bools

    @classmethod
    def of(cls, ranking: Ranking, *, level: float = 0.95) -> Verdict:
        """From a ranking."""
        mean, sd = ranking.scores.difference_moments()
        n = len(mean)
        other = ~np.eye(n, dtype=bool)
        tied = other & (sd == 0) & (np.abs(mean) < TIE)
        decided = other & ~tied & (ranking.pair_confidence >= level)
        between = ranking.scores.joint.between
        beyond = np.zeros((n, n), dtype=bool)
        if not np.isnan(between).any():
            own = np.diag(between)
            sampling = np.sqrt(np.maximum(own[:, None] + own - 2 * between, 0.0))
            beyond = other & ~tied & (np.abs(mean) < float(ndtri(level)) * sampling)
        return cls(level, decided, tied, other & ~tied & ~decided, beyond)

    def counts(self) -> dict[str, int]:
        """How many comparisons are in each state."""
        return {name: int(getattr(self, name).sum()) // 2 for name in ("decided", "tied", "open", "beyond")}

    def __str__(self) -> str:
        n = self.counts()
        total = n["decided"] + n["tied"] + n["open"]
        tied = f", {n['tied']} are ties whatever is judged" if n["tied"] else ""
        return (
            f"{n['decided']:,} of {total:,} comparisons are decided at {self.level:g}, {n['open']:,} are open{tied}; "
            f"for other queries than these, {n['beyond']:,} would stay in doubt with everything judged."
        )


def fairness(state: JudgingState, *, progress: Callable[[Sequence[Any]], Iterable[Any]] = iter) -> pd.DataFrame:
    """One row per team (a system, where there are no teams): was it judged as much as the others, and what hangs on it?

    ``judged`` is the share of its pairs that are judged, ``own`` the number of pairs that it alone retrieved and
    ``own_judged`` the share of these. ``score`` is the mean score of its systems, ``left_out`` what it would be had the
    team not taken part in the pool (its own pairs not judged), ``shift`` how many places its best system would fall.
    """
    runs = state.judging.runs
    teams = np.array(runs.systems if runs.teams is None else runs.teams, dtype=object)
    certain, has = state.prediction.relevance.certain, state.context.retrieved.toarray() > 0
    mean, rows = state.scores.mean, []
    names: list[str] = list(dict.fromkeys(teams))
    for team in progress(names):
        mine = teams == team
        pairs = has[mine].any(axis=0)
        own = pairs & ~has[~mine].any(axis=0)
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


def _without(state: JudgingState, own: Bools) -> Any:
    """The mean scores had these pairs not been judged, shape (system,)."""
    judgments = state.judgments
    position = judgments.pool.within(state.judging.pool)[judgments.pair]
    kept = judgments.take((position < 0) | ~own[position])
    # The same randomness as for the state itself, so that what differs is the judgments.
    return state.judging.state(kept, last=state.prediction).scores.mean
