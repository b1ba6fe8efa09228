"""What every request passes before a page sees it: right host, right origin, small enough, not too many.

.. code-block:: text

    421  the Host is not a name of this server         (a page elsewhere that points its own name at it)
    403  a form that another site's page sends         (Origin, Sec-Fetch-Site)
    413  a body that is too long                       408  one that does not come to an end
    429  too many requests

Every answer, these too, carries the headers that keep scripts, frames and other sites out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from urllib.parse import urlsplit

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["HEADERS", "Guard", "Limiter", "host_of"]

LONGEST_BODY = 256 * 1024
PATIENCE = 20.0  # seconds for a body to come in
DRAINED = 128 * 1024 * 1024  # of a body that is too long, so that its sender hears why
SAFE = ("GET", "HEAD")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # not "no-referrer": browsers would then send forms with the Origin "null"
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


class Limiter:
    """So many things a second for each, more in a burst. [token bucket]

    Parameters
    ----------
    rate, burst
        Things a second in the long run, and at once.
    clock
        Gives seconds.

    Examples
    --------
    >>> now = [0.0]
    >>> limiter = Limiter(rate=1, burst=2, clock=lambda: now[0])
    >>> [limiter.allows("ann") for _ in range(3)]
    [True, True, False]
    >>> now[0] = 1.0
    >>> limiter.allows("ann")
    True
    """

    MOST = 10_000  # of those it remembers

    def __init__(self, *, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._left: dict[str, tuple[float, float]] = {}

    def allows(self, key: str) -> bool:
        """Whether one more is allowed now; if so it counts."""
        now = self._clock()
        left = self._room(key, now)
        if left < 1:
            return False
        if len(self._left) >= self.MOST:
            self._left = {k: kept for k, kept in self._left.items() if self._room(k, now) < self._burst}
        self._left[key] = left - 1, now
        return True

    def _room(self, key: str, now: float) -> float:
        left, then = self._left.get(key, (self._burst, now))
        return min(self._burst, left + (now - then) * self._rate)


class Guard:
    """Stands before an application, and lets through what it may see.

    Parameters
    ----------
    app
        The application.
    hosts
        The names of this server, without port.
    who
        Tells from the headers who asks; None where they did not say, and their address stands for them.
    limiter
        Of requests.
    """

    def __init__(
        self, app: ASGIApp, *, hosts: Collection[str], who: Callable[[Headers], str | None], limiter: Limiter
    ) -> None:
        self._app, self._who, self._limiter = app, who, limiter
        self._hosts = {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await self._refuse(*refusal, scope, receive, guarded)
            return
        body = await _read(receive)
        if isinstance(body, bytes):
            await self._app(scope, _replay(body, receive), guarded)
        else:
            await self._refuse(*body, scope, receive, guarded)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Why a request is refused by its head alone: a status and a sentence."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if host_of(host) not in self._hosts:
            return 421, f"This server is not called {host!r:.120}. Name its hosts with --public-host."
        if scope["method"] not in SAFE and not _is_own(headers, host):
            return 403, "This form comes from another site, and nothing was done. Open the page itself and try again."
        client = scope.get("client")
        if not self._limiter.allows(self._who(headers) or f"address {client[0] if client else ''}"):
            return 429, "Too many requests. Wait a moment and try again."
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 15 or int(length) > LONGEST_BODY:
            return TOO_LONG
        return None

    async def _refuse(self, status: int, why: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Say why. The end of the answer waits for the end of a body that is still coming, so that it is heard."""
        response = PlainTextResponse(f"{why}\n", status, headers={"connection": "close"})

        async def held(message: Message) -> None:
            if message["type"] != "http.response.body":
                await send(message)
                return
            await send({**message, "more_body": True})
            with anyio.move_on_after(PATIENCE):
                await _drain(receive)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

        await response(scope, receive, held)


TOO_LONG = 413, f"The request is longer than {LONGEST_BODY // 1024} KB, and nothing was done."
TOO_SLOW = 408, f"The request did not come to its end in {PATIENCE:g} seconds, and nothing was done."


def host_of(netloc: str) -> str:
    """The name in a Host header, without port.

    >>> host_of("localhost:8517"), host_of("[::1]:8517"), host_of("a@b")
    ('localhost', '::1', '')
    """
    try:
        parts = urlsplit(f"//{netloc}")
        return (parts.hostname or "") if parts.netloc == netloc and "@" not in netloc and parts.port != 0 else ""
    except ValueError:
        return ""


def _is_own(headers: Headers, host: str) -> bool:
    """Whether a form comes from this server's own pages, by what the browser says: pages cannot change it."""
    origin = headers.get("origin", "")
    own = any(origin == f"{scheme}://{host}" for scheme in ("http", "https"))
    return own and headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")


async def _read(receive: Receive) -> bytes | tuple[int, str]:
    """The body, or why it is refused."""
    body = bytearray()
    with anyio.move_on_after(PATIENCE):
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return TOO_SLOW
            body += message.get("body", b"")
            if len(body) > LONGEST_BODY:
                return TOO_LONG
            if not message.get("more_body", False):
                return bytes(body)
    return TOO_SLOW


async def _drain(receive: Receive) -> None:
    seen = 0
    while seen < DRAINED:
        message = await receive()
        seen += len(message.get("body", b""))
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            return


def _replay(body: bytes, receive: Receive) -> Receive:
    """What the application receives: the body that was read, then whatever comes after it."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
