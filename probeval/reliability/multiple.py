r"""Multiple comparisons: corrections of p-values, and tests of all systems together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtrc, chdtri, gammaln, ndtr

from probeval.arrays import Floats, Ints
from probeval.display import Record
from probeval.errors import ReliabilityError, did_you_mean
from probeval.reliability.correlation import rank
from probeval.reliability.paired import SAMPLES, differences, pair_index, run_test
from probeval.reliability.twoway import signed
from probeval.ties import TIE

__all__ = [
    "CORRECTIONS",
    "SIGNIFICANCE",
    "AllPairs",
    "Friedman",
    "adjust",
    "benjamini_hochberg",
    "friedman",
    "holm",
    "randomised_tukey",
    "significant_signs",
    "studentised_quantile",
    "studentised_range",
    "tukey_hsd",
]

CORRECTIONS = {
    "none": "each pair by itself",
    "holm": "Holm: probability of at most alpha of any false discovery",
    "bh": "Benjamini and Hochberg: at most a share alpha of false discoveries",
}
SIGNIFICANCE = {
    "t": "paired t test",
    "wilcoxon": "Wilcoxon's signed ranks",
    "sign": "sign test",
    "tukey": "Tukey's honestly significant differences",
    "friedman": "Friedman's test, then Nemenyi's critical difference of mean ranks",
}
NODES, SPREADS = 192, 64  # quadrature nodes of the studentised range, over means and over their spread
BATCH = 4_000_000  # most permuted scores in memory at once


def adjust(p: Floats, correction: str) -> Floats:
    """Return p-values corrected for their number by one of :data:`CORRECTIONS`; NaN stays NaN and does not count.

    >>> adjust(np.array([0.01, 0.04, 0.03]), "holm")
    array([0.03, 0.06, 0.06])
    """
    if correction not in CORRECTIONS:
        raise ReliabilityError(
            f"No correction {correction!r}: {', '.join(CORRECTIONS)}.{did_you_mean(correction, CORRECTIONS)}"
        )
    if correction == "none":
        return p.copy()
    return holm(p) if correction == "holm" else benjamini_hochberg(p)


def holm(p: Floats) -> Floats:
    r"""Holm's step-down (Holm 1979): :math:`\max_{j \le i} (m - j + 1) \, p_{(j)}`, at most 1."""
    return _by_rank(p, lambda ordered, m: np.maximum.accumulate(ordered * np.arange(m, 0, -1)))


def benjamini_hochberg(p: Floats) -> Floats:
    r"""The step-up of Benjamini and Hochberg (1995): :math:`\min_{j \ge i} (m / j) \, p_{(j)}`, at most 1."""
    return _by_rank(p, lambda ordered, m: np.minimum.accumulate((ordered * m / np.arange(1, m + 1))[::-1])[::-1])


