"""Authentication: one person on their own machine, or a roster of assessors with tokens."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from probeval.campaign.parsing import as_name
from probeval.data.tables import read_table
from probeval.data.texts import cell_text
from probeval.errors import CampaignError, DataError

__all__ = ["Assessor", "Roster", "read_roster"]

TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,500}")  # valid in a cookie without quoting
ROLES = ("assessor", "owner")


@dataclass(frozen=True)
class Assessor:
    """A person who may judge.

    Parameters
    ----------
    name
        Their name in the log.
    token
        The secret that they sign in with.
    owner
        Whether they may see the ranking, settle disagreements and export.
    """

    name: str
    token: str = field(repr=False)
    owner: bool = False

    @property
    def mark(self) -> str:
        """A hidden field of this person's forms, derived from the token: the protection against forged forms."""
        return hmac.new(self.token.encode(), b"probeval form", hashlib.sha256).hexdigest()

    def wrote(self, mark: str) -> bool:
        """Whether a form with this mark comes from this person's pages."""
        return hmac.compare_digest(self.mark.encode(), mark.encode())


class Roster:
    """The people who may judge, by token.

    Parameters
    ----------
    assessors
        The people, with distinct names and tokens.
    alone
        The only user, who needs no token: for one person on their own machine.

    Examples
    --------
    >>> roster = Roster([Assessor("ann", "a token of ann's own"), Assessor("eve", "a token of eve's", owner=True)])
    >>> roster.find("a token of ann's own").name
    'ann'
    >>> roster.find("a guess") is None
    True
    """

    def __init__(self, assessors: Iterable[Assessor] = (), *, alone: Assessor | None = None) -> None:
        self.alone = alone
        self._known = {_digest(each.token): each for each in assessors}  # digests, so that lookup time reveals nothing

    @classmethod
    def local(cls, name: str) -> Roster:
        """One person on their own machine, who needs no token and owns the campaign."""
        return cls(alone=Assessor(as_name(name, "an assessor"), secrets.token_urlsafe(32), owner=True))

    def __len__(self) -> int:
        return len(self._known)

    def find(self, token: str) -> Assessor | None:
        """The person with this token, or None; always the only user, if there is one."""
        return self.alone or self._known.get(_digest(token))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def read_roster(path: Path) -> Roster:
    """The roster in a table with columns ``assessor``, ``token`` and optionally ``role`` (assessor or owner)."""
    table = read_table(path)
    names = {str(c).strip().lower(): c for c in table.columns}
    missing = [name for name in ("assessor", "token") if name not in names]
    if missing:
        raise DataError(f"no column {missing[0]!r}: expected assessor, token and optionally role.", path=path)
    people: list[Assessor] = []
    for row, (_, cells) in enumerate(table.iterrows(), start=1):
        fields = {name: cell_text(cells[column]).strip() for name, column in names.items()}
        role = fields.get("role", "") or "assessor"
        try:
            name = as_name(fields["assessor"], f"the assessor in row {row}")
        except CampaignError as error:
            raise DataError(str(error), path=path) from None
        if role not in ROLES:
            raise DataError(f"the role of {name!r} must be one of {', '.join(ROLES)}, got {role!r}.", path=path)
        if not TOKEN.fullmatch(fields["token"]):
            like = secrets.token_urlsafe(24)
            raise DataError(f"the token of {name!r} must be 16 letters and digits or more, such as {like}.", path=path)
        people.append(Assessor(name, fields["token"], role == "owner"))
    for what, values in (("name", [p.name for p in people]), ("token", [p.token for p in people])):
        if len(set(values)) < len(values):
            raise DataError(f"two assessors have the same {what}. Give each their own.", path=path)
    return Roster(people)
