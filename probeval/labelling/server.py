"""A server on this machine that speaks the chat protocol and answers from a table, for tests and for trying things out.

It reads the two texts in a question back, as a model would. ``python -m probeval.labelling TABLE`` serves a table.
"""

from __future__ import annotations

import json
import math
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from probeval.display import Record

__all__ = ["Behaviour", "LoopbackServer", "texts_in"]

NONSENSE = ("It depends.", "", "7", "1 or 2", "null", "-1", "\x00\x1b[2J", '{"grade": "high"}')
KEPT = 100  # headers of requests
WRONG = 0.05  # the probability of each other grade in logprobs


@dataclass(frozen=True, repr=False)
class Behaviour(Record):
    """How a server behaves.

    Parameters
    ----------
    delay
        The seconds until an answer.
    busy, fail, nonsense
        The shares of requests that are refused as too many, fail, and get an answer that is no grade; drawn by the
        seed.
    retry_after
        What a busy server says in ``Retry-After``; empty for nothing.
    logprobs, usage
        Whether answers have log probabilities, and the numbers of tokens.
    key
        The key that it asks for; empty for none.
    redirect
        Where it sends all requests; empty for nowhere.
    refuses
        Parts of a request that it refuses by name, as some servers do ``temperature``.
    raw
        The body of every reply, whatever was asked; None for answers.
    drip
        The seconds between two bytes of a reply.
    seed
        Of what is drawn.
    """

    delay: float = 0.0
    busy: float = 0.0
    fail: float = 0.0
    nonsense: float = 0.0
    retry_after: str = ""
    logprobs: bool = True
    usage: bool = True
    key: str = ""
    redirect: str = ""
    refuses: tuple[str, ...] = ()
    raw: bytes | None = None
    drip: float = 0.0
    seed: int = 0


def texts_in(question: str) -> tuple[str, str]:
    r"""The texts of query and document in a question by a prompt of probeval: what is in its JSON strings.

    >>> texts_in('Grade.\n\nQuery: "star wars"\n\nDocument: "Query: \\"x\\""\n\nAnswer.')
    ('star wars', 'Query: "x"')
    """
    found = []
    for name in ("Query", "Document"):
        at = question.index(f"\n{name}: ") + len(name) + 3
        text, end = json.JSONDecoder().raw_decode(question[at:])
        question = question[at + end :]
        found.append(text)
    return found[0], found[1]


