"""The open log of one campaign: its current state, and the decisions that extend it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from probeval.campaign.creation import Creation
from probeval.campaign.databases import BUSY, PATIENCE
from probeval.campaign.decisions import Decision, Outcome
from probeval.campaign.events import Event
from probeval.campaign.snapshot import ModelSnapshot
from probeval.campaign.state import State, fold
from probeval.campaign.store import Store
from probeval.errors import ProbevalError, StoreError

__all__ = ["Log", "PendingDecision"]

A = TypeVar("A")


class PendingDecision(Generic[A]):
    """A decision waiting for its turn to be written, and then its outcome.

    Parameters
    ----------
    decision
        The request; its events are computed again if the database rolls a transaction back.
    clock
        Gives the time in seconds since 1970.
    """

    def __init__(self, decision: Decision[A], clock: Callable[[], float]) -> None:
        self.decision, self.clock = decision, clock
        self.is_done = False
        self.error: BaseException | None = None
        self._outcome: Outcome[A] | None = None

    @property
    def events(self) -> Sequence[Event]:
        """The new events, numbered; none if the decision was refused."""
        return () if self._outcome is None else self._outcome.events

    @property
    def parts(self) -> Mapping[str, bytes]:
        """The parts of the store to add with the events."""
        return self.decision.parts if self.events else {}

    def take(self, state: State) -> State:
        """Decide on this state; the state after that."""
        self._outcome = self.error = None
        try:
            self._outcome = self.decision.take(state, self.clock())
        except ProbevalError as error:
            self.error = error
            return state
        return self._outcome.state

    def outcome(self) -> Outcome[A]:
        """The outcome, once the events are on disk; raises the error that prevented it."""
        if self.error is not None:
            raise self.error
        if self._outcome is None:
            raise AssertionError
        return self._outcome


class Log:
    """The log of a campaign in a store; threads may share it.

    Parameters
    ----------
    store, key
        The store, and the key of the campaign in it.
    clock
        Gives the time in seconds since 1970.
    """

    def __init__(self, store: Store, key: int, clock: Callable[[], float]) -> None:
        self.store, self.key, self.clock = store, key, clock
        self._turn = threading.Condition()
        self._waiting: list[PendingDecision[Any]] = []
        self._writing = False
        self._state = State()
        self._snapshot: ModelSnapshot | None = None

    @classmethod
    def create(cls, store: Store, creation: Creation, clock: Callable[[], float]) -> Log:
        """The log of a new campaign; on failure the store is closed."""
        with _closed_on_error(store):
            return cls(store, store.add(creation), clock)

    @classmethod
    def open(cls, store: Store, name: str | None, clock: Callable[[], float]) -> Log:
        """The log of the campaign with this name, or of the only one; on failure the store is closed."""
        with _closed_on_error(store):
            return cls(store, store.find(name), clock)

    @property
    def state(self) -> State:
        """The current state, with the events that other processes added. Never waits for a writer."""
        known, last = self._state, self._snapshot
        new, row = self.store.news(self.key, known.number, None if last is None else (last.number, last.time))
        if row is not None:
            self._snapshot = ModelSnapshot.read(row)
        return self._keep(fold(known, new)) if new else known

    @property
    def known(self) -> State:
        """The state as it was read last, without a look at the store; the current one before that."""
        return self._state if self._state.number else self.state

    @property
    def snapshot(self) -> ModelSnapshot | None:
        """The results of the model that were read with the state; None before the first.

        Results that cannot be read count as none: they are computed again.
        """
        return self._snapshot

    def add_snapshot(self, snapshot: ModelSnapshot) -> None:
        """Keep new results of the model."""
        self.store.add_snapshot(self.key, snapshot.to_row())
        self._snapshot = snapshot

    def advance(self, decision: Decision[A]) -> Outcome[A]:
        """Take a decision on the current state and add its events, all or none.

        Decisions of threads that arrive during a write are written together after it, in one transaction. One
        whose turn does not come, because another process holds the store, is refused after a few seconds.
        """
        pending = PendingDecision(decision, self.clock)
        with self._turn:
            self._waiting.append(pending)
            until = time.monotonic() + PATIENCE
            while self._writing and not pending.is_done:
                is_queued, left = pending in self._waiting, until - time.monotonic()
                if is_queued and left <= 0:
                    self._waiting.remove(pending)
                    raise StoreError(f"{self.store.name}: {BUSY}")
                self._turn.wait(left if is_queued else None)
            batch = [] if pending.is_done else self._waiting
            if batch:
                self._waiting, self._writing = [], True
        if batch:
            self._write(batch)
        return pending.outcome()

    def _write(self, batch: Sequence[PendingDecision[Any]]) -> None:
        try:
            self._keep(self.store.advance(self.key, self._state, batch))
        except BaseException as error:
            for pending in batch:
                pending.error = error
        finally:
            with self._turn:
                for pending in batch:
                    pending.is_done = True
                self._writing = False
                self._turn.notify_all()

    def _keep(self, state: State) -> State:
        with self._turn:
            self._state = max(self._state, state, key=lambda each: each.number)
            return self._state


@contextmanager
def _closed_on_error(store: Store) -> Iterator[None]:
    try:
        yield
    except BaseException:
        store.close()
        raise
