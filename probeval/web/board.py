"""How the campaign goes, for pages: counted apart, a moment old, so that no page waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from probeval.campaign import Campaign, Judged, Share, State, Status, Withdrawn
from probeval.errors import ProbevalError

__all__ = ["Board", "Standing", "Tally"]

PAUSE = 1.0  # seconds between looks
SHARE = 0.1  # of the time, at most, goes into counting


@dataclass(frozen=True)
class Standing:
    """The campaign at one moment.

    Parameters
    ----------
    status, curve
        How it goes, and its confidence over time.
    judged, known
        Pairs of the pool with a grade, and pairs with a judgment, then.
    """

    status: Status
    curve: list[dict[str, Any]]
    judged: int
    known: int

    def judged_in(self, state: State) -> int:
        """Pairs of the pool with a grade in a later state: those of then, and the judgments since."""
        return self.judged + len(state.judged) - self.known

    def share(self, assessor: str) -> Share | None:
        """What an assessor has done, or None."""
        return next((share for share in self.status.assessors if share.assessor == assessor), None)

    @property
    def minutes_left(self) -> float | None:
        """What is left, in minutes of judging at the present pace; None where unknown."""
        left, seconds = self.status.left, self.status.seconds
        return None if left is None or seconds != seconds else left * seconds / 60


class Tally:
    """Each assessor's judgments made here, kept up with the log event by event.

    Parameters
    ----------
    campaign
        Whose log.
    """

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._number = 0
        self._own: dict[str, dict[int, Judged]] = {}
        self._lock = threading.Lock()
        self.own("")

    def own(self, assessor: str) -> tuple[int, Judged | None]:
        """How many judgments of an assessor stand, and the last of them."""
        with self._lock:
            for event in self._campaign.log(self._number):
                self._number = event.number
                if isinstance(event, Judged) and not event.source:
                    self._own.setdefault(event.by, {})[event.number] = event
                elif isinstance(event, Withdrawn):
                    self._own.get(event.by, {}).pop(event.judgment, None)
            mine = self._own.get(assessor, {})
            return len(mine), next(reversed(mine.values()), None)


class Board:
    """Keeps the standing of a campaign while a block runs.

    Parameters
    ----------
    campaign
        Whose standing.
    pause
        Seconds between looks. A big campaign is looked at less often: counting takes a tenth of the time at most.
    tell
        Is told what went wrong, in words; pages go on with the last standing.
    """

    def __init__(
        self, campaign: Campaign, *, pause: float = PAUSE, tell: Callable[[str], object] = lambda _: None
    ) -> None:
        self._campaign, self._pause, self._tell = campaign, pause, tell
        self._pairs = frozenset(map(campaign.pool.label, range(len(campaign.pool))))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="probeval-board", daemon=True)
        self.standing = self._count()

    def __enter__(self) -> Board:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def look(self) -> Standing:
        """The standing now, counted at once."""
        self.standing = self._count()
        return self.standing

    def _count(self) -> Standing:
        state = self._campaign.state
        graded = (state.judged.keys() | state.adjudicated.keys()) & self._pairs
        return Standing(self._campaign.status(), self._campaign.curve(), len(graded), len(state.judged))

    def _watch(self) -> None:
        wait = self._pause
        while not self._stop.wait(wait):
            began = time.perf_counter()
            try:
                if self._is_old():
                    self.look()
            except ProbevalError as error:
                self._tell(str(error))
            wait = max(self._pause, (time.perf_counter() - began) / SHARE)

    def _is_old(self) -> bool:
        known, snapshot = self.standing.status, self._campaign.snapshot
        return self._campaign.state.number != known.events or (
            snapshot is not None and (known.snapshot is None or snapshot.number != known.snapshot.number)
        )
