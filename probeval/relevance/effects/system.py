r"""Effects of systems: their quality beyond popularity, over all queries and on single ones, of teams, of short lists.

The :math:`n_d` systems that retrieved a document count by the root of their number: a good system stays informative
about a document that many others retrieved. Effects are zero-sum over systems: their common part is a function of
popularity. Systems that retrieve the same documents have similar effects: they share what is good or bad about them,
and systems of one team share part of their quality. With few systems the popularity of a document among many is not
seen, and their effects are larger (docs/theory/hierarchical.md#few-systems).

A system that stops early states that the rest is not worth a place. With :math:`\bar n_s` the mean length of its lists,

.. math:: \frac{b}{\sqrt{n_d}} \sum_{s \ni d} l_s,\qquad l_s = -\log \frac{\bar n_s}{\max_r \bar n_r}

has one coefficient :math:`b`, and weights that are centred like those of systems. With lists of equal length there is
no such effect. See docs/theory/hierarchical.md#selectivity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from probeval.arrays import Floats
from probeval.relevance.effects.effect import CampaignView, Columns, Effect
from probeval.relevance.normal import Normal

__all__ = ["LATER", "Selectivity", "System", "SystemOnQuery", "Team", "widened"]

# The standard deviation of the quality of a system that arrives after the judging, over that of the first systems. Of
# 1, 1.5 and 2 it predicts best how newcomers compare with the first systems: see docs/evidence-reuse.md.
LATER = 1.5
SHORTER = 0.1  # the log ratio of the longest and the shortest lists above which they are of unequal length


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
    widened = True
    typical = 0.4

    def columns(self, view: CampaignView) -> Columns:
        r"""Return the weights for :math:`a \sim N(0, \sigma^2 K)`, with :math:`K` the overlap of the systems."""
        return replace(view.membership, mix=view.overlap)


class SystemOnQuery(OfSystems):
    r"""The quality of a system on single queries: :math:`\frac{1}{\sqrt{n_d}} \sum_{s \ni d} c_{sq}`."""

    name = "interaction"
    scope = "query"
    typical = 0.4


def widened(root: Floats | None, later: Sequence[bool]) -> Floats | None:
    """Return a root of the systems' covariance in which later systems have a wider prior; None if it is the identity.

    >>> widened(None, [False, True]).tolist(), widened(None, [False, False])
    ([[1.0, 0.0], [0.0, 1.5]], None)
    """
    if not any(later):
        return root
    whole = np.eye(len(later)) if root is None else root
    return np.asarray(np.where(later, LATER, 1.0)[:, None] * whole)


class Team(Effect):
    r"""The common quality of a team's systems: :math:`\frac{1}{\sqrt{n_d}} \sum_{s \ni d} m_{\text{team}(s)}`."""

    name = "team"
    scope = "campaign"
    dims = ("team",)
    widened = True
    typical = 0.5

    def columns(self, view: CampaignView) -> Columns:
        """Return the weights of the teams of the systems that retrieved the pair, zero-sum over systems."""
        systems = view.membership
        place = {team: i for i, team in enumerate(view.teams)}
        of_system = [place[team] for team in view.runs.teams or ()]
        shape = (len(of_system), len(place))
        member = csr_array((np.ones(len(of_system)), (np.arange(len(of_system)), of_system)), shape=shape)
        return Columns(csr_array(systems.weights @ member), systems.offset, np.asarray(member.T @ systems.share))

    def coords(self, view: CampaignView) -> Mapping[str, Sequence[str]]:
        """The teams."""
        return {"team": view.teams}


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
