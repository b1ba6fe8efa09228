"""The events of a campaign about two documents of a query, shown side by side.

.. code-block:: text

    Compared               an assessor answered which of two documents is better, or gave both a number
    ComparisonAdjudicated  the answer about two documents was settled, overriding all answers of assessors
    GoldOrdersChanged      the pairs of documents whose better one is known changed
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from probeval.campaign.events import Event, Question, TaskPurpose, comparison

__all__ = ["Compared", "ComparisonAdjudicated", "ComparisonEvent", "GoldOrdersChanged"]


@dataclass(frozen=True, kw_only=True, repr=False)
class ComparisonEvent(Event):
    """An event about two documents of a query: the one on the left, and the one on the right."""

    query: str
    left: str
    right: str

    @property
    def question(self) -> Question:
        """The query, and both documents in alphabetical order."""
        return comparison(self.query, self.left, self.right)


@dataclass(frozen=True, kw_only=True, repr=False)
class Compared(ComparisonEvent):
    """An assessor answered a question about two documents.

    Parameters
    ----------
    choice
        The better document: ``left``, ``right`` or ``equal``; empty if only numbers were given.
    relevant
        Which documents are relevant: ``both``, ``chosen`` (only the better one) or ``neither``; empty if not asked.
        ``equal`` and ``neither`` together mean that neither is any good.
    left_number, right_number
        The numbers that the assessor gave the documents (magnitudes), from 0; None without.
    comment
        A remark of the assessor.
    guideline
        The version of the guideline that it was made under; 0 for none, or for an imported answer.
    source
        The file that it was imported from; empty if it was made in this campaign.
    seconds
        The time that the assessor spent on it, without breaks; None if it was not measured.
    purpose
        The reason why they were asked. An answer to a gold or a repeated question is not evidence.
    """

    kind = "compared"
    choice: str = ""
    relevant: str = ""
    left_number: float | None = None
    right_number: float | None = None
    comment: str = ""
    guideline: int = 0
    source: str = ""
    seconds: float | None = None
    purpose: TaskPurpose = TaskPurpose.judgment

    @property
    def better(self) -> str:
        """The better document, by the choice or else by the numbers; empty if they are equal."""
        if self.choice:
            return {"left": self.left, "right": self.right}.get(self.choice, "")
        left, right = self.left_number or 0.0, self.right_number or 0.0
        return self.left if left > right else self.right if right > left else ""


@dataclass(frozen=True, kw_only=True, repr=False)
class ComparisonAdjudicated(ComparisonEvent):
    """The answer about two documents was settled; it overrides all answers of assessors, earlier and later."""

    kind = "comparison adjudicated"
    choice: str
    relevant: str = ""
    reason: str = ""


@dataclass(frozen=True, kw_only=True, repr=False)
class GoldOrdersChanged(Event):
    """The gold comparisons are these from now on: by query, the better and the worse document of each."""

    kind = "gold orders"
    orders: Mapping[str, tuple[tuple[str, str], ...]]
