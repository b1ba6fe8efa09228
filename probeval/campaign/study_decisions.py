"""Decisions of users in a study: answer a question about two lists, and withdraw the answer."""

from __future__ import annotations

from dataclasses import dataclass

from probeval.campaign.decisions import Action
from probeval.campaign.events import Phase
from probeval.campaign.parsing import as_seconds
from probeval.campaign.state import State
from probeval.campaign.study_events import PREFERENCES, ListsCompared, ListsWithdrawn
from probeval.errors import CampaignError

__all__ = ["CompareLists", "WithdrawLists"]


@dataclass(frozen=True, kw_only=True)
class CompareLists(Action[ListsCompared]):
    """Answer a question about two lists; each user answers it once.

    Parameters
    ----------
    question, questions
        The number of the question, and how many there are.
    choice, good, swapped, seconds
        As :class:`ListsCompared` has them.
    """

    kind = ListsCompared
    phases = frozenset({Phase.open})
    same_request = ("question", "choice", "good")
    question: int
    questions: int
    choice: str
    good: bool
    swapped: bool
    seconds: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.question < self.questions:
            raise CampaignError(f"Questions go from 0 to {self.questions - 1}, got {self.question}.")
        if self.choice not in PREFERENCES:
            raise CampaignError(f"The better list must be one of {', '.join(PREFERENCES)}, got {self.choice!r}.")
        if self.seconds is not None:
            self._set(seconds=as_seconds(self.seconds))

    def event(self, state: State, now: float) -> ListsCompared:
        """The answer."""
        if (self.by, self.question) in state.lists_compared:
            raise CampaignError("This question is answered already. Undo the answer first, or go on with the next one.")
        most = None if state.study is None else state.study.most
        if most is not None and sum(user == self.by for user, _ in state.lists_compared) >= most:
            raise CampaignError(f"All {most} questions of {self.by!r} are answered.")
        return ListsCompared(
            **self._head(now),
            question=self.question,
            choice=self.choice,
            good=self.good,
            swapped=self.swapped,
            seconds=self.seconds,
        )


@dataclass(frozen=True, kw_only=True)
class WithdrawLists(Action[ListsWithdrawn]):
    """Withdraw one's answer with this number."""

    kind = ListsWithdrawn
    phases = frozenset({Phase.open})
    same_request = ("answer",)
    answer: int

    def event(self, state: State, now: float) -> ListsWithdrawn:
        """The withdrawal; only the person's own answers can be withdrawn."""
        own = (e for e in state.lists_compared.values() if e.by == self.by and e.number == self.answer)
        found = next(own, None)
        if found is None:
            raise CampaignError(f"{self.by!r} has no answer {self.answer} to withdraw.")
        return ListsWithdrawn(**self._head(now), question=found.question, answer=found.number)
