"""``probeval judge``: the judging page."""

from __future__ import annotations

from typing import Annotated

from probeval.cli.assessor_texts import no_texts
from probeval.cli.options import Format, OutputFormat, Quiet
from probeval.cli.output import Talk
from probeval.cli.serving import (
    AssessorFile,
    Certificate,
    Host,
    PageDocs,
    Port,
    PrivateKey,
    PublicHosts,
    announce,
    check_https,
    page_documents,
    roster_of,
)
from probeval.cli.stores import Name, StorePlace, opened_campaign
from probeval.errors import ProbevalError
from probeval.records import About

__all__ = ["judge"]


def judge(
    store: StorePlace,
    docs: PageDocs = None,
    host: Host = "127.0.0.1",
    port: Port = 8517,
    assessor_file: AssessorFile = None,
    assessor: Annotated[
        str | None,
        About("Judge alone under this name, on this machine only.", metavar="NAME"),
    ] = None,
    public_host: PublicHosts = None,
    show_ranking: Annotated[bool, About("Show the ranking to assessors; it may bias them.")] = False,
    certificate: Certificate = None,
    key: PrivateKey = None,
    name: Name = None,
    output_format: Format = OutputFormat.table,
    quiet: Quiet = False,
) -> None:
    """Serve the judging page until Ctrl+C: for one person on this machine, or for a team with tokens.

    Example: probeval judge mine.db --docs documents.jsonl
    """
    try:
        from probeval.web import serve
    except ImportError as error:
        raise ProbevalError(f"The judging page needs {error.name}: pip install 'probeval[web]'.") from None

    talk = Talk(quiet=quiet)
    check_https(certificate, key)
    with opened_campaign(store, name) as campaign:
        roster = roster_of(campaign, assessor=assessor, assessor_file=assessor_file, host=host, talk=talk)
        documents = page_documents(docs, lambda: campaign.docs, "the pool", talk=talk)
        sign_in = "Everyone signs in with their link" if roster.alone is None else None

        def ready(address: str) -> None:
            hints = []
            if documents is None:
                hints.append("No document texts: assessors will see ids only. Add them with --docs FILE")
            if not campaign.state.texts:
                hints.append(no_texts(store))
            announce(address, campaign.setup.name, output_format=output_format, talk=talk, hints=hints, sign_in=sign_in)

        serve(
            campaign,
            roster=roster,
            documents=documents,
            host=host,
            port=port,
            names=public_host or (),
            show_ranking=show_ranking,
            certificate=certificate,
            key=key,
            ready=ready,
            tell=talk.say,
        )
