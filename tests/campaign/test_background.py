"""The worker that keeps snapshots fresh while people judge."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from dataclasses import replace

import pytest

from probeval.campaign import Campaign, Refresher
from tests.campaign.conftest import Clock


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
    workers = iter([Killed(1), Killed(1), ThreadPoolExecutor(1)])  # none is started for forecasts
    with Refresher(campaign, pause=0.01, start=lambda: next(workers), tell=told.append):
        assert _until(lambda: campaign.snapshot is not None, 30)
        assert campaign.next("ann")
    assert told == ["The model's process was killed. Another starts in 0 s."] * 2


@pytest.mark.slow
def test_a_process_that_is_killed_is_replaced(make: Callable[..., Campaign]):
    campaign, told = make(clock=time.time, policy="depth"), list[str]()
    with Refresher(campaign, pause=0.05, tell=told.append) as refresher:
        assert _until(lambda: campaign.snapshot is not None, 60)
        (worker,) = refresher._snapshots._executor._processes.values()  # type: ignore[union-attr]
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


class Endless(ThreadPoolExecutor):
    """A worker that refreshes in its thread, and never ends a forecast."""

    made: list[Endless]

    def __init__(self) -> None:
        super().__init__(1)
        self.begun, self.ended = list[str](), threading.Event()
        Endless.made.append(self)

    def submit(self, work: Callable[..., int], *about: object) -> Future[int]:  # type: ignore[override]
        self.begun.append(work.__name__)
        return Future() if work.__name__ == "forecast" else super().submit(work, *about)

    def shutdown(self, *_: object, **__: object) -> None:  # type: ignore[override]
        self.ended.set()
        super().shutdown()


def test_snapshots_do_not_wait_for_a_forecast_and_news_cut_it_short(make: Callable[..., Campaign]):
    campaign, labels = make(stopping="confidence=.97"), iter(range(1000))
    Endless.made = []

    def judge(n: int) -> None:
        for _ in range(n):
            campaign.answer("ann", campaign.pool.label(next(labels)), grade=1)

    def forecasters() -> list[Endless]:
        return [worker for worker in Endless.made if "forecast" in worker.begun]

    judge(20)
    with Refresher(campaign, pause=0.01, start=Endless):
        assert _until(lambda: len(forecasters()) == 1, 30)
        for _ in range(3):
            judge(1)
            assert _until(lambda: not campaign.is_behind, 30)
        assert not forecasters()[0].ended.is_set()
        campaign.change("eve", goal="best")  # its result would be that of another goal
        assert forecasters()[0].ended.wait(30)
        assert _until(lambda: len(forecasters()) == 2, 30)
        judge(23)
        assert forecasters()[1].ended.wait(30)  # there are twice as many judgments by now
    assert all(worker.ended.is_set() for worker in Endless.made)


def test_a_forecast_is_kept_though_a_snapshot_was_made_meanwhile(make: Callable[..., Campaign]):
    campaign = make(stopping="confidence=.97")
    for i in range(20):
        campaign.answer("ann", campaign.pool.label(i), grade=i % 3)
    with Campaign.open(campaign.address[0]) as other:
        other.refresh()
        ahead = other.forecast()  # in one process
        assert ahead is not None
        campaign.answer("ann", campaign.pool.label(20), grade=1)
        campaign.refresh()  # in another
        assert other.snapshot is not None
        assert other.snapshot.judged == 21
        assert other.snapshot.forecast == ahead


def test_the_owner_is_told_when_the_model_is_behind_and_the_rule_waits_for_it(
    make: Callable[..., Campaign], clock: Clock
):
    campaign = make(stopping="budget=20")
    for i in range(20):
        campaign.answer("ann", campaign.pool.label(i), grade=1)
    campaign.refresh()
    status = campaign.status()
    assert (status.behind, status.behind_seconds, status.late, status.reached) == (0, 0.0, False, True)
    assert status.advice[0].startswith("The target is met")
    campaign.answer("ann", campaign.pool.label(20), grade=1)
    status = campaign.status()
    assert (status.behind, status.late, status.reached) == (1, False, False)
    assert "The target was met before the last 1 judgment: wait for the model." in status.advice
    clock.now += 120
    status = campaign.status()
    assert status.late
    assert status.advice[0].startswith("The model is 1 judgment behind, the first of them 2 minutes old")
    for i in range(21, 41):
        campaign.answer("ann", campaign.pool.label(i), grade=1)
    assert campaign.status().behind == 21
    campaign.refresh()
    assert not campaign.status().late


def test_a_fresh_fit_is_that_of_a_new_process_and_the_rule_is_met_by_one(make: Callable[..., Campaign]):
    campaign = make(stopping="budget=12", model="text-hierarchical")
    campaign.refresh()
    for i in range(12):
        campaign.answer("ann", campaign.pool.label(i), grade=i % 3)
        if i == 10:
            after_another = campaign.refresh()
            assert not after_another.fresh
            assert campaign.refresh() == replace(after_another, time=campaign.snapshot.time)  # no second fit
            afresh = campaign.refresh(fresh=True)
            assert afresh.fresh
            with Campaign.open(campaign.address[0]) as other:
                assert replace(other.refresh(), time=afresh.time) == afresh
    met = campaign.refresh()
    assert met.reached
    assert met.fresh


def test_the_model_is_fitted_afresh_when_nobody_judges(make: Callable[..., Campaign]):
    campaign = make(model="text-hierarchical")
    campaign.refresh()
    campaign.answer("ann", campaign.pool.label(0), grade=1)
    assert not campaign.refresh().fresh
    with Refresher(campaign, pause=0.01, start=lambda: ThreadPoolExecutor(1)):
        assert _until(lambda: campaign.snapshot is not None and campaign.snapshot.fresh, 30)
    assert len(campaign.curve()) == 2
