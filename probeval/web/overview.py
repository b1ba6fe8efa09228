"""The owner's page: progress, ranking, assessors, export."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from probeval.campaign import export_formats
from probeval.web.judging import grade_buttons
from probeval.web.pictures import intervals

if TYPE_CHECKING:
    from probeval.web.site import Site

__all__ = ["OverviewPage"]


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
        """Progress, ranking, assessors and disagreements."""
        person = self.site.person(request) if self.site.show_ranking else self.site.owner(request)

        def page() -> Response:
            self.site.board.look()
            state = self.site.campaign.state
            standing = self.site.standing(person, state, self.site.tally.own(person.name)[0])
            snapshot = standing["snapshot"]
            return self.site.render(
                "overview.html",
                person,
                intervals=intervals(() if snapshot is None else snapshot.systems),
                disagreements=[
                    (pair, sorted(state.latest(pair).values(), key=lambda j: j.by), state.comments.get(pair, ()))
                    for pair in (state.disagreements[:50] if person.owner else ())
                ],
                flags=[flag for flags in state.flags.values() for flag in flags][-50:] if person.owner else [],
                scale=self.site.campaign.scale,
                grades=grade_buttons(self.site.campaign.scale),
                exports=export_formats().values(),
                request=secrets.token_hex(16),
                **standing,
            )

        return await run_in_threadpool(page)

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
