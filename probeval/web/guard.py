"""Checks of every request before it reaches a page: host, origin, size, rate.

.. code-block:: text

    421  the Host header is not a name of this server  (DNS rebinding)
    403  a form from another site                      (Origin, Sec-Fetch-Site)
    413  a body that is too long                       408  a body that does not end in time
    429  too many requests

Every response, including these, has headers against foreign scripts, frames and other sites.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable, Collection
from urllib.parse import urlsplit

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["HEADERS", "Guard", "Limiter", "host_of", "network_of"]

LONGEST_BODY = 256 * 1024
PATIENCE = 20.0  # seconds to wait for a body
DRAINED = 128 * 1024 * 1024  # bytes of a too long body that are read, so that the sender gets the response
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
HTTPS_ONLY = {"strict-transport-security": f"max-age={30 * 24 * 3600}"}  # as long as a session lasts


class Limiter:
    """A rate limit per key that allows bursts. [token bucket]

    Parameters
    ----------
    rate, burst
        Requests per second in the long run, and at once.
    clock
        Gives the time in seconds.

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

    MAX_KEYS = 10_000  # keys remembered

    def __init__(self, *, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._left: dict[str, tuple[float, float]] = {}

    def allows(self, key: str) -> bool:
        """Whether one more request is allowed now; if so, it is counted."""
        now = self._clock()
        left = self._room(key, now)
        if left < 1:
            return False
        if len(self._left) >= self.MAX_KEYS:
            self._left = {k: kept for k, kept in self._left.items() if self._room(k, now) < self._burst}
            if len(self._left) >= self.MAX_KEYS:
                self._left.pop(next(iter(self._left)))
        self._left[key] = left - 1, now
        return True

    def give_back(self, key: str) -> None:
        """Take back the count of one request."""
        now = self._clock()
        self._left[key] = min(self._burst, self._room(key, now) + 1), now

    def _room(self, key: str, now: float) -> float:
        left, then = self._left.get(key, (self._burst, now))
        return min(self._burst, left + (now - then) * self._rate)


class Guard:
    """Middleware that refuses requests with a wrong host, origin, size or rate.

    Parameters
    ----------
    app
        The application.
    hosts
        The names of this server, without port.
    who
        Returns the name of the sender from the headers; for None the limit applies to the address.
    limiter
        The limit of requests per sender.
    """

    def __init__(
        self, app: ASGIApp, *, hosts: Collection[str], who: Callable[[Headers], str | None], limiter: Limiter
    ) -> None:
        self._app, self._who, self._limiter = app, who, limiter
        self._hosts = {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in (HEADERS | (HTTPS_ONLY if scope["scheme"] == "https" else {})).items():
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
        """The status and message of a refusal by the headers alone, or None."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if host_of(host) not in self._hosts:
            return 421, f"{host!r:.120} is not a name of this server. Add it to the server's public host names."
        if scope["method"] not in SAFE and not _is_own(headers, host, scope["scheme"]):
            return 403, "This form comes from another site; nothing was saved. Open the judging page and try again."
        client = scope.get("client")
        if not self._limiter.allows(self._who(headers) or f"address {network_of(client[0] if client else '')}"):
            return 429, "Too many requests. Wait a moment and try again."
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 15 or int(length) > LONGEST_BODY:
            return TOO_LONG
        return None

    async def _refuse(self, status: int, why: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Send a refusal. Its end waits for the rest of the body, so that the sender reads the response."""
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


TOO_LONG = 413, f"The request is longer than {LONGEST_BODY // 1024} KB; nothing was saved."
TOO_SLOW = 408, f"The request did not end within {PATIENCE:g} seconds; nothing was saved."


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


def network_of(host: str) -> str:
    """The address that a limit is for; of IPv6 the network, because one machine has as many as it likes.

    >>> network_of("192.0.2.7"), network_of("2001:db8::7")
    ('192.0.2.7', '2001:db8::/64')
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return host if address.version == 4 else str(ipaddress.ip_network((address, 64), strict=False))


def _is_own(headers: Headers, host: str, scheme: str) -> bool:
    """Whether a form comes from this server's own pages, by headers that pages cannot change.

    Over HTTP the browser may still use HTTPS, up to a proxy. Over HTTPS it uses nothing else.
    """
    schemes = ("https",) if scheme == "https" else ("http", "https")
    own = headers.get("origin", "") in [f"{each}://{host}" for each in schemes]
    return own and headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")


async def _read(receive: Receive) -> bytes | tuple[int, str]:
    """The body, or the status and message of a refusal."""
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
    read = 0
    while read < DRAINED:
        message = await receive()
        read += len(message.get("body", b""))
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            return


def _replay(body: bytes, receive: Receive) -> Receive:
    """The messages for the application: the body already read, then any further ones."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
