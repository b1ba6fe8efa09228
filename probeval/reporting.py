"""What long work reports while it goes on: progress, remarks, and estimates of its time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

__all__ = ["SILENT", "Reporter", "TimeEstimate"]

T = TypeVar("T")


@dataclass(frozen=True)
class TimeEstimate:
    """An estimate of time.

    Parameters
    ----------
    seconds
        The estimate, on one core.
    work
        The size of the work in words.

    Examples
    --------
    >>> str(TimeEstimate(41.0, "49,528 pairs, 1,000 draws"))
    'About 40 s: 49,528 pairs, 1,000 draws.'
    >>> str(TimeEstimate(400.0, "8,173 pairs, 8 paths"))
    'About 7 min: 8,173 pairs, 8 paths.'
    """

    seconds: float
    work: str

    def __str__(self) -> str:
        if self.seconds >= 120:
            return f"About {self.seconds / 60:.0f} min: {self.work}."
        step = 5 if self.seconds < 60 else 10
        return f"About {max(round(self.seconds / step), 1) * step} s: {self.work}."


class Reporter:
    """Receives what work reports. This one drops everything; derive from it to show some of it.

    Examples
    --------
    >>> class Printer(Reporter):
    ...     def say(self, text: str) -> None:
    ...         print(text)
    >>> import probeval
    >>> runs = {"bm25": {"q1": {"d1": 2.0, "d2": 1.0}}}
    >>> found = probeval.evaluate(runs, "P@2", model="uniform", scale="binary", reporter=Printer())
    Model uniform: it was asked for. Scale binary (named).
    """

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def track(self, work: Sequence[T], title: str) -> Iterable[T]:
        """Return the items of some work, one after another; ``title`` says what is done with them."""
        return iter(work)

    def beside(self, text: str) -> None:
        """Receive what stands beside the progress of the present work, such as its rate."""

    def say(self, text: str) -> None:
        """Receive a remark on the data, the model or the result."""

    def expect(self, estimate: TimeEstimate) -> None:
        """Receive an estimate of the time that the work takes."""


SILENT = Reporter()
