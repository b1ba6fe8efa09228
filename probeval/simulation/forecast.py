"""Forecasts of judging: simulated judging of truths drawn from the posterior.

A joint draw of all grades is a possible truth. The judging loop runs on it (choose, judge, refit) until confidence has
reached its target and holds. Each draw gives one trajectory of confidence; together they are the forecast. Batches grow
with the number of judgments, so that a trajectory takes one or two dozen steps.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Annotated

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from probeval.arrays import Codes, Floats, Ints, frozen
from probeval.data.judgments import Judgments
from probeval.display import Table
from probeval.errors import ProbevalWarning, SelectionError
from probeval.parallel import parallel
from probeval.reporting import SILENT, Reporter
from probeval.results import Result, frame, key, rows
from probeval.scores import Ranking
from probeval.selection import JudgingState
from probeval.ties import TIE

__all__ = ["Forecast", "ForecastStep", "StatedConfidence", "forecast"]

StatedConfidence = Callable[[Ranking], float]
LEVEL = 0.9  # of the interval of a forecast
PATHS, BATCH, GROWTH = 8, 10, 0.2  # trajectories; the smallest batch; its size as a share of the judgments made
DRAWS = 200  # of scores, for measures that need draws
LASTS = 100  # judgments for which confidence must hold
DOUBT = 0.2  # sd of the logarithm for model error, on top of the sd between trajectories


@dataclass(frozen=True)
class ForecastStep:
    """A forecast after a number of judgments."""

    judged: Annotated[int, "The number of judgments, including those already made."]
    confidence: Annotated[float, "The median of the mean confidence over pairs of systems."]
    lower: Annotated[float, "The lower end of its interval."]
    upper: Annotated[float, "The upper end of its interval."]
    halfwidth: Annotated[float, "The median of the widest 95% half-width of a score."]


@dataclass(frozen=True, eq=False, repr=False)
class Forecast(Result):
    """Forecast trajectories of judging, one per path.

    Parameters
    ----------
    judged
        Numbers of judgments, including those already made, shape (step,).
    confidence, halfwidth
        The mean confidence over pairs of systems, and the widest 95% half-width of a score, shapes (path, step); a
        trajectory that has ended keeps its last value.
    pool
        The number of pairs in the pool.
    """

    judged: Ints
    confidence: Floats
    halfwidth: Floats
    pool: int

    def __post_init__(self) -> None:
        for name in ("judged", "confidence", "halfwidth"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def passage(self, confidence: float, *, lasts: int = LASTS) -> Floats:
        """Return the first number of judgments from which confidence stays for ``lasts`` more, per path.

        The size of the pool if it never does: with all pairs judged, scores are certain.
        """
        return np.array([first_passage(self.judged, row - confidence, lasts, self.pool) for row in self.confidence])

    def needed(self, confidence: float, *, level: float = LEVEL, lasts: int = LASTS) -> dict[str, float]:
        """Return the judgments needed for a mean confidence: the median, and the ``level`` interval."""
        return self._between(self.passage(confidence, lasts=lasts), level)

    def needed_halfwidth(self, halfwidth: float, *, level: float = LEVEL) -> dict[str, float]:
        """Return the judgments needed until no 95% interval of a score is wider."""
        return self._between(
            np.array([first_passage(self.judged, halfwidth - row, 0, self.pool) for row in self.halfwidth]), level
        )

    def _between(self, passages: Floats, level: float) -> dict[str, float]:
        middle, low, high = passage_interval(passages, start=float(self.judged[0]), most=float(self.pool), level=level)
        return {"judgments": middle, "lower": low, "upper": high}

    @key
    def steps(self) -> tuple[ForecastStep, ...]:
        """One entry per number of judgments, with 90% intervals."""
        return self._steps(LEVEL)

    def _steps(self, level: float) -> tuple[ForecastStep, ...]:
        tail = (1 - level) / 2
        low, middle, high = np.quantile(self.confidence, [tail, 0.5, 1 - tail], axis=0)
        width = np.median(self.halfwidth, axis=0)
        return rows(ForecastStep, judged=self.judged, confidence=middle, lower=low, upper=high, halfwidth=width)

    def to_frame(self, *, level: float = LEVEL) -> pd.DataFrame:
        """Return one row per step: judged, confidence (median), lower, upper, halfwidth."""
        return frame(self._steps(level), ForecastStep)

    def _headline(self) -> str:
        return f"{len(self.confidence)} paths from {self.judged[0]:,} to {self.judged[-1]:,} of {self.pool:,} pairs"

    def tables(self) -> tuple[Table, ...]:
        """Return one row per step."""
        title = f"Expected trajectory over {self.pool:,} pairs, {LEVEL:.0%} band"
        return (Table(self.to_frame(), title, intervals=("confidence", "lower", "upper")),)


def passage_interval(
    passages: Floats, *, start: float, most: float, level: float = LEVEL
) -> tuple[float, float, float]:
    """Return the median and the interval of a log-normal predictive distribution, allowing for few paths.

    It lies between what is there already and all there is: with all pairs judged, every target is met.
    """
    if passages.max() <= start:  # already reached
        return start, start, start
    ahead = np.log(np.maximum(passages - start, 1.0))
    n = len(ahead)
    between = float(ahead.var(ddof=1)) if n > 1 else 0.0
    spread = float(np.sqrt(between * (1 + 1 / n) + DOUBT**2))
    reach = -float(stdtrit(max(n - 1, 1), (1 - level) / 2)) * spread
    low, middle, high = (float(min(start + np.exp(ahead.mean() + x), most)) for x in (-reach, 0.0, reach))
    return middle, low, high


def first_passage(judged: Ints | Floats, over: Floats, lasts: float, pool: float) -> float:
    """Return where a trajectory first stays non-negative for ``lasts`` more, by linear interpolation between steps."""
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
    confidence: StatedConfidence | None = None,
    n_jobs: int = 1,
    scheduler: str | None = None,
    rng: np.random.Generator | None = None,
    reporter: Reporter = SILENT,
) -> Forecast:
    """Run the judging loop forward from a state, on truths drawn from its posterior.

    Parameters
    ----------
    state
        The current state of the judging.
    target, halfwidth, lasts
        A trajectory ends when confidence has held its target for ``lasts`` judgments, and no half-width is wider.
    paths
        The number of truths.
    most
        The largest number of judgments to look ahead; by default all unjudged pairs.
    noise
        The variance that an assessor's error adds to a pair's gain.
    confidence
        The confidence to forecast, as a function of the ranking; by default the mean over pairs of systems.
    n_jobs, scheduler
        The number of processes, or the address of a Dask scheduler.
    rng
        The generator of truths; seed 0 by default.
    reporter
        Receives progress and remarks.

    Examples
    --------
    >>> from probeval.relevance import synthetic_campaign
    >>> from probeval.relevance import load_card
    >>> from probeval.selection import Judging
    >>> campaign = synthetic_campaign(seed=1, systems=4, queries=6, depth=5)
    >>> judging = Judging.of(campaign, load_card("text-hierarchical").model, "DCG@5")
    >>> ahead = forecast(judging.begin(), paths=2)
    >>> ahead.needed(0.95)["judgments"] == ahead.pool == len(judging.pool)  # every pair is judged
    True
    """
    if not 0.5 <= target <= 1:
        raise SelectionError(f"The target confidence must be between .5 and 1, got {target:g}.")
    if paths < 1:
        raise SelectionError(f"A forecast needs at least one path, got {paths}.")
    rng = np.random.default_rng(0) if rng is None else rng
    quick = replace(state.judging, draws=min(state.judging.draws, DRAWS))
    state = replace(state, judging=quick)
    truths = state.prediction.relevance.sample(paths, rng, start=int(rng.integers(1_000_000)))
    track = partial(
        _track, state, target=target, halfwidth=halfwidth, lasts=lasts, most=most, noise=noise, confidence=confidence
    )
    with parallel(n_jobs, scheduler) as run:
        made = run(partial(track, truth) for truth in truths)
        tracks = [track for _, track in zip(reporter.track(range(paths), "Forecasting"), made, strict=True)]
    judged = max((track[0] for track in tracks), key=len)
    confident, width = (np.stack([_padded(track[i], len(judged)) for track in tracks]) for i in (1, 2))
    return Forecast(np.array(judged), confident, width, state.scores.pool)


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
    confidence: StatedConfidence | None,
) -> tuple[list[int], list[float], list[float]]:
    """Run one trajectory: numbers judged, confidence and half-width at each step."""
    judging = state.judging
    pool = state.judgments.pool.union(judging.pool)
    past, place, grades = state.judgments.on(pool), judging.pool.within(pool), judging.scale.judged_values[truth]
    made: list[int] = []
    start = state.scores.judged
    judged: list[int] = []
    confident: list[float] = []
    width: list[float] = []
    since: int | None = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbevalWarning)
        while True:
            n = start + len(made)
            judged.append(n)
            for values, value in zip((confident, width), _stated(state, made, noise, confidence), strict=True):
                values.append(value)
            reached = confident[-1] >= target and (halfwidth is None or width[-1] <= halfwidth)
            since = (n if since is None else since) if reached else None
            left = int(state.open.sum()) if most is None else min(most - len(made), int(state.open.sum()))
            if left <= 0 or (since is not None and n >= since + lasts):
                return judged, confident, width
            chosen = state.next(min(max(BATCH, round(GROWTH * n)), left))
            made += chosen.pairs.tolist()
            state = state.after(
                Judgments.coded(
                    pool, np.concatenate([past.pair, place[made]]), np.concatenate([past.grade, grades[made]])
                )
            )


def _stated(
    state: JudgingState, made: Sequence[int], noise: float, confidence: StatedConfidence | None
) -> tuple[float, float]:
    """Return confidence and the widest half-width, including the assessors' error on these pairs."""
    stated = attrgetter("confidence") if confidence is None else confidence
    scores = state.scores
    if not noise:
        return stated(state.ranking), scores.halfwidth()
    weights = state.context.weights[list(made)]
    joint = replace(scores.joint, covariance=scores.joint.covariance + noise * weights.T @ weights, draws=None)
    noisy = replace(scores, joint=joint, family="normal")
    return stated(replace(state.ranking, scores=noisy)), noisy.halfwidth()
