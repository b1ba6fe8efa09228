"""The status of the campaign for pages, computed in the background, so that no page waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Any

from probeval.campaign import Campaign, Compared, Judged, Share, State, Status, Withdrawn
from probeval.errors import ProbevalError
from probeval.selection import Stopping
from probeval.web.pictures import ProgressCurve, progress_curve

__all__ = ["Board", "Standing", "Tally"]

PAUSE = 1.0  # seconds between updates
SHARE = 0.1  # the largest share of a processor spent on updates
LONGEST = 10.0  # seconds between updates at most


@dataclass(frozen=True, eq=False)
class Standing:
    """The campaign at one moment.

    Parameters
    ----------
    status, curve
        The status, and the confidence over time.
    judged, known
        At that moment, the pairs of the pool with a grade and the answers about two documents; and all pairs with a
        judgment and all pairs of documents with an answer.
    """

    status: Status
    curve: list[dict[str, Any]]
    judged: int
    known: int

    def judged_in(self, state: State) -> int:
        """Grades and answers in a later state: those at that moment, and those since."""
        return self.judged + len(state.judged) + len(state.compared) - self.known

    def share(self, assessor: str) -> Share | None:
        """The judgments of an assessor; None before the first."""
        return next((share for share in self.status.assessors if share.assessor == assessor), None)

    def paces(self, assessor: str) -> list[tuple[float, str]]:
        """The seconds that an assessor takes for each kind of question that is asked, and its name."""
        own = [each.seconds for each in self.status.comparers if each.assessor == assessor]
        share = self.share(assessor)
        grades = [] if share is None else [share.seconds]
        kinds = {
            "grades": [(grades, "each")],
            "mixed": [(grades, "per grade"), (own, "per comparison")],
        }.get(self.status.setup.ask, [(own, "each")])
        return [(seconds, kind) for times, kind in kinds for seconds in times if seconds == seconds]

    @cached_property
    def picture(self) -> ProgressCurve | None:
        """Confidence so far and its forecast, to draw."""
        status = self.status
        ahead = None if status.snapshot is None else status.snapshot.forecast
        return progress_curve(self.curve, status.setup.stopping, forecast=ahead)

    @cached_property
    def planned(self) -> tuple[int, str] | None:
        """The number of grades and answers at the end, and how it is known: estimated (about), or a limit (at most)."""
        status = self.status
        made = status.judged + status.answers
        if status.left is not None:
            return made + status.left, "about"
        budget = Stopping.parse(status.setup.stopping).left(made)
        if budget is None:
            return None
        return min(status.pool, made + budget) if status.setup.ask == "grades" else made + budget, "at most"

    @property
    def minutes_left(self) -> float | None:
        """The remaining judging time in minutes, at the current pace; None if unknown."""
        left, paces = self.status.left, self.status.paces
        seconds = {
            "grades": self.status.seconds,
            "preferences": paces["preference"],
            "magnitudes": paces["magnitude"],
            "mixed": (paces["grade"] + paces["preference"]) / 2,
        }[self.status.setup.ask]
        return None if left is None or seconds != seconds else left * seconds / 60


class Tally:
    """Each assessor's judgments and answers made here, updated from the log.

    Parameters
    ----------
    campaign
        The campaign.
    """

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._number = 0
        self._own: dict[str, dict[int, Judged | Compared]] = {}
        self._lock = threading.Lock()
        self.own("")

    def own(self, assessor: str) -> tuple[int, Judged | Compared | None]:
        """The number of an assessor's judgments and answers that were not withdrawn, and the last of them."""
        with self._lock:
            new = self._campaign.log(self._number) if self._campaign.known_state.number > self._number else []
            for event in new:
                self._number = event.number
                if isinstance(event, Judged | Compared) and not event.source:
                    self._own.setdefault(event.by, {})[event.number] = event
                elif isinstance(event, Withdrawn):
                    self._own.get(event.by, {}).pop(event.judgment, None)
            mine = self._own.get(assessor, {})
            return len(mine), next(reversed(mine.values()), None)


class Board:
    """Keeps the standing of a campaign up to date while a block runs.

    Parameters
    ----------
    campaign
        The campaign.
    pause
        Seconds between updates; up to ten for a big campaign, so that updates take about a tenth of a processor.
    tell
        Called with a message when an update fails; pages continue with the last standing.
    """

    def __init__(
        self, campaign: Campaign, *, pause: float = PAUSE, tell: Callable[[str], object] = lambda _: None
    ) -> None:
        self._campaign, self._pause, self._tell = campaign, pause, tell
        self._pool, self._pairs = campaign.pool, frozenset[tuple[str, str]]()
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
        """The standing now, updated at once."""
        self.standing = self._count()
        return self.standing

    def _count(self) -> Standing:
        state, pool = self._campaign.state, self._campaign.pool
        if not self._pairs or pool is not self._pool:  # late runs
            self._pool, self._pairs = pool, frozenset(map(pool.label, range(len(pool))))
        graded = (state.judged.keys() | state.adjudicated.keys()) & self._pairs
        judged, known = len(graded) + len(state.counted_answers), len(state.judged) + len(state.compared)
        return Standing(self._campaign.status(), self._campaign.curve(), judged, known)

    def _watch(self) -> None:
        wait = self._pause
        while not self._stop.wait(wait):
            began = time.thread_time()
            try:
                if self._is_old():
                    self.look()
            except ProbevalError as error:
                self._tell(str(error))
            except Exception as error:  # pages must not stand still for it
                self._tell(f"The progress could not be updated: {type(error).__name__}: {error}")
            wait = max(self._pause, min((time.thread_time() - began) / SHARE, LONGEST))

    def _is_old(self) -> bool:
        shown, snapshot = self.standing.status, self._campaign.snapshot
        return self._campaign.state.number != shown.events or (
            snapshot is not None and (shown.snapshot is None or snapshot.number != shown.snapshot.number)
        )
