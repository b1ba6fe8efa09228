"""Models that depend only on the scale: uniform, and past shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from probeval.arrays import Codes, Floats
from probeval.data.collection import Collection
from probeval.data.problem import Problem
from probeval.data.scale import Scale
from probeval.display import Record
from probeval.errors import ModelError
from probeval.relevance.models.base import Finding

__all__ = ["Empirical", "Uniform"]


@dataclass(frozen=True)
class Uniform:
    """All grades equally likely: on the fine scale of 101 grades, mean 50 and variance 850."""

    kind = "uniform"

    def levels(self, scale: Scale) -> Codes:
        """Return every grade of the scale."""
        return np.arange(len(scale), dtype=np.int16)

    def probabilities(self, problem: Problem) -> Floats:
        """Return the same probabilities for every pair."""
        return np.full((len(problem.pool), len(problem.scale)), 1 / len(problem.scale))

    def check(self) -> list[Finding]:
        """Return no problems: there is nothing to fit."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as plain data: none."""
        return {"kind": self.kind}


@dataclass(frozen=True, repr=False)
class Empirical(Record):
    """The shares of the levels among past judgments, by the number of levels of the scale.

    Parameters
    ----------
    shares
        For each number of levels, the share of each.

    Examples
    --------
    >>> Empirical({3: (0.3744, 0.3554, 0.2703)}).shares[3]
    (0.3744, 0.3554, 0.2703)
    """

    shares: Mapping[int, tuple[float, ...]]
    kind = "empirical"

    @classmethod
    def fit(cls, collections: Sequence[Collection], *, depth: int) -> Empirical:
        """Fit the shares among judged pairs in the top ``depth`` of each campaign, of equal weight per scale."""
        found: dict[int, list[Floats]] = {}
        for collection in collections:
            if collection.judgments is None:
                raise ModelError(f"{collection.name}: there are no judgments to learn from.")
            scale = collection.judgments.scale()
            level = scale.level_of(collection.problem(depth=depth, scale=scale).grades.codes)
            count = np.bincount(level[level >= 0], minlength=len(scale.levels)) + 0.5
            found.setdefault(len(count), []).append(count / count.sum())
        return cls({n: tuple(float(x) for x in np.mean(shares, axis=0)) for n, shares in sorted(found.items())})

    def levels(self, scale: Scale) -> Codes:
        """Return the levels of the scale."""
        return scale.levels

    def probabilities(self, problem: Problem) -> Floats:
        """Return the same probabilities for every pair."""
        row = self.share(len(problem.scale.levels))
        return np.broadcast_to(row, (len(problem.pool), len(row)))

    def share(self, n_levels: int) -> Floats:
        """Return the share of each level; for other numbers of levels, the mean share of the lowest, the rest even."""
        if n_levels in self.shares:
            known = np.asarray(self.shares[n_levels])
            return np.asarray(known / known.sum())
        lowest = float(np.mean([share[0] / sum(share) for share in self.shares.values()]))
        return np.array([lowest] + [(1 - lowest) / (n_levels - 1)] * (n_levels - 1))

    def check(self) -> list[Finding]:
        """Return levels without training data."""
        return [
            Finding(
                f"Scales of {n} levels: level {i} was hardly ever seen.", "Its share is a guess of half a judgment."
            )
            for n, share in self.shares.items()
            for i, p in enumerate(share)
            if p < 1e-3
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as plain data."""
        return {"kind": self.kind, "shares": {str(n): list(share) for n, share in self.shares.items()}}
