"""What a campaign and a study with users have in common: an open log in a store, its state, and its people."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Self

from probeval.campaign.events import Event
from probeval.campaign.log import Log
from probeval.campaign.people import People
from probeval.campaign.state import State
from probeval.campaign.store import Store

__all__ = ["Opened"]


class Opened:
    """An open log.

    Parameters
    ----------
    log
        The log.
    """

    def __init__(self, log: Log) -> None:
        self._log = log

    @classmethod
    def open(
        cls,
        store: str | Path,
        *,
        name: str | None = None,
        read_only: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Open the one with this name, or the only one of the store."""
        return cls(Log.open(Store(store, read_only=read_only), name, clock))

    def close(self) -> None:
        """Close the store."""
        self._log.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def state(self) -> State:
        """The current state, with the events that other processes added."""
        return self._log.state

    @property
    def known_state(self) -> State:
        """The state as this process read it last, without a look at the store."""
        return self._log.known

    @property
    def people(self) -> People:
        """Those who may sign in to the page."""
        return People(self._log)

    def log(self, after: int = 0) -> list[Event]:
        """The events after this number."""
        return self._log.store.events(self._log.key, after)

    def page_secret(self) -> str:
        """The secret of the page of a person who needs no session; it lasts as long as the store."""
        return self._log.store.page_secret(self._log.key)

    def serving(self) -> AbstractContextManager[None]:
        """Hold the server lock of an SQLite store for the duration of the block; a second server is refused."""
        return self._log.store.serving()
