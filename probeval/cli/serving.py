"""Options of the verbs that serve pages: the judging page, and the page of a study with users."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pandas as pd

from probeval.cli.campaign_documents import AddressDocument
from probeval.cli.options import OutputFormat
from probeval.cli.output import Talk, write
from probeval.errors import ProbevalError
from probeval.records import About

if TYPE_CHECKING:
    from probeval.campaign.opened import Opened
    from probeval.web import PoolDocuments
    from probeval.web.assessors import Roster

__all__ = [
    "AssessorFile",
    "Certificate",
    "Host",
    "PageDocs",
    "Port",
    "PrivateKey",
    "PublicHosts",
    "announce",
    "check_https",
    "page_documents",
    "roster_of",
]

PageDocs = Annotated[
    Path | None,
    About(
        "A table of documents: doc and text, optionally title, link, audio, image; or irds:ID.",
        metavar="FILE",
    ),
]
Host = Annotated[
    str,
    About("The address to listen on; other than localhost needs invited assessors.", metavar="HOST"),
]
Port = Annotated[int, About("The port; 0 takes a free one.", least=0, most=65535)]
AssessorFile = Annotated[
    Path | None,
    About("Invite those of a table: assessor, token and optionally role.", metavar="FILE"),
]
PublicHosts = Annotated[
    list[str] | None,
    About("A host name of this server for browsers.", metavar="NAME", kind=str, many=True),
]
Certificate = Annotated[Path | None, About("A certificate, for HTTPS.", metavar="FILE")]
PrivateKey = Annotated[Path | None, About("The private key of the certificate.", metavar="FILE")]


def page_documents(
    docs: Path | None, shown: Callable[[], frozenset[str]], place: str, *, talk: Talk
) -> PoolDocuments | None:
    """The texts of the documents that a page shows, those of this place; None without a file."""
    from probeval.web import PoolDocuments

    if docs is None:
        return None
    documents = PoolDocuments(docs, shown)
    talk.say(f"{len(documents):,} of {len(shown()):,} documents of {place} are in {docs}.")
    return documents


def announce(
    address: str,
    name: str,
    *,
    output_format: OutputFormat,
    talk: Talk,
    hints: Iterable[str] = (),
    sign_in: str | None = None,
) -> None:
    """Print the address of a page, then hints, and the way people sign in unless one person is alone."""
    row: AddressDocument = {"url": address, "campaign": name}
    write(pd.DataFrame([row]), row, output_format)
    for hint in hints:
        talk.say(hint)
    talk.say("Open this address in a browser. Ctrl+C stops the server.")
    if sign_in is not None:
        talk.say(f"{sign_in}: probeval campaign assessors add STORE NAME prints one.")


def check_https(certificate: Path | None, key: Path | None) -> None:
    """Raise an error unless both files of HTTPS are given and exist, or neither is given."""
    if (certificate is None) != (key is None):
        raise ProbevalError("HTTPS needs both --certificate and --key.")
    for file in filter(None, (certificate, key)):
        if not file.is_file():
            raise ProbevalError(f"{file}: no such file.")


def roster_of(joined: Opened, *, assessor: str | None, assessor_file: Path | None, host: str, talk: Talk) -> Roster:
    """The people who may use a page: those invited, or one person on this machine.

    Parameters
    ----------
    joined
        The campaign or the study.
    assessor
        The only user.
    assessor_file
        A table of people to invite.
    host
        The address to listen on.
    talk
        Receives warnings: tokens that others can read, and the names of people whose tokens cannot be used.
    """
    from probeval.web import Roster, read_assessors
    from probeval.web.server import is_loopback

    if assessor is not None and assessor_file is not None:
        raise ProbevalError("Give --assessor to judge alone, or --assessor-file for a team, not both.")
    people = [] if assessor_file is None else read_assessors(assessor_file)
    if assessor_file is not None and os.name == "posix" and assessor_file.stat().st_mode & 0o044:
        talk.say(f"{assessor_file}: other users of this machine can read its tokens. Run chmod 600 {assessor_file}.")
    for revoked in joined.people.add("owner", people) if people else []:
        talk.say(f"{revoked}: the token in {assessor_file} was revoked or belongs to another person. Give a new one.")
    team = assessor is None and bool(joined.people.access.tokens)
    if not team and not is_loopback(host):
        raise ProbevalError(
            f"{host}: every assessor outside this machine needs a token. Invite them with probeval campaign "
            "assessors add, or give an --assessor-file."
        )
    return Roster(joined, alone=None if team else assessor or "owner")
