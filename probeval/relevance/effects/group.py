"""Effects of document groups within queries, by any column of the metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from probeval.arrays import Ints
from probeval.features.external import groups_in_queries
from probeval.relevance.effects.effect import CampaignView, Columns, Effect

__all__ = ["Group"]

PREFIX = "group:"


@dataclass(frozen=True)
class Group(Effect):
    r"""The effect of a document group within a query: :math:`w_{q,\text{group}(d)}`.

    Parameters
    ----------
    column
        The column of the metadata that names the groups.
    """

    column: str
    scope = "query"
    typical = 0.6

    @property
    def name(self) -> str:  # type: ignore[override]
        """The column with a prefix."""
        return f"{PREFIX}{self.column}"

    @property
    def dims(self) -> tuple[str, ...]:  # type: ignore[override]
        """One axis: the number of the group within its query."""
        return (self.name,)

    def columns(self, view: CampaignView) -> Columns:
        """Return indicators of the pair's group, numbered within its query; zero for documents without a group."""
        pool = view.runs.pool
        number = groups_in_queries(view.problem, self.column)
        known = np.flatnonzero(number >= 0)
        first = np.full(len(pool.queries), np.iinfo(np.int64).max)
        np.minimum.at(first, pool.query[known], number[known])
        within: Ints = number[known] - first[pool.query[known]]
        shape = (len(pool), int(within.max(initial=0)) + 1)
        return Columns.of(csr_array((np.ones(len(known)), (known, within)), shape=shape))

    def coords(self, view: CampaignView) -> Mapping[str, Sequence[str]]:
        """Return the numbers of groups within the query."""
        return {self.name: [str(i) for i in range(self.columns(view).n_columns)]}
