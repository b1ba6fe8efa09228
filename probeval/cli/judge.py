"""``probeval judge``: the judging page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from probeval.cli.assessor_texts import no_texts
from probeval.cli.campaign_documents import AddressDocument
from probeval.cli.options import Format, OutputFormat, Quiet, Seed
from probeval.cli.output import Talk, write
from probeval.cli.stores import Name, StorePlace, opened_campaign
from probeval.errors import ProbevalError

__all__ = ["judge"]


def judge(
    store: StorePlace,
    docs: Annotated[
        Path | None,
        typer.Option(
            "--docs",
            metavar="FILE",
            help="A table of documents: doc and text, optionally title, link, audio, image; or irds:ID.",
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            "--host", metavar="HOST", help="The address to listen on; other than localhost needs invited assessors."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes a free one.")] = 8517,
    assessor_file: Annotated[
        Path | None,
        typer.Option(
            "--assessor-file", metavar="FILE", help="Invite those of a table: assessor, token and optionally role."
        ),
    ] = None,
    assessor: Annotated[
        str | None,
        typer.Option("--assessor", metavar="NAME", help="Judge alone under this name, on this machine only."),
    ] = None,
    public_host: Annotated[
        list[str] | None,
        typer.Option("--public-host", metavar="NAME", help="A host name of this server for browsers; may be repeated."),
    ] = None,
    show_ranking: Annotated[
        bool, typer.Option("--show-ranking", help="Show the ranking to assessors; it may bias them.")
    ] = False,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", metavar="FILE", help="A certificate, for HTTPS.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="The private key of the certificate.")
    ] = None,
    name: Name = None,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Serve the judging page until Ctrl+C: for one person on this machine, or for a team with tokens.

    Example: probeval judge mine.db --docs documents.jsonl
    """
    try:
        from probeval.web import PoolDocuments, Roster, read_assessors, serve
        from probeval.web.server import is_loopback
    except ImportError as error:
        raise ProbevalError(f"The judging page needs {error.name}: pip install 'probeval[web]'.") from None

    talk = Talk(quiet=quiet)
    if (certificate is None) != (key is None):
        raise ProbevalError("HTTPS needs both --certificate and --key.")
    for file in filter(None, (certificate, key)):
        if not file.is_file():
            raise ProbevalError(f"{file}: no such file.")
    if assessor is not None and assessor_file is not None:
        raise ProbevalError("Give --assessor to judge alone, or --assessor-file for a team, not both.")
    people = [] if assessor_file is None else read_assessors(assessor_file)
    with opened_campaign(store, name) as campaign:
        for revoked in campaign.people.add("owner", people) if people else []:
            talk(f"{revoked}: the token in {assessor_file} was revoked or belongs to another person. Give a new one.")
        team = assessor is None and bool(campaign.people.access.tokens)
        if not team and not is_loopback(host):
            raise ProbevalError(
                f"{host}: every assessor outside this machine needs a token. Invite them with probeval campaign "
                "assessors add, or give an --assessor-file."
            )
        roster = Roster(campaign, alone=None if team else assessor or "owner")
        documents = None if docs is None else PoolDocuments(docs, lambda: campaign.docs)
        if documents is not None:
            talk(f"{len(documents):,} of {len(campaign.docs):,} documents of the pool are in {docs}.")

        def ready(address: str) -> None:
            row: AddressDocument = {"url": address, "campaign": campaign.setup.name}
            write(pd.DataFrame([row]), row, output_format)
            if documents is None:
                talk("No document texts: assessors will see ids only. Add them with --docs FILE")
            if not campaign.state.texts:
                talk(no_texts(store))
            talk("Open this address in a browser. Ctrl+C stops the server.")
            if team:
                talk("Everyone signs in with their link: probeval campaign assessors add STORE NAME prints one.")

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
            tell=talk,
        )
