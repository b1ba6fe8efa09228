"""The people at the page: those invited to the campaign or one person on their own machine; how they sign in and out.

Guesses of tokens are slowed down. The link of an invitation leads to a page that sends its token in a form, so that
programs that look at links sign no one in, and the cookie is set by a request of our own page. The cookie has the
secret of a session, never the token.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from probeval.campaign import Campaign, Role
from probeval.campaign.access import as_token, digest_token
from probeval.campaign.parsing import as_name
from probeval.data.tables import cell_text, read_table
from probeval.display import Record
from probeval.errors import CampaignError, DataError, ProbevalError
from probeval.web.forms import own_form, read_form
from probeval.web.guard import Limiter, network_of

__all__ = [
    "Assessor",
    "Entry",
    "Guesses",
    "Roster",
    "SignInPages",
    "read_assessors",
    "secret_in",
    "signed_in",
    "who_sent",
]

T = TypeVar("T")
PERSON = "probeval.person"  # in the scope of a request
LONGEST_TOKEN = 500
MOST_USED = 10_000  # sessions remembered
TOO_MANY = "Too many wrong tokens. Wait a minute and try again."


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
        return self._campaign.known_state.access.had(digest_token(secret))

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


def signed_in(request: Request) -> Assessor:
    """The person who sent a request; refused without a session."""
    found: object = request.scope.get(PERSON)
    if isinstance(found, Exception):
        raise found
    if not isinstance(found, Assessor):
        raise HTTPException(401, ENDED if secret_in(request.headers) else "Sign in with your token first.")
    return found


def secret_in(headers: Headers) -> str:
    """The secret of a session in the cookie of a request; empty without one."""
    return Request({"type": "http", "headers": headers.raw}).cookies.get(cookie_name(headers), "")


def cookie_name(headers: Headers) -> str:
    """The name of our cookie at the address of a request.

    Browsers send the cookies of one port of a host to all others, so the port is in the name: two servers on one host
    do not share a cookie.

    >>> cookie_name(Headers({"host": "judge.example.org:8517"})), cookie_name(Headers({"host": "judge.example.org"}))
    ('probeval-8517', 'probeval')
    """
    port = re.search(r":([0-9]{1,5})$", headers.get("host", ""))
    return "probeval" if port is None else f"probeval-{port[1]}"


def who_sent(scope: Scope) -> Assessor | None:
    """The person who sent a request that was handled; None if they are not signed in."""
    found = scope.get(PERSON)
    return found if isinstance(found, Assessor) else None


ENDED = "Your session has ended, or your token was revoked. Ask the owner for a new link."


class Guesses:
    """The budget of wrong tokens, of each address and of all addresses together.

    Parameters
    ----------
    each, together
        The two limits.
    """

    def __init__(self, each: Limiter | None = None, together: Limiter | None = None) -> None:
        self._each = each or Limiter(rate=0.1, burst=10)
        self._together = together or Limiter(rate=1, burst=100)
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<Guesses: {self._each!r} for an address, {self._together!r} for all>"

    def attempt(self, address: str, look: Callable[[], T]) -> T:
        """The result of looking a token up, one at a time; None is a wrong token, and counts.

        Refused before the look while the budget is used up.
        """
        with self._lock:
            if not self._each.allows(address):
                raise HTTPException(429, TOO_MANY)
            if not self._together.allows(""):
                self._each.give_back(address)
                raise HTTPException(429, TOO_MANY)
            wrong = False
            try:
                found = look()
                wrong = found is None
            finally:
                if not wrong:
                    self._each.give_back(address)
                    self._together.give_back("")
        return found


class Entry:
    """Middleware that finds out who sent a request, from its cookie, for :func:`signed_in`.

    A secret that comes from an address for the first time may be a guess, so the limit is asked before the secret is
    looked up: while it is used up, right and wrong secrets get the same answer. A session that an address has used
    before is not affected.

    Parameters
    ----------
    app
        The application.
    roster
        The people.
    guesses
        The limit of guesses.
    """

    def __init__(self, app: ASGIApp, *, roster: Roster, guesses: Guesses) -> None:
        self._app, self._roster, self._guesses = app, roster, guesses
        self._used: dict[tuple[str, str], None] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] == "http":
            request = Request(scope)
            secret = secret_in(request.headers)
            if self._roster.alone is not None:
                scope[PERSON] = self._roster.alone
            elif secret:
                scope[PERSON] = await run_in_threadpool(self._find, address_of(request), secret)
        await self._app(scope, receive, send)

    def _find(self, address: str, secret: str) -> Assessor | Exception | None:
        """The person with this session, None, or the error with which the request is refused."""
        key = address, digest_token(secret)
        try:
            if key in self._used:
                return self._roster.find(secret)
            look: Callable[[], Assessor | HTTPException | None] = partial(self._look, secret)
            person = self._guesses.attempt(address, look)
        except (ProbevalError, HTTPException) as error:
            return error
        if isinstance(person, Assessor):
            if len(self._used) >= MOST_USED:
                self._used.pop(next(iter(self._used)))
            self._used[key] = None
        return person

    def _look(self, secret: str) -> Assessor | HTTPException | None:
        """The person with this session; a session that has ended is refused, and is no guess."""
        return self._roster.find(secret) or (HTTPException(401, ENDED) if self._roster.had(secret) else None)


def address_of(request: Request) -> str:
    """The address or network that a request comes from."""
    return network_of("" if request.client is None else request.client.host)


class SignInPages:
    """The pages on which people sign in and out.

    Parameters
    ----------
    roster
        The people.
    guesses
        The limit of guesses, shared with :class:`Entry`.
    render
        Makes a page from a template.
    write
        Runs a step that may write to the store.
    """

    def __init__(
        self,
        *,
        roster: Roster,
        guesses: Guesses,
        render: Callable[..., Response],
        write: Callable[..., Awaitable[Any]],
    ) -> None:
        self._roster, self._guesses, self._render, self._write = roster, guesses, render, write

    @property
    def routes(self) -> list[Route]:
        """Their addresses."""
        return [
            Route("/join/{token}", self.join, methods=["GET"]),
            Route("/login", self.login_page, methods=["GET"]),
            Route("/login", self.login, methods=["POST"]),
            Route("/logout", self.logout, methods=["POST"]),
        ]

    async def join(self, request: Request) -> Response:
        """The page of a link: it sends the token, at once or by its button. The token is not looked up here."""
        token = request.path_params["token"]
        if len(token) > LONGEST_TOKEN:
            raise HTTPException(404, "There is no such link.")
        return self._render("join.html", None, token=token)

    async def login_page(self, request: Request) -> Response:
        """The page on which a token is typed."""
        return self.sign_in(request)

    def sign_in(self, request: Request, *, wrong: str = "", code: int = 200) -> Response:
        """The page on which a token is typed, perhaps with the reason why one is needed.

        Browsers leave out the cookie when a link of another site leads here, so the page then asks once more itself.
        """
        elsewhere = request.headers.get("sec-fetch-site") == "cross-site" and not wrong
        return self._render("login.html", None, wrong=wrong, again=elsewhere, code=code)

    async def login(self, request: Request) -> Response:
        """Exchange a token for a session."""
        given = (await read_form(request))["token"].strip()
        token = given.partition("/join/")[2] or given  # people paste the whole link
        response = RedirectResponse("/", 303)
        if self._roster.alone is not None:
            return response
        look = partial(self._guesses.attempt, address_of(request), lambda: self._roster.invites(token) or None)
        known = await run_in_threadpool(look)
        found = await self._write(lambda: self._roster.exchange(token)) if known else None
        if found is None:
            wrong = "This token is unknown, has expired or was revoked. Ask the owner for another link."
            return self.sign_in(request, wrong=wrong, code=401)
        person, seconds = found
        response.set_cookie(cookie_name(request.headers), person.secret, max_age=int(seconds), **self._cookie(request))
        return response

    async def logout(self, request: Request) -> Response:
        """End the session."""
        person = signed_in(request)
        await own_form(request, person)
        await self._write(lambda: self._roster.end(person))
        response = RedirectResponse("/login", 303)
        response.delete_cookie(cookie_name(request.headers), **self._cookie(request))
        return response

    @staticmethod
    def _cookie(request: Request) -> dict[str, Any]:
        return {"httponly": True, "samesite": "strict", "secure": request.url.scheme == "https"}


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
