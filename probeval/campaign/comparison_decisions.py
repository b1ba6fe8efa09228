"""Decisions about two documents side by side: answer, settle, and name comparisons with a known answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from probeval.campaign.comparison_events import Compared, ComparisonAdjudicated, GoldOrdersChanged
from probeval.campaign.controls import answer_purpose
from probeval.campaign.decisions import Action, E, LeaseNext, spent
from probeval.campaign.events import Event, Phase, Question, comparison
from probeval.campaign.parsing import as_choice, as_number, as_relevant, as_seconds
from probeval.campaign.state import State
from probeval.errors import CampaignError

__all__ = ["AdjudicateComparison", "Answer", "ChangeGoldOrders", "ComparisonAction"]

NOT_CLOSED = frozenset({Phase.open, Phase.paused})


@dataclass(frozen=True, kw_only=True)
class ComparisonAction(Action[E]):
    """An action on two documents of a query, ``left`` and ``right`` as they were shown."""

    query: str
    left: str
    right: str
    choice: str = ""
    relevant: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        as_relevant(self.relevant, as_choice(self.choice))

    @property
    def question(self) -> Question:
        """The query, and both documents in alphabetical order."""
        return comparison(self.query, self.left, self.right)

    def _head(self, now: float) -> dict[str, Any]:
        sides = {"query": self.query, "left": self.left, "right": self.right}
        return {**super()._head(now), **sides, "choice": self.choice, "relevant": self.relevant}


@dataclass(frozen=True, kw_only=True)
class Answer(ComparisonAction[Compared]):
    """Answer which of two documents is better, or give both a number; and perhaps lease the next questions."""

    kind = Compared
    phases = frozenset({Phase.open})
    same_request = ("question", "choice", "relevant", "left_number", "right_number")
    text_fields: ClassVar[Mapping[str, str]] = MappingProxyType({"comment": "A comment"})
    left_number: float | None = None
    right_number: float | None = None
    comment: str = ""
    seconds: float | None = None
    next: LeaseNext | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        numbers = as_number(self.left_number), as_number(self.right_number)
        self._set(left_number=numbers[0], right_number=numbers[1])
        if (numbers[0] is None) != (numbers[1] is None):
            raise CampaignError("Give both documents a number, or neither.")
        if not self.choice and numbers[0] is None:
            raise CampaignError("An answer about two documents needs a choice (left, right or equal), or two numbers.")
        if self.seconds is not None:
            self._set(seconds=as_seconds(self.seconds))

    def event(self, state: State, now: float) -> Compared:
        """The answer, under the current guideline."""
        return Compared(
            **self._head(now),
            left_number=self.left_number,
            right_number=self.right_number,
            comment=self.comment,
            guideline=state.guideline_version,
            seconds=spent(state, self.by, self.question, self.seconds, now),
            purpose=answer_purpose(state, self.by, self.question),
        )

    def following(self, state: State, event: Compared, now: float) -> Sequence[Event]:
        """The next leases."""
        return () if self.next is None else self.next.events(state, now)


@dataclass(frozen=True, kw_only=True)
class AdjudicateComparison(ComparisonAction[ComparisonAdjudicated]):
    """Settle the answer about two documents."""

    kind = ComparisonAdjudicated
    phases = NOT_CLOSED
    same_request = ("question", "choice", "relevant", "reason")
    text_fields: ClassVar[Mapping[str, str]] = MappingProxyType({"reason": "A reason"})
    reason: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.choice:
            raise CampaignError("Settle a comparison by a choice: left, right or equal.")

    def event(self, state: State, now: float) -> ComparisonAdjudicated:
        """The settled answer."""
        return ComparisonAdjudicated(**self._head(now), reason=self.reason)


@dataclass(frozen=True, kw_only=True)
class ChangeGoldOrders(Action[GoldOrdersChanged]):
    """Replace the comparisons with a known answer: by query, the better and the worse document of each."""

    kind = GoldOrdersChanged
    phases = NOT_CLOSED
    same_request = ("orders",)
    orders: Mapping[str, tuple[tuple[str, str], ...]]

    def event(self, state: State, now: float) -> GoldOrdersChanged:
        """The new gold comparisons."""
        return GoldOrdersChanged(**self._head(now), orders=self.orders)
