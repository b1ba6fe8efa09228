"""Open connections: how many a person and an address may have, and how long a client may take to send its request.

A client that opens connections and sends nothing, or one byte at a time, keeps no one out: when there are too many, the
connection that has waited longest for its client is closed, and one whose request arrives at once stays. This holds
from the first byte on, so over HTTPS for the handshake too.

The server takes connections from a :class:`Listener`, and the application that it calls is :meth:`Connections.watch`.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from probeval.web.entry import who_sent
from probeval.web.guard import network_of

__all__ = ["Connections", "Listener"]

PATIENCE = 10.0  # seconds for the handshake of TLS, and for the headers of a request
MOST_EACH = 64  # connections of one person, or of one address before sign-in
MOST_STRANGERS = 128  # connections of all who are not signed in
QUEUE = 512  # connections that wait to be accepted


class Holder(NamedTuple):
    """The person who has a connection, or the address it comes from before they sign in."""

    name: str
    is_known: bool = False


@dataclass(eq=False)
class Connection:
    """A connection that waits for its client, to send the rest of a request or to read a response, or is answered."""

    socket: socket.socket
    holder: Holder
    limit: asyncio.TimerHandle
    waits: bool = True


class Connections:
    """The open connections, in the order of their last requests.

    Parameters
    ----------
    each
        The largest number of one holder.
    strangers
        The largest number of all who are not signed in.
    patience
        Seconds for the handshake and for the headers of a request.
    """

    def __init__(self, *, each: int = MOST_EACH, strangers: int = MOST_STRANGERS, patience: float = PATIENCE) -> None:
        self._each, self._strangers, self._patience = each, strangers, patience
        self._open: dict[object, Connection] = {}  # by the address and port of the client

    def __len__(self) -> int:
        self._forget_ended()
        return len(self._open)

    def __repr__(self) -> str:
        return f"<Connections: {len(self):,} open>"

    async def watch(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, whose headers are there, by an application."""
        client = scope["client"]
        connection = self._open.get(client)
        if connection is None:  # it was closed a moment ago
            return await app(scope, receive, send)
        connection.limit.cancel()

        async def received() -> Message:
            message = await receive()
            connection.waits = message.get("more_body", False)
            return message

        async def sent(message: Message) -> None:
            waits, connection.waits = connection.waits, True
            await send(message)
            connection.waits = waits

        try:
            await app(scope, received, sent)
        finally:
            if self._open.get(client) is connection:
                person = who_sent(scope)
                self.keep(connection.socket, client, None if person is None else person.name)

    def keep(self, opened: socket.socket, client: tuple[Any, ...], person: str | None = None) -> None:
        """Put a connection last, to wait for a request; if there are too many, close the one that waits longest."""
        client = client[:2]  # in IPv6 two numbers follow
        self._forget_ended()
        self._forget(client)
        limit = asyncio.get_running_loop().call_later(self._patience, self._close, client)
        holder = Holder(network_of(client[0])) if person is None else Holder(person, is_known=True)
        self._open[client] = Connection(opened, holder, limit)
        numbers = Counter(each.holder for each in self._open.values())
        if numbers[holder] > self._each:
            self._close_oldest(holder)
        strangers = Counter({each: n for each, n in numbers.items() if not each.is_known})
        if strangers.total() > self._strangers:
            self._close_oldest(strangers.most_common(1)[0][0])

    def close_waiting(self) -> None:
        """Close all that wait for their clients, as a server does that ends."""
        for client in [client for client, each in self._open.items() if each.waits]:
            self._close(client)

    def _close_oldest(self, holder: Holder) -> None:
        oldest = next((client for client, each in self._open.items() if each.holder == holder and each.waits), None)
        if oldest is not None:
            self._close(oldest)

    def _close(self, client: object) -> None:
        """Close both directions of a connection; the server then sees its end, and closes the socket."""
        connection = self._forget(client)
        if connection is not None:
            with suppress(OSError):  # the client was faster
                connection.socket.shutdown(socket.SHUT_RDWR)

    def _forget_ended(self) -> None:
        for client in [client for client, each in self._open.items() if each.socket.fileno() < 0]:
            self._forget(client)

    def _forget(self, client: object) -> Connection | None:
        connection = self._open.pop(client, None)
        if connection is not None:
            connection.limit.cancel()
        return connection


class Listener(socket.socket):
    """A listening socket whose connections are counted from the moment that they are accepted.

    An event loop calls ``listen`` and ``accept``, in its own thread, and ``close`` when the server ends.
    """

    connections: Connections

    def listen(self, backlog: int = QUEUE, /) -> None:
        """Listen. A loop gives the number that it accepts at once, which is small; the queue is long all the same."""
        super().listen(QUEUE)

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection, and the address of its client."""
        opened, client = super().accept()
        self.connections.keep(opened, client)
        return opened, client

    def close(self) -> None:
        """Listen no longer; clients that the open connections wait for are not waited for."""
        if self.fileno() >= 0:
            self.connections.close_waiting()
        super().close()
