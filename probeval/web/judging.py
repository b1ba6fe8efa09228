"""The judging page: the next question, and the steps of an assessor."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from probeval.campaign import Phase, State, Task, TaskPurpose
from probeval.campaign.questions import kind_of
from probeval.web.entry import Assessor
from probeval.web.forms import Form
from probeval.web.questions import places_of, template_of

if TYPE_CHECKING:
    from probeval.web.site import Site

__all__ = ["SKIP_REASONS", "JudgingPage"]

SKIP_REASONS = ("no text", "wrong language", "cannot judge")  # or one in their own words
Take = Callable[[Assessor, Form, str | None], list[Task] | None]


@dataclass(frozen=True, eq=False)
class JudgingPage:
    """The handlers of the judging page.

    Parameters
    ----------
    site
        The shared objects of all pages.
    """

    site: Site

    async def next_question(self, request: Request) -> Response:
        """The judging page with the next question."""
        person = self.site.person_or_sign_in(request)
        if isinstance(person, Response):
            return person
        tasks = await self.site.write(lambda: self.site.campaign.next(person.name))
        return await run_in_threadpool(lambda: self.page(person, tasks, whole=True))

    async def judge(self, request: Request) -> Response:
        """Save an answer; show the next question."""

        def take(person: Assessor, form: Form, token: str | None) -> list[Task]:
            return self.site.campaign.answer_and_next(
                person.name,
                form.question,
                shown=form.documents,
                comment=form["text"],
                seconds=form.seconds,
                token=token,
                **form.kind.parse(form),
            )[1]

        return await self.step(request, take, "Saved.")

    async def undo(self, request: Request) -> Response:
        """Withdraw an answer; show its question again."""

        def take(person: Assessor, form: Form, token: str | None) -> None:
            self.site.campaign.withdraw(person.name, form.judgment, token=token)

        return await self.step(request, take, "Withdrawn. Answer it again.")

    async def skip(self, request: Request) -> Response:
        """Skip the question; show the next one."""

        def take(person: Assessor, form: Form, token: str | None) -> None:
            self.site.campaign.skip(person.name, form.question, reason=form["text"], token=token)

        return await self.step(request, take, "Skipped: others may judge it.")

    async def flag(self, request: Request) -> Response:
        """Flag the pair; show the same question."""

        def take(person: Assessor, form: Form, token: str | None) -> None:
            self.site.campaign.flag(person.name, *form.pair, reason=form["text"], token=token)

        return await self.step(request, take, "The flag is saved. Judge the document, or skip it.")

    async def comment(self, request: Request) -> Response:
        """Save a comment on the pair; show the same question."""

        def take(person: Assessor, form: Form, token: str | None) -> None:
            if not form["text"].strip():
                raise HTTPException(400, "The comment is empty.")
            self.site.campaign.comment(person.name, *form.pair, form["text"], token=token)

        return await self.step(request, take, "The comment is saved.")

    async def step(self, request: Request, take: Take, notice: str) -> Response:
        """Take a step of the campaign; respond with the person's next question."""
        person = self.site.person(request)
        form = await self.site.form(request, person)

        def run() -> Response:
            tasks = take(person, form, form.token(person, request.url.path))
            shown = self.site.campaign.next(person.name) if tasks is None else tasks
            return self.answer(request, person, shown, notice)

        return await self.site.write(run)

    def answer(self, request: Request, person: Assessor, tasks: list[Task], notice: str) -> Response:
        """The part of the page that changes; without the script, a redirect to the page."""
        return self.page(person, tasks, notice) if "x-part" in request.headers else RedirectResponse("/", 303)

    def page(self, person: Assessor, tasks: list[Task], notice: str = "", *, whole: bool = False) -> Response:
        """The part of the judging page that changes from question to question, or the whole page."""
        campaign, state = self.site.campaign, self.site.campaign.known_state  # read for this request already
        task, material = tasks[0] if tasks else None, campaign.known_material
        kind = state.settings.kinds[0] if task is None else kind_of(task.question.kind)
        pairs = [] if task is None else [(task.query, doc) for doc in task.documents]
        since = 0 if task is None else seen_since(state, task, person.name)
        own: Callable[[Any], bool] = lambda event: event.by == person.name and event.number > since  # noqa: E731
        query, text = ("", "") if task is None else (task.query, task.text)
        mine = state.own.get(person.name)
        last = None if mine is None else mine.last
        part = template_of(kind)
        return self.site.render(
            "judge.html" if whole else part,
            person,
            part=part,
            frame="task.html",
            action="/judge",
            task=task,
            question=None if task is None else task.question,
            query=query,
            query_text=text,
            opened=mine is None,
            places=[]
            if task is None
            else places_of(kind, task.documents, material=material, documents=self.site.documents, query=text),
            has_documents=bool(self.site.documents),
            guideline=state.guideline,
            query_guideline="" if task is None else state.query_guideline(task.query),
            topic=_topic(task) if state.settings.stay else "",
            skip_reasons=SKIP_REASONS,
            request=secrets.token_hex(16),
            last=last,
            last_words=("", "") if last is None else last.asked.words(last),
            comments=[comment for pair in pairs for comment in filter(own, state.comments.get(pair, ()))],
            flags=[flag for pair in pairs for flag in filter(own, state.flags.get(pair, ()))],
            notice=notice,
            stopped=state.phase_change if state.phase is not Phase.open else None,
            **kind.page(state, material),
            **self.site.standing(person, state),
        )

    async def progress(self, request: Request) -> Response:
        """The progress strip only."""
        person = self.site.person(request)

        def strip() -> Response:
            return self.site.render(
                "progress.html", person, **self.site.standing(person, self.site.campaign.known_state)
            )

        return await run_in_threadpool(strip)


def _topic(task: Task | None) -> str:
    """How far an assessor is with the query of a task, in words."""
    if task is None:
        return ""
    new = "a new topic, " if task.switched else ""
    return f"{new}{task.judged_in_topic} judged by you, about {task.left_in_topic} to go"


def seen_since(state: State, task: Task, assessor: str) -> int:
    """The number of the event from which on the assessor sees their remarks on a question.

    On a repeated question, remarks from the first time would show that it is one.
    """
    held = state.leases.get(task.question, {}).get(assessor)
    return held.number if held is not None and held.purpose is TaskPurpose.repeat else 0
