"""The people of an open campaign: invitations, roles and sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from probeval.campaign.access import SESSION, Access, digest_token, new_token
from probeval.campaign.decisions import Action, Decision
from probeval.campaign.events import Event, Invited, Revoked, Role, SignedIn, SignedOut
from probeval.campaign.log import Log
from probeval.campaign.parsing import as_name
from probeval.campaign.state import State
from probeval.errors import CampaignError, did_you_mean

__all__ = ["ImportPeople", "Invite", "People", "Revoke", "SignIn", "SignOut"]


class People:
    """Those who may sign in to a campaign. The store has digests of their tokens and sessions, never the secrets.

    Parameters
    ----------
    log
        The log of the campaign.
    """

    def __init__(self, log: Log) -> None:
        self._log = log

    def __repr__(self) -> str:
        return f"<People: {len(self.access.invited):,} invited>"

    @property
    def access(self) -> Access:
        """Invitations and sessions, with the changes by other processes."""
        return self._log.state.access

    def invite(
        self, by: str, assessor: str, *, role: Role | str = Role.assessor, seconds: float | None = None
    ) -> tuple[Invited, str]:
        """Invite a person; the event, and the token for their link, which is not kept anywhere.

        Parameters
        ----------
        by
            The person who invites.
        assessor, role
            The name of the person, and what they may do.
        seconds
            How long the invitation lasts; None for always.
        """
        token = new_token()
        until = None if seconds is None else self._log.clock() + seconds
        decision = Invite(by=by, assessor=assessor, role=Role(role), digest=digest_token(token), until=until)
        return self._log.advance(decision).event, token

    def revoke(self, by: str, assessor: str) -> Revoked:
        """End the invitation of a person, and their sessions: their next request is refused."""
        return self._log.advance(Revoke(by=by, assessor=assessor)).event

    def add(self, by: str, people: Sequence[tuple[str, Role, str]]) -> list[str]:
        """Invite people who have tokens already; the names of those whose token was revoked or is another person's.

        Parameters
        ----------
        by
            The person who invites.
        people
            The name, the role and the token of each. People who are invited with the same token and role are left as
            they are.
        """
        digests = [(as_name(name, "an assessor"), role, digest_token(token)) for name, role, token in people]
        invited = self._log.advance(ImportPeople(by=by, people=digests)).state.access.invited
        return [name for name, _, digest in digests if name not in invited or invited[name].digest != digest]

    def find(self, secret: str) -> Invited | None:
        """The invitation of the person with this session; None if it has ended or there is no such session."""
        return self.access.member(digest_token(secret), self._log.clock())

    def sign_in(self, token: str) -> tuple[SignedIn, str]:
        """Exchange a token for a session: the event, and the secret for the cookie."""
        secret = new_token()
        return self._log.advance(SignIn(token=digest_token(token), session=digest_token(secret))).event, secret

    def may_sign_in(self, token: str) -> bool:
        """Whether a token is valid now."""
        return self.access.holder(digest_token(token), self._log.clock()) is not None

    def sign_out(self, assessor: str, secret: str) -> None:
        """End a session."""
        self._log.advance(SignOut(by=assessor, digest=digest_token(secret)))


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
