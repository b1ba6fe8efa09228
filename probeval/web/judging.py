"""The judging page: the next document, and the steps of an assessor."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from probeval.campaign import Phase, State, Task, TaskPurpose
from probeval.campaign.events import comparison
from probeval.data.scale import Scale
from probeval.web.assessors import Assessor
from probeval.web.comparisons import answer_words, docs_of, shown_sides
from probeval.web.documents import Document
from probeval.web.forms import Form
from probeval.web.highlight import mark_terms
from probeval.web.threads import run_writing

if TYPE_CHECKING:
    from probeval.web.site import Site

__all__ = ["SKIP_REASONS", "JudgingPage", "grade_buttons", "shown_document"]

MOST_BUTTONS = 10  # with more grades than this, the grade is typed
SKIP_REASONS = ("no text", "wrong language", "cannot judge", "other")
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

    async def next_document(self, request: Request) -> Response:
        """The judging page with the next document."""
        person = self.site.person_or_sign_in(request)
        if isinstance(person, Response):
            return person
        tasks = await run_writing(lambda: self.site.campaign.next(person.name))
        return await run_in_threadpool(self.page, "judge.html", person, tasks)

    async def judge(self, request: Request) -> Response:
        """Save a grade; show the next document."""

        def take(person: Assessor, form: Form, token: str | None) -> list[Task]:
            record = self.site.campaign.record_and_next
            return record(person.name, *form.pair, form.grade, seconds=form.seconds, token=token)[1]

        return await self.step(request, take, "Saved.")

    async def compare(self, request: Request) -> Response:
        """Save an answer about two documents; show the next question."""

        def take(person: Assessor, form: Form, token: str | None) -> list[Task]:
            choice, relevant = form.choice
            return self.site.campaign.answer_and_next(
                person.name,
                *form.comparison,
                choice,
                relevant=relevant,
                numbers=form.magnitudes,
                comment=form["text"],
                seconds=form.seconds,
                token=token,
            )[1]

        return await self.step(request, take, "Saved.")

    async def undo(self, request: Request) -> Response:
        """Withdraw a judgment or an answer; show its documents again."""

        def take(person: Assessor, form: Form, token: str | None) -> None:
            self.site.campaign.withdraw(person.name, form.judgment, token=token)

        return await self.step(request, take, "Withdrawn. Judge it again.")

    async def skip(self, request: Request) -> Response:
        """Skip the question; show the next one."""

        def take(person: Assessor, form: Form, token: str | None) -> None:
            about = form.comparison if form.is_comparison else form.pair
            self.site.campaign.skip(person.name, *about, reason=form["text"], token=token)

        return await self.step(request, take, "Skipped: others may judge it.")

    async def flag(self, request: Request) -> Response:
        """Flag the pair; show the same document."""

        def take(person: Assessor, form: Form, token: str | None) -> None:
            self.site.campaign.flag(person.name, *form.pair, reason=form["text"], token=token)

        return await self.step(request, take, "The flag is saved. Judge the document, or skip it.")

    async def comment(self, request: Request) -> Response:
        """Save a comment on the pair; show the same document."""

        def take(person: Assessor, form: Form, token: str | None) -> None:
            if not form["text"].strip():
                raise HTTPException(400, "The comment is empty.")
            self.site.campaign.comment(person.name, *form.pair, form["text"], token=token)

        return await self.step(request, take, "The comment is saved.")

    async def step(self, request: Request, take: Take, notice: str) -> Response:
        """Take a step of the campaign; respond with the person's next task."""
        person = self.site.person(request)
        form = await self.site.form(request, person)

        def run() -> Response:
            tasks = take(person, form, form.token(person, request.url.path))
            shown = self.site.campaign.next(person.name) if tasks is None else tasks
            return self.answer(request, person, shown, notice)

        return await run_writing(run)

    def answer(self, request: Request, person: Assessor, tasks: list[Task], notice: str) -> Response:
        """The part of the page that changes; without the script, a redirect to the page."""
        if "x-part" in request.headers:
            return self.page("task.html", person, tasks, notice)
        return RedirectResponse("/", 303)

    def page(self, template: str, person: Assessor, tasks: list[Task], notice: str = "") -> Response:
        """The judging page, or the part of it that changes."""
        state, task = self.site.campaign.known_state, tasks[0] if tasks else None  # read for this request already
        mine, last = self.site.tally.own(person.name)
        docs = () if task is None else (task.doc, task.other) if task.other else (task.doc,)
        pairs = [] if task is None else [(task.query, doc) for doc in docs]
        since = 0 if task is None else seen_since(state, task, person.name)
        own: Callable[[Any], bool] = lambda event: event.by == person.name and event.number > since  # noqa: E731
        document, query = (None, "") if task is None else (self.site.documents.get(task.doc), task.text)
        return self.site.render(
            template,
            person,
            task=task,
            **shown_document(document, query),
            sides=shown_sides(docs, self.site.documents, query),
            numbers=task is not None and task.asks == "magnitude",
            follow_up=state.settings.follow_up,
            has_documents=bool(self.site.documents),
            guideline=state.guideline,
            query_guideline="" if task is None else state.query_guideline(task.query),
            grades=grade_buttons(self.site.campaign.scale, state.settings.grade_words),
            grade_words=state.settings.grade_words,
            topic=_topic(task) if state.settings.stay else "",
            skip_reasons=SKIP_REASONS,
            scale=self.site.campaign.scale,
            request=secrets.token_hex(16),
            last=last,
            last_words=("", "") if last is None else answer_words(last),
            last_docs=() if last is None else docs_of(last),
            comments=[comment for pair in pairs for comment in filter(own, state.comments.get(pair, ()))],
            flags=[flag for pair in pairs for flag in filter(own, state.flags.get(pair, ()))],
            notice=notice,
            stopped=state.phase_change if state.phase is not Phase.open else None,
            **self.site.standing(person, state, mine),
        )

    async def progress(self, request: Request) -> Response:
        """The progress strip only."""
        person = self.site.person(request)

        def strip() -> Response:
            state, (mine, _) = self.site.campaign.known_state, self.site.tally.own(person.name)
            return self.site.render("progress.html", person, **self.site.standing(person, state, mine))

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
    question = comparison(task.query, task.doc, task.other) if task.other else (task.query, task.doc)
    held = state.leases.get(question, {}).get(assessor)
    return held.number if held is not None and held.purpose is TaskPurpose.repeat else 0


def shown_document(document: Document | None, query: str) -> dict[str, Any]:
    """A document for templates: itself, and its title and text with the query's terms marked."""
    title, text = ("", "") if document is None else (document.title, document.text)
    return {"document": document, "title": mark_terms(title, query), "text": mark_terms(text, query)}


def grade_buttons(scale: Scale, words: Sequence[str] = ()) -> list[tuple[str, str]]:
    """The grades that have a button, with its caption; none if there are too many grades."""
    if len(scale) > MOST_BUTTONS:
        return []
    ends = {scale.grades[0]: "not relevant", scale.grades[-1]: "relevant" if len(scale) == 2 else "most relevant"}
    captions = words or [ends.get(grade, "") for grade in scale.grades]
    return [(f"{grade:g}", caption) for grade, caption in zip(scale.grades, captions, strict=True)]
