"""Requests that nobody would send, over the wire, to every address, by owners, assessors and strangers."""

from __future__ import annotations

import http.client
import random
import re
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote, urlencode

from starlette.routing import Route

from probeval.campaign import Campaign
from probeval.data import Scale
from probeval.errors import ProbevalError
from probeval.relevance import synthetic_campaign
from probeval.web import Board, Limiter, Roster, application
from probeval.web.forms import FIELDS
from tests.attack.cases import Attack, Attempt, Tally, in_memory
from tests.web.served import Judge, RefusedError, Served

METHODS = ("GET", "GET", "POST", "POST", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW")
WORDS = ("", "q1", "d001", "0", "1", "2", "-1", "nan", "qrels", "log", "csv", "../x", "%2e%2e", "'", "\0", "\u202e")
HEADERS = ("X-Part", "Range", "Content-Type", "Accept", "Origin", "Host")
MOST_GROWTH = 30  # MB by which a server grows after the first quarter of the requests
ROLES = ("owner", "assessor", "stranger")


def routes_of(campaign: Campaign) -> list[tuple[str, str]]:
    """The addresses of the page, each with the method that it takes."""
    roster, plenty = Roster(campaign, alone="x"), Limiter(rate=1e9, burst=1e9)
    app = application(campaign, roster=roster, board=Board(campaign), hosts=["judge.test"], requests=plenty)
    routes = app._app._app.routes  # type: ignore[attr-defined]
    pages = [route for route in routes if isinstance(route, Route)]
    return sorted({(route.path, "POST" if "POST" in (route.methods or ()) else "GET") for route in pages})


def memory_of(server: Served) -> float:
    """The memory of a server in MB."""
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


@dataclass(frozen=True)
class Sent:
    """A request that nobody would send; some of them are nearly right."""

    method: str
    address: str
    body: bytes
    headers: dict[str, str]

    @classmethod
    def draw(cls, rng: random.Random, route: str, method: str, mark: str, pair: tuple[str, str]) -> Sent:
        def word() -> str:
            return rng.choice(WORDS) if rng.random() < 0.7 else rng.randbytes(20).decode("latin-1")

        address = re.sub(r"\{.*\}", lambda _: quote(word(), safe=""), route)
        form = {name: word() for name in rng.sample([*FIELDS, "unknown"], rng.randrange(5))}
        if rng.random() < 0.6:
            form |= {"mark": mark, "query": pair[0], "doc": pair[1], "request": rng.randbytes(8).hex()}
            form.pop("unknown", None)
        body = urlencode(form).encode() if rng.random() < 0.8 else rng.randbytes(rng.randrange(2000))
        headers = {"Content-Type": "application/x-www-form-urlencoded", "X-Part": "1"}
        for name in rng.sample(HEADERS, rng.randrange(3)):
            if rng.random() < 0.3:
                headers[name] = rng.randbytes(12).decode("latin-1").translate(dict.fromkeys([*range(32), 127]))
        return cls(method if rng.random() < 0.6 else rng.choice(METHODS), address, body, headers)

    def send(self, server: Served, own: dict[str, str]) -> tuple[int, str]:
        """The status and the text of the answer, which comes within 30 seconds."""
        with closing(http.client.HTTPConnection(server.host, timeout=30)) as connection:
            body = None if self.method in ("GET", "HEAD") else self.body
            connection.request(self.method, self.address, body, own | self.headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode("utf-8", "replace")


@contextmanager
def hostile_requests(number: int) -> Iterator[Attempt]:
    """Attempts to send a request each. At the end the log is whole, and the server has hardly grown."""
    given = synthetic_campaign(seed=7, systems=6, queries=5, depth=8, docs=20, groups=3)
    with tempfile.TemporaryDirectory(dir=in_memory()) as place:
        store = Path(place) / "store.db"
        with Campaign.create(
            store, replace(given, judgments=None), metric="nDCG@5", scale=Scale.graded(2), model="uniform"
        ) as campaign:
            routes, pairs = routes_of(campaign), [campaign.pool.label(i) for i in range(len(campaign.pool))]
            tokens = [
                campaign.people.invite("eve", f"p{i}", role="owner" if i % 2 == 0 else "assessor")[1] for i in range(20)
            ]
            server = Served.start(store)
            judges = [Judge(server.url, token) for token in tokens]
            seen: list[float] = []

            def attempt(rng: random.Random, folder: Path, tally: Tally) -> None:
                role, (route, method) = rng.choice(ROLES), routes[len(seen) % len(routes)]
                at = 2 * rng.randrange(10) + (role == "assessor")
                judge = judges[at]
                try:
                    if not judge.cookie:
                        judge.sign_in(tokens[at])
                    if not judge.fields:
                        judge.look()
                except RefusedError as refused:
                    if refused.status != 429:
                        raise
                    raise ProbevalError("429") from refused  # the wrong tokens before it came from the same address
                sent = Sent.draw(rng, route, method, judge.fields.get("mark", ""), rng.choice(pairs))
                own = {"Origin": server.url} | ({} if role == "stranger" else {"Cookie": judge.cookie})
                status, text = sent.send(server, own)
                if route == "/logout" and status < 400 and role != "stranger":  # their session has ended
                    judge.cookie, judge.fields = "", {}
                tally[f"{route} by {'an' if role != 'stranger' else 'a'} {role}"] += 1
                seen.append(memory_of(server) if len(seen) % 50 == 0 else seen[-1])
                assert status < 500, (status, sent)
                assert "Traceback" not in text, sent
                if status >= 400:
                    raise ProbevalError(str(status))

            try:
                yield attempt
                grown = memory_of(server) - seen[len(seen) // 4]
                assert grown < MOST_GROWTH, f"{grown:.0f} MB more after {len(seen):,} requests"
                log = campaign.log()
                assert [event.number for event in log] == list(range(1, len(log) + 1))
            finally:
                for judge in judges:
                    judge.close()
                server.kill()


REQUESTS = Attack(
    "requests",
    10_000,
    hostile_requests,
    "requests that nobody would send, to every address of the page, by owners, assessors and strangers",
    "each is answered within 30 seconds, none by a 5xx; the server grows by less than 30 MB",
)
