"""The page as people run it: ``probeval judge`` in a process of its own, and assessors who speak HTTP to it."""

from __future__ import annotations

import http.client
import re
import ssl
import time
from dataclasses import dataclass
from html import unescape
from urllib.parse import urlencode, urlsplit

from tests.campaign.nursery import Process, start_python

FIELD = re.compile(r'name="(mark|request|kind|query|doc)" value="([^"]*)"')
FORM = re.compile(r'<form method="post" action="/judge".*?</form>', re.DOTALL)
COMMAND = "import sys; from probeval.cli import main; sys.argv[0] = 'probeval'; main()"
# The model of a small campaign takes less time than a process of its own takes to start.
IN_A_THREAD = """
from concurrent.futures import ThreadPoolExecutor
from probeval.campaign import background
background.own_process = lambda nice: ThreadPoolExecutor(1)
"""


@dataclass
class Served:
    """A running server."""

    process: Process
    url: str

    @classmethod
    def start(cls, store: object, *options: object, quiet: bool = True, own_process: bool = False) -> Served:
        """Start a server on a free port and wait for its address; its model runs in a thread, or as people run it."""
        words = ["judge", store, "--port", 0, "--format", "csv", *options, *["--quiet"] * quiet]
        process = start_python(COMMAND if own_process else IN_A_THREAD + COMMAND, *words)
        lines = [process.stdout.readline() for _ in range(2)]
        if not lines[1]:
            raise AssertionError(process.communicate()[1])
        return cls(process, lines[1].split(",")[0].rstrip("/"))

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def kill(self) -> None:
        """As the power goes out; it is gone when this returns."""
        self.process.kill()
        self.process.communicate()


class RefusedError(AssertionError):
    """The server refused an honest request."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status} {text}")
        self.status = status


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
            self.sign_in(token)

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

    def sign_in(self, token: str) -> None:
        """Begin a session."""
        headers = {"Origin": self.url, "Content-Type": "application/x-www-form-urlencoded"}
        self._connection.request("POST", "/login", urlencode({"token": token}), headers)
        answer = self._connection.getresponse()
        text = answer.read().decode()
        if answer.status != 303:
            raise RefusedError(answer.status, text)
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
        if answer.status != 200:
            raise RefusedError(answer.status, text)
        found = FORM.search(text)
        self.fields = {} if found is None else {k: unescape(v) for k, v in FIELD.findall(found[0])}
        return text
