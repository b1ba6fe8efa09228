"""The adjudication page: a question on which assessors differ, with its documents, and the answer that settles it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from probeval.campaign.questions import GRADE, Question, Words, kind_of
from probeval.web.entry import Assessor
from probeval.web.questions import places_of, template_of

if TYPE_CHECKING:
    from probeval.campaign import Answered, Settled, State
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
        person, asked = self.adjudicator(request), question_at(request.query_params)
        return await run_in_threadpool(lambda: self.page(person, asked, whole=True))

    async def settle(self, request: Request) -> Response:
        """Settle a question; show the next one."""
        person = self.adjudicator(request)
        form = await self.site.form(request, person)
        question = form.question

        def run() -> Response:
            following = next_question(self.site.campaign.state.disagreements, question)
            token = form.token(person, "\0".join(["/settle", question.kind, *question.names]))
            self.site.campaign.settle(
                person.name,
                question,
                shown=form.documents,
                reason=form["text"],
                token=token,
                **form.kind.parse(form),
            )
            if "x-part" in request.headers:
                return self.page(person, following, notice="Settled.")
            return RedirectResponse("/adjudicate" if following is None else address(following), 303)

        return await self.site.write(run)

    def page(self, person: Assessor, asked: Question | None, notice: str = "", *, whole: bool = False) -> Response:
        """The part of the page that changes from question to question, or the whole page."""
        state, material = self.site.campaign.state, self.site.campaign.known_material
        question, waiting = _shown(state, asked), state.disagreements
        kind = state.settings.kinds[0] if question is None else kind_of(question.kind)
        last, query = _last_settled(state, person), "" if question is None else question.query
        text = state.texts.get(query, "")
        following = None if question is None else next_question(waiting, question)
        settled = None if question is None else state.settled.get(question)
        pairs = [] if question is None else question.pairs
        part = template_of(kind)
        return self.site.render(
            "adjudicate.html" if whole else part,
            person,
            part=part,
            frame="case.html",
            action="/settle",
            question=question,
            query=query,
            query_text=text,
            places=[]
            if question is None
            else places_of(kind, question.documents, material=material, documents=self.site.documents, query=text),
            has_documents=bool(self.site.documents),
            guideline=state.guideline,
            query_guideline=state.query_guideline(query),
            opened=False,
            topic="",
            votes=[] if question is None else votes(state, question),
            settled=settled,
            settled_words=("", "")
            if settled is None or question is None
            else kind.words(settled, question.documents[0]),
            comments=[comment for pair in pairs for comment in state.comments.get(pair, ())],
            flags=[flag for pair in pairs for flag in state.flags.get(pair, ())],
            skips=[] if question is None else state.skipped.get(question, ()),
            place=waiting.index(question) + 1 if question in waiting else None,
            waiting=len(waiting),
            following=None if following is None else address(following),
            last=last,
            last_words=("", "") if last is None else last.asked.words(last),
            last_address=None if last is None else address(last.question),
            request=secrets.token_hex(16),
            notice=notice,
            **kind.page(state, material),
        )


def _shown(state: State, asked: Question | None) -> Question | None:
    """The question asked for if it has an answer or a flag, otherwise the first disagreement; None without any."""
    if asked is not None and (state.is_known(asked) or any(pair in state.flags for pair in asked.pairs)):
        return asked
    return next(iter(state.disagreements), None)


class Vote(NamedTuple):
    """The latest answer of an assessor, in words: where the documents are as they are now, and what else it says."""

    answer: Answered
    words: Words
    more: str


def votes(state: State, question: Question) -> list[Vote]:
    """Each assessor's latest answer, in the order of what they say: the lowest grade first."""
    kind, first = kind_of(question.kind), question.documents[0]
    latest = sorted(state.latest(question).values(), key=lambda answer: (kind.order(answer), answer.by))
    return [Vote(answer, kind.words(answer, first), kind.more_words(answer)) for answer in latest]


def _last_settled(state: State, person: Assessor) -> Settled | None:
    mine = (each for each in state.settled.values() if each.by == person.name)
    return max(mine, default=None, key=lambda each: each.number)


def question_at(values: Mapping[str, str]) -> Question | None:
    """The question that an address or a form names; None if it names no documents."""
    kind = kind_of(values.get("kind") or GRADE)
    documents = [values.get(place, "") for place in kind.places]
    return kind.question(values.get("query", ""), documents) if all(documents) else None


def address(question: Question) -> str:
    """The address of the page with this question.

    >>> address(Question("q1", ("a&b",))), address(Question("q1", ("a", "b"), "comparison"))
    ('/adjudicate?query=q1&doc=a%26b', '/adjudicate?kind=comparison&query=q1&left=a&right=b')
    """
    kind = {} if question.kind == GRADE else {"kind": question.kind}
    places = dict(zip(kind_of(question.kind).places, question.documents, strict=True))
    return f"/adjudicate?{urlencode({**kind, 'query': question.query, **places})}"


def next_question(waiting: list[Question], question: Question) -> Question | None:
    """The disagreement after this one, from the last one back to the first; None if there is no other.

    >>> one, other = Question("q1", ("a",)), Question("q1", ("b",))
    >>> next_question([one, other], other) == one, next_question([one], one)
    (True, None)
    """
    others = [each for each in waiting if each != question]
    at = waiting.index(question) if question in waiting else 0
    return others[at % len(others)] if others else None
