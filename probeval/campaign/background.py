"""Snapshots computed in a separate process, so that judging never waits for the model."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from types import TracebackType

from probeval.campaign.campaign import Campaign
from probeval.campaign.runner import forecast_is_due
from probeval.errors import ProbevalError
from probeval.extensions import Addition, additions

__all__ = ["Refresher"]

PAUSE = 1.0  # seconds between checks for new judgments
REST = 60.0  # seconds at most before a worker that was killed is replaced
PATIENCE = 3  # snapshots before which a forecast is put off: it takes longer
NICE = 10


class Refresher:
    """Refreshes a campaign's snapshot in a worker process whenever there are new judgments, while a block runs.

    Parameters
    ----------
    campaign
        The campaign; its ``snapshot`` is always the latest.
    pause
        Seconds between checks for new judgments.
    start
        Starts the worker that runs the model; by default a process of its own. One that was killed is replaced.
    tell
        Called with a message when the worker fails; judging continues with the last snapshot.

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
        self._start = start or own_process
        self._executor = self._start()
        self._tried = 0  # the last event of the latest attempt: a failed fit is not repeated on the same events
        self._forecast_at, self._put_off = -1, 0  # judged pairs at the latest forecast; how often the next was put off
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="probeval-refresher", daemon=True)

    def __enter__(self) -> Refresher:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._end()
        self._thread.join()

    def _end(self) -> None:
        for worker in dict(getattr(self._executor, "_processes", None) or {}).values():
            worker.terminate()  # a fit may take minutes; the log keeps everything needed to repeat it
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _watch(self) -> None:
        work: Future[int] | None = None
        wait = rest = self._pause
        while not self._stop.wait(wait):
            wait = self._pause
            try:
                if work is not None and work.done():
                    done, work = work, None
                    done.result()
                    rest = self._pause
                work = work or self._begin()
            except ProbevalError as error:
                self._tell(str(error))
            except BrokenExecutor:
                if not self._stop.is_set():
                    wait = rest = min(2 * rest, REST)
                    self._tell(f"The model's process was killed. Another starts in {wait:.0f} s.")
                    self._end()
                    self._executor, self._tried, work = self._start(), 0, None
            except Exception as error:  # judging goes on whatever is wrong with a model
                if not self._stop.is_set():
                    self._tell(f"The model failed: {type(error).__name__}: {error}.")

    def _begin(self) -> Future[int] | None:
        """Begin the next work, if any: a new snapshot, or a forecast that is due and was not put off too often."""
        state, snapshot = self._campaign.state, self._campaign.snapshot
        behind = state.changed > self._tried and self._campaign.is_behind
        due = (
            snapshot is not None and snapshot.judged != self._forecast_at and forecast_is_due(snapshot, state.settings)
        )
        if due and snapshot is not None and (not behind or self._put_off >= PATIENCE):
            self._forecast_at, self._put_off = snapshot.judged, 0
        elif behind:
            self._put_off, due = self._put_off + due, False
        else:
            return None
        self._tried = state.changed
        return self._executor.submit(refresh, *self._campaign.address, due)


def own_process() -> Executor:
    """A process for the model. It opens the campaign by its address, so additions from outside come as an argument."""
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, mp_context=spawn, initializer=begin, initargs=(additions(),))


# In a worker: campaigns stay open, so that each fit starts from the last one.
_open: dict[tuple[str, str], Campaign] = {}


def begin(added: tuple[Addition, ...]) -> None:
    """Set up a worker process that has these additions.

    Low priority, Ctrl+C left to the server, exit when the server exits.
    """
    for addition in added:
        addition.register()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(NICE)

    def follow() -> None:
        server = multiprocessing.parent_process()
        if server is not None:
            server.join()
            os._exit(1)

    threading.Thread(target=follow, name="probeval-follow", daemon=True).start()


def refresh(store: str, name: str, forecast: bool) -> int:
    """Refresh a campaign's snapshot, in a worker; the number of the last event that it includes."""
    key = (store, name)
    if key not in _open:
        _open[key] = Campaign.open(store, name=name)
    return _open[key].refresh(forecast=forecast).number
