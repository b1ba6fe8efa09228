"""The page of a study with users: two lists side by side, which is better, and is it good?"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from probeval.campaign import ListTask, Phase, Study
from probeval.web.assessors import Assessor, Roster
from probeval.web.documents import Document
from probeval.web.entry import Guesses
from probeval.web.forms import Form
from probeval.web.guard import Limiter
from probeval.web.highlight import mark_terms
from probeval.web.pages import Pages
from probeval.web.threads import run_writing

__all__ = ["ListPage", "study_application"]

MAX_CHARACTERS = 240  # characters of a text in a list; the rest is folded
GOOD = {"yes": True, "no": False}
Take = Callable[[Assessor, Form, str | None], int | None]


class ListedDocument(NamedTuple):
    """A document in a list: its title, the beginning of its text and the rest, with the query's terms marked."""

    doc: str
    document: Document | None
    title: Markup
    text: Markup
    rest: Markup


def study_application(
    study: Study,
    *,
    roster: Roster,
    hosts: Collection[str],
    documents: Mapping[str, Document] | None = None,
    requests: Limiter | None = None,
    guesses: Guesses | None = None,
    tell: Callable[[str], object] = lambda _: None,
) -> ASGIApp:
    """The page of a study as an ASGI application.

    Parameters
    ----------
    study
        The study.
    roster
        The people who may answer.
    hosts
        The host names of the server, without port.
    documents
        Documents by id; without them users see ids only.
    requests, guesses
        Limits of requests per person, and of wrong tokens.
    tell
        Called with the reasons why the store or a file cannot be used.
    """
    pages = Pages(
        name=study.setup.name, roster=roster, documents=documents or {}, guesses=guesses or Guesses(), tell=tell
    )
    page = ListPage(study, pages)
    routes = [
        Route("/", page.next_question, methods=["GET"]),
        Route("/judge", page.answer, methods=["POST"]),
        Route("/undo", page.undo, methods=["POST"]),
    ]
    return pages.application(routes, hosts=hosts, requests=requests)


@dataclass(frozen=True, eq=False)
class ListPage:
    """The handlers of the page.

    Parameters
    ----------
    study
        The study.
    pages
        The shared objects of all pages.
    """

    study: Study
    pages: Pages

    async def next_question(self, request: Request) -> Response:
        """The page with the next question."""
        person = self.pages.person_or_sign_in(request)
        if isinstance(person, Response):
            return person
        return await run_in_threadpool(lambda: self.page("lists.html", person, self.study.next(person.name)))

    async def answer(self, request: Request) -> Response:
        """Save an answer; show the next question."""

        def take(person: Assessor, form: Form, token: str | None) -> None:
            if form["good"] not in GOOD:
                raise HTTPException(400, f"Whether a list is good must be yes or no, got {form['good']!r}.")
            self.study.record(
                person.name,
                form.number("question"),
                form["choice"],
                good=GOOD[form["good"]],
                seconds=form.seconds,
                token=token,
            )

        return await self.step(request, take, "Saved.")

    async def undo(self, request: Request) -> Response:
        """Withdraw an answer; show its question again."""

        def take(person: Assessor, form: Form, token: str | None) -> int:
            return self.study.withdraw(person.name, form.judgment, token=token).question

        return await self.step(request, take, "Withdrawn. Answer it again.")

    async def step(self, request: Request, take: Take, notice: str) -> Response:
        """Take a step of the study; respond with the person's next question."""
        person = self.pages.person(request)
        form = await self.pages.form(request, person)

        def run() -> Response:
            again = take(person, form, form.token(person, request.url.path))
            if "x-part" not in request.headers:
                return RedirectResponse("/", 303)
            return self.page("list_task.html", person, self.study.next(person.name, again=again), notice)

        return await run_writing(run)

    def page(self, template: str, person: Assessor, task: ListTask | None, notice: str = "") -> Response:
        """The page, or the part of it that changes."""
        state = self.study.state
        sides = {} if task is None else {"left": self.listed(task, task.left), "right": self.listed(task, task.right)}
        return self.pages.render(
            template,
            person,
            task=task,
            sides=sides,
            has_documents=bool(self.pages.documents),
            guideline=state.guideline,
            request=secrets.token_hex(16),
            last=self.study.last(person.name),
            stopped=state.phase_change if state.phase is not Phase.open else None,
            notice=notice,
        )

    def listed(self, task: ListTask, docs: tuple[str, ...]) -> list[ListedDocument]:
        """The documents of a list for templates."""
        return [self.listed_document(doc, self.pages.documents.get(doc), task.text) for doc in docs]

    @staticmethod
    def listed_document(doc: str, document: Document | None, query: str) -> ListedDocument:
        """A document for templates."""
        values: dict[str, Any] = {"title": "", "text": ""} if document is None else vars(document)
        text, cut = values["text"], len(values["text"])
        if cut > MAX_CHARACTERS:
            cut = text.rfind(" ", MAX_CHARACTERS // 2, MAX_CHARACTERS)
            cut = MAX_CHARACTERS if cut < 0 else cut
        marked = (mark_terms(each, query) for each in (values["title"], text[:cut], text[cut:]))
        return ListedDocument(doc, document, *marked)
