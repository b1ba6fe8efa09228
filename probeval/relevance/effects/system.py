r"""Effects of systems: their quality beyond popularity, over all queries and on single ones.

The :math:`n_d` systems that retrieved a document count by the root of their number: a good system stays informative
about a document that many others retrieved. Effects are zero-sum over systems: their common part is a function of
popularity. Systems that retrieve the same documents have similar effects: they share what is good or bad about them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from probeval.relevance.effects.effect import CampaignView, Columns, Effect

__all__ = ["System", "SystemOnQuery"]


class OfSystems(Effect):
    """An effect with one coefficient per system."""

    dims = ("system",)

    def columns(self, view: CampaignView) -> Columns:
        """Return the weights of the systems that retrieved the pair."""
        return view.membership

    def coords(self, view: CampaignView) -> Mapping[str, Sequence[str]]:
        """Return the names of the systems."""
        return {"system": view.runs.systems}


class System(OfSystems):
    r"""The quality of a system beyond popularity: :math:`\frac{1}{\sqrt{n_d}} \sum_{s \ni d} a_s`."""

    name = "system"
    scope = "campaign"
    typical = 0.4

    def columns(self, view: CampaignView) -> Columns:
        r"""Return the weights for :math:`a \sim N(0, \sigma^2 K)`, with :math:`K` the overlap of the systems."""
        return replace(view.membership, mix=view.overlap)


class SystemOnQuery(OfSystems):
    r"""The quality of a system on single queries: :math:`\frac{1}{\sqrt{n_d}} \sum_{s \ni d} c_{sq}`."""

    name = "interaction"
    scope = "query"
    typical = 0.4
