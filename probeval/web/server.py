"""The server: a socket, a worker for the model, and the pages."""

from __future__ import annotations

import ipaddress
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from probeval.campaign import Campaign, Refresher
from probeval.errors import CampaignError
from probeval.web.board import Board
from probeval.web.connections import Connections, Listener
from probeval.web.documents import Document
from probeval.web.entry import Roster
from probeval.web.site import application

__all__ = ["LOOPBACK", "is_loopback", "serve"]

LOOPBACK = ("127.0.0.1", "localhost", "::1")
EVERYWHERE = ("0.0.0.0", "::", "")
MOST_AT_ONCE = 512  # connections
ACCEPTED = 64  # connections in one go; each takes a quarter of a megabyte for TLS, even one that is closed at once


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host.

    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(
    campaign: Campaign,
    *,
    roster: Roster,
    documents: Mapping[str, Document] | None = None,
    host: str = "127.0.0.1",
    port: int = 8517,
    names: Collection[str] = (),
    show_ranking: bool = False,
    certificate: Path | None = None,
    key: Path | None = None,
    ready: Callable[[str], object] = lambda _: None,
    tell: Callable[[str], object] = lambda _: None,
) -> None:
    """Serve the judging page of a campaign until the process is stopped.

    Parameters
    ----------
    campaign, roster, documents, show_ranking
        As :func:`probeval.web.application` takes them.
    host, port
        The address to listen on, by default this machine only; other hosts need a token for each assessor.
        Port 0 takes a free port.
    names
        Public host names of the server, in addition to ``host``.
    certificate, key
        Files of a certificate and its private key, for HTTPS.
    ready
        Called with the address once the server accepts connections.
    tell
        Called with messages about the store, background failures and the end.
    """
    tell = _without_repeats(tell)

    @contextmanager
    def page(hosts: set[str]) -> Iterator[ASGIApp]:
        with campaign.serving(), Board(campaign, tell=tell) as board, ExitStack() as model:
            if campaign.has_runs:
                model.enter_context(Refresher(campaign, tell=tell))
            yield application(
                campaign,
                roster=roster,
                board=board,
                hosts=hosts,
                documents=documents,
                show_ranking=show_ranking,
                tell=tell,
            )

    _serve(page, roster, host, port, names, certificate, key, ready)
    tell("Stopped. All saved answers are in the store.")


def _serve(
    page: Callable[[set[str]], AbstractContextManager[ASGIApp]],
    roster: Roster,
    host: str,
    port: int,
    names: Collection[str],
    certificate: Path | None,
    key: Path | None,
    ready: Callable[[str], object],
) -> None:
    """Listen, and serve a page for these host names until the process is stopped."""
    if roster.alone is not None and not is_loopback(host):
        raise CampaignError(f"{host}: every assessor outside this machine needs a token. Invite them.")
    tls = _https(certificate, key) if certificate and key else None
    connections = Connections()
    with _until_stopped(), closing(_listen(host, port, connections)) as listener:
        hosts = {*LOOPBACK, *names, *(_own_names() if host in EVERYWHERE else [host])}
        with page(hosts) as app:
            server = http_server(app, connections, tls)
            shown = "127.0.0.1" if host in EVERYWHERE else f"[{host}]" if ":" in host else host
            with _stopping(server):
                ready(f"{'https' if tls else 'http'}://{shown}:{listener.getsockname()[1]}/")
                server.run(sockets=[listener])


def http_server(app: ASGIApp, connections: Connections, tls: ssl.SSLContext | None) -> uvicorn.Server:
    """The server of an application, with the same parser and the same loop whatever else is installed."""
    config = uvicorn.Config(
        partial(connections.watch, app),
        interface="asgi3",
        loop="asyncio:SelectorEventLoop",  # it accepts by the method of the listener, on Windows too
        http="h11",
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=ACCEPTED,
        limit_concurrency=MOST_AT_ONCE,
        timeout_graceful_shutdown=5,
        ssl_context_factory=None if tls is None else lambda *_: tls,
    )
    return uvicorn.Server(config)


def _without_repeats(tell: Callable[[str], object]) -> Callable[[str], object]:
    """Leave out a message that is the same as the one before: a store that is gone fails every second."""
    last = ""

    def once(message: str) -> None:
        nonlocal last
        if message != last:
            last = message
            tell(message)

    return once


@contextmanager
def _until_stopped() -> Iterator[None]:
    """End the block on Ctrl+C or SIGTERM, without an exception, so that the code around it can clean up."""
    with suppress(KeyboardInterrupt), _handled(signal.default_int_handler, signal.SIGTERM):
        yield


@contextmanager
def _stopping(server: uvicorn.Server) -> Iterator[None]:
    """End the server on Ctrl+C or SIGTERM, also before it runs; an exception could be lost in a callback."""

    def stop(*_: object) -> None:
        server.should_exit = True

    with _handled(stop, signal.SIGTERM, signal.SIGINT):
        yield


@contextmanager
def _handled(handler: Callable[..., object], *signals: signal.Signals) -> Iterator[None]:
    """Handle some signals of the process; only its main thread can."""
    here = threading.current_thread() is threading.main_thread()
    before = {each: signal.signal(each, handler) for each in signals} if here else {}
    try:
        yield
    finally:
        for each, handled in before.items():
            signal.signal(each, handled)


def _https(certificate: Path, key: Path) -> ssl.SSLContext:
    """The settings of HTTPS with a certificate and its private key."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        tls.load_cert_chain(certificate, key, _no_password)
    except (OSError, ValueError) as error:
        raise CampaignError(
            f"{certificate}: expected a certificate, and its private key in {key}, both as PEM: {error}."
        ) from None
    return tls


def _no_password() -> str:
    raise ValueError("the key has a password, so the server cannot start by itself; use a key without one")


def _listen(host: str, port: int, connections: Connections) -> Listener:
    """A listening socket; early connections wait until the pages are ready."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM)[0]
        with ExitStack() as stack:
            listener = stack.enter_context(Listener(family, kind, protocol))
            listener.connections = connections
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen()
            stack.pop_all()
            return listener
    except OSError as error:
        raise CampaignError(f"{host}:{port}: cannot listen there: {error.strerror or error}. Try port 0.") from None


def _own_names() -> set[str]:
    """The names and addresses of this machine."""
    name = socket.gethostname()
    try:
        addresses = {str(info[4][0]) for info in socket.getaddrinfo(name, None)}
    except OSError:
        addresses = set()
    return {name, socket.getfqdn(), *addresses}
