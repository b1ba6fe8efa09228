r"""Bootstrap and permutation tests of all pairs of systems on many sets of queries, by the sums of systems.

The resampled difference of two systems is the difference of their resampled sums, :math:`\sum_q w_q a_q - \sum_q w_q
b_q`, so one matrix product of systems serves all pairs, and the same resamples serve all halves of a study. Much
faster than :func:`~probeval.reliability.bootstrap_test` and :func:`~probeval.reliability.permutation_test` on the
differences of pairs, for scores without gaps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from probeval.arrays import Floats
from probeval.display import Record
from probeval.errors import ReliabilityError
from probeval.reliability.paired import differences, pair_index
from probeval.ties import TIE

__all__ = ["RESAMPLED", "Resamples"]

AT_ONCE = 2_000_000  # resampled sums in memory


def _drawn(queries: int, samples: int, rng: np.random.Generator) -> Floats:
    """How often each query is drawn, with replacement, shape (query, sample)."""
    drawn = rng.integers(0, queries, size=(samples, queries)) + queries * np.arange(samples)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=samples * queries)
    return np.ascontiguousarray(counts.reshape(samples, queries).T, dtype=float)


def _signs(queries: int, samples: int, rng: np.random.Generator) -> Floats:
    """Whether the two scores on each query are swapped: 1 or -1, shape (query, sample)."""
    return np.asarray(rng.integers(0, 2, size=(queries, samples)) * 2.0 - 1.0)


RESAMPLED: dict[str, Callable[[int, int, np.random.Generator], Floats]] = {"bootstrap": _drawn, "permutation": _signs}


@dataclass(frozen=True, eq=False, repr=False)
class Resamples(Record):
    """The resamples of a test for a number of queries.

    Parameters
    ----------
    test
        ``bootstrap`` or ``permutation``.
    weights
        The weight of each query in each resample, shape (query, sample).

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> scores = rng.normal([[0.0], [0.1], [0.9]], 0.5, size=(3, 20))
    >>> Resamples.draw("permutation", 20, samples=999, rng=rng).p(scores).round(2)
    array([0.71, 0.  , 0.  ])
    """

    test: str
    weights: Floats

    @classmethod
    def draw(cls, test: str, queries: int, *, samples: int, rng: np.random.Generator) -> Resamples:
        """Draw the resamples of a test."""
        if samples < 1:
            raise ReliabilityError(f"A resampling test needs at least one sample, got {samples}.")
        return cls(test, RESAMPLED[test](queries, samples, rng))

    def p(self, values: Floats) -> Floats:
        r"""Return the p-value of every pair of systems, two-sided, shape (pair,).

        .. math:: p = \frac{1 + |\{i : |S^*_i - c| \ge |S|\}|}{1 + T}

        with :math:`S` the sum of differences, :math:`S^*` its resampled value, and :math:`c = S` for bootstrap,
        which is shifted to no difference, and 0 for permutation. Two systems without any difference have p = 1.
        ``values`` has shape (system, query).
        """
        systems, (n, samples) = len(values), self.weights.shape
        a, b = pair_index(systems)
        gap = differences(values, a, b)
        far = np.abs(gap.sum(axis=1))[:, None] - TIE * n
        shifted = values - values.mean(axis=1, keepdims=True) if self.test == "bootstrap" else values
        reached = np.zeros(len(a), dtype=np.int64)
        starts = np.searchsorted(a, np.arange(systems))  # of the pairs of each system with the later ones
        size = min(samples, max(1, AT_ONCE // systems))
        room, marks = np.empty((systems, size)), np.empty((systems, size), dtype=bool)
        for block in range(0, samples, size):
            sums = shifted @ self.weights[:, block : block + size]
            for i in range(systems - 1):
                pairs, shape = slice(starts[i], starts[i + 1]), np.s_[i + 1 :, : sums.shape[1]]
                off = np.subtract(sums[i], sums[i + 1 :], out=room[shape])
                beyond = np.greater_equal(np.abs(off, out=off), far[pairs], out=marks[shape])
                reached[pairs] += [np.count_nonzero(row) for row in beyond]
        return np.where((gap != 0).any(axis=1), (reached + 1) / (samples + 1), 1.0)
