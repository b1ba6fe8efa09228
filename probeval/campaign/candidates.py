"""The questions that a campaign may ask, and those to ask next: documents to grade, pairs of documents to compare.

Pairs come from the published design (:mod:`probeval.preferences.design`): the pool of each query is divided into random
groups of about eight documents, and in each group every document meets three others. When all pairs of a division are
taken, the pool is divided again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean, median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from probeval.campaign.questions import COMPARISON, GRADE, Pair, Question, graded, kind_of
from probeval.data.collection import Collection
from probeval.data.pool import Pool
from probeval.errors import CampaignError, did_you_mean
from probeval.preferences.design import DocPair, pair_list
from probeval.selection.pairs import ASK, SECONDS
from probeval.selection.topics import Queue
from probeval.streams import Purpose, stream

if TYPE_CHECKING:
    from probeval.campaign.snapshot import ModelSnapshot
    from probeval.campaign.state import State

__all__ = [
    "PER_DOCUMENT",
    "Candidates",
    "ComparisonDesign",
    "Material",
    "QuestionQueues",
    "as_queue",
    "seconds_per_answer",
]

AGAIN = 200  # judgments after which the pairs without a grade are looked for again
FEWEST_TIMED = 10  # answers of a kind with a measured time, for their median to count
SIZE, DEGREE, DIVISIONS = 8, 3, 11  # documents per group, others that each meets, and divisions, as published
PER_DOCUMENT = DIVISIONS * (DEGREE + 1) // 2  # comparisons of the whole design per document of the pool, at most
Group = tuple[str, tuple[DocPair, ...]]  # a query, and the list of its pairs: left and right document


class Material(ABC):
    """What a campaign asks about."""

    @property
    @abstractmethod
    def docs(self) -> frozenset[str]:
        """The documents that assessors may see."""

    @property
    @abstractmethod
    def queries(self) -> Sequence[str]:
        """The queries."""

    @property
    @abstractmethod
    def asked(self) -> Sequence[Question]:
        """The questions by which progress is measured."""

    def query_of(self, question: Question) -> str:
        """The query of a question."""
        return question.query

    def documents(self, name: str) -> tuple[str, ...]:
        """The documents that an id of a question stands for: by default the one with this id."""
        return (name,)

    @abstractmethod
    def check(self, question: Question) -> Question:
        """The question, if the campaign may ask it; otherwise an error."""

    @abstractmethod
    def queues(self, state: State, snapshot: ModelSnapshot | None, assessor: str) -> QuestionQueues:
        """The questions to ask an assessor next. Runs no model."""


@dataclass(frozen=True, eq=False)
class ComparisonDesign:
    """The pairs of documents to compare, in divisions of the pool.

    Parameters
    ----------
    docs
        The documents of each query, by query.
    seed
        The seed of the campaign.

    Examples
    --------
    >>> design = ComparisonDesign({"q": [f"d{i}" for i in range(16)]}, seed=1)
    >>> [len(pairs) for _, pairs in design.division(0)]
    [12, 12]
    """

    docs: Mapping[str, Sequence[str]]
    seed: int
    _divisions: dict[int, tuple[Group, ...]] = field(default_factory=dict, repr=False)
    _left: dict[Question, str] = field(default_factory=dict, repr=False)
    _kept: dict[str, tuple[object, QuestionQueues]] = field(default_factory=dict, repr=False)

    def division(self, number: int) -> tuple[Group, ...]:
        """The groups of a division, 0, 1, .., each with its list of pairs; made when they are first asked for."""
        if number not in self._divisions:
            groups = []
            for query, docs in self.docs.items():
                rng = stream(self.seed, Purpose.COMPARISONS, query, number)
                groups += [(query, pairs) for pairs in _groups(docs, rng)]
            for query, pairs in groups:
                for left, right in pairs:
                    self._left.setdefault(_pair(query, left, right), left)
            self._divisions[number] = tuple(groups)
        return self._divisions[number]

    def queues(self, ask: str, inputs: tuple[object, ...], make: Callable[[], QuestionQueues]) -> QuestionQueues:
        """The queues that were made for these inputs, or new ones: most answers change none of the inputs."""
        if ask not in self._kept or self._kept[ask][0] != inputs:
            self._kept[ask] = inputs, make()
        return self._kept[ask][1]

    def shown(self, question: Question) -> tuple[str, ...] | None:
        """The documents in the places where the design shows them; None if it has no such pair so far."""
        left, documents = self._left.get(question), question.documents
        return None if left is None else documents if documents[0] == left else documents[::-1]


def _groups(docs: Sequence[str], rng: np.random.Generator) -> Iterator[tuple[DocPair, ...]]:
    """Random groups of about eight documents with their lists of pairs; a few documents are one smaller group."""
    order = [docs[at] for at in rng.permutation(len(docs))]
    count = max(1, round(len(order) / SIZE))
    for start in range(count):
        group = order[start::count]
        degree = min(DEGREE, len(group) - 1)
        if len(group) * degree % 2:
            degree += 1 if degree + 1 < len(group) else -1
        if degree > 0:
            yield tuple(pair_list(group, degree, rng))


@dataclass(frozen=True, eq=False)
class QuestionQueues:
    """Questions to ask, the best first.

    Parameters
    ----------
    queues
        Later queues serve when the earlier ones have nothing for an assessor.
    design
        The design that the comparisons are from, if any.
    """

    queues: Iterable[Queue[Question, str]]
    design: ComparisonDesign | None = None

    def shown(self, question: Question) -> tuple[str, ...] | None:
        """The documents in the places where they are shown; None if any will do."""
        return None if self.design is None else self.design.shown(question)


@dataclass(frozen=True, eq=False)
class Candidates(Material):
    """The pairs that a campaign may judge.

    Parameters
    ----------
    collection
        Runs and evidence.
    depth
        The depth of the pool.
    """

    collection: Collection
    depth: int

    @cached_property
    def pool(self) -> Pool:
        """The pairs to judge."""
        return self.collection.runs.top(self.depth).pool

    @cached_property
    def pairs(self) -> list[Pair]:
        """The pairs of the pool."""
        return [self.pool.label(pair) for pair in range(len(self.pool))]

    @cached_property
    def popular(self) -> Queue[Question, str]:
        """The pairs of the pool, by descending number of systems that retrieve them: what a pair is then worth."""
        runs = self.collection.runs.top(self.depth)
        retrieved = np.bincount(runs.pairs[runs.pairs >= 0], minlength=len(runs.pool))
        order = np.argsort(-retrieved, kind="stable")
        pairs = [self.asked[pair] for pair in order]
        return Queue(pairs, [pair.query for pair in pairs], retrieved[order].tolist(), [None] * len(pairs))

    def without_grade(self, state: State) -> Queue[Question, str]:
        """The popular pairs that had no grade lately: some may have one by now, so the caller looks.

        Made again after many judgments, or a withdrawal, so that no step goes through everything that is judged.
        """
        kept, judged = self._open.get(state.withdrawn), state.asked.get(GRADE, 0)
        if kept is None or not 0 <= judged - kept[0] < AGAIN:
            popular = self.popular
            at = [i for i, pair in enumerate(popular.pairs) if not state.is_known(pair)]
            pairs, values = [popular.pairs[i] for i in at], [popular.values[i] for i in at]
            kept = judged, Queue(pairs, [pair.query for pair in pairs], values, [None] * len(pairs))
            self._open.clear()
            self._open[state.withdrawn] = kept
        return kept[1]

    @cached_property
    def _open(self) -> dict[int, tuple[int, Queue[Question, str]]]:
        """By the last withdrawal: the number of judged pairs, and the queue."""
        return {}

    def design(self, seed: int) -> ComparisonDesign:
        """The pairs of documents of the pool to compare."""
        kept = self._designs.get(seed)
        if kept is None:
            docs: dict[str, list[str]] = {}
            for query, doc in self.pairs:
                docs.setdefault(query, []).append(doc)
            kept = self._designs[seed] = ComparisonDesign(docs, seed)
        return kept

    @cached_property
    def _designs(self) -> dict[int, ComparisonDesign]:
        return {}

    @cached_property
    def retrieved(self) -> frozenset[Pair]:
        """Every pair that some run has, at any rank."""
        pool = self.collection.runs.pool
        return frozenset(zip(pool.queries[pool.query], pool.docs[pool.doc], strict=True))

    @property
    def docs(self) -> frozenset[str]:
        """The documents of the pool."""
        return frozenset(map(str, self.pool.docs))

    @property
    def queries(self) -> Sequence[str]:
        """The queries of the runs."""
        return list(self.collection.runs.queries)

    @cached_property
    def asked(self) -> list[Question]:
        """The pairs of the pool, to be graded."""
        return [graded(*pair) for pair in self.pairs]

    def check(self, question: Question) -> Question:
        """The question, if some run retrieves its documents; otherwise an error."""
        for query, doc in question.pairs:
            if (query, doc) not in self.retrieved:
                known = self.collection.runs.queries
                if query not in known:
                    raise CampaignError(f"No query {query!r} in this campaign.{did_you_mean(str(query), known)}")
                raise CampaignError(f"Query {query!r}: no run retrieves document {doc!r}.")
        return question

    def queues(self, state: State, snapshot: ModelSnapshot | None, assessor: str) -> QuestionQueues:
        """The questions to ask next, by what the campaign asks for. Runs no model.

        A document is worth what the latest snapshot of the model says: its value, or else its place in the queue.
        Before the first snapshot, it is worth the number of systems that retrieve it. A group of the design is worth as
        much as its documents on average. Its pairs stay in their order, in which an assessor reads one new document at
        a time.

        ``grades``
            Documents, the most valuable first.
        ``preferences``, ``magnitudes``
            The comparisons that the snapshot proposes, by their gain (:func:`probeval.selection.next_questions`).
            Before the first snapshot, or with a policy that does not choose comparisons, the pairs of the design, the
            most valuable group first, division after division.
        ``mixed``
            Documents and comparisons, by value per second: an answer takes as long as the median of the latest ones of
            its kind (:func:`seconds_per_answer`), in whole seconds.

        Questions of another kind come as the kind orders them.

        Parameters
        ----------
        state, assessor
            The state of the campaign, and who is asked.
        snapshot
            The latest results of the model, or None.
        """
        setup, popular = state.settings, self.popular
        if setup.ask not in ASK:
            asked = (each for kind in setup.kinds for each in kind.questions(self, setup))
            return QuestionQueues([as_queue((each, -float(at)) for at, each in enumerate(asked))])
        proposed = None if snapshot is None else snapshot.topic_queue
        if setup.ask == "grades":
            left = self.without_grade(state)
            return QuestionQueues([left] if proposed is None else [proposed, left])
        best = popular if proposed is None else proposed
        is_valued = snapshot is None or bool(snapshot.values)
        design = self.design(setup.seed)
        chosen = () if snapshot is None else tuple(map(_Asked, snapshot.comparisons, snapshot.comparison_values))
        if setup.ask != "mixed":
            before = (as_queue(chosen),) if chosen else ()
            return design.queues(
                setup.ask,
                (best, chosen),
                lambda: QuestionQueues(_Divisions(design, _worth(best, is_valued), before), design),
            )
        if snapshot is not None and chosen:
            documents = map(_Asked, best.pairs, best.values, best.due)
            return design.queues(
                setup.ask, (best, chosen), lambda: QuestionQueues([as_queue([*documents, *chosen]), popular], design)
            )
        seconds = {kind: max(1, round(each)) for kind, each in seconds_per_answer(state).items()}
        return design.queues(
            setup.ask, (best, seconds), lambda: _mixed(design, best, _worth(best, is_valued), seconds, popular)
        )


def _worth(best: Queue[Question, str], is_valued: bool) -> dict[Question, float]:
    """The value of each document of a queue: its own, or else by its place."""
    values = best.values if is_valued else np.linspace(1, 0, len(best.pairs), endpoint=False)
    return dict(zip(best.pairs, map(float, values), strict=True))


def _mixed(
    design: ComparisonDesign,
    best: Queue[Question, str],
    worth: Mapping[Question, float],
    seconds: Mapping[str, int],
    popular: Queue[Question, str],
) -> QuestionQueues:
    """Documents, and pairs of the design, by value per second."""
    documents = [
        _Asked(question, worth[question] / seconds["grade"], due)
        for question, due in zip(best.pairs, best.due, strict=True)
    ]
    pairs = [_Asked(each.question, each.value / seconds["preference"]) for each in _asked(design.division(0), worth)]
    return QuestionQueues([as_queue([*documents, *pairs]), popular], design)


class _Asked(NamedTuple):
    """A question with its value, and when it is due if it was drawn at random."""

    question: Question
    value: float
    due: int | None = None


@dataclass(frozen=True, eq=False)
class _Divisions:
    """The queue of each division of a design, made when it is needed; ``worth`` is the value of a document.

    Queues ``before`` come first.
    """

    design: ComparisonDesign
    worth: Mapping[Question, float]
    before: tuple[Queue[Question, str], ...] = ()
    made: dict[int, Queue[Question, str]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Queue[Question, str]]:
        yield from self.before
        for number in range(DIVISIONS):
            if number not in self.made:
                self.made[number] = as_queue(_asked(self.design.division(number), self.worth))
            yield self.made[number]


def _asked(groups: Iterable[Group], worth: Mapping[Question, float]) -> list[_Asked]:
    """The pairs of these groups, with the mean value of the group's documents."""
    asked = []
    for query, pairs in groups:
        docs = dict.fromkeys(doc for pair in pairs for doc in pair)
        value = fmean(worth.get(graded(query, doc), 0.0) for doc in docs)
        asked += [_Asked(_pair(query, *pair), value) for pair in pairs]
    return asked


def as_queue(asked: Iterable[tuple[Question, float] | _Asked]) -> Queue[Question, str]:
    """Questions with their values as a queue, the most valuable first; equal ones stay in order."""
    ordered = sorted((_Asked(*each) for each in asked), key=lambda each: -each.value)
    questions = [each.question for each in ordered]
    topics, values = [question.query for question in questions], [each.value for each in ordered]
    return Queue(questions, topics, values, [each.due for each in ordered])


def seconds_per_answer(state: State) -> dict[str, float]:
    """The seconds that an answer of each kind takes: the median of the latest ones, with few of them a prior.

    Examples
    --------
    >>> from probeval.campaign import State
    >>> seconds_per_answer(State(paces={"grade": (9.0, 10.0, 30.0) * 4}))
    {'grade': 10.0, 'preference': 18.0, 'magnitude': 25.0}
    """
    timed = state.paces
    return {
        kind: median(timed[kind]) if len(timed.get(kind, ())) >= FEWEST_TIMED else prior
        for kind, prior in SECONDS.items()
    }


def _pair(query: str, left: str, right: str) -> Question:
    """The comparison of two documents."""
    return kind_of(COMPARISON).question(query, (left, right))
