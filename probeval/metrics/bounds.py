"""Exact lower and upper bounds of scores over all possible grades of unjudged documents.

For most measures the extremes are "all lowest" and "all top grades"; for AP and nDCG a relevant document also raises
the denominator, and the extremes lie between. Both are computed in polynomial time.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from probeval.arrays import Floats, Ints
from probeval.metrics.lists import Lists
from probeval.metrics.metric import Metric
from probeval.metrics.recall import ap_denominator
from probeval.metrics.weights import divide

__all__ = ["bounds"]

TOLERANCE = 1e-14  # of Dinkelbach's iteration, on scores in [0, 1]


def bounds(metric: Metric, lists: Lists, outside: Ints | int = 0) -> tuple[Floats, Floats]:
    """Return the lowest and the highest possible score of every list, each with shape (system, query).

    Parameters
    ----------
    metric, lists
        The measure and the lists, without leading axes.
    outside
        The number of unjudged documents of the pool outside each list (cut at ``metric.cutoff``), shape
        (system, query): they cannot raise its score, but may be relevant documents that it missed.

    Returns
    -------
    lower, upper
        NaN for a measure without exact bounds, if any document is unjudged.

    Examples
    --------
    >>> from probeval.data import Scale
    >>> from probeval.metrics import AP
    >>> low, high = bounds(AP, Lists.of_grades([[1, 0, float("nan"), 1, float("nan")]], Scale.binary()))
    >>> round(low[0, 0], 4), round(high[0, 0], 4)
    (np.float64(0.7), np.float64(0.8056))
    """
    lists = lists.top(metric.cutoff)
    mode = metric.definition.bounds(metric)
    out = np.broadcast_to(outside, lists.codes.shape[:-1])
    if mode == "monotone":
        return _monotone(metric, lists)
    if mode == "found" or (mode == "precision" and not _decides(metric, lists)):
        return _found(metric, lists, out)
    if mode == "precision":
        return _precision(metric, lists, out)
    if mode == "ratio":
        return _ratio(metric, lists, out, highest=False), _ratio(metric, lists, out, highest=True)
    settled = ~lists.unjudged.any(axis=-1) & (out == 0)
    score = np.where(settled, metric.scores(lists), np.nan)
    return score, score


def _monotone(metric: Metric, lists: Lists) -> tuple[Floats, Floats]:
    ceiling = metric.definition.ceiling
    if ceiling is not None and metric.cutoff is None and metric.parameters.get("norm") is None:
        return metric.scores(lists.filled(0)), ceiling(metric, lists)
    return metric.scores(lists.filled(0)), metric.scores(lists.filled(len(lists.scale) - 1))


def _decides(metric: Metric, lists: Lists) -> bool:
    """Whether relevance depends on the grade: ``rel`` is above the lowest grade and on the scale."""
    return 0 < lists.scale.at_least(metric.number("rel")) < len(lists.scale)


def _found(metric: Metric, lists: Lists, outside: Ints) -> tuple[Floats, Floats]:
    # (found + m)/(relevant + m + e) grows with m and falls with e. If the lowest grade is relevant, all are.
    low, high = np.empty(outside.shape), np.empty(outside.shape)
    within = lists.unjudged.sum(axis=-1)
    every = lists.scale.at_least(metric.number("rel")) == 0
    least, most = (within + outside, within + outside) if every else (outside, within)
    for s in range(len(outside)):  # the number of relevant documents now differs from system to system
        one = replace(lists, codes=lists.codes[s : s + 1])
        low[s] = metric.scores(replace(one.filled(0), relevant_counts=lists.relevant_counts + least[s][:, None]))[0]
        high[s] = metric.scores(
            replace(one.filled(len(lists.scale) - 1), relevant_counts=lists.relevant_counts + most[s][:, None])
        )[0]
    return low, high


def _precision(metric: Metric, lists: Lists, outside: Ints) -> tuple[Floats, Floats]:
    r"""AP: with m of the unjudged relevant, best in the m first open ranks and worst in the m last.

    One more relevant document at rank s adds :math:`(1 + \#\{\text{relevant above}\})/s` for itself and :math:`1/r` for
    each relevant one at r below it; every m follows from the one before.
    """
    relevant, open_ = lists.relevant(metric.number("rel")), lists.unjudged
    rank = np.arange(1.0, lists.depth + 1)
    above: Ints = np.cumsum(relevant, axis=-1) - relevant
    share = relevant / rank
    below = share.sum(axis=-1, keepdims=True) - np.cumsum(share, axis=-1)
    start = ((above + 1) * share).sum(axis=-1, keepdims=True)
    own = np.where(open_, (1 + above) / rank + below, 0.0)  # of each open rank, given only the judged ones
    before: Ints = np.cumsum(open_, axis=-1) - open_
    # The m-th open rank from the top also counts the m - 1 above it; from the bottom, those below it count it.
    downward = np.where(open_, own + before / rank, 0.0)
    after = np.where(open_, 1 / rank, 0.0)
    upward = own + np.where(open_, after.sum(axis=-1, keepdims=True) - np.cumsum(after, axis=-1), 0.0)
    n = lists.n_relevant(metric.number("rel"))[..., None]
    reach = [np.cumsum(open_, axis=-1), np.cumsum(open_[..., ::-1], axis=-1)]
    totals = [start + np.cumsum(downward, axis=-1), start + np.cumsum(upward[..., ::-1], axis=-1)]
    ends = []
    for total, m, missed in zip(totals, reach, (np.zeros_like(outside), outside), strict=True):
        total, m = np.concatenate([start, total], axis=-1), np.concatenate([np.zeros_like(m[..., :1]), m], axis=-1)
        ends.append(divide(total, ap_denominator(metric, n + m + missed[..., None], lists.depth)))
    return ends[1].min(axis=-1), ends[0].max(axis=-1)


def _ratio(metric: Metric, lists: Lists, outside: Ints, *, highest: bool) -> Floats:
    r"""Weighted gains over the ideal list's, by Dinkelbach's iteration.

    See Dinkelbach (1967) and docs/theory/ties-and-bounds.md#ndcg-bounds.

    Let :math:`n_\ell` of the u open ranks get at least grade :math:`\ell` (so :math:`n_1 \ge n_2 \ge ..`). The extreme
    placement sorts them, so with :math:`D(n)` the weight of the n first (or last) open ranks and :math:`C` the running
    weight of the ideal list the score is a ratio of sums over levels,

    .. math:: \frac{b + \sum_\ell \Delta g_\ell D(n_\ell)}{\sum_\ell \Delta g_\ell\, C(\min(k, N_\ell + n_\ell + e))},

    and for any :math:`\lambda` the best numerator minus :math:`\lambda` times denominator follows from running maxima.
    The outside documents (e) are lowest for the highest score and top for the lowest.
    """
    sign = 1.0 if highest else -1.0
    codes = lists.codes.reshape(-1, lists.depth)
    gains, weights = metric.gains(lists.scale), metric.rank_weights(lists.depth)
    steps = np.diff(gains, prepend=0)
    open_ = (lists.unjudged).reshape(codes.shape)
    u = open_.sum(axis=1)
    n = np.arange(int(u.max(initial=0)) + 1)
    # D: open ranks first, ordered from the relevant end; then running sums.
    weight = np.where(open_, weights, 0.0)[:, :: 1 if highest else -1]
    pick = np.argsort(~open_[:, :: 1 if highest else -1], axis=1, kind="stable")[:, : len(n) - 1]
    placed = np.concatenate(
        [np.zeros((len(codes), 1)), np.cumsum(np.take_along_axis(weight, pick, axis=1), axis=1)], axis=1
    )
    missed = np.zeros_like(u) if highest else outside.reshape(-1)
    known = np.broadcast_to(lists.relevant_counts, (*lists.codes.shape[:-1], len(gains))).reshape(-1, len(gains))
    everything = known[:, 0] + u + outside.reshape(-1)  # all have at least the lowest grade
    running = np.append(0, np.cumsum(metric.rank_weights(max(int(everything.max(initial=0)), 1))))
    base = np.append(gains, [0.0] * 3)[codes] @ weights

    def level(grade: int) -> tuple[Floats, Floats]:
        """Return a level's contribution to numerator and denominator for each n, shape (list, n)."""
        count = known[:, grade, None] + n + missed[:, None]
        return steps[grade] * placed, steps[grade] * running[np.minimum(count, len(running) - 1)]

    levels = [level(grade) for grade in range(1, len(gains))]
    at_u = np.take_along_axis(placed, u[:, None], axis=1)[:, 0]
    start_num, start_den = base + steps[0] * at_u, steps[0] * running[everything]
    impossible = n > u[:, None]

    def best(ratio: Floats) -> tuple[Floats, Floats]:
        """Return numerator and denominator of the extreme point for each list's ratio."""
        num = den = np.zeros((len(codes), len(n)))
        for level_num, level_den in reversed(levels):
            num, den = num + level_num, den + level_den
            value = np.where(impossible, -np.inf, sign * (num - ratio[:, None] * den))
            peak = np.maximum.accumulate(value, axis=1)
            at = np.maximum.accumulate(np.where(value == peak, n, 0), axis=1)
            num, den = np.take_along_axis(num, at, axis=1), np.take_along_axis(den, at, axis=1)
        return start_num + num[:, -1], start_den + den[:, -1]

    all_top = [sum(np.take_along_axis(part[i], u[:, None], axis=1)[:, 0] for part in levels) for i in (0, 1)]
    ratio = divide(start_num + all_top[0], start_den + all_top[1])
    for _ in range(100):
        num, den = best(ratio)
        better = np.where(den == 0, ratio, divide(num, den))
        done = sign * (better - ratio) <= TOLERANCE
        ratio = np.where(sign * (better - ratio) > 0, better, ratio)
        if done.all():
            break
    if not highest:  # if possibly nothing is relevant, the score can be 0 by definition
        ratio = np.where((known[:, 1] == 0) & (missed == 0) & (gains[0] == 0), 0.0, ratio)
    return ratio.reshape(lists.codes.shape[:-1])
