"""Votes as integers: the input of every method of aggregation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from probeval.arrays import Floats, Ints

__all__ = ["VoteArrays"]


@dataclass(frozen=True, eq=False)
class VoteArrays:
    """Votes as integers.

    Parameters
    ----------
    pair, worker, level
        Of each vote, shape (vote,).
    query
        The query of each pair, shape (pair,).
    gold
        The level of each pair's gold grade, negative without one, shape (pair,).
    n_levels, n_workers, n_queries
        The numbers of levels, workers and queries.
    """

    pair: Ints
    worker: Ints
    level: Ints
    query: Ints
    gold: Ints
    n_levels: int
    n_workers: int
    n_queries: int

    @cached_property
    def by_worker(self) -> csr_array:
        """Which votes there are: one row per worker and level, one column per pair."""
        row = self.worker * self.n_levels + self.level
        size = (self.n_workers * self.n_levels, len(self.query))
        return csr_array((np.ones(len(row)), (row, self.pair)), shape=size)

    @cached_property
    def by_pair(self) -> csr_array:
        """The same, transposed."""
        return csr_array(self.by_worker.T)

    @cached_property
    def shares(self) -> Floats:
        """The shares of the levels among votes, none of them 0, shape (level,)."""
        counts = np.bincount(self.level, minlength=self.n_levels) + 0.5
        return np.asarray(counts / counts.sum())
