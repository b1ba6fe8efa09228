"""Decisions about people: invite, revoke, sign in and out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from probeval.campaign.access import SESSION
from probeval.campaign.decisions import Action, Decision
from probeval.campaign.events import Event, Invited, Revoked, Role, SignedIn, SignedOut
from probeval.campaign.parsing import as_name
from probeval.campaign.state import State
from probeval.errors import CampaignError, did_you_mean

__all__ = ["ImportPeople", "Invite", "Revoke", "SignIn", "SignOut"]


@dataclass(frozen=True, kw_only=True)
class Invite(Action[Invited]):
    """Let a person sign in with a token.

    Parameters
    ----------
    assessor, role
        The person, and what they may do.
    digest
        The digest of the token.
    until
        The time at which the token ends; None for never.
    """

    kind = Invited
    same_request = ("assessor", "role", "digest", "until")
    assessor: str
    role: Role
    digest: str
    until: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(assessor=as_name(self.assessor, "an assessor"))

    def event(self, state: State, now: float) -> Invited:
        """The invitation; a person who can sign in already is not invited again."""
        current = state.access.invited.get(self.assessor)
        if current is not None and state.access.holder(current.digest, now) is not None:
            raise CampaignError(
                f"{self.assessor!r} is invited already, as {current.role}. Revoke that first to give another link."
            )
        if self.until is not None and self.until <= now:
            raise CampaignError("An invitation must end in the future.")
        return Invited(**self._head(now), assessor=self.assessor, role=self.role, digest=self.digest, until=self.until)


@dataclass(frozen=True, kw_only=True)
class Revoke(Action[Revoked]):
    """End a person's invitation and their sessions."""

    kind = Revoked
    same_request = ("assessor",)
    assessor: str

    def event(self, state: State, now: float) -> Revoked:
        """The revocation."""
        known = state.access.invited
        if self.assessor not in known:
            raise CampaignError(f"No one called {self.assessor!r} is invited.{did_you_mean(self.assessor, known)}")
        return Revoked(**self._head(now), assessor=self.assessor)


@dataclass(frozen=True, kw_only=True)
class ImportPeople(Decision[None]):
    """Invite the people of a table who are not invited yet with the same token and role.

    A token that was revoked, or given to another person, does not come back.

    Parameters
    ----------
    by
        The person who imports it.
    people
        The name, the role and the digest of the token of each person.
    """

    by: str
    people: Sequence[tuple[str, Role, str]]

    def events(self, state: State, now: float) -> Sequence[Invited]:
        """The new invitations."""
        access, new = state.access, list[Invited]()
        for assessor, role, digest in self.people:
            current = access.invited.get(assessor)
            same = current is not None and current.digest == digest
            if (same and current is not None and current.role == role) or (not same and digest in access.tokens):
                continue
            new.append(Invited(by=self.by, time=now, assessor=assessor, role=role, digest=digest))
        return new

    def event_asked_for(self, state: State, events: Sequence[Event]) -> None:
        """None: the events are in the outcome."""


@dataclass(frozen=True, kw_only=True)
class SignIn(Decision[SignedIn]):
    """Exchange a token for a session.

    Parameters
    ----------
    token, session
        The digest of the token, and of the new session's secret.
    """

    token: str
    session: str

    def events(self, state: State, now: float) -> Sequence[SignedIn]:
        """The new session; it ends with the invitation at the latest."""
        invited = state.access.holder(self.token, now)
        if invited is None:
            raise CampaignError("This token is unknown, has expired or was revoked. Ask the owner for another link.")
        until = now + SESSION if invited.until is None else min(now + SESSION, invited.until)
        return [SignedIn(by=invited.assessor, time=now, digest=self.session, until=until)]

    def event_asked_for(self, state: State, events: Sequence[Event]) -> SignedIn:
        """The new session."""
        return cast("SignedIn", events[0])


@dataclass(frozen=True, kw_only=True)
class SignOut(Action[SignedOut]):
    """End a session."""

    kind = SignedOut
    same_request = ("digest",)
    digest: str

    def event(self, state: State, now: float) -> SignedOut:
        """The end of the session."""
        return SignedOut(**self._head(now), digest=self.digest)
