"""The pages: their addresses, sign-in, files and errors. All steps are methods of the campaign."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from probeval.campaign import Campaign, State
from probeval.campaign.snapshot import target_confidence
from probeval.errors import ProbevalError, StoreError
from probeval.web.adjudication import AdjudicationPage
from probeval.web.assessors import Assessor, Roster
from probeval.web.board import Board, Tally
from probeval.web.documents import Document, Media
from probeval.web.entry import COOKIE, Entry, Guesses, SignInPages, signed_in
from probeval.web.forms import Form, own_form
from probeval.web.guard import Guard, Limiter
from probeval.web.judging import JudgingPage
from probeval.web.overview import OverviewPage

__all__ = ["Site", "application"]

STATIC = {
    "probeval.css": "text/css",
    "judge.js": "text/javascript",
    "join.js": "text/javascript",
    "overview.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}


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
    """
    guesses = guesses or Guesses()
    site = Site(campaign, roster, board, documents or {}, show_ranking, guesses)
    judging, adjudication, overview = JudgingPage(site), AdjudicationPage(site), OverviewPage(site)
    app = Starlette(
        routes=[
            Route("/", judging.next_document, methods=["GET"]),
            Route("/judge", judging.judge, methods=["POST"]),
            Route("/compare", judging.compare, methods=["POST"]),
            Route("/undo", judging.undo, methods=["POST"]),
            Route("/skip", judging.skip, methods=["POST"]),
            Route("/flag", judging.flag, methods=["POST"]),
            Route("/comment", judging.comment, methods=["POST"]),
            Route("/progress", judging.progress, methods=["GET"]),
            Route("/overview", overview.overview, methods=["GET"]),
            Route("/adjudicate", adjudication.adjudicate, methods=["GET"]),
            Route("/settle", adjudication.settle, methods=["POST"]),
            Route("/export/{format}", overview.export, methods=["GET"]),
            Route("/media/{key}", site.media, methods=["GET"]),
            Route("/static/{name}", site.static, methods=["GET"]),
            *site.entry.routes,
        ],
        exception_handlers={HTTPException: site.refused, ProbevalError: site.refused, Exception: site.failed},
    )
    limiter = requests or Limiter(rate=30, burst=100)
    return Guard(Entry(app, roster=roster, guesses=guesses), hosts=hosts, who=site.who, limiter=limiter)


@dataclass(eq=False)
class Site:
    """The objects that all pages share, and the handlers of sign-in, files and errors."""

    campaign: Campaign
    roster: Roster
    board: Board
    documents: Mapping[str, Document]
    show_ranking: bool
    guesses: Guesses
    files: dict[str, Media] = field(init=False)

    def __post_init__(self) -> None:
        self.files = self.media_files()
        self.name = self.campaign.setup.name  # it never changes
        self.tally = Tally(self.campaign)
        self.entry = SignInPages(roster=self.roster, guesses=self.guesses, render=self.render)
        folder = files("probeval.web") / "static"
        self.statics = {name: (folder / name).read_bytes() for name in STATIC}
        self.templates = Environment(
            loader=PackageLoader("probeval.web"),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    # Authentication

    def who(self, headers: Headers) -> str | None:
        """The name of the person who sent these headers as far as is known without a look at the store, or None."""
        return self.roster.known_name(Request({"type": "http", "headers": headers.raw}).cookies.get(COOKIE, ""))

    def person(self, request: Request) -> Assessor:
        """The person who sent the request; refused without a session."""
        return signed_in(request)

    def owner(self, request: Request) -> Assessor:
        """The owner who sent the request; others are refused."""
        person = self.person(request)
        if not person.owner:
            raise HTTPException(403, "This page is for the owner of the campaign.")
        return person

    async def form(self, request: Request, person: Assessor) -> Form:
        """The form that this person's own page sent; others are refused."""
        return await own_form(request, person)

    # The progress strip, on several pages

    def standing(self, person: Assessor, state: State, mine: int) -> dict[str, Any]:
        """The values of the progress strip; the counts are current, the rest is from the board."""
        standing = self.board.standing
        return {
            "judged": standing.judged_in(state),
            "mine": mine,
            "standing": standing,
            "snapshot": standing.status.snapshot,
            "paces": standing.paces(person.name),
            "curve": standing.picture,
            "target": target_confidence(standing.status.setup.stopping),
        }

    # Files, by keys and names fixed at the start

    async def media(self, request: Request) -> Response:
        """A sound or image of a document."""
        self.person(request)
        key = request.path_params["key"]
        if key not in self.files and len(self.documents) != self.counted:  # late runs brought documents
            self.files = self.media_files()
        file = self.files.get(key)
        if file is None:
            raise HTTPException(404, "There is no such file.")
        return FileResponse(file.path, media_type=file.type)

    def media_files(self) -> dict[str, Media]:
        """The media files of all documents, by key."""
        self.counted = len(self.documents)
        return {file.key: file for document in self.documents.values() for file in document.media}

    async def static(self, request: Request) -> Response:
        """Style sheet, script and icon."""
        name = request.path_params["name"]
        if name not in STATIC:
            raise HTTPException(404, "There is no such file.")
        return Response(self.statics[name], media_type=STATIC[name], headers={"cache-control": "no-cache"})

    # Errors

    async def refused(self, request: Request, error: Exception) -> Response:
        """The response to a request that is refused."""
        if isinstance(error, HTTPException):
            status, why = error.status_code, str(error.detail)
        else:
            status, why = (503 if isinstance(error, StoreError) else 422), str(error)
        return self.problem(request, status, why)

    async def failed(self, request: Request, error: Exception) -> Response:
        """The response to an unexpected error."""
        return self.problem(request, 500, "Unexpected error. See the log of the server.")

    def problem(self, request: Request, status: int, why: str) -> Response:
        """An error message: one line for the script, a page otherwise."""
        if "x-part" in request.headers:
            return PlainTextResponse(f"{why}\n", status)
        return self.render("problem.html", None, why=why, code=status)

    def render(self, template: str, person: Assessor | None, *, code: int = 200, **values: Any) -> Response:
        """A page from its template."""
        common = {
            "name": self.name,
            "person": person,
            "alone": self.roster.alone is not None,
            "adjudicates": person is not None and person.adjudicates,
            "show_ranking": self.show_ranking,
            "sees_ranking": person is not None and (person.owner or self.show_ranking),
        }
        return HTMLResponse(self.templates.get_template(template).render(common | values), code)
