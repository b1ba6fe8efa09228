"""Requests to an ASGI application without a server, byte for byte as a test wants them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from html import unescape
from typing import TypeVar
from urllib.parse import unquote_to_bytes, urlencode

from starlette.types import ASGIApp, Message

T = TypeVar("T")
FIELD = re.compile(r'name="(mark|request|kind|query|doc|left|right|judgment)" value="([^"]*)"')


def run(work: Coroutine[object, object, T]) -> T:
    """The result of a coroutine, in a thread of its own: Playwright has a loop in the main one."""
    with ThreadPoolExecutor(1) as apart:
        return apart.submit(asyncio.run, work).result()


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def form(self, action: str) -> dict[str, str]:
        """The hidden fields of the form that goes to an address."""
        found = re.search(rf'<form method="post" action="{action}".*?</form>', self.text, re.DOTALL)
        assert found is not None, f"no form {action} on the page"
        return {name: unescape(value) for name, value in FIELD.findall(found[0])}


class Client:
    """Somebody who asks; what they send is what they are told to send, but for a Host, an Origin and their token."""

    def __init__(self, app: ASGIApp, host: str, *, token: str | None = None, scheme: str = "http") -> None:
        self.app, self.host, self.token, self.scheme = app, host, token, scheme

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        return self.ask("GET", path, headers or {})

    def post(self, path: str, form: Mapping[str, str], headers: Mapping[str, str] | None = None) -> Answer:
        """Send a form as our script does."""
        given = {"content-type": "application/x-www-form-urlencoded", "x-part": "1", **(headers or {})}
        return self.ask("POST", path, given, urlencode(form).encode())

    def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> Answer:
        return run(self.answer(method, path, headers, body))

    async def answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> Answer:
        """What comes back, for tests that send several requests at once."""
        own = {"host": self.host, "origin": f"{self.scheme}://{self.host}"}
        own |= {} if self.token is None else {"cookie": f"probeval={self.token}"}
        sent = [(k.lower().encode("latin-1"), v.encode("latin-1")) for k, v in {**own, **headers}.items() if v]
        plain, _, query = path.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": self.scheme,
            "path": unquote_to_bytes(plain).decode("utf-8", "replace"),
            "raw_path": plain.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [*sent, (b"content-length", str(len(body)).encode())],
            "client": ("127.0.0.1", 1234),
            "server": (self.host, 80),
        }
        told: list[Message] = []
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Message:
            return waiting.pop() if waiting else await asyncio.Event().wait()  # type: ignore[return-value]

        async def send(message: Message) -> None:
            told.append(message)

        await self.app(scope, receive, send)
        head = {k.decode("latin-1"): v.decode("latin-1") for k, v in told[0]["headers"]}
        return Answer(told[0]["status"], head, b"".join(message.get("body", b"") for message in told[1:]))
