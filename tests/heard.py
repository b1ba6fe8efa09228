"""A reporter that keeps what it receives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from probeval.reporting import Reporter, TimeEstimate


class Heard(Reporter):
    """Remarks, estimates, and the work that was tracked: each piece once it is done."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.expected: list[TimeEstimate] = []
        self.work: list[tuple[str, int]] = []
        self.done: list[Any] = []

    def track(self, work: Sequence[Any], title: str) -> Iterable[Any]:
        self.work.append((title, len(work)))
        for piece in work:
            yield piece
            self.done.append(piece)  # a bar moves when the next one is asked for

    def say(self, text: str) -> None:
        self.said.append(text)

    def expect(self, estimate: TimeEstimate) -> None:
        self.expected.append(estimate)
