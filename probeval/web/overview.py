"""The owner's page: what to do next, confidence, ranking, queries, assessors, export."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from probeval.campaign import Status, export_formats
from probeval.campaign.assessors import comparer_sentences, quality_sentences, user_sentences
from probeval.campaign.questions import graded
from probeval.campaign.status import day_of, error_sentence
from probeval.web.adjudication import address, votes
from probeval.web.pictures import intervals

if TYPE_CHECKING:
    from probeval.web.entry import Assessor
    from probeval.web.site import Site

__all__ = ["OverviewPage"]

MAX_LISTED = 50  # disagreements and flags
MAX_REASONS = 12  # of skips
SURPRISING = 0.05  # the largest probability of a grade, or of one further off, that is shown
MOST_ADVICE = 3  # sentences
MINUTE, HOUR, DAY = 60.0, 3600.0, 24 * 3600.0


@dataclass(frozen=True, eq=False)
class OverviewPage:
    """The handlers of the owner's page.

    Parameters
    ----------
    site
        The shared objects of all pages.
    """

    site: Site

    async def overview(self, request: Request) -> Response:
        """Progress and ranking; for the owner also queries, assessors, disagreements and exports."""
        person = self.site.person(request) if self.site.show_ranking else self.site.owner(request)
        template = "standing.html" if "x-part" in request.headers else "overview.html"
        return await run_in_threadpool(self.page, template, person)

    def page(self, template: str, person: Assessor) -> Response:
        """The page, or the part of it that changes."""
        state = self.site.campaign.state
        standing = self.site.standing(person, state)
        snapshot, status = standing["snapshot"], standing["standing"].status
        return self.site.render(
            template,
            person,
            intervals=intervals(() if snapshot is None else snapshot.systems),
            advice=status.advice[:MOST_ADVICE],
            queries=sorted(status.queries, key=lambda each: (-_known(each.uncertainty), each.query)),
            most_uncertain=max((_known(each.uncertainty) for each in status.queries), default=0.0),
            last_seen=last_seen(status),
            checked=[share for share in status.assessors if share.gold or share.repeats],
            quality=[*quality_sentences(status.assessors)],
            errors=error_sentence(status),
            comparing=[*comparer_sentences(status.comparers)],
            trapped=[*user_sentences(status.users, status.gold_name)],
            disagreements=[
                (question, address(question), sorted(votes(state, question), key=lambda vote: vote.answer.by))
                for question in (state.disagreements[:MAX_LISTED] if person.owner else ())
            ],
            flags=self._flags(person),
            surprising=[
                (each, address(question := graded(each.query, each.doc)), sorted(state.latest(question)))
                for each in (() if snapshot is None or snapshot.surprising is None else snapshot.surprising.grades)
                if each.tail <= SURPRISING
            ],
            skip_counts=self._skips(person),
            exports=export_formats().values(),
            **standing,
        )

    def _flags(self, person: Assessor) -> list[tuple[Any, str]]:
        state = self.site.campaign.state
        flags = [flag for each in state.flags.values() for flag in each] if person.owner else []
        return [(flag, address(graded(*flag.pair))) for flag in flags[-MAX_LISTED:]]

    def _skips(self, person: Assessor) -> list[tuple[str, int]]:
        """The most frequent reasons of skips, with their numbers; all others as one."""
        skipped = self.site.campaign.state.skipped.values() if person.owner else ()
        counts = Counter(skip.reason or "no reason given" for each in skipped for skip in each).most_common()
        others = sum(n for _, n in counts[MAX_REASONS:])
        return counts[:MAX_REASONS] + ([("others", others)] if others else [])

    async def export(self, request: Request) -> Response:
        """The judgments, or the log, as a file."""
        self.site.owner(request)
        known = export_formats()
        wanted = known.get(request.path_params["format"])
        if wanted is None:
            raise HTTPException(404, f"Unknown export format: expected one of {', '.join(known)}.")
        text = await run_in_threadpool(self.site.campaign.export, wanted.name)
        disposition = f'attachment; filename="{wanted.file_name}"'
        return Response(text, media_type=wanted.media_type, headers={"content-disposition": disposition})


def last_seen(status: Status) -> dict[str, str]:
    """When each assessor judged or compared documents last, in words."""
    last = {share.assessor: share.last for share in status.assessors}
    for each in (*status.comparers, *status.users):
        known = last.get(each.assessor, each.last)
        last[each.assessor] = each.last if known != known else max(known, each.last)
    return {name: _ago(moment, status.time) for name, moment in last.items()}


def _ago(moment: float, now: float) -> str:
    since = now - moment
    if since != since:
        return "-"
    if since < MINUTE:
        return "now"
    if since < HOUR:
        return f"{since / MINUTE:.0f} min ago"
    return f"{since / HOUR:.0f} h ago" if since < DAY else day_of(moment, now)


def _known(value: float) -> float:
    return 0.0 if value != value else value
