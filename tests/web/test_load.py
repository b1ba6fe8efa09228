"""Many assessors at once, and a server that is killed under them: nothing lost, nothing doubled, nobody waits.

The time is that of the server's answer, from the first byte sent to the last byte read. An assessor looks at a document
for half a second; people take ten times as long. Without any pause the server is as busy as it can be, and only what
it keeps is looked at.
"""

from __future__ import annotations

import http.client
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from probeval.campaign import Campaign, Judged, Leased, Question, Released, Role, Skipped, Store, Withdrawn, check_store
from probeval.data import Collection, Scale, read_campaign
from probeval.relevance import SyntheticCampaign, synthetic_campaign
from probeval.web import Assessor
from probeval.web.forms import Form
from tests.campaign.conftest import on_both_databases
from tests.web.served import Judge, Served

PATIENCE = 0.150  # seconds, for 95 of 100
PAUSE = 0.5
Put = Callable[[str, str], Path]


def _team(n: int) -> list[Assessor]:
    return [Assessor(f"a{i:02d}", f"the-long-token-of-a{i:02d}") for i in range(n)]  # they sign in with it


def _roster(put: Put, team: list[Assessor]) -> Path:
    rows = "".join(f"{each.name},{each.secret},{each.role}\n" for each in team)
    return put("team.csv", "assessor,token,role\n" + rows)


def _create(store: str, collection: Collection, model: str = "uniform") -> Campaign:
    bare = replace(collection, judgments=None)
    return Campaign.create(store, bare, metric="nDCG@20", scale=Scale.graded(2), model=model, stopping="confidence=.99")


class Watcher:
    """An owner who has the overview and the adjudication page open, which ask every half a second."""

    PAGES = ("/overview", "/adjudicate", "/progress")

    def __init__(self, url: str, owner: Assessor) -> None:
        self._judge = Judge(url, owner.secret)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._done.wait(PAUSE):
            for path in self.PAGES:
                self._judge.open(path)

    def end(self) -> np.ndarray:
        """The times of all answers in milliseconds."""
        self._done.set()
        self._thread.join()
        self._judge.close()
        assert len(self._judge.seconds) >= len(self.PAGES)
        return 1000 * np.array(self._judge.seconds)


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


def _judge_together(campaign: Campaign, server: Served, team: list[Assessor], n: int, pause: float) -> np.ndarray:
    crowd = Crowd(server.url, team, at_most=n, pause=pause)
    crowd.join()
    assert crowd.errors == []
    ledger = Ledger(campaign)
    ledger.check(crowd.acknowledged)
    assert len(ledger.judged) == len(crowd.acknowledged) == n  # none lost, none doubled
    return 1000 * np.array(crowd.seconds)


def _said(what: str, milliseconds: np.ndarray) -> None:
    p50, p95, p99 = np.percentile(milliseconds, [50, 95, 99])
    load = os.getloadavg()[0]
    print(f"{what}: {len(milliseconds)} answers, ms: p50 {p50:.1f}, p95 {p95:.1f}, p99 {p99:.1f}; load {load:.1f}")


@on_both_databases
@pytest.mark.slow
def test_eight_assessors_at_once(store: str, bundled: Collection, serve: Callable[..., Served], put: Put):
    team = _team(8)
    with _create(store, bundled) as campaign:
        server = serve(store, "--assessor-file", _roster(put, team))
        milliseconds = _judge_together(campaign, server, team, 200, 0.1)
        _said("8 assessors", milliseconds)
        assert np.median(milliseconds) < 1000 * PATIENCE  # a shared machine: the middle, not the end


@on_both_databases
@pytest.mark.validation
@pytest.mark.parametrize("pause", [PAUSE, 0.0], ids=["pause", "no pause"])
def test_twenty_assessors_make_two_thousand_judgments(store: str, serve: Callable[..., Served], put: Put, pause: float):
    team = _team(20)
    collection = synthetic_campaign(seed=1, systems=12, queries=60, depth=20)
    with _create(store, collection) as campaign:
        assert len(campaign.pool) > 2000
        owner = Assessor("eve", "the-long-token-of-eve", Role.owner)
        server = serve(store, "--assessor-file", _roster(put, [*team, owner]), own_process=True)
        watcher = Watcher(server.url, owner)
        try:
            milliseconds = _judge_together(campaign, server, team, 2000, pause)
        finally:
            watched = watcher.end()
        _said(f"20 assessors, pause {pause:g} s", milliseconds)
        _said("the owner's pages", watched)
        for times in (milliseconds, watched):
            assert not pause or np.percentile(times, 95) < 1000 * PATIENCE


def _judge_apart(url: str, team: list[Assessor], n: int, pause: float) -> tuple[list[str], list[float], list[str]]:
    """Judge together, in a process of its own that gives way to the server; requests, seconds and errors."""
    os.nice(5)
    crowd = Crowd(url, team, at_most=n, pause=pause)
    crowd.join()
    return crowd.acknowledged, crowd.seconds, [repr(error) for error in crowd.errors]


@pytest.mark.validation
@pytest.mark.parametrize("people", [20, 50])
def test_assessors_who_take_half_a_second(tmp_path: Path, serve: Callable[..., Served], put: Put, people: int):
    """The clients are in another process, so that the times are those of the server."""
    team = _team(people)
    collection = synthetic_campaign(seed=1, systems=12, queries=60, depth=20)
    with _create(str(tmp_path / "store.db"), collection) as campaign:
        server = serve(tmp_path / "store.db", "--assessor-file", _roster(put, team), own_process=True)
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as apart:
            acknowledged, seconds, errors = apart.submit(_judge_apart, server.url, team, 2000, PAUSE).result()
        assert errors == []
        ledger = Ledger(campaign)
        ledger.check(acknowledged)
        assert len(ledger.judged) == len(acknowledged) == 2000
        milliseconds = 1000 * np.array(seconds)
        _said(f"{people} assessors, apart", milliseconds)
        assert np.percentile(milliseconds, 95) < 1000 * PATIENCE


