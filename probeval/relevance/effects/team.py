r"""Effects of teams: systems of one team share part of their quality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.sparse import csr_array

from probeval.relevance.effects.effect import CampaignView, Columns, Effect

__all__ = ["Team"]


class Team(Effect):
    r"""The common quality of a team's systems: :math:`\frac{1}{\sqrt{n_d}} \sum_{s \ni d} m_{\text{team}(s)}`."""

    name = "team"
    scope = "campaign"
    dims = ("team",)
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
