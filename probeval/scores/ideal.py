"""What the ideal list and the recall base of a measure are taken from.

See docs/theory/scores.md#ideal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from probeval.arrays import Bools
from probeval.data.runs import Runs
from probeval.data.scale import Scale
from probeval.metrics import Metric
from probeval.relevance.distribution import RelevanceDistribution
from probeval.results import HIDDEN

__all__ = ["Ideal", "retrieved_pairs"]

FEW = 10  # runs: below this, the pool holds clearly fewer relevant documents than a campaign finds


@dataclass(frozen=True)
class Ideal:
    """What the ideal list of each query, or its number of relevant documents, is taken from.

    Examples
    --------
    >>> print(Ideal(pairs=722, retrieved=722, systems=2))
    ideal: 722 pairs of these 2 runs
    >>> print(Ideal(pairs=3210, retrieved=722, systems=2, judged=40))
    ideal: 3,210 pairs of the pool, 722 of these 2 runs; 40 judged pairs outside it
    """

    pairs: Annotated[int, "The number of pairs in the pool."]
    retrieved: Annotated[int, "Of these, the number that the evaluated systems retrieved."]
    systems: Annotated[int, HIDDEN]  # the number of these systems
    judged: Annotated[int, "The number of judged pairs outside the pool."] = 0
    outside: Annotated[
        float | None,
        "The typical number of relevant documents per query outside all of these, if it was estimated, else null.",
    ] = None
    goes_on: Annotated[bool, HIDDEN] = False  # whether the measure counts documents that this pool does not reach

    @classmethod
    def of(cls, runs: Runs, relevance: RelevanceDistribution, metric: Metric) -> Ideal | None:
        """Return what the measure takes its ideal list from; None for a measure that has none."""
        if not metric.needs_ideal(relevance.scale):
            return None
        return cls(
            len(relevance.pool),
            int(retrieved_pairs(runs).sum()),
            len(runs.systems),
            int(relevance.beyond[:, 0].sum()),
            None if relevance.outside is None else relevance.typically_outside(),
            metric.counts_all(relevance.scale) and not bool(relevance.certain.all()),
        )

    def __str__(self) -> str:
        runs = f"these {self.systems} runs" if self.systems > 1 else "this run"
        whole = self.retrieved == self.pairs
        text = f"ideal: {self.pairs:,} pairs of " + (runs if whole else f"the pool, {self.retrieved:,} of {runs}")
        if self.judged:
            text += f"; {self.judged:,} judged pairs outside {'them' if whole and self.systems > 1 else 'it'}"
        if self.outside is not None:
            text += f"; about {self.outside:.0f} more relevant documents per query, estimated"
        return text

    @classmethod
    def of_pool(cls, runs: Runs, metric: Metric, scale: Scale) -> Ideal | None:
        """Return the ideal list from the pool of these runs alone; None for a measure that has none."""
        n = len(runs.pool)
        return cls(n, n, len(runs.systems)) if metric.needs_ideal(scale) else None

    @property
    def is_narrow(self) -> bool:
        """Whether relevant documents outside are likely and not counted, so that scores are too high.

        They are where the pool is of few runs alone, and for measures that count documents which it does not reach.
        """
        few = self.systems < FEW and self.pairs == self.retrieved and not self.judged
        return self.outside is None and (few or self.goes_on)

    @property
    def fact(self) -> str:
        """What the ideal list is taken from, as a sentence."""
        return f"I{str(self)[1:]}."

    @property
    def sentence(self) -> str:
        """What the ideal list is taken from, and what to do if relevant documents outside are likely."""
        more = "Relevant documents outside would lower the scores: add runs (--pool), or estimate them (--outside)."
        return f"{self.fact} {more}" if self.is_narrow else self.fact


def retrieved_pairs(runs: Runs) -> Bools:
    """Return the pairs of the pool that these runs retrieved, shape (pair,)."""
    out = np.zeros(len(runs.pool), dtype=bool)
    out[runs.pairs[runs.retrieved]] = True
    return out
