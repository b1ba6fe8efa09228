"""The people of a campaign: who may sign in, with what role, and the sessions that are open.

A person gets a token, in a link. The link is exchanged for a session, whose secret is another one. The log has digests
of both, so that a reader of the store can sign in with neither.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from probeval.campaign.events import Event, Invited, Revoked, SignedIn, SignedOut
from probeval.display import Record
from probeval.errors import CampaignError

__all__ = ["SESSION", "Access", "as_token", "digest_token", "new_token"]

SESSION = 30 * 24 * 3600.0  # seconds
MOST_SESSIONS = 20  # that one person has open; the oldest ends
TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,500}")
FEWEST_CHARACTERS = 8  # that differ


def new_token() -> str:
    """A random token of 32 bytes, as text."""
    return secrets.token_urlsafe(32)


def digest_token(token: str) -> str:
    """The digest of a token or of a session's secret, by which the log names it."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def as_token(token: str, whose: str) -> str:
    """A token that a person chose; one that could be guessed is refused."""
    if not TOKEN.fullmatch(token) or len(set(token)) < FEWEST_CHARACTERS:
        raise CampaignError(
            f"the token of {whose} must be 16 letters and digits or more, at least {FEWEST_CHARACTERS} of them "
            f"different, such as {secrets.token_urlsafe(24)}."
        )
    return token


@dataclass(frozen=True, repr=False)
class Access(Record):
    """Who may sign in to a campaign, at one moment.

    Parameters
    ----------
    invited
        Those who may sign in, by name. Some invitations may have expired: compare ``until`` with the time.
    tokens
        The name of the person who got each token, by its digest, of revoked ones too.
    sessions
        Sessions by digest. Some may have ended: see :meth:`member`.
    ended
        The digests of sessions that were signed out or gave way to newer ones.
    """

    invited: Mapping[str, Invited] = field(default_factory=dict)
    tokens: Mapping[str, str] = field(default_factory=dict)
    sessions: Mapping[str, SignedIn] = field(default_factory=dict)
    ended: frozenset[str] = frozenset()

    def after(self, event: Event) -> Access:
        """The access after an event."""
        match event:
            case Invited():
                tokens = {**self.tokens, event.digest: event.assessor}
                return replace(self, invited={**self.invited, event.assessor: event}, tokens=tokens)
            case Revoked():
                left = {name: invited for name, invited in self.invited.items() if name != event.assessor}
                return replace(self, invited=left)
            case SignedIn():
                own = [digest for digest, session in self.sessions.items() if session.by == event.by]
                kept = self._without(own[: max(0, len(own) - MOST_SESSIONS + 1)])
                return replace(kept, sessions={**kept.sessions, event.digest: event})
            case SignedOut():
                return self._without([event.digest])
        return self

    def _without(self, digests: Sequence[str]) -> Access:
        """The access after these sessions ended."""
        known = self.sessions.keys() & digests
        kept = {digest: session for digest, session in self.sessions.items() if digest not in known}
        return replace(self, sessions=kept, ended=self.ended | known) if known else self

    def had(self, digest: str) -> bool:
        """Whether there was such a session, which may have ended since."""
        return digest in self.sessions or digest in self.ended

    def holder(self, digest: str, now: float) -> Invited | None:
        """The invitation with the token of this digest; None if it is unknown, revoked or expired."""
        invited = self.invited.get(self.tokens.get(digest, ""))
        valid = invited is not None and invited.digest == digest and (invited.until is None or invited.until > now)
        return invited if valid else None

    def member(self, digest: str, now: float) -> Invited | None:
        """The invitation of the person whose session has this digest; None if it is unknown or has ended.

        A session ends at its time, and with the invitation that it came from.
        """
        session = self.sessions.get(digest)
        invited = None if session is None else self.invited.get(session.by)
        if session is None or invited is None or session.until <= now or session.number < invited.number:
            return None
        return self.holder(invited.digest, now)
