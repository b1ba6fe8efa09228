"""Split-half validation of tests: conclusions on one half of the queries compared with those on the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from probeval.arrays import Floats
from probeval.display import Record
from probeval.errors import ReliabilityError, did_you_mean
from probeval.reliability.paired import SAMPLES, TESTS, describe, differences, pair_index, run_test
from probeval.reliability.resampling import RESAMPLED, Resamples

__all__ = ["BINS", "OUTCOMES", "SplitHalf", "split_half", "split_halves"]

OUTCOMES = ("success", "lack_of_power", "minor_conflict", "major_conflict")  # of a significant result
AT_ONCE = 4_000_000  # differences in memory
BINS = (0.0, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5)  # bins of p on the first half, right-closed


@dataclass(frozen=True, eq=False, repr=False)
class SplitHalf(Record):
    """The p-values and directions of all pairs on both halves of many splits.

    Parameters
    ----------
    test
        The name of the test.
    p, sign
        P-values and directions on the first and on the second half, shape (2, split, pair).
    """

    test: str
    p: Floats
    sign: Floats

    def rates(self, *, alpha: float = 0.05) -> dict[str, float]:
        """Return how often conclusions from the first half hold on the second.

        ``nonsignificance`` is the share of pairs that do not differ on the first half. Of those that do, ``success``
        counts the same winner, significantly; ``lack_of_power`` the same one, but not significantly (a tie too);
        ``minor_conflict`` the other one, not significantly; ``major_conflict`` the other one, significantly. These four
        sum to 1. ``conflict`` is both conflicts together.
        """
        counts = self.counts(alpha=alpha)
        found = counts["significant"]
        rates = {name: counts[name] / found if found else float("nan") for name in OUTCOMES}
        quiet = 1 - found / counts["comparisons"] if counts["comparisons"] else float("nan")
        return {"nonsignificance": quiet, **rates, "conflict": rates["minor_conflict"] + rates["major_conflict"]}

    def counts(self, *, alpha: float = 0.05) -> dict[str, int]:
        """Return the numbers behind :meth:`rates`: ``comparisons``, those ``significant``, and their outcomes."""
        first, second = self.p < alpha
        same = self.sign[0] * self.sign[1]
        outcomes = (
            first & (same > 0) & second,
            first & (same >= 0) & ~second,
            first & (same < 0) & ~second,
            first & (same < 0) & second,
        )
        counts = {name: int(np.count_nonzero(mask)) for name, mask in zip(OUTCOMES, outcomes, strict=True)}
        return {"comparisons": first.size, "significant": int(np.count_nonzero(first)), **counts}

    def stability(self) -> pd.DataFrame:
        """Return the RMS difference of the two p-values of the test, by bins of the first."""
        first, second = self.p
        rows = []
        for low, high in pairwise(BINS):
            inside = (first > low if low else first >= low) & (first <= high)
            error = float(np.sqrt(np.mean((first - second)[inside] ** 2))) if inside.any() else float("nan")
            rows.append({"low": low, "high": high, "pairs": int(inside.sum()), "rms": error})
        return pd.DataFrame(rows)


def split_half(
    values: ArrayLike,
    *,
    test: str = "t",
    splits: int = 300,
    samples: int = SAMPLES,
    rng: np.random.Generator | None = None,
) -> SplitHalf:
    """Split the queries in two at random, many times, and test every pair of systems on both halves.

    Parameters
    ----------
    values
        The score of every system on every query, shape (system, query).
    test
        One of :data:`~probeval.reliability.TESTS`.
    splits
        The number of splits.
    samples, rng
        The number of resamples of bootstrap and permutation, and the generator of these and of the splits (seed 0 by
        default).

    Examples
    --------
    >>> scores = np.random.default_rng(1).normal([[0.0], [0.1], [0.3]], 0.2, size=(3, 40))
    >>> rates = split_half(scores, splits=50).rates()
    >>> round(rates["success"] + rates["lack_of_power"] + rates["minor_conflict"] + rates["major_conflict"], 12)
    1.0
    """
    return split_halves(values, tests=(test,), splits=splits, samples=samples, rng=rng)[0]


def split_halves(
    values: ArrayLike,
    *,
    tests: Sequence[str] = tuple(TESTS),
    splits: int = 300,
    samples: int = SAMPLES,
    rng: np.random.Generator | None = None,
) -> tuple[SplitHalf, ...]:
    """Do several tests on the same halves; as :func:`split_half`, one result per test.

    Bootstrap and permutation take the same resamples on all halves.
    """
    scores = np.asarray(values, dtype=float)
    if scores.ndim != 2 or scores.shape[1] < 4:
        raise ReliabilityError(f"Halves of two queries or more are needed, got scores of shape {scores.shape}.")
    if splits < 1:
        raise ReliabilityError(f"At least one split is needed, got {splits}.")
    for test in tests:
        if test not in TESTS:
            raise ReliabilityError(f"No test {test!r}: {', '.join(TESTS)}.{did_you_mean(test, TESTS)}")
    rng = np.random.default_rng(0) if rng is None else rng
    half = scores.shape[1] // 2
    orders = np.array([rng.permutation(scores.shape[1])[: 2 * half] for _ in range(splits)])
    halves = orders.reshape(splits, 2, half)
    gap = differences(scores, *pair_index(len(scores)))
    whole = not np.isnan(scores).any()
    resamples = {
        test: Resamples.draw(test, half, samples=samples, rng=rng) for test in tests if test in RESAMPLED and whole
    }
    sign = np.empty((2, splits, len(gap)))
    p = {test: np.empty_like(sign) for test in tests}
    size = max(1, AT_ONCE // max(gap.shape[0] * 2 * half, 1))
    for start in range(0, splits, size):
        some = slice(start, start + size)
        parts = np.moveaxis(gap[:, halves[some]], 0, 2)  # (split, half, pair, query)
        sign[:, some] = np.sign(describe(parts)[1]).swapaxes(0, 1)
        for test in tests:
            if test not in RESAMPLED:
                p[test][:, some] = run_test(test, parts)[1].swapaxes(0, 1)
                continue
            for i, side in np.ndindex(parts.shape[:2]):
                p[test][side, start + i] = (
                    resamples[test].p(scores[:, halves[start + i, side]])
                    if whole
                    else run_test(test, parts[i, side], samples=samples, rng=rng)[1]
                )
    return tuple(SplitHalf(test, p[test], sign) for test in tests)
