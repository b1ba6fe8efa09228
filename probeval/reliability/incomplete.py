r"""Predict which differences would be significant with complete judgments, while some pairs are unjudged.

Four rules by bounds (Urbano and Schedl, 2012), and their replacement if relevance has a distribution: the probability
of a significant difference, from joint draws of scores.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from probeval.arrays import Bools, Codes, Floats, Ints
from probeval.data.runs import Runs
from probeval.data.scale import Scale, count_at_least
from probeval.display import Record
from probeval.errors import ReliabilityError
from probeval.metrics import Lists, Metric, bounds
from probeval.metrics.lists import gather
from probeval.reliability.paired import differences, pair_index, run_test
from probeval.reliability.twoway import signed
from probeval.ties import TIE

__all__ = ["Decisions", "difference_bounds", "probability_significant", "rules"]

DRAWS = 2_000_000  # most differences in memory at once


@dataclass(frozen=True, eq=False, repr=False)
class Decisions(Record):
    """The decisions of the rules on each pair of systems.

    Parameters
    ----------
    sign
        1 or -1 where the first or the second system is taken as significantly better, else 0, shape (pair,).
    rule
        The rule of each decision, 1 to 4, or 0 if none applies, shape (pair,).
    """

    sign: Ints
    rule: Ints


def rules(
    lower: Floats,
    upper: Floats,
    *,
    estimate: Floats | None = None,
    threshold: float | None = None,
    confidence: Floats | None = None,
    gate: float = 0.0,
    alpha: float = 0.05,
    test: str = "t",
) -> Decisions:
    r"""Decide on pairs of systems by the bounds over unjudged documents.

    1. Even at its best, A is significantly worse than B: B is better.
    2. Even at B's best, B is significantly worse than A: A is better.
    3. Neither at its best is significantly better: they do not differ.
    4. The estimated difference is beyond a threshold, and the confidence in its sign is high: they differ, in its
       direction.

    The first applicable rule decides. Rules 1 to 3 use the extremes of the possible scores. Scores in between can vary
    more over queries than either extreme, so even they are heuristics.

    Parameters
    ----------
    lower, upper
        The bounds of each difference on each query, shape (pair, query): :func:`difference_bounds`.
    estimate
        The estimated mean differences, for rule 4, shape (pair,).
    threshold
        The difference above which rule 4 decides: see :func:`~probeval.reliability.minimum_difference`.
        Without it rule 4 does not apply.
    confidence, gate
        The confidence in the sign of each estimate, shape (pair,), and the least confidence with which rule 4 decides.
        Without ``confidence`` rule 4 decides by the size of the estimate alone.
    alpha, test
        The level and the test (``"t"``, ``"wilcoxon"`` or ``"sign"``).

    Examples
    --------
    >>> known = np.array([[0.4, 0.5, 0.3, 0.4], [0.1, -0.2, 0.0, 0.1], [0.1, 0.2, 0.1, 0.3]])
    >>> open_ = np.array([[0.1], [0.0], [0.3]])
    >>> decided = rules(known - open_, known + open_, estimate=known.mean(axis=1), threshold=0.15)
    >>> decided.sign, decided.rule
    (array([1, 0, 1]), array([2, 3, 4]))
    >>> sure = {"confidence": np.array([0.99, 0.6, 0.9]), "gate": 0.95}
    >>> rules(known - open_, known + open_, estimate=known.mean(axis=1), threshold=0.15, **sure).rule
    array([2, 3, 0])
    """
    if test not in ("t", "wilcoxon", "sign"):
        raise ReliabilityError(f"The rules take the tests t, wilcoxon or sign, got {test!r}.")
    worst, best = (signed(d.mean(axis=1), run_test(test, d)[1], alpha=alpha) for d in (lower, upper))
    sign, rule = np.zeros(len(lower), dtype=np.int64), np.zeros(len(lower), dtype=np.int64)
    if threshold is not None:
        if estimate is None:
            raise ReliabilityError("Rule 4 compares an estimate with the threshold: give estimate= as well.")
        far = np.abs(estimate) > threshold
        if confidence is not None:
            far &= confidence >= gate - TIE
        sign[far], rule[far] = np.sign(estimate[far]), 4
    neither = (best <= 0) & (worst >= 0)
    sign[neither], rule[neither] = 0, 3
    sign[worst > 0], rule[worst > 0] = 1, 2
    sign[best < 0], rule[best < 0] = -1, 1
    return Decisions(sign, rule)


def difference_bounds(runs: Runs, codes: Codes, metric: Metric, scale: Scale) -> tuple[Floats, Floats]:
    r"""Return the lowest and highest possible difference of each pair of systems on each query, shapes (pair, query).

    For a measure that is linear in the gains they are exact. A document adds :math:`(W_{ad} - W_{bd}) \, g_d`, so where
    both systems retrieved it only the difference of its weights is open. With the weight :math:`T_a = \sum_d W_{ad}`
    that a system has on unjudged documents, and the part :math:`M_{ab} = \sum_d \min(W_{ad}, W_{bd})` that cancels,

    .. math:: D^+_{ab} = D_{ab} + g_{max} (T_a - M_{ab}) - g_{min} (T_b - M_{ab}) .

    For other measures they are the bounds of the two scores, which are wider than necessary.

    Parameters
    ----------
    runs
        The lists, to the depth of the measure.
    codes
        The grade of each pair of ``runs.pool`` as a position on the scale, negative where unjudged, shape (pair,).
    metric, scale
        The measure and the grades.
    """
    a, b = pair_index(len(runs.systems))
    if not metric.is_linear:
        lists, outside = _lists(runs, codes, metric, scale)
        low, high = bounds(metric, lists, outside)
        return low[a] - high[b], high[a] - low[b]
    pairs = runs.pairs[:, :, : metric.cutoff]
    weights, gains = metric.weights(scale, pairs.shape[2]), metric.gains(scale)
    grades = gather(codes, pairs)
    known = np.append(gains, 0.0)[np.maximum(grades, -1)] @ weights  # (system, query)
    open_ = (grades < 0) & (pairs >= 0)
    total, shared = open_ @ weights, _shared(pairs, open_, weights)
    base = known[a] - known[b]
    first, second = total[a] - shared, total[b] - shared
    low, high = gains.min(), gains.max()
    return base + low * first - high * second, base + high * first - low * second


def _shared(pairs: Ints, open_: Bools, weights: Floats) -> Floats:
    r"""Return the common weight of two systems on unjudged documents, shape (pair, query).

    :math:`\min(W_a, W_b) = \sum_r \Delta w_r \, 1(W_a \ge w_r) \, 1(W_b \ge w_r)` over the distinct weights
    :math:`w_r > 0`: a matrix product each.
    """
    n, n_queries, _ = pairs.shape
    a, b = pair_index(n)
    levels = np.unique(weights[weights > 0])
    steps = np.diff(levels, prepend=0.0)
    out = np.zeros((len(a), n_queries))
    for q in range(n_queries):
        system, at = np.nonzero(open_[:, q])
        docs, column = np.unique(pairs[system, q, at], return_inverse=True)
        weight = np.zeros((n, len(docs)))
        weight[system, column] = weights[at]
        both = np.zeros((n, n))
        for level, step in zip(levels, steps, strict=True):
            reach = (weight >= level).astype(float)
            both += step * (reach @ reach.T)
        out[:, q] = both[a, b]
    return out


def _lists(runs: Runs, codes: Codes, metric: Metric, scale: Scale) -> tuple[Lists, Ints]:
    """Return the lists, and the number of unjudged documents of the pool outside each, shape (system, query)."""
    n = len(runs.queries)
    lists = Lists(scale, gather(codes, runs.pairs), count_at_least(codes, runs.pool.query, n, len(scale)))
    open_ = np.bincount(runs.pool.query, codes < 0, minlength=n).astype(np.int64)
    return lists, open_ - lists.top(metric.cutoff).unjudged.sum(axis=-1)


def probability_significant(
    batches: Iterable[Floats], *, alpha: float = 0.05, test: str = "t"
) -> tuple[Floats, Floats]:
    r"""Return P(significantly better) and P(significantly worse) with complete judgments, from joint draws.

    Each draw is one possible outcome of judging; the test is run on each.

    Parameters
    ----------
    batches
        Joint draws of the scores, each of shape (draw, system, query), as :func:`probeval.scores.evaluate` keeps them
        with ``per_query``.
    alpha, test
        The level and the test (``"t"``, ``"wilcoxon"`` or ``"sign"``).

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> drawn = np.array([[0.5], [0.4]]) + rng.normal(scale=0.1, size=(1000, 2, 20))
    >>> better, worse = probability_significant([drawn])
    >>> round(float(better[0]), 2), float(worse[0])
    (0.86, 0.0)
    """
    better = worse = np.zeros(0)
    n = 0
    for batch in batches:
        a, b = pair_index(batch.shape[1])
        size = max(1, DRAWS // max(len(a) * batch.shape[2], 1))
        for start in range(0, len(batch), size):
            gap = differences(batch[start : start + size], a, b)
            decided = signed(gap.mean(axis=-1), run_test(test, gap)[1], alpha=alpha)
            up, down = (decided > 0).sum(axis=0), (decided < 0).sum(axis=0)
            better, worse = (better + up, worse + down) if n else (up, down)
            n += len(gap)
    if not n:
        raise ReliabilityError("At least one draw of the scores is needed, got none.")
    return better / n, worse / n
