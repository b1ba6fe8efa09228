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
    """Limit BLAS to one thread within the context. For many small matrices one thread is faster than two.

    The limit applies to the whole process: it starts with the first user and ends with the last, in any thread.

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
    """The loaded linear algebra libraries; cached because the search is slow."""
    import scipy.linalg  # noqa: F401  (loads its own BLAS)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def in_order(work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
    """Yield the results of independent work on each item, in the order of the items, computed on all cores.

    At most one result more than the number of cores is in memory at a time.

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
