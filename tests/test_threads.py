"""Work in threads: results in order, few held at a time, errors passed on."""

from __future__ import annotations

import threading
import time

import pytest
from threadpoolctl import threadpool_info

from probeval.threads import in_order, one_thread


def test_results_come_in_the_order_of_the_items_whoever_is_first():
    def slow_first(i: int) -> int:
        time.sleep(0.02 if i == 0 else 0.0)
        return i * i

    assert list(in_order(slow_first, range(20))) == [i * i for i in range(20)]
    assert list(in_order(slow_first, [])) == []
    assert list(in_order(slow_first, [3])) == [9]


def test_no_more_work_is_begun_than_can_be_held():
    begun = []
    lock = threading.Lock()

    def work(i: int) -> int:
        with lock:
            begun.append(i)
        return i

    results = in_order(work, range(100))
    next(results)
    time.sleep(0.05)
    assert len(begun) < 20
    assert list(results) == list(range(1, 100))


def test_an_error_in_a_thread_reaches_the_caller():
    def fail(i: int) -> int:
        if i == 3:
            raise ValueError("three")
        return i

    with pytest.raises(ValueError, match="three"):
        list(in_order(fail, range(10)))


def blas_threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_the_limit_of_one_thread_ends_with_its_last_user():
    import scipy.linalg  # noqa: F401

    before = blas_threads()
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with one_thread():
            inside.set()
            leave.wait(5)

    thread = threading.Thread(target=other)
    with one_thread():
        thread.start()
        inside.wait(5)
    assert set(blas_threads()) == {1}  # the other is still at work
    leave.set()
    thread.join()
    assert blas_threads() == before
