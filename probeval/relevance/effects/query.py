"""Effects of queries: difficulty, and the slope of popularity."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from probeval.relevance.effects.effect import CampaignView, Columns, Effect

__all__ = ["PopularitySlope", "QueryDifficulty"]


class QueryDifficulty(Effect):
    """The difficulty of a query: :math:`u_q`."""

    name = "query"
    scope = "query"
    constant = True
    typical = 0.9

    def columns(self, view: CampaignView) -> Columns:
        """Return a constant column."""
        return Columns.of(csr_array(np.ones((len(view.runs.pool), 1))))


class PopularitySlope(Effect):
    r"""The slope of popularity within a query: :math:`t_q\,\text{pop}_d`."""

    name = "slope"
    scope = "query"
    typical = 0.3

    def columns(self, view: CampaignView) -> Columns:
        """Return the pairs' popularity."""
        return Columns.of(csr_array(view.popularity[:, None]))
