"""Many assessors at once, and a server that is killed under them: nothing lost, nothing doubled, nobody waits.

The time is that of the server's answer, from the first byte sent to the last byte read. An assessor looks at a document
for half a second; people take ten times as long. Without any pause the server is as busy as it can be, and only what
it keeps is looked at.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest

from probeval.campaign import Campaign, Role
from probeval.data import Collection, Scale, read_campaign
from probeval.relevance import synthetic_campaign
from probeval.web import Assessor
from tests.attack.cases import Attack, check_apart, check_some
from tests.campaign.conftest import on_both_databases
from tests.postgres import is_installed
from tests.web.crowds import KILLS, KILLS_ON_POSTGRES, Crowd, Ledger, create, team_of, write_roster
from tests.web.served import Judge, Served

PATIENCE = 0.150  # seconds, for 95 of 100
PAUSE = 0.5
Put = Callable[[str, str], Path]


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
    team = team_of(8)
    with create(store, bundled) as campaign:
        server = serve(store, "--assessor-file", write_roster(put("team.csv", ""), team))
        milliseconds = _judge_together(campaign, server, team, 200, 0.1)
        _said("8 assessors", milliseconds)
        assert np.median(milliseconds) < 1000 * PATIENCE  # a shared machine: the middle, not the end


@on_both_databases
@pytest.mark.validation
@pytest.mark.parametrize("pause", [PAUSE, 0.0], ids=["pause", "no pause"])
def test_twenty_assessors_make_two_thousand_judgments(store: str, serve: Callable[..., Served], put: Put, pause: float):
    team = team_of(20)
    collection = synthetic_campaign(seed=1, systems=12, queries=60, depth=20)
    with create(store, collection) as campaign:
        assert len(campaign.pool) > 2000
        owner = Assessor("eve", "the-long-token-of-eve", Role.owner)
        server = serve(store, "--assessor-file", write_roster(put("team.csv", ""), [*team, owner]), own_process=True)
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


@on_both_databases
@pytest.mark.validation
@pytest.mark.parametrize("people", [20, 50])
def test_assessors_who_take_half_a_second(store: str, serve: Callable[..., Served], put: Put, people: int):
    """The clients are in another process, so that the times are those of the server."""
    team = team_of(people)
    collection = synthetic_campaign(seed=1, systems=12, queries=60, depth=20)
    with create(store, collection) as campaign:
        roster = write_roster(put("team.csv", ""), team)
        server = serve(store, "--assessor-file", roster, own_process=True)
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


def _made(store: Path, collection: Collection, events: int) -> None:
    """A campaign with so many events: what twenty assessors did."""
    with create(str(store), collection) as campaign, ThreadPoolExecutor(20) as pool:

        def work(who: str) -> None:
            (task,) = campaign.next(who)
            while campaign.known_state.number < events:
                _, (task,) = campaign.answer_and_next(who, task.question, grade=1, token=f"{who} {task.doc}")

        list(pool.map(work, [f"b{i:02d}" for i in range(20)] if events else []))


@pytest.mark.validation
def test_the_throughput_after_thirty_thousand_events(tmp_path: Path, serve: Callable[..., Served], put: Put):
    """Two servers by turns, one with a long log: judgments in a second, by the median over turns."""
    turns, n, team = 12, 300, team_of(8)
    roster = write_roster(put("team.csv", ""), team)
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
    with create(str(memory / "store.db"), bundled):
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


@pytest.mark.slow
@pytest.mark.parametrize("attack", [KILLS, KILLS_ON_POSTGRES], ids=["sqlite", "postgres"])
def test_four_kills_lose_nothing(attack: Attack):
    """Eight on both databases."""
    if attack is KILLS_ON_POSTGRES and not is_installed():
        pytest.skip("PostgreSQL's server is not installed")
    assert check_some(attack, 4).tally["judgments acknowledged"] >= 4


@pytest.mark.validation
@pytest.mark.parametrize("name", ["kills", "kills on PostgreSQL"])
def test_five_hundred_kills_lose_nothing(name: str):
    """A thousand on both databases."""
    check_apart(name, 500)
