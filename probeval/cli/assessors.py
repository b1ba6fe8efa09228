"""``probeval campaign assessors``: who may sign in to the judging page, by links."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import pandas as pd
import typer

from probeval.cli.assessor_texts import guideline_text
from probeval.cli.commands import Output, Printed
from probeval.cli.options import OutputFormat
from probeval.cli.output import echo
from probeval.cli.stores import CampaignPlace, OwnersPlace
from probeval.data.spreadsheets import csv_text
from probeval.data.tables import cell_text, read_table
from probeval.display import dated
from probeval.errors import DataError, ProbevalError, did_you_mean
from probeval.records import About
from probeval.results import frame

if TYPE_CHECKING:
    from probeval.campaign import Campaign, Role

__all__ = ["BASE_URL", "BaseUrl", "Expires", "assessors", "check_links", "invite", "read_people", "write_links"]

assessors = typer.Typer(help="Invite assessors by links, list them, and revoke invitations.")

UNITS = {"h": 3600.0, "d": 24 * 3600.0, "w": 7 * 24 * 3600.0}
ROLES = ("assessor", "adjudicator", "owner")

BASE_URL = "http://127.0.0.1:8517"
Expires = Annotated[str, About("How long a link works: 12h, 30d, 8w, or never.", metavar="TIME")]
BaseUrl = Annotated[str, About("The address of the judging page for browsers.", metavar="URL")]
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
    expires: Expires = "30d",
    base_url: BaseUrl = BASE_URL,
) -> Invitation | None:
    """Invite an assessor: prints a link to sign in with, once. The store keeps a hash of it only.

    Example: probeval campaign assessors add mine.db ann --base-url https://judge.example.org
    """
    person = assessor, _role(role)
    with place.open() as opened:
        (made,) = invite(opened, place.by, [person], base_url=base_url, expires=expires)
    lasts = "" if made.until is None else f", until {pd.to_datetime(round(made.until), unit='s')} UTC"
    output.messages.say(
        f"Give this link to {made.assessor} alone: it signs in as {made.role}{lasts}, and is not shown again."
    )
    if output.output_format is OutputFormat.table:  # alone, to be copied
        echo(made.link)
        return None
    return made


def invite(
    opened: Campaign, by: str, people: Sequence[tuple[str, str]], *, base_url: str, expires: str
) -> list[Invitation]:
    """Invite people, by name and role; each with the link."""
    address, seconds = _base(base_url), _seconds(expires)
    found = []
    for name, role in people:
        event, token = opened.people.invite(by, name, role=role, seconds=seconds)
        found.append(Invitation(event.assessor, event.role, event.until, f"{address}/join/{token}"))
    return found


def read_people(path: Path) -> list[tuple[str, str]]:
    """The names and roles of a table with a column for the assessor, or the names of a file with one in each line."""
    from probeval.campaign.parsing import as_name

    lines = guideline_text(path).splitlines()
    if lines and re.search(r"\bassessor\b", lines[0]):
        table = read_table(path)
        names = {str(c).strip().lower(): c for c in table.columns}
        roles = table[names["role"]] if "role" in names else [""] * len(table)
        rows = [(cell_text(a), cell_text(b)) for a, b in zip(table[names["assessor"]], roles, strict=True)]
    else:
        rows = [(line, "") for line in lines if line.strip()]
    try:
        people = [
            (as_name(name, f"the assessor in row {row}"), _role(role)) for row, (name, role) in enumerate(rows, 1)
        ]
    except ProbevalError as error:
        raise DataError(str(error), path=path) from None
    if not people:
        raise DataError("no names in it.", path=path)
    if len({name for name, _ in people}) < len(people):
        raise DataError("two assessors have the same name. Give each their own.", path=path)
    return people


def check_links(path: Path, *, base_url: str, expires: str) -> None:
    """Raise an error if the address or the time will not do, or links would replace a file, perhaps of others."""
    _base(base_url)
    _seconds(expires)
    if path.exists():
        raise ProbevalError(f"{path}: exists already, and links are kept nowhere else. Give another file (--links).")


def write_links(path: Path, invited: Sequence[Invitation]) -> None:
    """Write the links of people as a table that only its owner reads."""
    table = dated(frame(invited, Invitation), Invitation)
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
        file.write(csv_text(table))


def _role(text: str) -> str:
    """A role; an assessor's if none is given."""
    role = text.strip() or "assessor"
    if role not in ROLES:
        raise ProbevalError(f"The role must be one of {', '.join(ROLES)}, got {role!r}.{did_you_mean(role, ROLES)}")
    return role


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
