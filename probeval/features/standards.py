"""The constants of a campaign's design, which all of its queries share: units of terms, weights of systems.

They are taken from all queries, or from :data:`SAMPLE` of them, evenly spaced, if there are more: units need not be
exact, only the same everywhere, and so many queries determine them to within a hundredth. Parts of a campaign are then
designed apart, with the same numbers as together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from probeval.arrays import Floats, Ints, frozen
from probeval.features.outputs import SystemAgreement

__all__ = ["SAMPLE", "Standards", "TermUnits", "sample_positions"]

SAMPLE = 2048  # queries that the constants are taken from
SAME = 1e-6  # relative sd of a term below which it tells nothing


def sample_positions(n_queries: int) -> Ints:
    """Return the positions of the queries that constants are taken from, evenly spaced, in rising order.

    >>> len(sample_positions(100)), sample_positions(10**6)[:3].tolist()
    (100, [0, 488, 976])
    """
    if n_queries <= SAMPLE:
        return np.arange(n_queries)
    return np.arange(SAMPLE) * n_queries // SAMPLE


@dataclass(frozen=True, eq=False)
class TermUnits:
    """Centres and units of terms, each term without what those before it tell.

    Parameters
    ----------
    centre
        The mean of each term, shape (term,).
    taken
        The coefficients of the earlier standardised terms that are subtracted from each, shape (term, term).
    size
        The standard deviation of the remainder, shape (term,); infinite for a term that tells no pair from another.
    """

    centre: Floats
    taken: Floats
    size: Floats

    @classmethod
    def of(cls, values: Floats) -> TermUnits:
        """Return the units that give these values, shape (pair, term), mean 0 and standard deviation 1.

        >>> units = TermUnits.of(np.array([[1.0, 1.0, 5.0], [2.0, 2.0, 5.0], [3.0, 4.0, 5.0]]))
        >>> units.standardised(np.array([[1.0, 1.0, 5.0], [3.0, 4.0, 5.0]])).round(3)
        array([[-1.225,  0.707,  0.   ],
               [ 1.225,  0.707,  0.   ]])
        """
        n = values.shape[1]
        centre, taken, size = np.zeros(n), np.zeros((n, n)), np.full(n, np.inf)
        known = ~np.isnan(values)
        out = np.zeros(values.shape)
        for i, column in enumerate(values.T):
            if not known[:, i].any():
                continue
            centre[i] = column[known[:, i]].mean()
            x = np.where(known[:, i], column - centre[i], 0.0)
            first = np.sqrt((x**2).mean())
            for j, before in enumerate(out.T[:i]):
                taken[i, j] = (x @ before) / max(before @ before, 1.0)
                x = x - before * taken[i, j]
            left = np.sqrt((x**2).mean())
            if left > SAME * max(first, SAME):
                size[i] = left
                out[:, i] = x / left
        return cls(frozen(centre), frozen(taken), frozen(size))

    @classmethod
    def given(cls, standard: Sequence[tuple[float, float]]) -> TermUnits:
        """Return units with these centres and spreads, whatever the campaign."""
        centre, spread = np.array(standard).T
        return cls(centre, np.zeros((len(centre), len(centre))), spread)

    def standardised(self, values: Floats) -> Floats:
        """Return terms in these units, shape (pair, term); missing values are 0, the average."""
        out = np.zeros(values.shape)
        known = ~np.isnan(values)
        for i, column in enumerate(values.T):
            x = np.where(known[:, i], column - self.centre[i], 0.0)
            for j in range(i):
                if self.taken[i, j]:
                    x = x - out[:, j] * self.taken[i, j]
            out[:, i] = x / self.size[i]
        return out


@dataclass(frozen=True, eq=False)
class Standards:
    """The constants of a campaign's design.

    Parameters
    ----------
    agreements
        What features take from all queries, by the depth of the lists.
    popularity
        The mean log share of systems that retrieved a pair.
    overlap
        The root of the systems' covariance; None if systems are independent.
    selectivity
        The log of the longest mean length of the systems' lists over that of each system, shape (system,).
    units
        The units of the terms.
    """

    agreements: Mapping[int, SystemAgreement]
    popularity: float
    overlap: Floats | None
    selectivity: Floats
    units: TermUnits
