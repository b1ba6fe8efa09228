"""The pages: one handler per address. All steps are methods of the campaign."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from probeval.campaign import Campaign, Phase, State, Task, export_formats
from probeval.data.scale import Scale
from probeval.errors import ProbevalError, StoreError
from probeval.web.assessors import Assessor, Roster
from probeval.web.board import Board, Tally
from probeval.web.documents import Document, Media
from probeval.web.entry import COOKIE, Entry, Guesses, SignInPages, signed_in
from probeval.web.forms import Form, own_form
from probeval.web.guard import Guard, Limiter
from probeval.web.pictures import intervals, progress_curve, target_confidence

__all__ = ["application"]

MOST_BUTTONS = 10  # with more grades than this, the grade is typed
STATIC = {
    "probeval.css": "text/css",
    "judge.js": "text/javascript",
    "join.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
Take = Callable[[Assessor, Form, str | None], list[Task] | None]


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
    site = _Site(campaign, roster, board, documents or {}, show_ranking, guesses)
    app = Starlette(
        routes=[
            Route("/", site.judging, methods=["GET"]),
            Route("/judge", site.judge, methods=["POST"]),
            Route("/undo", site.undo, methods=["POST"]),
            Route("/skip", site.skip, methods=["POST"]),
            Route("/flag", site.flag, methods=["POST"]),
            Route("/comment", site.comment, methods=["POST"]),
            Route("/progress", site.progress, methods=["GET"]),
            Route("/overview", site.overview, methods=["GET"]),
            Route("/settle", site.settle, methods=["POST"]),
            Route("/export/{format}", site.export, methods=["GET"]),
            Route("/media/{key}", site.media, methods=["GET"]),
            Route("/static/{name}", site.static, methods=["GET"]),
            *site.entry.routes,
        ],
        exception_handlers={HTTPException: site.refused, ProbevalError: site.refused, Exception: site.failed},
    )
    limiter = requests or Limiter(rate=30, burst=100)
    return Guard(Entry(app, roster=roster, guesses=guesses), hosts=hosts, who=site.who, limiter=limiter)


@dataclass(eq=False)
class _Site:
    """The handlers of all addresses, with their shared objects."""

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

    # The judging page

    async def judging(self, request: Request) -> Response:
        """The judging page with the next document."""
        try:
            person = self.person(request)
        except HTTPException as error:
            if error.status_code != 401:
                raise
            if COOKIE in request.cookies:
                return self.entry.sign_in(request, wrong=str(error.detail), code=401)
            return RedirectResponse("/login", 303)
        tasks = await run_in_threadpool(self.campaign.next, person.name)
        return await run_in_threadpool(self.page, "judge.html", person, tasks)

    async def judge(self, request: Request) -> Response:
        """Save a grade; show the next document."""

        def take(person: Assessor, form: Form, token: str | None) -> list[Task]:
            return self.campaign.record_and_next(person.name, *form.pair, form.grade, token=token)[1]

        return await self.step(request, take, "Saved.")

    async def undo(self, request: Request) -> Response:
        """Withdraw a judgment; show its document again."""

        def take(person: Assessor, form: Form, token: str | None) -> None:
            self.campaign.withdraw(person.name, form.judgment, token=token)

        return await self.step(request, take, "Withdrawn. Judge it again.")

    async def skip(self, request: Request) -> Response:
        """Skip the pair; show the next document."""

        def take(person: Assessor, form: Form, token: str | None) -> None:
            self.campaign.skip(person.name, *form.pair, reason=form["text"], token=token)

        return await self.step(request, take, "Skipped: others may judge it.")

    async def flag(self, request: Request) -> Response:
        """Flag the pair; show the same document."""

        def take(person: Assessor, form: Form, token: str | None) -> None:
            self.campaign.flag(person.name, *form.pair, reason=form["text"], token=token)

        return await self.step(request, take, "The flag is saved. Judge the document, or skip it.")

    async def comment(self, request: Request) -> Response:
        """Save a comment on the pair; show the same document."""

        def take(person: Assessor, form: Form, token: str | None) -> None:
            if not form["text"].strip():
                raise HTTPException(400, "The comment is empty.")
            self.campaign.comment(person.name, *form.pair, form["text"], token=token)

        return await self.step(request, take, "The comment is saved.")

    async def step(self, request: Request, take: Take, notice: str) -> Response:
        """Take a step of the campaign; respond with the person's next task."""
        person = self.person(request)
        form = await self.form(request, person)

        def run() -> Response:
            tasks = take(person, form, form.token(person, request.url.path))
            return self.answer(request, person, self.campaign.next(person.name) if tasks is None else tasks, notice)

        return await run_in_threadpool(run)

    def answer(self, request: Request, person: Assessor, tasks: list[Task], notice: str) -> Response:
        """The part of the page that changes; without the script, a redirect to the page."""
        if "x-part" in request.headers:
            return self.page("task.html", person, tasks, notice)
        return RedirectResponse("/", 303)

    def page(self, template: str, person: Assessor, tasks: list[Task], notice: str = "") -> Response:
        """The judging page, or the part of it that changes."""
        state, task = self.campaign.state, tasks[0] if tasks else None
        mine, last = self.tally.own(person.name)
        pair = None if task is None else (task.query, task.doc)
        own: Callable[[Any], bool] = lambda event: bool(event.by == person.name)  # noqa: E731
        return self.render(
            template,
            person,
            task=task,
            document=None if task is None else self.documents.get(task.doc),
            has_documents=bool(self.documents),
            guideline=state.guideline,
            grades=_buttons(self.campaign.scale),
            scale=self.campaign.scale,
            request=secrets.token_hex(16),
            last=last,
            comments=[] if pair is None else [*filter(own, state.comments.get(pair, ()))],
            flags=[] if pair is None else [*filter(own, state.flags.get(pair, ()))],
            notice=notice,
            stopped=state.phase_change if state.phase is not Phase.open else None,
            **self.standing(person, state, mine),
        )

    def standing(self, person: Assessor, state: State, mine: int) -> dict[str, Any]:
        """The values of the progress strip; the counts are current, the rest is from the board."""
        standing = self.board.standing
        return {
            "judged": standing.judged_in(state),
            "mine": mine,
            "standing": standing,
            "snapshot": standing.status.snapshot,
            "share": standing.share(person.name),
            "curve": progress_curve(standing.curve, standing.status.setup.stopping),
            "target": target_confidence(standing.status.setup.stopping),
        }

    async def progress(self, request: Request) -> Response:
        """The progress strip only."""
        person = self.person(request)

        def strip() -> Response:
            mine, _ = self.tally.own(person.name)
            return self.render("progress.html", person, **self.standing(person, self.campaign.state, mine))

        return await run_in_threadpool(strip)

    # The owner's page

    async def overview(self, request: Request) -> Response:
        """Progress, ranking, assessors and disagreements."""
        person = self.person(request) if self.show_ranking else self.owner(request)

        def page() -> Response:
            self.board.look()
            state = self.campaign.state
            standing = self.standing(person, state, self.tally.own(person.name)[0])
            snapshot = standing["snapshot"]
            return self.render(
                "overview.html",
                person,
                intervals=intervals(() if snapshot is None else snapshot.systems),
                disagreements=[
                    (pair, sorted(state.latest(pair).values(), key=lambda j: j.by), state.comments.get(pair, ()))
                    for pair in (state.disagreements[:50] if person.owner else ())
                ],
                flags=[flag for flags in state.flags.values() for flag in flags][-50:] if person.owner else [],
                scale=self.campaign.scale,
                grades=_buttons(self.campaign.scale),
                exports=export_formats().values(),
                request=secrets.token_hex(16),
                **standing,
            )

        return await run_in_threadpool(page)

    async def settle(self, request: Request) -> Response:
        """Settle a disagreement."""
        person = self.owner(request)
        form = await self.form(request, person)
        settle, token = self.campaign.adjudicate, form.token(person, "\0".join(["/settle", *form.pair]))
        await run_in_threadpool(settle, person.name, *form.pair, form.grade, token=token)
        return RedirectResponse("/overview", 303)

    async def export(self, request: Request) -> Response:
        """The judgments, or the log, as a file."""
        self.owner(request)
        known = export_formats()
        wanted = known.get(request.path_params["format"])
        if wanted is None:
            raise HTTPException(404, f"Unknown export format: expected one of {', '.join(known)}.")
        text = await run_in_threadpool(self.campaign.export, wanted.name)
        disposition = f'attachment; filename="{wanted.file_name}"'
        return Response(text, media_type=wanted.media_type, headers={"content-disposition": disposition})

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
            "show_ranking": self.show_ranking,
            "sees_ranking": person is not None and (person.owner or self.show_ranking),
        }
        return HTMLResponse(self.templates.get_template(template).render(common | values), code)


def _buttons(scale: Scale) -> list[tuple[str, str]]:
    """The grades that have a button, with its caption; none if there are too many grades."""
    if len(scale) > MOST_BUTTONS:
        return []
    ends = {scale.grades[0]: "not relevant", scale.grades[-1]: "relevant" if len(scale) == 2 else "most relevant"}
    return [(f"{grade:g}", ends.get(grade, "")) for grade in scale.grades]
