"""Open connections: how many a person and an address may have, and how long a client may take to send its request.

A client that opens connections and sends nothing, or one byte at a time, keeps no one out: when there are too many, the
connection that has waited longest for its client is closed, and one whose request arrives at once stays. This holds
from the first byte on, so over HTTPS for the handshake too.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from typing import Any, NamedTuple

import uvicorn
from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from probeval.web.entry import who_sent
from probeval.web.guard import network_of

__all__ = ["Connection", "ConnectionConfig", "Connections", "Holder"]

PATIENCE = 10.0  # seconds for the handshake of TLS, and for the headers of a request
MOST_EACH = 64  # connections of one person, or of one address before sign-in
MOST_STRANGERS = 128  # connections of all who are not signed in


class Holder(NamedTuple):
    """The person who has a connection, or the address it comes from before they sign in."""

    name: str
    is_known: bool = False


class Connections:
    """The open connections, in the order of their last requests.

    Parameters
    ----------
    each
        The largest number of one holder.
    strangers
        The largest number of all who are not signed in.
    """

    def __init__(self, *, each: int = MOST_EACH, strangers: int = MOST_STRANGERS) -> None:
        self._each, self._strangers = each, strangers
        self._holders: dict[Connection, Holder] = {}
        self._numbers: Counter[Holder] = Counter()

    def __len__(self) -> int:
        return len(self._holders)

    def __repr__(self) -> str:
        return f"<Connections: {len(self):,} open>"

    def keep(self, connection: Connection, holder: Holder) -> None:
        """Put a connection last, as one of this holder; if there are too many, close the one that waits longest."""
        self.forget(connection)
        self._holders[connection] = holder
        self._numbers[holder] += 1
        if self._numbers[holder] > self._each:
            self._close_one(holder)
        strangers = Counter({each: n for each, n in self._numbers.items() if not each.is_known})
        if strangers.total() > self._strangers:
            self._close_one(strangers.most_common(1)[0][0])

    def forget(self, connection: Connection) -> None:
        """Leave out a connection that has ended."""
        holder = self._holders.pop(connection, None)
        if holder is not None:
            self._numbers[holder] -= 1
            if not self._numbers[holder]:
                del self._numbers[holder]

    def _close_one(self, holder: Holder) -> None:
        own = (connection for connection, each in self._holders.items() if each == holder and connection.waits)
        oldest = next(own, None)
        if oldest is not None:
            self.forget(oldest)
            oldest.abort()


class ConnectionConfig(uvicorn.Config):
    """The configuration of a server whose connections are counted.

    Parameters
    ----------
    app, options
        As uvicorn takes them.
    tls
        The certificate, for HTTPS.
    connections
        The open connections.
    patience
        Seconds for the handshake, and for the headers of a request.
    """

    def __init__(
        self,
        app: Any,
        *,
        tls: ssl.SSLContext | None = None,
        connections: Connections | None = None,
        patience: float = PATIENCE,
        **options: Any,
    ) -> None:
        super().__init__(app, http=Connection, loop="asyncio", **options)
        self.tls, self.patience = tls, patience
        self.connections = Connections() if connections is None else connections


class Connection(H11Protocol):
    """One connection: its handshake, its requests, and the time that its client takes."""

    def __init__(self, config: ConnectionConfig, *args: Any, **options: Any) -> None:
        super().__init__(config, *args, **options)
        self._settings, self._connections = config, config.connections
        self._page, self.app = self.app, self._answer
        self._address = Holder("")
        self._socket: asyncio.Transport | None = None
        self._securing: asyncio.Task[None] | None = None
        self._early = b""  # a request that comes with the end of the handshake
        self._limit: asyncio.TimerHandle | None = None
        self._has_request = self._is_lost = False

    @property
    def waits(self) -> bool:
        """Whether it waits for its client: to send the rest of a request, or to read a response."""
        return not self._has_request or self.flow.write_paused

    def abort(self) -> None:
        """Close it at once."""
        if self._socket is not None:
            self._socket.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected."""
        self._socket = transport
        peer = transport.get_extra_info("peername")
        self._address = Holder(network_of(peer[0] if peer else ""))
        self._connections.keep(self, self._address)
        if self._settings.tls is None:
            self._open(transport)
        else:
            self._securing = self.loop.create_task(self._secure(transport, self._settings.tls))

    async def _secure(self, transport: asyncio.Transport, tls: ssl.SSLContext) -> None:
        """The handshake of TLS."""
        try:
            limit = self._settings.patience
            secure = await self.loop.start_tls(transport, self, tls, server_side=True, ssl_handshake_timeout=limit)
        except OSError:  # also ssl.SSLError, and too slow
            secure = None
        if secure is None or self._is_lost:
            self._connections.forget(self)
            return
        self._open(secure)
        if self._early:
            self.data_received(self._early)

    def _open(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._begin_limit()

    def data_received(self, data: bytes) -> None:
        """A part of a request has come."""
        if self.transport is None:
            self._early += data
            return
        if self._limit is None and (self.cycle is None or self.cycle.response_complete):
            self._begin_limit()
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        self._is_lost = True
        self._connections.forget(self)
        self._end_limit()
        if self.transport is not None:
            super().connection_lost(exc)

    def shutdown(self) -> None:
        """The server ends: a request that is not here yet, and a client that does not read, are not waited for."""
        is_answered = self.cycle is None or self.cycle.response_complete
        super().shutdown()
        if self.waits and not is_answered:
            self.abort()

    def _begin_limit(self) -> None:
        self._limit = self.loop.call_later(self._settings.patience, self.abort)

    def _end_limit(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, whose headers are there."""
        self._end_limit()

        async def received() -> Message:
            message = await receive()
            self._has_request = not message.get("more_body", False)
            return message

        try:
            await self._page(scope, received, send)
        finally:
            self._has_request = False
            person = who_sent(scope)
            if not self._is_lost:
                self._connections.keep(self, self._address if person is None else Holder(person.name, is_known=True))
