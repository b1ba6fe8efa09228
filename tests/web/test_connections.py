"""Clients that open connections and send nothing, or a byte at a time: nobody else is kept out."""

from __future__ import annotations

import http.client
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import anyio.to_thread
import pytest
from starlette.types import Receive, Scope, Send

from probeval.campaign import Campaign
from probeval.errors import CampaignError
from probeval.web import Assessor, Roster, serve
from probeval.web.connections import Connections, Listener
from probeval.web.entry import PERSON
from probeval.web.server import http_server
from tests.web.served import Judge, Served

HALF = b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "
WHOLE = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
MUCH = 10_000_000  # bytes, more than fit into the buffers of a connection that is not read
Address = tuple[str, int]


class Page:
    """A page that reads the whole body; the name in a header is signed in. /long takes until the test says so."""

    def __init__(self) -> None:
        self.began, self.goes_on = threading.Event(), threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body", False):
            pass
        name = dict(scope["headers"]).get(b"name", b"").decode()
        scope[PERSON] = Assessor(name, "secret") if name else None
        self.began.set()
        if scope["path"] == "/long":
            await anyio.to_thread.run_sync(self.goes_on.wait)
        body = b"ok" if scope["path"] != "/much" else bytes(MUCH)
        length = str(len(body)).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        for begin in range(0, len(body), 100_000):
            await send({"type": "http.response.body", "body": body[begin : begin + 100_000], "more_body": True})
        await send({"type": "http.response.body"})


