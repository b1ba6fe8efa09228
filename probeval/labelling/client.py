"""A server that speaks the OpenAI chat protocol, over the standard library: hosted, vLLM, Ollama, llama.cpp and others.

The key goes to the server named and nowhere else: redirects are not followed, it is not part of any message, and it is
taken out of what a server says. Every request has a time limit for the whole of it, every reply a limit of its size.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cached_property
from math import isfinite
from typing import Any
from urllib.parse import SplitResult, urlsplit

from probeval.characters import printable
from probeval.display import Record
from probeval.errors import LabellingError

__all__ = ["Again", "Client", "Refused", "Reply"]

LARGEST = 1 << 20  # bytes of a reply
MOST_TOKENS = 1 << 40
SHOWN = 160  # characters of what a server says
BUSY = (408, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529)
UNBILLED = (425, 429, 502, 503, 529)  # the request was not worked on
HIDDEN = "***"
# Optional parts of a request that some servers refuse, and what stands in their place.
OPTIONAL = {
    "logprobs": None,
    "top_logprobs": None,
    "seed": None,
    "temperature": None,
    "max_tokens": "max_completion_tokens",
}
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Again(Exception):  # noqa: N818 - it says what to do
    """A request that may succeed later.

    Parameters
    ----------
    reason
        What went wrong, in a few words.
    after
        How many seconds the server asks to wait; None if it does not say.
    billed
        Whether the server may have done the work.
    is_away
        Whether there was no server to ask.
    """

    def __init__(self, reason: str, *, after: float | None = None, billed: bool = False, is_away: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.after, self.billed, self.is_away = reason, after, billed, is_away


class Refused(Exception):  # noqa: N818
    """A request that the server does not answer, and would not answer if asked again."""


@dataclass(frozen=True, repr=False)
class Reply(Record):
    """The answer of a server.

    Parameters
    ----------
    text
        What the model wrote.
    model
        The model that answered, by the server's own name, which may have a version.
    tokens_in, tokens_out
        The size of the question and of the answer as the server counts it; None if it does not say.
    tokens
        For each token of the answer: the token, and the tokens that were likely there with their log probabilities;
        empty without logprobs.
    is_cut
        Whether the answer ended at the most tokens allowed.
    without
        The optional parts of the request that the server refused.
    """

    text: str
    model: str
    tokens_in: int | None
    tokens_out: int | None
    tokens: tuple[tuple[str, Mapping[str, float]], ...] = ()
    is_cut: bool = False
    without: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Client(Record):
    """A server.

    Parameters
    ----------
    base_url
        Its address, up to what comes before ``/chat/completions``: ``http://127.0.0.1:8000/v1``.
    key
        The key that it asks for; empty for none.
    timeout
        The number of seconds that an answer may take.
    """

    base_url: str
    key: str = field(default="", repr=False)
    timeout: float = 60.0
    _started: dict[int, tuple[float, http.client.HTTPConnection]] = field(
        default_factory=dict, repr=False, compare=False
    )
    _local: threading.local = field(default_factory=threading.local, repr=False, compare=False)
    _without: set[str] = field(default_factory=set, repr=False, compare=False)  # optional parts that it refused

    def __repr__(self) -> str:
        return f"<Client: {self.base_url}>"

    def __post_init__(self) -> None:
        parts = self._parts
        if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
            raise LabellingError(
                "--base-url must be an address alone, without a name, a password or parameters: the key comes from the "
                "environment."
            )
        try:
            usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:  # the port is no number
            usable = False
        if not usable or any(not 32 < ord(letter) < 127 for letter in self.base_url):
            raise LabellingError(
                f"--base-url must be an address such as http://127.0.0.1:8000/v1, got {self.base_url!r:.80}."
            )
        if any(not 32 < ord(letter) < 127 for letter in self.key):
            raise LabellingError("the key must be one word of plain letters, digits and signs; it is not shown here.")

    @cached_property
    def _parts(self) -> SplitResult:
        try:
            return urlsplit(self.base_url)
        except ValueError:
            raise LabellingError("--base-url is no address.") from None

    @property
    def is_local(self) -> bool:
        """Whether the server is on this machine."""
        return self._parts.hostname in LOOPBACK

    @property
    def is_open(self) -> bool:
        """Whether others on the way can read what is sent."""
        return self._parts.scheme == "http" and not self.is_local

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    def ask(self, body: Mapping[str, Any]) -> Reply:
        """Send a request, and return the answer.

        Optional parts that the server refuses are left out from then on.

        Raises
        ------
        Again
            If the server is busy or cannot be reached.
        Refused
            If it does not answer this request.
        LabellingError
            If it will answer none: the key, the address or the model is wrong.
        """
        while True:
            sent = self._adapted(body)
            try:
                status, headers, data = self._post(json.dumps(sent).encode())
            except TimeoutError:
                self.close()
                raise Again(f"no answer within {self.timeout:g} s", billed=True) from None
            except ssl.SSLCertVerificationError as error:
                raise LabellingError(
                    f"{self.base_url}: its certificate is not valid: {error.verify_message}."
                ) from None
            except (ConnectionRefusedError, socket.gaierror) as error:
                self.close()
                what = "no such host" if isinstance(error, socket.gaierror) else "the connection was refused"
                raise Again(what, is_away=True) from None
            except (OSError, http.client.HTTPException) as error:
                self.close()
                raise Again(f"the connection failed ({type(error).__name__})", billed=True) from None
            if status == 200:
                return self._reply(data)
            if not self._adapts(status, data, sent):
                self._raise(status, headers, data)

    def _adapted(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The request with what the server takes in place of what it refused."""
        sent = dict(body)
        for name in tuple(self._without):
            value, other = sent.pop(name, None), OPTIONAL[name]
            if other is not None and value is not None:
                sent[other] = value
        return sent

    def _adapts(self, status: int, data: bytes, sent: Mapping[str, Any]) -> bool:
        """Whether an optional part was refused, which is then left out."""
        said = self._said(data).lower()
        named = [name for name in OPTIONAL if name in sent and name in said] if status in (400, 422) else []
        self._without.update(named)
        return bool(named)

    def expire(self) -> None:
        """End the requests whose time is over; those who wait for answers call this every now and then."""
        # The limit of a socket is for each part of a reply: a server that sends one byte at a time would never be late.
        now = time.monotonic()
        for end, held in list(self._started.values()):
            if now > end and held.sock is not None:
                with suppress(OSError):
                    held.sock.shutdown(socket.SHUT_RDWR)

    def _post(self, data: bytes) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Send the body of a request; return status, headers and body of the response, all within the time limit."""
        held, end, me = self._connection(), time.monotonic() + self.timeout, threading.get_ident()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        self._started[me] = end, held
        try:
            held.request("POST", f"{self._parts.path.rstrip('/')}/chat/completions", body=data, headers=headers)
            response = held.getresponse()
            body = response.read(LARGEST + 1)
        except (OSError, http.client.HTTPException):
            if time.monotonic() > end:
                raise TimeoutError from None
            raise
        finally:
            del self._started[me]
        if len(body) > LARGEST:
            self.close()
            raise Refused(f"the reply is larger than {LARGEST >> 20} MB")
        if response.will_close:
            self.close()
        return response.status, response.headers, body

    def _connection(self) -> http.client.HTTPConnection:
        """The connection of this thread, which is kept open from one request to the next."""
        held: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if held is None:
            host, port = self._parts.hostname or "", self._parts.port
            if self._parts.scheme == "https":
                held = http.client.HTTPSConnection(host, port, timeout=self.timeout, context=self._tls)
            else:
                held = http.client.HTTPConnection(host, port, timeout=self.timeout)
            self._local.connection = held
        return held

    def close(self) -> None:
        """Close the connection of this thread."""
        held = getattr(self._local, "connection", None)
        if held is not None:
            held.close()
            self._local.connection = None

    def _raise(self, status: int, headers: http.client.HTTPMessage, data: bytes) -> None:
        """Raise what a status other than 200 means."""
        if status in BUSY:
            raise Again(f"status {status}", after=_seconds(headers.get("Retry-After")), billed=status not in UNBILLED)
        if 300 <= status < 400:
            there = self._hidden(headers.get("Location", "another address"))
            raise LabellingError(
                f"{self.base_url} redirects to {there}, which is not followed, since the key would go there too. Name "
                "that address with --base-url if you trust it."
            )
        if status in (401, 403):  # what the server says of it may have parts of the key
            given = "the key was refused" if self.key else "it asks for a key, and none was given (--key-env NAME)"
            raise LabellingError(f"{self.base_url}: {given} (status {status}).")
        said = self._said(data)
        if status in (402, 404, 405):
            raise LabellingError(
                f"{self.base_url}: status {status}{f', {said}' if said else ''}. Check address and model."
            )
        raise Refused(f"status {status}{f', {said}' if said else ''}")

    def _reply(self, data: bytes) -> Reply:
        """The answer in a response."""
        try:
            document = json.loads(data)
            choice, usage = document["choices"][0], document.get("usage") or {}
            counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
            n_in, n_out = (n if isinstance(n, int) and 0 <= n < MOST_TOKENS else None for n in counts)
            text = choice["message"].get("content")
            return Reply(
                self._without_key(text) if isinstance(text, str) else "",
                self._hidden(str(document.get("model") or "")),
                n_in,
                n_out,
                tuple(map(_likely, (choice.get("logprobs") or {}).get("content") or ())),
                choice.get("finish_reason") == "length",
                tuple(sorted(self._without)),
            )
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise Refused("the reply is not of the chat protocol") from None

    def _said(self, data: bytes) -> str:
        """The message of an error, without the key."""
        try:
            error = json.loads(data)
            error = error.get("error", error.get("message", error.get("detail", "")))
            text = error.get("message", "") if isinstance(error, dict) else error
        except (ValueError, AttributeError, RecursionError):
            text = data[: 4 * SHOWN].decode("utf-8", "replace")
        return self._hidden(str(text))

    def _hidden(self, text: str) -> str:
        """A text of the server without the key, in one short line."""
        return printable(" ".join(self._without_key(text).split()))[:SHOWN]

    def _without_key(self, text: str) -> str:
        return text.replace(self.key, HIDDEN) if self.key else text


def _likely(token: Mapping[str, Any]) -> tuple[str, Mapping[str, float]]:
    """A token of an answer, and the log probabilities of those that were likely in its place."""
    others = {str(other["token"]): float(other["logprob"]) for other in token.get("top_logprobs") or ()}
    return str(token["token"]), {str(token["token"]): float(token["logprob"]), **others}


def _seconds(text: str | None) -> float | None:
    """The seconds that a header says to wait: a number, or until a date."""
    if text is None:
        return None
    try:
        found = float(text) if not text.strip()[:1].isalpha() else parsedate_to_datetime(text).timestamp() - time.time()
    except (ValueError, TypeError):
        return None
    return max(found, 0.0) if isfinite(found) else None
