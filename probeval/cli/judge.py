"""``probeval judge``: the judging page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from probeval.cli.assessor_texts import no_texts
from probeval.cli.documents import AddressDocument
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
            "--host", metavar="HOST", help="The address to listen on; other than localhost needs --assessor-file."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes a free one.")] = 8517,
    assessor_file: Annotated[
        Path | None,
        typer.Option(
            "--assessor-file", metavar="FILE", help="A table of assessors: assessor, token and optionally role."
        ),
    ] = None,
    assessor: Annotated[
        str, typer.Option("--assessor", metavar="NAME", help="Your name, without an assessor file.")
    ] = "owner",
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
        from probeval.web import Roster, read_documents, read_roster, serve
        from probeval.web.server import is_loopback
    except ImportError as error:
        raise ProbevalError(f"The judging page needs {error.name}: pip install 'probeval[web]'.") from None

    talk = Talk(quiet=quiet)
    if (certificate is None) != (key is None):
        raise ProbevalError("HTTPS needs both --certificate and --key.")
    for file in filter(None, (certificate, key)):
        if not file.is_file():
            raise ProbevalError(f"{file}: no such file.")
    if assessor_file is None and not is_loopback(host):
        raise ProbevalError(f"{host}: every assessor outside this machine needs a token. Give an --assessor-file.")
    roster = Roster.local(assessor) if assessor_file is None else read_roster(assessor_file)
    with opened_campaign(store, name) as campaign:
        documents = None if docs is None else read_documents(docs, only=frozenset(campaign.pool.docs))
        if documents is not None:
            talk(f"{len(documents):,} of {len(campaign.pool.docs):,} documents of the pool are in {docs}.")

        def ready(address: str) -> None:
            row: AddressDocument = {"url": address, "campaign": campaign.setup.name}
            write(pd.DataFrame([row]), row, output_format)
            if documents is None:
                talk("No document texts: assessors will see ids only. Add them with --docs FILE")
            if not campaign.state.texts:
                talk(no_texts(store))
            talk("Open this address in a browser. Ctrl+C stops the server.")

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
