"""The log of one campaign, open: what it amounts to now, and how it grows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from probeval.campaign.decisions import as_name
from probeval.campaign.events import Event
from probeval.campaign.state import State, fold
from probeval.campaign.store import Decide, PendingDecision, Store
from probeval.errors import CampaignError

__all__ = ["Log"]

E = TypeVar("E", bound=Event)


class Log:
    """The log of a campaign in a store; threads may share it.

    Parameters
    ----------
    store, key
        Where it is, and which one.
    clock
        Gives the time in seconds since 1970.
    """

    def __init__(self, store: Store, key: int, clock: Callable[[], float]) -> None:
        self.store, self.key, self.clock = store, key, clock
        self._turn = threading.Condition()
        self._waiting: list[PendingDecision] = []
        self._writing = False
        self._state = State()

    @classmethod
    def of(cls, store: Store, find: Callable[[Store], int], clock: Callable[[], float]) -> Log:
        """The log whose key is found in a store; where there is none the store is closed."""
        try:
            return cls(store, find(store), clock)
        except BaseException:
            store.close()
            raise

    @property
    def state(self) -> State:
        """What the log amounts to now, with what other processes added. Waits for nobody who writes."""
        known = self._state
        new = self.store.events(self.key, known.number)
        return self._keep(fold(known, new)) if new else known

    def advance(self, decide: Decide, *, parts: Mapping[str, bytes] | None = None) -> tuple[State, list[Event]]:
        """Add what is decided on the state as it is then, all or nothing; the state after it, and the new events.

        Threads that come while another writes go together after it, with one write to disk for all of them.
        """
        step = PendingDecision(decide, parts or {})
        with self._turn:
            self._waiting.append(step)
            while self._writing and not step.is_done:
                self._turn.wait()
            together = [] if step.is_done else self._waiting
            if together:
                self._waiting, self._writing = [], True
        if together:
            self._write(together)
        return step.outcome()

    def _write(self, steps: Sequence[PendingDecision]) -> None:
        try:
            self._keep(self.store.advance(self.key, self._state, steps))
        except BaseException as error:
            for step in steps:
                step.error = error
        finally:
            with self._turn:
                for step in steps:
                    step.is_done = True
                self._writing = False
                self._turn.notify_all()

    def _keep(self, state: State) -> State:
        with self._turn:
            self._state = max(self._state, state, key=lambda each: each.number)
            return self._state

    def step(
        self,
        kind: type[E],
        who: str,
        said: Mapping[str, Any],
        *,
        token: str | None = None,
        more: Callable[[State], Mapping[str, Any]] = lambda _: {},
        then: Callable[[State, E], Sequence[Event]] = lambda _, __: [],
    ) -> tuple[E, State]:
        """One event of a kind, and what follows from it; or the event that the token names already.

        Parameters
        ----------
        kind, who
            What happens, and who does it.
        said
            What the event says, as far as whoever sends it says so.
        token
            The sender's name for it: sent twice, it counts once.
        more
            What it says beside, by the state.
        then
            Events after it, by the state after it.
        """
        by = as_name(who, "whoever does this")
        name = None if token is None else as_name(token, "a request")
        before: list[E] = []

        def decide(state: State) -> Sequence[Event]:
            before.clear()
            old = None if name is None else state.tokens.get(name)
            if old is None:
                event = kind(by=by, time=self.clock(), token=name, **said, **more(state))
                return [event, *then(fold(state, [replace(event, number=state.number + 1)]), event)]
            if not isinstance(old, kind) or any(getattr(old, k) != v for k, v in {**said, "by": by}.items()):
                raise CampaignError(f"Request {name!r} was something else before. Name every request anew.")
            before.append(old)
            return then(state, old)

        state, new = self.advance(decide)
        return (before or new)[0], state  # type: ignore[return-value]
