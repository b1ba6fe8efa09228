"""How many threads the linear algebra takes: for many small matrices one is several times faster than two."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

__all__ = ["one_thread"]


def one_thread() -> AbstractContextManager[Any]:
    """Within it, BLAS uses one thread; afterwards as many as before.

    Examples
    --------
    >>> import numpy as np
    >>> with one_thread():
    ...     float((np.eye(2) @ np.ones(2)).sum())
    2.0
    """
    return _libraries().limit(limits=1, user_api="blas")  # type: ignore[no-any-return]


@cache
def _libraries() -> Any:
    """The libraries of linear algebra that are loaded; to look for them takes a while."""
    import scipy.linalg  # noqa: F401  (brings one of its own)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
