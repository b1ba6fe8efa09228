r"""The prior of a campaign's parameters and of its queries' relevance once labels are seen.

Without labels, the campaign's parameters :math:`g` have independent priors and a query's effects the mean zero. Labels
(:mod:`probeval.relevance.observers`) leave a normal prior as well, with a full precision matrix for :math:`g`, and for
each query a seen part of relevance :math:`x = m + Bg + x'` with :math:`x' \sim N(0, K')`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from probeval.arrays import Floats, Ints
from probeval.data.pool import QueryBlock
from probeval.relevance.covariances import Covariances

__all__ = ["MeasuredPrior", "SeenStack"]


class SeenStack(NamedTuple):
    """Queries with the same number of pairs: their pairs (query, pair), and :math:`K'`."""

    pairs: Ints
    covariances: Covariances


@dataclass(frozen=True, eq=False)
class MeasuredPrior:
    """The prior given labels, at one setting of their worth.

    Parameters
    ----------
    weight
        The probability of the setting, labels alone considered.
    mean, precision
        Of the campaign's parameters, shapes (parameter,) and (parameter, parameter).
    offset
        :math:`m`, shape (pair,).
    basis, directions
        :math:`B`, the response of relevance to the campaign's parameters, as the product of a few columns per pair and
        the direction of each in the parameters that are not cutpoints, shapes (pair, column) and (column, parameter).
    stacks
        :math:`K'` of all queries.
    queries
        The query of each row of each stack.
    """

    weight: float
    mean: Floats
    precision: Floats
    offset: Floats
    basis: Floats
    directions: Floats
    stacks: Sequence[SeenStack]
    queries: Sequence[Ints]

    @cached_property
    def _where(self) -> dict[int, tuple[int, int]]:
        return {int(q): (i, j) for i, stack in enumerate(self.queries) for j, q in enumerate(stack)}

    def response(self, pairs: Ints | slice = slice(None)) -> Floats:
        """Return :math:`B` of some pairs, shape (pair, parameter)."""
        return np.asarray(self.basis[pairs] @ self.directions)

    def covariance(self, query: int, rows: Ints | None = None, columns: Ints | None = None) -> Floats:
        """Return :math:`K'` of one query, or some of its rows and columns, as positions among the query's pairs."""
        i, j = self._where[query]
        return self.stacks[i].covariances.matrix(j, rows, columns)

    def root_times(self, block: QueryBlock, values: Floats) -> Floats:
        """Return the Cholesky factors of :math:`K'` of a block's queries times columns of its pairs."""
        out = np.empty_like(values)
        for stack, queries in zip(self.stacks, self.queries, strict=True):
            mine = np.flatnonzero((block.queries.start <= queries) & (queries < block.queries.stop))
            if len(mine):
                at = stack.pairs[mine] - block.pairs.start
                out[at] = stack.covariances.root_times(mine, values[at])
        return out

    @cached_property
    def variance(self) -> Floats:
        """The variance of each pair's :math:`x'`, shape (pair,)."""
        out = np.empty(len(self.offset))
        for stack in self.stacks:
            out[stack.pairs] = stack.covariances.variances
        return out

    def times(self, block: QueryBlock, columns: Floats) -> Floats:
        """Return :math:`K'` of a block's queries times columns of its pairs, shape (pair, column)."""
        out = np.empty_like(columns)
        for stack, queries in zip(self.stacks, self.queries, strict=True):
            mine = np.flatnonzero((block.queries.start <= queries) & (queries < block.queries.stop))
            if len(mine):
                at = stack.pairs[mine] - block.pairs.start
                out[at] = stack.covariances.take(mine).times(columns[at])
        return out
