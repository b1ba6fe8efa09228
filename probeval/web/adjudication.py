"""The adjudication page: a question on which assessors differ, with its documents, and the answer that settles it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from probeval.campaign import Compared, Judged
from probeval.campaign.events import Question, comparison
from probeval.web.assessors import Assessor
from probeval.web.comparisons import Words, answer_words, docs_of, relevant_words, shown_sides
from probeval.web.judging import grade_buttons, shown_document
from probeval.web.threads import run_writing

if TYPE_CHECKING:
    from probeval.campaign import Adjudicated, ComparisonAdjudicated, State
    from probeval.web.site import Site

__all__ = ["AdjudicationPage"]


@dataclass(frozen=True, eq=False)
class AdjudicationPage:
    """The handlers of adjudication.

    Parameters
    ----------
    site
        The shared objects of all pages.
    """

    site: Site

    def adjudicator(self, request: Request) -> Assessor:
        """The person who sent the request; those who may not adjudicate are refused."""
        person = self.site.person(request)
        if not person.adjudicates:
            raise HTTPException(403, "This page is for those who settle disagreements.")
        return person

    async def adjudicate(self, request: Request) -> Response:
        """The page with a question: the one asked for, otherwise the first disagreement."""
        person = self.adjudicator(request)
        given = [request.query_params.get(name, "") for name in ("query", "doc", "other")]
        return await run_in_threadpool(self.page, "adjudicate.html", person, _question(*given))

    async def settle(self, request: Request) -> Response:
        """Settle a question; show the next one."""
        person = self.adjudicator(request)
        form = await self.site.form(request, person)
        about = form.comparison if form.is_comparison else form.pair

        def run() -> Response:
            following = next_question(undecided_questions(self.site.campaign.state), _question(*about))
            token, campaign = form.token(person, "\0".join(["/settle", *about])), self.site.campaign
            if form.is_comparison:
                choice, relevant = form.choice
                settle = partial(campaign.adjudicate_comparison, person.name, *form.comparison, choice)
                settle(relevant=relevant, reason=form["text"], token=token)
            else:
                campaign.adjudicate(person.name, *form.pair, form.grade, reason=form["text"], token=token)
            if "x-part" in request.headers:
                return self.page("case.html", person, following, notice="Settled.")
            return RedirectResponse("/adjudicate" if following is None else address(following), 303)

        return await run_writing(run)

    def page(self, template: str, person: Assessor, asked: Question | None, notice: str = "") -> Response:
        """The page, or the part of it that changes."""
        state, campaign = self.site.campaign.state, self.site.campaign
        question, waiting = self._shown(state, asked), undecided_questions(state)
        last = _last_settled(state, person)
        query, *docs = question or ("",)
        pairs = [(query, doc) for doc in docs]
        following = None if question is None else next_question(waiting, question)
        text = state.texts.get(query, "")
        settled = None if question is None else settled_answer(state, question)
        return self.site.render(
            template,
            person,
            question=question,
            query=query,
            docs=docs,
            query_text=text,
            **shown_document(self.site.documents.get(docs[0]) if docs else None, text),
            sides=shown_sides(docs, self.site.documents, text),
            numbers=False,
            follow_up=state.settings.follow_up,
            has_documents=bool(self.site.documents),
            guideline=state.guideline,
            query_guideline=state.query_guideline(query),
            topic="",
            votes=[] if question is None else votes(state, question),
            settled=settled,
            settled_words=("", "") if settled is None else answer_words(settled, left=docs[0]),
            comments=[comment for pair in pairs for comment in state.comments.get(pair, ())],
            flags=[flag for pair in pairs for flag in state.flags.get(pair, ())],
            skips=[] if question is None else state.skipped.get(question, ()),
            place=waiting.index(question) + 1 if question in waiting else None,
            waiting=len(waiting),
            following=None if following is None else address(following),
            last=last,
            last_words=("", "") if last is None else answer_words(last),
            last_docs=() if last is None else docs_of(last),
            last_address=None if last is None else address(_question(last.query, *docs_of(last))),
            scale=campaign.scale,
            grades=grade_buttons(campaign.scale, state.settings.grade_words),
            grade_words=state.settings.grade_words,
            request=secrets.token_hex(16),
            notice=notice,
        )

    def _shown(self, state: State, asked: Question | None) -> Question | None:
        """The question asked for if it has an answer or a flag, otherwise the first disagreement; None without any."""
        if asked is not None and (state.given(asked) or settled_answer(state, asked) or asked in state.flags):
            return asked
        return next(iter(undecided_questions(state)), None)


def undecided_questions(state: State) -> list[Question]:
    """The questions on which assessors differ: grades, the widest disagreement first, then comparisons."""
    return [*state.disagreements, *state.contested]


class Vote(NamedTuple):
    """The latest answer of an assessor, in words: where the first document is on the left, and which are relevant."""

    answer: Judged | Compared
    words: Words
    relevant: str


def votes(state: State, question: Question) -> list[Vote]:
    """Each assessor's latest answer; the lowest grade first."""
    latest = {answer.by: answer for answer in state.given(question)}
    shown = [Vote(each, answer_words(each, left=question[1]), relevant_words(each)) for each in latest.values()]
    return sorted(shown, key=lambda vote: (getattr(vote.answer, "grade", 0.0), vote.words, vote.answer.by))


def settled_answer(state: State, question: Question) -> Adjudicated | ComparisonAdjudicated | None:
    """The answer that settles a question, if there is one."""
    return state.settled.get(question) if len(question) > 2 else state.adjudicated.get((question[0], question[1]))


def _last_settled(state: State, person: Assessor) -> Adjudicated | ComparisonAdjudicated | None:
    settled: list[Adjudicated | ComparisonAdjudicated] = [*state.adjudicated.values(), *state.settled.values()]
    return max((each for each in settled if each.by == person.name), default=None, key=lambda each: each.number)


def _question(query: str, doc: str, other: str = "") -> Question:
    return comparison(query, doc, other) if other else (query, doc)


def address(question: Question) -> str:
    """The address of the page with this question.

    >>> address(("q1", "a&b")), address(("q1", "a", "b"))
    ('/adjudicate?query=q1&doc=a%26b', '/adjudicate?query=q1&doc=a&other=b')
    """
    return f"/adjudicate?{urlencode(dict(zip(('query', 'doc', 'other'), question, strict=False)))}"


def next_question(waiting: list[Question], question: Question) -> Question | None:
    """The disagreement after this one, from the last one back to the first; None if there is no other.

    >>> next_question([("q1", "a"), ("q1", "b")], ("q1", "b"))
    ('q1', 'a')
    >>> next_question([("q1", "a")], ("q1", "a"))
    """
    others = [each for each in waiting if each != question]
    at = waiting.index(question) if question in waiting else 0
    return others[at % len(others)] if others else None
