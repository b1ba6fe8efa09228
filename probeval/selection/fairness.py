"""The fairness of judging between teams: how much of each is judged, and what its own documents changed."""

from __future__ import annotations

import numpy as np
import pandas as pd

from probeval.arrays import Bools, Floats
from probeval.reporting import SILENT, Reporter
from probeval.scores.estimate import ScoreEstimate
from probeval.selection.context import SelectionContext
from probeval.selection.reuse import contributed, team_names, without
from probeval.ties import TIE

__all__ = ["fairness"]


def fairness(estimate: ScoreEstimate, *, reporter: Reporter = SILENT) -> pd.DataFrame:
    """Return the coverage of judging per team, or per system without teams, and its effect on scores.

    ``judged`` is the share of its pairs that are judged, ``own`` the number of pairs that it alone retrieved, and
    ``own_judged`` the judged share of these. ``score`` is the mean score of its systems, ``left_out`` the mean had the
    team not contributed to the pool (its own pairs not judged), and ``shift`` the ranks its best system would lose.
    """
    estimate.check_whole("The share of each team needs")
    teams = np.array(team_names(estimate.estimation.runs), dtype=object)
    certain, has = estimate.prediction.relevance.certain, (SelectionContext(estimate).retrieved.toarray() > 0)
    mean, rows = estimate.scores.mean, []
    names: list[str] = list(dict.fromkeys(teams))
    for team in reporter.track(names, "Leaving teams out"):
        mine = teams == team
        pairs, own = has[mine].any(axis=0), contributed(has, mine)
        left = mean if not (own & certain).any() else _without(estimate, own)
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


def _without(estimate: ScoreEstimate, own: Bools) -> Floats:
    """Return the mean scores had these pairs not been judged, shape (system,)."""
    kept = without(estimate.judgments, estimate.estimation.pool, own)
    # The same random numbers as the estimate, so that only the judgments differ.
    return estimate.estimation.estimate(kept, answers=estimate.answers, last=estimate.prediction).scores.mean
