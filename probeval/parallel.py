"""Work in several processes, here or on the machines of a Dask scheduler."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from itertools import islice
from typing import Any, TypeVar

from probeval.errors import DataError
from probeval.extensions import Carried, additions, carry

__all__ = ["Run", "parallel"]

T = TypeVar("T")
Run = Callable[[Iterable[Callable[[], T]]], Iterator[T]]
ALONE = 30.0  # seconds without any worker after which waiting ends
AHEAD = 3  # pieces of work per thread of the workers that are handed out before their results are needed
PULSE = 0.5  # seconds between looks at whether the parent is there
VERSION_OF_WORKER = "__import__('probeval').__version__"  # text: a worker without probeval could not unpickle _version


@contextmanager
def parallel(n_jobs: int, scheduler: str | None = None) -> Iterator[Run[Any]]:
    """Yield a function that does pieces of work in parallel and returns their results in order.

    Code of the user's own goes along with each piece (:func:`probeval.extensions.carry`).

    Parameters
    ----------
    n_jobs
        The number of processes; with 1 everything is done in this one.
    scheduler
        The address of a Dask scheduler, in place of local processes.

    Examples
    --------
    >>> with parallel(1) as run:
    ...     list(run([lambda: 1, lambda: 2]))
    [1, 2]
    """
    if scheduler is not None:
        with _client(scheduler) as client:
            _check_workers(client, scheduler)
            yield partial(_on_dask, client)
    elif n_jobs == 1:
        yield lambda work: (piece() for piece in work)
    else:
        from joblib import Parallel, delayed

        def carried(work: Iterable[Callable[[], Any]]) -> Iterator[Any]:
            added, mine = additions(), os.getpid()
            return (delayed(_do)(carry(piece, added), mine) for piece in work)

        yield lambda work: iter(Parallel(n_jobs=n_jobs, return_as="generator")(carried(work)))


def _client(scheduler: str) -> Any:
    """Return a client of a Dask scheduler."""
    try:
        distributed = import_module("distributed")
    except ImportError:
        raise DataError("A scheduler needs Dask: pip install 'probeval[distributed]'.") from None
    comm = import_module("distributed.comm")
    try:
        protocol, place = comm.parse_address(scheduler)
        comm.registry.get_backend(protocol)  # raises if there is none of this name
        if protocol != "inproc":
            comm.parse_host_port(place)
    except ValueError:
        raise DataError(
            f"The address of a Dask scheduler has a host and a port, such as tcp://127.0.0.1:8786; got {scheduler!r}."
        ) from None
    if protocol == "tls" and distributed.Security().get_connection_args("client")["ssl_context"] is None:
        raise DataError(f"{scheduler} needs certificates: set distributed.comm.tls in the configuration of Dask.")
    try:
        return distributed.Client(scheduler, set_as_default=False)
    except (OSError, ValueError):
        raise DataError(f"No Dask scheduler answers at {scheduler}. Start one, or work without a scheduler.") from None


def _check_workers(client: Any, scheduler: str) -> None:
    """Raise an error unless there are workers, and all have this version of the package."""
    mine = _version()
    found = client.run(eval, VERSION_OF_WORKER, on_error="return")
    if not found:
        raise DataError(f"The scheduler at {scheduler} has no workers. Start some: dask worker {scheduler}")
    for worker, version in sorted(found.items()):
        if isinstance(version, Exception):
            raise DataError(f"The Dask worker {worker} has no probeval: install version {mine} there.")
        if version != mine:
            raise DataError(
                f"The Dask worker {worker} has probeval {version}, this is {mine}. Install one version everywhere, and "
                "start the workers again."
            )


def _version() -> str:
    return str(import_module("probeval").__version__)


def _on_dask(client: Any, work: Iterable[Callable[[], T]]) -> Iterator[T]:
    """Yield the results of work on the workers of a scheduler, in order; work that waits is cancelled at the end.

    The scheduler does the work of a worker that dies again on another one.
    """
    added, mine = additions(), _version()
    waiting: deque[Any] = deque()
    pieces = iter(work)
    try:
        while True:
            ahead = AHEAD * max(sum(client.nthreads().values()), 1)
            for piece in islice(pieces, max(ahead - len(waiting), 0)):
                waiting.append(client.submit(_do_there, carry(piece, added), mine, pure=False))
            if not waiting:
                return
            yield _result(client, waiting.popleft())
    finally:
        client.cancel(list(waiting))


def _result(client: Any, future: Any) -> Any:
    """Return the result of a future, with a clear error if workers died of it again and again, or all have gone."""
    distributed = import_module("distributed")
    try:
        while True:
            try:
                return future.result(timeout=ALONE)
            except TimeoutError:  # of the work itself, if it has ended
                if future.done():
                    raise
                if not client.nthreads():
                    raise DataError(
                        "All workers of the Dask scheduler have ended, and no other started. Start some, and try again."
                    ) from None
    except distributed.KilledWorker:
        raise DataError(
            "Several Dask workers died of the same piece of work, most likely for want of memory. Give workers more "
            "(dask worker --memory-limit), or make smaller partitions."
        ) from None
    except (distributed.CancelledError, distributed.comm.CommClosedError):
        raise DataError("The Dask scheduler has ended, or dropped the work. Start it, and try again.") from None
    except BaseException:
        future.cancel()
        raise


def _do_there(work: Carried[T], version: str) -> T:
    """Do work on a worker, unless it joined later with another version of the package."""
    if _version() != version:
        raise DataError(f"A Dask worker has probeval {_version()}, the work is of {version}. Install one version.")
    return work()


def _do(work: Carried[T], parent: int) -> T:
    """Do work in a process of our own."""
    _follow(parent)
    return work()


@cache
def _follow(parent: int) -> None:
    """End this process when the one that waits for its results has gone, however that ended."""
    if not hasattr(os, "fork") or os.getppid() != parent:  # there are no orphans, or this is no child
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PULSE)
        os._exit(1)

    threading.Thread(target=watch, name="probeval-follow", daemon=True).start()
