"""The worker that keeps snapshots fresh while people judge."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor

import pytest

from probeval.campaign import Campaign, Refresher


def _until(holds: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.02)
    return holds()


@pytest.mark.slow
def test_a_process_of_its_own_refreshes_whenever_judgments_come(make: Callable[..., Campaign]):
    campaign = make(clock=time.time, policy="depth")
    with Refresher(campaign, pause=0.05):
        assert _until(lambda: campaign.snapshot is not None, 60)
        campaign.answer("ann", campaign.pool.label(0), grade=1)
        assert _until(lambda: not campaign.is_behind, 60)
    assert campaign.snapshot is not None
    assert campaign.snapshot.judged == 1
    assert [point["judged"] for point in campaign.curve()] == [0, 1]


class Killed(ThreadPoolExecutor):
    """A worker whose process is gone."""

    def submit(self, *_: object, **__: object) -> Future[int]:  # type: ignore[override]
        raise BrokenExecutor("a process was killed")


def test_a_worker_that_was_killed_is_replaced(campaign: Campaign):
    told: list[str] = []
    workers = iter([Killed(1), Killed(1), ThreadPoolExecutor(1)])
    with Refresher(campaign, pause=0.01, start=lambda: next(workers), tell=told.append):
        assert _until(lambda: campaign.snapshot is not None, 30)
        assert campaign.next("ann")
    assert told == ["The model's process was killed. Another starts in 0 s."] * 2


@pytest.mark.slow
def test_a_process_that_is_killed_is_replaced(make: Callable[..., Campaign]):
    campaign, told = make(clock=time.time, policy="depth"), list[str]()
    with Refresher(campaign, pause=0.05, tell=told.append) as refresher:
        assert _until(lambda: campaign.snapshot is not None, 60)
        (worker,) = refresher._executor._processes.values()  # type: ignore[attr-defined]
        worker.kill()
        campaign.answer("ann", campaign.pool.label(0), grade=1)
        assert _until(lambda: not campaign.is_behind, 60)
    assert "The model's process was killed" in told[0]


class Failing(ThreadPoolExecutor):
    """A worker with a fault."""

    def submit(self, *_: object, **__: object) -> Future[int]:  # type: ignore[override]
        failed: Future[int] = Future()
        failed.set_exception(ValueError("no such row"))
        return failed


def test_an_unexpected_failure_is_told_once_and_judging_goes_on(campaign: Campaign):
    told: list[str] = []
    with Refresher(campaign, pause=0.01, start=lambda: Failing(1), tell=told.append):
        assert _until(lambda: bool(told), 5)
        assert campaign.next("ann")
        time.sleep(0.1)
        assert told == ["The model failed: ValueError: no such row."]
        campaign.answer("ann", campaign.pool.label(0), grade=1)
        assert _until(lambda: len(told) == 2, 5)  # it is tried again with new judgments


def test_what_is_wrong_with_the_model_is_told_and_judging_goes_on(campaign: Campaign):
    told: list[str] = []
    campaign._log.store.url = "nowhere.db"
    with Refresher(campaign, pause=0.01, start=lambda: ThreadPoolExecutor(1), tell=told.append):
        assert _until(lambda: bool(told), 5)
        assert campaign.next("ann")
        time.sleep(0.1)
    assert [text.split(".")[0] for text in told] == ["nowhere"]  # once, as nothing has changed since but a lease
