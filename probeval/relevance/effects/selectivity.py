r"""The effect of selectivity: systems that return fewer documents return better ones, or worse.

A system that stops early states that the rest is not worth a place. With :math:`\bar n_s` the mean length of its lists,

.. math:: \frac{b}{\sqrt{n_d}} \sum_{s \ni d} l_s,\qquad l_s = -\log \frac{\bar n_s}{\max_r \bar n_r}

has one coefficient :math:`b`, and weights that are centred like those of systems. With lists of equal length there is
no such effect. See docs/theory/hierarchical.md#selectivity.
"""

from __future__ import annotations

from scipy.sparse import csr_array

from probeval.relevance.effects.effect import CampaignView, Columns, Effect
from probeval.relevance.normal import Normal

__all__ = ["Selectivity"]

SHORTER = 0.1  # the log ratio of the longest and the shortest lists above which they are of unequal length


class Selectivity(Effect):
    r"""The quality of documents of systems with short lists: :math:`\frac{1}{\sqrt{n_d}} \sum_{s \ni d} b\,l_s`.

    A campaign has one coefficient, which hardly tells its standard deviation: the prior is about 1, learned or not.
    """

    name = "selectivity"
    scope = "campaign"
    vague = Normal(0.0, 0.25)
    unseen = Normal(0.0, 0.25)
    typical = 1.0

    def applies(self, view: CampaignView) -> bool:
        """Whether some lists are shorter than others."""
        return bool(view.selectivity.max(initial=0.0) > SHORTER)

    def columns(self, view: CampaignView) -> Columns:
        """Return the sum of the selectivity of the systems that retrieved the pair, zero-sum over systems."""
        return Columns.of(csr_array(view.membership.times(view.selectivity[:, None])))
