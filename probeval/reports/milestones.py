r"""The progress of judging: confidence and reliability at milestones.

A mean score over :math:`n` queries is a measurement of a system, and judging only some pairs is one more source of its
error. With :math:`\sigma^2_s, \sigma^2_q, \sigma^2_e` the variance components of the scores (Brennan 2001), and
:math:`\delta^2` and :math:`\Delta^2` the mean variance of a system's score from unjudged pairs, relative to the mean
over systems and absolute,

.. math:: E\rho^2 = \frac{\sigma^2_s}{\sigma^2_s + \sigma^2_e/n + \delta^2}, \qquad
    \Phi = \frac{\sigma^2_s}{\sigma^2_s + (\sigma^2_q + \sigma^2_e)/n + \Delta^2}.

With all pairs judged, they are the coefficients of an ordinary G-study. See docs/theory/reliability.md#judged-so-far.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pandas as pd

from probeval.arrays import Floats
from probeval.display import Record
from probeval.errors import ProbevalWarning, ReliabilityError
from probeval.reliability import GStudy, gstudy
from probeval.results import frame
from probeval.scores import ScoreEstimate, Scores, evaluate
from probeval.selection import JudgingState
from probeval.streams import Purpose, stream

__all__ = ["Milestone", "as_judged", "draw_queries", "milestone", "milestone_table"]

MAX_DRAWN_SCORES = 20_000_000  # drawn scores in memory


@dataclass(frozen=True, repr=False)
class Milestone(Record):
    """Results after a number of judgments."""

    judged: Annotated[int, "The number of judged pairs of the pool."]
    confidence: Annotated[float, "The mean confidence over the comparisons of the goal."]
    expected_tau: Annotated[float, "The expected tau of the ranking."]
    p_best: Annotated[float, "The probability that the first system is the best."]
    half_width: Annotated[float, "The mean half-width of the scores' 95% intervals, for these queries."]
    erho2: Annotated[float, "The relative reliability of the current scores; the interval is from unjudged pairs."]
    erho2_lower: float
    erho2_upper: float
    phi: Annotated[float, "Their absolute reliability."]
    phi_lower: float
    phi_upper: float


def draw_queries(estimate: ScoreEstimate, *, n: int = 1000) -> Scores:
    """Return joint draws of the score of every system on every query, for reliability and satisfaction."""
    runs = estimate.estimation.runs
    most = max(2, MAX_DRAWN_SCORES // max(len(runs.systems) * len(runs.queries), 1))
    rng = stream(estimate.estimation.seed, len(estimate.judgments), Purpose.QUERY_SCORES)
    return evaluate(
        runs,
        estimate.prediction.relevance,
        estimate.scores.metric,
        method="draws",
        per_query=True,
        n=min(n, most),
        rng=rng,
    )


def as_judged(study: GStudy, scores: Scores) -> dict[str, Floats]:
    """Return E rho^2 and Phi of the current scores, one value per draw of the components, shape (draw,)."""
    components = np.array([list(study.components.values())]) if study.draws is None else study.draws
    system, query, residual = components.T
    own, n_systems, n_queries = np.diag(scores.joint.covariance), len(scores.systems), len(scores.queries)
    # The variance of a score less the mean over systems, and of the score itself.
    relative = (own.mean() - scores.joint.covariance.mean()) * n_systems / (n_systems - 1)
    error = {"erho2": residual / n_queries + relative, "phi": (query + residual) / n_queries + own.mean()}
    return {
        name: np.divide(system, system + e, out=np.zeros_like(system), where=system + e > 0)
        for name, e in error.items()
    }


def milestone(state: JudgingState, *, n: int = 300) -> Milestone:
    """Return the milestone at a state of the judging, from ``n`` joint draws.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from probeval.data import Scale
    >>> from probeval.relevance import synthetic_campaign
    >>> from probeval.relevance import FallbackModel, Uniform
    >>> from probeval.selection import Judging
    >>> campaign = synthetic_campaign(seed=1, systems=4, queries=6, depth=5)
    >>> none = Judging.of(replace(campaign, judgments=None), FallbackModel([Uniform()]), "DCG@5", scale=Scale.graded(2))
    >>> all_ = Judging.of(campaign, FallbackModel([Uniform()]), "DCG@5")
    >>> before, after = milestone(none.begin()), milestone(all_.begin())
    >>> before.confidence < after.confidence == 1.0
    True
    """
    ranking = state.ranking
    found: dict[str, float] = {}
    for name, draws in _reliability(draw_queries(state.estimate, n=n)).items():
        low, middle, high = np.quantile(draws, [0.025, 0.5, 0.975])
        found |= {name: float(middle), f"{name}_lower": float(low), f"{name}_upper": float(high)}
    low_end, high_end = state.scores.intervals()
    return Milestone(
        judged=state.scores.judged,
        confidence=state.confidence,
        expected_tau=ranking.expected_tau,
        p_best=float(ranking.p_best.max()),
        half_width=float((high_end - low_end).mean() / 2),
        **found,
    )


def _reliability(scores: Scores) -> dict[str, Floats]:
    """Return both coefficients, one value per draw; NaN for a single system or query, or without variance."""
    assert scores.joint.query_draws is not None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ProbevalWarning)  # the report's own study warns
            study = gstudy(scores, interval="draws" if len(scores.joint.query_draws) > 1 else "none")
    except ReliabilityError:
        return {"erho2": np.array([np.nan]), "phi": np.array([np.nan])}
    return as_judged(study, scores)


def milestone_table(milestones: Sequence[Milestone]) -> pd.DataFrame:
    """Return one row per milestone."""
    return frame(milestones, Milestone)
