"""Queries: how hard each is, and how much it follows popularity."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from probeval.relevance.effects.effect import CampaignView, Columns, Effect

__all__ = ["PopularitySlope", "QueryDifficulty"]


class QueryDifficulty(Effect):
    """A query can be hard throughout: :math:`u_q`."""

    name = "query"
    scope = "query"
    constant = True
    typical = 0.9

    def columns(self, view: CampaignView) -> Columns:
        """The same for every pair of the query."""
        return Columns.of(csr_array(np.ones((len(view.runs.pool), 1))))


class PopularitySlope(Effect):
    r"""A query can follow popularity more or less than others: :math:`t_q\,\text{pop}_d`."""

    name = "slope"
    scope = "query"
    typical = 0.3

    def columns(self, view: CampaignView) -> Columns:
        """The pair's popularity."""
        return Columns.of(csr_array(view.popularity[:, None]))
