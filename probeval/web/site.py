"""The pages of a campaign: their addresses, and the objects that they share. All steps are methods of the campaign."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp

from probeval.campaign import Campaign, State
from probeval.campaign.snapshot import target_confidence
from probeval.web.adjudication import AdjudicationPage
from probeval.web.assessors import Assessor, Roster
from probeval.web.board import Board
from probeval.web.documents import Document
from probeval.web.entry import Guesses
from probeval.web.guard import Limiter
from probeval.web.judging import JudgingPage
from probeval.web.overview import OverviewPage
from probeval.web.pages import Pages

__all__ = ["Site", "application"]


def application(
    campaign: Campaign,
    *,
    roster: Roster,
    board: Board,
    hosts: Collection[str],
    documents: Mapping[str, Document] | None = None,
    show_ranking: bool = False,
    requests: Limiter | None = None,
    guesses: Guesses | None = None,
    tell: Callable[[str], object] = lambda _: None,
) -> ASGIApp:
    """The judging page as an ASGI application.

    Parameters
    ----------
    campaign
        The campaign to judge.
    roster
        The people who may judge.
    board
        The standing of the campaign.
    hosts
        The host names of the server, without port.
    documents
        Documents by id; without them assessors see ids only.
    show_ranking
        Show the ranking to assessors too; it may bias their judgments.
    requests, guesses
        Limits of requests per person, and of wrong tokens.
    tell
        Called with the reasons why the store or a file cannot be used.
    """
    site = Site(
        campaign=campaign,
        name=campaign.setup.name,
        roster=roster,
        board=board,
        documents=documents or {},
        show_ranking=show_ranking,
        guesses=guesses or Guesses(),
        tell=tell,
    )
    judging, adjudication, overview = JudgingPage(site), AdjudicationPage(site), OverviewPage(site)
    routes = [
        Route("/", judging.next_question, methods=["GET"]),
        Route("/judge", judging.judge, methods=["POST"]),
        Route("/undo", judging.undo, methods=["POST"]),
        Route("/skip", judging.skip, methods=["POST"]),
        Route("/flag", judging.flag, methods=["POST"]),
        Route("/comment", judging.comment, methods=["POST"]),
        Route("/progress", judging.progress, methods=["GET"]),
        Route("/overview", overview.overview, methods=["GET"]),
        Route("/adjudicate", adjudication.adjudicate, methods=["GET"]),
        Route("/settle", adjudication.settle, methods=["POST"]),
        Route("/export/{format}", overview.export, methods=["GET"]),
    ]
    return site.application(routes, hosts=hosts, requests=requests)


@dataclass(eq=False, kw_only=True)
class Site(Pages):
    """The objects that the pages of a campaign share."""

    campaign: Campaign
    board: Board
    show_ranking: bool

    def owner(self, request: Request) -> Assessor:
        """The owner who sent the request; others are refused."""
        person = self.person(request)
        if not person.owner:
            raise HTTPException(403, "This page is for the owner of the campaign.")
        return person

    # The progress strip, on several pages

    def standing(self, person: Assessor, state: State) -> dict[str, Any]:
        """The values of the progress strip; the counts are current, the rest is from the board."""
        standing = self.board.standing
        return {
            "judged": standing.judged_in(state),
            "has_runs": self.campaign.has_runs,
            "mine": state.own_count(person.name),
            "standing": standing,
            "snapshot": standing.status.snapshot,
            "paces": standing.paces(person.name),
            "curve": standing.picture,
            "target": target_confidence(standing.status.setup.rule_to_stop),
        }

    def common(self, person: Assessor | None) -> dict[str, Any]:
        """The values of all templates."""
        return super().common(person) | {
            "adjudicates": person is not None and person.adjudicates,
            "show_ranking": self.show_ranking,
            "sees_ranking": person is not None and (person.owner or self.show_ranking),
        }