def _by_rank(p: Floats, step: Callable[[Floats, int], Floats]) -> Floats:
    out = np.full(p.shape, np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    out[order] = np.minimum(step(p[order], len(order)), 1.0)
    return out


class AllPairs(NamedTuple):
    r"""All pairs of systems tested together, over the queries that every system has.

    ``queries`` is the number of these. ``difference`` is that of the means, ``statistic`` the :math:`q` of Tukey's
    test, ``p`` counts for all pairs at once; shapes (pair,). The intervals ``difference`` :math:`\pm` ``half`` hold
    together: the probability that all of them are right is that of the level.
    """

    queries: int
    difference: Floats
    statistic: Floats
    p: Floats
    half: float

    @classmethod
    def of(cls, values: Floats, p: Floats, half: float) -> AllPairs:
        """Return the tests of complete scores."""
        mean, error, _ = _errors(values)
        a, b = pair_index(len(values))
        gap = mean[a] - mean[b]
        statistic = np.divide(np.abs(gap), error, out=np.where(np.abs(gap) < TIE, 0.0, np.inf), where=error >= TIE)
        return cls(values.shape[1], gap, statistic, p, half)


def _errors(values: Floats) -> tuple[Floats, float, int]:
    r"""Return the systems' means, their standard error :math:`\sqrt{MS_e / n_q}`, and its degrees of freedom."""
    n_s, n_q = values.shape
    mean = values.mean(axis=1)
    residual = values - mean[:, None] - values.mean(axis=0) + mean.mean()
    freedom = (n_s - 1) * (n_q - 1)
    return mean, float(np.sqrt((residual**2).sum() / max(freedom, 1) / n_q)), freedom


def tukey_hsd(values: Floats, *, level: float = 0.95) -> AllPairs:
    r"""Return Tukey's honestly significant differences over systems and queries.

    .. math:: q_{ab} = \frac{|\bar x_a - \bar x_b|}{\sqrt{MS_e / n_q}}

    against the studentised range of :math:`n_s` means with :math:`(n_s - 1)(n_q - 1)` degrees of freedom. With its
    quantile :math:`q_{1-\alpha}`, the simultaneous intervals are :math:`\bar x_a - \bar x_b \pm q_{1-\alpha}
    \sqrt{MS_e / n_q}`: an interval without 0 is a significant difference. Queries that some system lacks are left out.
    """
    values = _complete(values)
    mean, error, freedom = _errors(values)
    a, b = pair_index(len(values))
    gap = np.abs(mean[a] - mean[b])
    if error < TIE:
        return AllPairs.of(values, np.where(gap < TIE, 1.0, 0.0), 0.0)
    p = studentised_range(np.where(gap < TIE, 0.0, gap) / error, len(values), freedom)
    return AllPairs.of(values, p, studentised_quantile(1 - level, len(values), freedom) * error)


def randomised_tukey(
    values: Floats, *, level: float = 0.95, samples: int = SAMPLES, rng: np.random.Generator
) -> AllPairs:
    r"""Return Tukey's test by randomisation (Carterette, 2012).

    Within each query the scores are permuted over systems at random; a difference is significant if any two systems
    differ as much in few permutations:

    .. math:: p_{ab} = \frac{1 + |\{i : \max_s \bar x^*_s - \min_s \bar x^*_s \ge |\bar x_a - \bar x_b|\}|}{1 + T}

    Half the width of the simultaneous intervals is the least difference that is not significant, infinite if the
    permutations are too few for one at this level. Permutations spread true differences over all systems, so intervals
    are wide where systems differ much.
    """
    values = _complete(values)
    if samples < 1:
        raise ReliabilityError(f"A resampling test needs at least one sample, got {samples}.")
    by_query = np.ascontiguousarray(values.T)
    size = max(1, BATCH // max(values.size, 1))
    ranges = []
    for start in range(0, samples, size):
        dealt = rng.permuted(np.broadcast_to(by_query, (min(size, samples - start), *by_query.shape)), axis=2)
        ranges.append(np.ptp(dealt.mean(axis=1), axis=1))
    largest = np.sort(np.concatenate(ranges))
    mean = values.mean(axis=1)
    a, b = pair_index(len(values))
    reached = samples - np.searchsorted(largest, np.abs(mean[a] - mean[b]) - TIE)
    allowed = int(np.ceil((1 - level) * (samples + 1))) - 2  # permutations that reach a significant difference
    half = float(largest[samples - 1 - allowed]) if allowed >= 0 else np.inf
    return AllPairs.of(values, np.asarray((reached + 1) / (samples + 1)), half)


@cache
def studentised_quantile(p: float, groups: int, freedom: float) -> float:
    """Return the q of :func:`studentised_range` that has this p; NaN for a single group.

    >>> round(studentised_quantile(0.05, 3, 12), 4)  # the tabled 5% point
    3.7729
    """
    if groups < 2:
        return float("nan")

    def excess(q: float) -> float:
        return float(studentised_range(np.array([q]), groups, freedom)[0]) - p

    top = 10.0
    while excess(top) > 0:  # with few degrees of freedom, q is far out
        top *= 10
    return float(brentq(excess, 0.0, top))


def studentised_range(q: Floats, groups: int, freedom: float) -> Floats:
    r"""Return P(the range of standard normal means, over an independent estimate of their sd, exceeds q).

    .. math:: P(Q \le q) = \int_0^\infty f_\nu(s) \; k \int \phi(z) [\Phi(z) - \Phi(z - qs)]^{k-1} dz \, ds

    by Gauss-Legendre quadrature; :math:`s = \sqrt{\chi^2_\nu / \nu}`, which is 1 for infinite freedom.

    >>> round(float(studentised_range(np.array([3.7729]), 3, 12)[0]), 4)  # the tabled 5% point
    0.05
    """
    if groups < 2:
        return np.full(np.shape(q), np.nan)
    nodes, weights = _legendre(NODES)
    z = 8.5 * nodes
    density = groups * 8.5 * weights * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    spread, mass = _chi_nodes(freedom)
    below = np.zeros(np.shape(q))
    for s, m in zip(spread, mass, strict=True):
        below += m * ((ndtr(z) - ndtr(z - np.asarray(q)[..., None] * s)) ** (groups - 1) @ density)
    return np.clip(1 - below, 0.0, 1.0)


@cache
def _legendre(n: int) -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return nodes, weights


def _chi_nodes(freedom: float) -> tuple[Floats, Floats]:
    r"""Return points of :math:`\sqrt{\chi^2/\nu}` and their probabilities, which sum to 1."""
    if not np.isfinite(freedom):
        return np.ones(1), np.ones(1)
    nodes, weights = _legendre(SPREADS)
    low, high = np.sqrt(chdtri(freedom, [1 - 1e-15, 1e-15]) / freedom)
    s = (high + low) / 2 + (high - low) / 2 * nodes
    logs = freedom / 2 * np.log(freedom / 2) - gammaln(freedom / 2) + np.log(2) + (freedom - 1) * np.log(s)
    mass = weights * np.exp(logs - freedom * s**2 / 2) * (high - low) / 2
    return s, mass / mass.sum()


@dataclass(frozen=True, eq=False, repr=False)
class Friedman(Record):
    """Friedman's test of any difference between systems, by their ranks on each query.

    Parameters
    ----------
    statistic, p
        Friedman's chi-squared (corrected for ties) with one degree of freedom less than systems, and its p-value.
    ranks
        The mean rank of each system, 1 being the best, shape (system,).
    queries
        The number of queries with scores of all systems.
    """

    statistic: float
    p: float
    ranks: Floats
    queries: int

    def critical_difference(self, *, alpha: float = 0.05) -> float:
        r"""Return Nemenyi's critical difference (Demšar 2006): larger differences of mean ranks are significant.

        .. math:: CD = \frac{q_\alpha}{\sqrt 2} \sqrt{\frac{n_s (n_s + 1)}{6 \, n_q}}
        """
        n = len(self.ranks)
        if n < 2:
            return float("nan")
        quantile = studentised_quantile(alpha, n, np.inf)
        return float(quantile * np.sqrt(n * (n + 1) / (12 * self.queries)))


def friedman(values: Floats) -> Friedman:
    r"""Return Friedman's test of scores, shape (system, query); queries without scores of all systems are left out.

    >>> found = friedman(np.array([[0.9, 0.8, 0.7, 0.9], [0.5, 0.6, 0.6, 0.4], [0.1, 0.3, 0.2, 0.5]]))
    >>> found.statistic, round(found.p, 4), found.ranks
    (6.5, 0.0388, array([1.  , 2.25, 2.75]))
    """
    values = _complete(values)
    n_s, n_q = values.shape
    ranks, least = rank(values.T, ties="mean"), rank(values.T, ties="min")
    tied = 2 * (ranks - least) + 1
    untied = 1 - ((tied**2 - 1).sum() / (n_q * n_s * (n_s**2 - 1)) if n_s > 1 else 1.0)
    sums = ranks.sum(axis=0)
    statistic = (12 * (sums @ sums) / (n_q * n_s * (n_s + 1)) - 3 * n_q * (n_s + 1)) / untied if untied > TIE else 0.0
    return Friedman(float(statistic), float(chdtrc(max(n_s - 1, 1), max(statistic, 0.0))), sums / n_q, n_q)


def significant_signs(values: Floats, *, test: str = "t", alpha: float = 0.05) -> Ints:
    """Return 1 or -1 where the first or the second system of a pair is significantly better, else 0, shape (pair,).

    Parameters
    ----------
    values
        The scores, shape (system, query).
    test
        One of :data:`SIGNIFICANCE`. ``tukey`` and ``friedman`` compare all systems together, ``friedman`` by their mean
        ranks; the others test each pair by itself.
    alpha
        The level of significance.

    Examples
    --------
    >>> values = np.array([[0.9, 0.8, 0.7, 0.9], [0.5, 0.6, 0.6, 0.4], [0.1, 0.3, 0.2, 0.5]])
    >>> [significant_signs(values, test=test).tolist() for test in ("t", "tukey", "friedman")]
    [[1, 1, 0], [0, 1, 0], [0, 1, 0]]
    """
    if test not in SIGNIFICANCE:
        raise ReliabilityError(f"No test {test!r}: {', '.join(SIGNIFICANCE)}.{did_you_mean(test, SIGNIFICANCE)}")
    a, b = pair_index(len(values))
    gap = differences(values, a, b)
    if test == "tukey":
        return signed(gap.mean(axis=-1), tukey_hsd(values, level=1 - alpha).p, alpha=alpha)
    if test == "friedman":
        found = friedman(values)
        gap_of_ranks = found.ranks[b] - found.ranks[a]
        beyond = (np.abs(gap_of_ranks) > found.critical_difference(alpha=alpha)) & (found.p < alpha)
        return np.where(beyond, np.sign(gap_of_ranks), 0).astype(np.int64)
    return signed(gap.mean(axis=-1), run_test(test, gap)[1], alpha=alpha)


def _complete(values: Floats) -> Floats:
    """Return the queries on which every system has a score."""
    kept: Floats = values[:, ~np.isnan(values).any(axis=0)]
    if kept.shape[1] < 2:
        raise ReliabilityError(
            f"A comparison of all systems needs two queries that every system has a score on, got {kept.shape[1]}."
        )
    return kept
