"""``probeval campaign assessors``: who may sign in to the judging page, by links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import pandas as pd
import typer

from probeval.cli.commands import Output, Printed
from probeval.cli.options import OutputFormat
from probeval.cli.output import echo
from probeval.cli.stores import CampaignPlace, OwnersPlace
from probeval.errors import ProbevalError, did_you_mean
from probeval.records import About

if TYPE_CHECKING:
    from probeval.campaign import Role

__all__ = ["assessors"]

assessors = typer.Typer(help="Invite assessors by links, list them, and revoke invitations.")

UNITS = {"h": 3600.0, "d": 24 * 3600.0, "w": 7 * 24 * 3600.0}
ROLES = ("assessor", "adjudicator", "owner")

PersonName = Annotated[str, About("The name of the assessor.", metavar="NAME", argument=True)]


@dataclass(frozen=True)
class Invitation:
    """An invitation of an assessor."""

    TIMES = ("until",)

    assessor: str
    role: Role
    until: Annotated[float | None, "Its end in seconds since 1970; null for never."]
    link: Annotated[str, "The link to sign in with."]


@assessors.command("add")
def add(
    place: OwnersPlace,
    assessor: PersonName,
    output: Output,
    role: Annotated[
        str,
        About("assessor; adjudicator: also settles disagreements; owner: may do all.", metavar="ROLE"),
    ] = "assessor",
    expires: Annotated[str, About("How long the link works: 12h, 30d, 8w, or never.", metavar="TIME")] = "30d",
    base_url: Annotated[
        str, About("The address of the judging page for browsers.", metavar="URL")
    ] = "http://127.0.0.1:8517",
) -> Invitation | None:
    """Invite an assessor: prints a link to sign in with, once. The store keeps a hash of it only.

    Example: probeval campaign assessors add mine.db ann --base-url https://judge.example.org
    """
    if role not in ROLES:
        raise ProbevalError(f"The role must be one of {', '.join(ROLES)}, got {role!r}.{did_you_mean(role, ROLES)}")
    address, seconds = _base(base_url), _seconds(expires)
    with place.open() as opened:
        event, token = opened.people.invite(place.by, assessor, role=role, seconds=seconds)
    link = f"{address}/join/{token}"
    lasts = "" if event.until is None else f", until {pd.to_datetime(round(event.until), unit='s')} UTC"
    output.messages.say(
        f"Give this link to {event.assessor} alone: it signs in as {event.role}{lasts}, and is not shown again."
    )
    if output.output_format is OutputFormat.table:  # alone, to be copied
        echo(link)
        return None
    return Invitation(event.assessor, event.role, event.until, link)


@dataclass(frozen=True)
class InvitedPerson:
    """A person who may sign in."""

    TIMES = ("invited", "until", "signed_in")

    assessor: str
    role: Role
    invited: Annotated[float, "The time of the invitation, in seconds since 1970."]
    until: Annotated[float | None, "Its end; null for never."]
    signed_in: Annotated[float | None, "The time of the last sign-in; null for none."]


@assessors.command("list")
def list_assessors(place: CampaignPlace, output: Output) -> tuple[InvitedPerson, ...]:
    """List who is invited, with what role, until when, and when they last signed in.

    Example: probeval campaign assessors list mine.db
    """
    with place.open(read_only=True) as opened:
        access = opened.people.access
    found = []
    for assessor, invited in sorted(access.invited.items()):
        times = [session.time for session in access.sessions.values() if session.by == assessor]
        last = max(times, default=None)
        found.append(InvitedPerson(assessor, invited.role, invited.time, invited.until, last))
    if not found:
        output.messages.say("No one is invited. Invite someone with probeval campaign assessors add STORE NAME")
    return tuple(found)


@dataclass(frozen=True)
class RevokedInvitation:
    """A revoked invitation."""

    number: int
    assessor: str
    by: str


@assessors.command("revoke")
def revoke(place: OwnersPlace, assessor: PersonName, output: Printed) -> RevokedInvitation:
    """Revoke an invitation: the link and all sessions of the assessor end at once. Judgments stay.

    Example: probeval campaign assessors revoke mine.db ann
    """
    with place.open() as opened:
        event = opened.people.revoke(place.by, assessor)
    return RevokedInvitation(event.number, event.assessor, event.by)


def _seconds(text: str) -> float | None:
    """The length of a time such as ``30d``; None for never."""
    if text == "never":
        return None
    found = re.fullmatch(r"([1-9][0-9]{0,3})([hdw])", text)
    if found is None:
        raise ProbevalError(f"--expires takes hours, days or weeks such as 12h, 30d or 8w, or never; got {text!r}.")
    return int(found[1]) * UNITS[found[2]]


def _base(text: str) -> str:
    """The address of a site, without a final slash."""
    try:
        parts = urlsplit(text)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
        fits = fits and parts.path in ("", "/") and "@" not in parts.netloc
    except ValueError:
        fits = False
    if not fits:
        raise ProbevalError(f"--base-url takes an address such as https://judge.example.org, got {text!r}.")
    return text.rstrip("/")
