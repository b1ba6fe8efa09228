r"""Reuse: systems that arrive after the judging of a campaign, and the judgments that they need.

See docs/theory/judging.md#reuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from probeval.arrays import Bools, Floats, Ints
from probeval.data.judgments import Judgments
from probeval.data.pool import Pool
from probeval.data.runs import Runs
from probeval.display import Record
from probeval.metrics.classical import Measured
from probeval.scores.scores import Score, within
from probeval.selection.batch import in_turn
from probeval.selection.judging import JudgingState
from probeval.ties import TIE

__all__ = [
    "ClassicalScore",
    "LaterSystem",
    "ModelScore",
    "Narrowing",
    "contributed",
    "judge_later",
    "measure_later",
    "narrowing",
    "newcomer_interval",
    "team_names",
    "without",
]

# The errors of newcomers exceed their stated standard deviations by this factor: see docs/evidence-reuse.md.
NEWCOMER = 1.33
MAX_ORDERED = 500  # unjudged documents among which an order is looked for
NOTHING = 1e-9  # a share of the variance that is rounding error


@dataclass(frozen=True, eq=False, repr=False)
class Narrowing(Record):
    r"""The half-width of a system's interval as its unjudged documents are judged, the most informative first.

    See docs/theory/judging.md#needed.

    Parameters
    ----------
    pairs
        The unjudged documents of the system in this order, as positions in the pool, shape (n,).
    halfwidth
        The expected half-width of its interval with none of them judged, with the first, and so on, shape (n + 1,).

    Examples
    --------
    >>> Narrowing(np.array([4, 2]), np.array([0.2, 0.1, 0.0])).needed(0.1)
    1
    """

    pairs: Ints
    halfwidth: Floats

    def needed(self, target: float) -> int | None:
        """The number of judgments until the half-width is at most ``target``; None if more than these are needed."""
        narrow = self.halfwidth <= target + TIE
        return int(np.argmax(narrow)) if narrow.any() else None


def narrowing(state: JudgingState, system: str, *, level: float = 0.95, most: int = MAX_ORDERED) -> Narrowing:
    r"""Return the order of unjudged documents that narrows the interval of a system's score most.

    The documents are those that the score depends on: the retrieved ones, and for measures with ideal lists others too.

    The next document is that of the highest :math:`g_d^2 / \text{Var}[G_d]`, the variance of the score that its
    judgment is expected to take away, given those before it. With :math:`\Sigma = LL'` the covariance of the gains in
    this order, the first :math:`n` take away the sum of the first :math:`n` squares of :math:`L^{-1} g`.

    Parameters
    ----------
    state
        The judgments so far, with the system among the runs.
    system
        Its name.
    level
        The probability of its interval.
    most
        The number of documents to order, those with the highest values of their own, where it has more.
    """
    context = state.context
    at = context.scores.systems.index(system)
    covariance, variance = context.covariance[:, at], context.gain_variance
    open_ = (context.weights[:, at] != 0) & ~context.judged & (variance > TIE)
    value = np.where(open_, covariance**2 / np.where(open_, variance, 1.0), 0.0)
    pairs = np.sort(np.argsort(-value, kind="stable")[: min(most, int(open_.sum()))])
    own, between = variance[pairs], context.dependence.between(pairs)
    order, _ = in_turn(covariance[pairs, None], own, between, len(pairs), np.ones((1, 1)))
    pairs = pairs[order]
    matrix = between[np.ix_(order, order)]
    np.fill_diagonal(matrix, own[order])
    taken = np.cumsum(np.linalg.solve(np.linalg.cholesky(matrix), covariance[pairs]) ** 2)
    total = float(context.weights[:, at] @ covariance)
    left = np.clip(1 - np.append(0.0, taken) / max(total, TIE), 0.0, 1.0)
    left[left < NOTHING] = 0.0
    low, high = newcomer_interval(context.scores[system], level)
    return Narrowing(pairs, (high - low) / 2 * np.sqrt(left))


def newcomer_interval(score: Score, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of the score of a system that had no part in the judging, wider than the model's own.

    The model learned from the first systems, and errors that all of them share are larger for a newcomer. Ranks and
    comparisons with the first systems need no such widening: the error is common to both sides. See
    docs/theory/judging.md#newcomers.
    """
    mean, (low, high) = score.mean(), score.interval(level)
    ends = mean - NEWCOMER * (mean - low), mean + NEWCOMER * (high - mean)
    least, most = within(score.scores.metric.limits, mean, *ends)
    return float(least), float(most)


@dataclass(frozen=True)
class ClassicalScore:
    """A later system by the judgments alone.

    Parameters
    ----------
    score
        Its mean score with unjudged documents as not relevant.
    lower, upper
        The bounds that its unjudged documents leave; NaN for a measure without exact ones.
    rank
        Its rank among the first systems by this score, itself included; ties share one.
    judged
        The share of its retrieved documents that is judged, to the depth of the evaluation.
    """

    score: float
    lower: float
    upper: float
    rank: int
    judged: float


