"""Leases: the rules by which pairs are given to assessors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import filterfalse

from probeval.campaign.events import Leased, Pair
from probeval.campaign.state import State
from probeval.display import Brief
from probeval.selection import Pick

__all__ = ["Task", "lease", "lease_new"]


@dataclass(frozen=True, repr=False)
class Task(Brief):
    """A pair leased to an assessor for judging.

    Parameters
    ----------
    query, doc
        Ids of the query and the document.
    text
        The query text; empty if unknown.
    until
        The end of the lease, in seconds since 1970.
    """

    query: str
    doc: str
    text: str
    until: float


def lease(state: State, pair: Pair, assessor: str, now: float, pick: Pick | None = None) -> Leased:
    """A lease of the pair to this assessor, starting now; with its prediction if the model proposed it."""
    until = now + state.settings.lease
    return Leased(by=assessor, time=now, query=pair[0], doc=pair[1], until=until, pick=pick)


def lease_new(
    state: State, assessor: str, n: int, now: float, proposed: Iterable[Pair], picks: Mapping[Pair, Pick]
) -> list[Leased]:
    """The new leases that bring an assessor to ``n`` pairs.

    Pairs that need another opinion come first, then the proposed ones in order. Pairs not open to the assessor are
    passed over. ``picks`` are the predictions of proposed pairs.
    """
    wanted = n - len(state.held_by(assessor, now))
    chosen: dict[Pair, Leased] = {}
    unjudged = filterfalse(state.judged.__contains__, proposed)  # judged pairs that are still open are in `waiting`
    for source in (state.waiting, unjudged):
        for pair in source:
            if len(chosen) >= wanted:
                return list(chosen.values())
            if pair not in chosen and state.is_open(pair, assessor, now):
                chosen[pair] = lease(state, pair, assessor, now, picks.get(pair))
    return list(chosen.values())