class LoopbackServer:
    """A server on this machine that answers from a table; it records what it was asked.

    Parameters
    ----------
    grades
        The grade of each pair, by the texts of query and document, or a function of these; other pairs have grade 0.
    n_grades
        The number of grades.
    behaviour
        How it behaves.
    port
        Its port; by default a free one.

    Attributes
    ----------
    asked : collections.Counter
        How often each question was asked.
    headers : list
        The headers of the latest requests.
    most : int
        The most requests at a time.

    Examples
    --------
    >>> from probeval.labelling import Client, Labeller, load_prompt
    >>> labeller = Labeller("my-llm", load_prompt("graded"))
    >>> question = labeller.prompt.question("q1", "goldfish", "Goldfish grow to their tank.")
    >>> with LoopbackServer({("goldfish", "Goldfish grow to their tank."): 3}) as server:
    ...     client = Client(server.base_url)
    ...     print(client.ask(labeller.body(question)).text)
    ...     client.close()
    3
    """

    def __init__(
        self,
        grades: Mapping[tuple[str, str], int] | Callable[[str, str], int],
        *,
        n_grades: int = 4,
        behaviour: Behaviour | None = None,
        port: int = 0,
    ) -> None:
        self._grades, self.n_grades, self.behaviour = grades, n_grades, behaviour or Behaviour()
        self.asked: Counter[str] = Counter()
        self.headers: deque[dict[str, str]] = deque(maxlen=KEPT)
        self.most = self._now = 0
        self._lock = threading.Lock()
        self._http = _Http(("127.0.0.1", port), _handler(self))
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __repr__(self) -> str:
        return f"<LoopbackServer: {self.base_url}, {self.asked.total():,} requests>"

    @property
    def base_url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def start(self) -> LoopbackServer:
        """Begin to answer."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """End."""
        self._http.shutdown()
        self._http.server_close()

    def __enter__(self) -> LoopbackServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def grade(self, question: str) -> int:
        """The grade of the pair in a question."""
        query, document = texts_in(question)
        grade = self._grades(query, document) if callable(self._grades) else self._grades.get((query, document), 0)
        return int(grade)

    def respond(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> tuple[int, dict[str, str], bytes]:
        """The status, the headers and the body of the response to a request."""
        question, how = body["messages"][-1]["content"], self.behaviour
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
            self.asked[question] += 1
            self.headers.append(dict(headers))
            drawn = random.Random(f"{how.seed} {self.asked[question]} {body.get('seed')} {question}")
        try:
            if how.delay:
                time.sleep(how.delay)
            return self._responded(body, question, headers, drawn)
        finally:
            with self._lock:
                self._now -= 1

    def _responded(
        self, body: Mapping[str, Any], question: str, headers: Mapping[str, str], drawn: random.Random
    ) -> tuple[int, dict[str, str], bytes]:
        how, chance = self.behaviour, drawn.random()
        refused = [name for name in how.refuses if name in body]
        if how.redirect:
            return 307, {"Location": how.redirect}, b""
        if how.key and headers.get("Authorization") != f"Bearer {how.key}":
            return 401, {}, _error(f"Incorrect API key provided: {headers.get('Authorization')}.")
        if refused:
            return 400, {}, _error(f"Unsupported parameter: '{refused[0]}' is not supported with this model.")
        if chance < how.busy:
            return 429, {"Retry-After": how.retry_after} if how.retry_after else {}, _error("Too many requests.")
        if chance < how.busy + how.fail:
            return 500, {}, _error("Something broke.")
        if how.raw is not None:
            return 200, {}, how.raw
        if chance < how.busy + how.fail + how.nonsense:
            return 200, {}, self._answered(body, question, drawn.choice(NONSENSE), ())
        weights = [WRONG] * self.n_grades
        weights[self.grade(question)] = 1 - WRONG * (self.n_grades - 1)
        best = max(range(self.n_grades), key=weights.__getitem__)
        grade = drawn.choices(range(self.n_grades), weights)[0] if body.get("temperature") else best
        return 200, {}, self._answered(body, question, str(grade), weights)

    def _answered(self, body: Mapping[str, Any], question: str, text: str, weights: Sequence[float]) -> bytes:
        """The reply with an answer."""
        choice: dict[str, Any] = {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": text},
        }
        if weights and self.behaviour.logprobs and body.get("logprobs"):
            likely = [{"token": str(grade), "logprob": math.log(p)} for grade, p in enumerate(weights)]
            token = {"token": text, "logprob": math.log(weights[int(text)]), "top_logprobs": likely}
            choice["logprobs"] = {"content": [token]}
        counts = {"prompt_tokens": len(question) // 4, "completion_tokens": 1}
        usage = {"usage": {**counts, "total_tokens": sum(counts.values())}} if self.behaviour.usage else {}
        return json.dumps({"object": "chat.completion", "model": body["model"], "choices": [choice], **usage}).encode()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that was killed is part of the tests."""


def _handler(server: LoopbackServer) -> type[BaseHTTPRequestHandler]:
    """The handler of the requests to a server."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # or a reply waits for the acknowledgement of its own headers

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, headers, data = server.respond(body, dict(self.headers.items()))
            lines = [f"HTTP/1.1 {status} {self.responses[status][0]}", "Content-Type: application/json"]
            lines += [f"Content-Length: {len(data)}", *(f"{name}: {value}" for name, value in headers.items())]
            reply = "\r\n".join([*lines, "", ""]).encode() + data
            if server.behaviour.drip:
                for at in range(len(reply)):
                    self.wfile.write(reply[at : at + 1])
                    time.sleep(server.behaviour.drip)
            else:
                self.wfile.write(reply)

        def log_message(self, format: str, *args: Any) -> None:
            """Write no log."""

    return Handler


def _error(message: str) -> bytes:
    return json.dumps({"error": {"message": message}}).encode()