@pytest.mark.validation
def test_the_next_document_at_trec_8_size(data: Path, tmp_path: Path, serve: Callable[..., Served]):
    """One assessor, the pool of TREC-8 to depth 100, the default model at work beside."""
    runs = read_campaign(data / "trec8-adhoc").runs
    store = tmp_path / "trec8.db"
    with Campaign.create(
        store, Collection("trec8", runs), metric="AP", depth=100, scale=Scale.binary(), model="text-hierarchical"
    ) as campaign:
        assert len(campaign.pool) > 80_000
        server = serve(store, own_process=True)
        with closing(Judge(server.url)) as judge:
            judge.look()
            for turn in range(200):
                time.sleep(0.1)
                judge.judge(turn % 2)
            milliseconds = 1000 * np.array(judge.seconds[1:])
        _said("TREC-8, one assessor", milliseconds)
        assert len(campaign.state.judged) == 200
        assert np.percentile(milliseconds, 95) < 1000 * PATIENCE


def _kill_again_and_again(store: str, put: Put, times: int) -> int:
    """Kill a server so often while six assessors judge; the number of judgments acknowledged, all there after it."""
    team, rng = _team(6), np.random.default_rng(0)
    roster, acknowledged = _roster(put, team), list[str]()
    collection = SyntheticCampaign(systems=12, queries=20 + times, depth=20, docs=60).draw(rng)
    with _create(store, collection) as campaign:
        ledger = Ledger(campaign)
        for _ in range(times):
            server = Served.start(store, "--assessor-file", roster)
            crowd = Crowd(server.url, team, at_most=40, pause=0.01)
            try:
                assert crowd.began.wait(120), crowd.errors
                time.sleep(rng.uniform(0, 0.4))
            finally:
                server.kill()
                crowd.join()
            assert crowd.errors == []
            acknowledged += crowd.acknowledged
            ledger.check(crowd.acknowledged)
        Ledger(campaign).check(acknowledged)  # all of it once more
        print(f"{times} kills, {len(acknowledged)} acknowledged, all of them among the {len(ledger.judged)} in the log")
    with closing(Store(store, read_only=True)) as whole:
        assert check_store(whole).faults == ()
    return len(acknowledged)


def _made(store: Path, collection: Collection, events: int) -> None:
    """A campaign with so many events: what twenty assessors did."""
    with _create(str(store), collection) as campaign, ThreadPoolExecutor(20) as pool:

        def work(who: str) -> None:
            (task,) = campaign.next(who)
            while campaign.known_state.number < events:
                _, (task,) = campaign.answer_and_next(who, task.question, grade=1, token=f"{who} {task.doc}")

        list(pool.map(work, [f"b{i:02d}" for i in range(20)] if events else []))


@pytest.mark.validation
def test_the_throughput_after_thirty_thousand_events(tmp_path: Path, serve: Callable[..., Served], put: Put):
    """Two servers by turns, one with a long log: judgments in a second, by the median over turns."""
    turns, n, team = 12, 300, _team(8)
    roster = _roster(put, team)
    collection = synthetic_campaign(seed=1, systems=12, queries=400, depth=40, docs=200)
    servers = {}
    for events in (0, 30_000):
        _made(tmp_path / f"{events}.db", collection, events)
        servers[events] = serve(tmp_path / f"{events}.db", "--assessor-file", roster, own_process=True)
    rates: dict[int, list[float]] = {events: [] for events in servers}
    for _ in range(turns):
        for events, server in servers.items():
            crowd = Crowd(server.url, team, at_most=n, pause=0.0)
            assert crowd.began.wait(60), crowd.errors
            began = time.perf_counter()
            crowd.join()
            rates[events].append(n / (time.perf_counter() - began))
            assert crowd.errors == []
    start, late = (float(np.median(rates[events])) for events in servers)
    print(f"judgments in a second: {start:.0f} at the start, {late:.0f} after 30,000 events, ratio {late / start:.2f}")
    assert late > 0.8 * start


def _children(pid: int) -> set[int]:
    found = set()
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            if int(file.read_text().rpartition(")")[2].split()[1]) == pid:
                found.add(int(file.parent.name))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_server_that_ends_takes_its_worker_along(
    memory: Path, bundled: Collection, serve: Callable[..., Served], how: signal.Signals
):
    if not Path("/proc/self/stat").exists():
        pytest.skip("there is no /proc to look into")
    with _create(str(memory / "store.db"), bundled):
        server = serve(memory / "store.db", own_process=True)
        workers: set[int] = set()
        for _ in range(300):
            workers |= _children(server.process.pid)
            if len(workers) == 2:  # the worker, and the process that cleans up after it
                break
            time.sleep(0.1)
        assert len(workers) == 2
        server.process.send_signal(how)
        _, said = server.process.communicate(timeout=30)
        assert said == "" or how == signal.SIGKILL
        assert server.process.returncode == (-how if how == signal.SIGKILL else 0)
        for _ in range(100):
            left = [pid for pid in workers if Path(f"/proc/{pid}").exists()]
            if not left:
                break
            time.sleep(0.1)
        assert left == []


@on_both_databases
@pytest.mark.slow
def test_four_kills_lose_nothing(store: str, put: Put):
    """Eight on both databases."""
    assert _kill_again_and_again(store, put, 4) >= 4


@on_both_databases
@pytest.mark.validation
def test_five_hundred_kills_lose_nothing(store: str, put: Put):
    """A thousand on both databases."""
    assert _kill_again_and_again(store, put, 500) >= 500
