r"""Systems: how good each is beyond its popularity, on all queries and on single ones.

The :math:`n_d` systems that retrieved a document count by the root of their number: a good system says much of a
document, whoever else has it too. Effects are zero-sum over systems: what is common to all of them is a function of
popularity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from probeval.relevance.effects.effect import CampaignView, Columns, Effect

__all__ = ["System", "SystemOnQuery"]


class OfSystems(Effect):
    """An effect with a coefficient per system."""

    dims = ("system",)

    def columns(self, view: CampaignView) -> Columns:
        """The systems that retrieved the pair."""
        return view.membership

    def coords(self, view: CampaignView) -> Mapping[str, Sequence[str]]:
        """The systems."""
        return {"system": view.runs.systems}


class System(OfSystems):
    r"""A system can be better than it is popular: :math:`\frac{1}{\sqrt{n_d}} \sum_{s \ni d} a_s`."""

    name = "system"
    scope = "campaign"
    typical = 0.4


class SystemOnQuery(OfSystems):
    r"""A system can be better on some queries: :math:`\frac{1}{\sqrt{n_d}} \sum_{s \ni d} c_{sq}`."""

    name = "interaction"
    scope = "query"
    typical = 0.4
