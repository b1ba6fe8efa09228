r"""Five tests of the difference between two systems on the population of queries, for all pairs of systems at once.

Every test takes differences, shape (.., pair, query), and returns a statistic and a p-value per pair, two-sided or
one-tailed (:data:`ALTERNATIVES`). A query on which a system has no score (NaN) is left out of its pairs. Differences
below :data:`~probeval.ties.TIE` are zero. Two systems without any difference have p = 1; with too few queries for a
test, p is NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import bdtr, ndtr, stdtr

from probeval.arrays import Bools, Floats, Ints
from probeval.errors import ReliabilityError, did_you_mean
from probeval.reliability.correlation import rank
from probeval.ties import TIE

__all__ = [
    "ALTERNATIVES",
    "SAMPLES",
    "TESTS",
    "bootstrap_test",
    "differences",
    "pair_index",
    "permutation_test",
    "run_test",
    "sign_test",
    "t_test",
    "wilcoxon_test",
]

TESTS = {
    "t": "Student's paired t",
    "wilcoxon": "Wilcoxon's signed ranks",
    "sign": "the sign test",
    "bootstrap": "bootstrap, shifted to no difference",
    "permutation": "random swaps of the two systems' scores",
}
ALTERNATIVES = {
    "two-sided": "the difference is not 0",
    "greater": "the first is better: p is the upper tail",
    "less": "the first is worse: p is the lower tail",
}
SAMPLES = 100_000  # resamples of bootstrap and permutation
EXACT = 50  # most queries for Wilcoxon's exact distribution, without ties
BATCH = 8_000_000  # most resampled sums in memory at once
Tested = tuple[Floats, Floats]


def pair_index(n: int) -> tuple[Ints, Ints]:
    """Return the pairs of n systems, each once, the first before the second: the pair axis of this subpackage.

    >>> pair_index(3)
    (array([0, 0, 1]), array([1, 2, 2]))
    """
    a, b = np.triu_indices(n, k=1)
    return a, b


def differences(values: Floats, a: Ints, b: Ints) -> Floats:
    """Return the score of ``a`` minus that of ``b`` on each query, ties exactly 0, shape (.., pair, query).

    ``values`` has shape (.., system, query).
    """
    gap = values[..., a, :] - values[..., b, :]
    gap[np.abs(gap) < TIE] = 0.0
    return np.asarray(gap)


def t_test(difference: Floats, *, alternative: str = "two-sided") -> Tested:
    r"""Student's paired t: :math:`t = \bar d / (s_d / \sqrt n)`, with n - 1 degrees of freedom.

    >>> d = np.array([[-4.13, -12.32, 1.49, 0.93, -0.89, -1.40, -4.98, 1.49, -5.61]])
    >>> round(float(t_test(d)[1][0]), 4)
    0.0959
    """
    n, mean, sd = describe(difference)
    error = sd / np.sqrt(np.maximum(n, 1))
    size = np.divide(mean, error, out=np.copysign(np.inf, mean), where=error > TIE)
    t = np.where((n > 1) & (mean != 0), size, np.where(n > 1, 0.0, np.nan))
    freedom = np.maximum(n - 1, 1)
    return t, _tailed(stdtr(freedom, -t), stdtr(freedom, t), alternative, _moves(difference))


def _moves(difference: Floats) -> Bools:
    """Return whether there is any difference, shape (pair,)."""
    return np.asarray((np.nan_to_num(difference) != 0).any(axis=-1))


def _tailed(upper: Floats, lower: Floats, alternative: str, moves: Bools) -> Floats:
    """Return the p-values of the alternative from both tails; 1 where nothing differs."""
    if alternative not in ALTERNATIVES:
        raise ReliabilityError(
            f"No alternative {alternative!r}: {', '.join(ALTERNATIVES)}.{did_you_mean(alternative, ALTERNATIVES)}"
        )
    tails = {"greater": upper, "less": lower, "two-sided": np.minimum(2 * np.minimum(upper, lower), 1.0)}
    return np.where(moves | np.isnan(tails[alternative]), tails[alternative], 1.0)


def wilcoxon_test(difference: Floats, *, alternative: str = "two-sided") -> Tested:
    r"""Wilcoxon's signed ranks, zeros left out, tied differences sharing their ranks.

    With :math:`W` the sum of the ranks of positive differences among n that are not 0,

    .. math:: z = \frac{W - n(n+1)/4 \mp 1/2}{\sqrt{n(n+1)(2n+1)/24 - \sum (t^3 - t)/48}},

    the statistic, with the correction for continuity. Without zeros and ties, p is exact for n up to 50.
    """
    there = (~np.isnan(difference)).sum(axis=-1)
    difference = np.nan_to_num(difference)
    size = np.abs(difference)
    counts = size > 0
    n = counts.sum(axis=-1)
    beyond = np.where(counts, size, size.max(initial=0.0) + 1)  # zeros come after all others
    mean, least = rank(beyond, ties="mean", descending=False), rank(beyond, ties="min", descending=False)
    tied = np.where(counts, 2 * (mean - least) + 1, 1.0)  # the number of values that share each rank
    w = np.where(difference > 0, mean, 0.0).sum(axis=-1)
    off = w - n * (n + 1) / 4
    variance = n * (n + 1) * (2 * n + 1) / 24 - (tied**2 - 1).sum(axis=-1) / 48
    error = np.sqrt(np.where(variance > 0, variance, 1.0))
    z = np.where(variance > 0, (off - np.sign(off) / 2) / error, 0.0)
    upper, lower = ndtr(-(off - 0.5) / error), ndtr((off + 0.5) / error)
    exact = (n == there) & (n <= EXACT) & (n > 0) & (tied == 1).all(axis=-1)
    for count in np.unique(n[exact]):
        at = exact & (n == count)
        below, most = np.cumsum(_signed_ranks(int(count))), int(count * (count + 1) // 2)
        low = w[at].astype(np.int64)
        lower[at], upper[at] = below[low], below[most - low]
    return z, _tailed(upper, lower, alternative, n > 0)


def _signed_ranks(n: int) -> Floats:
    """Return P(W = w) for w = 0, 1, .. n(n+1)/2 with equally likely signs."""
    chance = np.ones(1)
    for i in range(1, n + 1):
        chance = (np.append(chance, np.zeros(i)) + np.append(np.zeros(i), chance)) / 2
    return chance


def sign_test(difference: Floats, *, alternative: str = "two-sided") -> Tested:
    r"""The sign test: of n differences that are not 0, k are positive; k is binomial with chance 1/2."""
    positive, negative = (difference > 0).sum(axis=-1), (difference < 0).sum(axis=-1)
    upper, lower = (bdtr(tail.astype(float), positive + negative, 0.5) for tail in (negative, positive))
    return positive.astype(float), _tailed(upper, lower, alternative, positive + negative > 0)


def bootstrap_test(
    difference: Floats, *, alternative: str = "two-sided", samples: int = SAMPLES, rng: np.random.Generator
) -> Tested:
    r"""The bootstrap test: resample queries, and count means as far from the observed one as that is from 0.

    .. math:: p = \frac{1 + |\{i : |\bar d^*_i - \bar d| \ge |\bar d|\}|}{1 + T}
    """
    n, mean, _ = describe(difference)
    there = ~np.isnan(difference)
    centred = np.where(there, difference - mean[:, None], 0.0)
    q = difference.shape[-1]

    def draw(size: int) -> Floats:
        return rng.multinomial(q, np.full(q, 1 / q), size=size).astype(float)

    return mean, _beyond(draw, centred, mean, samples, n, None if there.all() else there, alternative)


def permutation_test(
    difference: Floats, *, alternative: str = "two-sided", samples: int = SAMPLES, rng: np.random.Generator
) -> Tested:
    r"""The permutation test: swap the two systems' scores on random queries, which flips signs of differences.

    .. math:: p = \frac{1 + |\{i : |\sum_q \pm d_q| \ge |\sum_q d_q|\}|}{1 + T}
    """
    n, mean, _ = describe(difference)
    q = difference.shape[-1]

    def draw(size: int) -> Floats:
        return np.asarray(rng.integers(0, 2, size=(size, q)) * 2.0 - 1.0)

    known = np.where(np.isnan(difference), 0.0, difference)
    return mean, _beyond(draw, known, mean, samples, n, None, alternative)


def _beyond(
    draw: Callable[[int], Floats],
    terms: Floats,
    mean: Floats,
    samples: int,
    n: Floats,
    there: Bools | None,
    alternative: str,
) -> Floats:
    """Return p-values from resampled sums, one matrix product per batch: the share of means as far as ``mean``.

    One-tailed, only means on the side of the alternative count. ``there`` marks the existing terms, if a resample may
    have more or fewer of them than n.
    """
    _check(terms, samples)
    by_query, marks = np.ascontiguousarray(terms.T), None if there is None else there.T.astype(float)
    reached = np.zeros(len(terms), dtype=np.int64)
    side = -1.0 if alternative == "less" else 1.0
    size = np.abs(mean) if alternative == "two-sided" else side * mean
    for batch in _batches(samples, len(terms)):
        weights = draw(batch)
        total = weights @ by_query
        count = n if marks is None else weights @ marks
        far = np.abs(total, out=total) if alternative == "two-sided" else side * total
        reached += np.count_nonzero(far >= size * count - TIE * n, axis=0)
    p = np.where(n > 0, (reached + 1) / (samples + 1), np.nan)
    return _tailed(p, p, "greater" if alternative in ALTERNATIVES else alternative, _moves(terms) | (mean != 0))


def _batches(samples: int, pairs: int) -> Iterator[int]:
    size = max(1, min(samples, BATCH // max(pairs, 1)))
    for start in range(0, samples, size):
        yield min(size, samples - start)


def run_test(
    test: str,
    difference: Floats,
    *,
    alternative: str = "two-sided",
    samples: int = SAMPLES,
    rng: np.random.Generator | None = None,
) -> Tested:
    """Return the statistic and the p-value of every pair by one of :data:`TESTS`; seed 0 without ``rng``.

    With an ``alternative`` of ``"greater"`` or ``"less"`` the test is one-tailed.

    >>> d = np.array([[0.1, 0.3, 0.2, -0.1, 0.2]])
    >>> [round(float(run_test("t", d, alternative=name)[1][0]), 4) for name in ALTERNATIVES]
    [0.1079, 0.054, 0.946]
    """
    if test == "t":
        return t_test(difference, alternative=alternative)
    if test == "wilcoxon":
        return wilcoxon_test(difference, alternative=alternative)
    if test == "sign":
        return sign_test(difference, alternative=alternative)
    rng = np.random.default_rng(0) if rng is None else rng
    if test == "bootstrap":
        return bootstrap_test(difference, alternative=alternative, samples=samples, rng=rng)
    if test == "permutation":
        return permutation_test(difference, alternative=alternative, samples=samples, rng=rng)
    raise ReliabilityError(f"No test {test!r}: {', '.join(TESTS)}.{did_you_mean(test, TESTS)}")


def describe(difference: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the number of differences, their mean (a tie is 0) and their standard deviation, shapes (.., pair)."""
    there = ~np.isnan(difference)
    n = there.sum(axis=-1).astype(float)
    mean = np.divide(np.where(there, difference, 0.0).sum(axis=-1), n, out=np.full(n.shape, np.nan), where=n > 0)
    off = np.where(there, difference - mean[..., None], 0.0)
    variance = np.divide((off**2).sum(axis=-1), n - 1, out=np.full(n.shape, np.nan), where=n > 1)
    return n, np.where(np.abs(mean) < TIE, 0.0, mean), np.sqrt(variance)


def _check(terms: Floats, samples: int) -> None:
    if terms.ndim != 2:
        raise ReliabilityError(f"A resampling test takes differences by pair and query, got shape {terms.shape}.")
    if samples < 1:
        raise ReliabilityError(f"A resampling test needs at least one sample, got {samples}.")