@dataclass(frozen=True, eq=False, repr=False)
class ModelScore(Record):
    """A later system by the judgments, and the model for its unjudged documents.

    Parameters
    ----------
    mean, sd, lower, upper
        Its expected score, the standard deviation, and the interval, widened as for all newcomers
        (:func:`newcomer_interval`).
    rank, rank_lower, rank_upper
        Its rank among the first systems by expected score, itself included, and the interval of its rank.
    best, p_better
        The first system with the highest expected score, and the probability that the later one is better.
    target
        The median half-width of the first systems' intervals.
    needed
        The number of judgments that make its interval as narrow; None if more than ``pairs`` has are needed.
    pairs
        The unjudged documents, the most informative first: query, doc, rank, grade, sd, halfwidth (of its interval,
        once this pair and those above are judged).
    """

    mean: float
    sd: float
    lower: float
    upper: float
    rank: int
    rank_lower: int
    rank_upper: int
    best: str
    p_better: float
    target: float
    needed: int | None
    pairs: pd.DataFrame


@dataclass(frozen=True, repr=False)
class LaterSystem(Record):
    """A system that had no part in a campaign, evaluated with the campaign's judgments.

    Parameters
    ----------
    system
        Its name.
    classical
        By the judgments alone.
    model
        With a model for its unjudged documents; None without a model.
    """

    system: str
    classical: ClassicalScore
    model: ModelScore | None = None


def measure_later(measured: Measured, first: Sequence[str], later: Sequence[str]) -> list[ClassicalScore]:
    """Return each later system by the judgments alone, from the scores of all systems."""
    mean, lower, upper = (v.mean(axis=1) for v in (measured.values, measured.lower, measured.upper))
    at = {system: i for i, system in enumerate(measured.systems)}
    others = mean[[at[s] for s in first]]
    return [
        ClassicalScore(
            score=float(mean[i]),
            lower=float(lower[i]),
            upper=float(upper[i]),
            rank=1 + int((others > mean[i] + TIE).sum()),
            judged=float(measured.judged[i]),
        )
        for i in (at[s] for s in later)
    ]


def judge_later(
    state: JudgingState, first: Sequence[str], later: Sequence[str], *, level: float = 0.95
) -> list[ModelScore]:
    """Return each later system by the model, from the state of a judging that has the later systems among its runs."""
    scores, ranking = state.scores, state.ranking
    at = {system: i for i, system in enumerate(scores.systems)}
    of_first = np.array([at[s] for s in first])
    low, high = scores.intervals(level)
    best = int(of_first[np.argmax(scores.mean[of_first])])
    target = float(np.median((high - low)[of_first]) / 2)
    tail = (1 - level) / 2
    out = []
    for system in later:
        i = at[system]
        lower, upper = newcomer_interval(scores[system], level)
        ranks = 1 + (ranking.draws[:, of_first] > ranking.draws[:, [i]] + TIE).sum(axis=1)
        ends = np.quantile(ranks, [tail, 1 - tail], method="inverted_cdf")
        order = narrowing(state, system, level=level)
        out.append(
            ModelScore(
                mean=float(scores.mean[i]),
                sd=NEWCOMER * float(scores.standard_deviation[i]),
                lower=lower,
                upper=upper,
                rank=1 + int((scores.mean[of_first] > scores.mean[i] + TIE).sum()),
                rank_lower=int(ends[0]),
                rank_upper=int(ends[1]),
                best=scores.systems[best],
                p_better=float(ranking.p_better[i, best]),
                target=target,
                needed=order.needed(target),
                pairs=_pairs(state, i, order),
            )
        )
    return out


def _pairs(state: JudgingState, system: int, order: Narrowing) -> pd.DataFrame:
    """Return the pairs of an order as a table."""
    runs, relevance = state.judging.runs, state.prediction.relevance
    rank = np.full(len(runs.pool), np.nan)
    query, place = np.nonzero(runs.retrieved[system])
    rank[runs.pairs[system, query, place]] = place + 1.0
    known = relevance.take(order.pairs).to_frame().iloc[order.pairs.argsort().argsort()]
    return pd.DataFrame(
        {
            "query": known["query"].to_numpy(),
            "doc": known["doc"].to_numpy(),
            "rank": rank[order.pairs],
            "grade": known["mean"].to_numpy(),
            "sd": known["sd"].to_numpy(),
            "halfwidth": order.halfwidth[1:],
        }
    )


def team_names(runs: Runs) -> tuple[str, ...]:
    """The team of each system; without teams each system is its own."""
    return runs.systems if runs.teams is None else runs.teams


def contributed(has: Bools, mine: Bools) -> Bools:
    """Return the pairs that only some systems contributed to the pool, shape (pair,).

    Parameters
    ----------
    has
        Whether each system retrieved each pair, shape (system, pair).
    mine
        The systems, shape (system,).

    Examples
    --------
    >>> contributed(np.array([[True, True, False], [True, False, True]]), np.array([True, False])).tolist()
    [False, True, False]
    """
    return np.asarray(has[mine].any(axis=0) & ~has[~mine].any(axis=0))


def without(judgments: Judgments, pool: Pool, pairs: Bools) -> Judgments:
    """Return the judgments without those of some pairs of a pool; ``pairs`` is a mask, shape (pair,)."""
    position = judgments.pool.within(pool)[judgments.pair]
    return judgments.take((position < 0) | ~pairs[position])
