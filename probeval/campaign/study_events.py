"""The events of a study with users: its creation, the answers about two lists, and their withdrawal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from probeval.campaign.events import Event
from probeval.display import Record
from probeval.errors import CampaignError

__all__ = ["STUDY_EVENTS", "ListsCompared", "ListsWithdrawn", "StudyCreated", "StudySetup"]

PREFERENCES = ("left", "right", "same")


@dataclass(frozen=True, kw_only=True, repr=False)
class StudySetup(Record):
    """The settings of a study with users.

    Parameters
    ----------
    name
        The name of the study.
    metric, scale
        The measure of the lists, and the scale of the grades behind it, as text.
    depth
        The length of the lists.
    most
        The most questions that one user answers; None for all.
    seed
        For the sides of lists, and the order of questions.

    Examples
    --------
    >>> setup = StudySetup(name="mine", metric="nDCG@5", scale="graded:3", depth=5)
    >>> StudySetup.from_dict(setup.to_dict()) == setup
    True
    """

    name: str
    metric: str
    scale: str
    depth: int
    most: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise CampaignError(f"The length of lists must be 1 or more, got {self.depth}.")
        if self.most is not None and self.most < 1:
            raise CampaignError(f"The most questions of a user must be 1 or more, got {self.most}.")

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> StudySetup:
        """From plain data."""
        return cls(**data)


@dataclass(frozen=True, kw_only=True, repr=False)
class StudyCreated(Event):
    """The study was created; its questions are a part of the store."""

    kind = "study created"
    study: StudySetup


@dataclass(frozen=True, kw_only=True, repr=False)
class ListsCompared(Event):
    """A user answered a question about two lists.

    Parameters
    ----------
    question
        The number of the question, from 0.
    choice
        The better list as the user saw them: ``left``, ``right``, or ``same`` for no difference.
    good
        Whether the better list is good; without a difference, whether both are.
    swapped
        Whether the second list of the question was on the left.
    seconds
        The time that the user spent on it, without breaks; None if it was not measured.
    """

    kind = "lists compared"
    question: int
    choice: str
    good: bool
    swapped: bool
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.choice not in PREFERENCES:
            raise CampaignError(f"The better list must be one of {', '.join(PREFERENCES)}, got {self.choice!r}.")


@dataclass(frozen=True, kw_only=True, repr=False)
class ListsWithdrawn(Event):
    """A user withdrew the answer with this number."""

    kind = "lists withdrawn"
    question: int
    answer: int


STUDY_EVENTS: tuple[type[Event], ...] = (StudyCreated, ListsCompared, ListsWithdrawn)
