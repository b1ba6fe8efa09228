"""Which questions to ask next: single documents to grade, pairs of documents to compare.

Pairs come from the published design (:mod:`probeval.preferences.design`): the pool of each query is divided into random
groups of about eight documents, and in each group every document meets three others. When all pairs of a division are
taken, the pool is divided again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from probeval.campaign.events import Question, comparison
from probeval.preferences.design import DocPair, pair_list
from probeval.selection.pairs import SECONDS
from probeval.selection.topics import Queue
from probeval.streams import Purpose, stream

if TYPE_CHECKING:
    from probeval.campaign.candidates import Candidates
    from probeval.campaign.snapshot import ModelSnapshot
    from probeval.campaign.state import State

__all__ = [
    "PER_DOCUMENT",
    "ComparisonDesign",
    "QuestionQueues",
    "next_questions",
    "seconds_per_answer",
]

FEWEST_TIMED = 10  # answers of a kind with a measured time, for their median to count
SIZE, DEGREE, DIVISIONS = 8, 3, 11  # documents per group, others that each meets, and divisions, as published
PER_DOCUMENT = DIVISIONS * (DEGREE + 1) // 2  # comparisons of the whole design per document of the pool, at most
Group = tuple[str, tuple[DocPair, ...]]  # a query, and the list of its pairs: left and right document


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
                    self._left.setdefault(comparison(query, left, right), left)
            self._divisions[number] = tuple(groups)
        return self._divisions[number]

    def queues(self, ask: str, inputs: tuple[object, ...], make: Callable[[], QuestionQueues]) -> QuestionQueues:
        """The queues that were made for these inputs, or new ones: most answers change none of the inputs."""
        if ask not in self._kept or self._kept[ask][0] != inputs:
            self._kept[ask] = inputs, make()
        return self._kept[ask][1]

    def left(self, question: Question) -> str | None:
        """The document that the design shows on the left; None if it has no such pair so far."""
        return self._left.get(question)


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

    def left(self, question: Question) -> str | None:
        """The document to show on the left; None if either will do."""
        return None if self.design is None else self.design.left(question)


def next_questions(state: State, candidates: Candidates, snapshot: ModelSnapshot | None) -> QuestionQueues:
    """The questions to ask next, by what the campaign asks for. Runs no model.

    A document is worth what the latest snapshot of the model says: its value, or else its place in the queue. Before
    the first snapshot, it is worth the number of systems that retrieve it. A group of the design is worth as much as
    its documents on average. Its pairs stay in their order, in which an assessor reads one new document at a time.

    ``grades``
        Documents, the most valuable first.
    ``preferences``, ``magnitudes``
        The comparisons that the snapshot proposes, by their gain (:func:`probeval.selection.next_questions`). Before
        the first snapshot, or with a policy that does not choose comparisons, the pairs of the design, the most
        valuable group first, division after division.
    ``mixed``
        Documents and comparisons, by value per second: an answer takes as long as the median of the latest ones of its
        kind (:func:`seconds_per_answer`), in whole seconds.

    Parameters
    ----------
    state
        The state of the campaign.
    candidates
        The pairs that it may judge.
    snapshot
        The latest results of the model, or None.
    """
    setup, popular = state.settings, candidates.popular
    proposed = None if snapshot is None else snapshot.topic_queue
    if setup.ask == "grades":
        left = candidates.without_grade(state)
        return QuestionQueues([left] if proposed is None else [proposed, left])
    best = popular if proposed is None else proposed
    is_valued = snapshot is None or bool(snapshot.values)
    design = candidates.design(setup.seed)
    chosen = () if snapshot is None else tuple(map(_Asked, snapshot.comparisons, snapshot.comparison_values))
    if setup.ask != "mixed":
        before = (_as_queue(chosen),) if chosen else ()
        return design.queues(
            setup.ask,
            (best, chosen),
            lambda: QuestionQueues(_Divisions(design, _worth(best, is_valued), before), design),
        )
    if snapshot is not None and chosen:
        documents = [_Asked(*each) for each in zip(snapshot.queue, snapshot.values, snapshot.due, strict=True)]
        return design.queues(
            setup.ask, (best, chosen), lambda: QuestionQueues([_as_queue([*documents, *chosen]), popular], design)
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
    return QuestionQueues([_as_queue([*documents, *pairs]), popular], design)


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
                self.made[number] = _as_queue(_asked(self.design.division(number), self.worth))
            yield self.made[number]


def _asked(groups: Iterable[Group], worth: Mapping[Question, float]) -> list[_Asked]:
    """The pairs of these groups, with the mean value of the group's documents."""
    asked = []
    for query, pairs in groups:
        docs = dict.fromkeys(doc for pair in pairs for doc in pair)
        value = fmean(worth.get((query, doc), 0.0) for doc in docs)
        asked += [_Asked(comparison(query, *pair), value) for pair in pairs]
    return asked


def _as_queue(asked: Iterable[_Asked]) -> Queue[Question, str]:
    """Questions as a queue, the most valuable first; equal ones stay in order."""
    ordered = sorted(asked, key=lambda each: -each.value)
    questions = [each.question for each in ordered]
    topics, values = [question[0] for question in questions], [each.value for each in ordered]
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
