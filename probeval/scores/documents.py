"""The types of scores, rankings and comparisons as plain data."""

from __future__ import annotations

from typing import NotRequired, TypedDict

__all__ = ["NewQuerySystem", "UserEffects"]


class UserEffects(TypedDict):
    """What the difference of two systems means for users, where satisfaction is known for the measure.

    Parameters
    ----------
    sat, sat_lower, sat_upper
        The change in the share of satisfied users, and its interval.
    p_sat
        The probability that this change is for the better.
    success, success_lower, success_upper
        The change in the share of queries that satisfy most users, and its interval.
    noticed
        The share of users who notice the difference on a query.
    """

    sat: NotRequired[float]
    sat_lower: NotRequired[float]
    sat_upper: NotRequired[float]
    p_sat: NotRequired[float]
    success: NotRequired[float]
    success_lower: NotRequired[float]
    success_upper: NotRequired[float]
    noticed: NotRequired[float]


class NewQuerySystem(TypedDict):
    """What to expect of a system on one new query.

    Parameters
    ----------
    mean, lower, upper, above, below
        The score: its mean, its two-sided interval, and one-sided the values that it reaches, and does not exceed, with
        the level's probability.
    sat, sat_lower, sat_upper, sat_above, sat_below
        The same of the share of satisfied users, where satisfaction is known for the measure.
    """

    system: str
    mean: float
    lower: float
    upper: float
    above: float
    below: float
    sat: NotRequired[float]
    sat_lower: NotRequired[float]
    sat_upper: NotRequired[float]
    sat_above: NotRequired[float]
    sat_below: NotRequired[float]
