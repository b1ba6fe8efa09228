"""Questions: a query, its documents, and the kind of answer asked for. A kind is one object, like a measure.

Page, log and model meet in it: its template shows the question, its events are in the log, and its evidence is what the
model sees. A new kind is one file like those of ``kinds/``, and a template.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from probeval.errors import CampaignError, did_you_mean
from probeval.extensions import Registry

if TYPE_CHECKING:
    from probeval.campaign.candidates import Candidates, Material
    from probeval.campaign.events import Answered, GoldChanged, Settled
    from probeval.campaign.setup import Setup
    from probeval.campaign.state import State
    from probeval.data.answers import PairAnswers
    from probeval.data.judgments import Judgments

__all__ = [
    "KINDS",
    "Kind",
    "Pair",
    "Question",
    "Words",
    "as_question",
    "graded",
    "kind_of",
    "kind_of_gold",
    "kinds_asked",
    "known_asks",
]

Pair = tuple[str, str]  # a query and a document, by their ids
Words = tuple[str, str]  # for documents side by side, and for documents one under the other
GRADE, COMPARISON = "grade", "comparison"


class Question(NamedTuple):
    """A question: the documents of a query that an assessor judges together.

    Examples
    --------
    >>> as_question(("q", "d2", "d1"))
    Question(query='q', documents=('d1', 'd2'), kind='comparison')
    """

    query: str
    documents: tuple[str, ...]
    kind: str = GRADE

    @property
    def pairs(self) -> list[Pair]:
        """The query with each document."""
        return [(self.query, doc) for doc in self.documents]

    @property
    def names(self) -> tuple[str, ...]:
        """The ids of the query and of the documents."""
        return self.query, *self.documents


def graded(query: str, doc: str) -> Question:
    """The question for the grade of a document."""
    return Question(query, (doc,))


class Kind(ABC):
    """A kind of question. There is one object of each kind, in :data:`KINDS`."""

    name: ClassVar[str]  # as the log has it
    asks: ClassVar[Mapping[str, str]]  # the settings of a campaign that ask it, and how each calls one question
    places: ClassVar[tuple[str, ...]]  # of the documents on the page, and of their fields in the form
    fields: ClassVar[Mapping[str, int]]  # the other fields of the form, with their maximum lengths
    answered: ClassVar[type[Answered]]  # the event of an answer
    settled: ClassVar[type[Settled] | None] = None  # of an answer that overrides all others, if it can be settled
    gold: ClassVar[type[GoldChanged] | None] = None  # of the known answers, if there can be any
    gold_counts: ClassVar[bool] = False  # whether known answers are settled ones
    by_everyone: ClassVar[bool] = False  # whether every assessor answers every question
    of_runs: ClassVar[bool] = True  # whether it asks about documents of the runs
    keys: ClassVar[Mapping[str, str]] = MappingProxyType({})  # what a short word stands for, where answers are typed
    template: ClassVar[Path | None] = None  # the file of a kind that is not of this package

    def question(self, query: str, documents: Sequence[str]) -> Question:
        """The question about these documents, whichever way they are shown."""
        return Question(query, tuple(sorted(documents)), self.name)

    def questions(self, candidates: Candidates, setup: Setup) -> Sequence[Question]:
        """The questions that a campaign may ask, the best first; of the kinds that the model chooses it has its own."""
        return ()

    def shown(self, question: Question, purpose: str, before: Sequence[Answered], draw: float) -> tuple[str, ...]:
        """The documents in the places where an assessor sees them.

        Parameters
        ----------
        question, purpose
            The question, and the reason why it is asked.
        before
            The assessor's earlier answers to it.
        draw
            A random number in [0, 1) of the assessor and the question.
        """
        return question.documents

    @abstractmethod
    def values(self, given: Mapping[str, Any], setup: Setup) -> dict[str, Any]:
        """The values of an answer, checked: those of the fields of its event."""

    def settled_values(self, given: Mapping[str, Any], setup: Setup) -> dict[str, Any]:
        """The values of a settled answer, checked: by default those of an answer."""
        return self.values(given, setup)

    @abstractmethod
    def parse(self, form: Mapping[str, str]) -> dict[str, Any]:
        """The values in the form of the page, not yet checked; missing fields are empty."""

    def prompt(self, setup: Setup) -> str:
        """The question where answers are typed, with what may be typed."""
        return f"{self.name}? {', '.join(self.fields)}"

    def typed(self, words: Sequence[str]) -> dict[str, Any]:
        """The values in the words of a typed answer, not yet checked: one word for each field of the form, in order."""
        given = [word for short in words for word in self.keys.get(short.lower(), short).split()]
        if not 0 < len(given) <= len(self.fields):
            raise CampaignError(f"An answer has from 1 to {len(self.fields)} words, got {len(given)}.")
        return self.parse(dict.fromkeys(self.fields, "") | dict(zip(self.fields, given, strict=False)))

    @abstractmethod
    def evidence(self, answers: Sequence[Answered | Settled]) -> Judgments | PairAnswers | None:
        """What the model sees of answers that count: about two documents, or None for nothing; of grades, judgments."""

    @abstractmethod
    def words(self, answer: Answered | Settled, first: str | None = None) -> Words:
        """An answer in words; ``first`` is the document that is in the first place now, by default as it was then."""

    def more_words(self, answer: Answered | Settled) -> str:
        """What an answer tells beside its words, if anything."""
        return ""

    def order(self, answer: Answered) -> Any:
        """By what several answers to one question are sorted, the lowest first."""
        return self.words(answer)

    def pace(self, answer: Answered) -> str:
        """The name under which the time of an answer counts."""
        return self.name

    def wanted(self, question: Question, setup: Setup) -> int:
        """The number of assessors that a question needs.

        It comes from a hash of the seed and the question, so it does not depend on the order of judging or on others.
        """
        return setup.opinions if setup.draw(*question.names) < setup.overlap else 1

    def spread(self, answers: Sequence[Answered]) -> float:
        """How far the answers of several assessors to one question differ; 0 if they do not."""
        return float(len({self.words(answer, answers[0].documents[0]) for answer in answers}) > 1)

    def is_same(self, answer: Answered, before: Answered) -> bool:
        """Whether an assessor answers a repeated question as before."""
        return self.words(answer, before.documents[0]) == self.words(before)

    def is_right(self, answer: Answered, known: Any, setup: Setup) -> bool:
        """Whether an answer to a gold question is right."""
        raise CampaignError(f"There are no known answers to questions for a {self.name}.")

    def as_gold(self, given: Any, setup: Setup) -> dict[str, Any]:
        """Known answers as the fields of their event, checked; from a file or from data."""
        raise CampaignError(f"There are no known answers to questions for a {self.name}.")

    def reads_gold(self, path: Path) -> bool:
        """Whether a file has known answers of this kind, and of no other."""
        return False

    def material(self, part: Callable[[str], bytes | None]) -> Material | None:
        """What is asked about, from the parts of the store; None for documents of the runs."""
        return None

    def page(self, state: State, material: Material) -> dict[str, Any]:
        """Further values for the template, the same for all assessors."""
        return {}


def _take(name: str, kind: Any) -> None:
    KINDS.add(name, kind if isinstance(kind, Kind) else kind())


KINDS: Registry[Kind] = Registry(
    "kind of question", __name__, group="probeval.questions", error=CampaignError, take=_take
)


def kind_of(name: str) -> Kind:
    """The kind with this name."""
    found = KINDS.get(name) or KINDS.find(name)
    if found is None:
        raise CampaignError(
            f"Unknown kind of question {name!r}: expected {', '.join(KINDS)}.{did_you_mean(name, KINDS)}"
        )
    return found


def kind_of_gold(path: Path) -> Kind:
    """The kind whose known answers a file has."""
    return next((kind for kind in KINDS.values() if kind.reads_gold(path)), KINDS[GRADE])


def kinds_asked(ask: str) -> tuple[Kind, ...]:
    """The kinds that a campaign with this setting asks."""
    return tuple(kind for kind in KINDS.values() if ask in kind.asks)


def known_asks() -> tuple[str, ...]:
    """The settings of what assessors are asked."""
    return tuple(dict.fromkeys(ask for kind in KINDS.values() for ask in kind.asks))


def as_question(given: Question | Sequence[str]) -> Question:
    """A question in its usual form; a query and a document ask for a grade, a query and two for a comparison."""
    query, docs, name = given if isinstance(given, Question) else (given[0], given[1:], "")
    kind = kind_of(name or (GRADE if len(docs) == 1 else COMPARISON))
    if isinstance(docs, str) or len(docs) != len(kind.places):
        n = len(kind.places)
        raise CampaignError(f"A question of the kind {kind.name} is about {n} of a query's documents, got {docs!r}.")
    return kind.question(query, docs)
