"""Work in several processes, here or on the machines of a Dask scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeVar

from probeval.errors import DataError
from probeval.extensions import Carried, additions, carry

__all__ = ["Run", "parallel"]

T = TypeVar("T")
Run = Callable[[Iterable[Callable[[], T]]], Iterator[T]]


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
    from joblib import Parallel, delayed, parallel_config

    def carried(work: Iterable[Callable[[], Any]]) -> Iterator[Any]:
        added = additions()
        return (delayed(_do)(carry(piece, added)) for piece in work)

    if scheduler is None and n_jobs == 1:
        yield lambda work: (piece() for piece in work)
    elif scheduler is None:
        yield lambda work: iter(Parallel(n_jobs=n_jobs, return_as="generator")(carried(work)))
    else:
        with _client(scheduler), parallel_config(backend="dask"):
            yield lambda work: iter(Parallel()(carried(work)))


def _client(scheduler: str) -> Any:
    """Return a client of a Dask scheduler."""
    try:
        distributed = import_module("distributed")
    except ImportError:
        raise DataError("A scheduler needs Dask: pip install 'probeval[distributed]'.") from None
    try:
        return distributed.Client(scheduler)
    except (OSError, ValueError):
        raise DataError(f"No Dask scheduler answers at {scheduler}. Start one, or work without a scheduler.") from None


def _do(work: Carried[T]) -> T:
    return work()
