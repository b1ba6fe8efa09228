"""Threads for steps that write, apart from those that read: a store that is busy keeps no one from reading."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

__all__ = ["run_writing"]

T = TypeVar("T")
THREADS = 40  # as many again as there are for reading
_limits: RunVar[CapacityLimiter] = RunVar("probeval.writing")


async def run_writing(step: Callable[[], T]) -> T:
    """Run a step that may write to the store in a thread, of which there are a limited number for such steps."""
    try:
        limit = _limits.get()
    except LookupError:
        limit = CapacityLimiter(THREADS)
        _limits.set(limit)
    return await to_thread.run_sync(step, limiter=limit)
