"""The pages of a campaign: their addresses and what they share. All steps are methods of the campaign."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar
from jinja2 import Environment, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from probeval.campaign import Campaign, State
from probeval.errors import DataError, ProbevalError, StoreError
from probeval.web.adjudication import AdjudicationPage
from probeval.web.board import Board
from probeval.web.documents import Document
from probeval.web.entry import Assessor, Entry, Guesses, Roster, SignInPages, secret_in, signed_in, who_sent
from probeval.web.forms import Form, own_form
from probeval.web.guard import Guard, Limiter
from probeval.web.judging import JudgingPage
from probeval.web.media import Media, MediaResponse
from probeval.web.overview import OverviewPage
from probeval.web.questions import template_loader

__all__ = ["Site", "application"]

T = TypeVar("T")
MOST_WRITERS = 40  # threads; as many again as there are for reading
WRITERS: RunVar[CapacityLimiter] = RunVar("probeval.writing")
STATIC = {
    "probeval.css": "text/css",
    "judge.js": "text/javascript",
    "join.js": "text/javascript",
    "overview.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
UNAVAILABLE = (
    "The store cannot be used at the moment. The step that you just took was not saved; all earlier ones were. "
    "Tell the owner: the reason is on the terminal of the server."
)


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
class Site:
    """The objects that the pages share, and the handlers of sign-in, files and errors.

    Parameters
    ----------
    campaign
        The campaign.
    board
        Its standing.
    roster
        The people who may use the pages.
    documents
        Documents by id.
    guesses
        The limit of wrong tokens.
    show_ranking
        Whether assessors see the ranking.
    tell
        Called with the reasons why the store or a file cannot be used, which name their place. Only owners see them.
    """

    campaign: Campaign
    board: Board
    roster: Roster
    documents: Mapping[str, Document]
    guesses: Guesses
    show_ranking: bool
    tell: Callable[[str], object]
    files: dict[str, Media] = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.campaign.setup.name  # it never changes
        self.files = self.media_files()
        self.entry = SignInPages(roster=self.roster, guesses=self.guesses, render=self.render, write=self.write)
        folder = files("probeval.web") / "static"
        self.statics = {name: (folder / name).read_bytes() for name in STATIC}
        self.templates = Environment(
            loader=template_loader(),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    def application(self, routes: Sequence[Route], *, hosts: Collection[str], requests: Limiter | None) -> ASGIApp:
        """The pages with these addresses as an ASGI application, behind the checks of every request."""
        app = Starlette(
            routes=[
                *routes,
                Route("/media/{key}", self.media, methods=["GET"]),
                Route("/static/{name}", self.static, methods=["GET"]),
                *self.entry.routes,
            ],
            exception_handlers={HTTPException: self.refused, ProbevalError: self.refused, Exception: self.failed},
        )
        app.router.redirect_slashes = False  # an address with a slash too many is none of ours
        limiter = requests or Limiter(rate=30, burst=100)
        entry = Entry(app, roster=self.roster, guesses=self.guesses)
        return Guard(entry, hosts=hosts, who=self.who, limiter=limiter)

    # Authentication

    def who(self, headers: Headers) -> str | None:
        """The name of the person who sent these headers as far as is known without a look at the store, or None."""
        return self.roster.known_name(secret_in(headers))

    def person(self, request: Request) -> Assessor:
        """The person who sent the request; refused without a session."""
        return signed_in(request)

    def person_or_sign_in(self, request: Request) -> Assessor | Response:
        """The person who sent the request; without a session, the page on which they sign in."""
        try:
            return self.person(request)
        except HTTPException as error:
            if error.status_code != 401:
                raise
            if secret_in(request.headers):
                return self.entry.sign_in(request, wrong=str(error.detail), code=401)
            return RedirectResponse("/login", 303)

    def owner(self, request: Request) -> Assessor:
        """The owner who sent the request; others are refused."""
        person = self.person(request)
        if not person.owner:
            raise HTTPException(403, "This page is for the owner of the campaign.")
        return person

    async def write(self, step: Callable[[], T]) -> T:
        """Run a step that may write to the store in a thread, of which there are a limited number for such steps.

        Steps that read have threads of their own: a store that is busy keeps no one from reading.
        """
        try:
            limit = WRITERS.get()
        except LookupError:
            limit = CapacityLimiter(MOST_WRITERS)
            WRITERS.set(limit)
        return await to_thread.run_sync(step, limiter=limit)

    async def form(self, request: Request, person: Assessor) -> Form:
        """The form that this person's own page sent; others are refused."""
        return await own_form(request, person)

    # Files, by keys and names fixed at the start

    async def media(self, request: Request) -> Response:
        """A sound or image of a document."""
        self.person(request)
        key = request.path_params["key"]
        if key not in self.files and len(self.documents) != self.counted:  # late runs brought documents
            self.files = self.media_files()
        try:
            found = self.files[key]
            file = await run_in_threadpool(found.open)
        except (KeyError, OSError):
            raise HTTPException(404, "There is no such file.") from None
        return MediaResponse(file, media_type=found.type, wanted=request.headers.get("range", ""))

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
            return self.problem(request, error.status_code, str(error.detail))
        if not isinstance(error, StoreError) and not (isinstance(error, DataError) and error.path is not None):
            return self.problem(request, 422, str(error))
        self.tell(str(error))
        person = who_sent(request.scope)
        return self.problem(request, 503, str(error) if person is not None and person.owner else UNAVAILABLE)

    async def failed(self, request: Request, error: Exception) -> Response:
        """The response to an unexpected error."""
        return self.problem(request, 500, "Unexpected error. See the log of the server.")

    def problem(self, request: Request, status: int, why: str) -> Response:
        """An error message: one line for the script, a page otherwise."""
        if "x-part" in request.headers:
            return PlainTextResponse(f"{why}\n", status)
        return self.render("problem.html", None, why=why, code=status)

    # The progress strip, on several pages

    def standing(self, person: Assessor, state: State) -> dict[str, Any]:
        """The values of the progress strip; the counts are current, the rest is from the board."""
        standing = self.board.standing
        return {
            **standing.progress(state, checked=not person.owner),
            "has_runs": self.campaign.has_runs,
            "mine": state.own_count(person.name),
            "standing": standing,
            "snapshot": standing.status.snapshot,
            "paces": standing.paces(person.name),
            "curve": standing.picture,
            "figures": standing.figures,
        }

    # Templates

    def common(self, person: Assessor | None) -> dict[str, Any]:
        """The values of all templates."""
        return {
            "name": self.name,
            "person": person,
            "alone": self.roster.alone is not None,
            "adjudicates": person is not None and person.adjudicates and self.campaign.has_runs,
            "show_ranking": self.show_ranking,
            "sees_ranking": person is not None and (person.owner or self.show_ranking),
        }

    def render(self, template: str, person: Assessor | None, *, code: int = 200, **values: Any) -> Response:
        """A page from its template."""
        return HTMLResponse(self.templates.get_template(template).render(self.common(person) | values), code)
