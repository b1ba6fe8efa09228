"""``probeval judge``: the judging page."""

from __future__ import annotations

from typing import Annotated

from probeval.cli.assessor_texts import no_texts
from probeval.cli.commands import Output, verb
from probeval.cli.serving import PageAddress, PageInputs, announce
from probeval.cli.stores import CampaignPlace
from probeval.errors import ProbevalError
from probeval.records import About

__all__ = ["judge"]


@verb("Serve the judging page.")
def judge(
    place: CampaignPlace,
    page: PageInputs,
    output: Output,
    show_ranking: Annotated[bool, About("Show the ranking to assessors; it may bias them.")] = False,
) -> PageAddress | None:
    """Serve the judging page until Ctrl+C: for one person on this machine, or for a team with tokens.

    Example: probeval judge mine.db --docs documents.jsonl
    """
    try:
        from probeval.web import serve
    except ImportError as error:
        raise ProbevalError(f"The judging page needs {error.name}: pip install 'probeval[web]'.") from None

    messages, address = output.messages, page.address
    with place.open() as campaign:
        roster = page.roster(campaign, messages=messages)
        documents = page.documents(lambda: campaign.docs, messages=messages)
        sign_in = "Everyone signs in with their link" if roster.alone is None else None

        def ready(url: str) -> None:
            hints = []
            if documents is None:
                hints.append("No document texts: assessors will see ids only. Add them with --docs FILE")
            if not campaign.state.texts:
                hints.append(no_texts(place.store))
            announce(url, campaign.setup.name, output=output, hints=hints, sign_in=sign_in)

        serve(
            campaign,
            roster=roster,
            documents=documents,
            show_ranking=show_ranking,
            ready=ready,
            tell=messages.say,
            **address,
        )
    return None  # the address was printed when the page was ready
