"""``probeval campaign assessors``: who may sign in to the judging page, by links."""

from __future__ import annotations

import re
from typing import Annotated, Any, cast
from urllib.parse import urlsplit

import pandas as pd
import typer

from probeval.cli.campaign_documents import InvitationDocument, PersonDocument, RevokedDocument
from probeval.cli.commands import Output, Printed
from probeval.cli.options import OutputFormat
from probeval.cli.output import echo, write
from probeval.cli.stores import OwnersPlace, Place
from probeval.errors import ProbevalError, did_you_mean
from probeval.records import About

__all__ = ["assessors"]

assessors = typer.Typer(help="Invite assessors by links, list them, and revoke invitations.")

UNITS = {"h": 3600.0, "d": 24 * 3600.0, "w": 7 * 24 * 3600.0}
ROLES = ("assessor", "adjudicator", "owner")

PersonName = Annotated[str, About("The name of the assessor.", metavar="NAME", argument=True)]


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
) -> None:
    """Invite an assessor: prints a link to sign in with, once. The store keeps a hash of it only.

    Example: probeval campaign assessors add mine.db ann --base-url https://judge.example.org
    """
    if role not in ROLES:
        raise ProbevalError(f"The role must be one of {', '.join(ROLES)}, got {role!r}.{did_you_mean(role, ROLES)}")
    address, seconds = _base(base_url), _seconds(expires)
    with place.open() as opened:
        event, token = opened.people.invite(place.by, assessor, role=role, seconds=seconds)
    link = f"{address}/join/{token}"
    row: InvitationDocument = {
        "assessor": event.assessor,
        "role": cast("Any", event.role),
        "until": event.until,
        "link": link,
    }
    if output.output_format is OutputFormat.table:
        echo(link)
    else:
        write(pd.DataFrame([row]), row, output.output_format)
    lasts = "" if event.until is None else f", until {pd.to_datetime(round(event.until), unit='s')} UTC"
    output.messages.say(
        f"Give this link to {event.assessor} alone: it signs in as {event.role}{lasts}, and is not shown again."
    )


@assessors.command("list")
def list_assessors(
    place: Place,
    output: Output,
) -> None:
    """List who is invited, with what role, until when, and when they last signed in.

    Example: probeval campaign assessors list mine.db
    """
    with place.open(read_only=True) as opened:
        access = opened.people.access
    rows: list[PersonDocument] = []
    for assessor, invited in sorted(access.invited.items()):
        times = [session.time for session in access.sessions.values() if session.by == assessor]
        rows.append(
            {
                "assessor": assessor,
                "role": cast("Any", invited.role),
                "invited": invited.time,
                "until": invited.until,
                "signed_in": max(times, default=None),
            }
        )
    if not rows:
        output.messages.say("No one is invited. Invite someone with probeval campaign assessors add STORE NAME")
    frame = pd.DataFrame(rows, columns=["assessor", "role", "invited", "until", "signed_in"])
    if output.output_format is OutputFormat.table:
        for column in ("invited", "until", "signed_in"):
            frame[column] = [
                "-" if value != value else str(pd.to_datetime(round(value), unit="s"))
                for value in frame[column].astype(float)
            ]
    write(frame, rows, output.output_format)


@assessors.command("revoke")
def revoke(
    place: OwnersPlace,
    assessor: PersonName,
    output: Printed,
) -> None:
    """Revoke an invitation: the link and all sessions of the assessor end at once. Judgments stay.

    Example: probeval campaign assessors revoke mine.db ann
    """
    with place.open() as opened:
        event = opened.people.revoke(place.by, assessor)
    row: RevokedDocument = {"number": event.number, "assessor": event.assessor, "by": event.by}
    write(pd.DataFrame([row]), row, output.output_format)


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
