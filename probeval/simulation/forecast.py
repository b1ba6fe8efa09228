"""What judging will bring, before it is done: truths drawn from the posterior, each judged as the policy would.

A draw of all grades, jointly, is a way in which the campaign may turn out. The loop is run on it: choose, judge, learn,
until confidence has reached its target and holds. Each draw gives one trajectory of confidence; together they
are the forecast.
Batches grow with what is judged, so that a trajectory takes a dozen steps or two.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri, stdtrit

from probeval.arrays import Codes, Floats, Ints, frozen
from probeval.data.judgments import Judgments
from probeval.errors import ProbevalWarning, SelectionError
from probeval.selection import JudgingState
from probeval.ties import TIE

__all__ = ["Forecast", "forecast"]

LEVEL = 0.9  # of the interval of a forecast
PATHS, BATCH, GROWTH = 8, 10, 0.2  # trajectories; the least batch, and how it grows with what is judged
DRAWS = 200  # of scores, where draws are made
LASTS = 100  # judgments that confidence has to hold for
DOUBT = 0.2  # sd on top of that between trajectories, of the logarithm: models are wrong beyond what they know


@dataclass(frozen=True, eq=False)
class Forecast:
    """Trajectories that judging may take, one per path.

    Parameters
    ----------
    judged
        Numbers of judgments, those already made included, shape (step,).
    confidence, halfwidth
        The mean confidence over pairs of systems, and the widest 95% half-width of a score, shapes (path, step); past
        its end a trajectory stays as it was.
    pool
        How many pairs there are.
    """

    judged: Ints
    confidence: Floats
    halfwidth: Floats
    pool: int

    def __post_init__(self) -> None:
        for name in ("judged", "confidence", "halfwidth"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def passage(self, confidence: float, *, lasts: int = LASTS) -> Floats:
        """The first number of judgments from which on confidence stays for ``lasts`` more, of each path.

        The size of the pool where it never does: with everything judged all is certain.
        """
        return np.array([_first(self.judged, row - confidence, lasts, self.pool) for row in self.confidence])

    def needed(self, confidence: float, *, level: float = LEVEL, lasts: int = LASTS) -> dict[str, float]:
        """The judgments that a mean confidence needs: the middle, and the interval that holds them with ``level``."""
        return self._between(self.passage(confidence, lasts=lasts), level)

    def needed_halfwidth(self, halfwidth: float, *, level: float = LEVEL) -> dict[str, float]:
        """The judgments after which no 95% interval of a score is wider."""
        return self._between(
            np.array([_first(self.judged, halfwidth - row, 0, self.pool) for row in self.halfwidth]), level
        )

    def _between(self, passages: Floats, level: float) -> dict[str, float]:
        """A log-normal predictive, as far as a few paths can tell."""
        start = float(self.judged[0])
        ahead = np.log(np.maximum(passages - start, 1.0))
        n = len(ahead)
        between = float(ahead.var(ddof=1)) if n > 1 else 0.0
        spread = float(np.sqrt(between * (1 + 1 / n) + DOUBT**2))
        reach = -float(stdtrit(max(n - 1, 1), (1 - level) / 2)) * spread
        middle = float(ahead.mean())
        low, high = (float(min(start + np.exp(middle + x), self.pool)) for x in (-reach, reach))
        if passages.max() <= start:  # it is there already
            return {"judgments": start, "lower": start, "upper": start}
        return {"judgments": min(start + float(np.exp(middle)), float(self.pool)), "lower": low, "upper": high}

    def table(self, *, level: float = LEVEL) -> pd.DataFrame:
        """One row per step: judged, confidence (median), lower, upper, halfwidth."""
        tail = (1 - level) / 2
        low, middle, high = np.quantile(self.confidence, [tail, 0.5, 1 - tail], axis=0)
        return pd.DataFrame(
            {
                "judged": self.judged,
                "confidence": middle,
                "lower": low,
                "upper": high,
                "halfwidth": np.median(self.halfwidth, axis=0),
            }
        )


def _first(judged: Ints, over: Floats, lasts: int, pool: int) -> float:
    """Where a trajectory first stays at or above zero for ``lasts`` more, between two steps in a straight line."""
    for i in np.flatnonzero(over >= -TIE):
        until = np.searchsorted(judged, judged[i] + lasts, side="right")
        if np.all(over[i:until] >= -TIE):
            if i == 0:
                return float(judged[0])
            before = over[i - 1]
            share = -before / (over[i] - before) if before < 0 else 0.0
            return float(judged[i - 1] + share * (judged[i] - judged[i - 1]))
    return float(pool)


def forecast(
    state: JudgingState,
    *,
    target: float = 0.95,
    halfwidth: float | None = None,
    paths: int = PATHS,
    lasts: int = LASTS,
    most: int | None = None,
    noise: float = 0.0,
    n_jobs: int = 1,
    rng: np.random.Generator | None = None,
    progress: Callable[[Sequence[Any]], Iterable[Any]] = iter,
) -> Forecast:
    """Run the loop forward from a state on truths drawn from what is believed there.

    Parameters
    ----------
    state
        A moment of the judging: nothing judged, a pilot, or more.
    target, halfwidth, lasts
        A trajectory ends when mean confidence has held its target for ``lasts`` judgments, and no half-width is wider.
    paths
        How many truths.
    most
        The most judgments to look ahead; all that are open when not given.
    noise
        The variance of what an assessor's grade adds to a pair's gain.
    n_jobs
        How many processes share the work.
    rng
        From which truths are drawn (seed 0 when not given).
    progress
        Wraps the trajectories while they are run.

    Examples
    --------
    >>> from probeval.relevance import synthetic_campaign
    >>> from probeval.relevance import load_card
    >>> from probeval.selection import Judging
    >>> campaign = synthetic_campaign(np.random.default_rng(1), systems=4, queries=6, depth=5)
    >>> judging = Judging.of(campaign, load_card("text-hierarchical").model, "DCG@5")
    >>> ahead = forecast(judging.begin(), paths=2)
    >>> ahead.needed(0.95)["judgments"] == ahead.pool == len(judging.pool)  # every pair is judged
    True
    """
    if not 0.5 <= target <= 1:
        raise SelectionError(f"A target is a confidence between .5 and 1, got {target:g}.")
    if paths < 1:
        raise SelectionError(f"A forecast needs at least one path, got {paths}.")
    from joblib import Parallel, delayed

    rng = np.random.default_rng(0) if rng is None else rng
    quick = replace(state.judging, draws=min(state.judging.draws, DRAWS))
    state = replace(state, judging=quick)
    truths = state.prediction.relevance.sample(paths, rng, start=int(rng.integers(1_000_000)))
    aims = {"target": target, "halfwidth": halfwidth, "lasts": lasts, "most": most, "noise": noise}
    run = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(_track)(state, truth, **aims) for truth in truths)
    tracks = [track for _, track in zip(progress(range(paths)), run, strict=True)]
    judged = max((track[0] for track in tracks), key=len)
    confidence, width = (np.stack([_padded(track[i], len(judged)) for track in tracks]) for i in (1, 2))
    return Forecast(np.array(judged), confidence, width, state.scores.pool)


def _padded(values: Sequence[float], n: int) -> Floats:
    return np.array([*values, *[values[-1]] * (n - len(values))])


def _track(
    state: JudgingState,
    truth: Codes,
    *,
    target: float,
    halfwidth: float | None,
    lasts: int,
    most: int | None,
    noise: float,
) -> tuple[list[int], list[float], list[float]]:
    """One trajectory: numbers judged, confidence and half-width at each step."""
    judging = state.judging
    pool = state.judgments.pool.union(judging.pool)
    past, place, grades = state.judgments.on(pool), judging.pool.within(pool), judging.scale.values[truth]
    made: list[int] = []
    start = state.scores.judged
    judged: list[int] = []
    confidence: list[float] = []
    width: list[float] = []
    since: int | None = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbevalWarning)
        while True:
            n = start + len(made)
            judged.append(n)
            for values, value in zip((confidence, width), _stated(state, made, noise), strict=True):
                values.append(value)
            reached = confidence[-1] >= target and (halfwidth is None or width[-1] <= halfwidth)
            since = (n if since is None else since) if reached else None
            left = int(state.open.sum()) if most is None else min(most - len(made), int(state.open.sum()))
            if left <= 0 or (since is not None and n >= since + lasts):
                return judged, confidence, width
            chosen = state.next(min(max(BATCH, round(GROWTH * n)), left))
            made += chosen.tolist()
            state = state.after(
                Judgments.coded(
                    pool, np.concatenate([past.pair, place[made]]), np.concatenate([past.grade, grades[made]])
                )
            )


def _stated(state: JudgingState, made: Sequence[int], noise: float) -> tuple[float, float]:
    """Mean confidence and the widest half-width, with what the assessors of these pairs add."""
    scores = state.scores
    if not noise:
        return state.ranking.confidence, scores.halfwidth()
    weights = state.context.weights[list(made)]
    covariance = scores.covariance + noise * weights.T @ weights
    own = np.diag(covariance)
    a, b = np.triu_indices(len(own), k=1)
    sd = np.sqrt(np.maximum(own[a] + own[b] - 2 * covariance[a, b], 0.0))
    z = np.divide(np.abs(scores.mean[a] - scores.mean[b]), sd, out=np.full(len(a), np.inf), where=sd > TIE)
    return float(ndtr(z).mean()) if len(a) else 1.0, float(ndtri(0.975) * np.sqrt(own.max()))
