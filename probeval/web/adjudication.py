"""Adjudication: grades of pairs on which assessors differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

if TYPE_CHECKING:
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

    async def settle(self, request: Request) -> Response:
        """Settle a disagreement."""
        person = self.site.owner(request)
        form = await self.site.form(request, person)
        settle, token = self.site.campaign.adjudicate, form.token(person, "\0".join(["/settle", *form.pair]))
        await run_in_threadpool(settle, person.name, *form.pair, form.grade, token=token)
        return RedirectResponse("/overview", 303)
