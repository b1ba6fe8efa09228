"""Scores under tied retrieval scores: the tie rule picks one order, but all orders of a tied group are equivalent.

Groups of tied ranks are given by the first rank of each rank's group (:attr:`probeval.Runs.tie_starts`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from probeval.arrays import Floats, Ints
from probeval.errors import MetricError
from probeval.metrics.lists import Lists
from probeval.metrics.metric import Metric
from probeval.metrics.ratio import ideal
from probeval.metrics.recall import ap_denominator, score_of_count
from probeval.metrics.weights import divide

__all__ = ["TieGroups", "expected", "expected_sum_precision", "extremes", "permuted", "variance"]


@dataclass(frozen=True, eq=False)
class TieGroups:
    """Groups of tied ranks, from the first rank (from 0) of each rank's group, shape (system, query, rank)."""

    start: Ints

    @property
    def number(self) -> Ints:
        """One number per group, increasing along the flattened ranks."""
        depth = self.start.shape[-1]
        lists = np.arange(self.start.size // max(depth, 1)).reshape(*self.start.shape[:-1], 1)
        return np.asarray(lists * depth + self.start)

    def sum(self, values: Floats) -> Floats:
        """Return the sum over each rank's group, shape of the ranks."""
        number = self.number
        sums = np.bincount(number.ravel(), values.ravel(), minlength=self.start.size).astype(float)
        return np.asarray(sums[number])

    @property
    def length(self) -> Floats:
        """The length of each rank's group."""
        return self.sum(np.ones(self.start.shape))

    def mean(self, values: Floats) -> Floats:
        """Return the mean over each rank's group."""
        return self.sum(values) / self.length

    def reorder(self, lists: Lists, key: Floats) -> Lists:
        """Return the lists with every group sorted by an increasing key."""
        order = np.lexsort((key.ravel(), self.number.ravel()))
        return replace(lists, codes=lists.codes.ravel()[order].reshape(lists.codes.shape))


def expected(metric: Metric, lists: Lists, start: Ints) -> Floats:
    r"""Return the exact mean score over all orders of the tied groups, shape (system, query).

    See McSherry and Najork (2008) and docs/theory/ties-and-bounds.md#ties-ap.
    For weighted sums each gain becomes its group's mean. With :math:`R_g` of the :math:`l_g` documents of a group
    relevant and :math:`b_g` its first rank,

    .. math:: E[SP] = \sum_i \frac1i \frac{R_g}{l_g}\Big[\sum_{h<g} R_h + (i-b_g)\frac{R_g-1}{l_g-1} + 1\Big],

    of which AP is the quotient; E[RR] is a hypergeometric sum over the first group with a relevant document.

    Raises
    ------
    MetricError
        For a measure without a closed form: average over :func:`permuted` lists instead.
    """
    groups, k = TieGroups(start), metric.cutoff or lists.depth
    if metric.definition.rank_weights is not None:
        gain = groups.mean(lists.values(metric.gains(lists.scale)))
        return _over_norm(metric, lists, gain @ _weights(metric, lists))
    if metric.definition.bounds(metric) == "found":
        found = groups.mean(lists.relevant(metric.number("rel")).astype(float))[..., :k].sum(axis=-1)
        return score_of_count(metric, lists, found)
    if metric.name == "AP":
        relevant = lists.relevant(metric.number("rel")).astype(float)
        total = _sum_precision(groups, relevant)[..., :k].sum(axis=-1)
        return divide(total, ap_denominator(metric, lists.n_relevant(metric.number("rel")), lists.depth))
    if metric.name == "RR":
        return np.asarray(
            _expected_rr(groups, lists.relevant(metric.number("rel")).astype(float))[..., :k].sum(axis=-1)
        )
    raise MetricError(f"{metric} has no closed form under ties. Average it over permuted lists.")


def variance(metric: Metric, lists: Lists, start: Ints) -> Floats:
    r"""Return the variance of a weighted sum over all orders of the tied groups, shape (system, query).

    .. math:: \sum_g \frac{\sum_{i\in g} (w_i-\bar w)^2 \sum_{d\in g} (x_d-\bar x)^2}{l_g - 1}
    """
    if metric.definition.rank_weights is None:
        raise MetricError(f"{metric} has no closed form under ties. Take the variance over permuted lists.")
    groups = TieGroups(start)
    gain = lists.values(metric.gains(lists.scale))
    weight = np.broadcast_to(_weights(metric, lists), gain.shape)
    spread = [groups.sum((x - groups.mean(x)) ** 2) for x in (gain, weight)]
    length = groups.length
    # Every rank carries its group's value, so the sum over ranks is divided by the length.
    total = (spread[0] * spread[1] / np.maximum(length - 1, 1) / length).sum(axis=-1)
    unit = _over_norm(metric, lists, np.ones(total.shape))
    return np.asarray(total * unit**2)


def extremes(metric: Metric, lists: Lists, start: Ints, *, unjudged_open: bool = False) -> tuple[Floats, Floats]:
    """Return the lowest and highest score over all orders of the tied groups, each with shape (system, query).

    Within each group, better documents come last and first. With ``unjudged_open``, unjudged documents also get the
    lowest and the top grade; this is exact only for measures that higher grades never lower.
    """
    if metric.name in ("EDCG", "infAP"):
        raise MetricError(f"{metric} can fall when a better document moves up: its extremes under ties are not known.")
    if unjudged_open and metric.definition.bounds(metric) != "monotone":
        raise MetricError(f"{metric} can fall when a grade rises; take its bounds and its ties apart.")
    groups = TieGroups(start)
    low, high = (lists.filled(0), lists.filled(len(lists.scale) - 1)) if unjudged_open else (lists, lists)
    worst = groups.reorder(low, low.codes.astype(float))
    best = groups.reorder(high, -high.codes.astype(float))
    return metric.scores(worst), metric.scores(best)


def permuted(lists: Lists, start: Ints, n: int, rng: np.random.Generator) -> Lists:
    """Return lists with ``n`` random orders of the tied groups on a new first axis."""
    groups = TieGroups(start)
    codes = [groups.reorder(lists, rng.random(lists.codes.shape)).codes for _ in range(n)]
    return replace(
        lists,
        codes=np.stack(codes),
        relevant_counts=np.broadcast_to(lists.relevant_counts, (n, *lists.relevant_counts.shape)),
    )


def expected_sum_precision(p: Floats, start: Ints) -> Floats:
    r"""Return the mean of :math:`\sum_i X_i P@i` for independent relevance with probabilities ``p`` under ties.

    :math:`\sum_d p_d a_{dd} + \sum_{d<d'} p_d p_{d'} a_{dd'}` with :math:`a = E[1/\max(\text{rank})]`: the tie-aware
    form of the pair weights of MTC.
    """
    groups = TieGroups(start)
    rank, length = np.arange(1.0, start.shape[-1] + 1), groups.length
    alone = groups.mean(np.broadcast_to(1 / rank, start.shape))
    earlier = np.cumsum(p, axis=-1) - p
    earlier = np.take_along_axis(earlier, start, axis=-1)  # the sum before the group
    x = np.broadcast_to(rank, start.shape) - (start + 1)
    together = divide(groups.sum(2 * x / rank), length * (length - 1))
    couples = (groups.sum(p) ** 2 - groups.sum(p**2)) / 2 / length
    return np.asarray((p * alone * (1 + earlier) + couples * together).sum(axis=-1))


def _weights(metric: Metric, lists: Lists) -> Floats:
    return metric.weights(lists.scale, lists.depth) if metric.is_linear else metric.rank_weights(lists.depth)


def _over_norm(metric: Metric, lists: Lists, total: Floats) -> Floats:
    if metric.is_linear:
        return total
    return divide(total, ideal(metric, metric.gains(lists.scale), lists.relevant_counts)[..., None, :])


def _sum_precision(groups: TieGroups, relevant: Floats) -> Floats:
    rank = np.arange(1.0, relevant.shape[-1] + 1)
    inside, length = groups.sum(relevant), groups.length
    before = np.take_along_axis(np.cumsum(relevant, axis=-1) - relevant, groups.start, axis=-1)
    beside = (rank - groups.start - 1) * (inside - 1) / np.maximum(length - 1, 1)
    return np.asarray(inside / length / rank * (before + beside + 1))


def _expected_rr(groups: TieGroups, relevant: Floats) -> Floats:
    from scipy.special import gammaln  # slow to import

    rank = np.arange(1.0, relevant.shape[-1] + 1)
    inside, length = groups.sum(relevant), groups.length
    before = np.take_along_axis(np.cumsum(relevant, axis=-1) - relevant, groups.start, axis=-1)
    x = rank - groups.start - 1  # ranks of the group above this one
    first = (before == 0) & (inside > 0) & (length - x >= inside)
    left, r = np.where(first, length - x, 1), np.where(first, inside, 1)
    none_above = np.exp(gammaln(left + 1) - gammaln(left - r + 1) + gammaln(length - r + 1) - gammaln(length + 1))
    return np.where(first, none_above * r / left / rank, 0.0)