@contextmanager
def listening(
    connections: Connections, *, page: Page | None = None, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> Iterator[Address]:
    """A server of these connections, in a thread."""
    server = http_server(page or Page(), connections, tls)
    with Listener(socket.AF_INET6 if ":" in host else socket.AF_INET) as listener:
        listener.connections = connections
        listener.bind((host, 0))
        listener.listen()
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname()[:2]
        finally:
            server.should_exit = True
            thread.join()


def is_closed(client: socket.socket, *, within: float = 2.0) -> bool:
    """Whether the server closes a connection within so many seconds."""
    client.settimeout(within)
    try:
        while client.recv(1000):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def answers(address: Address, request: bytes = WHOLE, *, source: str = "127.0.0.1") -> bool:
    with socket.create_connection(address, timeout=10, source_address=(source, 0)) as client:
        client.sendall(request)
        return client.recv(100).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("sent", [b"", b"G", HALF, WHOLE + HALF], ids=["nothing", "a letter", "half", "half a second"])
def test_headers_that_do_not_end_in_time(sent: bytes):
    with listening(Connections(patience=0.3)) as address, socket.create_connection(address) as client:
        began = time.monotonic()
        client.sendall(sent)
        while not is_closed(client, within=0.05) and time.monotonic() - began < 2:
            with suppress(OSError):
                client.sendall(b"a" if sent else b"")  # one byte at a time does not help
        assert 0.2 < time.monotonic() - began < 2
        assert answers(address)


@pytest.mark.slow
def test_a_client_in_time_stays():
    """The limit begins again with each response."""
    with listening(Connections(patience=0.6)) as address, closing(http.client.HTTPConnection(*address)) as client:
        for _ in range(3):
            client.request("GET", "/")
            assert client.getresponse().read() == b"ok"
            assert not is_closed(client.sock, within=0.35)
            client.sock.settimeout(10)


@pytest.mark.parametrize("sent", [b"", HALF, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc", WHOLE])
@pytest.mark.parametrize("addresses", [1, 100])
def test_three_hundred_connections_keep_nobody_out(sent: bytes, addresses: int):
    connections = Connections(each=20, strangers=60)
    with listening(connections) as address, ExitStack() as stack:
        for i in range(300):
            source = (f"127.0.0.{2 + i % addresses}", 0)
            client = stack.enter_context(socket.create_connection(address, source_address=source))
            client.sendall(sent)
            if i % 10 == 0:
                assert answers(address)
                assert answers(address, source=source[0])
                assert len(connections) <= (20 if addresses == 1 else 60) + 3
    assert len(connections) == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_those_who_are_signed_in_stay(host: str):
    if ":" in host and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    with listening(Connections(each=5, strangers=10), host=host) as address, ExitStack() as stack:
        ann = stack.enter_context(closing(http.client.HTTPConnection(*address, timeout=10)))
        ann.request("GET", "/", headers={"Name": "ann"})
        assert ann.getresponse().read() == b"ok"
        own = ann.sock
        for _ in range(30):
            stack.enter_context(socket.create_connection(address))
        ann.request("GET", "/", headers={"Name": "ann"})
        assert ann.getresponse().read() == b"ok"
        assert ann.sock is own  # the same connection
        for _ in range(10):  # a person has as many as an address
            more = stack.enter_context(closing(http.client.HTTPConnection(*address, timeout=10)))
            more.request("GET", "/", headers={"Name": "ann"})
            assert more.getresponse().read() == b"ok"
        assert is_closed(own)
        assert not is_closed(more.sock, within=0.1)


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def test_a_request_that_is_being_answered_is_not_cut_off():
    page = Page()
    with (
        listening(Connections(each=1, strangers=1, patience=0.2), page=page) as address,
        socket.create_connection(address, timeout=10) as first,
    ):
        first.sendall(WHOLE.replace(b"/ ", b"/long ", 1))
        assert page.began.wait(10)
        with socket.create_connection(address) as second:
            assert is_closed(second)
        page.goes_on.set()
        assert first.recv(100).startswith(b"HTTP/1.1 200")


def test_a_client_that_does_not_read_is_waited_for():
    """It is closed when there are too many, and when the server ends."""
    page = Page()
    with ExitStack() as stack:
        with listening(Connections(each=1), page=page) as address:
            clients = [stack.enter_context(socket.create_connection(address, timeout=10)) for _ in range(2)]
            for client in clients:
                page.began.clear()
                client.sendall(WHOLE.replace(b"/ ", b"/much ", 1))
                assert page.began.wait(10)
            assert read(clients[0]) < MUCH
            began = time.monotonic()
        assert time.monotonic() - began < 4  # five seconds are for responses that are read
        assert read(clients[1]) < MUCH


def read(client: socket.socket) -> int:
    """The number of bytes that come until the connection ends."""
    count = 0
    with suppress(ConnectionError):
        while some := client.recv(1_000_000):
            count += len(some)
    return count


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of this machine, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("a certificate takes openssl")
    folder = tmp_path_factory.mktemp("tls")
    made, key = folder / "cert.pem", folder / "key.pem"
    words = [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    alternative = ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", str(key), "-out", str(made)]
    subprocess.run(["openssl", *words, *alternative], check=True, capture_output=True)
    return made, key


@pytest.mark.slow
def test_handshakes_that_do_not_end(certificate: tuple[Path, Path]):
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*certificate)
    trusted = ssl.create_default_context(cafile=certificate[0])
    connections = Connections(each=10, strangers=20, patience=0.5)

    def is_answered(address: Address) -> bool:
        with closing(http.client.HTTPSConnection(*address, timeout=10, context=trusted)) as client:
            for _ in range(2):
                client.request("POST", "/", b"x" * 100_000)
                assert client.getresponse().read() == b"ok"
        return True

    with listening(connections, tls=tls) as address, ExitStack() as stack:
        assert is_answered(address)
        clients = [stack.enter_context(socket.create_connection(address)) for _ in range(40)]
        for client, sent in zip(
            clients, [b"", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n\r\n", b"\x80" * 100] * 10, strict=True
        ):
            with suppress(OSError):  # closed already
                client.sendall(sent)
        assert is_answered(address)
        assert len(connections) <= 11
        assert all(map(is_closed, clients))
        half = stack.enter_context(trusted.wrap_socket(socket.create_connection(address), server_hostname="localhost"))
        half.sendall(HALF)
        assert is_closed(half)
        assert is_answered(address)
    assert len(connections) == 0


def test_a_file_that_is_no_certificate(campaign: Campaign, put: Callable[[str, str], Path]):
    garbage = put("cert.pem", "no certificate")
    with pytest.raises(
        CampaignError, match=r"cert.pem: expected a certificate, and its private key in .*, both as PEM"
    ):
        serve(campaign, roster=Roster(campaign, alone="me"), port=0, certificate=garbage, key=garbage)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_half_open_connections_to_a_server(
    campaign: Campaign, serve: Callable[..., Served], certificate: tuple[Path, Path], scheme: str
):
    """As the attack did it: 300 connections without a token, from one address and from many."""
    _, token = campaign.people.invite("eve", "ann")
    options = ["--certificate", certificate[0], "--key", certificate[1]] if scheme == "https" else []
    server = serve(campaign.address[0], *options)
    host, port = server.host.split(":")
    trusted = ssl.create_default_context(cafile=certificate[0]) if scheme == "https" else None
    with ExitStack() as stack:
        for addresses in (1, 250):
            for i in range(300):
                source = (f"127.0.0.{2 + i % addresses}", 0)
                client = stack.enter_context(socket.create_connection((host, int(port)), source_address=source))
                client.sendall(HALF if i % 2 else b"")
            with closing(Judge(server.url, token, trusted=trusted)) as judge:
                judge.look()
                judge.judge(1)
                judge.judge(2)
    assert len(campaign.state.judged) == 4
