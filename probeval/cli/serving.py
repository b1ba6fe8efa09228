"""Where a page is served, to whom, and with which documents."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from probeval.cli.commands import Output
from probeval.cli.output import Messages, write_result
from probeval.errors import ProbevalError
from probeval.records import About

if TYPE_CHECKING:
    from probeval.campaign import Campaign
    from probeval.web import PoolDocuments
    from probeval.web.entry import Roster

__all__ = ["PageAddress", "PageInputs", "announce"]


@dataclass(frozen=True, kw_only=True)
class PageInputs:
    """Where a page is served, to whom, and with which documents."""

    docs: Annotated[
        Path | None,
        About("A table of documents: doc and text, optionally title, link, audio, image; or irds:ID.", metavar="FILE"),
    ] = None
    host: Annotated[
        str, About("The address to listen on; other than localhost needs invited assessors.", metavar="HOST")
    ] = "127.0.0.1"
    port: Annotated[int, About("The port; 0 takes a free one.", least=0, most=65535)] = 8517
    assessor_file: Annotated[
        Path | None, About("Invite those of a table: assessor, token and optionally role.", metavar="FILE")
    ] = None
    assessor: Annotated[str | None, About("Work alone under this name, on this machine only.", metavar="NAME")] = None
    public_host: Annotated[
        Sequence[str], About("A host name of this server for browsers.", metavar="NAME", kind=str, many=True)
    ] = ()
    certificate: Annotated[Path | None, About("A certificate, for HTTPS.", metavar="FILE")] = None
    key: Annotated[Path | None, About("The private key of the certificate.", metavar="FILE")] = None

    @property
    def address(self) -> dict[str, Any]:
        """Where the page is served, as the server takes it; raises an error unless the files of HTTPS exist."""
        if (self.certificate is None) != (self.key is None):
            raise ProbevalError("HTTPS needs both --certificate and --key.")
        for file in filter(None, (self.certificate, self.key)):
            if not file.is_file():
                raise ProbevalError(f"{file}: no such file.")
        return {
            "host": self.host,
            "port": self.port,
            "names": self.public_host,
            "certificate": self.certificate,
            "key": self.key,
        }

    def documents(self, shown: Callable[[], frozenset[str]], *, messages: Messages) -> PoolDocuments | None:
        """The texts of the documents that a page shows; None without a file."""
        from probeval.web import PoolDocuments

        if self.docs is None:
            return None
        documents = PoolDocuments(self.docs, shown)
        messages.say(f"{len(documents):,} of {len(shown()):,} documents to show are in {self.docs}.")
        return documents

    def roster(self, campaign: Campaign, *, messages: Messages) -> Roster:
        """The people who may use the page of a campaign: those invited, or one person on this machine.

        Tokens that others can read, and people whose tokens cannot be used, are reported.
        """
        from probeval.web import Roster, read_assessors
        from probeval.web.server import is_loopback

        alone, file = self.assessor, self.assessor_file
        if alone is not None and file is not None:
            raise ProbevalError("Give --assessor to judge alone, or --assessor-file for a team, not both.")
        people = [] if file is None else read_assessors(file)
        if file is not None and os.name == "posix" and file.stat().st_mode & 0o044:
            messages.say(f"{file}: other users of this machine can read its tokens. Run chmod 600 {file}.")
        for revoked in campaign.people.add("owner", people) if people else []:
            messages.say(f"{revoked}: the token in {file} was revoked or belongs to another person. Give a new one.")
        team = alone is None and bool(campaign.people.access.tokens)
        if not team and not is_loopback(self.host):
            raise ProbevalError(
                f"{self.host}: every assessor outside this machine needs a token. Invite them with probeval campaign "
                "assessors add, or give an --assessor-file."
            )
        return Roster(campaign, alone=None if team else alone or "owner")


@dataclass(frozen=True)
class PageAddress:
    """The address of a page."""

    url: str
    campaign: Annotated[str, "The name of the campaign."]


def announce(address: str, name: str, *, output: Output, hints: Iterable[str] = (), sign_in: str | None = None) -> None:
    """Print the address of a page, then hints, and the way people sign in unless one person is alone."""
    write_result(PageAddress(address, name), output.output_format)
    for hint in hints:
        output.messages.say(hint)
    output.messages.say("Open this address in a browser. Ctrl+C stops the server.")
    if sign_in is not None:
        output.messages.say(f"{sign_in}: probeval campaign assessors add STORE NAME prints one.")
