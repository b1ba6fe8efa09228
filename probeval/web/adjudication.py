"""The adjudication page: a pair on which assessors differ, with its document, and the grade that settles it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from probeval.web.assessors import Assessor
from probeval.web.judging import grade_buttons, shown_document

if TYPE_CHECKING:
    from probeval.campaign import State
    from probeval.web.site import Site

__all__ = ["AdjudicationPage"]

Pair = tuple[str, str]


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
        """The page with a pair: the one asked for, otherwise the widest disagreement."""
        person = self.adjudicator(request)
        asked = request.query_params.get("query", ""), request.query_params.get("doc", "")
        return await run_in_threadpool(self.page, "adjudicate.html", person, asked)

    async def settle(self, request: Request) -> Response:
        """Settle a pair; show the next one."""
        person = self.adjudicator(request)
        form = await self.site.form(request, person)

        def run() -> Response:
            following = next_pair(self.site.campaign.state.disagreements, form.pair)
            token = form.token(person, "\0".join(["/settle", *form.pair]))
            self.site.campaign.adjudicate(person.name, *form.pair, form.grade, reason=form["text"], token=token)
            if "x-part" in request.headers:
                return self.page("case.html", person, following or ("", ""), notice="Settled.")
            return RedirectResponse("/adjudicate" if following is None else address(following), 303)

        return await run_in_threadpool(run)

    def page(self, template: str, person: Assessor, asked: Pair, notice: str = "") -> Response:
        """The page, or the part of it that changes."""
        state, campaign = self.site.campaign.state, self.site.campaign
        pair = self._shown(state, asked)
        waiting = state.disagreements
        last = max((a for a in state.adjudicated.values() if a.by == person.name), default=None, key=lambda a: a.number)
        judgments = [] if pair is None else sorted(state.latest(pair).values(), key=lambda j: (j.grade, j.by))
        following = None if pair is None else next_pair(waiting, pair)
        text = "" if pair is None else state.texts.get(pair[0], "")
        document = None if pair is None else self.site.documents.get(pair[1])
        return self.site.render(
            template,
            person,
            pair=pair,
            query_text=text,
            **shown_document(document, text),
            has_documents=bool(self.site.documents),
            guideline=state.guideline,
            query_guideline="" if pair is None else state.query_guideline(pair[0]),
            topic="",
            judgments=judgments,
            settled=None if pair is None else state.adjudicated.get(pair),
            comments=[] if pair is None else state.comments.get(pair, ()),
            flags=[] if pair is None else state.flags.get(pair, ()),
            skips=[] if pair is None else state.skipped.get(pair, ()),
            place=waiting.index(pair) + 1 if pair in waiting else None,
            waiting=len(waiting),
            following=None if following is None else address(following),
            last=last,
            last_address=None if last is None else address(last.pair),
            scale=campaign.scale,
            grades=grade_buttons(campaign.scale, state.settings.grade_words),
            grade_words=state.settings.grade_words,
            request=secrets.token_hex(16),
            notice=notice,
        )

    def _shown(self, state: State, asked: Pair) -> Pair | None:
        """The pair asked for if it is judged or flagged, otherwise the widest disagreement; None if there is none."""
        if asked in state.judged or asked in state.adjudicated or asked in state.flags:
            return asked
        return next(iter(state.disagreements), None)


def address(pair: Pair) -> str:
    """The address of the page with this pair.

    >>> address(("q1", "a&b"))
    '/adjudicate?query=q1&doc=a%26b'
    """
    return f"/adjudicate?{urlencode({'query': pair[0], 'doc': pair[1]})}"


def next_pair(waiting: list[Pair], pair: Pair) -> Pair | None:
    """The disagreement after this one, from the last one back to the first; None if there is no other.

    >>> next_pair([("q1", "a"), ("q1", "b")], ("q1", "b"))
    ('q1', 'a')
    >>> next_pair([("q1", "a")], ("q1", "a"))
    """
    others = [each for each in waiting if each != pair]
    at = waiting.index(pair) if pair in waiting else 0
    return others[at % len(others)] if others else None
