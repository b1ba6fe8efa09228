"""Split-half validation of tests: conclusions on one half of the queries compared with those on the other."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from probeval.arrays import Floats
from probeval.display import Brief
from probeval.errors import ReliabilityError
from probeval.reliability.paired import SAMPLES, describe, differences, pair_index, run_test

__all__ = ["BINS", "SplitHalf", "split_half"]

BINS = (0.0, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5)  # bins of p on the first half, right-closed


@dataclass(frozen=True, eq=False, repr=False)
class SplitHalf(Brief):
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
        first, second = self.p < alpha
        same = self.sign[0] * self.sign[1]
        found = max(int(first.sum()), 1)
        rates = {
            "success": (first & (same > 0) & second).sum() / found,
            "lack_of_power": (first & (same >= 0) & ~second).sum() / found,
            "minor_conflict": (first & (same < 0) & ~second).sum() / found,
            "major_conflict": (first & (same < 0) & second).sum() / found,
        }
        rates = rates if first.any() else dict.fromkeys(rates, float("nan"))
        conflict = rates["minor_conflict"] + rates["major_conflict"]
        out = {"nonsignificance": 1 - first.mean() if first.size else float("nan"), **rates, "conflict": conflict}
        return {name: float(value) for name, value in out.items()}

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
    scores = np.asarray(values, dtype=float)
    if scores.ndim != 2 or scores.shape[1] < 4:
        raise ReliabilityError(f"Halves of two queries or more are needed, got scores of shape {scores.shape}.")
    if splits < 1:
        raise ReliabilityError(f"At least one split is needed, got {splits}.")
    rng = np.random.default_rng(0) if rng is None else rng
    gap = differences(scores, *pair_index(len(scores)))
    half = scores.shape[1] // 2
    p, sign = np.empty((2, splits, len(gap))), np.empty((2, splits, len(gap)))
    for i in range(splits):
        order = rng.permutation(scores.shape[1])
        for side, queries in enumerate((order[:half], order[half : 2 * half])):
            part = gap[:, queries]
            p[side, i] = run_test(test, part, samples=samples, rng=rng)[1]
            sign[side, i] = np.sign(describe(part)[1])
    return SplitHalf(test, p, sign)
