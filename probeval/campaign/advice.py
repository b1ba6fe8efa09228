"""What to do next, in a few sentences."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from probeval.campaign.shares import Share
    from probeval.campaign.status import Status

__all__ = ["advice", "counted"]

DAY = 24 * 3600.0
WEEK = 7 * DAY


def advice(status: Status, now: float) -> tuple[str, ...]:
    """What the owner of a campaign may do next, the most important first.

    Parameters
    ----------
    status
        The status of the campaign.
    now
        The time, in seconds since 1970.
    """
    return tuple(_sentences(status, now))


def _sentences(status: Status, now: float) -> Iterator[str]:
    snapshot = status.snapshot
    if snapshot is not None and snapshot.audit is not None and snapshot.audit.alarm is not None:
        yield "The audit raises an alarm: find the reason before you rely on the scores."
    if status.disagreements:
        yield f"Adjudicate {counted(status.disagreements, 'pair')} on which assessors differ."
    if status.contested:
        yield f"Adjudicate {counted(status.contested, 'comparison')} on which assessors differ."
    for share in status.assessors:
        if share.is_worse:
            yield f"{share.assessor} answers gold pairs worse than the others: look at their judgments."
    for comparer in status.comparers:
        if comparer.is_worse:
            yield f"{comparer.assessor} answers gold comparisons worse than the others: look at their answers."
        elif comparer.is_bad:
            yield f"{comparer.assessor} is {comparer.verdict} by the model: look at their answers."
    if snapshot is None:
        yield "The model has not run yet: it needs a moment."
    elif snapshot.reached:
        yield "The target is met: export the judgments, or go on for more confidence."
    elif status.left is not None:
        yield _remaining(status, now)
    if snapshot is None or not snapshot.reached:
        for share in status.assessors:
            if now - share.last > DAY:
                yield f"{share.assessor} has not judged since {day_of(share.last, now)}."
    if status.setup.gold_share and not status.gold:
        yield "There are no gold pairs yet: give them with campaign gold."
    for share in status.assessors:
        if status.setup.gold_share and share.gold and not share.gold_left:
            yield f"{share.assessor} has answered all gold pairs: give more with campaign gold."
    for share in status.assessors:
        if share.manner:
            yield f"{share.assessor} is more {share.manner} than the others: discuss the guideline."


def _remaining(status: Status, now: float) -> str:
    assert status.left is not None
    between = f" ({status.left_lower:,} to {status.left_upper:,})" if status.left_lower is not None else ""
    work = f"About {counted(status.left, 'judgment')} more{between}"
    hours = status.left * status.seconds / 3600
    if hours != hours:
        return f"{work}."
    active = max(1, len(_active(status.assessors, now)))
    return f"{work}: {duration(hours / active)} with {counted(active, 'assessor')}."


def _active(shares: tuple[Share, ...], now: float) -> list[Share]:
    return [share for share in shares if now - share.last <= DAY]


def duration(hours: float) -> str:
    """A length of time in words.

    >>> duration(0.01), duration(0.5), duration(3.21)
    ('1 minute', '30 minutes', '3.2 hours')
    """
    minutes = max(1, round(60 * hours))
    return counted(minutes, "minute") if minutes < 90 else f"{hours:.1f} hours"


def day_of(moment: float, now: float) -> str:
    """The day of a moment: a weekday within the last week, otherwise a date; in local time."""
    return time.strftime("%A" if now - moment < WEEK - DAY else "%d %B %Y", time.localtime(moment))


def counted(n: int, what: str) -> str:
    """A number of things, in words.

    >>> counted(1, "pair"), counted(1200, "pair")
    ('1 pair', '1,200 pairs')
    """
    return f"{n:,} {what}{'s' * (n != 1)}"
