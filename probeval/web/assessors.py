"""The people who may use the page: those invited to the campaign, or one person on their own machine."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from pathlib import Path

from probeval.campaign import Campaign, Role
from probeval.campaign.access import as_token, digest_token
from probeval.campaign.parsing import as_name
from probeval.data.tables import cell_text, read_table
from probeval.display import Record
from probeval.errors import CampaignError, DataError

__all__ = ["Assessor", "Roster", "read_assessors"]


@dataclass(frozen=True, repr=False)
class Assessor(Record):
    """A person who is signed in.

    Parameters
    ----------
    name
        Their name in the log.
    secret
        The secret of their session.
    role
        What they may do.
    """

    name: str
    secret: str = field(repr=False)
    role: Role = Role.assessor

    @property
    def owner(self) -> bool:
        """Whether they may see the ranking, export, and do all else."""
        return self.role is Role.owner

    @property
    def adjudicates(self) -> bool:
        """Whether they may settle disagreements."""
        return self.role in (Role.adjudicator, Role.owner)

    @property
    def mark(self) -> str:
        """A hidden field of this person's forms, derived from the session: the protection against forged forms."""
        return hmac.new(self.secret.encode(), b"probeval form", hashlib.sha256).hexdigest()

    def wrote(self, mark: str) -> bool:
        """Whether a form with this mark comes from this person's pages."""
        return hmac.compare_digest(self.mark.encode(), mark.encode())


class Roster:
    """The people who may use the page of a campaign, by the secret of their session.

    Invitations and sessions are in the log of the campaign, so that a revocation holds at the next request, also if
    another process makes it.

    Parameters
    ----------
    campaign
        The campaign.
    alone
        The only user, who needs no session: for one person on their own machine. Forms are marked by a secret of the
        store, so a page that is open goes on after a restart.
    """

    def __init__(self, campaign: Campaign, *, alone: str | None = None) -> None:
        self._campaign = campaign
        name = None if alone is None else as_name(alone, "an assessor")
        self.alone = None if name is None else Assessor(name, campaign.page_secret(), Role.owner)

    def find(self, secret: str) -> Assessor | None:
        """The person with this session, or None; always the only user, if there is one."""
        if self.alone is not None:
            return self.alone
        invited = self._campaign.people.find(secret)
        return None if invited is None else Assessor(invited.assessor, secret, invited.role)

    def known_name(self, secret: str) -> str | None:
        """The name of the person with this session, or None, without a look at the store."""
        if self.alone is not None:
            return self.alone.name
        session = self._campaign.known_state.access.sessions.get(digest_token(secret)) if secret else None
        return None if session is None else session.by

    def had(self, secret: str) -> bool:
        """Whether there was such a session, which may have ended since: then it is no guess."""
        return digest_token(secret) in self._campaign.known_state.access.sessions

    def invites(self, token: str) -> bool:
        """Whether a token is valid now; a guess writes nothing."""
        return self._campaign.people.may_sign_in(token)

    def exchange(self, token: str) -> tuple[Assessor, float]:
        """Sign in with a valid token: the person with a session, and its length in seconds."""
        session, secret = self._campaign.people.sign_in(token)
        return Assessor(session.by, secret), session.until - session.time

    def end(self, person: Assessor) -> None:
        """Sign out: the session ends."""
        self._campaign.people.sign_out(person.name, person.secret)


def read_assessors(path: Path) -> list[tuple[str, Role, str]]:
    """The people in a table with columns ``assessor``, ``token`` and optionally ``role``: names, roles and tokens."""
    table = read_table(path)
    names = {str(c).strip().lower(): c for c in table.columns}
    missing = [name for name in ("assessor", "token") if name not in names]
    if missing:
        raise DataError(f"no column {missing[0]!r}: expected assessor, token and optionally role.", path=path)
    people: list[tuple[str, Role, str]] = []
    for row, (_, cells) in enumerate(table.iterrows(), start=1):
        fields = {name: cell_text(cells[column]).strip() for name, column in names.items()}
        role = fields.get("role", "") or "assessor"
        try:
            name = as_name(fields["assessor"], f"the assessor in row {row}")
            if role not in list(Role):
                raise CampaignError(f"the role of {name!r} must be one of {', '.join(Role)}, got {role!r}.")
            people.append((name, Role(role), as_token(fields["token"], repr(name))))
        except CampaignError as error:
            raise DataError(str(error), path=path) from None
    for what, values in (("name", [name for name, _, _ in people]), ("token", [token for _, _, token in people])):
        if len(set(values)) < len(values):
            raise DataError(f"two assessors have the same {what}. Give each their own.", path=path)
    return people
