"""People who judge at once, what must hold of the log meanwhile, and servers that are killed under them."""

from __future__ import annotations

import http.client
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from probeval.campaign import Campaign, Judged, Leased, Question, Released, Skipped, Store, Withdrawn, check_store
from probeval.data import Collection, Scale
from probeval.relevance import SyntheticCampaign
from probeval.web import Assessor
from probeval.web.forms import Form
from tests.attack.cases import Attack, Attempt, Tally, in_memory
from tests.postgres import new_schema, postgres_server
from tests.web.served import Judge, Served


def team_of(n: int) -> list[Assessor]:
    """Assessors with tokens."""
    return [Assessor(f"a{i:02d}", f"the-long-token-of-a{i:02d}") for i in range(n)]  # they sign in with it


def write_roster(path: Path, team: list[Assessor]) -> Path:
    """The table of assessors that a server takes."""
    path.write_text("assessor,token,role\n" + "".join(f"{each.name},{each.secret},{each.role}\n" for each in team))
    return path


def create(store: str, collection: Collection, model: str = "uniform") -> Campaign:
    """A campaign with nothing judged."""
    bare = replace(collection, judgments=None)
    return Campaign.create(store, bare, metric="nDCG@20", scale=Scale.graded(2), model=model, stopping="confidence=.99")


class Crowd:
    """Assessors who judge at once, each on a thread with a connection of their own, until told to stop."""

    def __init__(self, url: str, team: list[Assessor], *, at_most: int, pause: float) -> None:
        self.acknowledged: list[str] = []  # the names of requests in the log
        self.seconds: list[float] = []
        self.errors: list[BaseException] = []
        self._left, self._pause, self._url = at_most, pause, url
        self._lock = threading.Lock()
        self.began = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(each, i)) for i, each in enumerate(team)]
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _work(self, who: Assessor, seed: int) -> None:
        rng, judge = np.random.default_rng(seed), None
        try:
            judge = Judge(self._url, who.secret)
            judge.look()
            while judge.fields and self._take():
                time.sleep(self._pause * rng.uniform(0.5, 1.5))
                request = judge.judge(rng.integers(3))
                name = Form({"request": request}).token(who, "/judge")
                assert name is not None
                with self._lock:
                    self.acknowledged.append(name)
                    self.seconds.append(judge.seconds[-1])
                self.began.set()
        except (OSError, http.client.HTTPException):
            pass  # the server is gone
        except BaseException as error:
            self.errors.append(error)
        finally:
            if judge is not None:
                judge.close()

    def _take(self) -> bool:
        with self._lock:
            self._left -= 1
            return self._left >= 0


class Ledger:
    """The log as it grows: each look checks what is new.

    Every acknowledged judgment is there, once; events are numbered without gaps; no pair is two people's at once, or
    judged twice.
    """

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._number = 0
        self._tokens: set[str | None] = set()
        self._held: dict[Question, dict[str, float]] = {}
        self.judged: dict[Question, Judged] = {}

    def check(self, acknowledged: list[str]) -> None:
        """Check the events since the last look, and that these judgments are in the log."""
        for event in self._campaign.log(self._number):
            assert event.number == self._number + 1
            self._number = event.number
            if isinstance(event, Leased):
                held = self._held.setdefault(event.question, {})
                assert not [who for who, until in held.items() if who != event.by and until > event.time], event
                held[event.by] = event.until
            elif isinstance(event, (Judged, Released, Skipped, Withdrawn)):
                self._held.get(event.question, {}).pop(event.by, None)
            if isinstance(event, Judged):
                assert event.token not in self._tokens, event
                assert event.question not in self.judged, event
                self._tokens.add(event.token)
                self.judged[event.question] = event
        assert set(acknowledged) <= self._tokens


@contextmanager
def kills(number: int, *, postgres: bool) -> Iterator[Attempt]:
    """Attempts to kill a server with six assessors at work; every judgment that was acknowledged is in the log."""
    collection = SyntheticCampaign(systems=12, queries=20 + number, depth=20, docs=60).draw(np.random.default_rng(0))
    with tempfile.TemporaryDirectory(dir=in_memory()) as place, _store(Path(place), postgres=postgres) as store:
        team = team_of(6)
        roster = write_roster(Path(place) / "team.csv", team)
        with create(store, collection) as campaign:
            ledger, acknowledged = Ledger(campaign), list[str]()

            def attempt(rng: random.Random, folder: Path, tally: Tally) -> None:
                server = Served.start(store, "--assessor-file", roster)
                crowd = Crowd(server.url, team, at_most=40, pause=0.01)
                try:
                    assert crowd.began.wait(120), crowd.errors
                    time.sleep(rng.uniform(0, 0.4))
                finally:
                    server.kill()
                    crowd.join()
                assert crowd.errors == []
                acknowledged.extend(crowd.acknowledged)
                tally["judgments acknowledged"] += len(crowd.acknowledged)
                ledger.check(crowd.acknowledged)

            yield attempt
            Ledger(campaign).check(acknowledged)  # all of it once more
        with closing(Store(store, read_only=True)) as whole:
            assert check_store(whole).faults == ()


@contextmanager
def _store(folder: Path, *, postgres: bool) -> Iterator[str]:
    if postgres:
        with postgres_server() as url:
            yield new_schema(url)
    else:
        yield str(folder / "store.db")


HARM = "`kill -9` of a server with six assessors at work, {}"
PROMISE = "every judgment that was acknowledged is there, once"
KILLS = Attack("kills", 500, partial(kills, postgres=False), HARM.format("on SQLite"), PROMISE)
KILLS_ON_POSTGRES = Attack("kills", 500, partial(kills, postgres=True), HARM.format("on PostgreSQL"), PROMISE)
