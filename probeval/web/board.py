"""The status of the campaign for pages, computed in the background, so that no page waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from types import TracebackType
from typing import Any

from probeval.campaign import Campaign, Share, State, Status
from probeval.errors import ProbevalError
from probeval.web.pictures import ProgressCurve, progress_curve

__all__ = ["Board", "Standing"]

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
    asked
        The number of questions with an answer at that moment.
    """

    status: Status
    curve: list[dict[str, Any]]
    asked: int

    def judged_in(self, state: State) -> int:
        """Grades and answers in a later state: those at that moment, and the questions answered since."""
        return self.made + sum(state.asked.values()) - self.asked

    def progress(self, state: State, *, checked: bool) -> dict[str, Any]:
        """The count of the progress strip in a later state, its name, and how far it will go if that is known.

        To those who are ``checked`` it counts all answers alike: one to a gold or a repeated question, or a second
        opinion, judges no further pair, and would show what it is by a count that stands still.
        """
        setup, judged, planned = self.status.setup, self.judged_in(state), self.planned
        if not (checked and setup.mixes_checks):
            counted = "Judged" if setup.ask == "grades" else "Answered"
            return {"judged": judged, "counted": counted, "planned": planned}
        given = sum(state.answered.values())
        if planned is not None:
            planned = given + ceil(max(0, planned[0] - judged) * setup.answers_per_judgment), planned[1]
        return {"judged": given, "counted": "Answers", "planned": planned}

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
    def made(self) -> int:
        """Grades and answers at that moment."""
        return self.status.made

    @cached_property
    def figures(self) -> list[tuple[str, float, float | None]]:
        """What the stopping rule tests, each beside its target; the confidence if it tests nothing of the model."""
        snapshot = self.status.snapshot
        if snapshot is None:
            return []
        tested = [(each.title, each.value, each.target) for each in snapshot.figures]
        return [*tested] or [("confidence", snapshot.confidence, None)]

    @cached_property
    def picture(self) -> ProgressCurve | None:
        """Confidence so far and its forecast, to draw."""
        status = self.status
        ahead = None if status.snapshot is None else status.snapshot.forecast
        needed = None if ahead is None or status.ends is None else status.ends[0]
        return progress_curve(self.curve, status.setup.rule_to_stop, forecast=ahead, needed=needed)

    @cached_property
    def planned(self) -> tuple[int, str] | None:
        """The number of grades and answers at the end, and how it is known: estimated (about), or a limit (at most)."""
        status = self.status
        if status.ends is not None:
            return status.ends[0], "about"
        budget = status.setup.rule_to_stop.left(self.made)
        if budget is None:
            return None
        planned = self.made + budget
        return min(status.pool, planned) if status.setup.ask == "grades" else planned, "at most"

    @property
    def minutes_left(self) -> float | None:
        """The remaining judging time in minutes, at the current pace; None if unknown."""
        left, paces = self.status.left, self.status.paces
        seconds = {
            "preferences": paces["preference"],
            "magnitudes": paces["magnitude"],
            "mixed": (paces["grade"] + paces["preference"]) / 2,
        }.get(self.status.setup.ask, self.status.seconds)
        return None if left is None or seconds != seconds else left * seconds / 60


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
        asked = sum(self._campaign.state.asked.values())
        return Standing(self._campaign.status(), self._campaign.curve(), asked)

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
