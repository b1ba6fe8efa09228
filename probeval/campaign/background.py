"""Snapshots and forecasts computed in processes of their own, so that judging never waits for the model."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any

from probeval.campaign.campaign import Campaign
from probeval.campaign.runner import forecast_is_due, forecast_is_moot
from probeval.campaign.state import State
from probeval.errors import ProbevalError
from probeval.extensions import Addition, additions

__all__ = ["Refresher"]

PAUSE = 1.0  # seconds between checks for new judgments
QUIET = 10  # checks without new judgments after which the model is fitted afresh
REST = 60.0  # seconds at most before a worker that was killed is replaced
NICE, NICEST = 5, 19  # of snapshots and of forecasts: snapshots come first where both share a processor


class ModelProcess:
    """A process for one kind of work, one piece at a time. It is started when there is some, and again if it dies.

    Parameters
    ----------
    start
        Starts the process.
    rest
        Seconds before a killed process is replaced, the first time; twice as long after each further one.
    """

    def __init__(self, start: Callable[[], Executor], rest: float) -> None:
        self._start, self._rest = start, rest
        self._executor: Executor | None = None
        self._work: Future[int] | None = None
        self._failures, self._from = 0, 0.0

    @property
    def is_free(self) -> bool:
        """Whether it can take work: it has none, and is not at rest after a failure."""
        return self._work is None and time.monotonic() >= self._from

    def begin(self, work: Callable[..., int], *about: Any) -> None:
        """Begin a piece of work."""
        if self._executor is None:
            self._executor = self._start()
        self._work = self._executor.submit(work, *about)

    def collect(self) -> None:
        """Take finished work away; its error is raised."""
        if self._work is not None and self._work.done():
            done, self._work = self._work, None
            done.result()
            self._failures = 0

    def replace(self) -> float:
        """End a process that was killed; another starts after the seconds that are returned."""
        self._failures += 1
        wait: float = min(self._rest * 2**self._failures, REST)
        self._from = time.monotonic() + wait
        self.end()
        return wait

    def end(self) -> None:
        """End the process at once: the log keeps everything needed to repeat its work."""
        executor, self._executor, self._work = self._executor, None, None
        if executor is not None:
            for process in dict(getattr(executor, "_processes", None) or {}).values():
                process.terminate()
            executor.shutdown(wait=True, cancel_futures=True)


class Refresher:
    """Keeps a campaign's snapshot and its forecast up to date in worker processes while a block runs.

    A snapshot is computed whenever there are new judgments, and nothing comes before it; its fit begins with the one
    before, and is made afresh when nobody judges for a while. A forecast takes much longer
    and has a process of its own, which is ended as soon as news make its result worthless.

    Parameters
    ----------
    campaign
        The campaign; its ``snapshot`` is always the latest.
    pause
        Seconds between checks for new judgments.
    start
        Starts a worker that runs the model; by default a process of its own. One that was killed is replaced.
    tell
        Called with a message when a worker fails; judging continues with the last snapshot.

    Examples
    --------
    >>> with Refresher(campaign):  # doctest: +SKIP
    ...     serve(campaign)
    """

    def __init__(
        self,
        campaign: Campaign,
        *,
        pause: float = PAUSE,
        start: Callable[[], Executor] | None = None,
        tell: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._campaign, self._pause, self._tell = campaign, pause, tell
        self._snapshots, self._forecasts = (
            ModelProcess(start or partial(own_process, nice), pause) for nice in (NICE, NICEST)
        )
        self._tried = 0  # the last event of the latest attempt: a failed fit is not repeated on the same events
        self._quiet = 0  # the checks since then
        self._foreseen: State | None = None  # the state that the latest forecast began with
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="probeval-refresher", daemon=True)

    def __enter__(self) -> Refresher:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        for worker in (self._snapshots, self._forecasts):
            worker.end()

    def _watch(self) -> None:
        while not self._stop.wait(self._pause):
            for worker, next_step in ((self._snapshots, self._refresh), (self._forecasts, self._forecast)):
                try:
                    worker.collect()
                    next_step()
                except ProbevalError as error:
                    self._tell(str(error))
                except BrokenExecutor:
                    if not self._stop.is_set():
                        wait = worker.replace()
                        self._tried, self._foreseen = 0, None
                        self._tell(f"The model's process was killed. Another starts in {wait:.0f} s.")
                except Exception as error:  # judging goes on whatever is wrong with a model
                    if not self._stop.is_set():
                        self._tell(f"The model failed: {type(error).__name__}: {error}.")

    def _refresh(self) -> None:
        """Begin a new snapshot if there are judgments that the last one lacks; after a while without, a fresh one."""
        state, snapshot = self._campaign.state, self._campaign.snapshot
        if not self._snapshots.is_free:
            return
        self._quiet += 1
        fresh = self._quiet == QUIET and snapshot is not None and not snapshot.fresh
        if fresh or (state.changed > self._tried and self._campaign.is_behind):
            self._tried, self._quiet = state.changed, 0
            self._snapshots.begin(refresh, *self._campaign.address, fresh)

    def _forecast(self) -> None:
        """Begin a forecast that is due, or end one whose result would be worthless."""
        state, snapshot, begun = self._campaign.state, self._campaign.snapshot, self._foreseen
        if snapshot is None:
            return
        if not self._forecasts.is_free:
            if begun is not None and forecast_is_moot(begun, state, snapshot):
                self._forecasts.end()
        elif forecast_is_due(snapshot, state) and (begun is None or begun.changed < state.changed):
            self._foreseen = state
            self._forecasts.begin(forecast, *self._campaign.address)


def own_process(nice: int) -> Executor:
    """A process for the model. It opens the campaign by its address, so additions from outside come as an argument."""
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, mp_context=spawn, initializer=begin, initargs=(additions(), nice))


# In a worker: campaigns stay open, so that each fit starts from the last one.
_open: dict[tuple[str, str], Campaign] = {}


def begin(added: tuple[Addition, ...], nice: int) -> None:
    """Set up a worker process that has these additions.

    Low priority, Ctrl+C left to the server, exit when the server exits.
    """
    for addition in added:
        addition.register()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(nice)

    def follow() -> None:
        server = multiprocessing.parent_process()
        if server is not None:
            server.join()
            os._exit(1)

    threading.Thread(target=follow, name="probeval-follow", daemon=True).start()


def opened(store: str, name: str) -> Campaign:
    """A campaign, in a worker."""
    key = (store, name)
    if key not in _open:
        _open[key] = Campaign.open(store, name=name)
    return _open[key]


def refresh(store: str, name: str, fresh: bool) -> int:
    """Refresh a campaign's snapshot, in a worker; the number of the last event that it includes."""
    return opened(store, name).refresh(fresh=fresh).number


def forecast(store: str, name: str) -> int:
    """Forecast the judgments that a campaign needs, in a worker; their number, 0 if it has no target."""
    found = opened(store, name).forecast()
    return 0 if found is None else round(found.needed)
