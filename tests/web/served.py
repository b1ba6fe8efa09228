"""The page as people run it: ``probeval judge`` in a process of its own, and assessors who speak HTTP to it."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from types import TracebackType
from typing import TextIO
from urllib.parse import urlencode, urlsplit

FIELD = re.compile(r'name="(mark|request|query|doc)" value="([^"]*)"')
FORM = re.compile(r'<form method="post" action="/judge".*?</form>', re.DOTALL)
COMMAND = "import sys; from probeval.cli import main; sys.argv[0] = 'probeval'; main()"


@dataclass
class Served:
    """A running server."""

    process: subprocess.Popen[str]
    url: str
    said: list[str] = field(default_factory=list)

    @classmethod
    def start(cls, store: object, *options: object, quiet: bool = True) -> Served:
        """Start a server on a free port and wait for its address."""
        words = [sys.executable, "-c", COMMAND, "judge", store, "--port", 0, "--format", "csv", *options]
        words += ["--quiet"] * quiet
        process = subprocess.Popen(
            list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        if not lines[1]:
            raise AssertionError(process.communicate()[1])
        return cls(process, lines[1].split(",")[0].rstrip("/"))

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def kill(self) -> None:
        """As the power goes out."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.communicate()


@dataclass
class Child:
    """A server that a nursery has started."""

    pid: int
    url: str
    printed: Sequence[TextIO]  # kept open while it runs

    def kill(self) -> None:
        """As the power goes out; it is gone when this returns."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
            while True:
                os.kill(self.pid, 0)
                time.sleep(0.001)
        for file in self.printed:
            file.close()


class Nursery:
    """Starts servers from a process that has imported everything; a context manager.

    What is started is what people start. Only the imports, which take longest, are done once.
    """

    def __enter__(self) -> Nursery:
        self._door, inside = socket.socketpair()
        with inside:
            words = [sys.executable, str(Path(__file__).with_name("nursery.py"))]
            self._process = subprocess.Popen(words, stdin=inside)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._door.close()
        self._process.wait()

    def start(self, store: object, *options: object) -> Child:
        """Start a server on a free port and wait for its address."""
        words = ["judge", store, "--port", 0, "--format", "csv", "--quiet", *options]
        (out, inner_out), (err, inner_err) = os.pipe(), os.pipe()
        socket.send_fds(self._door, [json.dumps(list(map(str, words))).encode()], [inner_out, inner_err])
        pid = int(self._door.recv(100))
        os.close(inner_out)
        os.close(inner_err)
        told, wrong = os.fdopen(out), os.fdopen(err)
        lines = [told.readline() for _ in range(2)]
        if not lines[1]:
            raise AssertionError(wrong.read())
        return Child(pid, lines[1].split(",")[0].rstrip("/"), (told, wrong))


class Judge:
    """An assessor with a connection of their own, who reads what the page says."""

    def __init__(self, url: str, token: str | None = None, *, trusted: ssl.SSLContext | None = None) -> None:
        self.url, self.host = url, urlsplit(url).netloc
        self._connection = (
            http.client.HTTPConnection(self.host, timeout=30)
            if trusted is None
            else http.client.HTTPSConnection(self.host, timeout=30, context=trusted)
        )
        self.cookie = ""
        self.fields: dict[str, str] = {}
        self.seconds: list[float] = []
        if token is not None:
            self._sign_in(token)

    def look(self) -> str:
        """Open the page, on a connection that the server has not given up meanwhile."""
        self._connection.close()
        return self._ask("GET", "/", None)

    def open(self, path: str) -> str:
        """Open another page, or the part of it that changes."""
        return self._ask("GET", path, None)

    def judge(self, grade: object) -> str:
        """Give the document of the page a grade; the request that the server has acknowledged."""
        request = self.fields["request"]
        self._ask("POST", "/judge", {**self.fields, "grade": str(grade)})
        return request

    @property
    def pair(self) -> tuple[str, str]:
        return self.fields["query"], self.fields["doc"]

    def close(self) -> None:
        self._connection.close()

    def _sign_in(self, token: str) -> None:
        headers = {"Origin": self.url, "Content-Type": "application/x-www-form-urlencoded"}
        self._connection.request("POST", "/login", urlencode({"token": token}), headers)
        answer = self._connection.getresponse()
        text = answer.read().decode()
        assert answer.status == 303, f"{answer.status} {text}"
        self.cookie = answer.headers["set-cookie"].partition(";")[0]

    def _ask(self, method: str, path: str, form: dict[str, str] | None) -> str:
        headers = {"Cookie": self.cookie, "Origin": self.url, "X-Part": "1"}
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        body = None if form is None else urlencode(form)
        began = time.perf_counter()
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        text = answer.read().decode()
        self.seconds.append(time.perf_counter() - began)
        assert answer.status == 200, f"{answer.status} {text}"
        found = FORM.search(text)
        self.fields = {} if found is None else {k: unescape(v) for k, v in FIELD.findall(found[0])}
        return text
