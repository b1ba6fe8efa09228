"""What may happen next, decided purely: from a state, a time and what somebody asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import filterfalse

import numpy as np

from probeval.campaign.events import Event, Imported, Judged, Labelled, Leased, Pair
from probeval.campaign.exchange import Incoming
from probeval.campaign.state import State
from probeval.data.judgments import on_scale
from probeval.data.pool import is_text
from probeval.data.scale import Scale
from probeval.errors import CampaignError

__all__ = ["Task", "as_events", "as_grade", "as_name", "as_text", "as_texts", "lease", "lease_new"]

CONTROL = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]")
LONGEST_NAME, LONGEST_TEXT = 100, 10_000
SHOWN = 10  # grades that are listed in an error


@dataclass(frozen=True)
class Task:
    """A pair that is somebody's to judge.

    Parameters
    ----------
    query, doc
        By their ids.
    text
        Of the query; empty where unknown.
    until
        When the pair goes back, in seconds since 1970.
    """

    query: str
    doc: str
    text: str
    until: float


def lease(state: State, pair: Pair, assessor: str, now: float) -> Leased:
    """A pair is this assessor's from now on, for as long as leases last."""
    until = now + state.settings.lease
    return Leased(by=assessor, time=now, query=pair[0], doc=pair[1], until=until)


def lease_new(state: State, assessor: str, n: int, now: float, proposed: Iterable[Pair]) -> list[Leased]:
    """The leases that bring an assessor to ``n`` pairs.

    Pairs that want another opinion come first, then the proposed ones in their order; only those that are open to them.
    """
    wanted = n - len(state.held_by(assessor, now))
    chosen: dict[Pair, Leased] = {}
    unjudged = filterfalse(state.judged.__contains__, proposed)  # a judged pair that is open waits, so it came before
    for source in (state.waiting, unjudged):
        for pair in source:
            if len(chosen) >= wanted:
                return list(chosen.values())
            if pair not in chosen and state.is_open(pair, assessor, now):
                chosen[pair] = lease(state, pair, assessor, now)
    return list(chosen.values())


def as_events(found: Incoming, by: str, now: float, *, source: str, part: str = "labels") -> list[Event]:
    """What a file holds, as events: one that says where judgments come from, they themselves, and the labels' one."""
    given, labels, events = found.judgments, found.labels, list[Event]()
    judged = [
        Judged(
            by=as_name(given.assessors[who] or by, "an assessor"),
            time=now,
            query=str(given.pool.queries[given.pool.query[pair]]),
            doc=str(given.pool.docs[given.pool.doc[pair]]),
            grade=float(grade),
            source=source,
            at=None if np.isnan(at) else float(at),
        )
        for pair, grade, who, at in zip(given.pair, given.grade, given.assessor, given.time, strict=True)
    ]
    if judged:
        events = [Imported(by=by, time=now, source=source, judgments=len(judged)), *judged]
    if labels is not None:
        columns, pairs = labels.sources, len(labels.pool)
        events.append(Labelled(by=by, time=now, source=source, part=part, columns=columns, pairs=pairs))
    return events


def as_grade(scale: Scale, grade: object) -> float:
    """A grade of the scale as a number, or an error that lists what it has."""
    number = isinstance(grade, (int, float)) and not isinstance(grade, bool)
    value = float(grade) if number else float("nan")  # type: ignore[arg-type]
    if not value >= 0 or not on_scale(scale, value):
        few = len(scale) <= SHOWN
        known = ", ".join(f"{g:g}" for g in scale.grades) if few else f"{scale.grades[0]:g} to {scale.grades[-1]:g}"
        raise CampaignError(f"The grades of the scale {scale} are {known}; got {grade!r}.")
    return value


def as_name(text: object, whose: str) -> str:
    """A name: some text on one line, without white space around it."""
    if not isinstance(text, str) or not is_text(text) or not text.strip() or CONTROL.search(text):
        raise CampaignError(f"The name of {whose} is some text on one line, got {text!r}.")
    if len(text) > LONGEST_NAME:
        raise CampaignError(f"The name of {whose} has at most {LONGEST_NAME} characters, got {len(text)}.")
    return text.strip()


def as_text(text: object, what: str) -> str:
    """A text that can be kept: not too long, no character that a database refuses."""
    if not isinstance(text, str) or not is_text(text) or "\x00" in text:
        raise CampaignError(f"{what} is text without control characters, got {text!r:.60}.")
    if len(text) > LONGEST_TEXT:
        raise CampaignError(f"{what} has at most {LONGEST_TEXT:,} characters, got {len(text):,}.")
    return text


def as_texts(texts: Mapping[str, str], queries: Iterable[str]) -> dict[str, str]:
    """Texts of these queries, without those of others and without empty ones."""
    ours = dict.fromkeys(queries)
    given = {query: text for query, text in texts.items() if query in ours and text.strip()}
    if not given:
        got = next((f"one of {query!r}" for query in texts), "none")
        raise CampaignError(f"Expected texts of this campaign's queries, such as {next(iter(ours))!r}; got {got}.")
    return {query: as_text(text, f"The text of query {query!r}") for query, text in given.items()}
