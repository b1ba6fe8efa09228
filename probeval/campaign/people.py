"""The people of an open campaign: invitations, roles and sessions."""

from __future__ import annotations

from collections.abc import Sequence

from probeval.campaign.access import Access, digest_token, new_token
from probeval.campaign.access_decisions import ImportPeople, Invite, Revoke, SignIn, SignOut
from probeval.campaign.events import Invited, Revoked, Role, SignedIn
from probeval.campaign.log import Log
from probeval.campaign.parsing import as_name

__all__ = ["People"]


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
