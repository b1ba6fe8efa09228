"""A study with users: questions about two lists, kept in a store, with the answers in its log."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from probeval.arrays import objects
from probeval.campaign.creation import Creation
from probeval.campaign.events import Event, GuidelineChanged, QueriesChanged
from probeval.campaign.log import Log
from probeval.campaign.opened import Opened
from probeval.campaign.parsing import as_name, as_text, as_texts
from probeval.campaign.state import State
from probeval.campaign.store import Store
from probeval.campaign.study_decisions import CompareLists, WithdrawLists
from probeval.campaign.study_events import ListsCompared, ListsWithdrawn, StudyCreated, StudySetup
from probeval.display import Described, Record, Table, fact_table
from probeval.errors import StoreError
from probeval.satisfaction import ListAnswers, ListQuestion, ListQuestions, Preferences

__all__ = ["ListTask", "Study"]

QUESTIONS = "questions"  # the part of the store


@dataclass(frozen=True, repr=False)
class ListTask(Record):
    """A question as a user sees it.

    Parameters
    ----------
    question
        Its number.
    query, text
        The query, and its text; empty if unknown.
    left, right
        The documents of the two lists, best first.
    place, total
        The place of the question among those of this user, from 1, and how many they get.
    """

    question: int
    query: str
    text: str
    left: tuple[str, ...]
    right: tuple[str, ...]
    place: int
    total: int


class Study(Opened, Described):
    """A study with users: which of two lists is better, and is it good?

    Any number of threads and processes may use one study. :meth:`create` makes a new one, :meth:`open` opens an
    existing one.

    Parameters
    ----------
    log
        The open log.
    """

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        if self._log.state.study is None:
            self.close()
            raise StoreError(
                f"{log.store.name}: is a campaign, not a study with users. Create one: probeval users create"
            )

    @classmethod
    def create(
        cls,
        store: str | Path,
        chosen: ListQuestions,
        *,
        name: str = "study",
        queries: Mapping[str, str] | None = None,
        guideline: str = "",
        most: int | None = None,
        seed: int = 0,
        by: str = "owner",
        clock: Callable[[], float] = time.time,
    ) -> Study:
        """Create a study in a store; the store is created if it does not exist.

        Parameters
        ----------
        store
            The path of an SQLite file, or a PostgreSQL URL.
        chosen
            The questions: see :func:`probeval.satisfaction.choose_lists`.
        name
            The name of the study; a store may hold several.
        queries
            Query texts, by id.
        guideline
            Instructions for users.
        most
            The most questions that one user answers; by default all.
        seed
            For the sides of lists, and the order of questions.
        by
            The creator's name.
        clock
            Gives the time in seconds since 1970.
        """
        who, now = as_name(by, "the creator of a study"), clock()
        setup = StudySetup(
            name=as_name(name, "a study"),
            metric=chosen.metric,
            scale=chosen.scale,
            depth=chosen.depth,
            most=most,
            seed=seed,
        )
        events: list[Event] = [StudyCreated(by=who, time=now, study=setup)]
        if guideline.strip():
            events.append(GuidelineChanged(by=who, time=now, version=1, text=as_text(guideline, "A guideline")))
        if queries:
            asked = {question.query: None for question in chosen.questions}
            events.append(QueriesChanged(by=who, time=now, texts=as_texts(queries, asked)))
        parts = {QUESTIONS: json.dumps([asdict(question) for question in chosen.questions]).encode()}
        return cls(Log.create(Store(store, create=True), Creation(setup, parts, tuple(events)), clock))

    def _headline(self) -> str:
        state = self.state
        return f"{self.setup.name}, {len(self.questions):,} questions, {len(state.lists_compared):,} answers"

    def tables(self) -> tuple[Table, ...]:
        """The settings."""
        return (Table(fact_table(self.setup.to_dict()), self._headline()),)

    @cached_property
    def setup(self) -> StudySetup:
        """The settings; they never change."""
        assert self.state.study is not None
        return self.state.study

    @cached_property
    def questions(self) -> tuple[ListQuestion, ...]:
        """The questions, traps among them."""
        content = self._log.store.part(self._log.key, QUESTIONS)
        if content is None:
            raise StoreError(f"{self._log.store.name}: the questions are missing. Restore the store from a backup.")
        rows = json.loads(content)
        return tuple(ListQuestion(**{**row, "a": tuple(row["a"]), "b": tuple(row["b"])}) for row in rows)

    @property
    def docs(self) -> frozenset[str]:
        """The documents that users see."""
        return frozenset(doc for question in self.questions for doc in (*question.a, *question.b))

    def next(self, user: str, *, again: int | None = None) -> ListTask | None:
        """The next question of a user, or None if they have answered all.

        Questions that fewer users have answered come first, in a random order of the user's own; traps come at random
        places, evenly over the questions.

        Parameters
        ----------
        user
            Their name.
        again
            A question to show first, if they have not answered it.
        """
        state = self.state
        own = {question for who, question in state.lists_compared if who == user}
        total = min(len(self.questions), self.setup.most or len(self.questions))
        if len(own) >= total:
            return None
        if again is None or again in own or not 0 <= again < len(self.questions):
            again = self._choose(state, user, own)
        question = self.questions[again]
        left, right = (question.b, question.a) if self._is_swapped(user, again) else (question.a, question.b)
        text = state.texts.get(question.query, "")
        return ListTask(again, question.query, text, left, right, len(own) + 1, total)

    def _choose(self, state: State, user: str, own: set[int]) -> int:
        left = [number for number in range(len(self.questions)) if number not in own]
        traps = [number for number in left if self.questions[number].trap]
        others = [number for number in left if not self.questions[number].trap]
        if traps and (not others or len(own) in self._trap_places(user)):
            return min(traps, key=lambda number: self._chance(user, "order", number))
        answers = Counter(question for _, question in state.lists_compared)
        return min(others, key=lambda number: (answers[number], self._chance(user, "order", number)))

    def _trap_places(self, user: str) -> set[int]:
        """The places at which a user gets traps: one in each of as many equal parts of their questions."""
        traps = sum(bool(question.trap) for question in self.questions)
        length = len(self.questions) / traps if traps else 0.0
        return {int((i + self._chance(user, "trap", i)) * length) for i in range(traps)}

    def _is_swapped(self, user: str, question: int) -> bool:
        """Whether the user sees the second list on the left."""
        return self._chance(user, "side", question) < 0.5

    def _chance(self, user: str, purpose: str, number: int) -> float:
        """A number in [0, 1) from the seed, a user and a question: the same whenever it is asked for."""
        digest = hashlib.sha256("\t".join([str(self.setup.seed), purpose, str(number), user]).encode()).digest()
        return (int.from_bytes(digest[:8], "big") >> 11) / 2**53

    def record(
        self,
        user: str,
        question: int,
        choice: str,
        *,
        good: bool,
        seconds: float | None = None,
        token: str | None = None,
    ) -> ListsCompared:
        """Record the answer of a user to a question.

        Parameters
        ----------
        user, question
            The name of the user, and the number of the question.
        choice
            The better list as they saw them: ``left``, ``right``, or ``same`` for no difference.
        good
            Whether the better list is good; without a difference, whether both are.
        seconds
            The time that they spent on it.
        token
            Any text that names the request: sent twice, it counts once.
        """
        decision = CompareLists(
            by=user,
            question=question,
            questions=len(self.questions),
            choice=choice,
            good=good,
            swapped=self._is_swapped(user, question),
            seconds=seconds,
            token=token,
        )
        return self._log.advance(decision).event

    def withdraw(self, user: str, answer: int, *, token: str | None = None) -> ListsWithdrawn:
        """Withdraw the answer with this number, of the user's own."""
        return self._log.advance(WithdrawLists(by=user, answer=answer, token=token)).event

    def last(self, user: str) -> ListsCompared | None:
        """The latest answer of a user."""
        own = [event for (who, _), event in self.state.lists_compared.items() if who == user]
        return max(own, key=lambda event: event.number, default=None)

    def answers(self) -> ListAnswers:
        """All answers, in the order in which they were given."""
        events = sorted(self.state.lists_compared.values(), key=lambda event: event.number)
        return _as_answers(events, [self.questions[event.question] for event in events], self.setup)


def _as_answers(events: Sequence[ListsCompared], asked: Sequence[ListQuestion], setup: StudySetup) -> ListAnswers:
    """The answers with list ``a`` on the left, as users saw them."""
    pairs = list(zip(events, asked, strict=True))
    sides = [
        ((q.b, q.score_b), (q.a, q.score_a)) if e.swapped else ((q.a, q.score_a), (q.b, q.score_b)) for e, q in pairs
    ]
    preferred = {"left": "a", "right": "b"}
    stated = Preferences(
        np.array([left[1] for left, _ in sides]),
        np.array([right[1] for _, right in sides]),
        objects([preferred.get(e.choice, "good" if e.good else "bad") for e in events]),
        f"{setup.metric}/{setup.scale}",
    )
    return ListAnswers(
        stated,
        objects([q.query for q in asked]),
        objects([e.by for e in events]),
        objects([" ".join(left[0]) for left, _ in sides]),
        objects([" ".join(right[0]) for _, right in sides]),
        objects([{"a": "b"}.get(q.trap, q.trap) if e.swapped else q.trap for e, q in pairs]),
        np.array([float("nan") if e.choice == "same" else float(e.good) for e in events]),
        np.array([float("nan") if e.seconds is None else e.seconds for e in events]),
    )
