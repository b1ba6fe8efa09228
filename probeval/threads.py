"""Threads: one for the linear algebra of small matrices, several for blocks of queries."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, TypeVar

__all__ = ["in_order", "one_thread"]

T = TypeVar("T")
R = TypeVar("R")


_lock = Lock()
_users = 0
_limit: Any = None


@contextmanager
def one_thread() -> Iterator[None]:
    """Within it, BLAS uses one thread; afterwards as many as before. For many small matrices one is faster than two.

    The limit is the process's: it begins with the first user and ends with the last, whichever thread they are in.

    Examples
    --------
    >>> import numpy as np
    >>> with one_thread():
    ...     float((np.eye(2) @ np.ones(2)).sum())
    2.0
    """
    global _users, _limit
    with _lock:
        if _users == 0:
            _limit = _libraries().limit(limits=1, user_api="blas")
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limit.restore_original_limits()


@cache
def _libraries() -> Any:
    """The libraries of linear algebra that are loaded; to look for them takes a while."""
    import scipy.linalg  # noqa: F401  (brings one of its own)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def in_order(work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
    """The results of independent pieces of work, in the order of the items, on all cores where there are several.

    At most one more result than there are cores is held at a time, so that memory stays bounded.

    Examples
    --------
    >>> list(in_order(lambda x: x * x, [1, 2, 3]))
    [1, 4, 9]
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = min(cores, len(items))
    if workers < 2:
        yield from map(work, items)
        return

    def alone(item: T) -> R:
        with one_thread():
            return work(item)

    with ThreadPoolExecutor(workers) as executor:
        waiting: deque[Future[R]] = deque()
        for item in items:
            waiting.append(executor.submit(alone, item))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
