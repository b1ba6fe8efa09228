"""The results of a study with users as plain data: the types."""

from __future__ import annotations

from typing import TypedDict

__all__ = ["ListUserDocument", "ShareIntervalDocument", "StudyTenth", "UserStudyDocument"]


class ShareIntervalDocument(TypedDict):
    """A share of answers with its interval."""

    share: float
    lower: float
    upper: float
    n: int


class ListUserDocument(TypedDict):
    """A user of the study.

    Parameters
    ----------
    answers
        The number of answers, without traps.
    left
        The share of preferences for the list on the left.
    traps, right
        The number of traps answered, and the number answered right.
    seconds
        The median time per answer; null if it was not measured.
    is_bad
        Whether too few traps were answered right.
    """

    user: str
    answers: int
    left: float
    traps: int
    right: int
    seconds: float
    is_bad: bool


class StudyTenth(TypedDict):
    """One tenth of the difference between two lists, and of the score of one list.

    Parameters
    ----------
    n, better, neither, worse
        The number of answers with a difference in this tenth, and the shares of users who prefer the better list,
        neither, the worse one.
    lists, satisfied, mapped
        The number of lists with a score in this tenth in answers without preference, the share of them that are good,
        and the mapping at the middle of the tenth.
    """

    lower: float
    upper: float
    n: int
    better: float
    neither: float
    worse: float
    lists: int
    satisfied: float
    mapped: float


class UserStudyDocument(TypedDict):
    """The results of a study with users.

    Parameters
    ----------
    measure
        The measure and the scale.
    answers, preferences, good, bad
        The number of answers without traps, and among them of preferences, of both lists good, of both bad.
    chosen_good
        The share of preferred lists that are good; null if users were not asked.
    coefficients, residual
        The mapping from a score to satisfied users; null without enough scores.
    noticeable
        The smallest difference that half of the users notice; null if they notice none.
    distance_from_ideal, disagreement
        How far users are from always preferring the better list, and from never preferring the worse one.
    side
        The share of preferences for the list on the left.
    lowest, highest, endpoint_bias
        The share of good lists among those in the lowest and in the highest tenth of the score, and their distance from
        0 and 1.
    identical, identical_preferred
        The number of answers about one list shown twice, traps aside, and of preferences among them.
    left_out
        The users whose answers do not count.
    """

    measure: str
    answers: int
    preferences: int
    good: int
    bad: int
    chosen_good: ShareIntervalDocument | None
    mapping_shape: str
    coefficients: list[float] | None
    residual: float | None
    noticeable: float | None
    distance_from_ideal: float
    disagreement: float
    side: ShareIntervalDocument | None
    lowest: ShareIntervalDocument | None
    highest: ShareIntervalDocument | None
    endpoint_bias: float | None
    identical: int
    identical_preferred: int
    left_out: list[str]
    tenths: list[StudyTenth]
    users: list[ListUserDocument]
