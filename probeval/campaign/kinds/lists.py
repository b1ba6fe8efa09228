"""Two lists of documents side by side: which is better, and is it good? The questions of a study with users.

The lists of question 7 are called ``7a`` and ``7b``. Their names alone tell the query, which logs of earlier versions
do not have, so the query of such a :class:`Question` is empty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import msgspec
import numpy as np

from probeval.arrays import objects
from probeval.campaign.archive import reading_part
from probeval.campaign.candidates import Material, QuestionQueues, as_queue
from probeval.campaign.events import Answered, Settled
from probeval.campaign.parsing import check_values
from probeval.campaign.questions import KINDS, Kind, Question, Words
from probeval.errors import CampaignError, StoreError
from probeval.satisfaction import ListAnswers, ListQuestion, Preferences

if TYPE_CHECKING:
    from probeval.campaign.setup import Setup
    from probeval.campaign.snapshot import ModelSnapshot
    from probeval.campaign.state import State

__all__ = ["LISTS", "ListMaterial", "ListsCompared", "ListsKind", "pack_questions"]

LISTS = "lists"
PART = "questions"  # of the store
Choice = Literal["left", "right", "same"]
CHOICES = get_args(Choice)
GOOD = {"yes": True, "no": False}
NAME = re.compile(r"([0-9]{1,9})([ab])")
WORDS = {"left": "left is better", "right": "right is better", "same": "no difference"}


@dataclass(frozen=True, kw_only=True, repr=False)
class ListsCompared(Answered):
    """A user answered a question about two lists.

    Parameters
    ----------
    choice
        The better list: ``left``, ``right``, or ``same`` for no difference.
    good
        Whether the better list is good; without a difference, whether both are.
    """

    kind = "lists compared"
    asks = LISTS
    choice: Choice
    good: bool

    @property
    def asked_about(self) -> int:
        """The number of the question."""
        return _number(self.documents[0])

    @property
    def swapped(self) -> bool:
        """Whether the second list was on the left."""
        return self.documents[0].endswith("b")


class ListsKind(Kind):
    """Which of two lists is better, and is it good?"""

    name = LISTS
    asks = MappingProxyType({"lists": "lists"})
    places = ("left", "right")
    fields = MappingProxyType({"choice": 10, "good": 5})
    answered = ListsCompared
    by_everyone = True
    of_runs = False
    keys = MappingProxyType({"l": "left", "r": "right", "=": "same", "y": "yes", "n": "no"})

    def question(self, query: str, documents: Sequence[str]) -> Question:
        """The question about these two lists."""
        one, other = sorted(documents)
        if _number(one) != _number(other) or (one[-1], other[-1]) != ("a", "b"):
            raise CampaignError(f"Two lists of one question are expected, such as 7a and 7b; got {one} and {other}.")
        return Question("", (one, other), self.name)

    def material(self, part: Callable[[str], bytes | None]) -> ListMaterial:
        """The questions, from a part of the store."""
        content = part(PART)
        if content is None:
            raise StoreError("the questions are missing. Restore the store from a backup.")
        with reading_part():
            return ListMaterial(msgspec.json.decode(content, type=tuple[ListQuestion, ...]))

    def shown(self, question: Question, purpose: str, before: Sequence[Answered], draw: float) -> tuple[str, ...]:
        """The sides at random."""
        a, b = question.documents
        return (b, a) if draw < 0.5 else (a, b)

    def values(self, given: Mapping[str, Any], setup: Setup) -> dict[str, Any]:
        """The better list, and whether it is good."""
        check_values(given, "choice", "good")
        choice, good = given.get("choice"), given.get("good")
        if choice not in CHOICES:
            raise CampaignError(f"The better list must be one of {', '.join(CHOICES)}, got {choice!r}.")
        if not isinstance(good, bool):
            raise CampaignError(f"Whether a list is good must be yes or no, got {good!r}.")
        return {"choice": choice, "good": good}

    def parse(self, form: Mapping[str, str]) -> dict[str, Any]:
        """The better list, and whether it is good."""
        return {"choice": form["choice"], "good": GOOD.get(form["good"], form["good"])}

    def prompt(self, setup: Setup) -> str:
        """Both questions."""
        return "Which list is better, and is it good? l left, r right, = no difference; then y or n, such as l y"

    def evidence(self, answers: Sequence[Answered | Settled]) -> None:
        """Nothing: answers about lists tell what measures are worth, not which documents are relevant."""

    def words(self, answer: Answered | Settled, first: str | None = None) -> Words:
        """The better list, and whether it is good."""
        given = cast("ListsCompared", answer)
        swapped = first is not None and first != given.documents[0]
        choice = {"left": "right", "right": "left"}.get(given.choice, given.choice) if swapped else given.choice
        return (f"{WORDS[choice]}, {'good' if given.good else 'not good'}",) * 2

    def page(self, state: State, material: Material) -> dict[str, Any]:
        """The number of questions that one user gets."""
        return {"total": cast("ListMaterial", material).total(state.settings)}


@dataclass(frozen=True, eq=False)
class ListMaterial(Material):
    """The pairs of lists that users are asked about, traps among them."""

    questions: tuple[ListQuestion, ...]

    @property
    def docs(self) -> frozenset[str]:
        """The documents that users see."""
        return frozenset(doc for question in self.questions for doc in (*question.a, *question.b))

    @property
    def queries(self) -> list[str]:
        """The queries of the lists."""
        return list(dict.fromkeys(question.query for question in self.questions))

    @cached_property
    def asked(self) -> list[Question]:
        """All questions, by number."""
        return [Question("", (f"{number}a", f"{number}b"), LISTS) for number in range(len(self.questions))]

    def query_of(self, question: Question) -> str:
        """The query of two lists."""
        return self._of(question.documents[0]).query

    def documents(self, name: str) -> tuple[str, ...]:
        """The documents of a list, best first."""
        question = self._of(name)
        return question.a if name.endswith("a") else question.b

    def score(self, name: str) -> float:
        """The score of a list."""
        question = self._of(name)
        return question.score_a if name.endswith("a") else question.score_b

    def check(self, question: Question) -> Question:
        """The question, if it is one of these; otherwise an error."""
        if question.kind != LISTS:
            raise CampaignError(f"Users are asked about two lists, not for a {question.kind}.")
        self._of(question.documents[0])
        return question

    def _of(self, name: str) -> ListQuestion:
        """The question that a list is of."""
        number = _number(name)
        if number >= len(self.questions):
            raise CampaignError(f"Questions go from 0 to {len(self.questions) - 1}, got {number}.")
        return self.questions[number]

    def total(self, setup: Setup) -> int:
        """The number of questions that one user gets."""
        return min(len(self.questions), setup.most or len(self.questions))

    def queues(self, state: State, snapshot: ModelSnapshot | None, assessor: str) -> QuestionQueues:
        """The questions of a user, up to their number of questions.

        Those that they hold come first, then those that fewer users have answered, in a random order of the user's own;
        traps come at random places, evenly over the questions.
        """
        setup = state.settings
        open_now = {n for n, each in enumerate(self.asked) if _is_left(state, each, assessor)}
        done = sum(assessor in state.latest(each) for each in self.asked)

        def chance(purpose: str, number: int) -> float:
            return setup.draw(purpose, str(number), assessor)

        def rank(number: int) -> tuple[bool, int, float]:
            question = self.asked[number]
            answers = 0 if self.questions[number].trap else len(state.latest(question))
            return assessor not in state.leases.get(question, {}), answers, chance("order", number)

        ordered = sorted(open_now, key=rank)
        traps, others = ([n for n in ordered if bool(self.questions[n].trap) == trap] for trap in (True, False))
        every = sum(bool(question.trap) for question in self.questions)
        length = len(self.questions) / every if every else 0.0
        places = {int((i + chance("trap", i)) * length) for i in range(every)}
        chosen = list[int]()
        for place in range(done, min(self.total(setup), done + len(ordered))):
            of = traps if traps and (place in places or not others) else others
            chosen.append(of.pop(0))
        return QuestionQueues([as_queue((self.asked[n], -float(at)) for at, n in enumerate(chosen))])

    def is_right(self, answer: ListsCompared) -> bool | None:
        """Whether the answer to a trap is right; None if it is no trap."""
        trap = self._of(answer.documents[0]).trap
        if not trap:
            return None
        right = "same" if trap == "same" else "right" if answer.swapped == (trap == "a") else "left"
        return answer.choice == right

    def answers(self, events: Sequence[ListsCompared], setup: Setup) -> ListAnswers:
        """The answers with list ``a`` on the left, as users saw them, in the order in which they were given."""
        pairs = [(event, self._of(event.documents[0])) for event in events]
        sides = [
            ((q.b, q.score_b), (q.a, q.score_a)) if e.swapped else ((q.a, q.score_a), (q.b, q.score_b))
            for e, q in pairs
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
            objects([q.query for _, q in pairs]),
            objects([e.by for e in events]),
            objects([" ".join(left[0]) for left, _ in sides]),
            objects([" ".join(right[0]) for _, right in sides]),
            objects([{"a": "b"}.get(q.trap, q.trap) if e.swapped else q.trap for e, q in pairs]),
            np.array([float("nan") if e.choice == "same" else float(e.good) for e in events]),
            np.array([float("nan") if e.seconds is None else e.seconds for e in events]),
        )


def pack_questions(questions: Sequence[ListQuestion]) -> dict[str, bytes]:
    """The questions as a part of a store."""
    return {PART: json.dumps([asdict(question) for question in questions]).encode()}


def _is_left(state: State, question: Question, assessor: str) -> bool:
    """Whether the assessor has neither answered nor skipped the question."""
    skipped = state.skipped.get(question, ())
    return assessor not in state.latest(question) and all(skip.by != assessor for skip in skipped)


def _number(name: str) -> int:
    """The number of the question that a list is of."""
    found = NAME.fullmatch(name)
    if found is None:
        raise CampaignError(f"A list of a question is called by its number and a letter, such as 7a; got {name!r:.60}.")
    return int(found[1])


KINDS.add(LISTS, ListsKind(), own=True)
