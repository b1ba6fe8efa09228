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

__all__ = ["MeasuredPrior", "SeenStack"]

JITTER = 1e-9  # relative, on the diagonal of a covariance before its root is taken


class SeenStack(NamedTuple):
    """Queries with the same number of pairs: their pairs (query, pair), and :math:`K'` (query, pair, pair)."""

    pairs: Ints
    covariance: Floats


@dataclass(frozen=True, eq=False)
class MeasuredPrior:
    """The prior given labels, at one setting of their worth.

    Parameters
    ----------
    weight
        The probability of the setting, labels alone considered.
    mean, precision
        Of the campaign's parameters, shapes (parameter,) and (parameter, parameter).
    offset, response
        :math:`m` and :math:`B`, shapes (pair,) and (pair, column); columns as in the layout of the parameters.
    stacks
        :math:`K'` of all queries.
    queries
        The query of each row of each stack.
    """

    weight: float
    mean: Floats
    precision: Floats
    offset: Floats
    response: Floats
    stacks: Sequence[SeenStack]
    queries: Sequence[Ints]

    @cached_property
    def _where(self) -> dict[int, tuple[int, int]]:
        return {int(q): (i, j) for i, stack in enumerate(self.queries) for j, q in enumerate(stack)}

    @cached_property
    def _roots(self) -> list[Floats]:
        out = []
        for stack in self.stacks:
            size = stack.covariance.shape[1]
            ridge = JITTER * np.trace(stack.covariance, axis1=1, axis2=2)[:, None, None] * np.eye(size)
            out.append(np.linalg.cholesky(stack.covariance + ridge))
        return out

    def covariance(self, query: int) -> Floats:
        """Return :math:`K'` of one query, shape (pair, pair)."""
        i, j = self._where[query]
        return np.asarray(self.stacks[i].covariance[j])

    def root(self, query: int) -> Floats:
        """Return the Cholesky factor of :math:`K'` of one query."""
        i, j = self._where[query]
        return np.asarray(self._roots[i][j])

    @cached_property
    def variance(self) -> Floats:
        """The variance of each pair's :math:`x'`, shape (pair,)."""
        out = np.empty(len(self.offset))
        for stack in self.stacks:
            out[stack.pairs] = np.diagonal(stack.covariance, axis1=1, axis2=2)
        return out

    def times(self, block: QueryBlock, columns: Floats) -> Floats:
        """Return :math:`K'` of a block's queries times columns of its pairs, shape (pair, column)."""
        out, first = np.empty_like(columns), 0
        for query in range(block.queries.start, block.queries.stop):
            k = self.covariance(query) if query in self._where else np.zeros((0, 0))
            out[first : first + len(k)] = k @ columns[first : first + len(k)]
            first += len(k)
        return out
